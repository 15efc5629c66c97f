package quota_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/agent/llm/cost"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/bottest"
	"github.com/zephbot/zephbot/bot/quota"
	"github.com/zephbot/zephbot/bot/quota/quotatest"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/bot/turn"
)

var errAway = errors.New("connection refused")

func TestCounter(t *testing.T) {
	t.Parallel()
	quotatest.Suite(t, func(*testing.T) quota.Counter { return &quotatest.Counter{} })
}

// desk is a meter with everything around it.
type desk struct {
	t       *testing.T
	meter   *quota.Meter
	counter *quotatest.Counter
	store   *bottest.Store
	mu      sync.Mutex
	denied  []string
	clock   time.Time
}

// scopes are turns a day.
type scopes struct{ User, Chat, Bot int64 }

func turns(s scopes) quota.Scopes {
	return quota.Scopes{User: aDay(s.User), Chat: aDay(s.Chat), Bot: aDay(s.Bot)}
}

func aDay(n int64) quota.Limits { return quota.TurnsADay(n) }

func setup(t *testing.T, o quota.Options) *desk {
	t.Helper()
	d := &desk{t: t, counter: &quotatest.Counter{}, store: bottest.New(), clock: time.Date(2026, 3, 4, 23, 59, 0, 0, time.UTC)}
	d.restart(o)
	return d
}

// restart is a new process on the same counters and the same store.
func (d *desk) restart(o quota.Options) {
	d.meter = quota.New(o, d.counter, d.store, texts.Words{}, func() time.Time { return d.clock }, func(scope string) {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.denied = append(d.denied, scope)
	})
}

func private(person string) *bot.Message {
	return &bot.Message{
		ID: "1", Kind: bot.Text, Person: person, Caller: "telegram:" + person,
		Place: bot.Place{Channel: "telegram", Bot: "1", Surface: "bot", Chat: person},
	}
}

func group(person, thread string) *bot.Message {
	m := private(person)
	m.Place.Chat, m.Place.Thread, m.Place.Group = "-100", thread, true
	return m
}

// admit admits a turn and stores its charges, as the dispatcher does.
func (d *desk) admit(msg *bot.Message, turn string) (refusal, notice string) {
	d.t.Helper()
	return d.admitBy(d.meter, msg, turn)
}

func (d *desk) admitBy(m *quota.Meter, msg *bot.Message, turn string) (refusal, notice string) {
	d.t.Helper()
	a, err := quotatest.Begin(d.t.Context(), m, d.store, msg, turn)
	if err != nil {
		d.t.Error(err)
	}
	if a.Refusal != "" && (len(a.Charges) > 0 || a.Ledger != nil) {
		d.t.Errorf("a refused turn is charged: %+v", a)
	}
	return a.Refusal, a.Notice
}

// used reads what was used up by scope.
func (d *desk) used(msg *bot.Message) string {
	d.t.Helper()
	usage, err := d.meter.Usage(d.t.Context(), msg)
	if err != nil {
		d.t.Fatal(err)
	}
	var parts []string
	for _, u := range usage {
		parts = append(parts, fmt.Sprintf("%s %d/%d", u.Scope, u.Used, u.Limit))
	}
	return strings.Join(parts, ", ")
}

