package quotatest

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/zephbot/zephbot/agent"
	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/bottest"
	"github.com/zephbot/zephbot/bot/quota"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/bot/turn"
)

// Fifty lets a hundred turns on three meters, each of a process of its own, have what is enough for fifty, all at once,
// and fails unless exactly fifty get through and are charged. Every fifth process dies between a reservation and its
// settlement: what it had set aside is charged when it is buried. The counters lose everything again and again.
func Fifty(t *testing.T, counter quota.Counter, unit string, lose func()) {
	t.Helper()
	const all, enough, each = 100, 50, 10
	f := &fifty{t: t, store: bottest.New(), unit: unit, prefix: fmt.Sprint(t.Name(), time.Now().UnixNano())}
	limit := map[string]int64{quota.Turns: enough, quota.Tokens: enough * each, quota.USD: enough * each}[unit]
	f.meter = func(process string) (*quota.Meter, *bottest.Store) {
		o := quota.Options{
			Limits: quota.Scopes{User: quota.Limits{
				{Unit: unit, Window: quota.Day}:   limit,
				{Unit: unit, Window: quota.Month}: 10 * limit,
			}, Bot: quota.Limits{{Unit: unit, Window: quota.Day}: limit}},
			Price: func(u llm.Usage) float64 { return float64(u.Total()) / 1e6 }, Patience: time.Minute, Owner: process,
		}
		store := f.store.Beside(process)
		return quota.New(o, counter, store, texts.Words{}, time.Now, nil), store
	}
	for n := range 3 {
		meter, _ := f.meter(fmt.Sprint("process ", n))
		f.meters = append(f.meters, meter)
	}
	f.msg = &bot.Message{
		ID: "1", Kind: bot.Text, Person: "7", Caller: "telegram:" + f.prefix,
		Place: bot.Place{Channel: "telegram", Bot: f.prefix, Surface: "bot", Chat: "7"},
	}
	var wg sync.WaitGroup
	for n := range all {
		wg.Go(func() {
			if n%5 == 0 {
				f.dies(n)
			}
			f.turn(n)
			if n%7 == 0 && lose != nil {
				lose()
			}
		})
	}
	wg.Wait()
	if f.through != enough || f.through+f.refused != all+f.dead {
		t.Errorf("%d got through and %d were refused, %d died; want %d", f.through, f.refused, f.dead, enough)
	}
	usage, err := f.meters[0].Usage(t.Context(), f.msg)
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range usage {
		if u.Unit == unit && u.Used != limit {
			t.Errorf("%+v: counted %d, want %d", u, u.Used, limit)
		}
	}
	charged, err := f.store.Used(
		t.Context(), quota.UserLevel(f.msg.Caller), unit, time.Now().UTC().Format(time.DateOnly),
	)
	if err != nil || charged != limit {
		t.Errorf("charged %d, want %d; %v", charged, limit, err)
	}
}

type fifty struct {
	t      *testing.T
	store  *bottest.Store
	meter  func(process string) (*quota.Meter, *bottest.Store)
	meters []*quota.Meter
	msg    *bot.Message
	unit   string
	prefix string

	mu                     sync.Mutex
	through, refused, dead int
}

func (f *fifty) count(of *int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	*of++
}

// dies begins a turn in a process that dies before it settles anything, and has it buried.
func (f *fifty) dies(n int) {
	process := fmt.Sprint("dead ", n)
	m, store := f.meter(process)
	if f.unit == quota.Turns { // it dies before the turn is stored, which is begun again under the same name
		if _, err := m.Admit(f.t.Context(), f.msg, fmt.Sprintf("%s-%d", f.prefix, n)); err != nil {
			f.t.Error(err)
		}
		return
	}
	id := fmt.Sprintf("%s-%d-dead", f.prefix, n)
	f.count(&f.dead)
	if _, ok := f.reserve(m, id); ok {
		f.store.Bury(process)
		f.count(&f.through) // nobody knows whether its call was made: it is charged
		if err := m.Settle(f.t.Context(), &agent.Turn{ID: id}, id, llm.Usage{Input: 5, Output: 5}, 10/1e6); err != nil {
			f.t.Error(err)
		}
		if _, err := store.Apply(f.t.Context(), &bot.Change{}); !errors.Is(err, bottest.ErrBuried) {
			f.t.Errorf("a buried process stores: %v", err)
		}
	}
}

// turn plays a turn with one call of the model on a meter.
func (f *fifty) turn(n int) {
	m, id := f.meters[n%len(f.meters)], fmt.Sprintf("%s-%d", f.prefix, n)
	if f.unit == quota.Turns {
		f.begin(m, id)
		return
	}
	p, ok := f.reserve(m, id)
	if !ok {
		return
	}
	f.count(&f.through)
	if err := m.Settle(f.t.Context(), &agent.Turn{ID: id}, id, llm.Usage{Input: 5, Output: 5}, 10/1e6); err != nil {
		f.t.Error(err)
	}
	f.end(p)
}

func (f *fifty) begin(m *quota.Meter, id string) {
	a, err := Begin(f.t.Context(), m, f.store, f.msg, id)
	switch {
	case err != nil:
		f.t.Error(err)
	case a.Refusal != "":
		f.count(&f.refused)
	default:
		f.count(&f.through)
	}
}

func (f *fifty) reserve(m *quota.Meter, id string) (turn.Budget, bool) {
	p := m.Open(f.msg, id)
	err := m.Reserve(f.t.Context(), &agent.Turn{ID: id}, id, llm.Usage{Input: 5, Output: 5})
	if _, denied := errors.AsType[*agent.Denied](err); denied {
		f.count(&f.refused)
		return p, false
	}
	if err != nil {
		f.t.Error(err)
	}
	return p, err == nil
}

// end closes the purse of a turn, as the dispatcher does.
func (f *fifty) end(p turn.Budget) {
	p.Close()
	spent := p.Spend(turn.Next{})
	var change bot.Change
	spent.In(&change)
	applied, err := f.store.Apply(f.t.Context(), &change)
	if err != nil {
		f.t.Error(err)
	}
	p.Stored(&spent, applied)
}
