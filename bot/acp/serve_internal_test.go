package acp

import (
	"context"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/agent"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/acp/acptest"
	"github.com/zephbot/zephbot/bot/bottest"
	"github.com/zephbot/zephbot/bot/turn"
	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/mcp"
)

// desk is a service whose turns do nothing: a prompt ends because nothing is under way.
type desk struct {
	mu      sync.Mutex
	texts   []string // that were handed in
	project *Project
	back    Backend
}

// noTools is a set without tools.
type noTools struct{}

// Lookup implements tools.Set.
func (noTools) Lookup(string) (tools.Tool, bool) { return tools.Tool{}, false }

// Definitions implements tools.Set.
func (noTools) Definitions() []tools.Definition { return nil }

func newDesk() *desk {
	d := &desk{}
	same := func(text string) string { return text }
	d.back = Backend{Store: bottest.New(), Accept: d.accept, Tools: noTools{}, Redact: same, Bare: same}
	return d
}

func (d *desk) accept(_ context.Context, raws []turn.Raw) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range raws {
		m, err := bot.MessageDecoder{}.Decode(raws[i].Body)
		if err != nil {
			return err
		}
		d.texts = append(d.texts, m.Text)
	}
	return nil
}

// handed returns the texts that were handed in so far.
func (d *desk) handed() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return strings.Join(slices.Clone(d.texts), " ")
}

// options are those of a server for the desk.
func (d *desk) options() Options {
	return Options{
		Version: "test", Caller: "ada", Language: "en", Now: time.Now, Log: zerolog.Nop(), Timeout: time.Minute, Idle: idleTime,
		Open: func(_ context.Context, _ string, p *Project) (Backend, error) {
			d.project = p
			return d.back, nil
		},
	}
}

// rack has the MCP servers that are attached. Attach and Detach wait for the gate.
type rack struct {
	gate chan struct{}

	mu       sync.Mutex
	waiting  int
	attached map[string]bool
}

func newRack() *rack { return &rack{gate: make(chan struct{}), attached: map[string]bool{}} }

// Attach implements Servers.
func (r *rack) Attach(ctx context.Context, cfg mcp.Server) (mcp.Status, error) {
	r.mu.Lock()
	if r.attached[cfg.ID] {
		r.mu.Unlock()
		return mcp.Status{}, mcp.ErrTaken
	}
	r.attached[cfg.ID] = true
	r.mu.Unlock()
	err := r.wait(ctx)
	if err != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.attached, cfg.ID)
	}
	return mcp.Status{}, err
}

// Detach implements Servers.
func (r *rack) Detach(ctx context.Context, id string) error {
	if err := r.wait(ctx); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.attached, id)
	return nil
}

// shut closes the gate, until its channel is closed.
func (r *rack) shut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.gate = make(chan struct{})
}

func (r *rack) wait(ctx context.Context) error {
	r.mu.Lock()
	r.waiting++
	gate := r.gate
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		r.waiting--
		r.mu.Unlock()
	}()
	select {
	case <-gate:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// state returns how many calls wait, and which servers are attached.
func (r *rack) state() (waiting int, attached string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.waiting, strings.Join(slices.Sorted(maps.Keys(r.attached)), " ")
}

// start connects an editor with the desk, in a bubble of synctest.
func (d *desk) start(t *testing.T, e *acptest.Editor) {
	t.Helper()
	e.Start(t, func(in io.Reader, out io.Writer) error {
		o := d.options()
		o.In, o.Out = in, out
		return Serve(t.Context(), o)
	})
	e.Greet(t)
}

// TestSecondPrompt: a prompt that is refused because another one is under way leaves that one alone; session/cancel and
// the end of the connection still end it.
func TestSecondPrompt(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ end, reason, handed string }{
		{"", "end_turn", "first"}, {"cancel", "cancelled", "first /stop"}, {"leave", "cancelled", "first /stop"},
	} {
		t.Run("end: "+tt.end, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				d, e := newDesk(), &acptest.Editor{}
				d.start(t, e)
				s := e.Begin(t, dir)
				var saying sync.WaitGroup
				saying.Go(func() {
					reason, err := e.TrySay(t.Context(), s, acptest.Text("first"))
					if err != nil && tt.end == "leave" && strings.Contains(err.Error(), "peer disconnected") {
						return // an editor that has left need not read how it ended
					}
					if err != nil || reason != tt.reason {
						t.Errorf("the first prompt ended with %q, %v", reason, err)
					}
				})
				synctest.Wait()
				if _, err := e.TrySay(t.Context(), s, acptest.Text("second")); err == nil || !strings.Contains(err.Error(), "under way") {
					t.Errorf("the second prompt: %v", err)
				}
				synctest.Wait()
				if got := d.handed(); got != "first" {
					t.Errorf("after the second prompt %q was handed in", got)
				}
				switch tt.end {
				case "cancel":
					if err := e.Cancel(t.Context(), s); err != nil {
						t.Error(err)
					}
				case "leave":
					if err := e.Leave(); err != nil {
						t.Error(err)
					}
				}
				saying.Wait()
				if got := d.handed(); got != tt.handed {
					t.Errorf("handed in: %q, want %q", got, tt.handed)
				}
			})
		})
	}
}

