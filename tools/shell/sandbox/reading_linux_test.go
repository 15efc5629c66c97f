package sandbox_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/zephbot/zephbot/tools/shell/sandbox"
)

// eachReadingLevel runs a test at every level that this machine can give a reading command.
func eachReadingLevel(t *testing.T, test func(t *testing.T, helper string)) {
	t.Helper()
	for _, m := range sandbox.Masks() {
		t.Run(m.Name, func(t *testing.T) {
			helper := sandbox.Masked(t, sandbox.Self, m)
			if level := sandbox.Probe(t.Context(), helper); !level.Reading() {
				t.Skipf("this machine cannot do that: %s", level)
			}
			test(t, helper)
		})
	}
}

// reading returns the spec of a reading command with a workspace.
func reading(t *testing.T, helper string) sandbox.Spec {
	t.Helper()
	spec := confined(t)
	spec.Helper, spec.Reading = helper, true
	return spec
}

// state describes everything below a directory.
func state(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err != nil {
			return err
		}
		st := info.Sys().(*syscall.Stat_t)
		text := ""
		if info.Mode().IsRegular() {
			raw, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			text = string(raw)
		}
		var names [4096]byte
		n, _ := unix.Llistxattr(path, names[:])
		fmt.Fprintf(&b, "%s %s %d:%d %d %d.%d %q %q\n", path, info.Mode(), st.Uid, st.Gid, st.Nlink, st.Mtim.Sec, st.Mtim.Nsec, text, names[:max(n, 0)])
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestAttackReadingChangesNothing: a reading command can change nothing, by whatever call, at every level.
func TestAttackReadingChangesNothing(t *testing.T) {
	needLandlock(t)
	perl, err := exec.LookPath("perl")
	if err != nil {
		t.Skip("no perl on this machine")
	}
	eachReadingLevel(t, func(t *testing.T, helper string) {
		spec := reading(t, helper)
		outside := t.TempDir()
		ws := spec.Dir
		write(t, filepath.Join(ws, "a"), "text\n")
		write(t, filepath.Join(ws, "sub/b"), "text\n")
		write(t, filepath.Join(outside, "c"), "text\n")
		if err := syscall.Mkfifo(filepath.Join(ws, "pipe"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(filepath.Join(outside, "c"), filepath.Join(ws, "link")); err != nil {
			t.Fatal(err)
		}
		before := state(t, ws) + state(t, outside)
		for name, text := range map[string]string{
			"write": `echo x >a`, "append": `echo x >>a`, "create": `: >new`, "through a link": `echo x >>link`,
			"mkdir": `mkdir d`, "rm": `rm -f a`, "rmdir": `rm -rf sub`, "mv": `mv a b`, "into": `mv a sub/a`, "ln": `ln a b`,
			"ln -s": `ln -s a b`, "mkfifo": `mkfifo f`, "mknod": `mknod n p`, "chmod": `chmod 777 a`,
			"chmod pipe": `chmod 777 pipe`, "chmod dir": `chmod 777 . sub`, "chown": `chown 1:1 a`, "chown -h": `chown -h 1:1 link`,
			"touch": `touch -c a`, "touch -h": `touch -hc -d @1 link`, "truncate": `truncate -s 0 a`, "sed -i": `sed -i s/t/u/ a`,
			"sed e": `sed '1e touch pwned' a`, "sed label": `sed -n '/zz/b;1e touch pwned' a`, "sed w": `sed 'w new' a`,
			"awk": `awk 'BEGIN{print "x" >"new"; system("touch new2")}'`, "find": `find . -delete`, "dd": `dd if=/dev/zero of=a count=1`,
			"outside":    `echo x >>` + outside + `/c; chmod 777 ` + outside + `/c ` + outside + `; touch ` + outside + `/c; rm ` + outside + `/c`,
			"unlink":     perl + ` -e 'unlink "a"; rename "a","b"; link "a","b"; symlink "a","b"; mkdir "x"; rmdir "sub"; utime 1,1,"a"; chmod 0777,"a"; chown 1,1,"a"; truncate "a",0'`,
			"xattr":      fmt.Sprintf(perl+` -e 'my ($p,$n,$v)=("a","user.x","y"); syscall(%d,$p,$n,$v,1,0); syscall(%d,$p,$n,$v,1,0); open F,"<","a"; syscall(%d,fileno F,$n,$v,1,0)'`, unix.SYS_SETXATTR, unix.SYS_LSETXATTR, unix.SYS_FSETXATTR),
			"fchmod":     fmt.Sprintf(perl+` -e 'open F,"<","a"; syscall(%d,fileno F,0777); syscall(%d,fileno F,1,1); open D,"<","."; syscall(%d,fileno D,0777)'`, unix.SYS_FCHMOD, unix.SYS_FCHOWN, unix.SYS_FCHMOD),
			"futimens":   fmt.Sprintf(perl+` -e 'open F,"<","a"; my $t=pack("q4",1,0,1,0); syscall(%d,fileno F,0,$t,0)'`, unix.SYS_UTIMENSAT),
			"flags":      perl + ` -e 'open F,"<","a"; my $v=pack("l",0x40); ioctl(F,0x40086602,$v); my $x=pack("L7",0x40,0,0,0,0,0,0); ioctl(F,0x401c5820,$x)'`,
			"proc":       `echo 1 >/proc/sys/kernel/sysrq; echo x >/proc/self/fd/../cwd/a`,
			"device":     `chmod 600 /dev/null; chown 1 /dev/null; touch /dev/null`,
			"background": `(sleep 0.05; echo x >a) & disown`,
		} {
			r := run(t, spec, "{ "+text+"\n} 2>/dev/null; true")
			if after := state(t, ws) + state(t, outside); after != before {
				t.Fatalf("%s changed something:\n%s\n%s\n%s", name, before, after, r.out)
			}
		}
		if info, err := os.Stat("/dev/null"); err != nil || info.Mode().Perm() != 0o666 {
			t.Errorf("/dev/null: %v, %v", info.Mode(), err)
		}
	})
}

// TestAttackReadingPipe: a named pipe in the workspace cannot be written.
func TestAttackReadingPipe(t *testing.T) {
	needLandlock(t)
	eachReadingLevel(t, func(t *testing.T, helper string) {
		spec := reading(t, helper)
		pipe := filepath.Join(spec.Dir, "pipe")
		if err := syscall.Mkfifo(pipe, 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := os.OpenFile(pipe, os.O_RDONLY|syscall.O_NONBLOCK, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.Close() })
		if r := run(t, spec, `echo x >pipe`); r.status.Code == 0 {
			t.Error("it was opened for writing")
		}
		if n, _ := f.Read(make([]byte, 8)); n > 0 {
			t.Error("something came through")
		}
	})
}

// TestAttackReadingReachesNobody: no socket outside can be reached, neither by address, path or name, nor by a pair of
// datagrams; and no process outside can be signalled.
func TestAttackReadingReachesNobody(t *testing.T) {
	needLandlock(t)
	perl, err := exec.LookPath("perl")
	if err != nil {
		t.Skip("no perl on this machine")
	}
	eachReadingLevel(t, func(t *testing.T, helper string) {
		spec := reading(t, helper)
		path := filepath.Join(spec.Dir, "s")
		for _, name := range []string{path, "@zephbot-reading-" + filepath.Base(spec.Dir)} {
			conn, err := (&net.ListenConfig{}).ListenPacket(t.Context(), "unixgram", name)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = conn.Close() })
			perlName := `"` + strings.Replace(name, "@", `\0`, 1) + `"`
			text := `use Socket; socketpair(my $a,my $b,AF_UNIX,SOCK_DGRAM,0) or socket($a,AF_UNIX,SOCK_DGRAM,0) or die "none: $!\n"; send($a,"x",0,pack("Sa*",AF_UNIX,` + perlName + `)) and print "sent\n"`
			r := run(t, spec, perl+` -e '`+text+`' 2>&1`)
			if strings.Contains(r.out, "sent") || r.status.Code == 0 {
				t.Errorf("%s: %s", name, r.out)
			}
		}
		tcp, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = tcp.Close() })
		port := tcp.Addr().(*net.TCPAddr).Port
		r := run(t, spec, fmt.Sprintf(`exec 3<>/dev/tcp/127.0.0.1/%d`, port))
		if r.status.Code == 0 || !r.status.Blind && !slices.ContainsFunc(r.status.Tried, func(a sandbox.Attempt) bool { return a.Verb == sandbox.Connects }) {
			t.Errorf("%d %v: %s", r.status.Code, r.status.Tried, r.out)
		}
		other := exec.CommandContext(t.Context(), "sleep", "60")
		other.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		if err := other.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- other.Wait() }()
		run(t, spec, fmt.Sprintf(`kill -9 %d; kill -9 -- -%d; kill -9 -1; %s -e 'kill 9,%d'`, other.Process.Pid, other.Process.Pid, perl, other.Process.Pid))
		select {
		case err := <-ended:
			t.Errorf("it was killed: %v", err)
		default:
		}
		_ = other.Process.Kill()
		if err := <-ended; err == nil {
			t.Error("it had ended")
		}
	})
}

