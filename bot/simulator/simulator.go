// Package simulator lets people try the bot without Telegram: a web page on which several people chat with it, in
// private and in a group, on top of the strict fake Bot API. The bot itself is a real process, so that it can be killed
// and must come back with nothing lost.
//
// Run owns everything: the fake Bot API and the page, both on loopback, and the bot process, which is restarted
// whenever it dies. Messages, files and undelivered updates are kept in Options.Dir. The protocol between page and
// server is described in api.go.
package simulator

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/bot/telegram/telegramtest"
)

const (
	saveAfter     = 500 * time.Millisecond // after the first change that is not saved yet
	saveAgain     = 100 * time.Millisecond // if the queue could not be read
	shutdownAfter = 5 * time.Second
	headerTimeout = 10 * time.Second
)

// Simulator runs the page, the fake Bot API and the bot process.
type Simulator struct {
	opt   Options
	log   zerolog.Logger
	hub   *hub
	world *world
	disk  *store
	bot   *supervisor
	gate  *gate
	page  net.Listener
	api   net.Listener
	hosts []string // allowed Host headers
}

// New loads what is stored and listens on both ports. Run must be called to release them.
func New(opt Options) (*Simulator, error) {
	if err := opt.withDefaults().validate(); err != nil {
		return nil, err
	}
	opt = opt.withDefaults()
	if opt.Fake.Token == "" {
		opt.Fake.Token = "7000000001:" + rand.Text()
	}
	s := &Simulator{opt: opt, log: opt.Log, hub: newHub(), disk: &store{dir: opt.Dir}}
	if err := s.createWorld(context.Background()); err != nil { //nolint:forbidigo // only in-process calls
		return nil, err
	}
	if err := s.openListeners(); err != nil {
		s.world.fake.Close()
		return nil, err
	}
	apiURL := "http://" + s.api.Addr().String()
	s.bot = &supervisor{
		command: func() *exec.Cmd { return opt.Command(apiURL, opt.Fake.Token) },
		pause:   opt.Pause, grace: opt.Grace, now: opt.Fake.Now, log: s.log, hub: s.hub, out: &tail{to: opt.Stderr},
		orders: make(chan order),
		status: BotStatus{State: botStarting, Since: opt.Fake.Now()},
	}
	s.gate = &gate{next: s.world.fake.Handler(), heard: s.bot.noteCall}
	return s, nil
}

// createWorld creates the world, in its stored state if there is one.
func (s *Simulator) createWorld(ctx context.Context) error {
	m, broken, err := s.disk.loadWorld()
	if err != nil {
		return err
	}
	if m != nil {
		s.world = newWorld(s.opt.Fake, s.hub, m.NextUpdate)
		if err := (&replay{w: s.world, m: m, disk: s.disk}).runReplay(ctx); err != nil {
			s.world.fake.Close()
			m, broken = nil, err.Error()
		}
	}
	if broken != "" {
		to, err := s.disk.setAside(s.opt.Fake.Now())
		if err != nil {
			return err
		}
		s.log.Warn().Str("file", to).Str("problem", broken).
			Msg("the stored chats cannot be read; they are set aside and the simulator begins with empty ones")
	}
	if m == nil {
		// The bot may remember updates of people whose chats are gone: ids begin where none can have been used.
		s.world = newWorld(s.opt.Fake, s.hub, cmp.Or(s.opt.Fake.FirstID, s.opt.Fake.Now().Unix()))
	}
	return nil
}

func (s *Simulator) openListeners() (err error) {
	var l net.ListenConfig
	ctx := context.Background() //nolint:forbidigo // binding a loopback port does not block
	if s.page, err = l.Listen(ctx, "tcp", s.opt.Listen); err != nil {
		return fmt.Errorf("simulator: listen for the page: %w", err)
	}
	if s.api, err = l.Listen(ctx, "tcp", "127.0.0.1:0"); err != nil {
		return errors.Join(fmt.Errorf("simulator: listen for the bot api: %w", err), s.page.Close())
	}
	_, port, err := net.SplitHostPort(s.page.Addr().String())
	if err != nil {
		return errors.Join(fmt.Errorf("simulator: address of the page: %w", err), s.page.Close(), s.api.Close())
	}
	s.hosts = []string{s.page.Addr().String(), "127.0.0.1:" + port, "localhost:" + port, "[::1]:" + port}
	return nil
}

