package dispatch_test

import (
	"context"
	"testing"
	"time"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/dispatch"
	"github.com/zephbot/zephbot/bot/turn"
)

// presser answers with what it was given.
type presser struct{ admin bool }

func (p *presser) Press(_ context.Context, call *turn.Call) (turn.Effect, error) {
	p.admin = call.Admin
	msg := call.Message
	return turn.Effect{Change: bot.Change{Send: []bot.Row{{
		Place: msg.Place, Purpose: bot.Toast, Query: msg.Query, Content: bot.Content{Text: "pressed " + msg.Data},
	}}}}, nil
}

// Each button reaches the package whose prefix it has, everything else the approvals, and nobody who is not admitted
// reaches either.
func TestPressers(t *testing.T) {
	for _, tt := range []struct {
		data, person, want string
	}{
		{data: "m1:x", person: "ann", want: "pressed m1:x"},
		{data: "m1", person: "ann", want: "pressed m1"},
		{data: "m1x:1", person: "ann", want: "This question is no longer open."},
		{data: "a1:x:y", person: "ann", want: "This question is no longer open."},
		{data: "", person: "ann", want: "This question is no longer open."},
		{data: "m1:x", person: "stranger", want: "I do not know you"},
	} {
		t.Run(tt.person+" "+tt.data, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				p := &presser{}
				w.parts = func(parts *dispatch.Parts) { parts.Pressers = map[string]turn.Presser{"m1": p} }
				press := w.private(tt.person, "")
				press.Kind, press.Data, press.Query = bot.Press, tt.data, "q"
				w.accept(w.start(), press)
				pass(time.Second)
				if got := w.texts(bot.Toast); len(got) != 1 || got[0] != tt.want {
					t.Errorf("toasts %q, want %q", got, tt.want)
				}
			})
		})
	}
}
