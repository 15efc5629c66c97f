package sandbox_test

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zephbot/zephbot/tools/shell/sandbox"
)

// The search for effects: commands are made up in the languages of programs (sed, awk, git with a hostile repository,
// find, tar, …) and run in the reading profile, many in one process, beside files, listeners and a process that must not
// notice them (see world). It is a finding when one of those changed. Nothing asks the policy: whatever it lets run, the
// kernel has to keep it from acting.

// size is how many commands one confined process runs, one after the other.
const size = 64

// patience is how long a command may say nothing before it is ended: it waits for something that will not come.
const patience = 2 * time.Second

// driver runs each of its arguments as the shell tool runs a command, and says which one it has begun.
const driver = `i=0; for s in "$@"; do echo "$i"; i=$((i + 1)); ( ulimit -S -t 1; eval "$s" ) <f >/dev/null 2>&1; done; echo end`

// environment is that of the commands: HOME is the workspace, where hostile files lie.
func (w *world) environment() []string {
	return []string{
		"PATH=" + searchPath(), "HOME=" + w.work, "LANG=C.UTF-8", "TERM=dumb", "EFFECTS=" + w.mark, "PWD=" + w.work,
	}
}

// searchPath is the part of PATH from which confined commands may run programs.
func searchPath() string {
	var out []string
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		for _, granted := range []string{"/usr/", "/bin/", "/sbin/", "/opt/", "/nix/store/"} {
			if strings.HasPrefix(dir+"/", granted) {
				out = append(out, dir)
			}
		}
	}
	return strings.Join(out, ":")
}

// profile returns how commands of a world are confined.
type profile func(w *world) sandbox.Spec

// spec is what all profiles have in common.
func (w *world) spec() sandbox.Spec {
	return sandbox.Spec{
		Helper: sandbox.Self, Dir: w.work, Env: w.environment(), Linger: -1, Grace: time.Millisecond,
		Limits: sandbox.Limits{Procs: 100, Memory: 1 << 30, FileSize: 8 << 20, Files: 256, CPU: 30 * time.Second},
	}
}

// run runs commands, all of them although one may end the process that runs them, and returns how many were cut off.
func (w *world) run(p profile, commands []string) (cut int) {
	w.tb.Helper()
	real := make([]string, len(commands))
	for i, c := range commands {
		real[i] = strings.ReplaceAll(w.names.Replace(c), "\x00", "")
	}
	for len(real) > 0 {
		begun, ended := w.start(p(w), real)
		if ended {
			return cut
		}
		real = real[begun:]
		cut++
	}
	return cut
}

// start runs commands until one of them hangs or ends the others; begun is how many were begun.
func (w *world) start(spec sandbox.Spec, commands []string) (begun int, ended bool) {
	w.tb.Helper()
	bash, err := exec.LookPath("bash")
	must(w.tb, err)
	spec.Argv = append([]string{bash, "--noprofile", "--norc", "-c", driver, "bash"}, commands...)
	read, write, err := os.Pipe()
	must(w.tb, err)
	p, err := sandbox.Start(w.tb.Context(), spec, write, nil)
	_ = write.Close()
	must(w.tb, err)
	lines := make(chan string)
	var reader sync.WaitGroup
	reader.Go(func() {
		defer close(lines)
		for s := bufio.NewScanner(read); s.Scan(); {
			lines <- s.Text()
		}
	})
	timer := time.NewTimer(10 * patience) // for the first of them
	defer timer.Stop()
	for said := true; said; {
		var line string
		select {
		case line, said = <-lines:
		case <-p.Done(): // what is still in the pipe follows
			for line = range lines {
				begun, ended = progress(line, begun, ended)
			}
			said = false
		case <-timer.C:
			said = false
		}
		if said {
			begun, ended = progress(line, begun, ended)
			timer.Reset(patience)
		}
	}
	p.Stop()
	for range lines { // lets the reader end
	}
	reader.Wait()
	<-p.Done()
	_ = read.Close()
	if s := p.Status(); s.Err != nil || s.Stuck {
		w.tb.Fatalf("the commands were not run: %s", s.Why())
	}
	if begun == 0 {
		w.tb.Fatalf("no command was begun: %s", p.Status().Why())
	}
	return begun, ended
}

// progress notes a line of the driver.
func progress(line string, begun int, ended bool) (int, bool) {
	if n, err := strconv.Atoi(line); err == nil {
		begun = n + 1
	}
	return begun, ended || line == "end"
}

