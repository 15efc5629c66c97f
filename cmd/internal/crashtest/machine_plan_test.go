//go:build linux

package crashtest_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/zephbot/zephbot/bot/telegram/telegramtest"
)

// Kinds of faults. Those of Telegram and of the model affect the next requests; the others happen at their time.
const (
	faultAgain    = "update delivered again"
	faultOutage   = "outage of the Bot API"
	faultTelegram = "Bot API: " // and telegramtest's kind
	faultModel    = "model: "   // and one of the model's kinds
	faultKill     = "kill -9"
	faultStop     = "SIGSTOP"
	faultTerm     = "SIGTERM"
	faultLocked   = "database locked"
	faultFull     = "disk full"
)

// fault is one planned fault.
type fault struct {
	After  time.Duration // since the fault before it
	Kind   string
	Node   int           // which process, for faults of processes
	Length time.Duration // of a fault that lasts
	Count  int           // requests to hit
	Method string        // of the Bot API; "" = every one
	Dice   uint64        // whatever else is left to chance
}

// weighted is a kind of fault and its frequency relative to the others.
type weighted struct {
	kind   string
	weight int
	least  time.Duration // of its length
	most   time.Duration
}

// faultsEverywhere are the faults that every world has.
var faultsEverywhere = []weighted{
	{faultAgain, 18, 0, 0},
	{faultOutage, 1, time.Second, 8 * time.Second},
	{faultTelegram + telegramtest.Fault429, 5, time.Second, 3 * time.Second},
	{faultTelegram + telegramtest.Fault500, 12, 0, 0},
	{faultTelegram + telegramtest.Fault502, 12, 0, 0},
	{faultTelegram + telegramtest.FaultCut, 24, 0, 0},
	{faultTelegram + telegramtest.FaultDrop, 12, 0, 0},
	{faultTelegram + telegramtest.FaultHang, 3, time.Second / 2, 6 * time.Second},
	{faultTelegram + telegramtest.FaultStall, 6, time.Second / 2, 6 * time.Second},
	{faultTelegram + telegramtest.FaultSlow, 18, time.Second / 20, 3 * time.Second},
	{faultModel + modelError, 8, 0, 0},
	{faultModel + modelBusy, 6, time.Second, 2 * time.Second},
	{faultModel + modelCut, 12, 0, 0},
	{faultModel + modelHang, 4, time.Second, 12 * time.Second},
	{faultModel + modelSlow, 12, time.Second / 20, 3 * time.Second},
	{faultModel + modelGarbage, 4, 0, 0},
	{faultKill, 9, 0, 0},
	{faultStop, 4, time.Second / 10, 8 * time.Second},
	{faultTerm, 2, 0, 0},
}

// methods are the methods of the Bot API that a fault can pick; "" is all of them, including polls.
var methods = []string{"", "send*", "sendMessage", "edit*", "answerCallbackQuery", "getUpdates"}

// everyFault is the average time between two faults.
const everyFault = 80 * time.Millisecond

// faultPlan is the endless list of faults that a seed produces. Only the seed decides which fault happens when; what a
// fault hits also depends on the scheduler of the machine.
type faultPlan struct {
	random *rand.Rand
	nodes  int
	kinds  []weighted
	sum    int
}

func newPlan(seed uint64, nodes int, more ...weighted) *faultPlan {
	p := &faultPlan{random: rand.New(rand.NewPCG(seed, 2026)), nodes: nodes, kinds: append(append([]weighted(nil), faultsEverywhere...), more...)}
	for _, k := range p.kinds {
		p.sum += k.weight
	}
	return p
}

// next draws the next fault. It draws equally many numbers for every kind, so that plans with the same kinds remain
// comparable.
func (p *faultPlan) next() fault {
	pick, node, method, share := p.random.IntN(p.sum), p.random.IntN(p.nodes), p.random.IntN(len(methods)), p.random.Float64()
	f := fault{
		After: time.Duration(float64(everyFault) * min(p.random.ExpFloat64(), 8)), Node: node, Method: methods[method], Count: 1 + p.random.IntN(3), Dice: p.random.Uint64(),
	}
	for _, k := range p.kinds {
		if pick -= k.weight; pick < 0 {
			f.Kind = k.kind
			// short ones are more frequent
			f.Length = k.least + time.Duration(share*share*share*float64(k.most-k.least))
			break
		}
	}
	return f
}

// TestPlanIsItsSeed: a seed always produces the same list of faults, another seed a different one, and every kind
// occurs.
func TestPlanIsItsSeed(t *testing.T) {
	t.Parallel()
	draw := func(seed uint64) (list []string, kinds map[string]int) {
		p, kinds := newPlan(seed, 3), map[string]int{}
		for range 2000 {
			f := p.next()
			list, kinds[f.Kind] = append(list, fmt.Sprintf("%+v", f)), kinds[f.Kind]+1
		}
		return list, kinds
	}
	once, kinds := draw(7)
	again, _ := draw(7)
	other, _ := draw(8)
	for i := range once {
		if once[i] != again[i] {
			t.Fatalf("fault %d of one seed is %s, then %s", i, once[i], again[i])
		}
	}
	if once[0] == other[0] && once[1] == other[1] {
		t.Error("two seeds begin alike")
	}
	for _, k := range faultsEverywhere {
		if kinds[k.kind] == 0 {
			t.Errorf("no %q among 2000 faults", k.kind)
		}
	}
}