// URL returns the address of the page, "http://127.0.0.1:PORT".
func (s *Simulator) URL() string { return "http://" + s.page.Addr().String() }

// Fake returns the Bot API behind the page, for tests and inspection.
func (s *Simulator) Fake() *telegramtest.Server { return s.world.fake }

// Run serves until ctx ends or a listener fails. When it returns, the bot process has ended with everything it started,
// the chats are stored and no goroutine is left.
func (s *Simulator) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	serving, stopServing := context.WithCancel(context.WithoutCancel(ctx))
	defer stopServing()
	page := s.newServer(serving, s.pageHandler(serving))
	api := s.newServer(serving, s.gate)
	var wg, botWG sync.WaitGroup
	serve := func(srv *http.Server, l net.Listener, what string) {
		if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			cancel(fmt.Errorf("simulator: serve %s: %w", what, err))
		}
	}
	wg.Go(func() { serve(page, s.page, "the page") })
	wg.Go(func() { serve(api, s.api, "the bot api") })
	wg.Go(func() { s.pumpChanges(serving) })
	if _, err := fmt.Fprintf(s.opt.Stdout, "simulator: %s\n", s.URL()); err != nil {
		cancel(fmt.Errorf("simulator: print the address: %w", err))
	}
	if s.opt.Open {
		s.openBrowser()
	}
	botWG.Go(func() { s.bot.runBots(ctx) })
	botWG.Go(func() { s.keepSaving(ctx) })
	<-ctx.Done()
	botWG.Wait()
	end, stop := context.WithTimeout(context.WithoutCancel(ctx), shutdownAfter)
	defer stop()
	_, err := s.saveWorld(end, true)
	stopServing()
	err = errors.Join(err, endServer(end, page))
	s.world.fake.Close()
	err = errors.Join(err, endServer(end, api))
	wg.Wait()
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) && !errors.Is(cause, context.DeadlineExceeded) {
		err = errors.Join(cause, err)
	}
	return err
}

func (s *Simulator) newServer(ctx context.Context, h http.Handler) *http.Server {
	return &http.Server{
		Handler: h, ReadHeaderTimeout: headerTimeout, BaseContext: func(net.Listener) context.Context { return ctx },
	}
}

// endServer lets the requests in progress finish, and closes their connections if they do not.
func endServer(ctx context.Context, srv *http.Server) error {
	if err := srv.Shutdown(ctx); err != nil {
		return errors.Join(fmt.Errorf("simulator: end a server: %w", err), srv.Close())
	}
	return nil
}

// pumpChanges forwards changes of the fake to the page.
func (s *Simulator) pumpChanges(ctx context.Context) {
	version := s.world.fake.Version()
	for {
		var err error
		if version, err = s.world.fake.WaitChange(ctx, version); err != nil {
			return
		}
		s.hub.bumpVersion()
	}
}

// keepSaving stores the world shortly after it changed.
func (s *Simulator) keepSaving(ctx context.Context) {
	if s.opt.Dir == "" {
		return
	}
	for {
		_, changed := s.hub.currentVersion()
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
		for wait := saveAfter; wait > 0; {
			if !sleepFor(ctx, wait) {
				return
			}
			ok, err := s.saveWorld(ctx, false)
			switch {
			case err != nil && ctx.Err() == nil:
				s.log.Error().Err(err).Msg("cannot store the chats")
				wait = 0
			case ok:
				wait = 0
			default:
				wait = saveAgain
			}
		}
	}
}

// saveWorld stores the world. It returns false if it has to be called again because the bot is fetching updates.
func (s *Simulator) saveWorld(ctx context.Context, last bool) (bool, error) {
	if s.opt.Dir == "" {
		return true, nil
	}
	s.world.mu.Lock()
	defer s.world.mu.Unlock()
	pending, ok, err := s.world.pendingUpdates(ctx, s.gate, last)
	if err != nil || !ok {
		return false, err
	}
	m, err := s.world.takeSnapshot(pending, s.disk)
	if err != nil {
		return false, err
	}
	return true, s.disk.saveWorld(m)
}

// sleepFor waits; false if ctx ended first.
func sleepFor(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
