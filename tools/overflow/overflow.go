// Package overflow is the stage that keeps long output out of the model's context: the model sees head and tail, or a
// summary, and a reference overflow:<uuid> under which the tool read_overflow gives the whole, page by page (seeds 003
// and 004).
package overflow

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/tools"
)

// The defaults of [tools.overflow].
const (
	DefaultThreshold = 50_000
	DefaultRetention = 7 * 24 * time.Hour
	DefaultMaxBytes  = 10 << 20
)

// Extra is how many characters a shown text may be longer than the threshold: the marker of what is left out and the
// notice of the reference.
const Extra = 256

// Prefix stands before an id in what a model reads.
const Prefix = "overflow:"

// minBytes is the least Options.MaxBytes for which the ends of an output are worth keeping.
const minBytes = 4 << 10

const (
	summaryTimeout = 30 * time.Second
	saveTimeout    = 10 * time.Second
)

// ErrNotFound is the answer of Store.Load for what it does not have, what has expired and what belongs to another
// conversation: who asks cannot tell one from the other.
var ErrNotFound = errors.New("no such stored output")

// Item is one output that is kept whole.
type Item struct {
	ID      string // UUID in lower case, with dashes
	Session string // the conversation it belongs to: nobody else reads it
	Turn    string
	Call    string // with Session and Turn, what made it
	Tool    string
	Source  string // of untrusted content, as in tools.Result.Untrusted; "" = our own
	Text    string
	Created time.Time
	Expires time.Time // from then on it is not found; zero = never
}

// Validate says what a store cannot keep.
func (i *Item) Validate() error {
	switch {
	case !isID(i.ID):
		return fmt.Errorf("keep output: id %q is not a UUID", i.ID)
	case i.Session == "":
		return errors.New("keep output: it belongs to no conversation")
	case i.Call == "":
		return errors.New("keep output: it comes from no call")
	}
	return nil
}

// Store keeps outputs. It is safe for concurrent use and keeps an Item until it expires or its conversation is reset.
type Store interface {
	// Save keeps the item, all of it or nothing. An item of the same session, turn and call is replaced: a call that is
	// repeated after a crash leaves one. An id that another call has is an error.
	Save(ctx context.Context, item Item) error
	// Load gives the item of this session that has not expired at now, or ErrNotFound.
	Load(ctx context.Context, session, id string, now time.Time) (Item, error)
}

// Options configure the stage and the tool that reads.
type Options struct {
	// Store keeps what is cut. Without one nothing is kept, and the notice says so.
	Store Store
	// Threshold is how many characters (code points) of a result the model sees; 0 or less = DefaultThreshold.
	Threshold int
	// Limit may give another threshold for a call; its 0 or less is Threshold. May be nil.
	Limit func(call *tools.Call) int
	// Retention is how long an output is kept; 0 or less = DefaultRetention.
	Retention time.Duration
	// MaxBytes is the largest output that is kept whole; of a larger one its ends are, when there is room for them. 0
	// or less = no limit.
	MaxBytes int64
	// Summarize puts a long output in fewer words, which then stand in place of head and tail; nil = off. question is
	// what the person wants, text is the output already cut to the threshold. What fails, says nothing or takes too
	// long leaves head and tail. It is not asked for untrusted content: a summary would carry an injection past the
	// scan of the stage that marks.
	Summarize func(ctx context.Context, question, tool, text string) (string, error)
	// SummaryTimeout bounds one summary; 0 or less = 30 seconds.
	SummaryTimeout time.Duration

	Now   func() time.Time // nil = time.Now
	NewID func() string    // gives a UUID that nobody can guess; nil = a random one
	Log   zerolog.Logger
}

