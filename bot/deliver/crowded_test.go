package deliver_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zephbot/zephbot/agent"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/deliver"
)

// groupTurn is a turn in a group whose answer grows in a message of the outbox.
type groupTurn struct {
	*deliver.Progress
	w           *world
	name        string
	placeholder int64
	done        chan error
}

// edits records the frames of all turns of a group.
type edits struct {
	*screen
	times map[string][]time.Time // by message
}

func (e *edits) Revise(_ context.Context, _ bot.Place, message string, c bot.Content) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.times[message] = append(e.times[message], time.Now())
	if len(c.Buttons) != 1 {
		e.signs = append(e.signs, sign{"no button", message, 0})
	}
	return nil
}

// asks begins a turn that is shown in the group.
func (w *world) asks(live bot.Live, name string) *groupTurn {
	g := &groupTurn{w: w, name: name, done: make(chan error, 1)}
	stop := [][]bot.Button{{{Label: "Stop", Data: "s1:" + name}}}
	g.Progress = deliver.NewProgress(deliver.ProgressDeps{Live: live, Pacer: w.pacer, Words: words{}}, deliver.Spec{
		Place: place("-7"), Draft: 1, Language: "en", Buttons: stop,
		Placeholder: func(context.Context) (string, error) {
			if g.placeholder == 0 {
				first := in("-7", row(bot.Placeholder, "⏳"))
				first.Content.Buttons = stop
				g.placeholder = w.say(first)[0]
			}
			return w.row(g.placeholder).Message, nil
		},
	}, deliver.ProgressOptions{})
	go func() { g.done <- g.Run(context.WithoutCancel(w.t.Context())) }()
	return g
}

// streams lets the model write for a while.
func (g *groupTurn) streams(long time.Duration) {
	for end := time.Now().Add(long); time.Now().Before(end); <-time.After(200 * time.Millisecond) {
		g.Emit(g.w.t.Context(), agent.Event{Type: agent.DeltaEvent, Text: "word "})
	}
}

// ends sends the answer and returns its row.
func (g *groupTurn) ends() int64 {
	g.Close()
	if err := <-g.done; err != nil {
		g.w.t.Error(err)
	}
	final := in("-7", row(bot.Final, "answer "+g.name))
	final.EditRow = g.placeholder
	return g.w.say(final)[0]
}

// Behaviour 5: while a long answer grows in a group and three others ask, the group gets at most 20 messages and edits a
// minute, each answer is there 5 s after its model has ended, and the long one keeps growing.
func TestBehaviour05ThreeQuestionsBesideALongAnswer(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := setup(t)
		w.pacer = exact(deliver.Limits{PerSecond: 30, PerChatPerSecond: 1, PerGroupPerMinute: 20})
		live := &edits{screen: &screen{began: time.Now()}, times: map[string][]time.Time{}}
		w.start()
		finals := map[int64]time.Time{} // by row: when the model ended
		long := w.asks(live, "long")
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			long.streams(3 * time.Minute)
		}()
		for i, after := range []time.Duration{20, 15, 60} {
			pass(after * time.Second)
			g := w.asks(live, fmt.Sprint("short", i))
			g.streams(12 * time.Second)
			at := time.Now()
			finals[g.ends()] = at
		}
		<-ended
		at := time.Now()
		finals[long.ends()] = at
		pass(time.Minute)
		w.stop()
		var all []time.Time
		for _, r := range w.sender.sent() {
			all = append(all, r.at)
			if asked, ok := finals[r.row.ID]; ok && r.at.Sub(asked) > 5*time.Second {
				t.Errorf("%q came %s after its model had ended", r.row.Content.Text, r.at.Sub(asked))
			}
			delete(finals, r.row.ID)
		}
		if len(finals) > 0 {
			t.Errorf("%d answers never came", len(finals))
		}
		for message, times := range live.times {
			all = append(all, times...)
			for i := 1; i < len(times); i++ {
				if gap := times[i].Sub(times[i-1]); gap > 25*time.Second || gap < 3*time.Second {
					t.Errorf("message %s stood still for %s", message, gap)
				}
			}
		}
		slices.SortFunc(all, time.Time.Compare)
		if n := most(all, time.Minute); n > 20 {
			t.Errorf("%d messages and edits within a minute", n)
		}
		if grown := live.times[w.row(long.placeholder).Message]; len(grown) < 15 {
			t.Errorf("the long answer grew only %d times", len(grown))
		}
		for _, s := range live.all() {
			if strings.HasPrefix(s.kind, "no") {
				t.Errorf("an edit without its button: %s", s)
			}
		}
	})
}
