package mcp

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/mcp/guard"
)

const (
	writeLimit = 10 * time.Second       // for a server to read what we send it
	termGrace  = time.Second            // between one way of ending a process and the next, harder one
	drainLimit = 500 * time.Millisecond // for what a dead process has left in its pipes
)

// process is a server that we have started, in a process group of its own.
type process struct {
	cmd    *exec.Cmd
	stdin  *os.File
	stdout *frames
	stderr *stderrLog

	exited  chan struct{} // it is reaped, and its group is gone
	wg      sync.WaitGroup
	stopOne sync.Once
}

// startProcess starts the server's program and gives the transport to it.
func (s *server) startProcess(c *conn) (sdk.Transport, error) {
	refuse := func(err error) error {
		return &guard.Error{Code: guard.PolicyBlocked, Server: s.cfg.ID, Message: "server " + s.cfg.ID + ": " + err.Error(), Err: err}
	}
	o := s.m.o
	if err := guard.Command(s.cfg.Command, o.AllowedCommands); err != nil {
		return nil, refuse(err)
	}
	configured, err := guard.Interpolate(s.cfg.Env, s.callerOf(c.origin))
	if err != nil {
		return nil, refuse(err)
	}
	isolated := o.EnvIsolation
	if s.cfg.EnvIsolation != nil {
		isolated = *s.cfg.EnvIsolation
	}
	env, err := guard.Environment(o.Environ, configured, isolated)
	if err != nil {
		return nil, refuse(err)
	}
	path, err := lookPath(s.cfg.Command, env)
	if err != nil {
		return nil, refuse(err)
	}
	dir, err := s.workDir()
	if err != nil {
		return nil, err
	}
	cmd := &exec.Cmd{Path: path, Args: append([]string{s.cfg.Command}, s.cfg.Args...), Env: env, Dir: dir, SysProcAttr: ownGroup()}
	p, err := s.launch(cmd)
	if err != nil {
		return nil, &guard.Error{Code: guard.PolicyBlocked, Server: s.cfg.ID, Message: fmt.Sprintf("the program %s of server %s could not be started", s.cfg.Command, s.cfg.ID), Err: err}
	}
	c.proc = p
	p.stdout.see = c.tasks.see // nobody reads yet
	return &sdk.IOTransport{Reader: p.stdout, Writer: stdinWriter{p.stdin}, MaxLineLength: o.MaxMessage + 4096}, nil
}

// callerOf is what ${caller} stands for: the person, or for the connection that only lists the tools, the bot itself.
func (s *server) callerOf(origin tools.Origin) string {
	if origin.Caller != "" {
		return origin.Caller
	}
	return "zephbot"
}

// lookPath finds a program in the PATH that it will run with; an entry that is not absolute is passed over.
func lookPath(name string, env []string) (string, error) {
	for _, kv := range env {
		const key = "PATH="
		if len(kv) < len(key) || kv[:len(key)] != key {
			continue
		}
		for _, dir := range filepath.SplitList(kv[len(key):]) {
			if !filepath.IsAbs(dir) {
				continue
			}
			if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
				return path, nil
			}
		}
	}
	return "", fmt.Errorf("command %s was not found in PATH; install it or correct the configuration", name)
}

// workDir is the directory the process starts in: an own one, so that servers do not find each other's files by chance.
func (s *server) workDir() (string, error) {
	if s.cfg.Dir != "" {
		return s.cfg.Dir, nil
	}
	if s.m.o.WorkDir == "" {
		return os.TempDir(), nil
	}
	dir := filepath.Join(s.m.o.WorkDir, dirName(s.cfg.ID))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("make the working directory of server %s: %w", s.cfg.ID, err)
	}
	return dir, nil
}

// dirName makes an id fit for a directory: "." and ".." are ids too.
func dirName(id string) string {
	if id == "." || id == ".." {
		return "_" + id
	}
	return id
}