func (o Options) withDefaults() Options {
	if o.Threshold <= 0 {
		o.Threshold = DefaultThreshold
	}
	if o.Retention <= 0 {
		o.Retention = DefaultRetention
	}
	if o.SummaryTimeout <= 0 {
		o.SummaryTimeout = summaryTimeout
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.NewID == nil {
		o.NewID = uuid.NewString
	}
	return o
}

// New makes the stage. It expects texts from which credentials are gone. A result that is cut has Truncated set; Whole
// is empty in every result that leaves the stage, for what it held is kept or given up. No failure of the stage is a
// failure of the call.
func New(options Options) tools.Middleware {
	s := &stage{Options: options.withDefaults()}
	return func(next tools.Handler) tools.Handler {
		return func(ctx context.Context, call *tools.Call) (*tools.Result, error) {
			result, err := next(ctx, call)
			// what read_overflow gives is bounded by itself
			if err != nil || result == nil || toolOf(call) == ToolName {
				return result, err
			}
			return s.shape(ctx, call, result), nil
		}
	}
}

func toolOf(call *tools.Call) string {
	if call.Def.Name != "" {
		return call.Def.Name
	}
	return call.Tool
}

// stage is what New makes.
type stage struct{ Options }

// shape returns the result as the model sees it.
func (s *stage) shape(ctx context.Context, call *tools.Call, result *tools.Result) *tools.Result {
	shown := *result // the original may be shared
	shown.Text, shown.Whole = valid(result.Text), ""
	limit := s.limit(call)
	long := longer(shown.Text, limit)
	keep := []string{shown.Text}
	filtered := false
	if whole := valid(result.Whole); whole != "" && whole != shown.Text {
		filtered = true
		keep = []string{whole}
		if long { // the condensed text is the next best thing
			keep = append(keep, shown.Text)
		}
	}
	if !long && !filtered {
		return &shown
	}
	note := s.keep(ctx, call, keep, result.Untrusted)
	if long {
		shown.Text = s.shorten(ctx, call, &shown, limit)
		shown.Truncated = true
	}
	shown.Text = onNewLine(shown.Text, note)
	return &shown
}

func (s *stage) limit(call *tools.Call) int {
	if s.Limit != nil {
		if n := s.Limit(call); n > 0 {
			return n
		}
	}
	return s.Threshold
}

// shorten returns a summary or head and tail, in any case not more than limit characters and a marker.
func (s *stage) shorten(ctx context.Context, call *tools.Call, result *tools.Result, limit int) string {
	ends, _ := Cut(result.Text, limit)
	if s.Summarize == nil || result.Untrusted != "" {
		return ends
	}
	bounded, cancel := context.WithTimeout(ctx, s.SummaryTimeout)
	defer cancel()
	summary, err := s.Summarize(bounded, call.Ask, toolOf(call), ends)
	if err != nil && ctx.Err() != nil { // the turn is being stopped
		return ends
	}
	if err != nil || blank(summary) {
		s.Log.Warn().Err(err).Str("call", call.ID).Str("tool", toolOf(call)).
			Msg("output was not summarised, head and tail are shown")
		return ends
	}
	summary, _ = Cut("[summary of a long output]\n"+summary, limit)
	return summary
}

// keep stores the first of the texts that is not too large, or the ends of the first, and says in one line where it is
// or why it is nowhere.
func (s *stage) keep(ctx context.Context, call *tools.Call, texts []string, source string) string {
	text, part := "", ""
	for _, candidate := range texts {
		if s.MaxBytes <= 0 || int64(len(candidate)) <= s.MaxBytes {
			text = candidate
			break
		}
	}
	if text == "" && s.MaxBytes >= minBytes {
		var dropped int
		text, dropped = ends(texts[0], int(s.MaxBytes))
		part = fmt.Sprintf(" without %d in the middle", dropped)
	}
	if text == "" {
		s.Log.Warn().Str("call", call.ID).Str("tool", toolOf(call)).Int("bytes", len(texts[0])).
			Msg("output is too large to be kept")
		return fmt.Sprintf("[the whole output, %d characters, could not be kept: it is larger than %d bytes; ask for less at once]",
			count(texts[0]), s.MaxBytes)
	}
	item := s.item(call, text, source)
	if err := s.save(ctx, item); err != nil {
		s.Log.Error().Err(err).Str("call", call.ID).Str("tool", item.Tool).Int("bytes", len(text)).
			Msg("output was not kept")
		return fmt.Sprintf("[the whole output, %d characters, could not be kept]", count(texts[0]))
	}
	if part != "" {
		return fmt.Sprintf("[%d characters%s kept as %s%s; %s reads them]", count(texts[0]), part, Prefix, item.ID,
			ToolName)
	}
	return fmt.Sprintf("[%d characters kept as %s%s; %s reads them]", count(text), Prefix, item.ID, ToolName)
}

func (s *stage) item(call *tools.Call, text, source string) Item {
	now := s.Now()
	item := Item{
		ID: s.NewID(), Session: call.Origin.Session, Turn: call.Origin.Turn, Call: call.ID, Tool: toolOf(call),
		Source: source, Text: text, Created: now, Expires: now.Add(s.Retention),
	}
	if item.Call == "" { // a call without a name is a call of its own
		item.Call = item.ID
	}
	return item
}

// save goes on when the turn is stopped: the tool has run, and its result is recorded with the reference in it.
func (s *stage) save(ctx context.Context, item Item) error {
	if s.Store == nil {
		return errors.New("there is no store")
	}
	if err := item.Validate(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), saveTimeout)
	defer cancel()
	return s.Store.Save(ctx, item)
}

// isID takes the one canonical form of a UUID.
func isID(id string) bool {
	parsed, err := uuid.Parse(id)
	return err == nil && parsed.String() == id
}

// Whole returns the stage for where nobody can read a reference: every result has its whole text. A result that a tool
// has cut itself says so.
func Whole(next tools.Handler) tools.Handler {
	return func(ctx context.Context, call *tools.Call) (*tools.Result, error) {
		result, err := next(ctx, call)
		if err != nil || result == nil || result.Whole == "" {
			return result, err
		}
		shown := *result // the original may be shared
		shown.Text, shown.Whole = result.Whole, ""
		return &shown, nil
	}
}
