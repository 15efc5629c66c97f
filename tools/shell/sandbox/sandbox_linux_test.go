package sandbox_test

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zephbot/zephbot/policy/reason"
	"github.com/zephbot/zephbot/tools/shell/sandbox"
)

// result is what a run printed and how it ended.
type result struct {
	out    string
	status sandbox.Status
}

// run runs bash text as spec says; the rest of the spec is filled where it is empty.
func run(t *testing.T, spec sandbox.Spec, text string) result {
	t.Helper()
	_, _, wait := start(t, spec, text)
	return wait()
}

// start is run without waiting. The channel is closed when the text has printed the line "ready", or nothing more
// comes.
func start(t *testing.T, spec sandbox.Spec, text string) (*sandbox.Process, <-chan struct{}, func() result) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash on this machine")
	}
	spec.Argv = []string{bash, "--noprofile", "--norc", "-c", text}
	if spec.Dir == "" {
		spec.Dir = "/"
	}
	if spec.Env == nil {
		spec.Env = []string{"PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8"}
	}
	p, err := sandbox.Start(t.Context(), spec, w, w)
	if err != nil {
		t.Fatalf("Start: %v", err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	var reader sync.WaitGroup
	ready := make(chan struct{})
	reader.Go(func() {
		told := sync.OnceFunc(func() { close(ready) })
		defer told()
		for lines := bufio.NewReader(r); ; {
			line, err := lines.ReadString('\n')
			out.WriteString(line)
			if line == "ready\n" {
				told()
			}
			if err != nil {
				return
			}
		}
	})
	t.Cleanup(func() {
		p.Stop()
		<-p.Done()
		_ = r.Close()
		reader.Wait()
	})
	return p, ready, func() result {
		<-p.Done()
		reader.Wait()
		return result{out: out.String(), status: p.Status()}
	}
}

// needLandlock skips where the kernel has no Landlock; it fails instead where it must be there.
func needLandlock(t *testing.T) sandbox.Level {
	t.Helper()
	level := sandbox.Probe(t.Context(), sandbox.Self)
	if level.Full() {
		return level
	}
	lsm, err := os.ReadFile("/sys/kernel/security/lsm")
	if os.Getenv("ZEPH_CI") == "1" && err == nil && strings.Contains(string(lsm), "landlock") {
		t.Fatalf("Landlock is enabled on this machine, but the probe says: %s", level)
	}
	t.Skipf("no full sandbox on this machine: %s", level)
	return level
}

// confined returns a spec with a workspace.
func confined(t *testing.T) sandbox.Spec {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return sandbox.Spec{Helper: sandbox.Self, Dir: dir, Write: []string{dir}, Require: true}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestProbe(t *testing.T) {
	t.Parallel()
	level := needLandlock(t)
	if s := level.String(); !strings.HasPrefix(s, "commands are confined ") || strings.HasPrefix(s, "commands are confined completely; ") != (level.Lacks() == nil) || !strings.Contains(s, "kernel sandbox: Landlock ABI ") || !strings.Contains(s, " + seccomp") {
		t.Errorf("String() = %q", s)
	}
	if l := sandbox.Probe(t.Context(), ""); l.Full() || !l.Reason.Known() {
		t.Errorf("without a helper Probe = %+v, want nothing and a reason", l)
	}
	if l := sandbox.Probe(t.Context(), "/nonexistent/zephbot"); l.Full() || !l.Reason.Known() {
		t.Errorf("with a helper that is not there Probe = %+v, want nothing and a reason", l)
	}
	if got, want := (sandbox.Level{Reason: reason.Plain("why")}).String(), "kernel sandbox: none (why)"; got != want {
		t.Errorf("String() = %q, want %q", got, want)
	}
}

// TestReach has every attempt in the sandbox and outside: outside it must succeed, otherwise the test proves nothing.
func TestReach(t *testing.T) {
	t.Parallel()
	needLandlock(t)
	tests := []struct {
		name    string
		text    string // $SECRET is outside the workspace
		allowed bool
		bare    bool // do not require that it succeeds outside
	}{
		{name: "workspace write", text: `echo hi > new && mkdir -p a/b && mv new a/b/ && cat a/b/new && rm -r a`, allowed: true},
		{name: "system programs", text: `ls /usr/bin >/dev/null && cat /etc/passwd >/dev/null && sort </dev/null`, allowed: true},
		{name: "process substitution", text: `cat <(echo hi) | grep hi`, allowed: true},
		{name: "hard link inside", text: `echo hi > x && mkdir -p d && ln x d/y && cat d/y`, allowed: true},
		{name: "read outside", text: `cat "$SECRET/config.toml"`},
		{name: "read after cd", text: `cd "$SECRET" && cat config.toml`},
		{name: "list outside", text: `ls "$SECRET"/`},
		{name: "write outside", text: `echo x > "$SECRET/new"`},
		{name: "truncate outside", text: `: > "$SECRET/config.toml"`},
		{name: "remove outside", text: `rm "$SECRET/config.toml"`},
		{name: "symlink escape", text: `ln -s "$SECRET/config.toml" link && cat link`},
		{name: "symlinked directory", text: `ln -s "$SECRET" dir && cat dir/config.toml`},
		{name: "hard link escape", text: `ln "$SECRET/config.toml" hard && cat hard`, bare: true},
		{name: "execute outside", text: `"$SECRET/tool"`},
		{name: "denied inside an allowed path", text: `cat "$ALLOWED/private/key"`},
		{name: "beside the denied", text: `cat "$ALLOWED/notes"`, allowed: true},
		{name: "beside the denied, deeper", text: `cat "$ALLOWED/pub/x"; echo y > "$ALLOWED/pub/y"`, allowed: true},
		{name: "denied through a link", text: `cat "$ALLOWED/way"`},
		{name: "other processes", text: `cat /proc/$PPID/environ | wc -c; cat /proc/$PPID/environ >/dev/null`, bare: true},
		{name: "shadow", text: `cat /etc/shadow`, bare: true},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			attempt := func(off bool) result {
				spec := confined(t)
				secret, allowed := t.TempDir(), t.TempDir()
				write(t, filepath.Join(secret, "config.toml"), "token")
				write(t, filepath.Join(allowed, "notes"), "n")
				write(t, filepath.Join(allowed, "pub", "x"), "x")
				write(t, filepath.Join(allowed, "private", "key"), "k")
				if err := os.Symlink(filepath.Join(allowed, "private", "key"), filepath.Join(allowed, "way")); err != nil {
					t.Fatal(err)
				}
				write(t, filepath.Join(secret, "tool"), "#!/bin/sh\nexit 0\n")
				if err := os.Chmod(filepath.Join(secret, "tool"), 0o755); err != nil {
					t.Fatal(err)
				}
				spec.Write = append(spec.Write, allowed)
				spec.Deny = []string{filepath.Join(allowed, "private"), filepath.Join(allowed, "private", "not", "there")}
				spec.Env = []string{"PATH=/usr/bin:/bin", "SECRET=" + secret, "ALLOWED=" + allowed}
				spec.Off, spec.Require = off, !off
				return run(t, spec, tc.text)
			}
			if got := attempt(false); got.status.Err != nil || (got.status.Code == 0) != tc.allowed {
				t.Errorf("in the sandbox: %+v, want success %t\n%s", got.status, tc.allowed, got.out)
			}
			if tc.bare {
				return
			}
			if got := attempt(true); got.status.Err != nil || got.status.Code != 0 {
				t.Errorf("outside the sandbox it should work: %+v\n%s", got.status, got.out)
			}
		})
	}
}

