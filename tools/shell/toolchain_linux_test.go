package shell_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/tools/shell"
	"github.com/zephbot/zephbot/tools/shell/sandbox"
	"github.com/zephbot/zephbot/tools/shell/toolchain"
)

// homeOfToolchains makes a home directory with toolchains as their installers lay them out. The programs are scripts
// that need the same files as the real ones: a proxy of rustup its settings and its toolchain, a shim of pyenv the
// program behind it, node the library beside it.
func homeOfToolchains(t *testing.T) string {
	t.Helper()
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	script := func(text string) string { return "#!/bin/bash\n" + text + "\n" }
	for name, text := range map[string]string{
		".rustup/settings.toml":                 "default_toolchain = \"stable\"\n",
		".rustup/toolchains/stable/bin/cargo":   script(`echo "cargo of $(cat "${0%/bin/*}/lib/version"), packages $(cat "$CARGO_HOME/registry/cache/list")"`),
		".rustup/toolchains/stable/lib/version": "stable",
		".cargo/bin/rustup":                     script(`set -e; grep -q stable "$RUSTUP_HOME/settings.toml"; exec "$RUSTUP_HOME/toolchains/stable/bin/${0##*/}" "$@"`),
		".cargo/registry/cache/list":            "serde",
		".cargo/config.toml":                    "[build]\njobs = 2\n",
		".cargo/credentials.toml":               "token = \"secret\"\n",
		".nvm/nvm.sh":                           "",
		".nvm/alias/default":                    "20\n",
		".nvm/versions/node/v20.19.2/bin/node":  script(`echo "node 20 with $(cat "${0%/bin/*}/lib/node_modules/npm/package.json")"`),
		".nvm/versions/node/v20.19.2/lib/node_modules/npm/package.json": "npm",
		".nvm/versions/node/v20.19.2/etc/npmrc":                         "//registry.npmjs.org/:_authToken=secret\n",
		".nvm/versions/node/v22.1.0/bin/node":                           script("echo node 22"),
		".pyenv/version":                                                "3.12.1\n",
		".pyenv/libexec/pyenv":                                          script(`set -e; shift; exec "$PYENV_ROOT/versions/$(cat "$PYENV_ROOT/version")/bin/$1"`),
		".pyenv/shims/python3.12":                                       script(`exec "${0%/shims/*}/libexec/pyenv" exec "${0##*/}" "$@"`),
		".pyenv/versions/3.12.1/bin/python3.12":                         script(`echo "python $(cat "${0%/bin/*}/lib/python3.12/os.py")"`),
		".pyenv/versions/3.12.1/lib/python3.12/os.py":                   "3.12.1",
		".pyenv/versions/3.12.1/pip.conf":                               "index-url = https://me:secret@pypi.example.com\n",
		".local/share/uv/tools/ruff/bin/ruff":                           script(`echo "ruff by uv"`),
		".local/share/uv/credentials/credentials.toml":                  "password = \"secret\"\n",
		".local/bin/mine":                                               script("echo secret"),
		"sdk/go1.25.1/bin/go":                                           script(`echo "go $(cat "${0%/bin/*}/VERSION") by $GOPROXY"`),
		"sdk/go1.25.1/VERSION":                                          "1.25.1",
		"sdk/go1.25.1/pkg/tool/compile":                                 "",
		"go/pkg/mod/cache/download/list":                                "",
		".npmrc":                                                        "//registry.npmjs.org/:_authToken=secret\n",
		".netrc":                                                        "machine example.com password secret\n",
	} {
		file := filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{".cargo/bin/cargo": "rustup", ".local/bin/ruff": "../share/uv/tools/ruff/bin/ruff"} {
		if err := os.Symlink(target, filepath.Join(home, link)); err != nil {
			t.Fatal(err)
		}
	}
	return home
}

// needsLandlock skips the test if this kernel cannot confine files, because there is nothing to test then.
func needsLandlock(t *testing.T) {
	t.Helper()
	if level := sandbox.Probe(t.Context(), sandbox.Self); level.Landlock == 0 {
		if os.Getenv("ZEPH_CI") != "" {
			t.Fatalf("this machine must have Landlock: %s", level)
		}
		t.Skip(level.String())
	}
}

// TestToolchains runs the programs of toolchains below a home directory in the sandbox. None of the files with
// credentials beside them can be read, and nothing can be written.
func TestToolchains(t *testing.T) {
	t.Parallel()
	needsLandlock(t)
	home := homeOfToolchains(t)
	// nvm puts the version in use first; the machine may have a node too
	environ := []string{"PATH=" + home + "/.nvm/versions/node/v20.19.2/bin:/usr/bin:/bin", "HOME=" + home}
	k := setup(t, shell.Options{
		Helper: sandbox.Self, Toolchains: toolchain.Find(home, environ), Environ: func() []string { return environ },
	})
	for command, want := range map[string]string{
		"cargo build": "cargo of stable, packages serde", "node": "node 20 with npm", "python3.12": "python 3.12.1",
		"ruff": "ruff by uv", "go": "go 1.25.1 by file://" + home + "/go/pkg/mod/cache/download,https://proxy.golang.org,direct",
	} {
		if got := strings.TrimSpace(k.run(command).Text); got != want {
			t.Errorf("%s: %q, want %q", command, got, want)
		}
	}
	for _, name := range []string{
		".cargo/credentials.toml", ".nvm/versions/node/v20.19.2/etc/npmrc", ".pyenv/versions/3.12.1/pip.conf",
		".local/share/uv/credentials/credentials.toml", ".local/bin/mine", ".npmrc", ".netrc",
	} {
		if got := k.run("cat " + filepath.Join(home, name)).Text; strings.Contains(got, "secret") {
			t.Errorf("%s can be read: %s", name, got)
		}
	}
	for _, dir := range []string{".cargo/bin", ".rustup/toolchains", ".nvm/versions/node/v20.19.2/bin", ".pyenv/shims"} {
		file := filepath.Join(home, dir, "new")
		k.run("echo x > " + file)
		if _, err := os.Stat(file); err == nil {
			t.Errorf("%s can be written", dir)
		}
	}
}

// TestToolchainsNotGranted: without a grant, a program below the home directory is found and said not to be usable,
// and does not run.
func TestToolchainsNotGranted(t *testing.T) {
	t.Parallel()
	needsLandlock(t)
	home := homeOfToolchains(t)
	cargo := filepath.Join(home, ".cargo", "bin", "cargo")
	environ := []string{"PATH=" + filepath.Dir(cargo) + ":/usr/bin:/bin", "HOME=" + home}
	for granted, o := range map[bool]shell.Options{
		false: {}, true: {Toolchains: toolchain.Find(home, environ)},
	} {
		o.Helper, o.Environ = sandbox.Self, func() []string { return environ }
		k := setup(t, o)
		if path, usable := k.r.FindProgram(t.Context(), "cargo"); path != cargo || usable != granted {
			t.Errorf("granted: %t: found %q, usable %t", granted, path, usable)
		}
		if path, usable := k.r.FindProgram(t.Context(), "bash"); path == "" || !usable {
			t.Errorf("bash: found %q, usable %t", path, usable)
		}
		if path, usable := k.r.FindProgram(t.Context(), "no-such-program"); path != "" || usable {
			t.Errorf("found %q, usable %t", path, usable)
		}
		if got := k.run("cargo build || true").Text; strings.Contains(got, "cargo of stable") != granted {
			t.Errorf("granted: %t: %s", granted, got)
		}
	}
}

// TestToolchainsByName: a list names directories. One of a known kind gives only its known folders; of another, what
// holds secrets by its name is left out.
func TestToolchainsByName(t *testing.T) {
	t.Parallel()
	needsLandlock(t)
	home := homeOfToolchains(t)
	other := filepath.Join(home, "zig")
	for name, text := range map[string]string{
		"bin/zig": "#!/bin/bash\necho zig $(cat " + other + "/lib/version)\n", "lib/version": "0.15", ".npmrc": "secret", "lib/.env": "secret",
	} {
		file := filepath.Join(other, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	set := toolchain.Of([]string{other, filepath.Join(home, ".nvm")}, home)
	k := setup(t, shell.Options{
		Helper: sandbox.Self, Toolchains: set, Environ: func() []string {
			return []string{"PATH=" + home + "/.nvm/versions/node/v20.19.2/bin:/usr/bin:/bin"}
		},
	})
	script := fmt.Sprintf("zig; node; cargo; cat %s/.npmrc %s/lib/.env %s/.nvm/versions/node/*/etc/npmrc", other, other, home)
	got := k.run(script).Text
	for part, want := range map[string]bool{"zig 0.15": true, "node 20 with npm": true, "cargo of": false, "secret": false} {
		if strings.Contains(got, part) != want {
			t.Errorf("%q: want it: %t, got %s", part, want, got)
		}
	}
	var names []string
	for _, one := range set.Found {
		names = append(names, one.Name)
	}
	if diff := cmp.Diff([]string{"zig", "nvm"}, names); diff != "" {
		t.Errorf("found (-want +got):\n%s", diff)
	}
}
