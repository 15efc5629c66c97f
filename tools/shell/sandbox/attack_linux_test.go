package sandbox_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zephbot/zephbot/tools/shell/sandbox"
)

// attempt is a hostile program: shell text that succeeds when the attack does.
type attempt struct {
	name string
	text string
	// bare: outside the sandbox it need not succeed, because it lacks the rights or would harm the machine.
	bare bool
}

// attack runs attempts inside the sandbox, where they must fail, and outside, where they must succeed; otherwise they
// would prove nothing.
func attack(t *testing.T, attempts []attempt, spec func(*testing.T) sandbox.Spec) {
	t.Helper()
	needLandlock(t)
	if _, err := exec.LookPath("perl"); err != nil {
		t.Skip("no perl on this machine to make system calls with")
	}
	for _, a := range attempts {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			if got := run(t, spec(t), a.text); got.status.Err != nil || got.status.Vanished || got.status.Code == 0 && got.status.Signal == "" {
				t.Errorf("in the sandbox: %+v, want a failure\n%s", got.status, got.out)
			}
			if a.bare {
				return
			}
			s := spec(t)
			s.Off, s.Require = true, false
			if got := run(t, s, a.text); got.status.Err != nil || got.status.Code != 0 || got.status.Signal != "" {
				t.Errorf("outside the sandbox it should work: %+v\n%s", got.status, got.out)
			}
		})
	}
}

