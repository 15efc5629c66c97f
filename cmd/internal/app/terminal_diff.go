package app

import (
	"context"
	"encoding/json"
	"strings"
	"sync"

	"github.com/zephbot/zephbot/bot/terminal"
	"github.com/zephbot/zephbot/tools"
)

// changesKept is how many changes wait for being shown; they are shown right after their calls.
const changesKept = 64

// changes remembers what calls change in text files, for the person at the terminal. Safe for concurrent use.
type changes struct {
	mu   sync.Mutex
	made map[string]terminal.Change // by call
}

// middleware notes what a call changes, right before it does.
func (c *Core) noting(seen *changes) tools.Middleware {
	return func(next tools.Handler) tools.Handler {
		return func(ctx context.Context, call *tools.Call) (*tools.Result, error) {
			change, ok := c.previewed(ctx, call)
			res, err := next(ctx, call)
			if ok && err == nil && res.Failure == nil {
				seen.add(call.ID, change)
			}
			return res, err
		}
	}
}

// previewed returns what a call would change, without credentials.
func (c *Core) previewed(ctx context.Context, call *tools.Call) (terminal.Change, bool) {
	tool, ok := call.Tools.Over(c.registry).Lookup(call.Def.Name)
	if !ok || tool.Preview == nil {
		return terminal.Change{}, false
	}
	p, err := tool.Preview(ctx, call)
	if err != nil { // the call says why
		return terminal.Change{}, false
	}
	return terminal.Change{Path: p.Path, Before: c.redactor.String(p.Before), After: c.redactor.String(p.After)}, true
}

func (s *changes) add(call string, change terminal.Change) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.made) < changesKept {
		s.made[call] = change
	}
}

// take returns what a call has changed, once.
func (s *changes) take(call string) []terminal.Change {
	s.mu.Lock()
	defer s.mu.Unlock()
	change, ok := s.made[call]
	if !ok {
		return nil
	}
	delete(s.made, call)
	return []terminal.Change{change}
}

// proposed returns what the call of a question would change, by the data of one of its buttons.
func (c *Core) proposed(ctx context.Context, press string) []terminal.Change {
	parts := strings.Split(press, ":")
	if len(parts) != 3 {
		return nil
	}
	a, err := c.stores.Bot.Approval(ctx, parts[1])
	if err != nil {
		return nil
	}
	var body struct {
		Question tools.Question `json:"question"`
	}
	if err := json.Unmarshal(a.Body, &body); err != nil {
		return nil
	}
	q := body.Question
	change, ok := c.previewed(ctx, &tools.Call{
		ID:     q.Call,
		Tool:   q.Tool,
		Def:    tools.Definition{Name: q.Tool},
		Args:   json.RawMessage(q.Args),
		Trail:  &tools.Trail{},
		Origin: tools.Origin{Channel: a.Place.Channel, Session: string(a.Session), Turn: a.Turn, Caller: a.Caller},
	})
	if !ok {
		return nil
	}
	return []terminal.Change{change}
}
