package approval_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/approval"
	"github.com/zephbot/zephbot/bot/texts"
)

func (w *world) reply(person, to, text string) bot.Message {
	m := w.message(person)
	m.Kind, m.Text, m.Query = bot.Text, text, ""
	m.Message, m.Reply = "100", &bot.Quote{ID: to, Own: true, Text: "May I?"}
	return m
}

// TestWhy: who denied says why in a reply to the card, for five minutes; nobody else can, not even an approver or who
// asked, and nothing but words of their own is one.
func TestWhy(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		person, to, text string
		choice           string
		after            time.Duration
		change           func(*bot.Message)
		takes            bool
	}{
		"who denied":             {person: "boss", takes: true},
		"at the last moment":     {person: "boss", after: 5 * time.Minute, takes: true},
		"too late":               {person: "boss", after: 5*time.Minute + time.Second},
		"who asked":              {person: "ann"},
		"another approver":       {person: "admin"},
		"a stranger":             {person: "eve"},
		"to another message":     {person: "boss", to: "98"},
		"to an approved card":    {person: "boss", choice: "y"},
		"a command":              {person: "boss", change: func(m *bot.Message) { m.Command = "stop" }},
		"no words":               {person: "boss", text: " "},
		"with a file":            {person: "boss", change: func(m *bot.Message) { m.Files = []bot.Attachment{{Kind: bot.Photo, ID: "f"}} }},
		"passed on":              {person: "boss", change: func(m *bot.Message) { m.Forwarded = true }},
		"a bot":                  {person: "boss", change: func(m *bot.Message) { m.FromBot = true }},
		"to somebody's message":  {person: "boss", change: func(m *bot.Message) { m.Reply.Own = false }},
		"to nothing":             {person: "boss", change: func(m *bot.Message) { m.Reply = nil }},
		"in another chat":        {person: "boss", change: func(m *bot.Message) { m.Place.Chat = "-6" }},
		"a channel's other name": {person: "boss", change: func(m *bot.Message) { m.Caller = "" }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t)
			a := w.ask(question("c1"))[0]
			w.sent(a.Row, "99")
			choice := c.choice
			if choice == "" {
				choice = "n"
			}
			e, _ := w.press("boss", data(a, choice))
			if offered := strings.Contains(e.Change.Send[1].Content.Text, "reply to this message by 14:05 UTC"); offered != (choice == "n") {
				t.Errorf("the record: %q", e.Change.Send[1].Content.Text)
			}
			w.now = w.now.Add(c.after)
			m := w.reply(c.person, "99", "use trash instead")
			if c.to != "" {
				m.Reply.ID = c.to
			}
			if c.text != "" {
				m.Text = c.text
			}
			if c.change != nil {
				c.change(&m)
			}
			takes, err := w.Explains(t.Context(), &m, w.now)
			if err != nil || takes != c.takes {
				t.Fatalf("takes %t, %v", takes, err)
			}
			if m.Reply == nil {
				return
			}
			w.now = w.now.Add(time.Hour) // it is handled late, and came in time
			effect, err := w.Explain(t.Context(), &m, w.now.Add(-time.Hour))
			if err != nil {
				t.Fatal(err)
			}
			w.follow(effect, w.apply(&effect.Change))
			entries, told, err := w.Reasons(t.Context(), session, false)
			if err != nil || (len(entries) == 1 && len(told) == 1) != c.takes {
				t.Fatalf("%+v, %v", entries, err)
			}
			if !c.takes {
				return
			}
			if r := entries[0]; r.Text != "use trash instead" || r.Caller != "telegram:boss" || r.Speaker != "BOSS" || r.Call != "c1" || r.Quote == nil || !r.Quote.Own || r.Quote.Text != "bash: rm c1" {
				t.Errorf("%+v", entries[0])
			}
			w.apply(&bot.Change{Facts: told})
			if entries, _, err = w.Reasons(t.Context(), session, true); err != nil || len(entries) != 0 {
				t.Errorf("again: %+v, %v", entries, err)
			}
		})
	}
}

// TestWhyByCommand: /deny offers it too, on the card.
func TestWhyByCommand(t *testing.T) {
	t.Parallel()
	w := setup(t)
	a := w.ask(question("c1"))[0]
	w.sent(a.Row, "99")
	w.command("boss", a.Short, bot.Denied)
	m := w.reply("boss", "99", "no")
	if takes, err := w.Explains(t.Context(), &m, w.now); err != nil || !takes {
		t.Errorf("%t, %v", takes, err)
	}
}