// finding is a command, or several together, that had an effect.
type finding struct{ commands, did string }

// search runs made-up commands in a profile. Its counts are safe to read while it runs.
type search struct {
	tb       testing.TB
	profile  profile
	template string
	ran, cut atomic.Int64
}

// play searches with one seed, as long as more says, in worlds of its own. Each world lasts for some batches: the next
// one has other hostile files.
func (s *search) play(seed uint64, more func() bool) (found []finding) {
	m := newMaker(seed)
	var w *world
	defer func() {
		if w != nil {
			w.end()
		}
	}()
	for batches := 0; len(found) == 0 && more(); batches++ {
		if batches%24 == 0 {
			if w != nil {
				w.end()
			}
			w = newWorld(s.tb, s.template, m.files())
		}
		commands := make([]string, size)
		for i := range commands {
			commands[i] = m.next()
		}
		before := w.state()
		s.cut.Add(int64(w.run(s.profile, commands)))
		s.ran.Add(size)
		if did := difference(before, w.state()); did != "" {
			found = s.blame(w.files, commands, did)
		}
	}
	return found
}

// blame finds the commands that had an effect, each alone in a new world with the same files.
func (s *search) blame(files map[string]string, commands []string, did string) (found []finding) {
	for _, c := range commands {
		w := newWorld(s.tb, s.template, files)
		before := w.state()
		w.run(s.profile, []string{c})
		if did := difference(before, w.state()); did != "" {
			found = append(found, finding{c, did})
		}
		w.clear()
		w.end()
	}
	if found == nil {
		found = []finding{{strings.Join(commands, "\n----\n"), "together, and none of them alone:\n" + did}}
	}
	return found
}

// searchFor searches with some seeds side by side, as long as more says, and reports.
func searchFor(t *testing.T, l level, template string, seeds []uint64, more func(ran int64) bool) {
	t.Helper()
	s := &search{tb: t, profile: l.profile, template: template}
	found := make([][]finding, len(seeds))
	var wg sync.WaitGroup
	for i, seed := range seeds {
		wg.Go(func() {
			found[i] = s.play(seed, func() bool { return more(s.ran.Load()) })
		})
	}
	wg.Wait()
	t.Logf("seeds %v: %d commands run, %d of them ended because they waited or ended others", seeds, s.ran.Load(),
		s.cut.Load())
	for i, list := range found {
		for _, f := range list {
			t.Errorf("seed %d: %s\n%s", seeds[i], strconv.Quote(f.commands), f.did)
		}
	}
}

// level is a profile that some machine gives.
type level struct {
	name    string
	profile profile
}

// readingLevels are the levels of the reading profile that this machine can give.
func readingLevels(t *testing.T) (list []level) {
	t.Helper()
	needLandlock(t)
	for _, m := range sandbox.Masks() {
		helper := sandbox.Masked(t, sandbox.Self, m)
		if !sandbox.Probe(t.Context(), helper).Reading() {
			t.Logf("this machine cannot give the level %q", m.Name)
			continue
		}
		list = append(list, level{m.Name, func(w *world) sandbox.Spec {
			spec := w.spec()
			spec.Helper, spec.Reading = helper, true
			spec.Read, spec.Write = []string{w.allowed}, []string{w.work}
			return spec
		}})
	}
	if len(list) == 0 {
		t.Skip("this machine has no reading profile")
	}
	return list
}

// TestAttackLanguages: a fixed set of commands in the languages of programs has no effect in the reading profile, at
// any level.
func TestAttackLanguages(t *testing.T) {
	t.Parallel()
	dir := template(t)
	for i, l := range readingLevels(t) {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			searchFor(t, l, dir, []uint64{uint64(i) + 1}, func(ran int64) bool { return ran < size })
		})
	}
}

