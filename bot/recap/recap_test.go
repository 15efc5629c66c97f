package recap_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/agent/llm/cost"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/bottest"
	"github.com/zephbot/zephbot/bot/facts"
	"github.com/zephbot/zephbot/bot/job"
	"github.com/zephbot/zephbot/bot/recap"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/bot/turn"
)

var (
	private = bot.Place{Channel: "telegram", Bot: "1", Chat: "42", Surface: bot.SurfaceBot}
	session = private.SessionKey("")
)

type plain struct{}

func (plain) Compose(markdown string, _ bot.Place, _ string) []bot.Content {
	return []bot.Content{{Text: markdown}}
}

func (plain) Divide(content bot.Content, _ bot.Place, _ string) []bot.Content {
	return []bot.Content{content}
}

// purse pays for everything.
type purse struct{ cost.Unlimited }

func (purse) Begin(*bot.Ledger, string, int) turn.Spent { return turn.Spent{} }
func (purse) Spend(turn.Next) turn.Spent                { return turn.Spent{} }
func (purse) Stored(*turn.Spent, *bot.Applied)          {}
func (purse) Notices() []turn.Notice                    { return nil }
func (purse) Close()                                    {}
func (purse) Flush(context.Context) error               { return nil }

// desk is a Handler with what it has done.
type desk struct {
	*recap.Handler
	store *bottest.Store
	mu    sync.Mutex
	talks []recap.Talk
	write func(ctx context.Context) error

	questions []string
	refuses   string // why side questions are refused; "" = they are not
	end       func()
}

// open returns a running Handler of a process, which ends with the test.
func open(t *testing.T, store *bottest.Store, owner string, o recap.Options) *desk {
	t.Helper()
	d := closed(store, owner, o)
	d.run(t)
	return d
}

// closed returns a Handler that does not run.
func closed(store *bottest.Store, owner string, o recap.Options) *desk {
	d := &desk{store: store, write: func(context.Context) error { return nil }}
	d.Handler = recap.New(recap.Deps{
		Deps: job.Deps{
			Store: store, Keeper: facts.Keeper{Store: store, Log: zerolog.Nop()}, Wake: func(bot.Place) {},
			Current: func(s bot.SessionKey) bot.SessionKey { return s }, Owner: owner,
			Lives: func(other string) bool { return other == owner }, Now: time.Now, Log: zerolog.Nop(),
		},
		Journals: store, Composer: plain{}, Words: texts.Words{},
		Open: func(*bot.Message, string) turn.Budget { return purse{} },
		Write: func(ctx context.Context, talk recap.Talk) (string, error) {
			d.mu.Lock()
			d.talks = append(d.talks, talk)
			d.mu.Unlock()
			if _, ok := cost.PayerOf(ctx); !ok {
				return "", cost.ErrNobody
			}
			return "It was about Heron.", d.write(ctx)
		},
		Answer: func(ctx context.Context, talk recap.Talk, asked *bot.Message) (string, error) {
			d.mu.Lock()
			d.talks, d.questions = append(d.talks, talk), append(d.questions, strings.TrimSpace(asked.Args))
			d.mu.Unlock()
			if _, ok := cost.PayerOf(ctx); !ok {
				return "", cost.ErrNobody
			}
			return "By the way.", d.write(ctx)
		},
		Admit: func(_ context.Context, _ *bot.Message, id string) (turn.Admission, error) {
			return turn.Admission{Refusal: d.refuses, Charges: []bot.Charge{{Key: id, Scope: "s", Unit: "turns", Day: "2026-01-01", N: 1}}}, nil
		},
	}, o)
	return d
}

func (d *desk) run(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = d.Feature().Run(ctx) }) // it has no error
	d.end = sync.OnceFunc(func() { cancel(); running.Wait() })
	t.Cleanup(d.end)
	synctest.Wait()
}

// said stores a conversation of so many turns, and returns it.
func said(t *testing.T, store *bottest.Store, turns int) []journal.Entry {
	t.Helper()
	for i := range turns {
		lane, err := store.Lane(t.Context(), session)
		if err != nil {
			t.Fatal(err)
		}
		id := fmt.Sprint("t", i)
		_, err = store.Apply(t.Context(), &bot.Change{Append: &bot.Append{Session: session, After: lane.Last, Entries: []journal.Entry{
			{Turn: id, Kind: journal.UserEntry, At: time.Now(), Text: fmt.Sprint("question ", i)},
			{Turn: id, Kind: journal.AssistantEntry, At: time.Now(), Uses: []journal.Use{{Call: id, Name: "read"}}},
			{Turn: id, Kind: journal.ResultEntry, At: time.Now(), Call: id, Text: "x"},
			{Turn: id, Kind: journal.AnswerEntry, At: time.Now(), Text: fmt.Sprint("answer ", i)},
		}}})
		if err != nil {
			t.Fatal(err)
		}
	}
	entries, err := store.Journal(t.Context(), session, 0)
	if err != nil {
		t.Fatal(err)
	}
	return entries
}

