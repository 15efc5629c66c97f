package sandbox_test

import (
	"bufio"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"testing"

	"github.com/zephbot/zephbot/tools/shell/sandbox"
)

// TestPiped talks to a process over its streams, and ends it in the three ways there are.
func TestPiped(t *testing.T) {
	t.Parallel()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash on this machine")
	}
	const echo = `while read -r line; do echo "got $line"; echo "heard $line" >&2; done; exit 9`
	for _, helper := range []string{sandbox.Self, ""} {
		for end, want := range map[string]string{"input": "exit code 9", "stop": "killed by signal: terminated", "exit": "exit code 0"} {
			t.Run(fmt.Sprintf("%s helper %q", end, helper), func(t *testing.T) {
				t.Parallel()
				text := echo
				if end == "exit" {
					left := "600"
					if helper == "" { // nobody ends it
						left = "5"
					}
					text = `read -r line; echo "got $line"; echo "heard $line" >&2; setsid sleep ` + left + ` & exit 0`
				}
				p, err := sandbox.StartPiped(t.Context(), sandbox.Spec{
					Helper: helper, Dir: t.TempDir(), Argv: []string{bash, "-c", text}, Env: []string{"PATH=/usr/bin:/bin"}, Linger: -1, Off: helper == "",
				})
				if err != nil {
					t.Fatal(err)
				}
				if _, err := io.WriteString(p.Stdin, "hello\n"); err != nil {
					t.Fatal(err)
				}
				out, errs := bufio.NewReader(p.Stdout), bufio.NewReader(p.Stderr)
				for r, want := range map[*bufio.Reader]string{out: "got hello\n", errs: "heard hello\n"} {
					if line, err := r.ReadString('\n'); err != nil || line != want {
						t.Errorf("%q %v, want %q", line, err, want)
					}
				}
				switch end {
				case "input":
					_ = p.Stdin.Close()
				case "stop":
					p.Stop()
				}
				<-p.Done()
				if got := p.Status().Why(); got != want {
					t.Errorf("it ended by %q, want %q", got, want)
				}
				if helper != "" { // without a helper, a process in another session is lost
					if rest, err := io.ReadAll(out); err != nil || len(rest) > 0 {
						t.Errorf("afterwards %q %v, want the end", rest, err)
					}
				}
				if err := p.Close(); err != nil && !strings.Contains(err.Error(), "already closed") {
					t.Error(err)
				}
			})
		}
	}
}

func TestPipedRefuses(t *testing.T) {
	t.Parallel()
	if _, err := sandbox.StartPiped(t.Context(), sandbox.Spec{}); err == nil {
		t.Error("nothing to run was started")
	}
}