// launch starts the process. The goroutine that does it keeps its thread until the process is gone: where the kernel can end a child with its parent,
// the parent is that thread.
func (s *server) launch(cmd *exec.Cmd) (*process, error) {
	var files []*os.File
	pipe := func() (r, w *os.File, err error) {
		r, w, err = os.Pipe()
		if err == nil {
			files = append(files, r, w)
		}
		return r, w, err
	}
	inR, inW, err1 := pipe()
	outR, outW, err2 := pipe()
	errR, errW, err3 := pipe()
	if err := errors.Join(err1, err2, err3); err != nil {
		for _, f := range files {
			_ = f.Close()
		}
		return nil, err
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = inR, outW, errW
	p := &process{
		cmd: cmd, stdin: inW, exited: make(chan struct{}),
		stdout: newFrames(outR, s.m.o.MaxMessage, s.m.o.Now, s.log), stderr: &stderrLog{r: errR, done: make(chan struct{}), redact: s.m.o.Redact, now: s.m.o.Now, log: s.log},
	}
	started := make(chan error, 1)
	p.wg.Go(func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		_, _, _ = inR.Close(), outW.Close(), errW.Close() // the child has them now
		started <- err
		if err != nil {
			return
		}
		p.reap()
	})
	if err := <-started; err != nil {
		_, _, _ = inW.Close(), outR.Close(), errR.Close()
		p.wg.Wait()
		return nil, err
	}
	p.wg.Go(p.stderr.run)
	return p, nil
}

// reap waits for the process, takes the rest of its group with it, and lets the readers come to an end.
func (p *process) reap() {
	reapGroup(p.cmd)
	deadline := time.Now().Add(drainLimit) // of a file; a process that has left its group may keep the pipe open
	_ = p.stdout.setDeadline(deadline)
	if p.stderr.r.SetReadDeadline(deadline) != nil {
		_ = p.stderr.r.Close() // there are no deadlines here
	}
	<-p.stderr.done // its last words say why it ended
	close(p.exited)
}

// stop ends the process and everything in its group: first by closing its input, then with SIGTERM, then with SIGKILL. It returns when they are gone.
func (p *process) stop() {
	p.stopOne.Do(func() {
		_ = p.stdin.Close()
		for _, end := range []func(int){termGroup, killGroup} {
			t := time.NewTimer(termGrace)
			select {
			case <-p.exited:
			case <-t.C:
				end(p.cmd.Process.Pid)
			}
			t.Stop()
		}
		<-p.exited
		_ = p.stdout.Close()
	})
	p.wg.Wait()
}

// explain says how the process ended, when it has, and what it printed last; or what was wrong with its output.
func (p *process) explain(err error) error {
	if fault := p.stdout.fault(); fault != nil {
		return fault
	}
	if !ended(err) {
		return err
	}
	t := time.NewTimer(closeLimit) // its output ended, so it is about to
	defer t.Stop()
	select {
	case <-p.exited:
	case <-t.C:
		return err
	}
	text := "its program ended"
	if st := p.cmd.ProcessState; st != nil {
		text += " (" + st.String() + ")"
	}
	if last := p.stderr.last(); last != "" {
		text += "; it said: " + last
	}
	return &guard.Error{Code: guard.Transient, Message: text, Err: err}
}

// ended says whether an error means that the other end of a pipe is gone.
func ended(err error) bool {
	for _, e := range []error{io.EOF, os.ErrClosed, syscall.EPIPE, sdk.ErrConnectionClosed, errClosed} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// stdinWriter bounds how long a server may leave what we send unread: a full pipe would hold every call.
type stdinWriter struct {
	f *os.File
}

// Write implements io.Writer.
func (w stdinWriter) Write(b []byte) (int, error) {
	if err := w.f.SetWriteDeadline(time.Now().Add(writeLimit)); err != nil && !errors.Is(err, os.ErrNoDeadline) {
		return 0, err
	}
	return w.f.Write(b)
}

// Close implements io.Closer.
func (w stdinWriter) Close() error { return w.f.Close() }
