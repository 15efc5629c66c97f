package sql

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zephbot/zephbot/persistence/reading"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/state"
)

// errGuess means that an assumption about a Change does not hold: the Change has to run again on what the database
// contains.
var errGuess = errors.New("an assumption does not hold")

// prepared is a Change with everything that can be computed before the writer takes it.
type prepared struct {
	change   *bot.Change
	needs    state.Needs
	entries  []string // JSON of Append.Entries
	contents []string // JSON of the contents of Send
}

// prepareChange computes what is needed for a valid Change.
func prepareChange(change *bot.Change) (*prepared, error) {
	p := &prepared{change: change, needs: state.NeedsOf(change)}
	if change.Append != nil {
		for i := range change.Append.Entries {
			body, err := reading.EncodeEntry(change.Append.Entries[i])
			if err != nil {
				return nil, err
			}
			p.entries = append(p.entries, string(body))
		}
	}
	for i := range change.Send {
		content, err := reading.Encode(change.Send[i].Content)
		if err != nil {
			return nil, err
		}
		p.contents = append(p.contents, string(content))
	}
	return p, nil
}

// world is a state.World whose maps are reused: only the writer goroutine uses it.
type world struct{ state.World }

func newWorld() *world {
	return &world{state.World{
		Lanes: map[bot.SessionKey]bot.Lane{}, Arrivals: map[int64]state.Arrival{},
		Arrived:   map[state.ArrivalKey]int64{},
		Questions: map[string]state.Question{},
		Rows:      map[int64]state.Delivery{}, Keys: map[string]int64{},
		Facts:    map[state.FactKey]bot.Fact{},
		Accounts: map[state.Account]state.Balance{}, Charged: map[string]bool{},
	}}
}

func (w *world) resetWorld() {
	clear(w.Lanes)
	clear(w.Arrivals)
	clear(w.Arrived)
	clear(w.Questions)
	clear(w.Rows)
	clear(w.Keys)
	clear(w.Facts)
	clear(w.Accounts)
	clear(w.Charged)
	w.Waiting = false
}

// step is the execution of one Change within the writer's transaction.
type step struct {
	*prepared
	q      *queries
	memory *memory
	world  *world
	now    time.Time
	sure   bool // nothing is assumed
}

// runStep executes the Change. A refusal is returned before anything is written, errGuess possibly afterwards.
func (t *step) runStep(ctx context.Context) (*bot.Applied, error) {
	if err := t.loadWorld(ctx); err != nil {
		return nil, err
	}
	result, err := state.Run(t.change, &t.world.World, t.now)
	if err != nil {
		if !t.sure && len(t.needs.Arrived)+len(t.needs.Keys)+len(t.change.Ask)+len(t.needs.Charged) > 0 {
			return nil, errGuess // the reason may be a wrong assumption
		}
		return nil, err
	}
	if err := t.saveResult(ctx, result); err != nil {
		return nil, err
	}
	if t.change.Move != nil {
		if err := t.moveChat(ctx, t.change.Move); err != nil {
			return nil, fmt.Errorf("move chat %s to %s: %w", t.change.Move.From, t.change.Move.To, err)
		}
	}
	return result.Applied, nil
}
