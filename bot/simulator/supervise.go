package simulator

import (
	"context"
	"fmt"
	"os/exec"
	"runtime"
	"sync"
	"time"

	"github.com/rs/zerolog"
)

// States of the bot process.
const (
	botStarting   = "starting"   // started, has not called the Bot API yet
	botRunning    = "running"    // has called the Bot API
	botRestarting = "restarting" // was asked to exit, and is then restarted
	botStopping   = "stopping"   // was asked to exit
	botDead       = "dead"       // died or was killed; restarts after a pause
	botStopped    = "stopped"    // remains down until somebody starts it
)

const (
	maxPause  = 30 * time.Second
	steadyFor = 30 * time.Second // a bot that lives this long resets the count of deaths
	pipeGrace = 2 * time.Second  // for output that a left-over grandchild keeps open
)

// BotStatus is the state of the bot process.
type BotStatus struct {
	State  string    `json:"state"`
	PID    int       `json:"pid,omitempty"`
	Since  time.Time `json:"since"`
	Starts int       `json:"starts"`
	Exit   string    `json:"exit,omitempty"`      // how the last process ended
	Last   string    `json:"last_line,omitempty"` // last line that it printed before it died
	Next   time.Time `json:"next,omitzero"`       // when a dead bot is restarted
}

// order is an order to the supervisor.
type order string

const (
	orderRestart order = "restart"
	orderKill    order = "kill"
	orderStop    order = "stop"
	orderStart   order = "start"
)

// supervisor keeps the bot process alive.
type supervisor struct {
	command func() *exec.Cmd
	pause   time.Duration
	grace   time.Duration
	now     func() time.Time
	log     zerolog.Logger
	hub     *hub
	out     *tail
	orders  chan order

	killed bool // by order; only used by the goroutine of run

	mu     sync.Mutex
	status BotStatus
}

// giveOrder passes an order to the loop, and waits until the loop has taken it, so that the response to a click is
// meaningful.
func (b *supervisor) giveOrder(ctx context.Context, o order) error {
	select {
	case b.orders <- o:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("cannot tell the bot to %s: %w", o, context.Cause(ctx))
	}
}

func (b *supervisor) readStatus() BotStatus {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.status
}

func (b *supervisor) changeStatus(set func(*BotStatus)) {
	b.mu.Lock()
	set(&b.status)
	b.mu.Unlock()
	b.hub.bumpVersion()
}

// noteCall records that the process called the Bot API.
func (b *supervisor) noteCall() {
	b.mu.Lock()
	first := b.status.State == botStarting
	if first {
		b.status.State = botRunning
	}
	b.mu.Unlock()
	if first {
		b.hub.bumpVersion()
	}
}

// runBots restarts the bot until ctx ends; no process is left when it returns.
func (b *supervisor) runBots(ctx context.Context) {
	// The kernel kills the child when the thread that created it ends (Pdeathsig): this goroutine keeps its thread.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	deaths := 0
	for ctx.Err() == nil {
		began := b.now()
		switch b.runOnce(ctx) {
		case botStopped:
			b.restUntil(ctx, time.Time{})
			deaths = 0
		case botDead:
			if b.killed || b.now().Sub(began) >= steadyFor {
				deaths = 0 // after kills on purpose, the pause does not grow
			}
			b.restUntil(ctx, b.now().Add(backOff(b.pause, deaths)))
			deaths++
		default:
			deaths = 0
		}
	}
}

func backOff(pause time.Duration, deaths int) time.Duration {
	return min(pause<<min(deaths, 10), max(maxPause, pause))
}

// runOnce runs one process to its end and returns what is next: dead, stopped, or starting.
func (b *supervisor) runOnce(ctx context.Context) string {
	b.killed = false
	cmd := b.command()
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = b.out, b.out, pipeGrace
	ownGroup(cmd)
	if err := cmd.Start(); err != nil {
		b.log.Error().Err(err).Msg("bot process did not start")
		b.changeStatus(func(s *BotStatus) {
			s.State, s.PID, s.Since, s.Exit, s.Last = botDead, 0, b.now(), "did not start: "+err.Error(), ""
		})
		return botDead
	}
	b.changeStatus(func(s *BotStatus) {
		*s = BotStatus{State: botStarting, PID: cmd.Process.Pid, Since: b.now(), Starts: s.Starts + 1}
	})
	b.log.Info().Int("pid", cmd.Process.Pid).Msg("bot process started")
	done := make(chan error, 1)
	var wg sync.WaitGroup
	wg.Go(func() { done <- cmd.Wait() })
	next := b.attendProcess(ctx, cmd, done)
	wg.Wait()
	// What the bot has started and left behind is killed too.
	killGroup(cmd)
	b.out.finishLine()
	exit := "ended"
	if cmd.ProcessState != nil {
		exit = cmd.ProcessState.String()
	}
	b.log.Info().Int("pid", cmd.Process.Pid).Str("exit", exit).Msg("bot process ended")
	b.changeStatus(func(s *BotStatus) {
		s.State, s.PID, s.Since, s.Exit, s.Last = next, 0, b.now(), exit, b.out.last()
	})
	return next
}

// attendProcess waits for the end of the process and obeys orders in the meantime.
func (b *supervisor) attendProcess(ctx context.Context, cmd *exec.Cmd, done <-chan error) string {
	for {
		select {
		case <-done: //nolint:errcheck // how it ended is told by its status
			return botDead
		case <-ctx.Done():
			b.endProcess(cmd, done, botStopping)
			return botStopped
		case o := <-b.orders:
			switch o {
			case orderKill:
				b.killed = true
				killGroup(cmd)
				<-done //nolint:errcheck // how it ended is told by its status
				return botDead
			case orderRestart:
				b.endProcess(cmd, done, botRestarting)
				return botStarting
			case orderStop:
				b.endProcess(cmd, done, botStopping)
				return botStopped
			}
		}
	}
}

// endProcess asks the process to exit, and kills it if it takes too long or on an order.
func (b *supervisor) endProcess(cmd *exec.Cmd, done <-chan error, state string) {
	b.changeStatus(func(s *BotStatus) { s.State = state })
	terminate(cmd)
	timer := time.NewTimer(b.grace)
	defer timer.Stop()
	for {
		select {
		case <-done: //nolint:errcheck // how it ended is told by its status
			return
		case <-timer.C:
			b.log.Warn().Dur("grace", b.grace).Msg("bot process did not exit in time; killing it")
			killGroup(cmd)
		case o := <-b.orders:
			if o == orderKill {
				killGroup(cmd)
			}
		}
	}
}

// restUntil waits until the time to restart (zero: forever) or an order to do so.
func (b *supervisor) restUntil(ctx context.Context, until time.Time) {
	b.changeStatus(func(s *BotStatus) { s.Next = until })
	var due <-chan time.Time
	if !until.IsZero() {
		timer := time.NewTimer(until.Sub(b.now()))
		defer timer.Stop()
		due = timer.C
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-due:
			return
		case o := <-b.orders:
			switch o {
			case orderStart, orderRestart:
				return
			case orderStop:
				due = nil
				b.changeStatus(func(s *BotStatus) { s.State, s.Next = botStopped, time.Time{} })
			}
		}
	}
}
