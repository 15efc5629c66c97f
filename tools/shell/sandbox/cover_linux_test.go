package sandbox_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/zephbot/zephbot/tools/shell/sandbox"
)

// nested returns a spec whose working directory holds denied paths: the directory data, the file zephbot.toml, and
// deep/er/key two directories down.
func nested(t *testing.T) sandbox.Spec {
	t.Helper()
	spec := confined(t)
	write(t, filepath.Join(spec.Dir, "data", "secret"), "s3cret")
	write(t, filepath.Join(spec.Dir, "data", "sub", "secret"), "s3cret")
	write(t, filepath.Join(spec.Dir, "zephbot.toml"), "s3cret")
	write(t, filepath.Join(spec.Dir, "deep", "er", "key"), "s3cret")
	write(t, filepath.Join(spec.Dir, "notes"), "n")
	for name, target := range map[string]string{"way": "data/secret", "dirway": "data", "config": "zephbot.toml"} {
		if err := os.Symlink(target, filepath.Join(spec.Dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	spec.Deny = []string{
		filepath.Join(spec.Dir, "data"), filepath.Join(spec.Dir, "data", "sub"), filepath.Join(spec.Dir, "data", "not", "there"),
		filepath.Join(spec.Dir, "zephbot.toml"), filepath.Join(spec.Dir, "deep", "er", "key"),
	}
	return spec
}

// intact wants the denied files of nested as they were, under their names.
func intact(t *testing.T, dir string) {
	t.Helper()
	for _, f := range []string{"data/secret", "data/sub/secret", "zephbot.toml", "deep/er/key"} {
		if raw, err := os.ReadFile(filepath.Join(dir, f)); err != nil || string(raw) != "s3cret" {
			t.Errorf("afterwards %s holds %q, %v", f, raw, err)
		}
	}
	names, err := os.ReadDir(filepath.Join(dir, "data"))
	if err != nil || len(names) != 2 {
		t.Errorf("afterwards data holds %v, %v", names, err)
	}
}

// needCovers skips where the kernel lets nobody mount: a container without CAP_SYS_ADMIN and without user namespaces,
// root or not.
func needCovers(t *testing.T) {
	t.Helper()
	needLandlock(t)
	spec := nested(t)
	if got := run(t, spec, `touch x`); got.status.Code == 0 && got.status.Err == nil {
		return
	}
	t.Skip("neither root's mounts nor user namespaces on this machine: denied paths cannot be covered")
}

func TestCovered(t *testing.T) {
	t.Parallel()
	needCovers(t)
	tests := []struct {
		name    string
		text    string
		allowed bool
	}{
		{name: "list", text: `[ "$(echo *)" = "config data deep dirway notes way zephbot.toml" ] && ls -la >/dev/null`, allowed: true},
		{name: "work beside", text: `touch x && mv notes n2 && mkdir d && echo y > d/y && rm -r d && cat n2 && echo z > deep/z && echo z > deep/er/z && ln deep/er/z deep/er/y`, allowed: true},
		{name: "own namespace", text: `touch y && [ "$(id -u)" = "$WHO" ] && [ "$(stat -c %u y)" = "$WHO" ]`, allowed: true},
		{name: "read", text: `cat data/secret`},
		{name: "read below", text: `cat data/sub/secret`},
		{name: "read file", text: `cat zephbot.toml`},
		{name: "read deep", text: `cat deep/er/key`},
		{name: "read through links", text: `cat way || cat dirway/secret || cat config`},
		{name: "list denied", text: `ls -A data data/. data/.. | grep -x -e secret -e sub`},
		{name: "find", text: `grep -r s3cret .`},
		{name: "copy", text: `cp zephbot.toml c || cp -r data/secret d || cp -r data d && cat d/secret`},
		{name: "hard link", text: `ln zephbot.toml l && cat l`},
		{name: "write", text: `echo x > zephbot.toml || echo x >> zephbot.toml || echo x > deep/er/key`},
		{name: "create below", text: `touch data/new || mkdir data/d || ln -s /etc data/l || echo x > data/secret`},
		{name: "rename", text: `mv data data2 || mv zephbot.toml z || mv -T notes zephbot.toml || mv deep/er/key k`},
		{name: "rename above", text: `mv deep deep2 || mv deep/er deep/er2 || mv deep/er er`},
		{name: "remove", text: `rm -f zephbot.toml || rmdir data || rm -rf data || rm -rf deep`},
		{name: "replace", text: `ln -sfn /etc data/x || ln -sfT /etc/passwd zephbot.toml || mv -f notes zephbot.toml`},
		{name: "modes", text: `chmod 777 data || chmod 666 zephbot.toml`},
		{name: "uncover", text: `umount data || umount -l data || umount zephbot.toml || mount --bind / data || mount -o remount,rw data`},
		{name: "new namespace", text: `unshare -m true || unshare -Ur true || nsenter -t $PPID -m true`},
		{name: "around", text: `cat /proc/$PPID/root/"$PWD"/zephbot.toml || cat /proc/1/root/"$PWD"/zephbot.toml || cat /proc/self/mountinfo`},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			spec := nested(t)
			spec.Read = append(spec.Read, filepath.Join(spec.Dir, "data")) // another grant does not bring it back
			spec.Env = []string{"PATH=/usr/bin:/bin:/usr/sbin:/sbin", "LC_ALL=C", "WHO=" + strconv.Itoa(os.Getuid())}
			got := run(t, spec, tc.text)
			if got.status.Err != nil || (got.status.Code == 0) != tc.allowed || strings.Contains(got.out, "s3cret") {
				t.Errorf("%+v, want success %t\n%s", got.status, tc.allowed, got.out)
			}
			intact(t, spec.Dir)
		})
	}
}

// TestCoveredRights: what makes the covers is not left to the command.
func TestCoveredRights(t *testing.T) {
	t.Parallel()
	needCovers(t)
	if _, err := exec.LookPath("perl"); err != nil {
		t.Skip("no perl on this machine to make system calls with")
	}
	// capget of version 3: the effective, permitted and inheritable halves. CAP_SYS_ADMIN is bit 21.
	got := run(t, nested(t), `perl -e '
		my $h = pack("Ll", 0x20080522, 0); my $d = "\0" x 24;
		syscall(`+strconv.Itoa(unix.SYS_CAPGET)+`, $h, $d) == 0 or die $!;
		my @c = unpack("L6", $d); print((($c[0] | $c[1] | $c[2]) >> 21 & 1) ? "has" : "none")'`)
	if got.status.Err != nil || got.out != "none" {
		t.Errorf("CAP_SYS_ADMIN: %q %+v", got.out, got.status)
	}
}

// TestCarved: a denied path that cannot be covered, because something inside it is granted or because it is not there,
// is taken out of the grant: the directory above can be listed, not changed.
func TestCarved(t *testing.T) {
	t.Parallel()
	needLandlock(t)
	for name, change := range map[string]func(*sandbox.Spec){
		"a grant inside": func(s *sandbox.Spec) {
			s.Write = append(s.Write, filepath.Join(s.Dir, "data", "sub"))
			s.Deny = s.Deny[:1]
		},
		"the working directory inside": func(s *sandbox.Spec) {
			s.Deny = s.Deny[:1]
			s.Dir = filepath.Join(s.Dir, "data", "sub")
		},
		"a link":    func(s *sandbox.Spec) { s.Deny = append(s.Deny, filepath.Join(s.Dir, "config")) },
		"not there": func(s *sandbox.Spec) { s.Deny = append(s.Deny, filepath.Join(s.Dir, "later.toml")) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec := nested(t)
			dir := spec.Dir
			change(&spec)
			spec.Env = []string{"PATH=/usr/bin:/bin", "WS=" + dir}
			if got := run(t, spec, `ls "$WS" && cat "$WS/notes" && ls "$WS/deep"`); got.status.Err != nil || got.status.Code != 0 || !strings.Contains(got.out, "zephbot.toml\n") {
				t.Errorf("list: %+v\n%s", got.status, got.out)
			}
			for _, text := range []string{`cat "$WS/data/secret"`, `touch "$WS/x"`, `mv "$WS/data" "$WS/data2"`, `echo x > "$WS/later.toml"`, `rm -f "$WS/config"`, `mv "$WS/notes" "$WS/config"`, `echo x > "$WS/data/new"`} {
				if got := run(t, spec, text); got.status.Err != nil || got.status.Code == 0 || strings.Contains(got.out, "s3cret") {
					t.Errorf("%s: %+v, want a failure\n%s", text, got.status, got.out)
				}
			}
			intact(t, dir)
		})
	}
	spec := nested(t)
	spec.Write, spec.Deny = append(spec.Write, filepath.Join(spec.Dir, "data", "sub")), spec.Deny[:1]
	if got := run(t, spec, `cat data/sub/secret && touch data/sub/x`); got.status.Err != nil || got.status.Code != 0 {
		t.Errorf("a grant inside a denied directory: %+v\n%s", got.status, got.out)
	}
}

