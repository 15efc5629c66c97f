package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/zephbot/zephbot/policy/reason"
	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/mcp/guard"
	"github.com/zephbot/zephbot/tools/shell/sandbox"
)

const (
	writeLimit = 10 * time.Second       // for a server to read what we send
	termGrace  = time.Second            // between closing the input, SIGTERM and SIGKILL
	drainLimit = 500 * time.Millisecond // for what a dead process left in its pipes
)

// process is a server that we started. Everything that it starts ends with it, whatever its process group, and it ends
// with us.
type process struct {
	run    *sandbox.Piped
	stdin  *os.File
	stdout *frames
	stderr *stderrLog

	exited  chan struct{} // closed when it is reaped and its process tree has ended
	wg      sync.WaitGroup
	stopOne sync.Once
}

// startProcess starts the server's program and returns the transport to it.
func (s *server) startProcess(ctx context.Context, c *conn) (sdk.Transport, error) {
	refuse := func(err error) error {
		refused := guard.Refused(s.cfg.ID, "", reason.New(reason.OfThisServer, s.cfg.ID).With(reason.OfError(err)))
		refused.Err = err
		return refused
	}
	o := s.m.o
	if s.dynamic && !o.ChatCommands {
		return nil, refuse(reason.Err(reason.ProgramsFromChat))
	}
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
	if names := guard.Withheld(o.Environ); len(names) > 0 && !isolated {
		s.log.Debug().Strs("names", names).
			Msg("the mcp server does not get these variables; name in its env what it needs")
	}
	path, err := lookPath(s.cfg.Command, env)
	if err != nil {
		return nil, refuse(err)
	}
	dir, err := s.workDir()
	if err != nil {
		return nil, err
	}
	if s.cfg.isConfined(o) {
		if env, err = privateEnv(env, dir, configured); err != nil {
			return nil, err
		}
	}
	p, err := s.launchProcess(ctx, c.sandboxSpec(path, dir, env))
	if err != nil {
		refused := guard.Refused(s.cfg.ID, "", reason.New(reason.ProgramUnstarted, s.cfg.Command, s.cfg.ID))
		refused.Err = err
		return nil, refused
	}
	c.proc = p
	p.stdout.see = c.tasks.inspectMessage // nobody reads yet, so this does not race
	return &sdk.IOTransport{Reader: p.stdout, Writer: stdinWriter{p.stdin}, MaxLineLength: o.MaxMessage + 4096}, nil
}

// callerOf returns the value of ${caller}: the person, or the bot itself for the connection that only lists the tools.
func (s *server) callerOf(origin tools.Origin) string {
	if origin.Caller != "" {
		return origin.Caller
	}
	return "zephbot"
}

// lookPath finds a program in the PATH that it will run with. Entries that are not absolute are skipped.
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
	return "", reason.Err(reason.ProgramMissing, name)
}

// workDir returns the directory of the process, its home. Each server has one of its own, so that servers do not find
// each other's files by accident. It starts there, unless Dir says otherwise.
func (s *server) workDir() (string, error) {
	if s.m.o.WorkDir == "" {
		return cmp.Or(s.cfg.Dir, os.TempDir()), nil
	}
	dir := filepath.Join(s.m.o.WorkDir, dirName(s.cfg.ID))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("make the working directory of server %s: %w", s.cfg.ID, err)
	}
	return dir, nil
}

// dirName makes an id usable as the name of a directory: "." and ".." are valid ids too.
func dirName(id string) string {
	if id == "." || id == ".." {
		return "_" + id
	}
	return id
}

// launchProcess starts the process.
func (s *server) launchProcess(ctx context.Context, spec sandbox.Spec) (*process, error) {
	// it lives as long as the connection, not as long as the attempt
	run, err := sandbox.StartPiped(context.WithoutCancel(ctx), spec)
	if err != nil {
		return nil, err
	}
	p := &process{
		run: run, stdin: run.Stdin, exited: make(chan struct{}),
		stdout: newFrames(run.Stdout, s.m.o.MaxMessage, s.m.o.Now, s.log),
		stderr: &stderrLog{r: run.Stderr, done: make(chan struct{}), redact: s.m.o.Redact, now: s.m.o.Now, log: s.log},
	}
	p.wg.Go(p.stderr.readLines)
	p.wg.Go(p.reapTree)
	return p, nil
}

// reapTree waits for the process tree to end and lets the readers finish.
func (p *process) reapTree() {
	<-p.run.Done()
	deadline := time.Now().Add(drainLimit) // files only; a process that could not be killed may keep the pipe open
	_ = p.stdout.setDeadline(deadline)
	if p.stderr.r.SetReadDeadline(deadline) != nil {
		_ = p.stderr.r.Close() // this kind of reader has no deadlines
	}
	<-p.stderr.done // its last output says why it ended
	close(p.exited)
}

// stopTree ends the process and its whole tree: it closes the input, then sends SIGTERM, then SIGKILL.
// It returns when all have ended.
func (p *process) stopTree() {
	p.stopOne.Do(func() {
		_ = p.stdin.Close()
		t := time.NewTimer(termGrace)
		defer t.Stop()
		select {
		case <-p.exited:
		case <-t.C:
			p.run.Stop()
		}
		<-p.exited
		_ = p.stdout.Close()
	})
	p.wg.Wait()
}

// explainExit returns how the process ended and the last thing it printed, or what was wrong with its output.
func (p *process) explainExit(err error) error {
	if fault := p.stdout.firstFault(); fault != nil {
		return fault
	}
	if !isPipeEnd(err) {
		return err
	}
	t := time.NewTimer(closeLimit) // its output ended, so the process is about to
	defer t.Stop()
	select {
	case <-p.exited:
	case <-t.C:
		return err
	}
	text := "its program ended (" + exitText(p.run.Status()) + ")"
	if last := p.stderr.bestLine(); last != "" {
		text += "; it said: " + last
	}
	return &guard.Error{Code: guard.Transient, Message: text, Err: &exitError{err}}
}

// exitError means that the program of a server ended.
type exitError struct{ cause error }

func (e *exitError) Error() string { return "its program ended: " + e.cause.Error() }
func (e *exitError) Unwrap() error { return e.cause }

// exitText returns how a program ended, in words.
func exitText(s sandbox.Status) string {
	switch {
	case s.Err != nil || s.Vanished:
		return s.Why()
	case s.Signal != "":
		return "signal: " + s.Signal
	}
	return fmt.Sprintf("exit status %d", s.Code)
}

// isPipeEnd reports whether an error means that the other end of a pipe is closed.
func isPipeEnd(err error) bool {
	for _, e := range []error{io.EOF, os.ErrClosed, syscall.EPIPE, sdk.ErrConnectionClosed, errClosed} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// stdinWriter limits how long a server may leave our messages unread. A full pipe would block every call.
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
