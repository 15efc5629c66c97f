package sandbox_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// world is everything that a command could have an effect on. Below base are the workspace, a directory that commands
// may read in addition, one that is not granted at all, and the one in which the canary leaves its trace.
type world struct {
	tb                            testing.TB
	base, work, allowed, out, box string
	mark                          string // in names outside of base, and in the environment of the commands
	listeners                     []listener
	key                           int // of the shared memory, semaphores and queues that commands try to create
	fifo                          int // the reading end of a FIFO in the workspace
	tcp, udp                      int // ports
	sentinel                      *exec.Cmd
	shared                        map[string]int // shared memory, semaphores and a message queue of this process
	files                         map[string]string
	names                         *strings.Replacer // from what generators write to the names of this world
}

// listener is a socket outside. Nobody may send it anything.
type listener struct {
	name string
	fd   int
	data bool // receives datagrams; others accept connections
	seen int
}

// newWorld builds a world whose workspace is a copy of template, with these files.
func newWorld(tb testing.TB, template string, files map[string]string) *world {
	tb.Helper()
	base, err := os.MkdirTemp("", "effects") //nolint:usetesting // TempDir is closed to other users
	must(tb, err)
	base, err = filepath.EvalSymlinks(base)
	must(tb, err)
	w := &world{
		tb: tb, base: base, work: filepath.Join(base, "work"), allowed: filepath.Join(base, "allowed"),
		out: filepath.Join(base, "out"), box: filepath.Join(base, "box"), mark: filepath.Base(base), files: files,
	}
	for _, dir := range []string{base, w.allowed, w.out, w.box} {
		must(tb, os.MkdirAll(dir, 0o755)) //nolint:gosec // commands of others must be able to enter it
	}
	for _, dir := range []string{w.out, w.box} {
		must(tb, os.Chmod(dir, 0o777)) //nolint:gosec // only the profile keeps commands from writing there
	}
	w.write(filepath.Join(w.out, "file"), "outside\n", 0o666)
	w.write(filepath.Join(w.allowed, "notes"), "notes\n", 0o666)
	must(tb, os.CopyFS(w.work, os.DirFS(template)))
	w.listen()
	w.watchOver()
	w.key = int(crc32.ChecksumIEEE([]byte(w.mark)) >> 1)
	w.share()
	w.names = strings.NewReplacer(
		"‹key›", strconv.Itoa(w.key), "‹shm›", strconv.Itoa(w.shared["shm"]), "‹sem›", strconv.Itoa(w.shared["sem"]), "‹msg›", strconv.Itoa(w.shared["msg"]),
		"‹work›", w.work, "‹out›", w.out, "‹allowed›", w.allowed, "‹box›", w.box, "‹mark›",
		w.mark,
		"‹tcp›", strconv.Itoa(w.tcp), "‹udp›", strconv.Itoa(w.udp), "‹pid›", strconv.Itoa(w.sentinel.Process.Pid))
	w.write(filepath.Join(w.work, "canary"), w.names.Replace(canary), 0o777)
	for name, text := range files {
		w.write(filepath.Join(w.work, name), w.names.Replace(text), 0o777)
	}
	return w
}

// canary is the program that hostile data names. Where it can act, it leaves a trace.
const canary = "#!/bin/sh\necho ran >>‹box›/trace-$$\nkill -TERM ‹pid›\n: >ran\n"

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

func (w *world) write(path, text string, mode os.FileMode) {
	w.tb.Helper()
	must(w.tb, os.MkdirAll(filepath.Dir(path), 0o755)) //nolint:gosec // as above
	must(w.tb, os.WriteFile(path, []byte(text), mode))
	must(w.tb, os.Chmod(path, mode))
}

// watchOver starts the process that nobody may signal, and opens a FIFO.
func (w *world) watchOver() {
	w.tb.Helper()
	w.sentinel = exec.CommandContext(w.tb.Context(), "sleep", "1000000")
	must(w.tb, w.sentinel.Start())
	path := filepath.Join(w.work, "fifo")
	must(w.tb, unix.Mkfifo(path, 0o666))
	must(w.tb, os.Chmod(path, 0o666)) //nolint:gosec // whatever the umask
	var err error
	w.fifo, err = unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	must(w.tb, err)
}