func TestNetwork(t *testing.T) {
	t.Parallel()
	needLandlock(t)
	ln, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // a listener of a test
	if err != nil {
		t.Skipf("no loopback: %v", err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	_, port, err := net.SplitHostPort(ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	for _, proto := range []string{"tcp", "udp"} {
		for _, on := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s network %t", proto, on), func(t *testing.T) {
				t.Parallel()
				spec := confined(t)
				if on {
					spec.Network = sandbox.NetworkAll
				}
				got := run(t, spec, fmt.Sprintf(`exec 9<>/dev/%s/127.0.0.1/%s`, proto, port))
				if got.status.Err != nil || (got.status.Code == 0) != on {
					t.Errorf("connect: %+v, want success %t\n%s", got.status, on, got.out)
				}
			})
		}
	}
}

// TestCalls needs perl to make system calls by number; every machine with git has it.
func TestCalls(t *testing.T) {
	t.Parallel()
	needLandlock(t)
	if _, err := exec.LookPath("perl"); err != nil {
		t.Skip("no perl on this machine to make system calls with")
	}
	for _, c := range calls() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			spec := confined(t)
			spec.Network = sandbox.NetworkAll
			got := run(t, spec, fmt.Sprintf(`perl -e '$r = syscall(%s); print $r < 0 ? $!+0 : "ok"'`, c.args))
			if got.status.Err != nil || got.out != c.want {
				t.Errorf("%s: %q %+v, want %s", c.name, got.out, got.status, c.want)
			}
		})
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	t.Run("file size", func(t *testing.T) {
		t.Parallel()
		spec := confined(t)
		spec.Require = false
		spec.Limits.FileSize = 1 << 20
		got := run(t, spec, `head -c 3000000 /dev/zero > big; echo "code $?"`)
		info, err := os.Stat(filepath.Join(spec.Dir, "big"))
		if err != nil || info.Size() > 1<<20 {
			t.Errorf("the file: %v %v, want at most 1 MiB", info, err)
		}
		if strings.Contains(got.out, "code 0") {
			t.Errorf("output %q, want a failure", got.out)
		}
	})
	t.Run("open files", func(t *testing.T) {
		t.Parallel()
		spec := confined(t)
		spec.Require = false
		spec.Limits.Files = 77
		if got := run(t, spec, `ulimit -n; ulimit -c`); got.out != "77\n0\n" {
			t.Errorf("limits %q", got.out)
		}
	})
	t.Run("processor time", func(t *testing.T) {
		t.Parallel()
		spec := confined(t)
		spec.Require = false
		spec.Limits.CPU = time.Second
		if got := run(t, spec, `while :; do :; done`); got.status.Signal == "" {
			t.Errorf("an endless loop ended with %+v, want a signal", got.status)
		}
	})
	t.Run("processes", func(t *testing.T) {
		t.Parallel()
		spec := confined(t)
		spec.Require = false
		spec.Limits.Procs = 10
		got := run(t, spec, `for i in $(seq 40); do sleep 600 & done; wait`)
		if got.status.Hit != sandbox.LimitProcs || got.status.Stuck {
			t.Errorf("40 processes ended with %+v, want the limit of processes", got.status)
		}
	})
}