// sleeper returns a process outside the sandbox that an attack may aim at.
func sleeper(t *testing.T) int {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sleep", "600")
	if err := cmd.Start(); err != nil {
		t.Skipf("no sleep on this machine: %v", err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd.Process.Pid
}

func perl(call string) string { return `perl -e '$r = ` + call + `; exit($r < 0 ? 1 : 0)'` }

// TestAttackOthers: a command cannot affect a process outside, and finds neither its helper nor its helper's parent.
func TestAttackOthers(t *testing.T) {
	t.Parallel()
	victim := strconv.Itoa(sleeper(t))
	sys := func(nr int, args string) string { return perl(fmt.Sprintf("syscall(%d, %s)", nr, args)) }
	attack(t, []attempt{
		{name: "signal", text: `kill -CONT ` + victim},
		{name: "tkill", text: sys(unix.SYS_TKILL, victim+", 18")},
		{name: "tgkill", text: sys(unix.SYS_TGKILL, victim+", "+victim+", 18")},
		{name: "handle", text: sys(unix.SYS_PIDFD_OPEN, victim+", 0")},
		{name: "limits of another", text: sys(unix.SYS_PRLIMIT64, victim+", 7, 0, 0")},
		{name: "limits of the parent", text: sys(unix.SYS_PRLIMIT64, "getppid(), 7, 0, 0")},
		{name: "priority of another", text: sys(unix.SYS_SETPRIORITY, "0, "+victim+", 19")},
		{name: "priority of a user", text: sys(unix.SYS_SETPRIORITY, "2, 0, 19"), bare: true},
		{name: "priority of a group", text: sys(unix.SYS_SETPRIORITY, "1, getpgrp(0), 19")},
		{name: "processors of another", text: `perl -e '$m = "\xff" x 128; exit(syscall(` + strconv.Itoa(unix.SYS_SCHED_SETAFFINITY) + `, ` + victim + `, 128, $m) < 0 ? 1 : 0)'`},
		{name: "processors of the parent", text: `perl -e '$m = "\xff" x 128; exit(syscall(` + strconv.Itoa(unix.SYS_SCHED_SETAFFINITY) + `, getppid(), 128, $m) < 0 ? 1 : 0)'`},
		{name: "scheduler of another", text: `perl -e '$p = "\0" x 4; exit(syscall(` + strconv.Itoa(unix.SYS_SCHED_SETSCHEDULER) + `, ` + victim + `, 3, $p) < 0 ? 1 : 0)'`},
		{name: "disk priority of another", text: sys(unix.SYS_IOPRIO_SET, "1, "+victim+", 24578")},
		{name: "trace", text: sys(unix.SYS_PTRACE, "16, "+victim+", 0, 0"), bare: true},
		{name: "read its memory", text: `perl -e '$b = "\0" x 64; $l = pack("PQ", $b, 64); exit(syscall(` + strconv.Itoa(unix.SYS_PROCESS_VM_READV) + `, getppid(), $l, 1, $l, 1, 0) < 0 ? 1 : 0)'`, bare: true},
		{name: "see it", text: `[ -d /proc/` + victim + `/fd ] && ls /proc/` + victim + `/fd`},
		{name: "its environment", text: `cat /proc/` + victim + `/environ`},
		{name: "environment of the parent", text: `cat /proc/$PPID/environ || cat /proc/1/environ`, bare: true},
		{name: "files of the parent", text: `ls /proc/$PPID/fd || ls /proc/1/fd || ls /proc/1/task`, bare: true},
		{name: "memory of the parent", text: `head -c 1 /proc/$PPID/mem || head -c 1 /proc/1/mem || cat /proc/1/maps`, bare: true},
		{name: "root of the parent", text: `ls /proc/$PPID/root/root /proc/1/root/root`, bare: true},
		{name: "score of the parent", text: `echo 1000 > /proc/$PPID/oom_score_adj`, bare: true},
		{name: "signal the parent", text: `kill -0 $PPID`},
		{name: "kill the parent", text: `kill -9 $PPID`, bare: true},
		{name: "stop the parent", text: `kill -STOP $PPID`, bare: true},
	}, confined)
}

// TestAttackHelperStays: after everything that a command can send to its helper, the helper still works.
func TestAttackHelperStays(t *testing.T) {
	t.Parallel()
	needLandlock(t)
	got := run(t, confined(t), `for s in $(seq 1 64); do kill -$s $PPID 1; kill -$s -- -$PPID -1; done 2>/dev/null; exit 5`)
	// A signal to every process of its own namespace may end the command itself; the helper still reports it.
	if got.status.Err != nil || got.status.Vanished || got.status.Stuck {
		t.Errorf("%+v %q, want that the helper stays", got.status, got.out)
	}
	// Threads have ids too: none of them is the helper's.
	got = run(t, confined(t), `for i in $(seq 1 300); do perl -e 'for $t (1..300) { syscall(`+strconv.Itoa(unix.SYS_TKILL)+`, $t, 9) if $t != $$ && $t != getppid() }' ; break; done 2>/dev/null; exit 5`)
	if got.status.Err != nil || got.status.Vanished || got.status.Stuck {
		t.Errorf("threads: %+v %q, want that the helper stays", got.status, got.out)
	}
}

// outsideFile returns a directory outside the sandbox with a file and a directory that everybody may change.
func outsideFile(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "outside-") //nolint:usetesting // nobody may not enter the directories of t.TempDir
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	write(t, filepath.Join(dir, "file"), "x")
	return dir
}

// TestAttackMetadata: modes, owners, times and attributes outside the writable directories do not change.
func TestAttackMetadata(t *testing.T) {
	t.Parallel()
	if level := needLandlock(t); !level.Root {
		t.Skipf("no root of its own here, and the level says so: %s", level)
	}
	dir := outsideFile(t)
	attempts := []attempt{
		{name: "mode", text: `chmod 700 "$OUT"`},
		{name: "mode of a file", text: `chmod 666 "$OUT/file"`},
		{name: "owner", text: `chown "$(id -u)" "$OUT/file"`},
		{name: "group", text: `chgrp "$(id -g)" "$OUT/file"`},
		{name: "times", text: `touch -d 2001-01-01 "$OUT/file"`},
		{name: "times of a directory", text: `touch -d 2001-01-01 "$OUT"`},
		{name: "attribute", text: `perl -e '$p = "$ENV{OUT}/file"; $n = "user.x"; $v = "y"; exit(syscall(` + strconv.Itoa(unix.SYS_SETXATTR) + `, $p, $n, $v, 1, 0) < 0 ? 1 : 0)'`, bare: true},
	}
	readable := func(t *testing.T) sandbox.Spec {
		spec := confined(t)
		spec.Read = append(spec.Read, dir) // may be read, so that it is there
		spec.Env = []string{"PATH=/usr/bin:/bin", "OUT=" + dir}
		return spec
	}
	attack(t, attempts, readable)
	attack(t, []attempt{{name: "not granted", text: `chmod 700 "$OUT" || touch "$OUT/file" || stat "$OUT/file"`}}, func(t *testing.T) sandbox.Spec {
		spec := readable(t)
		spec.Read = nil
		return spec
	})
}

// TestAttackOwnerBits: a command cannot leave a program behind that runs with the rights of the bot.
func TestAttackOwnerBits(t *testing.T) {
	t.Parallel()
	attack(t, []attempt{
		{name: "set user", text: `cp /bin/true t && chmod u+s t`},
		{name: "set group", text: `cp /bin/true t && chmod g+s t`},
		{name: "install", text: `install -m 4755 /bin/true t`},
		{name: "create", text: `perl -e '$p = "made"; exit(syscall(` + strconv.Itoa(unix.SYS_OPENAT) + `, -100, $p, 0101, 04755) < 0 ? 1 : 0)'`},
		{name: "openat2", text: `perl -e '$how = pack("QQQ", 0101, 04755, 0); $p = "made"; exit(syscall(` + strconv.Itoa(unix.SYS_OPENAT2) + `, -100, $p, $how, 24) < 0 ? 1 : 0)'`},
	}, confined)
}

// TestAttackSockets: a socket outside cannot be reached by path or by name, for any network setting.
func TestAttackSockets(t *testing.T) {
	t.Parallel()
	dir := outsideFile(t)
	for path, name := range map[string]string{filepath.Join(dir, "s"): "path", "@zephbot-" + strconv.Itoa(os.Getpid()): "name"} {
		ln, err := net.Listen("unix", path) //nolint:noctx // a listener of a test
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = ln.Close() })
		if name == "path" {
			if err := os.Chmod(path, 0o777); err != nil { //nolint:gosec // whom the mode does not stop
				t.Fatal(err)
			}
		}
		for _, network := range []sandbox.Network{sandbox.NetworkOff, sandbox.NetworkInternet, sandbox.NetworkAll} {
			connect := `perl -MSocket -e 'socket(my $s, PF_UNIX, SOCK_STREAM, 0) or exit 1; my $p = $ENV{S}; $p =~ s/^@/\0/; connect($s, pack("S a*", 1, $p)) or exit 2'`
			attack(t, []attempt{{name: name + " " + network.String(), text: connect}}, func(t *testing.T) sandbox.Spec {
				spec := confined(t)
				spec.Network = network
				spec.Env = []string{"PATH=/usr/bin:/bin", "S=" + path}
				return spec
			})
		}
	}
}