// TestAttackFound: what the search has found stays mended, at every level.
func TestAttackFound(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("perl"); err != nil {
		t.Skip("no perl on this machine to make system calls with")
	}
	const fileSetattr = 469
	call := func(nr int, args string) string {
		return fmt.Sprintf(`perl -e 'sub S{my($n,@a)=@_;syscall($n,@a)}open F,"<","f";S(%d,%s)'`, nr, args)
	}
	commands := []string{
		call(fileSetattr, `-100,"f",pack("QL4",0x80,0,0,0,0),24,0`),
		call(fileSetattr, `fileno F,"",pack("QL4",0x80,0,0,0,0),24,0x1000`),
		call(unix.SYS_FCNTL, `fileno F,1036,pack("Q",3)`), // F_SET_RW_HINT
		call(unix.SYS_SHMCTL, `‹shm›,0,0`), call(unix.SYS_SHMAT, `‹shm›,0,0`), call(unix.SYS_SEMCTL, `‹sem›,0,16,7`),
		call(unix.SYS_SEMOP, `‹sem›,pack("SsS",0,1,0),1`), call(unix.SYS_MSGSND, `‹msg›,pack("qA8",1,"x"),8,04000`),
		call(unix.SYS_MSGCTL, `‹msg›,0,0`), call(unix.SYS_MQ_UNLINK, `"keep-‹mark›"`),
	}
	dir := template(t)
	for _, l := range readingLevels(t) {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			s := &search{tb: t, profile: l.profile, template: dir}
			w := newWorld(t, dir, nil)
			defer w.end()
			before := w.state()
			w.run(l.profile, commands)
			if did := difference(before, w.state()); did != "" {
				t.Errorf("%v", s.blame(nil, commands, did))
			}
		})
	}
}

// TestLanguages is the same for one of ZEPH_DIFF_PARTS equal parts of the time that ZEPH_DIFF says, from ZEPH_DIFF_SEED
// or a new seed, one level after the other. The seed says which is the first: a short time is not enough for all.
func TestLanguages(t *testing.T) {
	long := os.Getenv("ZEPH_DIFF")
	if long == "" {
		t.Skip("ZEPH_DIFF is not set; .ci/run differential sets it")
	}
	d, err := time.ParseDuration(long)
	must(t, err)
	if parts, err := strconv.Atoi(os.Getenv("ZEPH_DIFF_PARTS")); err == nil && parts > 0 {
		d /= time.Duration(parts)
	}
	seed := rand.Uint64() //nolint:gosec // printed and repeatable
	if text := os.Getenv("ZEPH_DIFF_SEED"); text != "" {
		seed, err = strconv.ParseUint(text, 10, 64)
		must(t, err)
	}
	var names []string
	for _, l := range languages() {
		names = append(names, l.name)
	}
	t.Logf("seed %d; languages: %s", seed, strings.Join(names, ", "))
	list := readingLevels(t)
	dir := template(t)
	share, last := d/time.Duration(len(list)), time.Now().Add(d)
	for i := range list {
		l := list[(seed+uint64(i))%uint64(len(list))] //nolint:gosec // a few levels
		if i > 0 && time.Now().After(last) {
			t.Logf("no time is left for the level %q", l.name)
			continue
		}
		t.Run(l.name, func(t *testing.T) {
			end := time.Now().Add(share)
			first := seed + uint64(i)*2 //nolint:gosec // as above
			searchFor(t, l, dir, []uint64{first, first + 1}, func(int64) bool { return time.Now().Before(end) })
		})
	}
}

