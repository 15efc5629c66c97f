package toolchain_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/tools/shell/toolchain"
)

// lay makes empty files below a directory.
func lay(t *testing.T, files ...string) string {
	t.Helper()
	home := t.TempDir()
	for _, name := range files {
		file := filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return home
}

// TestFind has the layout of each installer: what is granted, and which directory of programs comes into PATH.
func TestFind(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		files, read, bins []string
		env               map[string]string
	}{
		"nothing": {[]string{".bashrc", ".npmrc"}, nil, nil, nil},
		"rustup and cargo": {
			[]string{".rustup/toolchains/stable/bin/rustc", ".rustup/settings.toml", ".cargo/bin/cargo", ".cargo/registry/cache/x/y.crate", ".cargo/credentials", ".cargo/credentials.toml"},
			[]string{".cargo/bin", ".cargo/registry", ".rustup/settings.toml", ".rustup/toolchains"},
			[]string{".cargo/bin"},
			map[string]string{"CARGO_HOME": ".cargo", "RUSTUP_HOME": ".rustup"},
		},
		"cargo that has no packages yet": {
			[]string{".cargo/bin/cargo"}, []string{".cargo/bin"}, []string{".cargo/bin"}, map[string]string{},
		},
		"newest node of nvm": {
			[]string{".nvm/versions/node/v9.9.0/bin/node", ".nvm/versions/node/v20.1.0/bin/node", ".nvm/versions/node/v20.1.0/etc/npmrc"},
			[]string{".nvm/versions/node/v20.1.0/bin", ".nvm/versions/node/v9.9.0/bin"},
			[]string{".nvm/versions/node/v20.1.0/bin"},
			map[string]string{"NVM_DIR": ".nvm"},
		},
		"default node of fnm": {
			[]string{".local/share/fnm/node-versions/v22.1.0/installation/bin/node", ".local/share/fnm/aliases/default/bin/node"},
			[]string{".local/share/fnm/node-versions/v22.1.0/installation/bin"},
			[]string{".local/share/fnm/aliases/default/bin"},
			map[string]string{},
		},
		"volta": {
			[]string{".volta/bin/node", ".volta/tools/image/node/20.1.0/bin/node", ".volta/layout.v4", ".volta/hooks.json"},
			[]string{".volta/bin", ".volta/layout.v4", ".volta/tools/image"},
			[]string{".volta/bin"},
			map[string]string{"VOLTA_HOME": ".volta"},
		},
		"bun and deno": {
			[]string{".bun/bin/bun", ".bun/install/cache/x", ".deno/bin/deno"},
			[]string{".bun/bin", ".deno/bin"},
			[]string{".bun/bin", ".deno/bin"},
			map[string]string{},
		},
		"pyenv with a virtual environment": {
			[]string{".pyenv/versions/3.12.1/bin/python", ".pyenv/versions/work/pyvenv.cfg", ".pyenv/shims/python", ".pyenv/version", ".pyenv/versions/3.12.1/pip.conf"},
			[]string{".pyenv/shims", ".pyenv/version", ".pyenv/versions/3.12.1/bin", ".pyenv/versions/work/pyvenv.cfg"},
			[]string{".pyenv/shims"},
			map[string]string{"PYENV_ROOT": ".pyenv"},
		},
		"uv": {
			[]string{".local/share/uv/python/cpython-3.13/bin/python3.13", ".local/bin/uv", ".local/bin/mine", ".local/share/uv/credentials/x"},
			[]string{".local/bin/uv", ".local/share/uv/python/cpython-3.13/bin"},
			[]string{".local/bin"},
			map[string]string{"UV_PYTHON_INSTALL_DIR": ".local/share/uv/python"},
		},
		"mise": {
			[]string{".local/share/mise/installs/node/latest/bin/node", ".local/share/mise/installs/go/latest/bin/go"},
			[]string{".local/share/mise/installs"},
			[]string{".local/share/mise/installs/go/latest/bin", ".local/share/mise/installs/node/latest/bin"},
			map[string]string{},
		},
		"go unpacked at home": {
			[]string{"go/bin/go", "go/pkg/tool/compile", "go/src/fmt/print.go", "go/VERSION"},
			[]string{"go/VERSION", "go/bin", "go/pkg", "go/src"},
			[]string{"go/bin"},
			map[string]string{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			home := lay(t, tc.files...)
			set := toolchain.Find(home, []string{"CARGO_HOME=relative"})
			short := func(paths []string) (list []string) {
				for _, p := range paths {
					rel, err := filepath.Rel(home, p)
					if err != nil {
						t.Fatal(err)
					}
					list = append(list, rel)
				}
				return list
			}
			var bins []string
			for _, one := range set.Found {
				bins = append(bins, one.Bins...)
			}
			if diff := cmp.Diff(tc.read, short(set.Read)); diff != "" {
				t.Errorf("granted (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.bins, short(bins)); diff != "" {
				t.Errorf("in PATH (-want +got):\n%s", diff)
			}
			env := map[string]string(nil)
			if set.Env != nil {
				env = map[string]string{}
			}
			for name, value := range set.Env {
				env[name] = short([]string{value})[0]
			}
			if diff := cmp.Diff(tc.env, env); diff != "" {
				t.Errorf("variables (-want +got):\n%s", diff)
			}
		})
	}
}

// TestFindElsewhere: a variable of the environment says where a toolchain is.
func TestFindElsewhere(t *testing.T) {
	t.Parallel()
	home, elsewhere := lay(t, ".cargo/bin/cargo"), lay(t, "bin/cargo")
	set := toolchain.Find(home, []string{"CARGO_HOME=" + elsewhere})
	if len(set.Found) != 1 || set.Found[0].Dir != elsewhere {
		t.Errorf("found %+v", set.Found)
	}
	if set := toolchain.Find("", nil); len(set.Found) > 0 {
		t.Errorf("without a home directory: %+v", set.Found)
	}
}

// TestCargoSettings: settings of cargo that hold a token are not granted, and cargo gets no home that has them.
func TestCargoSettings(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"[build]\njobs = 2\n": true, "[registries.mine]\n# token = \"x\"\n": true,
		"[registries.mine]\ntoken = \"x\"\n": false, "registries.mine.token=\"x\"\n": false,
	} {
		home := lay(t, ".cargo/bin/cargo", ".cargo/registry/cache/x")
		settings := filepath.Join(home, ".cargo", "config.toml")
		if err := os.WriteFile(settings, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		set := toolchain.Find(home, nil)
		if got := slices.Contains(set.Read, settings); got != want || set.Env["CARGO_HOME"] != "" != want {
			t.Errorf("%q: granted: %t, CARGO_HOME=%q", text, got, set.Env["CARGO_HOME"])
		}
	}
}

// TestDefaultVersion: nvm's alias names the version whose programs come into PATH; one that nobody has installed is the
// newest.
func TestDefaultVersion(t *testing.T) {
	t.Parallel()
	for alias, want := range map[string]string{
		"20": "v20.19.2", "v20.1": "v20.1.0", "20.19.2\n": "v20.19.2", "2": "v22.1.0", "lts/*": "v22.1.0", "node": "v22.1.0",
	} {
		home := lay(t, ".nvm/versions/node/v20.1.0/bin/node", ".nvm/versions/node/v20.19.2/bin/node",
			".nvm/versions/node/v22.1.0/bin/node", ".nvm/alias/default")
		if err := os.WriteFile(filepath.Join(home, ".nvm", "alias", "default"), []byte(alias), 0o600); err != nil {
			t.Fatal(err)
		}
		set := toolchain.Find(home, nil)
		if diff := cmp.Diff([]string{filepath.Join(home, ".nvm/versions/node", want, "bin")}, set.Found[0].Bins); diff != "" {
			t.Errorf("%q (-want +got):\n%s", alias, diff)
		}
	}
}

// TestPath appends to PATH what it does not have.
func TestPath(t *testing.T) {
	t.Parallel()
	set := toolchain.Set{Found: []toolchain.Toolchain{{Bins: []string{"/a/bin", "/usr/bin"}}, {}, {Bins: []string{"/b"}}}}
	if got := set.Path("/usr/bin:/bin"); got != "/usr/bin:/bin:/a/bin:/b" {
		t.Errorf("got %s", got)
	}
}
