package cli_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// pane is `zephbot chat` in a terminal of its own (tmux).
type pane struct {
	t   *testing.T
	dir string
	env []string
	nth int // server, one for each start: an ended one needs a moment to leave its socket
}

// tmux starts `zephbot chat` in a pane; env are more variables, as NAME=value.
func tmux(t *testing.T, env []string, args ...string) *pane {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		if os.Getenv("ZEPH_CI") != "" {
			t.Fatal(err)
		}
		t.Skip("there is no tmux")
	}
	p := &pane{t: t, dir: t.TempDir(), env: env}
	p.start(args...)
	t.Cleanup(func() { _ = p.tmux("kill-server").Run() }) // it may have ended with its last pane
	return p
}

// tmux returns a command to the server of this pane alone.
func (p *pane) tmux(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(context.WithoutCancel(p.t.Context()), "tmux", append([]string{"-S", filepath.Join(p.dir, "tmux"+strconv.Itoa(p.nth)), "-f", "/dev/null"}, args...)...)
	cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8", "TMUX=")
	return cmd
}

func (p *pane) do(args ...string) string {
	p.t.Helper()
	out, err := p.tmux(args...).CombinedOutput()
	if err != nil {
		p.t.Fatalf("tmux %v: %v: %s", args, err, out)
	}
	return string(out)
}

// start runs the program in a new pane of 80 columns and 24 rows. When it has ended, its exit code is shown, and
// whether the terminal is as it was.
func (p *pane) start(args ...string) {
	p.t.Helper()
	p.nth++
	work := filepath.Join(p.dir, "work")
	if err := os.MkdirAll(work, 0o700); err != nil {
		p.t.Fatal(err)
	}
	command := []string{"new-session", "-d", "-x", "80", "-y", "24", "-c", work}
	for _, v := range append([]string{
		"HOME=" + p.dir, "XDG_STATE_HOME=" + p.dir + "/state", "ZEPH_LLM_PROVIDERS_MAIN_TYPE=offline", "ZEPH_TOOLS_SHELL_SANDBOX=off",
		"ZEPH_TOOLS_SHELL_TIMEOUT=3600", "COLORTERM=", "NO_COLOR=",
	}, p.env...) {
		command = append(command, "-e", v)
	}
	command = append(command, "-e", asZephbot+"=1") // without it, the test binary would run its tests again
	cmd := zephbot(p.t, work, nil, append([]string{"chat"}, args...)...)
	script := fmt.Sprintf("cd %q; "+asZephbot+"=1 %s; echo ended $?; stty -a | grep -o -- '-*icanon'; sleep 1000", work, "'"+strings.Join(cmd.Args, "' '")+"'")
	p.do(append(command, script)...)
}

// screen returns what is visible, and with history what has scrolled away.
func (p *pane) screen() string { return p.do("capture-pane", "-p", "-S", "-200") }

// await waits until the screen shows a text, so many times.
func (p *pane) await(text string, times int) string {
	p.t.Helper()
	for end := time.Now().Add(time.Minute); ; <-time.After(50 * time.Millisecond) {
		got := p.screen()
		if strings.Count(got, text) >= times {
			return got
		}
		if time.Now().After(end) {
			p.t.Fatalf("%q is not shown %d times:\n%s", text, times, got)
		}
	}
}

// gone waits until the screen does not show a text any more.
func (p *pane) gone(text string) {
	p.t.Helper()
	for end := time.Now().Add(time.Minute); strings.Contains(p.screen(), text); <-time.After(50 * time.Millisecond) {
		if time.Now().After(end) {
			p.t.Fatalf("%q is still shown:\n%s", text, p.screen())
		}
	}
}

// keys presses named keys, as tmux calls them; text types a text.
func (p *pane) keys(names ...string) { p.do(append([]string{"send-keys"}, names...)...) }

func (p *pane) text(text string) { p.do("send-keys", "-l", text) }

func (p *pane) paste(text string) {
	p.do("set-buffer", text)
	p.do("paste-buffer", "-p", "-r")
}

const (
	promptHint = "/help lists the commands"
	chooseHint = "Esc denies"
)

// TestTerminalTalk: what is typed and pasted, completed and found again, in a terminal of any width.
func TestTerminalTalk(t *testing.T) {
	t.Parallel()
	p := tmux(t, nil)
	p.await(promptHint, 1)
	p.text("/sta")
	p.await("/status", 1)
	p.keys("Tab")
	p.await("> /status", 1)
	p.keys("C-u")
	p.paste("say hello\nto both")
	p.await("  to both", 1)
	p.keys("C-c") // clears the prompt, and does not leave
	p.gone("to both")
	p.text("what files are here?")
	p.keys("Enter")
	p.await("There ", 1)
	p.keys("Up")
	p.await("> what files are here?", 2)
	p.do("resize-window", "-x", "40", "-y", "15")
	p.text(" and some more words than fit")
	p.await("fit", 1)
	p.keys("C-c")
	p.gone("some more")
	p.keys("C-c")
	p.await("Press Ctrl-C again", 1)
	p.keys("C-c")
	if got := p.await("ended 0", 1); !strings.Contains(p.await("icanon", 1), "\nicanon") || strings.Contains(got, "again to leave") {
		t.Errorf("the terminal is not as it was:\n%s", p.screen())
	}
}

