package quota_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/quota"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/bot/turn"
)

func (d *desk) manager() *quota.Manager {
	return &quota.Manager{
		Meter: d.meter, Facts: d.store, Words: texts.Words{}, Now: func() time.Time { return d.clock }, Admins: func() []string { return []string{"Ann"} },
		Record: func(call *turn.Call, _ any) []bot.Fact {
			return []bot.Fact{{Bucket: "audit", Key: call.Message.Args, Value: "1"}}
		},
	}
}

// manage says something as an admin, and stores what follows as the dispatcher does.
func (d *desk) manage(g *quota.Manager, msg *bot.Message, admin bool, args string) string {
	d.t.Helper()
	said := *msg
	said.Args, said.Name = args, "Ann"
	text, e, err := g.Manage(d.t.Context(), &turn.Call{Message: &said, Admin: admin})
	if err != nil {
		d.t.Fatal(err)
	}
	if len(e.Change.Facts) == 0 {
		return text
	}
	applied, err := d.store.Apply(d.t.Context(), &e.Change)
	if err != nil {
		d.t.Fatal(err)
	}
	if _, err := e.Then(d.t.Context(), applied); err != nil {
		d.t.Fatal(err)
	}
	return text
}

func TestManage(t *testing.T) {
	t.Parallel()
	d := setup(t, quota.Options{Limits: turns(scopes{User: 2})})
	g := d.manager()
	for _, step := range []struct {
		args, want string
		admin      bool
	}{
		{"set 42 turns/day 1", "That is for admins", false},
		{"set 42 turns/day", "Something is missing after set, or too much is there.\n/quota set WHO", true},
		{"set 42 turns/year 1", "/quota set WHO", true},
		{"set 42 cakes/day 1", "/quota set WHO", true},
		{"set 42 turns/day -1", "/quota set WHO", true},
		{"set 42 turns/day 0", "/quota set WHO", true},
		{"set 42 usd/day NaN", "/quota set WHO", true},
		{"set 42 usd/day 1e300", "/quota set WHO", true},
		{"set somebody turns/day 1", "I do not know whose", true},
		{"set 0 turns/day 1", "I do not know whose", true},
		{"list", "No limits were set", true},
		{"unset 42 turns/day", "Nothing is set there", true},
		{"set 42 turns/day 1", "The limit of person 42 from now on: 1 turn a day", true},
		{"set chat usd/month 2.50", "The limit of chat 9 from now on: $2.50 a month", true},
		{"set -100 Tokens/Month off", "The limit of chat -100 from now on: no limit on tokens a month", true},
		{"list", "Limits that were set in the chat:\n• chat -100: no limit on tokens a month (Ann, 4 Mar 2026, 23:59 UTC)\n• chat 9: $2.50 a month (Ann, 4 Mar 2026, 23:59 UTC)\n• person 42: 1 turn a day", true},
	} {
		if got := d.manage(g, private("9"), step.admin, step.args); !strings.HasPrefix(got, step.want) {
			t.Errorf("%s: %q, want %q", step.args, got, step.want)
		}
	}
	if recorded, err := d.store.Fact(t.Context(), "audit", "set 42 turns/day 1", d.clock); err != nil || recorded == "" {
		t.Errorf("not recorded: %v", err)
	}
	if got := d.used(private("42")); got != "user 0/1" {
		t.Errorf("used %s", got)
	}
	d.manage(g, private("9"), true, "set 42 turns/day 5")
	d.admit(private("42"), "a")
	d.admit(private("42"), "b")
	d.admit(private("42"), "c")
	d.manage(g, private("9"), true, "unset 42 turns/day")
	if refusal, _ := d.admit(private("42"), "d"); refusal == "" {
		t.Error("the configured limit does not hold")
	}
	g.Priceless = []string{"local-model"}
	if got := d.manage(g, private("9"), true, "set 42 usd/day 1"); !strings.Contains(got, "local-model") {
		t.Errorf("a limit of money without prices: %q", got)
	}
}

