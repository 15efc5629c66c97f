// Package record writes to the audit log what people do without a tool: standing approvals, commands about servers. A
// line about something that a Change stores is stored in the same Change, and reaches the log exactly once, even if the
// process dies in between.
package record

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/facts"
	"github.com/zephbot/zephbot/policy/reason"
	"github.com/zephbot/zephbot/tools"
)

// bucket holds audit lines that are not in the log yet. They are stored together with what they describe, so that
// neither exists without the other. A key consists of a time, the process, and the correlation id of the line.
const bucket = "audit_due"

// Log is the audit log of this process (audit.Log).
type Log interface {
	// Record writes the line of a finished call; the log itself reports errors.
	Record(call *tools.Call, res *tools.Result, err error)
	// Keep is like Record, but returns an error if the line was not written.
	Keep(call *tools.Call, res *tools.Result, err error) error
	// Has reports whether one of the latest lines has this correlation id.
	Has(correlation string) bool
}

// Deps are the dependencies of a Book. All but Audit are required.
type Deps struct {
	Audit  Log // nil = nothing is recorded
	Store  bot.Facts
	Keeper facts.Keeper
	Owner  string                  // the name of this process
	Lives  func(owner string) bool // reports whether a process is still running
	Eldest func() bool             // reports whether this process writes the lines of those that died
	Now    func() time.Time
	Log    zerolog.Logger
}

// Book writes records. It is safe for concurrent use and starts no goroutines.
type Book struct {
	deps     Deps
	settling sync.Mutex
	// written are the lines that this process has written and not marked as written, because it was interrupted.
	written map[string]bool
}

// New returns a Book.
func New(deps Deps) *Book { return &Book{deps: deps, written: map[string]bool{}} }

// Waiting returns the number of lines that are not in a log yet, of all processes.
func (b *Book) Waiting(ctx context.Context) (int, error) {
	due, err := b.deps.Store.FactsOf(ctx, bucket, "", b.deps.Now())
	if err != nil {
		return 0, fmt.Errorf("read the audit lines that are due: %w", err)
	}
	return len(due), nil
}

// Record writes a line about something that is finished.
func (b *Book) Record(call *tools.Call, err error) {
	if b.deps.Audit == nil {
		return
	}
	var res *tools.Result
	if err == nil {
		res = &tools.Result{}
	}
	b.deps.Audit.Record(call, res, err)
}

// line is a line that is not in the log yet.
type line struct {
	Call       string          `json:"call"`
	Tool       string          `json:"tool"`
	Args       json.RawMessage `json:"args,omitempty"`
	Channel    string          `json:"channel"`
	Session    string          `json:"session"`
	Chat       string          `json:"chat"`
	Caller     string          `json:"caller"`
	Admin      bool            `json:"admin,omitempty"`
	ApprovedBy string          `json:"approved_by,omitempty"`
	Rule       string          `json:"rule,omitempty"`
	Server     string          `json:"server,omitempty"`
	Code       string          `json:"code,omitempty"` // of the server's error
	Failed     bool            `json:"failed,omitempty"`
	Category   tools.Category  `json:"category,omitempty"`
	Message    string          `json:"message,omitempty"`
	Denied     bool            `json:"denied,omitempty"`
}

// Due returns the line about an action that is not a tool call as facts, to be stored in the Change that performs the
// action; none if nothing is recorded. Settle writes the line once they are stored.
func (b *Book) Due(call *tools.Call, err error) []bot.Fact {
	if b.deps.Audit == nil {
		return nil
	}
	o, t := call.Origin, call.Trail
	l := line{
		Call: call.ID, Tool: call.Tool, Args: call.Args,
		Channel: o.Channel, Session: o.Session, Chat: o.Chat, Caller: o.Caller, Admin: o.Admin,
		ApprovedBy: t.ApprovedBy, Rule: t.Rule, Server: t.MCPServer, Code: t.MCPErrorCode,
	}
	if err != nil {
		e := tools.AsError(err)
		l.Failed, l.Category, l.Message, l.Denied = true, e.Category, e.Message, e.Denied()
	}
	raw, err := json.Marshal(l)
	if err != nil {
		b.deps.Log.Error().Err(err).Str("tool", call.Tool).Msg("audit line not stored")
		return nil
	}
	key := fmt.Sprintf("%020d/%s/%s", b.deps.Now().UnixNano(), b.deps.Owner, uuid.NewString())
	return []bot.Fact{{Bucket: bucket, Key: key, Value: string(raw)}}
}

// Settle writes the lines that are due, in order of time. A line that this process wrote before it was interrupted, or
// another one before it died, without marking it as written, is not written again. A line that
// cannot be written remains due.
func (b *Book) Settle(ctx context.Context) {
	b.settling.Lock()
	defer b.settling.Unlock()
	due, err := b.deps.Store.FactsOf(ctx, bucket, "", b.deps.Now())
	if err != nil {
		b.deps.Log.Error().Err(err).Msg("audit lines that are due could not be read; they are written later")
		return
	}
	for _, f := range due {
		_, rest, _ := strings.Cut(f.Key, "/")
		owner, id, _ := strings.Cut(rest, "/")
		if owner != b.deps.Owner && (b.deps.Lives(owner) || !b.deps.Eldest()) {
			continue // another process has it in its log, or is writing it
		}
		if !b.written[id] && (owner == b.deps.Owner || !b.has(id)) {
			if err := b.settleLine(f.Value, id); err != nil {
				b.deps.Log.Error().Err(err).Msg("audit line not written; trying again later")
				return // later lines wait, to keep the order
			}
		}
		b.written[id] = true
		if err := b.deps.Keeper.Keep(ctx, &bot.Change{Facts: []bot.Fact{{Bucket: f.Bucket, Key: f.Key}}}); err != nil {
			b.deps.Log.Error().Err(err).Msg("an audit line was written but is still stored as due")
			return
		}
		delete(b.written, id)
	}
}

func (b *Book) has(id string) bool { return b.deps.Audit != nil && b.deps.Audit.Has(id) }

// settleLine writes one line. An unreadable line is dropped, and so is one that was due before the log was disabled.
func (b *Book) settleLine(value, id string) error {
	var l line
	if err := json.Unmarshal([]byte(value), &l); err != nil {
		b.deps.Log.Error().Err(err).Msg("audit line that was due is unreadable")
		return nil
	}
	if b.deps.Audit == nil {
		return nil
	}
	call := &tools.Call{
		ID: l.Call, Tool: l.Tool, Args: l.Args,
		Trail: &tools.Trail{
			ApprovedBy:   l.ApprovedBy,
			Rule:         l.Rule,
			MCPServer:    l.Server,
			MCPErrorCode: l.Code,
			Correlation:  id,
		},
		Origin: tools.Origin{Channel: l.Channel, Session: l.Session, Chat: l.Chat, Caller: l.Caller, Admin: l.Admin},
	}
	if !l.Failed {
		return b.deps.Audit.Keep(call, &tools.Result{}, nil)
	}
	failure := &tools.Error{Category: l.Category, Message: l.Message, Err: errors.New(l.Message)}
	if l.Denied {
		failure.Reason = reason.Plain(l.Message) // the audit has only English
	}
	return b.deps.Audit.Keep(call, nil, failure)
}
