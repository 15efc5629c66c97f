package apptest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime/pprof"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/cmd/internal/app"
	"github.com/zephbot/zephbot/cmd/internal/config"
)

// process is one process of the service.
type process struct {
	name   string             // of its data_dir
	off    time.Duration      // how far its clock is ahead of the scene's
	told   bool               // was told to stop
	cancel context.CancelFunc // nil: it is not running
	done   chan error
}

// alone is the only process of a service.
func alone() []*process { return []*process{{name: "data"}} }

// start starts the processes that are not running, with the scene's state.
func (s *scene) start() {
	for _, p := range s.processes {
		if p.cancel == nil {
			s.launch(p)
		}
	}
	if s.pair != nil {
		if err := s.wait(func() (bool, error) { return s.pair.listening() == len(s.processes), nil }); err != nil {
			s.t.Fatalf("start: %v\n%s", err, s.dump())
		}
	}
}

// launch starts one process.
func (s *scene) launch(p *process) {
	cfg, err := config.Load(config.Source{Tools: app.Tools(), File: s.configure(p), WorkDir: s.dir, Home: s.dir})
	if err != nil {
		s.t.Fatalf("config: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	p.told, p.cancel, p.done = false, cancel, make(chan error, 1)
	log := zerolog.New(&s.log).With().Timestamp()
	opts := app.Options{
		Config: cfg, Version: "v0.0.0-scenario", WorkDir: s.dir, Provider: s.model, Internet: s.web.internet(),
		Now: func() time.Time { return s.clock.now().Add(p.off) },
	}
	if s.server != nil {
		opts.Provider = nil
	}
	switch {
	case s.pair != nil:
		log = log.Str("process", p.name)
		opts.Listen = func(ctx context.Context, _ string) (net.Listener, error) { return s.pair.listen(ctx, p.name) }
	case s.front != nil:
		opts.Listen = func(context.Context, string) (net.Listener, error) { return s.front.Listen(), nil }
	}
	opts.Listen = s.hooks.listening(p.name, opts.Listen)
	opts.Log = log.Logger()
	pprof.Do(ctx, pprof.Labels(sceneLabel, s.t.Name()), func(ctx context.Context) {
		go func() { p.done <- app.Serve(ctx, opts) }()
	})
}

// configure writes the configuration of a process.
func (s *scene) configure(p *process) (file string) {
	hook := ""
	switch {
	case s.pair != nil:
		hook = hookURL
	case s.front != nil:
		hook = s.front.URL("/updates")
	}
	text := fmt.Sprintf(base, filepath.Join(s.dir, p.name), s.fake.Token(), s.url, hook, s.databaseURL)
	if s.pair != nil {
		text += fmt.Sprintf(sharing, s.pair.RedisURL, s.files())
	}
	if s.server != nil {
		// Scenarios say what their models cost.
		text += Provider(s.server, s.vendor.Preset)
		if s.server.Toolless() { // or the owner is told of it in the middle of a scenario
			text += "tool_use = false\n"
		}
		text += "input_usd_per_mtok = 0.0\noutput_usd_per_mtok = 0.0\n"
	}
	file = filepath.Join(s.dir, "zephbot-"+p.name+".toml")
	if err := os.WriteFile(file, []byte(merge(text, s.extra+s.mediaConfig)), 0o600); err != nil {
		s.t.Fatal(err)
	}
	if rules, ok := s.parts[rulesFile]; ok {
		if err := os.WriteFile(filepath.Join(s.dir, rulesFile), []byte(rules), 0o600); err != nil {
			s.t.Fatal(err)
		}
	}
	return file
}

// files returns the directory of the workspaces.
func (s *scene) files() string {
	if s.pair != nil {
		return filepath.Join(s.dir, "files")
	}
	return filepath.Join(s.dir, "data", "workspaces")
}

// fallen returns the end of a process that was not told to stop; nil = there is none.
func (s *scene) fallen() error {
	for _, p := range s.processes {
		if p.cancel == nil || p.told {
			continue
		}
		select {
		case err := <-p.done:
			p.done <- err
			return fmt.Errorf("the service has ended: %w", errors.Join(err, errors.New("nobody stopped it")))
		default:
		}
	}
	return nil
}

// runs says whether a process runs.
func (s *scene) runs() bool {
	for _, p := range s.processes {
		if p.cancel != nil {
			return true
		}
	}
	return false
}

// stopping tells a process to stop, like SIGTERM.
func (p *process) stopping() {
	p.told = true
	p.cancel()
}

// halt stops processes and returns how they ended.
func (s *scene) halt(list ...*process) error {
	if s.db != nil {
		if err := s.db.Close(); err != nil {
			return err
		}
		s.db = nil
	}
	var errs []error
	for _, p := range list {
		if p.cancel != nil {
			p.stopping()
		}
	}
	for _, p := range list {
		if p.cancel == nil {
			continue
		}
		select {
		case err := <-p.done:
			p.cancel = nil
			errs = append(errs, err)
		case <-time.After(patience):
			errs = append(errs, errors.New("the service does not stop"))
		}
	}
	return errors.Join(errs...)
}

func (s *scene) close() {
	// the error that the command line sees: it was told to stop
	if err := s.halt(s.processes...); err != nil && !errors.Is(err, context.Canceled) {
		s.t.Errorf("the service ended with: %v\n%s", err, s.dump())
	}
	s.fake.Close()
	s.web.server.Close()
}

// service plays the lines that stop and start the service: with several processes one of them, which the seed chooses.
func (s *scene) service(words []string) error {
	switch words[0] {
	case "stopping":
		s.chosen().stopping()
		return nil
	case "down":
		return s.halt(s.chosen())
	case "start":
		return s.startAgain()
	default:
		if len(words) == 3 && words[1] == "with" {
			return s.startWith(words[2])
		}
		if err := s.halt(s.chosen()); err != nil {
			return err
		}
		s.start()
		return nil
	}
}

// chosen returns the process that a line concerns.
func (s *scene) chosen() *process {
	if s.pair == nil {
		return s.processes[0]
	}
	for _, p := range s.processes {
		if p.name == s.pair.to {
			return p
		}
	}
	return s.processes[s.pair.pick(len(s.processes))]
}

// startAgain restarts what was told to stop, once it has ended.
func (s *scene) startAgain() error {
	for _, p := range s.processes {
		if p.told && p.cancel != nil {
			if err := s.halt(p); err != nil {
				return err
			}
		}
	}
	s.start()
	return nil
}

// startWith restarts every process, one after the other, with another configuration.
func (s *scene) startWith(part string) error {
	extra, ok := s.parts[part]
	if !ok {
		return fmt.Errorf("the scenario has no part %q", part)
	}
	s.extra = extra
	for _, p := range s.processes {
		if err := s.halt(p); err != nil {
			return err
		}
		s.start()
	}
	return nil
}