// share makes the objects of System V that commands may find by their numbers.
func (w *world) share() {
	w.tb.Helper()
	if errno := w.queue(unix.SYS_MQ_OPEN, "keep-", unix.O_CREAT|unix.O_RDONLY|unix.O_CLOEXEC); errno != 0 && errno != unix.ENOSYS {
		w.tb.Fatalf("make a message queue: %v", errno)
	}
	w.shared = map[string]int{}
	for name, call := range map[string][4]uintptr{
		"shm": {unix.SYS_SHMGET, unix.IPC_PRIVATE, 4096, 0o600}, "sem": {unix.SYS_SEMGET, unix.IPC_PRIVATE, 1, 0o600},
		"msg": {unix.SYS_MSGGET, unix.IPC_PRIVATE, 0o600},
	} {
		id, _, errno := syscall.Syscall(call[0], call[1], call[2], call[3])
		if errno == unix.ENOSYS {
			continue // a kernel without them
		}
		if errno != 0 {
			w.tb.Fatalf("make %s: %v", name, errno)
		}
		w.shared[name] = int(id)
	}
}

// queue makes a call about a POSIX message queue whose name begins so, and closes what it has opened.
func (w *world) queue(call uintptr, name string, flags int) syscall.Errno {
	w.tb.Helper()
	text, err := unix.BytePtrFromString(name + w.mark)
	must(w.tb, err)
	small := [8]int64{1: 1, 2: 8} // one message of 8 bytes: the queues of a user have a limit together
	fd, _, errno := syscall.Syscall6(call, uintptr(unsafe.Pointer(text)), uintptr(flags), 0o600,
		uintptr(unsafe.Pointer(&small)), 0, 0)
	if call == unix.SYS_MQ_OPEN && errno == 0 {
		_ = unix.Close(int(fd))
	}
	return errno
}