// TestAttackShared: what a command leaves in shared memory is gone with it.
func TestAttackShared(t *testing.T) {
	t.Parallel()
	needLandlock(t)
	key := strconv.Itoa(0x5a45_0000 + os.Getpid()%0xffff)
	shm := perl(`syscall(` + strconv.Itoa(unix.SYS_SHMGET) + `, ` + key + `, 4096, 01600)`)
	run(t, confined(t), shm+`; echo x > /dev/shm/zephbot-`+key)
	if got := run(t, confined(t), perl(`syscall(`+strconv.Itoa(unix.SYS_SHMGET)+`, `+key+`, 4096, 0600)`)); got.status.Code == 0 {
		t.Errorf("a segment outlived its command: %+v", got)
	}
	if _, err := os.Stat("/dev/shm/zephbot-" + key); err == nil {
		t.Error("a file in shared memory outlived its command")
	}
	if got := run(t, confined(t), `cat /dev/shm/zephbot-`+key); got.status.Code == 0 {
		t.Errorf("a file in shared memory outlived its command: %+v", got)
	}
}

// TestAttackLoopback: with the internet allowed, this machine cannot be reached by any of its addresses or through any
// call that contains one.
func TestAttackLoopback(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", ":0") //nolint:noctx,gosec // a listener of a test, on all addresses
	if err != nil {
		t.Skipf("no network: %v", err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	udp, err := net.ListenPacket("udp", ln.Addr().String()) //nolint:noctx // a listener of a test
	if err != nil {
		t.Skipf("no network: %v", err)
	}
	t.Cleanup(func() { _ = udp.Close() })
	_, port, err := net.SplitHostPort(ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	hosts := map[string]string{"loopback": "127.0.0.1", "other loopback": "127.9.8.7", "unspecified": "0.0.0.0"}
	if own, err := net.InterfaceAddrs(); err == nil {
		for _, a := range own {
			if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil && !n.IP.IsLoopback() {
				hosts["own address"] = n.IP.String()
			}
		}
	}
	var attempts []attempt
	for name, host := range hosts {
		sock := `perl -MSocket -e 'socket(my $s, PF_INET, %s, 0) or exit 1; my $a = sockaddr_in($ENV{PORT}, inet_aton("` + host + `")); %s or exit 2'`
		attempts = append(attempts,
			attempt{name: name + " connect", text: fmt.Sprintf(sock, "SOCK_STREAM", "connect($s, $a)")},
			attempt{name: name + " send", text: fmt.Sprintf(sock, "SOCK_DGRAM", `send($s, "x", 0, $a)`)},
			attempt{name: name + " fast open", text: fmt.Sprintf(sock, "SOCK_STREAM", `send($s, "x", 0x20000000, $a)`), bare: true},
			attempt{name: name + " sendmsg", text: fmt.Sprintf(sock, "SOCK_DGRAM",
				`do { my $d = "x"; my $i = pack("PQ", $d, 1); my $m = pack("PLx4PQQQlx4", $a, length $a, $i, 1, 0, 0, 0); syscall(`+strconv.Itoa(unix.SYS_SENDMSG)+`, fileno($s), $m, 0) >= 0 }`)},
			attempt{name: name + " sendmmsg", text: fmt.Sprintf(sock, "SOCK_DGRAM",
				`do { my $d = "x"; my $i = pack("PQ", $d, 1); my $m = pack("PLx4PQQQlx4LL", $a, length $a, $i, 1, 0, 0, 0, 0, 0); syscall(`+strconv.Itoa(unix.SYS_SENDMMSG)+`, fileno($s), $m, 1, 0) >= 0 }`)},
		)
	}
	internet := func(t *testing.T) sandbox.Spec {
		spec := confined(t)
		spec.Network = sandbox.NetworkInternet
		spec.Env = []string{"PATH=/usr/bin:/bin", "PORT=" + port}
		return spec
	}
	attack(t, attempts, internet)
	attack(t, []attempt{
		{name: "mapped", text: `perl -MSocket -e 'socket(my $s, PF_INET6, SOCK_STREAM, 0) or exit 1; connect($s, pack_sockaddr_in6($ENV{PORT}, ("\0" x 10)."\xff\xff\x7f\0\0\x01")) or exit 2'`, bare: true},
		{name: "loopback of IPv6", text: `perl -MSocket -e 'socket(my $s, PF_INET6, SOCK_STREAM, 0) or exit 1; connect($s, pack_sockaddr_in6($ENV{PORT}, ("\0" x 15)."\x01")) or exit 2'`, bare: true},
		{name: "metadata", text: `exec 9<>/dev/tcp/169.254.169.254/80`, bare: true},
		{name: "another protocol", text: `perl -MSocket -e 'socket(my $s, PF_INET, SOCK_STREAM, 132) or exit 1'`, bare: true},
		{name: "raw", text: `perl -MSocket -e 'socket(my $s, PF_INET, SOCK_RAW, 1) or exit 1'`, bare: true},
	}, internet)
}

// TestAttackAddressSwap: changing an address while the call is checked does not help: the checked address is the one
// that is used.
func TestAttackAddressSwap(t *testing.T) {
	t.Parallel()
	if level := needLandlock(t); !level.Guard {
		t.Skipf("no guard here, and the level says so: %s", level)
	}
	udp, err := net.ListenPacket("udp4", "127.0.0.1:0") //nolint:noctx // a listener of a test
	if err != nil {
		t.Skipf("no loopback: %v", err)
	}
	t.Cleanup(func() { _ = udp.Close() })
	_, port, err := net.SplitHostPort(udp.LocalAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	spec := confined(t)
	spec.Network = sandbox.NetworkInternet
	spec.Argv = []string{sandbox.Self, "-test.run=^TestSwapAddress$"}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	spec.Argv[0] = exe
	spec.Read = append(spec.Read, exe)
	spec.Env = []string{"PATH=/usr/bin:/bin", swapPort + "=" + port, "GORACE=atexit_sleep_ms=0"}
	p, err := sandbox.Start(t.Context(), spec, os.Stdout, os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	<-p.Done()
	if s := p.Status(); s.Err != nil || s.Code != 0 || s.Signal != "" {
		t.Fatalf("the attacker ended with %+v", s)
	}
	if err := udp.SetReadDeadline(time.Now().Add(time.Millisecond)); err != nil { // loopback delivers at once
		t.Fatal(err)
	}
	if n, from, err := udp.ReadFrom(make([]byte, 16)); err == nil {
		t.Errorf("%d bytes came through from %s", n, from)
	}
}

// TestAttackEnd: nothing survives Stop, nor the end of the program that started the run.
func TestAttackEnd(t *testing.T) {
	t.Parallel()
	needLandlock(t)
	// The tree holds the output open: its end is the end of the last process.
	const bomb = `trap "" TERM HUP INT
		grow() { for i in 1 2 3 4 5 6 7 8; do setsid bash -c 'trap "" TERM HUP; (setsid bash -c "trap \"\" TERM; while :; do sleep 600 & sleep 0.01; done" &) ; while :; do sleep 600; done' & done; }
		grow; echo ready; while :; do wait; done`
	t.Run("stop", func(t *testing.T) {
		t.Parallel()
		spec := confined(t)
		spec.Grace = time.Millisecond
		p, ready, wait := start(t, spec, bomb)
		<-ready
		p.Stop()
		if got := wait(); got.status.Signal != "killed" || got.status.Stuck || got.status.Err != nil {
			t.Errorf("%+v, want killed", got.status)
		}
	})
	for _, way := range []string{"bot", "helper", "both"} {
		t.Run("kill "+way, func(t *testing.T) {
			t.Parallel()
			if level := needLandlock(t); way == "both" && !level.Processes {
				t.Skipf("no process namespace here, and the level says so: %s", level)
			}
			bot := exec.CommandContext(t.Context(), sandbox.Self, "-test.run=^TestBeBot$")
			bot.Dir = t.TempDir()
			bot.Env = []string{"PATH=/usr/bin:/bin", "TMPDIR=" + bot.Dir, beBot + "=" + bomb, "GORACE=atexit_sleep_ms=0"}
			out, err := bot.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := bot.Start(); err != nil {
				t.Fatal(err)
			}
			lines := bufio.NewReader(out)
			for line := ""; line != "ready\n"; {
				if line, err = lines.ReadString('\n'); err != nil {
					t.Fatalf("before it was ready: %v", err)
				}
			}
			helpers := childrenOf(t, bot.Process.Pid)
			if way != "helper" {
				_ = bot.Process.Kill()
			}
			if way != "bot" {
				for _, pid := range helpers {
					_ = syscall.Kill(pid, syscall.SIGKILL)
				}
			}
			if _, err := io.Copy(io.Discard, lines); err != nil { // ends with the last process of the tree
				t.Error(err)
			}
			_ = bot.Wait() // killed, or done
		})
	}
}

// childrenOf returns the helpers of a process.
func childrenOf(t *testing.T, pid int) []int {
	t.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil || len(files) == 0 {
		t.Skip("this kernel does not tell the children of a process")
	}
	var pids []int
	for _, f := range files {
		raw, err := os.ReadFile(f)
		if err != nil {
			continue
		}
		for field := range strings.FieldsSeq(string(raw)) {
			if n, err := strconv.Atoi(field); err == nil {
				pids = append(pids, n)
			}
		}
	}
	return pids
}

// TestAttackBot: what the bot holds cannot be read by what it starts, nor by its own user.
func TestAttackBot(t *testing.T) {
	t.Parallel()
	needLandlock(t)
	bot := exec.CommandContext(t.Context(), sandbox.Self, "-test.run=^TestBeBot$")
	bot.Dir = t.TempDir()
	look := `for d in /proc/[0-9]*; do cat $d/environ $d/mem $d/maps; ls -l $d/fd $d/cwd/ $d/root/etc; done 2>/dev/null | grep -a -c -e s3cret -e bot-file; echo ready; while :; do sleep 600; done`
	bot.Env = []string{"PATH=/usr/bin:/bin", "TMPDIR=" + bot.Dir, "TOKEN=s3cret", beBot + "=" + look, "GORACE=atexit_sleep_ms=0"}
	write(t, filepath.Join(bot.Dir, "bot-file"), "x")
	out, err := bot.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := bot.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = bot.Process.Kill()
		_ = bot.Wait()
	})
	lines := bufio.NewReader(out)
	count, err := lines.ReadString('\n')
	if err != nil || count != "0\n" {
		t.Errorf("inside the sandbox %q secrets were found, %v", count, err)
	}
	if ready, err := lines.ReadString('\n'); err != nil || ready != "ready\n" {
		t.Errorf("%q %v", ready, err)
	}
	if os.Getuid() == 0 { // outside the sandbox root may read everything
		return
	}
	for _, name := range []string{"environ", "mem", "maps", "fd", "cwd"} {
		path := fmt.Sprintf("/proc/%d/%s", bot.Process.Pid, name)
		if f, err := os.Open(path); err == nil {
			_ = f.Close()
			t.Errorf("its own user may open %s of the bot", name)
		}
	}
}

// Variables that turn this test binary into a program of an attack.
const (
	beBot    = "ZEPHBOT_TEST_BOT"  // start a run of this text, and wait
	beOff    = "ZEPHBOT_TEST_OFF"  // without a sandbox
	swapPort = "ZEPHBOT_TEST_SWAP" // send to the loopback by swapping addresses
)

// TestBeBot is the bot of other tests.
func TestBeBot(t *testing.T) {
	text := os.Getenv(beBot)
	if text == "" {
		t.Skip("runs only as the bot of another test")
	}
	if err := sandbox.Shield(); err != nil {
		t.Fatal(err)
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	p, err := sandbox.Start(t.Context(), sandbox.Spec{
		Helper: sandbox.Self, Dir: dir, Write: []string{dir}, Off: os.Getenv(beOff) != "", Argv: []string{"/bin/bash", "-c", text}, Env: []string{"PATH=/usr/bin:/bin"},
		Grace: time.Millisecond,
	}, os.Stdout, os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	<-p.Done()
	if !p.Status().Vanished {
		t.Errorf("the run ended with %+v, want that its helper vanished", p.Status())
	}
}
