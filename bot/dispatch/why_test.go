package dispatch_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/bot"
)

// whyReply is a reply to the message whose button was pressed.
func (w *world) whyReply(press *bot.Message, text string) bot.Message {
	m := w.private(press.Person, text)
	m.Place, m.Reply = press.Place, &bot.Quote{ID: press.Message, Own: true, Text: "May I?"}
	return m
}

// TestDeniedWhy: a denial counts at once, and what its person replies to the card within five minutes is read by the
// model once, before its next step: of the turn if that goes on, otherwise of the next one, after a restart too. It is
// no message to answer. Later, or from somebody else, it is one.
func TestDeniedWhy(t *testing.T) {
	for name, c := range map[string]struct {
		during  bool // the turn goes on while the reply comes
		restart bool
		after   time.Duration
		taken   bool
	}{
		"while the turn goes on":  {true, false, 0, true},
		"after the turn":          {false, false, 4 * time.Minute, true},
		"after a restart":         {false, true, 4 * time.Minute, true},
		"after the five minutes":  {false, false, 6 * time.Minute, false},
		"during, after a restart": {true, true, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				var asked record
				hold := make(chan struct{})
				w.talks(func(ctx context.Context, req *llm.Request) (*llm.Response, error) {
					n := asked.add(said(req))
					switch {
					case n == 1:
						return &llm.Response{Uses: []llm.ToolUse{{ID: "1", Name: "change", Args: []byte(`{}`)}}, Stop: llm.StopTools}, nil
					case n == 2 && c.during:
						select {
						case <-hold:
						case <-ctx.Done():
							return nil, ctx.Err()
						}
						return &llm.Response{Uses: []llm.ToolUse{{ID: "2", Name: "look", Args: []byte(`{}`)}}, Stop: llm.StopTools}, nil
					}
					return &llm.Response{Text: fmt.Sprint("answer ", n), Stop: llm.StopEnd}, nil
				}, &chain{w: w, ran: map[string]int{}})
				p := w.start()
				w.accept(p, w.private("ann", "do it"))
				press := w.press("ann", &w.open()[0], "n")
				w.accept(p, press)
				if asked.all()[len(asked.all())-1] != "do it" || len(asked.all()) != 2 {
					t.Fatalf("the turn does not go on at once: %q", asked.all())
				}
				pass(c.after)
				w.accept(p, w.whyReply(&press, "use the other one"))
				if c.restart {
					p.stop()
					w.restarted()
					p = w.start()
				}
				close(hold)
				pass(time.Second)
				w.accept(p, w.private("ann", "and now"))
				pass(time.Second)
				w.accept(p, w.private("ann", "thanks"))
				pass(time.Second)
				all := asked.all()
				last := all[len(all)-1]
				if got := strings.Count(last, "use the other one"); got != 1 {
					t.Errorf("the model reads it %d times: %q", got, last)
				}
				marked := strings.Count(last, "[the person who declined this call says why]\nuse the other one") == 1 && strings.Contains(last, "change: change it")
				answers := w.texts(bot.Final)
				if marked != c.taken || (len(answers) == 3) != c.taken {
					t.Errorf("marked %t, answers %q, asked %q", marked, answers, all)
				}
				if c.during && !c.restart && !strings.Contains(all[2], "use the other one") {
					t.Errorf("the turn that goes on does not read it: %q", all)
				}
				if c.taken && !strings.Contains(strings.Join(all[:len(all)-1], "\n"), "use the other one") {
					t.Errorf("the next turn does not read it: %q", all)
				}
			})
		})
	}
}
