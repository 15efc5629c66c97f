package deliver_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zephbot/zephbot/bot"
)

// Whatever comes back from the channel, and however often the process is started anew: each answer is delivered, or the
// person is told with a later one, again only after an unknown outcome and then marked, in order within its chat.
func TestDeliveryHolds(t *testing.T) {
	t.Parallel()
	for seed := range uint64(40) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			bubble(t, func(t *testing.T) { deliverAtRandom(t, &dice{r: rand.New(rand.NewPCG(seed, 9))}) })
		})
	}
}

// dice is a source of chance for many goroutines.
type dice struct {
	mu sync.Mutex
	r  *rand.Rand
}

func (d *dice) IntN(n int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.r.IntN(n)
}

func deliverAtRandom(t *testing.T, random *dice) {
	w := setup(t)
	w.opts.Chats = 1 + random.IntN(4)
	w.limits.PerChatPerSecond = random.IntN(3)
	vague := map[int64]bool{}
	outcomes := []bot.SendOutcome{bot.NotSent, bot.Throttled, bot.Refused, bot.Gone, bot.Vague, bot.Vague, bot.Missing}
	w.sender.answer = func(r *bot.Row) error {
		w.sender.mu.Lock()
		defer w.sender.mu.Unlock()
		if random.IntN(3) > 0 {
			return nil
		}
		outcome := outcomes[random.IntN(len(outcomes))]
		if outcome == bot.Vague {
			vague[r.ID] = true
		}
		return &bot.SendError{Outcome: outcome, RetryAfter: time.Duration(random.IntN(20)) * time.Second, Err: errors.New("as told")}
	}
	w.sender.reaches = func(r *bot.Row) bool { return r.ID%2 == 0 }
	failures := 0
	w.store.Hooks.BeforeApply = func(c *bot.Change) error {
		w.sender.mu.Lock()
		defer w.sender.mu.Unlock()
		if len(c.Rows) > 0 && random.IntN(8) == 0 && failures < 30 {
			failures++
			return errors.New("disk full")
		}
		return nil
	}
	finals := map[int64]string{}
	for life := range 3 {
		w.start()
		for i := range 8 {
			r := row([]bot.Purpose{bot.Final, bot.Final, bot.Reply, bot.Notice, bot.Placeholder}[random.IntN(5)], fmt.Sprintf("<%d.%d>", life, i))
			r = in([]string{"1", "2", "-3"}[random.IntN(3)], r)
			id := w.say(r)[0]
			if r.Purpose == bot.Final || r.Purpose == bot.Reply {
				finals[id] = r.Place.Chat
			}
			pass(time.Duration(random.IntN(3000)) * time.Millisecond)
		}
		w.stop()
	}
	w.start()
	pass(15 * time.Minute)
	w.stop()
	checkDelivery(t, w, finals, vague)
}

// told says whether a row after id tells that earlier ones may not have arrived.
func told(seen []bot.Row, id int64) bool {
	return slices.ContainsFunc(seen, func(r bot.Row) bool { return r.ID > id && strings.Contains(r.Content.Text, " lost)") })
}

func checkDelivery(t *testing.T, w *world, finals map[int64]string, vague map[int64]bool) {
	t.Helper()
	for id, chat := range finals {
		stored := w.row(id)
		var copies []bot.Row
		for _, seen := range w.sender.chats[chat] {
			if seen.ID == id {
				copies = append(copies, seen)
			}
		}
		switch stored.State {
		case bot.Sent:
			if len(copies) == 0 {
				t.Errorf("row %d counts as sent, nobody saw it", id)
			}
		case bot.Dead, bot.Unknown:
			if stored.State == bot.Dead && !told(w.sender.chats[chat], id) {
				t.Errorf("row %d ended %s, and nobody was told", id, stored.State)
			}
			if !strings.Contains(w.log.String(), fmt.Sprintf(`"row":%d,`, id)) {
				t.Errorf("row %d ended %s without a log line", id, stored.State)
			}
		default:
			t.Errorf("row %d is still %s", id, stored.State)
		}
		for i, c := range copies {
			if n := strings.Count(c.Content.Text, mark); i > 0 && n != 1 {
				t.Errorf("row %d came again with %d marks", id, n)
			}
		}
		if len(copies) > 1 && stored.Doubt.IsZero() {
			t.Errorf("row %d came %d times, resent %v, vague %v", id, len(copies), stored.Doubt, vague[id])
		}
	}
	for chat, rows := range w.sender.chats {
		var order []int64
		for _, r := range rows {
			if _, ok := finals[r.ID]; ok {
				order = append(order, r.ID)
			}
		}
		if !slices.IsSorted(order) {
			t.Errorf("chat %s got rows in the order %v", chat, order)
		}
	}
}