// TestEffectsAreSeen: the search notices every kind of effect when nothing keeps a command from it.
func TestEffectsAreSeen(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("perl"); err != nil {
		t.Skip("no perl on this machine to make system calls with")
	}
	w := newWorld(t, template(t), newMaker(7).files())
	defer w.end()
	defer w.clear()
	for _, effect := range []struct{ name, command, sign string }{
		{"a new file", "touch new", "+ /work/new"},
		{"a changed file", "echo x >> f", "+ /work/f"},
		{"a file written again as it is", "cp f ‹out›/c; cat ‹out›/c > f", "+ /work/f"},
		{"a mode", "chmod 700 f", "+ /work/f"},
		{"the same mode", "chmod --reference=f f", "+ /work/f"},
		{"an owner", `chown "$(id -u)" f`, "+ /work/f"},
		{"times", "touch -d 2001-01-01 f", "+ /work/f"},
		{"an attribute", fmt.Sprintf(`perl -e '$p="f";$n="user.x";$v="y";syscall(%d,$p,$n,$v,1,0)'`,
			unix.SYS_SETXATTR), "+ /work/f"},
		{"a flag", `perl -e 'open F,"<","f";$v=pack("q",0x40);ioctl(F,0x40086602,$v)'`, "+ /work/f"},
		{"a hard link", "ln f ‹out›/hard", "+ /out/hard"},
		{"a directory", "mkdir d/m", "+ /work/d/m"},
		{"a file outside", "echo x > ‹out›/file", "+ /out/file"},
		{"a file in a shared directory", "touch /tmp/x-‹mark›", "x-"},
		{"a connection", "exec 3<>/dev/tcp/127.0.0.1/‹tcp›", "TCP"},
		{"a datagram", "echo x >/dev/udp/127.0.0.1/‹udp›", "UDP"},
		{
			"a socket by its path", `perl -MIO::Socket::UNIX -e 'IO::Socket::UNIX->new("stream.sock") or die'`,
			"stream in the workspace",
		},
		{
			"a socket by its name", `perl -MIO::Socket::UNIX -e 'IO::Socket::UNIX->new("\0‹mark›stream") or die'`,
			"stream without a path",
		},
		{
			"a datagram to a path",
			`perl -MSocket -e 'socketpair(A,B,AF_UNIX,SOCK_DGRAM,0);send(A,"x",0,pack_sockaddr_un("datagram.sock"))'`,
			"datagram in the workspace",
		},
		{
			"a datagram to a name",
			`perl -MSocket -e 'socketpair(A,B,AF_UNIX,SOCK_DGRAM,0);send(A,"x",0,pack_sockaddr_un("\0‹mark›datagram"))'`,
			"datagram without a path",
		},
		{"a FIFO", "echo x > fifo", "the FIFO"},
		{"a process", "setsid sleep 60 <&- >&- 2>&- &", "is still there"},
		{"shared memory", fmt.Sprintf("perl -e 'syscall(%d,‹key›,4096,0666|01000)'", unix.SYS_SHMGET), "+ shm"},
		{"memory of others", fmt.Sprintf("perl -e 'syscall(%d,‹shm›,0,0)'", unix.SYS_SHMAT), "+ shm"},
		{"a semaphore of others", fmt.Sprintf("perl -e 'syscall(%d,‹sem›,0,0)'", unix.SYS_SEMCTL), "- sem"},
		{"a message to others", fmt.Sprintf(`perl -e '$m=pack("qA8",1,"x");syscall(%d,‹msg›,$m,8,04000)'`, unix.SYS_MSGSND), "+ msg"},
		{"a message queue of others", fmt.Sprintf(`perl -e '$n="keep-‹mark›";syscall(%d,$n)'`, unix.SYS_MQ_UNLINK), "- there is"},
		{"a message queue", fmt.Sprintf(`perl -e '$n="x-‹mark›";syscall(%d,$n,66,0666,0)'`, unix.SYS_MQ_OPEN), "queue"},
		{"a priority", "renice 19 ‹pid›", "+ the sentinel"},
		{"a limit", "prlimit --pid ‹pid› --nofile=9", "+ the sentinel"},
		{"a stopped process", "kill -STOP ‹pid›", "+ the sentinel"},
		{"the canary", "./canary", "+ /box/trace"},
		{"a signal", "kill -9 ‹pid›", "+ the sentinel"},
		{"a renamed file", "mv g.txt g", "+ /work/g"},
		{"a deleted file", "rm f", "- /work/f"},
	} {
		before := w.state()
		cmd := exec.CommandContext(t.Context(), "bash", "--noprofile", "--norc", "-c",
			"("+w.names.Replace(effect.command)+") <f >/dev/null 2>&1")
		cmd.Dir, cmd.Env = w.work, w.environment()
		_ = cmd.Run() // how it ends says nothing
		if did := difference(before, w.state()); !strings.Contains(did, effect.sign) {
			t.Errorf("%s: %s: noticed %q, want %q", effect.name, effect.command, did, effect.sign)
		}
	}
}

// TestLanguagesAct: in the usual profile, which may write in the workspace, each language has an effect within some
// commands, and the search finds it. What it makes up is not harmless.
func TestLanguagesAct(t *testing.T) {
	t.Parallel()
	needLandlock(t)
	dir := template(t)
	usual := func(w *world) sandbox.Spec {
		spec := w.spec()
		spec.Write, spec.Network = []string{w.work, w.out, w.box, w.allowed}, sandbox.NetworkAll
		return spec
	}
	for _, l := range languages() {
		t.Run(l.name, func(t *testing.T) {
			m := newMaker(3)
			w := newWorld(t, dir, m.files())
			defer w.end()
			before := w.state()
			for range 20 {
				commands := make([]string, size/8)
				for i := range commands {
					commands[i] = l.make(m)
				}
				w.run(usual, commands)
				if difference(before, w.state()) != "" {
					return
				}
			}
			t.Errorf("%d commands had no effect", 20*size/8)
		})
	}
}