// TestAttackWhyPressed: a forged press hands in no reason where people reply; where they cannot, a channel hands in the
// words, of who denied alone.
func TestAttackWhyPressed(t *testing.T) {
	t.Parallel()
	for replies, want := range map[bool]int{true: 0, false: 1} {
		w := setup(t)
		w.Broker = approval.New(approval.Deps{
			Store: w.store, Words: texts.Words{}, Now: func() time.Time { return w.now }, Replies: replies,
			Rights: func(context.Context, bot.Place, string) (approval.Rights, error) { return w.rights, nil },
		}, 10*time.Minute)
		a := w.ask(question("c1"))[0]
		for _, c := range []struct{ person, choice, text string }{
			{"ann", approval.Why, "before it is denied"}, {"ann", "n", ""}, {"boss", approval.Why, "somebody else"}, {"ann", approval.Why, ""}, {"ann", approval.Why, "mine"},
		} {
			m := w.message(c.person)
			m.Kind, m.Data, m.Text = bot.Press, data(a, c.choice), c.text
			e, err := w.Press(t.Context(), &m)
			if err != nil {
				t.Fatal(err)
			}
			w.follow(e, w.apply(&e.Change))
		}
		entries, _, err := w.Reasons(t.Context(), session, true)
		if err != nil || len(entries) != want || want == 1 && entries[0].Text != "mine" {
			t.Errorf("replies %t: %+v, %v", replies, entries, err)
		}
	}
}

// TestDecidedIsThePressedCard: whatever the order of presses on several cards of a step, of votes, expiry, /approve and
// presses whose data belongs to another card, each decision is one about the card whose button was pressed.
func TestDecidedIsThePressedCard(t *testing.T) {
	t.Parallel()
	for seed := range uint64(300) {
		w := setup(t)
		random := rand.New(rand.NewPCG(seed, 3))
		if random.IntN(4) == 0 {
			w.rights.Required = 2
		}
		cards := w.ask(question("c1"), question("c2"), question("c3"))
		want := map[string]bot.ApprovalState{}
		votes := map[string]map[string]bool{}
		for i := range cards {
			w.sent(cards[i].Row, fmt.Sprint(100+i))
			want[cards[i].ID], votes[cards[i].ID] = bot.Open, map[string]bool{}
		}
		for range 12 {
			i := random.IntN(len(cards))
			a := cards[i]
			person := []string{"ann", "boss", "admin", "eve"}[random.IntN(4)]
			choice := []string{"y", "s", "n"}[random.IntN(3)]
			if person == "ann" && choice != "n" && w.rights.Required > 1 || person == "eve" || choice == "s" && w.rights.Required > 1 {
				choice = "y"
			}
			m := w.message(person)
			m.Kind, m.Data, m.Message = bot.Press, data(a, choice), fmt.Sprint(100+i)
			counts := person != "eve" && (person != "ann" || choice == "n" || w.rights.Required <= 1)
			switch random.IntN(6) {
			case 0: // the data of another card: a forged press
				m.Message = fmt.Sprint(100 + (i+1)%len(cards))
				counts = false
			case 1:
				w.now = w.now.Add(2 * time.Minute)
			case 2:
				effects, err := w.Expired(t.Context(), w.now)
				if err != nil {
					t.Fatal(err)
				}
				for _, e := range effects {
					w.apply(&e.Change)
				}
			}
			for _, c := range cards {
				if want[c.ID] == bot.Open && w.read(c.ID).State == bot.Expired {
					want[c.ID] = bot.Expired
				}
			}
			e, err := w.Press(t.Context(), &m)
			if err != nil {
				t.Fatal(err)
			}
			w.follow(e, w.apply(&e.Change))
			switch {
			case want[a.ID] != bot.Open || !counts && !w.now.After(a.Expires):
			case !a.Expires.After(w.now):
				if w.read(a.ID).State == bot.Expired { // a press that comes too late expires it
					want[a.ID] = bot.Expired
				}
			case choice == "n":
				want[a.ID] = bot.Denied
			default:
				if votes[a.ID][person] = true; len(votes[a.ID]) >= a.Needed {
					want[a.ID] = bot.Approved
				}
			}
			for _, c := range cards {
				if got := w.read(c.ID).State; got != want[c.ID] {
					t.Fatalf("seed %d: %s by %s on card %d: card %s is %s, want %s", seed, choice, person, i, c.Call, got, want[c.ID])
				}
			}
		}
	}
}