// TestReadingTells: what a command tried is told with its path; what every command may write is not.
func TestReadingTells(t *testing.T) {
	needLandlock(t)
	eachReadingLevel(t, func(t *testing.T, helper string) {
		spec := reading(t, helper)
		write(t, filepath.Join(spec.Dir, "a"), "text\n")
		for text, want := range map[string]string{
			`cat a >/dev/null 2>&1`:             "",
			`cd /; echo x >$OLDPWD/Makefile`:    "write Makefile",
			`mkdir -p sub/x`:                    "create sub",
			`rm -f a`:                           "delete a",
			`mv a b`:                            "move a",
			`chmod +x a`:                        "alter a",
			`touch a`:                           "write a alter a",
			`ln -s a c`:                         "create c",
			`for i in 1 2 3; do echo >>a; done`: "write a",
		} {
			r := run(t, spec, text)
			if r.status.Blind {
				t.Skip("the kernel does not tell")
			}
			got := ""
			for _, a := range r.status.Tried {
				rel, err := filepath.Rel(spec.Dir, a.Path)
				if err != nil {
					t.Fatal(err)
				}
				got += " " + string(a.Verb) + " " + rel
			}
			if got = strings.TrimSpace(got); got != want && (want == "" || !strings.HasPrefix(got, want)) {
				t.Errorf("%q tried %q, want %q; %s", text, got, want, r.out)
			}
		}
	})
}