// TestSetMoves: a limit that was set for a group goes with it to its new id, and holds in another process that looks.
func TestSetMoves(t *testing.T) {
	t.Parallel()
	d := setup(t, quota.Options{})
	if got := d.manage(d.manager(), group("42", ""), true, "set chat turns/day 1"); !strings.HasPrefix(got, "The limit of chat -100 from now on: 1 turn a day") {
		t.Errorf("set: %q", got)
	}
	d.admit(group("42", ""), "a")
	d.restart(quota.Options{})
	if err := d.meter.Follow(t.Context(), d.store); err != nil {
		t.Fatal(err)
	}
	if refusal, _ := d.admit(group("43", ""), "b"); !strings.HasPrefix(refusal, "The 1 turn of this chat for today is used up") {
		t.Errorf("in another process: %q", refusal)
	}
	if _, err := d.store.Apply(t.Context(), &bot.Change{Move: &bot.Move{Channel: "telegram", Bot: "1", From: "-100", To: "-200"}}); err != nil {
		t.Fatal(err)
	}
	if err := d.meter.Follow(t.Context(), d.store); err != nil {
		t.Fatal(err)
	}
	next := group("42", "")
	next.Place.Chat = "-200"
	if refusal, _ := d.admit(next, "c"); refusal == "" {
		t.Error("the limit stayed behind")
	}
}

// TestALimitHoldsBeforeItIsFollowed: a turn that is admitted right after a limit was stored is held to it, though the
// process that set it has other things to do first.
func TestALimitHoldsBeforeItIsFollowed(t *testing.T) {
	t.Parallel()
	d := setup(t, quota.Options{})
	msg := private("9")
	msg.Args = "set 42 turns/day 1"
	_, e, err := d.manager().Manage(t.Context(), &turn.Call{Message: msg, Admin: true})
	if err != nil {
		t.Fatal(err)
	}
	applied, err := d.store.Apply(t.Context(), &e.Change)
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := d.admit(private("42"), "first"); got != "" {
		t.Errorf("the first turn: %q", got)
	}
	if got, _ := d.admit(private("42"), "second"); !strings.HasPrefix(got, "Your 1 turn for today is used up") {
		t.Errorf("the second turn: %q", got)
	}
	if _, err := e.Then(t.Context(), applied); err != nil {
		t.Fatal(err)
	}
	if got, _ := d.admit(private("42"), "third"); got == "" {
		t.Error("the third turn is admitted")
	}
}

// slowFacts answers the first question with what was stored when it was asked, late.
type slowFacts struct {
	bot.Facts
	asked, answer chan struct{}
	late          atomic.Bool
}

func (s *slowFacts) FactsOf(ctx context.Context, bucket, prefix string, now time.Time) ([]bot.Fact, error) {
	list, err := s.Facts.FactsOf(ctx, bucket, prefix, now)
	if s.late.CompareAndSwap(false, true) {
		close(s.asked)
		<-s.answer
	}
	return list, err
}

// TestALateReadIsNotTheLast: limits that were read before one was set do not replace those that were read after it.
func TestALateReadIsNotTheLast(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := setup(t, quota.Options{})
		slow := &slowFacts{Facts: d.store, asked: make(chan struct{}), answer: make(chan struct{})}
		follow := func() {
			if err := d.meter.Follow(t.Context(), slow); err != nil {
				t.Error(err)
			}
		}
		go follow()
		<-slow.asked
		msg := private("9")
		msg.Args = "set 42 turns/day 1"
		_, e, err := d.manager().Manage(t.Context(), &turn.Call{Message: msg, Admin: true})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := d.store.Apply(t.Context(), &e.Change); err != nil {
			t.Fatal(err)
		}
		go follow()
		synctest.Wait()
		close(slow.answer)
		synctest.Wait()
		if got := d.used(private("42")); got != "user 0/1" {
			t.Errorf("used %q", got)
		}
	})
}

// TestCommand: /quota tells how much is used, and says so if that cannot be read.
func TestCommand(t *testing.T) {
	t.Parallel()
	d := setup(t, quota.Options{Limits: turns(scopes{User: 20})})
	away := quota.New(quota.Options{Limits: turns(scopes{User: 1})}, &full{}, &mirror{err: errAway}, texts.Words{}, time.Now, nil)
	ask := func(ctx context.Context, meter *quota.Meter, args string) (string, error) {
		g, msg := d.manager(), private("42")
		g.Meter, msg.Args = meter, args
		e, err := g.Command(ctx, &turn.Call{Message: msg})
		if err != nil {
			return "", err
		}
		return e.Change.Send[0].Content.Text, nil
	}
	for _, row := range []struct {
		meter      *quota.Meter
		args, want string
	}{
		{d.meter, "", "0 / 20 turns"},
		{d.meter, "set 42 turns/day 1", "That is for admins"},
		{away, "", "I cannot read the quotas"},
	} {
		if got, err := ask(t.Context(), row.meter, row.args); err != nil || !strings.Contains(got, row.want) {
			t.Errorf("/quota %s: %q, %v, want %q", row.args, got, err, row.want)
		}
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := ask(ended, away, ""); !errors.Is(err, errAway) {
		t.Errorf("when the service stops: %v", err)
	}
}