func TestRequired(t *testing.T) {
	t.Parallel()
	if _, err := sandbox.Start(t.Context(), sandbox.Spec{Argv: []string{"/bin/true"}, Require: true}, nil, nil); err == nil {
		t.Error("a required sandbox without a helper started")
	}
}

// TestTree ends runs that try to leave something behind.
func TestTree(t *testing.T) {
	t.Parallel()
	for _, helper := range []string{sandbox.Self, ""} {
		tests := []struct {
			name   string
			text   string // prints "ready" when it leaves something behind
			helped bool   // only a helper finds it
		}{
			{name: "child in the group", text: `sleep 600 & echo ready; wait`},
			{name: "ignores TERM", text: `trap "" TERM; sleep 600 & echo ready; while :; do wait; done`},
			{name: "own session, parent gone", text: `setsid -f bash -c 'echo $$; echo ready; exec sleep 600'; sleep 600`, helped: true},
			{name: "child of its own session", text: `setsid sleep 600 & echo ready; wait`},
		}
		for _, tc := range tests {
			if tc.helped && helper == "" {
				continue
			}
			t.Run(tc.name+" helper "+helper, func(t *testing.T) {
				t.Parallel()
				spec := sandbox.Spec{Helper: helper, Off: true, Dir: t.TempDir(), Env: []string{"PATH=/usr/bin:/bin"}, Grace: time.Millisecond}
				p, ready, wait := start(t, spec, tc.text)
				<-ready
				p.Stop()
				p.Stop()      // may come twice
				got := wait() // the reader ends only when nobody holds the pipe any more
				if got.status.Signal == "" || got.status.Stuck || got.status.Err != nil {
					t.Errorf("status %+v, want a signal", got.status)
				}
			})
		}
	}
}