// TestReadingReads: what reading commands need is there.
func TestReadingReads(t *testing.T) {
	needLandlock(t)
	eachReadingLevel(t, func(t *testing.T, helper string) {
		spec := reading(t, helper)
		write(t, filepath.Join(spec.Dir, "sub/a"), "b\na\n")
		write(t, filepath.Join(spec.Dir, "hidden"), "secret\n")
		spec.Deny = []string{filepath.Join(spec.Dir, "hidden")}
		for text, want := range map[string]string{
			`cat sub/a | sort | tr a-z A-Z`: "A\nB\n",
			`sed -n 2p sub/a`:               "a\n",
			`ls`:                            "hidden\nsub\n",
			`cat hidden 2>/dev/null; echo`:  "\n",
			`grep -rl a sub 2>/dev/null`:    "sub/a\n",
			`cat <<<text`:                   "text\n",
			`echo "$(wc -l <sub/a)"`:        "2\n",
			`pwd`:                           spec.Dir + "\n",
		} {
			if r := run(t, spec, text); r.out != want || len(r.status.Tried) > 0 {
				t.Errorf("%q printed %q, want %q; tried %v", text, r.out, want, r.status.Tried)
			}
		}
		level := sandbox.Probe(t.Context(), helper)
		r := run(t, spec, `echo x >$TMPDIR/x && cat $TMPDIR/x && ls -A $HOME | wc -l && head -c 80000000 /dev/zero >$HOME/big; rm -f $TMPDIR/x; ls -A $HOME`)
		if level.Root && !strings.HasPrefix(r.out, "x\n0\n") {
			t.Errorf("its own directory: %q", r.out)
		}
		if len(r.status.Tried) > 0 && level.Root {
			t.Errorf("its own directory is told: %v", r.status.Tried)
		}
		if r := run(t, spec, `ls -A $TMPDIR; ls -A $HOME`); level.Root && r.out != "home\n" {
			t.Errorf("something survived: %q", r.out)
		}
	})
}

// TestReadingNeedsTheKernel: where nothing enforces it, nothing runs.
func TestReadingNeedsTheKernel(t *testing.T) {
	needLandlock(t)
	for name, spec := range map[string]sandbox.Spec{
		"no helper": {Reading: true}, "off": {Reading: true, Off: true, Helper: sandbox.Self},
		"old Landlock": {Reading: true, Helper: sandbox.Masked(t, sandbox.Self, sandbox.Mask{Name: "old", ABI: 2})},
	} {
		spec.Argv, spec.Dir = []string{"/bin/true"}, "/"
		p, err := sandbox.Start(t.Context(), spec, nil, nil)
		if err == nil {
			p.Stop()
			<-p.Done()
			t.Errorf("%s: it ran", name)
		}
	}
}
