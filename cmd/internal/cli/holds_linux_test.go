package cli_test

import (
	"context"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/zephbot/zephbot/cmd/internal/cli"
)

// TestHoldsAtSIGTERM: what a process has set aside when it is told to end is charged with what its call has cost if the
// answer comes in time. Otherwise the call, of which nobody knows what it has cost, is charged with what was set aside for
// it, and the turn goes on in another process, or after the next start. Nothing stays set aside.
func TestHoldsAtSIGTERM(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		processes int
		answered  bool // before the process gives up
		requests  int
	}{
		"answered in time":     {1, true, 2},
		"another takes over":   {2, false, 3},
		"nobody is there then": {1, false, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if testing.Short() && !c.answered {
				t.Skip("a process waits for its turns for 18 s")
			}
			d := newDemo(t, rand.New(rand.NewPCG(1, 2)), c.processes)
			asked, answer := make(chan string, 1), make(chan struct{})
			var once sync.Once
			first := ""
			d.model.hold = func(ctx context.Context, process string) {
				once.Do(func() {
					first = process
					asked <- process
				})
				if process != first {
					return
				}
				select {
				case <-answer:
				case <-ctx.Done():
				}
			}
			d.workspace(2000)
			d.take(2000, "what files are here?")
			var name string
			select {
			case name = <-asked:
			case <-time.After(patience):
				t.Fatal("the model is not asked")
			}
			var s *served
			for _, other := range d.processes {
				if d.names[other] == name {
					s = other
				}
			}
			if d.count(heldQuery) == 0 {
				t.Error("nothing is set aside for the call")
			}
			s.term()
			s.until("/readyz", http.StatusServiceUnavailable, "stopping")
			if c.answered {
				close(answer)
			}
			if code := s.exit(); code != cli.Fine {
				t.Errorf("exit %d; printed: %s", code, s)
			}
			d.died[name] = time.Now()
			d.leave(s)
			if len(d.processes) == 0 {
				if c.answered && d.count(heldQuery) != 0 {
					t.Error("something is set aside when no turn is left")
				}
				d.join()
			}
			d.settled()
			if n := len(d.seen(2000)); n != 2 {
				t.Errorf("%d messages, want the question and its answer: %q", n, d.seen(2000))
			}
			for _, s := range d.processes {
				s.end()
			}
			v := d.judge()
			if v.Requests != c.requests || v.Missing > 0 || (v.Lost+v.Estimates > 0) == c.answered {
				t.Error(v)
			}
			t.Log(v)
		})
	}
}