// listen opens the sockets.
func (w *world) listen() {
	w.tb.Helper()
	open := func(name string, kind int, addr unix.Sockaddr) unix.Sockaddr {
		family := unix.AF_UNIX
		if _, ok := addr.(*unix.SockaddrInet4); ok {
			family = unix.AF_INET
		}
		fd, err := unix.Socket(family, kind|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
		must(w.tb, err)
		must(w.tb, unix.Bind(fd, addr))
		if kind == unix.SOCK_STREAM {
			must(w.tb, unix.Listen(fd, 64))
		}
		w.listeners = append(w.listeners, listener{name: name, fd: fd, data: kind == unix.SOCK_DGRAM})
		bound, err := unix.Getsockname(fd)
		must(w.tb, err)
		return bound
	}
	port := func(addr unix.Sockaddr) int { return addr.(*unix.SockaddrInet4).Port } //nolint:forcetypeassert // opened above
	local := [4]byte{127, 0, 0, 1}
	w.tcp = port(open("TCP", unix.SOCK_STREAM, &unix.SockaddrInet4{Addr: local}))
	w.udp = port(open("UDP", unix.SOCK_DGRAM, &unix.SockaddrInet4{Addr: local}))
	for name, kind := range map[string]int{"stream": unix.SOCK_STREAM, "datagram": unix.SOCK_DGRAM} {
		path := filepath.Join(w.work, name+".sock")
		open(name+" in the workspace", kind, &unix.SockaddrUnix{Name: path})
		must(w.tb, os.Chmod(path, 0o777)) //nolint:gosec // only the profile keeps commands from connecting
		open(name+" without a path", kind, &unix.SockaddrUnix{Name: "@" + w.mark + name})
	}
}

// end removes everything.
func (w *world) end() {
	_ = w.sentinel.Process.Kill() // it may be gone: that would have been a finding
	_ = w.sentinel.Wait()
	for _, l := range w.listeners {
		_ = unix.Close(l.fd)
	}
	_ = unix.Close(w.fifo)
	_ = w.queue(unix.SYS_MQ_UNLINK, "keep-", 0)
	_, _, _ = syscall.Syscall(unix.SYS_SHMCTL, uintptr(w.shared["shm"]), unix.IPC_RMID, 0)
	_, _, _ = syscall.Syscall(unix.SYS_SEMCTL, uintptr(w.shared["sem"]), 0, unix.IPC_RMID)
	_, _, _ = syscall.Syscall(unix.SYS_MSGCTL, uintptr(w.shared["msg"]), unix.IPC_RMID, 0)
	_ = filepath.WalkDir(w.base, func(path string, e fs.DirEntry, _ error) error {
		if e != nil && e.IsDir() {
			_ = os.Chmod(path, 0o700) //nolint:gosec // commands of tests may have closed it
		}
		return nil
	})
	_ = os.RemoveAll(w.base)
	for _, path := range w.strays() {
		_ = os.RemoveAll(path)
	}
}

// clear ends what commands of a test have left behind.
func (w *world) clear() {
	for _, p := range w.left() {
		_ = syscall.Kill(p, syscall.SIGKILL) // it may have ended
	}
	_ = w.queue(unix.SYS_MQ_UNLINK, "x-", 0) // there may be none of these
	if id, _, errno := syscall.Syscall(unix.SYS_SHMGET, uintptr(w.key), 0, 0); errno == 0 {
		_, _, _ = syscall.Syscall(unix.SYS_SHMCTL, id, unix.IPC_RMID, 0)
	}
}

// state is everything that a command may have changed, one line a thing.
func (w *world) state() string {
	w.tb.Helper()
	var b strings.Builder
	must(w.tb, filepath.WalkDir(w.base, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		line, err := describe(path)
		fmt.Fprintf(&b, "%s: %s\n", strings.TrimPrefix(path, w.base), line)
		return err
	}))
	for i := range w.listeners {
		l := &w.listeners[i]
		l.count()
		if l.seen > 0 {
			fmt.Fprintf(&b, "the listener (%s) heard %d times\n", l.name, l.seen)
		}
	}
	buf := make([]byte, 4096)
	if n, _ := unix.Read(w.fifo, buf); n > 0 {
		fmt.Fprintf(&b, "the FIFO got %q at %v\n", buf[:n], time.Now())
	}
	for _, path := range w.strays() {
		fmt.Fprintf(&b, "%s is there\n", path)
	}
	b.WriteString(w.process())
	b.WriteString(w.kernelObjects())
	return b.String()
}

// count takes everything that has arrived.
func (l *listener) count() {
	buf := make([]byte, 4096)
	for {
		var err error
		if l.data {
			_, _, err = unix.Recvfrom(l.fd, buf, unix.MSG_DONTWAIT)
		} else {
			var fd int
			if fd, _, err = unix.Accept4(l.fd, unix.SOCK_CLOEXEC); err == nil {
				_ = unix.Close(fd)
			}
		}
		if err != nil {
			return // nothing more
		}
		l.seen++
	}
}

// describe is all that is known about a file but the time of its last reading.
func describe(path string) (string, error) {
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	content := ""
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		raw, err := os.ReadFile(path)
		if err != nil && !errors.Is(err, fs.ErrPermission) {
			return "", err
		}
		content = fmt.Sprintf("%x %s", sha256.Sum256(raw), hint(path))
	case unix.S_IFLNK:
		content, _ = os.Readlink(path)
	}
	names := make([]byte, 1024)
	n, err := unix.Llistxattr(path, names)
	if err != nil {
		n = 0
	}
	return fmt.Sprintf("mode %o, owner %d:%d, %d links, inode %d, size %d, changed %d.%09d and %d.%09d, attributes %q, %s",
		st.Mode, st.Uid, st.Gid, st.Nlink, st.Ino, st.Size, st.Mtim.Sec, st.Mtim.Nsec, st.Ctim.Sec, st.Ctim.Nsec,
		names[:n], content), nil
}

