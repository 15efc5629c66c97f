package cli_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// patience is how long a test waits for what has to come; a busy machine is slow.
const patience = 2 * time.Minute

// heard collects what a process prints.
type heard struct {
	mu   sync.Mutex
	text bytes.Buffer
	stir chan struct{}
}

func newHeard() *heard { return &heard{stir: make(chan struct{})} }

func (h *heard) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.text.Write(p)
	close(h.stir)
	h.stir = make(chan struct{})
	return len(p), nil
}

func (h *heard) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.text.String()
}

// await waits until a text was printed behind the first from bytes, and returns where it ends.
func (h *heard) await(t *testing.T, text string, from int) int {
	t.Helper()
	limit := time.After(patience)
	for {
		h.mu.Lock()
		all, stir := h.text.String(), h.stir
		h.mu.Unlock()
		if i := strings.Index(all[min(from, len(all)):], text); i >= 0 {
			return from + i + len(text)
		}
		select {
		case <-stir:
		case <-limit:
			t.Fatalf("waited for %q; printed: %q", text, all)
		}
	}
}

// zephbot is the program as a process of its own, working in dir.
func zephbot(t *testing.T, dir string, env []string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), os.Args[0], args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), append(env, asZephbot+"=1", "HOME="+dir)...)
	return cmd
}

// ended waits for the end of a process and returns its exit code.
func ended(t *testing.T, cmd *exec.Cmd) int {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = cmd.Wait() // the exit code says it
	}()
	select {
	case <-done:
	case <-time.After(patience):
		_ = cmd.Process.Kill() // it is a failure already
		<-done
		t.Fatal("the process does not end")
	}
	return cmd.ProcessState.ExitCode()
}

// keyboard is a pseudo terminal with a process on it.
type keyboard struct {
	*heard
	cmd    *exec.Cmd
	master *os.File
	wg     sync.WaitGroup
}

// sit starts a process on a terminal of its own.
func sit(t *testing.T, cmd *exec.Cmd) *keyboard {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	cmd.Env = append(cmd.Env, "TERM=xterm")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = slave.Close() // the process has it
	k := &keyboard{heard: newHeard(), cmd: cmd, master: master}
	k.wg.Go(func() { _, _ = io.Copy(k, master) }) // ends with EIO when the last process has left
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it has ended, or the test has failed
		k.wg.Wait()
		_ = master.Close()
	})
	return k
}

func (k *keyboard) press(t *testing.T, keys string) {
	t.Helper()
	if _, err := k.master.WriteString(keys); err != nil {
		t.Fatal(err)
	}
}

const ctrlC = "\x03"

// slowEnv lets a turn run for longer than any test waits.
func slowEnv() []string {
	return []string{"ZEPH_LLM_PROVIDERS_MAIN_TYPE=offline", "ZEPH_SECURITY_AUTONOMY_LEVEL=full", "ZEPH_TOOLS_SHELL_TIMEOUT=3600"}
}

// TestInterrupt: Ctrl-C ends the running turn and not the program; at the prompt it ends the program.
func TestInterrupt(t *testing.T) {
	t.Parallel()
	k := sit(t, zephbot(t, t.TempDir(), slowEnv(), "chat", "--plain"))
	at := k.await(t, "> ", 0)
	k.press(t, "run sleep 3600\n")
	at = k.await(t, "· bash", at)
	k.press(t, ctrlC)
	at = k.await(t, "\n> ", at)
	k.press(t, "hello\n")
	at = k.await(t, "built-in", at)
	k.await(t, "> ", at)
	k.press(t, ctrlC)
	if code := ended(t, k.cmd); code != 0 {
		t.Errorf("exit %d: %q", code, k.String())
	}
}

// TestInterruptQuestion: Ctrl-C at a question ends the turn, and what was asked about does not run.
func TestInterruptQuestion(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	k := sit(t, zephbot(t, dir, []string{"ZEPH_LLM_PROVIDERS_MAIN_TYPE=offline"}, "chat", "--plain"))
	at := k.await(t, "> ", 0)
	k.press(t, "run touch made.txt\n")
	at = k.await(t, "and why): ", at)
	k.press(t, ctrlC)
	k.await(t, "\n> ", at)
	k.press(t, ctrlC)
	if code := ended(t, k.cmd); code != 0 {
		t.Errorf("exit %d: %q", code, k.String())
	}
	if _, err := os.Stat(filepath.Join(dir, "made.txt")); err == nil {
		t.Error("the command ran")
	}
}