// ask gives the command and stores its effect; then carries on what follows from it.
func (d *desk) ask(t *testing.T, id string, then bool) {
	t.Helper()
	msg := &bot.Message{ID: id, Place: private, Caller: "telegram:42", Command: "recap"}
	e, err := d.Command(t.Context(), &turn.Call{Message: msg, Session: session})
	if err == nil {
		_, err = d.store.Apply(t.Context(), &e.Change)
	}
	if err == nil && then && e.Then != nil {
		_, err = e.Then(t.Context(), nil)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// sent returns what is to be sent.
func (d *desk) sent(t *testing.T) []string {
	t.Helper()
	rows, err := d.store.Due(t.Context(), "telegram", "1", time.Now().Add(time.Hour), 100)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, r := range rows {
		list = append(list, string(r.Purpose)+": "+r.Content.Text)
	}
	return list
}

const given = "reply: *Recap of this conversation*\n\nIt was about Heron."

func TestCommand(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		turns, most int
		write       func(ctx context.Context) error
		want        string
		entries     int // that the model reads
	}{
		"a recap":     {turns: 3, most: 50, want: given, entries: 12},
		"the newest":  {turns: 9, most: 4, want: given, entries: 8},
		"nothing yet": {most: 50, want: "reply: There is nothing to recap yet: this conversation has just begun."},
		"off":         {turns: 3, want: "reply: Recaps are switched off here."},
		"too slow": {turns: 1, most: 50, entries: 4, want: "reply: I could not write a recap just now. Please try again in a moment.", write: func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		}},
		"no money": {turns: 1, most: 50, entries: 4, want: "reply: Used up.", write: func(context.Context) error { return &cost.Denied{Text: "Used up."} }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				d := open(t, bottest.New(), "one", recap.Options{Messages: tt.most})
				if tt.write != nil {
					d.write = tt.write
				}
				before := said(t, d.store, tt.turns)
				began := time.Now()
				d.ask(t, "m1", true)
				synctest.Wait()
				if name == "too slow" {
					<-time.After(recap.Limit) // of the fake clock
					synctest.Wait()
				}
				if got := d.sent(t); len(got) != 1 || got[0] != tt.want {
					t.Errorf("sent %q, want %q", got, tt.want)
				}
				if took := time.Since(began); took > recap.Limit {
					t.Errorf("it took %s", took)
				}
				if n := len(d.talks); (tt.entries > 0) != (n == 1) || n == 1 && len(d.talks[0].Entries) != tt.entries {
					t.Errorf("the model reads %+v", d.talks)
				}
				if after, err := d.store.Journal(t.Context(), session, 0); err != nil || len(after) != len(before) {
					t.Errorf("%d entries, before %d (%v)", len(after), len(before), err)
				}
				if left, err := d.store.FactsOf(t.Context(), "recap_job", "", time.Now()); err != nil || len(left) != 0 {
					t.Errorf("left: %v, %v", left, err)
				}
				d.end()
			})
		})
	}
}

// TestCommandIsKilled: what a process was asked for and did not give, the next one gives, once.
func TestCommandIsKilled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := bottest.New()
		dead := open(t, store, "one", recap.Options{Messages: 50})
		said(t, store, 2)
		dead.ask(t, "m1", false)
		dead.end()
		next := open(t, store, "two", recap.Options{Messages: 50})
		synctest.Wait()
		for range 2 {
			if err := next.Feature().Follow(t.Context()); err != nil {
				t.Error(err)
			}
			synctest.Wait()
		}
		if got := next.sent(t); len(got) != 1 || got[0] != given {
			t.Errorf("sent %q", got)
		}
		next.end()
	})
}

// TestAskedBeforeItRuns: a recap that is asked for while the service starts is given, once.
func TestAskedBeforeItRuns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := bottest.New()
		d := closed(store, "one", recap.Options{Messages: 50})
		said(t, store, 2)
		d.ask(t, "m1", true)
		d.run(t)
		if got := d.sent(t); len(got) != 1 || got[0] != given {
			t.Errorf("sent %q", got)
		}
		d.end()
	})
}