// TestTerminalApproval: a question is answered from its list, what was typed before it appeared is kept for the prompt,
// and the terminal is restored when the program is killed by a signal.
func TestTerminalApproval(t *testing.T) {
	t.Parallel()
	p := tmux(t, []string{"NO_COLOR=1"})
	p.await(promptHint, 1)
	p.do("send-keys", "-l", "run touch made.txt", ";", "send-keys", "Enter", ";", "send-keys", "-l", "yes please")
	got := p.await(chooseHint, 1)
	if !strings.Contains(got, "> yes please") || strings.Contains(got, "Approved") {
		t.Errorf("what was typed ahead:\n%s", got)
	}
	<-time.After(time.Second) // a person reads the question before they answer it
	p.await("Always", 1)      // who sits at the terminal may decide for good
	p.keys("Up", "Enter")
	p.await("Denied", 1)
	p.await("why?", 1)
	p.text("another name, please")
	p.keys("Enter")
	p.await("why? another name, please", 1)
	p.await("> yes please", 1)
	if _, err := os.Stat(filepath.Join(p.dir, "work", "made.txt")); err == nil {
		t.Error("the command ran")
	}
	if colours := p.do("capture-pane", "-p", "-e"); strings.Contains(colours, "\x1b[3") {
		t.Errorf("colours in spite of NO_COLOR: %q", colours)
	}
	pid := strings.Fields(p.do("list-panes", "-F", "#{pane_pid}"))[0]
	if out, err := exec.CommandContext(t.Context(), "pkill", "-HUP", "-P", pid).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	p.await("ended 129", 1)
	p.await("\nicanon", 1)
}

// TestTerminalAsked: what the model asks is answered with the keys of a list, or in words, and a mark stays where it was
// set.
func TestTerminalAsked(t *testing.T) {
	t.Parallel()
	p := tmux(t, []string{"NO_COLOR=1"})
	p.await(promptHint, 1)
	p.text("plan something")
	p.keys("Enter")
	p.await("What shall we plan?", 1)
	p.await("or write your answer", 1)
	<-time.After(time.Second) // a person reads the question before they answer it
	p.keys("Down", "Enter")
	p.await("→ A party", 1)
	p.await("Which day?", 1)
	<-time.After(time.Second)
	p.text("never")
	p.await("✎ never", 1)
	p.keys("Enter")
	p.await("I do not understand that as a day.", 1)
	<-time.After(time.Second)
	p.keys("Escape")
	p.paste("2030-12-24")
	p.await("✎ 2030-12-24", 1)
	p.keys("Enter")
	p.await("What do you need?", 1)
	<-time.After(time.Second)
	p.keys("Down", "Enter")
	p.await("☑ Music", 1)
	<-time.After(time.Second)
	p.text("and balloons")
	p.keys("Enter")
	got := p.await("This is the plan:", 1)
	for _, want := range []string{"What shall we plan? A party", "Which day? Tuesday, 24 December 2030", "What do you need? Music, and balloons"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not shown:\n%s", want, got)
		}
	}
}

// TestTerminalStop: Ctrl-C ends the turn and stays; the conversation goes on in the next process.
func TestTerminalStop(t *testing.T) {
	t.Parallel()
	p := tmux(t, []string{"ZEPH_SECURITY_AUTONOMY_LEVEL=full"})
	p.await(promptHint, 1)
	p.text("run sleep 3600")
	p.keys("Enter")
	p.await("Ctrl-C stops", 1)
	p.await("sleep 3600", 2)
	p.keys("C-c")
	p.await("Stopped", 1)
	p.text("write note.txt: buy milk")
	p.keys("Enter")
	p.await("I wrote note.txt.", 1)
	p.gone(" s · Ctrl-C stops") // while a turn runs, Ctrl-D does not leave
	p.keys("C-d")
	p.await("ended 0", 1)
	p.do("kill-server")
	p.start("--continue")
	p.await("Last said in this conversation", 1)
	p.await("write note.txt: buy milk", 1)
}

// TestTerminalWithoutModel: who has no model yet talks with the built-in one, and is told so.
func TestTerminalWithoutModel(t *testing.T) {
	t.Parallel()
	p := tmux(t, []string{"ZEPH_LLM_PROVIDERS_MAIN_TYPE=", "LC_ALL=de_DE.UTF-8"})
	p.await("Es ist kein Modell eingerichtet", 1)
	p.await("/help", 1)
	p.text("what files are here?")
	p.keys("Enter")
	p.await("There is nothing here yet", 1)
	p.gone(" s · ") // while a turn runs, Ctrl-D does not leave
	p.keys("C-d")
	p.await("ended 0", 1)
}

// TestTerminalShownRecap: who goes on with a conversation reads the recap as formatted text, below what was said last.
func TestTerminalShownRecap(t *testing.T) {
	t.Parallel()
	p := tmux(t, []string{"ZEPH_SESSION_RECAP_ON_RESUME=true", "FORCE_COLOR=1"})
	p.await(promptHint, 1)
	p.text("what files are here?")
	p.keys("Enter")
	p.await("There is nothing here yet", 1)
	p.text("what can you do?") // a single answer is not worth a recap
	p.keys("Enter")
	p.await("> what can you do?", 1)
	p.gone(" s · ")
	p.keys("C-d")
	p.await("ended 0", 1)
	p.do("kill-server")
	p.start("--continue")
	got := p.await("Recap of this conversation", 1)
	if strings.ContainsAny(got, "*`") || strings.Index(got, "Last said in this conversation") > strings.Index(got, "Recap of") {
		t.Errorf("the recap:\n%s", got)
	}
	colours := p.do("capture-pane", "-p", "-e", "-S", "-200")
	if _, recap, _ := strings.Cut(colours, "Last said"); !strings.Contains(recap, "\x1b[3mRecap of this conversation") {
		t.Errorf("the recap has no looks:\n%q", recap)
	}
}
