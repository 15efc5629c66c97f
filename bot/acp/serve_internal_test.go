package acp

import (
	"context"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/acp/acptest"
	"github.com/zephbot/zephbot/bot/bottest"
	"github.com/zephbot/zephbot/bot/turn"
	"github.com/zephbot/zephbot/tools"
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
		Version: "test", Caller: "ada", Language: "en", Now: time.Now, Log: zerolog.Nop(), Timeout: time.Minute, Idle: IdleTime,
		Open: func(_ context.Context, _ string, p *Project) (Backend, error) {
			d.project = p
			return d.back, nil
		},
	}
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
					if reason, err := e.TrySay(t.Context(), s, acptest.Text("first")); err != nil || reason != tt.reason {
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