func TestLeftBehind(t *testing.T) {
	t.Parallel()
	spec := sandbox.Spec{Helper: sandbox.Self, Off: true, Dir: t.TempDir(), Linger: -1}
	got := run(t, spec, `setsid -f sleep 600; (sleep 600 &); echo done; exit 3`)
	if got.status.Code != 3 || got.status.Left < 1 || got.status.Stuck || got.out != "done\n" {
		t.Errorf("%+v %q, want code 3 and something left behind", got.status, got.out)
	}
	spec.Linger = time.Hour
	got = run(t, spec, `echo late > >(read x; echo "$x")`)
	if got.status.Code != 0 || got.status.Left != 0 || got.out != "late\n" {
		t.Errorf("%+v %q, want the output of a process substitution", got.status, got.out)
	}
	spec.Helper = ""
	got = run(t, spec, `echo late > >(read x; echo "$x")`)
	if got.status.Code != 0 || got.status.Left != 0 || got.out != "late\n" {
		t.Errorf("plain: %+v %q, want the output of a process substitution", got.status, got.out)
	}
	spec.Linger = -1
	got = run(t, spec, `sleep 600 & exit 4`)
	if got.status.Code != 4 || got.status.Left == 0 {
		t.Errorf("plain: %+v, want code 4 and something left behind", got.status)
	}
}

func TestEnds(t *testing.T) {
	t.Parallel()
	for _, helper := range []string{sandbox.Self, ""} {
		spec := sandbox.Spec{Helper: helper, Off: true, Dir: t.TempDir(), Env: []string{"PATH=/usr/bin:/bin", "A=b c"}}
		if got := run(t, spec, `echo "$A"; pwd; cat; exit 7`); !reflect.DeepEqual(got.status, sandbox.Status{Code: 7}) || got.out != "b c\n"+spec.Dir+"\n" {
			t.Errorf("helper %q: %+v %q", helper, got.status, got.out)
		}
		if got := run(t, spec, `kill -9 $$`); !reflect.DeepEqual(got.status, sandbox.Status{Signal: "killed"}) {
			t.Errorf("helper %q: %+v, want killed", helper, got.status)
		}
		spec.Dir = filepath.Join(spec.Dir, "none")
		spec.Argv = []string{"/bin/true"}
		p, err := sandbox.Start(t.Context(), spec, os.Stdout, os.Stderr)
		if err == nil {
			<-p.Done()
			err = p.Status().Err
		}
		if err == nil {
			t.Errorf("helper %q: a directory that is not there gave no error", helper)
		}
	}
}

// TestHelperKilled: a command without Landlock may kill its helper; the run ends all the same, with all that it left
// behind, and says so.
func TestHelperKilled(t *testing.T) {
	t.Parallel()
	bot := exec.CommandContext(t.Context(), sandbox.Self, "-test.run=^TestBeBot$")
	bot.Dir = t.TempDir()
	text := `setsid -f sleep 600; (setsid bash -c "trap '' TERM; sleep 600" &); kill -9 $PPID; sleep 600`
	bot.Env = []string{"PATH=/usr/bin:/bin", "TMPDIR=" + bot.Dir, beBot + "=" + text, beOff + "=1", "GORACE=atexit_sleep_ms=0"}
	if out, err := bot.CombinedOutput(); err != nil { // ends when nobody holds the output any more
		t.Errorf("%v\n%s", err, out)
	}
}

// TestHelperShielded: in the sandbox the command cannot signal its helper.
func TestHelperShielded(t *testing.T) {
	t.Parallel()
	if level := needLandlock(t); level.Landlock < 6 {
		t.Skip("this Landlock does not scope signals")
	}
	got := run(t, confined(t), `kill -9 $PPID && echo killed; exit 5`)
	if got.status.Err != nil || got.status.Code != 5 || strings.Contains(got.out, "killed\n") {
		t.Errorf("%+v %q, want a refusal", got.status, got.out)
	}
}

func BenchmarkStart(b *testing.B) {
	null, err := os.OpenFile("/dev/null", os.O_RDWR, 0)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = null.Close() }()
	dir := b.TempDir()
	for _, bc := range []struct {
		name string
		spec sandbox.Spec
	}{
		{"plain", sandbox.Spec{}},
		{"supervised", sandbox.Spec{Helper: sandbox.Self, Off: true}},
		{"sandboxed", sandbox.Spec{Helper: sandbox.Self, Write: []string{dir}}},
		{"reading", sandbox.Spec{Helper: sandbox.Self, Write: []string{dir}, Reading: true}},
	} {
		b.Run(bc.name, func(b *testing.B) {
			bc.spec.Argv, bc.spec.Dir = []string{"/bin/true"}, dir
			for b.Loop() {
				p, err := sandbox.Start(b.Context(), bc.spec, null, null)
				if err != nil {
					b.Fatal(err)
				}
				<-p.Done()
			}
		})
	}
}
