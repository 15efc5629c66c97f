package quotatest

import (
	"context"
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
)

// Fifty lets a hundred turns on three meters have what is enough for fifty, all at once, and fails unless exactly fifty
// get through and are charged. Every fifth dies between its reservation and its
// settlement; half of those are taken up by another meter, the others by nobody, so that what they have set aside is
// free again after hold. A turn that is charged where it begins is always taken up: its message is in the inbox.
func Fifty(t *testing.T, counter quota.Counter, unit string, hold time.Duration) {
	t.Helper()
	const all, enough, each = 100, 50, 10
	f := &fifty{t: t, store: bottest.New(), unit: unit, prefix: fmt.Sprint(t.Name(), time.Now().UnixNano())}
	limit := map[string]int64{quota.Turns: enough, quota.Tokens: enough * each, quota.USD: enough * each}[unit]
	o := quota.Options{
		Limits: quota.Scopes{User: quota.Limits{{Unit: unit, Window: quota.Day}: limit, {Unit: unit, Window: quota.Month}: 10 * limit}, Bot: quota.Limits{{Unit: unit, Window: quota.Day}: limit}},
		Price:  func(u llm.Usage) float64 { return float64(u.Total()) / 1e6 }, Hold: hold, Patience: time.Minute,
	}
	for range 3 {
		f.meters = append(f.meters, quota.New(o, counter, f.store, texts.Words{}, time.Now, nil))
	}
	f.msg = &bot.Message{
		ID: "1", Kind: bot.Text, Person: "7", Caller: "telegram:" + f.prefix,
		Place: bot.Place{Channel: "telegram", Bot: f.prefix, Surface: "bot", Chat: "7"},
	}
	var wg sync.WaitGroup
	for n := range all {
		wg.Go(func() {
			dies := n%5 == 0
			f.turn(n, n, dies)
			if dies && (n%2 == 0 || unit == quota.Turns) {
				f.turn(n, n+1, false)
			}
		})
	}
	wg.Wait()
	if f.through != enough {
		t.Errorf("%d got through, want %d", f.through, enough)
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
	charged, err := f.store.Used(t.Context(), quota.UserLevel(f.msg.Caller), unit, time.Now().UTC().Format(time.DateOnly))
	if err != nil || charged != limit {
		t.Errorf("charged %d, want %d; %v", charged, limit, err)
	}
}

type fifty struct {
	t      *testing.T
	store  *bottest.Store
	meters []*quota.Meter
	msg    *bot.Message
	unit   string
	prefix string

	mu      sync.Mutex
	through int
}

// turn plays a turn with one call of the model on a meter.
func (f *fifty) turn(n, meter int, dies bool) {
	m, id := f.meters[meter%len(f.meters)], fmt.Sprintf("%s-%d", f.prefix, n)
	charges, ok := f.take(m, id, dies)
	if !ok {
		return
	}
	if _, err := f.store.Apply(f.t.Context(), &bot.Change{Charges: charges}); err != nil {
		f.t.Error(err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.through++
}

func (f *fifty) take(m *quota.Meter, id string, dies bool) ([]bot.Charge, bool) {
	ctx := f.t.Context()
	if f.unit == quota.Turns { // a turn is charged where it begins: who dies is begun again under the same name
		a, err := m.Admit(ctx, f.msg, id)
		if err != nil {
			f.t.Error(err)
		}
		return a.Charges, err == nil && a.Refusal == "" && !dies
	}
	p := m.Open(f.msg, id)
	defer p.Close()
	turn := &agent.Turn{ID: id}
	if dies { // it waits for nobody
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Second)
		defer cancel()
	}
	err := m.Reserve(ctx, turn, id, llm.Usage{Input: 5, Output: 5})
	if _, denied := errors.AsType[*agent.Denied](err); err != nil && !denied && !dies {
		f.t.Error(err)
	}
	if err != nil || dies {
		return nil, false
	}
	if err := m.Settle(ctx, turn, id, llm.Usage{Input: 5, Output: 5}, 10/1e6); err != nil {
		f.t.Error(err)
	}
	return p.Charges(), true
}
