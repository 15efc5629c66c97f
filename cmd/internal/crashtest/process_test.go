//go:build unix

package crashtest_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
)

// child is a running bot process.
type child struct {
	cmd    *exec.Cmd
	stdin  io.Closer     // the process ends when it closes
	stdout io.Reader     // its report
	log    fmt.Stringer  // its log
	news   chan struct{} // signals that it has committed something
	report *lines        // a line a change
	heard  func(string)  // takes the lines of the report instead of it; nil = nothing does
	exited chan struct{} // closed when err is set
	err    error
}

// lines is a text that can be read while it is written.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// newChild prepares a bot process with the environment that all processes share and variables of its own. It logs to
// log.
func newChild(ctx context.Context, home string, env []string, log interface {
	io.Writer
	fmt.Stringer
},
) (*child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := &child{log: log, report: &lines{}, news: make(chan struct{}, 1), exited: make(chan struct{})}
	c.cmd = exec.CommandContext(context.WithoutCancel(ctx), self)
	c.cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + os.TempDir(), "HOME=" + home, childVariable + "=1"}, env...)
	c.cmd.Stderr = log
	if c.stdin, err = c.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	c.stdout, err = c.cmd.StdoutPipe()
	return c, err
}

// begin starts the process. It ends with the test at the latest.
func (c *child) begin(t *testing.T) error {
	if err := c.cmd.Start(); err != nil {
		return err
	}
	go c.watch()
	t.Cleanup(func() { // it has already ended, unless the run failed
		_ = c.stdin.Close()
		_ = c.cmd.Process.Kill()
		<-c.exited
	})
	return nil
}

// watch reads the process's report and waits for its end.
func (c *child) watch() {
	for in := bufio.NewScanner(c.stdout); in.Scan(); {
		if c.heard != nil {
			c.heard(in.Text())
			continue
		}
		_, _ = fmt.Fprintln(c.report, in.Text())
		select {
		case c.news <- struct{}{}:
		default:
		}
	}
	c.err = c.cmd.Wait()
	close(c.exited)
}

// killed reports whether the process ended by SIGKILL.
func (c *child) killed() bool { return c.ended(syscall.SIGKILL) }

// ended reports whether the process ended by a signal.
func (c *child) ended(by syscall.Signal) bool {
	status, ok := c.cmd.ProcessState.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == by
}

// end ends the process as a deployment does and waits for it.
func (c *child) end(ctx context.Context) error {
	_ = c.cmd.Process.Signal(syscall.SIGTERM) // it may have ended already: then its exit code says more
	select {
	case <-c.exited:
		return c.err
	case <-ctx.Done():
		return errors.New("the process does not end")
	}
}