// TestCoveredUnprivileged runs the tests above once more as nobody, where user namespaces make the covers.
func TestCoveredUnprivileged(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("not root: the other tests are the unprivileged ones already")
	}
	needLandlock(t)
	dir, err := os.MkdirTemp("", "covered-") //nolint:usetesting // nobody may not enter the directories of t.TempDir
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	const nobody = 65534
	if err := os.Chown(dir, nobody, nobody); err != nil {
		t.Skipf("no other users here: %v", err)
	}
	asNobody := func(run string) ([]byte, error) {
		cmd := exec.CommandContext(t.Context(), sandbox.Self, "-test.run="+run, "-test.v")
		cmd.Dir, cmd.Env = dir, []string{"PATH=/usr/bin:/bin", "TMPDIR=" + dir, "HOME=" + dir, "GORACE=atexit_sleep_ms=0"}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		return cmd.CombinedOutput()
	}
	if out, err := asNobody("^$"); err != nil {
		t.Skipf("nobody cannot run this test: %v\n%s", err, out)
	}
	out, err := asNobody("^(TestCovered|TestCoveredRights|TestCarved)$")
	if err != nil {
		t.Fatalf("as nobody: %v\n%s", err, out)
	}
	if strings.Contains(string(out), "--- SKIP: TestCovered ") {
		t.Skipf("as nobody: no user namespaces\n%s", out)
	}
	if !strings.Contains(string(out), "--- PASS: TestCovered ") {
		t.Errorf("as nobody nothing ran:\n%s", out)
	}
}