// hint is how long the data of a file is said to live, which its owner may tell the kernel.
func hint(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }() // nothing was written
	var life uint64
	_, _, _ = syscall.Syscall(unix.SYS_FCNTL, f.Fd(), unix.F_GET_RW_HINT,
		uintptr(unsafe.Pointer(&life))) // 0 if there is none
	return strconv.FormatUint(life, 10)
}

// strays are the files that commands try to create in places that all programs share.
func (w *world) strays() []string {
	var out []string
	home, err := os.UserHomeDir()
	if err != nil {
		home = "/"
	}
	for _, dir := range []string{os.TempDir(), "/tmp", "/var/tmp", "/dev/shm", "/run", "/dev", "/", home} {
		found, _ := filepath.Glob(filepath.Join(dir, "x-"+w.mark+"*")) // the pattern is valid
		out = append(out, found...)
	}
	return out
}

// process describes the sentinel, and lists processes that are still there.
func (w *world) process() string {
	var b strings.Builder
	dir := filepath.Join("/proc", strconv.Itoa(w.sentinel.Process.Pid))
	status, _ := os.ReadFile(filepath.Join(dir,
		"status")) // before its state: a signal is pending until it has an effect
	stat, err := os.ReadFile(filepath.Join(dir, "stat"))
	if err != nil {
		return "the sentinel is gone\n"
	}
	// The fields that another process can change: state, priority, nice value, scheduler.
	f := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	if f[0] == "R" || f[0] == "D" {
		f[0] = "S" // it has just been started
	}
	fmt.Fprintf(&b, "the sentinel: %s %s %s %s %s", f[0], f[15], f[16], f[37], f[38])
	for line := range strings.Lines(string(status)) {
		if name, value, _ := strings.Cut(line, ":"); name == "SigPnd" || name == "ShdPnd" {
			b.WriteString(" " + strings.TrimSpace(value))
		}
	}
	for _, name := range []string{"oom_score_adj", "limits", "comm", "cgroup"} {
		raw, _ := os.ReadFile(filepath.Join(dir, name))
		fmt.Fprintf(&b, " %x", sha256.Sum256(raw))
	}
	b.WriteString("\n")
	for _, p := range w.left() {
		text, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(p), "cmdline"))
		fmt.Fprintf(&b, "process %d is still there: %q\n", p, text)
	}
	return b.String()
}

// left are the processes of commands that are still there.
func (w *world) left() (out []int) {
	all, _ := os.ReadDir("/proc")
	for _, e := range all {
		p, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		env, err := os.ReadFile(filepath.Join("/proc", e.Name(), "environ"))
		if err == nil && strings.Contains(string(env), "EFFECTS="+w.mark) {
			out = append(out, p)
		}
	}
	return out
}

// kernelObjects lists shared memory, semaphores, queues and keys of the commands, and those of the world.
func (w *world) kernelObjects() string {
	var b strings.Builder
	for _, name := range []string{"shm", "sem", "msg"} {
		raw, _ := os.ReadFile(filepath.Join("/proc/sysvipc", name))
		for line := range strings.Lines(string(raw)) {
			f := strings.Fields(line)
			if f[0] == strconv.Itoa(w.key) || f[1] == strconv.Itoa(w.shared[name]) {
				fmt.Fprintf(&b, "%s %s", name, line)
			}
		}
	}
	if keys, _ := os.ReadFile("/proc/keys"); strings.Contains(string(keys), "x-"+w.mark) {
		b.WriteString("there is a key\n")
	}
	for _, name := range []string{"x-", "keep-"} {
		if errno := w.queue(unix.SYS_MQ_OPEN, name, unix.O_RDONLY|unix.O_CLOEXEC); errno == 0 {
			fmt.Fprintf(&b, "there is a message queue %s\n", name)
		}
	}
	return b.String()
}

// difference lists what is new in after, or else what is missing there.
func difference(before, after string) string {
	if before == after {
		return ""
	}
	var b strings.Builder
	only := func(sign, text, than string) {
		for line := range strings.Lines(text) {
			if !strings.Contains("\n"+than, "\n"+line) {
				b.WriteString(sign + line)
			}
		}
	}
	only("- ", before, after)
	only("+ ", after, before)
	return b.String()
}
