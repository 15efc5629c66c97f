package approval

// How often a standing approval is used: counted before the call runs, so that none allows more than it may.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/render"
	"github.com/zephbot/zephbot/policy"
	"github.com/zephbot/zephbot/tools"
)

const (
	// fewUses is for how many calls a rule is stored that an admin wants for some only.
	fewUses = 10
	// lastCalls is how many calls are known that a rule has allowed: one that is run again is not counted twice.
	lastCalls = 10
	// lastCovered is of how many of them it is said what they were, in so many UTF-16 units.
	lastCovered, coveredLength = 3, 80
	// useTries is how often a use is counted again because somebody else has changed the rule.
	useTries = 50
)

// Use is a call that a standing approval has allowed.
type Use struct {
	Call string    `json:"call"` // useID
	At   time.Time `json:"at"`
	// What the call was, in a line without credentials, and whose. They are removed with the person.
	Caller  string `json:"caller,omitempty"`
	Covered string `json:"covered,omitempty"`
}

// useID identifies a call of a conversation.
func useID(session bot.SessionKey, call string) string {
	return shortHash(string(session) + "/" + call)
}

// usedUp reports whether a standing approval allows no more calls.
func (g *Grant) usedUp() bool { return g.Most > 0 && g.Uses >= g.Most }

// counts reports whether a call is among the last that a standing approval has allowed.
func (g *Grant) counts(id string) bool {
	return slices.ContainsFunc(g.Last, func(u Use) bool { return u.Call == id })
}

// count counts a call.
func (g *Grant) count(u Use) {
	g.Uses++
	g.Last = slices.Insert(slices.Clone(g.Last), 0, u)
	g.Last = g.Last[:min(len(g.Last), lastCalls)]
	for i := range g.Last {
		if i >= lastCovered {
			g.Last[i].Caller, g.Last[i].Covered = "", ""
		}
	}
}

// Use implements approve.Lookup. All that a call uses is counted by one Change, which is refused if anybody else has
// changed one of the rules since they were read. A call that a person has approved itself uses none, and one that is run
// again after a crash is counted already.
func (b *Broker) Use(ctx context.Context, call *tools.Call, hash string) (left bool, err error) {
	if b.deps.Apply == nil {
		return true, nil
	}
	session := bot.SessionKey(call.Origin.Session)
	a, err := b.deps.Store.ApprovalOf(ctx, session, call.ID)
	switch {
	case err == nil && a.State == bot.Approved && a.Hash == hash:
		return true, nil
	case err != nil && !errors.Is(err, bot.ErrNotFound):
		return false, fmt.Errorf("read the question of a call: %w", err)
	}
	u := Use{Call: useID(session, call.ID), At: b.deps.Now().UTC(), Caller: call.Origin.Caller, Covered: b.covered(call)}
	for range useTries {
		facts, left, err := b.useFacts(ctx, call, u)
		if err != nil || !left || len(facts) == 0 {
			return left, err
		}
		_, err = b.deps.Apply(ctx, &bot.Change{Facts: facts})
		if !errors.Is(err, bot.ErrConflict) {
			if err != nil {
				return false, fmt.Errorf("count the use of a standing approval: %w", err)
			}
			return true, nil
		}
	}
	return false, fmt.Errorf("count the use of a standing approval: %w", bot.ErrConflict)
}

// covered says in a line what a call is.
func (b *Broker) covered(call *tools.Call) string {
	line, _, _ := strings.Cut(strings.TrimSpace(call.Subject.Show), "\n")
	if b.deps.Redact != nil {
		line = b.deps.Redact(line)
	}
	return render.Cut(line, coveredLength)
}

// useFacts returns the facts that count a call; left is false if one of its rules does not allow it any more.
func (b *Broker) useFacts(ctx context.Context, call *tools.Call, u Use) (facts []bot.Fact, left bool, err error) {
	list, err := grantsOf(ctx, b.deps.Store, call.Origin.Chat+"/", b.deps.Now())
	if err != nil {
		return nil, false, err
	}
	for i := range call.Trail.Granted {
		g := &call.Trail.Granted[i]
		if g.Session != "" { // it ends with the conversation
			continue
		}
		at := slices.IndexFunc(list, func(h held) bool { return sameGrant(&h.Grant.Grant, g) })
		if at < 0 {
			return nil, false, nil
		}
		h := &list[at]
		switch {
		case h.counts(u.Call):
			continue
		case h.usedUp():
			return nil, false, nil
		}
		raw := h.raw
		h.count(u)
		value, err := json.Marshal(h.Grant)
		if err != nil {
			return nil, false, fmt.Errorf("standing approval: %w", err)
		}
		facts = append(facts, bot.Fact{
			Bucket: GrantBucket, Key: h.key, Value: string(value), Expires: h.Until, Was: &raw,
		})
	}
	return facts, true, nil
}

// sameGrant reports whether two standing approvals are the same rule.
func sameGrant(a, b *policy.Grant) bool { return reflect.DeepEqual(a, b) }