func TestResumed(t *testing.T) {
	t.Parallel()
	group := private
	group.Group = true
	for name, tt := range map[string]struct {
		turns   int
		pause   time.Duration
		place   bot.Place
		off     bool
		summary bool
		fails   error
		opened  bool // before the message, the person has opened the conversation
		want    int
	}{
		"after a day":             {turns: 2, pause: recap.Pause, want: 1},
		"soon":                    {turns: 2, pause: recap.Pause - time.Second},
		"opened":                  {turns: 2, pause: time.Minute, opened: true, want: 1},
		"opened after a day":      {turns: 2, pause: recap.Pause, opened: true, want: 1},
		"opened, hardly anything": {turns: 1, pause: recap.Pause, opened: true},
		"opened, off":             {turns: 2, pause: recap.Pause, off: true, opened: true},
		"opened, the model fails": {turns: 2, pause: recap.Pause, opened: true, fails: errors.New("down")},
		"off":                     {turns: 2, pause: recap.Pause, off: true},
		"in a group":              {turns: 2, pause: recap.Pause, place: group},
		"hardly anything is said": {turns: 1, pause: recap.Pause},
		"nothing is said":         {pause: recap.Pause},
		"summed up":               {turns: 3, pause: recap.Pause, summary: true},
		"the model fails":         {turns: 2, pause: recap.Pause, fails: errors.New("down")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				store := bottest.New()
				before := said(t, store, tt.turns)
				<-time.After(tt.pause) // of the fake clock
				o := recap.Options{OnResume: !tt.off, Messages: 50}
				if tt.summary {
					before[4] = journal.Entry{N: 5, Kind: journal.SummaryEntry, Text: "was", Keeps: 1}
				}
				d := open(t, store, "one", o)
				d.write = func(context.Context) error { return tt.fails }
				msg := &bot.Message{ID: "m1", Place: private, Caller: "telegram:42"}
				if tt.place.Chat != "" {
					msg.Place = tt.place
				}
				if tt.opened {
					d.Opened(t.Context(), msg, session)
					synctest.Wait()
				}
				for range 2 {
					d.Resumed(msg, session, before)
					synctest.Wait()
				}
				got := d.sent(t)
				if len(got) != tt.want || tt.want == 1 && !strings.HasPrefix(got[0], "notice: *Recap") {
					t.Errorf("sent %q", got)
				}
				d.end()
			})
		})
	}
}

// TestAside: a side question is answered once, paid as a turn, from the conversation as it is, and leaves nothing in it.
func TestAside(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := bottest.New()
		said(t, store, 2)
		d := closed(store, "a", recap.Options{}) // recaps may be switched off
		ask := func(id, args string, then bool) string {
			msg := &bot.Message{ID: id, Place: private, Caller: "telegram:42", Command: "btw", Args: args, Message: "9"}
			commands := d.Feature().Commands
			e, err := commands[len(commands)-1].Run(t.Context(), &turn.Call{Message: msg, Session: session})
			if err == nil {
				_, err = store.Apply(t.Context(), &e.Change)
			}
			if err == nil && then && e.Then != nil {
				_, err = e.Then(t.Context(), nil)
			}
			if err != nil {
				t.Fatal(err)
			}
			if len(e.Change.Send) > 0 {
				return e.Change.Send[0].Content.Text
			}
			return ""
		}
		if got := ask("1", " ", true); got != (texts.Words{}).AsideHelp("en") {
			t.Errorf("without a question: %q", got)
		}
		d.refuses = "Your turns are used up."
		if got := ask("2", "what is it?", true); got != d.refuses {
			t.Errorf("without a turn left: %q", got)
		}
		d.refuses = ""
		ask("3", " what is it? ", true) // before the service runs: its next start answers
		d.run(t)
		synctest.Wait()
		ask("4", "and now?", true)
		synctest.Wait()
		d.write = func(context.Context) error { return errors.New("away") }
		ask("5", "still?", true)
		synctest.Wait()
		rows, err := store.Rows(t.Context(), "", 0)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for i := range rows {
			if strings.HasPrefix(rows[i].Key, "btw/") {
				got = append(got, rows[i].Key+" "+rows[i].ReplyTo+" "+rows[i].Content.Text)
			}
		}
		want := []string{"btw/3/0 9 By the way.", "btw/4/0 9 By the way.", "btw/5/0 9 " + (texts.Words{}).AsideFailed("en")}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("answered %q", got)
		}
		if fmt.Sprint(d.questions) != "[what is it? and now? still?]" || len(d.talks) != 3 || len(d.talks[0].Entries) != 8 {
			t.Errorf("asked %q about %d", d.questions, len(d.talks))
		}
		if used, err := store.Used(t.Context(), "s", "turns", "2026-01-01"); err != nil || used != 3 {
			t.Errorf("%d turns are paid, %v", used, err)
		}
		if entries, err := store.Journal(t.Context(), session, 0); err != nil || len(entries) != 8 {
			t.Errorf("the conversation has %d entries, %v", len(entries), err)
		}
		if left, err := store.FactsOf(t.Context(), "recap_job", "", time.Now()); err != nil || len(left) != 0 {
			t.Errorf("jobs are left: %v, %v", left, err)
		}
	})
}
