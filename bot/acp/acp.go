// Package acp is the channel of `zephbot acp`: an editor that speaks the Agent Client Protocol over stdin and stdout.
// Its conversations use the same inbox, lanes, journal and outbox as every other channel, and their calls the same
// chain. What the editor runs itself (commands in its terminal, texts of its buffers) replaces the last step of a call,
// after the policy, the approval and the audit.
package acp

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	sdk "github.com/coder/acp-go-sdk"
	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/agent/blob"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/turn"
	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/mcp"
)

// Name is the channel's name, BotID the bot's id on it.
const (
	Name  = "acp"
	BotID = "local"
)

// Limits of an editor's process.
const (
	maxSessions     = 4                // open at once; an idle one is closed for a new one
	idleTime        = 30 * time.Minute // after which a session without a prompt is closed
	terminalTimeout = 2 * time.Minute  // of a command in the editor's terminal
	replyTime       = 30 * time.Second // for the editor to answer what it can answer by itself
	leaveTime       = 10 * time.Second // for turns to end after the editor has left
)

// Options configure Serve. All but Language, Timeout and Idle are required.
type Options struct {
	In       io.Reader
	Out      io.Writer // only the protocol is written to it
	Version  string
	Caller   string // the local user, without the channel
	Language string // IETF tag of the person
	// Open starts the conversations of a directory, or returns why it cannot. It is called once for each directory; the
	// project must not be used before it returns.
	Open    func(ctx context.Context, dir string, project *Project) (Backend, error)
	Timeout time.Duration // of a command in the editor's terminal; 0 = terminalTimeout
	Idle    time.Duration // 0 = idleTime
	Now     func() time.Time
	Log     zerolog.Logger
}

// Backend is the running service of a directory.
type Backend struct {
	Store  bot.Store
	Blobs  blob.Store
	Accept func(ctx context.Context, raws []turn.Raw) error // stores arrivals durably
	Tools  tools.Set
	// Through returns the file tools that work through the functions that are not nil (file.Through).
	Through func(read func(
		ctx context.Context, path string,
	) (string, error), write func(ctx context.Context, path, text string) error) ([]tools.Tool, error)
	// Held: commands may run in the kernel sandbox only, and so not in the editor's terminal.
	Held    bool
	Servers Servers
	// Commands are what a person can begin a prompt with, in their language; nil = none.
	Commands []Command
	// Usage returns what a conversation has used; nil = nothing is told.
	Usage  func(ctx context.Context, session bot.SessionKey) (Usage, error)
	Redact func(string) string // removes credentials
	Bare   func(string) string // removes the marks of texts of strangers, which are meant for the model
}

// Command is one that a prompt can begin with.
type Command struct{ Name, About string }

// Usage is what a conversation has used.
type Usage struct {
	Used, Size int     // tokens that fill the model's context, and how many there is room for; Size 0 = unknown
	USD        float64 // since the conversation began; 0 = nothing, or no prices are known
}

// Servers connects the MCP servers of sessions (mcp.Manager).
type Servers interface {
	Attach(ctx context.Context, cfg mcp.Server) (mcp.Status, error)
	Detach(ctx context.Context, id string) error
}

// server is the agent's side of a connection. It implements the methods that the editor calls.
type server struct {
	opts Options
	conn *sdk.AgentSideConnection
	life context.Context //nolint:containedctx // of the process: it ends every prompt
	busy sync.WaitGroup  // requests that work on something, and questions to the editor

	mu       sync.Mutex
	client   sdk.ClientCapabilities
	greeted  bool
	projects map[string]*Project
	sessions map[string]*session
	resting  map[string]params   // how sessions that were closed because they were idle were opened
	fresh    map[string]*session // whose id the editor is about to learn
	opening  sync.Mutex          // serialises what opens projects; locked after turnover
	cancels  cancelRequests
	turnover chan struct{} // has room for whoever opens or closes sessions (enter); taken before any lock
}

// params are what an editor opens a session with.
type params struct {
	dir     string
	servers []sdk.McpServer
}

// Serve speaks with an editor until it closes its end or ctx ends. Turns that run then are stopped; Serve waits for
// their end for a limited time.
func Serve(ctx context.Context, o Options) error {
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	defer context.AfterFunc(ctx, end)()
	s := &server{
		opts:     o,
		life:     life,
		projects: map[string]*Project{},
		sessions: map[string]*session{},
		resting:  map[string]params{},
		fresh:    map[string]*session{},
		turnover: make(chan struct{}, 1),
	}
	if s.opts.Timeout == 0 {
		s.opts.Timeout = terminalTimeout
	}
	if s.opts.Idle == 0 {
		s.opts.Idle = idleTime
	}
	out := newQueue(o.Out)
	out.answered = s.announce
	var writing, reading sync.WaitGroup
	writing.Go(out.writeQueued)
	lines, feed := io.Pipe()
	s.conn = sdk.NewAgentSideConnection(s, out, lines)
	s.conn.SetLogger(slog.New(slog.DiscardHandler)) // it would log what people write
	// Not waited for: a read of stdin cannot be interrupted.
	reading.Go(func() {
		_ = feed.CloseWithError(sieve{in: o.In, out: out, log: o.Log, cancels: &s.cancels}.copyLines(feed))
	})
	sweeping := s.startSweeps()
	select {
	case <-s.conn.Done():
	case <-life.Done():
	case <-out.broken:
	}
	end()
	sweeping.Wait()
	if !waitWithin(leaveTime, &s.busy) {
		o.Log.Warn().Msg("the editor has left, and a turn has not ended; the next start ends it")
	}
	s.closeAll()
	_ = lines.Close() // nothing more is read
	out.closeQueue()
	waitWithin(leaveTime, &writing)
	return nil
}

// waitWithin waits for what runs, for a limited time, and reports whether it has ended.
func waitWithin(limit time.Duration, running *sync.WaitGroup) bool {
	done := make(chan struct{})
	var waiting sync.WaitGroup
	waiting.Go(func() {
		running.Wait()
		close(done)
	})
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-done:
		waiting.Wait()
		return true
	case <-timer.C:
		return false
	}
}

// startSweeps closes idle sessions until the process ends.
func (s *server) startSweeps() *sync.WaitGroup {
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(min(time.Minute, s.opts.Idle))
		defer tick.Stop()
		for {
			select {
			case <-s.life.Done():
				return
			case <-tick.C:
				s.closeIdle(s.opts.Now().Add(-s.opts.Idle))
			}
		}
	})
	return &wg
}

// editorCapabilities returns what the editor can do.
func (s *server) editorCapabilities() sdk.ClientCapabilities {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.client
}

// recoverPanic turns a panic of a method into an error: one bad request must not end the others.
func (s *server) recoverPanic(err *error) {
	if p := recover(); p != nil {
		s.opts.Log.Error().Str("panic", fmt.Sprint(p)).
			Bytes("stack", debug.Stack()).Msg("a request of the editor failed")
		*err = sdk.NewInternalError(map[string]any{"error": "an internal error; the log has more"})
	}
}

// wrongRequest is the error of a request that cannot be right.
func wrongRequest(format string, args ...any) error {
	return sdk.NewInvalidParams(map[string]any{"error": fmt.Sprintf(format, args...)})
}

var (
	_ sdk.Agent       = (*server)(nil)
	_ sdk.AgentLoader = (*server)(nil)
)