func TestWhoPays(t *testing.T) {
	t.Parallel()
	limits := turns(scopes{User: 10, Chat: 20, Bot: 30})
	own := map[string]quota.Limits{"-100": aDay(5)}
	topic := map[string]quota.Limits{"-100": aDay(5), "-100/7": aDay(3)}
	tests := []struct {
		name    string
		options quota.Options
		msg     *bot.Message
		want    string
	}{
		{"private", quota.Options{Limits: limits}, private("42"), "user 1/10, bot 1/30"},
		{"private, the chat pays in groups", quota.Options{Limits: limits, Payer: "chat"}, private("42"), "user 1/10, bot 1/30"},
		{"default", quota.Options{Limits: limits}, group("42", ""), "user 1/10, bot 1/30"},
		{"user", quota.Options{Limits: limits, Payer: "user"}, group("42", ""), "user 1/10, bot 1/30"},
		{"chat", quota.Options{Limits: limits, Payer: "chat"}, group("42", ""), "chat 1/20, bot 1/30"},
		{"both", quota.Options{Limits: limits, Payer: "both"}, group("42", ""), "user 1/10, chat 1/20, bot 1/30"},
		{"chat with its own limit", quota.Options{Limits: limits, Payer: "chat", ByChat: own}, group("42", ""), "chat 1/5, bot 1/30"},
		{"the chat's own limit holds whoever pays", quota.Options{Limits: limits, ByChat: own}, group("42", ""), "user 1/10, chat 1/5, bot 1/30"},
		{"a chat without limit", quota.Options{Limits: limits, Payer: "chat", ByChat: map[string]quota.Limits{"-100": aDay(0)}}, group("42", ""), "chat 1/0, bot 1/30"},
		{"a private chat with its own limit", quota.Options{Limits: limits, ByChat: map[string]quota.Limits{"42": aDay(2)}}, private("42"), "user 1/10, chat 1/2, bot 1/30"},
		{"topic", quota.Options{Limits: limits, ByChat: topic}, group("42", "7"), "user 1/10, chat 1/5, chat 1/3, bot 1/30"},
		{"another topic", quota.Options{Limits: limits, ByChat: topic}, group("42", "8"), "user 1/10, chat 1/5, bot 1/30"},
		{"no limits", quota.Options{}, private("42"), "user 1/0"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d := setup(t, tt.options)
			if refusal, _ := d.admit(tt.msg, "turn"); refusal != "" {
				t.Fatalf("refused: %s", refusal)
			}
			if got := d.used(tt.msg); got != tt.want {
				t.Errorf("used %s, want %s", got, tt.want)
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	d := setup(t, quota.Options{Limits: turns(scopes{User: 2, Chat: 3, Bot: 5}), Payer: "both"})
	steps := []struct {
		msg     *bot.Message
		turn    string
		refusal string
	}{
		{group("42", ""), "a", ""},
		{group("42", ""), "a", ""}, // the same turn again: after a crash between charge and claim
		{group("42", ""), "b", ""},
		{group("42", ""), "c", "Your 2 turns"},
		{private("42"), "d", "Your 2 turns"},
		{group("43", ""), "e", ""},
		{group("44", ""), "f", "The 3 turns of this chat"},
		{private("44"), "g", ""},
		{private("44"), "h", ""},
		{private("45"), "i", "My 5 turns"},
	}
	for i, s := range steps {
		refusal, _ := d.admit(s.msg, s.turn)
		if (s.refusal == "") != (refusal == "") || !strings.HasPrefix(refusal, s.refusal) {
			t.Errorf("step %d: %q, want %q", i, refusal, s.refusal)
		}
	}
	if diff := cmp.Diff([]string{"user", "user", "chat", "bot"}, d.denied); diff != "" {
		t.Errorf("denied (-want +got):\n%s", diff)
	}
	if got := d.used(group("44", "")); got != "user 2/2, chat 3/3, bot 5/5" {
		t.Errorf("a refusal was charged in part: %s", got)
	}
	inGroup, err := d.meter.Admit(t.Context(), group("42", ""), "x")
	if err != nil || inGroup.Once != "used-up/user/telegram:42/turns/2026-03-04/"+group("42", "").Place.ChatKey()+"/telegram:42" {
		t.Errorf("in a group: said once as %q, %v", inGroup.Once, err)
	}
	alone, err := d.meter.Admit(t.Context(), private("42"), "y")
	if err != nil || alone.Once != "" {
		t.Errorf("alone a person is always answered: %q, %v", alone.Once, err)
	}
	d.clock = d.clock.Add(2 * time.Minute) // another day
	if refusal, _ := d.admit(group("42", ""), "z"); refusal != "" {
		t.Errorf("after midnight UTC: %s", refusal)
	}
	if got := d.used(group("42", "")); got != "user 1/2, chat 1/3, bot 1/5" {
		t.Errorf("after midnight UTC: %s", got)
	}
}

func TestNear(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		options quota.Options
		want    string // which turns say what
	}{
		{quota.Options{Limits: turns(scopes{User: 20})}, "15 You have used 15 of 20 turns today; 18 You have used 18 of 20 turns today;"},
		{quota.Options{Limits: turns(scopes{User: 5})}, "4 You have used 4 of 5 turns today;"},
		{quota.Options{Limits: turns(scopes{User: 4})}, ""},
		{quota.Options{Limits: turns(scopes{Chat: 20}), Payer: "chat"}, "15 This chat has used 15 of 20 turns today; 18 This chat has used 18 of 20 turns today;"},
		{quota.Options{Limits: turns(scopes{Bot: 20})}, ""},
		{quota.Options{Limits: quota.Scopes{User: quota.Limits{{Unit: quota.Turns, Window: quota.Month}: 10}}}, "8 You have used 8 of 10 turns this month; 9 You have used 9 of 10 turns this month;"},
		{quota.Options{}, ""},
	} {
		d := setup(t, tt.options)
		said, got := map[string]bool{}, ""
		for n := 1; n <= 20; n++ {
			a, err := d.meter.Admit(t.Context(), group("42", ""), fmt.Sprint("t", n))
			if err != nil {
				t.Fatal(err)
			}
			if a.Notice != "" && !said[a.NoticeKey] { // as the outbox has it
				said[a.NoticeKey] = true
				text, _, _ := strings.Cut(a.Notice, ";")
				got += fmt.Sprintf("%d %s; ", n, text)
			}
		}
		if strings.TrimSpace(got) != tt.want {
			t.Errorf("%+v: %q, want %q", tt.options.Limits, got, tt.want)
		}
	}
	d := setup(t, quota.Options{Limits: turns(scopes{User: 20})})
	for n := range 17 {
		d.admit(private("42"), fmt.Sprint(n))
	}
	a, err := d.meter.Admit(t.Context(), private("42"), "near")
	if err != nil || a.NoticeKey != "near/user/telegram:42/turns/2026-03-04/telegram:42/90" {
		t.Errorf("key %q, %v", a.NoticeKey, err)
	}
}

func TestUndo(t *testing.T) {
	t.Parallel()
	d := setup(t, quota.Options{Limits: turns(scopes{User: 1, Chat: 9, Bot: 9}), Payer: "both"})
	a, err := d.meter.Admit(t.Context(), group("42", ""), "turn/with/slashes")
	if err != nil {
		t.Fatal(err)
	}
	want := []bot.Charge{
		{Key: "turn/with/slashes/turns/user/telegram:42", Scope: "user/telegram:42", Unit: "turns", Day: "2026-03-04", N: 1},
		{Key: "turn/with/slashes/turns/chat/telegram/1/bot/-100", Scope: "chat/telegram/1/bot/-100", Unit: "turns", Day: "2026-03-04", N: 1},
		{Key: "turn/with/slashes/turns/bot/telegram/1", Scope: "bot/telegram/1", Unit: "turns", Day: "2026-03-04", N: 1},
	}
	if diff := cmp.Diff(want, a.Charges); diff != "" {
		t.Errorf("charges (-want +got):\n%s", diff)
	}
	d.clock = d.clock.Add(time.Hour) // what is given back belongs to the day it was taken
	for range 2 {
		if err := d.meter.Undo(t.Context(), a.Charges); err != nil {
			t.Fatal(err)
		}
	}
	d.clock = d.clock.Add(-time.Hour)
	if got := d.used(group("42", "")); got != "user 0/1, chat 0/9, bot 0/9" {
		t.Errorf("after undo: %s", got)
	}
	if err := d.meter.Undo(t.Context(), nil); err != nil {
		t.Errorf("nothing to undo: %v", err)
	}
	if err := d.meter.Undo(t.Context(), []bot.Charge{{Key: "x", Scope: "user/telegram:42"}}); err == nil || !strings.Contains(err.Error(), `"x"`) {
		t.Errorf("a charge of another kind: %v", err)
	}
}

func TestRestore(t *testing.T) {
	t.Parallel()
	o := quota.Options{Limits: turns(scopes{User: 3, Bot: 9})}
	d := setup(t, o)
	yesterday := []bot.Charge{
		{Key: "old", Scope: "user/telegram:42", Unit: quota.Turns, Day: "2026-03-03", N: 3}, {Key: "else", Scope: "user/telegram:42", Unit: "tokens", Day: "2026-03-04", N: 3},
	}
	if _, err := d.store.Apply(t.Context(), &bot.Change{Charges: yesterday}); err != nil {
		t.Fatal(err)
	}
	d.admit(private("42"), "a")
	d.admit(private("42"), "b")
	d.counter.Lose()
	d.restart(o)
	if got := d.used(private("42")); got != "user 2/3, bot 2/9" {
		t.Errorf("after a restart: %s", got)
	}
	d.counter.Lose() // a server that comes back empty between two turns
	if refusal, _ := d.admit(private("42"), "c"); refusal != "" {
		t.Errorf("refused: %s", refusal)
	}
	if refusal, _ := d.admit(private("42"), "d"); refusal == "" {
		t.Error("the counters forgot what was used")
	}
	d.meter.Forget()
	if got := d.used(private("42")); got != "user 3/3, bot 3/9" {
		t.Errorf("after Forget: %s", got)
	}
	for n := range 3 { // every time, also when little was used
		d.admit(private("43"), fmt.Sprint("e", n))
		d.counter.Lose()
		if got, want := d.used(private("43")), fmt.Sprintf("user %d/3, bot %d/9", n+1, n+4); got != want {
			t.Errorf("after another loss: %s, want %s", got, want)
		}
		d.counter.Lose()
	}
	d.admit(private("44"), "f")
	if got := d.used(private("43")); got != "user 3/3, bot 7/9" {
		t.Errorf("after somebody else noticed the loss: %s", got)
	}
}

// TestOthersNoticeALoss has two processes on counters that are lost: what one of them fills again does not make the
// other believe in its own.
func TestOthersNoticeALoss(t *testing.T) {
	t.Parallel()
	o := quota.Options{Limits: turns(scopes{User: 2, Bot: 9})}
	d := setup(t, o)
	first := d.meter
	d.admit(private("42"), "a")
	d.admit(private("42"), "b")
	d.restart(o)
	second := d.meter
	d.admit(private("43"), "c")
	d.counter.Lose()
	d.admit(private("43"), "d")
	d.meter = first
	if refusal, _ := d.admit(private("42"), "e"); refusal == "" {
		t.Error("the counters forgot what was used")
	}
	d.meter = second
	if got := d.used(private("43")); got != "user 2/2, bot 4/9" {
		t.Errorf("used %s", got)
	}
}

// counting counts the calls of a counter and of its mirror.
type counting struct {
	quota.Counter
	quota.Mirror
	trips, sums int
}

func (c *counting) Take(ctx context.Context, id string, takes []quota.Take, expire time.Time) ([]int64, int, error) {
	c.trips++
	return c.Counter.Take(ctx, id, takes, expire)
}

func (c *counting) Restore(ctx context.Context, key string, n int64, expire time.Time) error {
	c.trips++
	return c.Counter.Restore(ctx, key, n, expire)
}

func (c *counting) Read(ctx context.Context, keys []string) ([]int64, error) {
	c.trips++
	return c.Counter.Read(ctx, keys)
}

func (c *counting) Used(ctx context.Context, scope, unit string, days ...string) (int64, error) {
	c.sums++
	return c.Mirror.Used(ctx, scope, unit, days...)
}

// TestATurnAsksOnce has many people with charges of today: a restart restores the counters of who writes, not those of
// everybody.
func TestATurnAsksOnce(t *testing.T) {
	t.Parallel()
	d := setup(t, quota.Options{Limits: turns(scopes{User: 9, Bot: 9999})})
	var change bot.Change
	for n := range 1000 {
		for _, scope := range []string{fmt.Sprint("user/telegram:", n), "bot/telegram/1"} {
			change.Charges = append(change.Charges, bot.Charge{Key: fmt.Sprint(scope, n), Scope: scope, Unit: quota.Turns, Day: "2026-03-04", N: 1})
		}
	}
	if _, err := d.store.Apply(t.Context(), &change); err != nil {
		t.Fatal(err)
	}
	c := &counting{Counter: d.counter, Mirror: d.store}
	d.meter = quota.New(quota.Options{Limits: turns(scopes{User: 9, Bot: 9999})}, c, c, texts.Words{}, func() time.Time { return d.clock }, nil)
	for i, want := range []counting{{trips: 6, sums: 2}, {trips: 1}, {trips: 1}} {
		c.trips, c.sums = 0, 0
		d.admit(private("42"), fmt.Sprint("t", i))
		if c.trips != want.trips || c.sums != want.sums {
			t.Errorf("turn %d: %d trips and %d sums, want %d and %d", i, c.trips, c.sums, want.trips, want.sums)
		}
	}
	c.trips, c.sums = 0, 0
	d.admit(private("43"), "other")
	if c.trips != 2 || c.sums != 1 {
		t.Errorf("somebody else: %d trips and %d sums", c.trips, c.sums)
	}
	if got := d.used(private("42")); got != "user 4/9, bot 1004/9999" {
		t.Errorf("used %s", got)
	}
}

// stuck is a mirror that answers for one person only when it is told to.
type stuck struct {
	quota.Mirror
	asked, answer chan struct{}
}

func (s *stuck) Used(ctx context.Context, scope, unit string, days ...string) (int64, error) {
	if scope == "user/telegram:42" {
		close(s.asked)
		<-s.answer
	}
	return s.Mirror.Used(ctx, scope, unit, days...)
}

func TestNobodyWaitsForAnothersCounters(t *testing.T) {
	t.Parallel()
	d := setup(t, quota.Options{Limits: turns(scopes{User: 2})})
	s := &stuck{Mirror: d.store, asked: make(chan struct{}), answer: make(chan struct{})}
	d.meter = quota.New(quota.Options{Limits: turns(scopes{User: 2})}, d.counter, s, texts.Words{}, func() time.Time { return d.clock }, nil)
	var wg sync.WaitGroup
	wg.Go(func() {
		if _, err := d.meter.Admit(t.Context(), private("42"), "slow"); err != nil {
			t.Error(err)
		}
	})
	<-s.asked
	d.admit(private("43"), "fast")
	d.meter.Forget() // what the slow one filled counts no more
	close(s.answer)
	wg.Wait()
}

// shaky is a counter that loses everything before each of its answers.
type shaky struct{ quotatest.Counter }

func (s *shaky) Take(ctx context.Context, id string, takes []quota.Take, expire time.Time) ([]int64, int, error) {
	s.Lose()
	return s.Counter.Take(ctx, id, takes, expire)
}

func (s *shaky) Read(ctx context.Context, keys []string) ([]int64, error) {
	s.Lose()
	return s.Counter.Read(ctx, keys)
}

func TestCountersThatKeepNothing(t *testing.T) {
	t.Parallel()
	d := setup(t, quota.Options{})
	meter := quota.New(quota.Options{Limits: turns(scopes{User: 2})}, &shaky{}, d.store, texts.Words{}, time.Now, nil)
	for n := range 4 {
		if refusal, _ := d.admitBy(meter, private("42"), fmt.Sprint(n)); (refusal != "") != (n > 1) {
			t.Errorf("turn %d of 2: %q", n, refusal)
		}
	}
}

// TestMove: what a group has used goes with it to its new id at once, besides what was used there already; the counters
// were never lost.
func TestMove(t *testing.T) {
	t.Parallel()
	d := setup(t, quota.Options{Limits: turns(scopes{Chat: 4}), Payer: "chat"})
	old, next := private("42"), private("42")
	old.Place.Chat, old.Place.Group, next.Place.Chat, next.Place.Group = "-5", true, "-6", true
	for turn, msg := range map[string]*bot.Message{"a": old, "b": old, "c": next} {
		if refusal, _ := d.admit(msg, turn); refusal != "" {
			t.Fatalf("refused: %s", refusal)
		}
	}
	p := old.Place
	if _, err := d.store.Apply(t.Context(), &bot.Change{Move: &bot.Move{Channel: p.Channel, Bot: p.Bot, From: "-5", To: "-6"}}); err != nil {
		t.Fatal(err)
	}
	d.meter.Forget()
	if got := d.used(next); got != "chat 3/4" {
		t.Errorf("after the move: %s", got)
	}
	if refusal, _ := d.admit(next, "d"); refusal != "" {
		t.Errorf("refused: %s", refusal)
	}
	if refusal, _ := d.admit(next, "e"); refusal == "" {
		t.Error("the group got its quota twice")
	}
}

// mirror fails when told to.
type mirror struct {
	charges []bot.Charge
	err     error
}

func (m *mirror) Apply(context.Context, *bot.Change) (*bot.Applied, error) {
	return nil, errors.New("nothing is stored here")
}

func (m *mirror) Used(_ context.Context, scope, unit string, days ...string) (sum int64, err error) {
	for _, c := range m.charges {
		if c.Scope == scope && c.Unit == unit && slices.Contains(days, c.Day) {
			sum += c.N
		}
	}
	return sum, m.err
}

// TestAway: without counters the ledger answers, alone and in groups, and nobody is refused before the end.
func TestAway(t *testing.T) {
	t.Parallel()
	d := setup(t, quota.Options{Limits: turns(scopes{User: 3})})
	d.admit(private("42"), "a")
	d.counter.Fail(errAway)
	for n, msg := range []*bot.Message{group("42", ""), private("42")} {
		if refusal, _ := d.admit(msg, fmt.Sprint("b", n)); refusal != "" {
			t.Errorf("refused: %s", refusal)
		}
	}
	if refusal, _ := d.admit(private("42"), "c"); !strings.HasPrefix(refusal, "Your 3 turns for today are used up") {
		t.Errorf("the fourth of three: %q", refusal)
	}
	if got := d.used(private("42")); got != "user 3/3" || len(d.denied) != 1 || d.denied[0] != "user" {
		t.Errorf("used %s; denied %v", got, d.denied)
	}
	d.counter.Fail(nil)
	if refusal, _ := d.admit(private("42"), "d"); refusal == "" {
		t.Error("a fourth turn when they are back")
	}
}

// full is a counter that has no room for anything.
type full struct{ quotatest.Counter }

func (f *full) Take(_ context.Context, _ string, takes []quota.Take, _ time.Time) ([]int64, int, error) {
	return make([]int64, len(takes)), 0, nil
}

// TestCountersThatAreTooHigh: what the counters refuse is asked of the ledger.
func TestCountersThatAreTooHigh(t *testing.T) {
	t.Parallel()
	d := setup(t, quota.Options{})
	meter := quota.New(quota.Options{Limits: turns(scopes{User: 2})}, &full{}, d.store, texts.Words{}, time.Now, nil)
	for n := range 3 {
		if refusal, _ := d.admitBy(meter, private("42"), fmt.Sprint(n)); (refusal != "") != (n > 1) {
			t.Errorf("turn %d of 2: %q", n, refusal)
		}
	}
}

// nothing is a counter and a store that nobody may ask.
type nothing struct {
	quota.Counter
	quota.Mirror
}

// TestWithoutLimits: a turn without limits asks neither the counters nor the ledger, but is charged.
func TestWithoutLimits(t *testing.T) {
	t.Parallel()
	n := &nothing{}
	meter := quota.New(quota.Options{}, n, n, texts.Words{}, time.Now, nil)
	a, err := meter.Admit(t.Context(), private("42"), "a")
	if err != nil || len(a.Charges) != 2 || a.Ledger != nil {
		t.Errorf("%+v, %v", a, err)
	}
	p := meter.Open(private("42"), "a")
	defer p.Close()
	if err := p.Reserve(t.Context(), "a/1", cost.Amount{Tokens: tokens(1, 1), USD: 1}); err != nil {
		t.Error(err)
	}
	if err := p.Settle(t.Context(), "a/1", cost.Amount{Tokens: tokens(1, 1), USD: 1}); err != nil {
		t.Error(err)
	}
	spent := p.Spend(turn.Next{})
	p.Stored(&spent, nil)
	if len(spent.Charges) != 4 || spent.Ledger != nil {
		t.Errorf("spent %+v", spent)
	}
}

// TestTheStoreIsAway: a turn whose limits nobody can read is tried again, and not refused.
func TestTheStoreIsAway(t *testing.T) {
	t.Parallel()
	meter := quota.New(quota.Options{Limits: turns(scopes{User: 1})}, &full{}, &mirror{err: errAway}, texts.Words{}, time.Now, nil)
	a, err := meter.Admit(t.Context(), private("42"), "a") // the ledger will decide
	if err != nil || a.Refusal != "" || a.Ledger == nil {
		t.Errorf("admission %+v, %v", a, err)
	}
	if err := meter.Undo(t.Context(), a.Charges); err != nil { // it has refused
		t.Error(err)
	}
	if a, err := meter.Admit(t.Context(), private("42"), "a"); !errors.Is(err, errAway) || a.Refusal != "" {
		t.Errorf("admission %+v, %v", a, err)
	}
	if _, err := meter.Usage(t.Context(), private("42")); !errors.Is(err, errAway) {
		t.Errorf("usage: %v", err)
	}
}

func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	d := setup(t, quota.Options{Limits: turns(scopes{User: 7, Bot: 40})})
	var wg sync.WaitGroup
	for p := range 6 {
		for n := range 20 {
			wg.Go(func() { d.admit(private(fmt.Sprint(p)), fmt.Sprint(p, "-", n/2)) }) // each turn twice
		}
	}
	wg.Wait()
	if got := d.used(private("0")); !strings.HasSuffix(got, "bot 40/40") {
		t.Errorf("used %s", got)
	}
}
