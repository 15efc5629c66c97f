package command_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/policy/reason"
)

// blocks is one tool that failed too often.
type blocks struct{ gone string }

func (*blocks) Blocked(_ bot.SessionKey, _ string, all bool) []texts.Blocked {
	list := []texts.Blocked{{Tool: "fetch", Reason: reason.Plain("8 of 10 calls failed"), Left: 5 * time.Minute}}
	if all {
		list = append(list, texts.Blocked{Tool: "grep", Reason: reason.Plain("it too"), Left: 30 * time.Second, Elsewhere: true})
	}
	return list
}

func (*blocks) Lifted(tool string) []bot.Fact { return []bot.Fact{{Bucket: "blocked", Key: tool}} }

func (b *blocks) Unblock(_ context.Context, tool string) (bool, error) {
	b.gone = tool
	return tool == "fetch", nil
}

func TestBlockedTools(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text      string
		admin     bool
		want, got string
	}{
		{"tools", false, "• fetch – 8 of 10 calls failed (5 minutes left)", ""},
		{"tools", true, "• fetch – 8 of 10 calls failed (5 minutes left)\n• grep – it too (30 seconds left, in another conversation or for somebody else)", ""},
		{"tools unblock fetch", false, "That is for admins", ""},
		{"tools unblock fetch", true, "fetch can be used again.", "fetch"},
		{"tools unblock bash", true, "bash is not blocked.", "bash"},
	} {
		t.Run(tt.text, func(t *testing.T) {
			t.Parallel()
			d := setup(t)
			b := &blocks{}
			d.status.Blocks = b
			e := d.run(call(tt.text, tt.admin))
			if got := e.Change.Send[0].Content.Text; !strings.Contains(got, tt.want) {
				t.Errorf("%q, want %q", got, tt.want)
			}
			if lifted := len(e.Change.Facts) == 1 && e.Change.Facts[0].Key == "fetch"; lifted != (tt.got == "fetch") {
				t.Errorf("stored with the answer: %+v", e.Change.Facts)
			}
			if e.Then != nil {
				if b.gone != "" {
					t.Error("unblocked before that was stored")
				}
				if _, err := e.Then(t.Context(), nil); err != nil {
					t.Fatal(err)
				}
			}
			if b.gone != tt.got {
				t.Errorf("unblocked %q, want %q", b.gone, tt.got)
			}
		})
	}
}