// TestOpenAtOnce: of two requests that open sessions at once, the second waits for the first: a session has its servers
// once, all are ended, and there are no more sessions than may be open.
func TestOpenAtOnce(t *testing.T) {
	t.Parallel()
	server := acptest.Program("kind", "kind")
	for name, tt := range map[string]struct {
		others   int  // sessions besides the one with the server
		rests    bool // the session is closed as idle before
		requests []request
		attached string
	}{
		"load and load": {requests: twice(load(server)), attached: "kind"},
		"a prompt and a mode of a session that rests": {rests: true, requests: []request{prompted, moded}, attached: "kind"},
		"new and new": {others: maxSessions - 2, requests: twice(begun(server)), attached: "kind kind-2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				d, e, r := newDesk(), &acptest.Editor{}, newRack()
				d.back.Servers = r
				d.start(t, e)
				close(r.gate)
				s := e.Begin(t, dir, server)
				<-time.After(time.Second) // of the bubble: it is the oldest one
				for range tt.others {
					e.Begin(t, dir)
				}
				if tt.rests {
					d.project.server.closeIdle(time.Now().Add(time.Hour))
				}
				r.shut()
				var asking sync.WaitGroup
				for _, ask := range tt.requests {
					asking.Go(func() {
						if err := ask(t.Context(), e, dir, s); err != nil {
							t.Error(err)
						}
					})
				}
				synctest.Wait()
				if waiting, attached := r.state(); waiting != 1 {
					t.Errorf("%d calls at once; attached: %s", waiting, attached)
				}
				close(r.gate)
				asking.Wait()
				if _, attached := r.state(); attached != tt.attached {
					t.Errorf("attached: %q, want %q", attached, tt.attached)
				}
				if n := len(d.project.server.sessions); n > maxSessions || n != len(d.project.sessions) {
					t.Errorf("%d sessions are open, %d in the project", n, len(d.project.sessions))
				}
				if err := e.Leave(); err != nil {
					t.Error(err)
				}
				if _, attached := r.state(); attached != "" {
					t.Errorf("still attached: %s", attached)
				}
			})
		})
	}
}

// request is something that an editor asks for.
type request = func(ctx context.Context, e *acptest.Editor, dir string, s acptest.Session) error

func twice(r request) []request { return []request{r, r} }

func load(server acptest.Server) request {
	return func(ctx context.Context, e *acptest.Editor, dir string, s acptest.Session) error {
		_, err := e.Load(ctx, dir, s, server)
		return err
	}
}

func begun(server acptest.Server) request {
	return func(ctx context.Context, e *acptest.Editor, dir string, _ acptest.Session) error {
		_, err := e.TryBegin(ctx, dir, server)
		return err
	}
}

func prompted(ctx context.Context, e *acptest.Editor, _ string, s acptest.Session) error {
	_, err := e.TrySay(ctx, s, acptest.Text("hello"))
	return err
}

func moded(ctx context.Context, e *acptest.Editor, _ string, s acptest.Session) error {
	return e.Mode(ctx, s, modeCode)
}

// TestRestOnlyIfIdle: a session that was found idle, and was used before it is closed, stays open.
func TestRestOnlyIfIdle(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		d, e := newDesk(), &acptest.Editor{}
		d.start(t, e)
		id := string(e.Begin(t, dir))
		s := d.project.server
		sess, p, err := s.claimSession(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		since, _ := sess.idleSince()
		s.restSession(sess, since)
		if got, err := s.findOpen(id); got != sess {
			t.Errorf("closed during a prompt: %v", err)
		}
		<-time.After(time.Second) // of the bubble
		sess.finishPrompt(p)
		s.restSession(sess, since)
		if got, err := s.findOpen(id); got != sess {
			t.Errorf("closed after a prompt: %v", err)
		}
		since, _ = sess.idleSince()
		s.restSession(sess, since)
		if again, _, err := s.claimSession(t.Context(), id); err != nil || again == sess {
			t.Errorf("not opened again: %v", err)
		}
	})
}