// TestAlwaysLineByLine: without a screen, a rule is chosen by the numbers of its buttons, shown before it is stored, and
// not stored after a no; also in a conversation to which a file was attached, whose text nobody there has written.
func TestAlwaysLineByLine(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "note.txt"), []byte("buy milk\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	k := sit(t, zephbot(t, dir, []string{"ZEPH_LLM_PROVIDERS_MAIN_TYPE=offline", "ZEPH_TOOLS_SHELL_SANDBOX=off"}, "chat", "--plain"))
	at := k.await(t, "> ", 0)
	k.press(t, "what does @note.txt say?\n")
	at = k.await(t, "\n> ", at)
	k.press(t, "run touch made.txt\n")
	at = k.await(t, "[1] Always…, [y] once", at)
	k.press(t, "1\n")
	at = k.await(t, "[1] Exactly this", at)
	k.press(t, "1\n")
	at = k.await(t, "[1] Store it, [2] Only 10 more times, [3] Back: ", at)
	k.press(t, "y\n") // this card has no yes
	at = k.await(t, "[1] Store it, [2] Only 10 more times, [3] Back: ", at)
	k.press(t, "n\n")
	at = k.await(t, "[1] Exactly this", at)
	k.press(t, "1\n")
	at = k.await(t, "[1] Store it, [2] Only 10 more times, [3] Back: ", at)
	if _, err := os.Stat(filepath.Join(dir, "made.txt")); err == nil {
		t.Error("the command ran before anybody decided")
	}
	k.press(t, "1\n")
	at = k.await(t, "\n> ", at)
	if _, err := os.Stat(filepath.Join(dir, "made.txt")); err != nil {
		t.Errorf("%v: %s", err, k.String())
	}
	before := strings.Count(k.String(), "May I run")
	k.press(t, "run touch made.txt\n")
	at = k.await(t, "\n> ", at)
	if after := strings.Count(k.String(), "May I run"); after != before {
		t.Errorf("asked again: %s", k.String()[at-1000:])
	}
	k.press(t, "\x04")
	if code := ended(t, k.cmd); code != 0 {
		t.Errorf("exit %d: %q", code, k.String())
	}
}

// TestInterruptOnce: with --once the end of the turn is the end of the program.
func TestInterruptOnce(t *testing.T) {
	t.Parallel()
	k := sit(t, zephbot(t, t.TempDir(), slowEnv(), "chat", "--once", "run sleep 3600"))
	k.await(t, "· bash", 0)
	k.press(t, ctrlC)
	k.await(t, "Stopped", 0)
	if code := ended(t, k.cmd); code != 1 || strings.Contains(k.String(), "zephbot: ") {
		t.Errorf("exit %d: %q", code, k.String())
	}
}

// TestOneProcessADirectory: a second process of the same kind is refused in one line that names the first, and the
// first goes on.
func TestOneProcessADirectory(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		mode  string
		args  []string
		ready string
		env   []string
	}{
		{mode: "simulate", args: []string{"simulate"}, ready: "simulator: http"},
		{mode: "chat", args: []string{"chat", "--plain"}, ready: "> "},
		{mode: "serve", args: []string{"serve"}, ready: "not reachable", env: []string{"ZEPH_TELEGRAM_TOKEN=123456:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", "ZEPH_TELEGRAM_API_URL=http://127.0.0.1:1"}},
	} {
		t.Run(c.mode, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			env := append([]string{"ZEPH_LLM_PROVIDERS_MAIN_TYPE=offline", "ZEPH_DATA_DIR=" + filepath.Join(dir, "state")}, c.env...)
			first := sit(t, zephbot(t, dir, env, c.args...))
			first.await(t, c.ready, 0)
			second := zephbot(t, dir, env, c.args...)
			said := newHeard()
			second.Stdout, second.Stderr = said, said
			if err := second.Start(); err != nil {
				t.Fatal(err)
			}
			code := ended(t, second)
			var lines []string
			for line := range strings.Lines(said.String()) {
				if strings.HasPrefix(line, "zephbot: ") {
					lines = append(lines, line)
				}
			}
			want := fmt.Sprintf("(process %d, zephbot %s)", first.cmd.Process.Pid, c.mode)
			if code != 1 || len(lines) != 1 || !strings.Contains(lines[0], want) || !strings.Contains(lines[0], "--data-dir") {
				t.Errorf("exit %d, %q, want %s", code, said, want)
			}
			if c.mode == "simulate" {
				at := strings.Index(first.String(), "http://")
				url, _, _ := strings.Cut(first.String()[at:], "\r")
				resp, err := http.Get(url) //nolint:noctx // a loopback page
				if err != nil {
					t.Fatal(err)
				}
				_ = resp.Body.Close() // not read
			}
			first.press(t, ctrlC)
			if code := ended(t, first.cmd); code != 0 {
				t.Errorf("the first: exit %d: %q", code, first)
			}
		})
	}
}

// TestSimulatorWarnsOnce: the simulator and the bot that it starts say together, once, what is strange.
func TestSimulatorWarnsOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	k := sit(t, zephbot(t, dir, []string{"ZEPH_DATA_DIR=" + filepath.Join(dir, "state"), "ZEPH_SOMETHING_ELSE_ALTOGETHER=1"}, "simulate"))
	k.await(t, "connected to Telegram", 0)
	k.press(t, ctrlC)
	if code := ended(t, k.cmd); code != 0 || strings.Count(k.String(), "ZEPH_SOMETHING_ELSE_ALTOGETHER: names") != 1 {
		t.Errorf("exit %d: %q", code, k.String())
	}
}