// TestTerminalOpenedLate: a terminal that the editor opens after the call has given up is killed and released, and the call
// says that nobody knows whether the command ran.
func TestTerminalOpenedLate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		open := make(chan struct{})
		d, e := newDesk(), &acptest.Editor{Opening: func() { <-open }, Output: func(string) (string, int) { return "", 0 }}
		d.start(t, e)
		sess, err := d.project.server.findOpen(string(e.Begin(t, dir)))
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		_, err = sess.runInTerminal(t.Context(), &tools.Call{ID: "1", Args: []byte(`{"command":"rm -r build"}`)})
		if err == nil || !strings.Contains(err.Error(), "it is unknown whether the command ran") || time.Since(began) != replyTime {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
		<-time.After(time.Hour) // of the bubble
		close(open)
		synctest.Wait()
		if got := strings.Join(e.Ended(), "; "); got != "killed, released" {
			t.Errorf("terminals: %q", got)
		}
	})
}

// TestServersOfOthers: a session never sees the MCP server of another one, neither while it is connected nor while it is
// ended, nor if it cannot be ended.
func TestServersOfOthers(t *testing.T) {
	t.Parallel()
	dir, server := t.TempDir(), acptest.Program("kind", "kind")
	synctest.Test(t, func(t *testing.T) {
		d, e, r := newDesk(), &acptest.Editor{}, newRack()
		d.back.Servers = r
		d.start(t, e)
		other := e.Begin(t, dir)
		sees := func(s acptest.Session) bool {
			return d.project.Rules(bot.Place{Chat: string(s)}).Allowed("kind:ask")
		}
		var s acptest.Session
		var asking sync.WaitGroup
		asking.Go(func() {
			var err error
			if s, err = e.TryBegin(t.Context(), dir, server); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		if waiting, _ := r.state(); waiting != 1 || sees(other) {
			t.Errorf("while it connects (%d), another session sees it", waiting)
		}
		close(r.gate)
		asking.Wait()
		if sees(other) || !sees(s) {
			t.Errorf("connected: another session sees it: %v, its own: %v", sees(other), sees(s))
		}
		r.shut()
		asking.Go(func() {
			if err := e.Close(t.Context(), s); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		if waiting, _ := r.state(); waiting != 1 || sees(other) {
			t.Errorf("while it is ended (%d), another session sees it", waiting)
		}
		asking.Wait() // until leaveTime is over
		if _, attached := r.state(); attached != "kind" || sees(other) {
			t.Errorf("attached %q and not ended, another session sees it", attached)
		}
		e.Begin(t, dir, acptest.Program("slow", "slow")) // until connectTime is over
		if d.project.isForeign("slow", &session{id: "x"}) {
			t.Error("a server that is not connected has an owner")
		}
	})
}

// TestSilenceIsTold: an editor is told as a thought when the model has said nothing for 15 s, and for a minute, once each,
// until the model says something.
func TestSilenceIsTold(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		d, e := newDesk(), &acptest.Editor{}
		d.start(t, e)
		s := e.Begin(t, dir)
		shown := d.project.Watch(turn.Watched{Place: bot.Place{Chat: string(s)}})
		done := make(chan error, 1)
		go func() { done <- shown.Run(t.Context()) }()
		told := func() (n int) {
			synctest.Wait()
			for _, u := range e.Updates(s) {
				if u.AgentThoughtChunk != nil && strings.Contains(u.AgentThoughtChunk.Content.Text.Text, "said nothing") {
					n++
				}
			}
			return n
		}
		for i, step := range []struct {
			wait time.Duration
			say  agent.EventType // before
			want int
		}{
			{14 * time.Second, "", 0},
			{3 * time.Second, "", 1},
			{40 * time.Second, "", 1},
			{5 * time.Second, "", 2},
			{5 * time.Minute, "", 2},
			{14 * time.Second, agent.DeltaEvent, 2},
			{3 * time.Second, "", 3},
			{10 * time.Minute, agent.ToolStartedEvent, 3},
		} {
			if step.say != "" {
				shown.Emit(t.Context(), agent.Event{Type: step.say, Text: "a", Call: "c"})
			}
			<-time.After(step.wait)
			if got := told(); got != step.want {
				t.Errorf("step %d: told %d times, want %d", i, got, step.want)
			}
		}
		shown.Close()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if err := e.Leave(); err != nil {
			t.Error(err)
		}
	})
}
