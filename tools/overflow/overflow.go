// Package overflow is the stage that keeps long output out of the model's context. The model gets the beginning and the
// end, or a summary, and a reference overflow:<uuid> with which the tool read_overflow returns the whole, page by page
// (seeds 003 and 004).
package overflow

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/policy/scan"
	"github.com/zephbot/zephbot/policy/source"
	"github.com/zephbot/zephbot/tools"
)

// Defaults of [tools.overflow].
const (
	DefaultThreshold = 50_000
	DefaultRetention = 7 * 24 * time.Hour
	DefaultMaxBytes  = 10 << 20
)

// Extra is how many characters a shown text may exceed the threshold, for the marker of what is left out and the note
// with the reference.
const Extra = 256

// Prefix is the text before an id in what a model reads.
const Prefix = "overflow:"

// minBytes is the smallest Options.MaxBytes for which the ends of an output are stored.
const minBytes = 4 << 10

const (
	summaryTimeout = 30 * time.Second
	saveTimeout    = 10 * time.Second
)

// ErrNotFound is returned by Store.Load for an output that does not exist, has expired or belongs to another session.
// The caller cannot distinguish these cases.
var ErrNotFound = errors.New("no such stored output")

// Item is one stored output.
type Item struct {
	ID      string // UUID in lower case, with dashes
	Session string // the session it belongs to: no other can read it
	Turn    string
	Call    string // with Session and Turn: the call that produced it
	Tool    string
	Source  source.Source // of Text (tools.Call.Source); None = our own words
	Text    string
	Created time.Time
	Expires time.Time // when it expires; zero = never
}

// Validate returns an error for an item that a store cannot keep.
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

// Store stores outputs. It is safe for concurrent use and keeps an Item until it expires or its session is reset.
type Store interface {
	// Save stores the complete item or nothing. It replaces an item of the same session, turn and call, so that a call
	// that is repeated after a crash leaves only one. An id that another call has used is an error.
	Save(ctx context.Context, item Item) error
	// Load returns the item of this session if it has not expired at now, or ErrNotFound.
	Load(ctx context.Context, session, id string, now time.Time) (Item, error)
}

// Options configure the stage and the tool that reads stored outputs.
type Options struct {
	// Store stores what is cut. Without one nothing is stored, and the note says so.
	Store Store
	// Threshold is how many characters (code points) of a result the model gets; 0 or less = DefaultThreshold.
	Threshold int
	// Limit can return another threshold for a call; 0 or less = Threshold. May be nil.
	Limit func(call *tools.Call) int
	// Retention is how long an output is stored; 0 or less = DefaultRetention.
	Retention time.Duration
	// MaxBytes is the size of the largest output that is stored completely. Of a larger one, the ends are stored if
	// there is room for them. 0 or less = no limit.
	MaxBytes int64
	// Summarize summarises a long output; the summary replaces its beginning and end. nil = off. question is what the
	// person wants, and text is the output, already cut to the threshold. If it fails, returns nothing or takes too
	// long, beginning and end are used. It is not called for pages and answers of servers, nor for a text that would be
	// flagged: a summary could carry an injection past the scan of the mark stage.
	Summarize func(ctx context.Context, question, tool, text string) (string, error)
	// SummaryTimeout limits one summary; 0 or less = 30 seconds.
	SummaryTimeout time.Duration

	Now   func() time.Time // nil = time.Now
	NewID func() string    // returns an unpredictable UUID; nil = a random one
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

// New returns the stage. Credentials must already be removed from the texts. A result that was cut has Truncated set.
// Whole is empty in every result that leaves the stage: its content was stored or dropped. An error of the stage is
// never an error of the call.
func New(options Options) tools.Middleware {
	s := &stage{Options: options.withDefaults()}
	return func(next tools.Handler) tools.Handler {
		return func(ctx context.Context, call *tools.Call) (*tools.Result, error) {
			result, err := next(ctx, call)
			// read_overflow limits its own output
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

// stage implements New.
type stage struct{ Options }

// shape returns the result as the model gets it.
func (s *stage) shape(ctx context.Context, call *tools.Call, result *tools.Result) *tools.Result {
	shown := *result // the original may be shared
	shown.Text, shown.Whole = valid(result.Text), ""
	limit := min(s.limit(call), fitting(shown.Text, call.Room))
	long := longer(shown.Text, limit)
	keep := []string{shown.Text}
	filtered := false
	if whole := valid(result.Whole); whole != "" && whole != shown.Text {
		filtered = true
		keep = []string{whole}
		if long { // the condensed text is the best alternative
			keep = append(keep, shown.Text)
		}
	}
	if !long && !filtered {
		return &shown
	}
	note := s.keep(ctx, call, keep, call.Source(result))
	if long {
		shown.Text = s.shorten(ctx, call, &shown, limit)
		shown.Truncated = true
	}
	shown.Text = onNewLine(shown.Text, note)
	return &shown
}

// fitting returns how many characters of a text take a number of tokens, less what is added to a cut text; 0 tokens =
// there is no limit. A token is about 3.5 ASCII characters, or one other character.
func fitting(text string, tokens int) int {
	if tokens <= 0 || len(text) <= tokens { // no character takes more tokens than bytes
		return math.MaxInt
	}
	characters, ascii := count(text), 0
	for i := range len(text) {
		if text[i] < utf8.RuneSelf {
			ascii++
		}
	}
	size := ascii*2/7 + characters - ascii
	if size <= tokens {
		return math.MaxInt
	}
	return max(characters*tokens/size-Extra, Extra)
}

func (s *stage) limit(call *tools.Call) int {
	if s.Limit != nil {
		if n := s.Limit(call); n > 0 {
			return n
		}
	}
	return s.Threshold
}

// shorten returns a summary, or beginning and end: at most limit characters and a marker.
func (s *stage) shorten(ctx context.Context, call *tools.Call, result *tools.Result, limit int) string {
	ends, _ := Cut(result.Text, limit)
	if s.Summarize == nil || result.Untrusted != source.None || len(scan.From(call.Source(result), result.Text)) > 0 {
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

// keep stores the first of the texts that is not too large, or the ends of the first one. It returns a line that says
// where the text is, or why it was not stored.
func (s *stage) keep(ctx context.Context, call *tools.Call, texts []string, from source.Source) string {
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
		return fmt.Sprintf(
			"[the whole output, %d characters, could not be kept: it is larger than %d bytes; ask for less at once]",
			count(texts[0]), s.MaxBytes,
		)
	}
	item := s.item(call, text, from)
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

func (s *stage) item(call *tools.Call, text string, from source.Source) Item {
	now := s.Now()
	item := Item{
		ID: s.NewID(), Session: call.Origin.Session, Turn: call.Origin.Turn, Call: call.ID, Tool: toolOf(call),
		Source: from, Text: text, Created: now, Expires: now.Add(s.Retention),
	}
	if item.Call == "" { // a call without an id counts as a new call
		item.Call = item.ID
	}
	return item
}

// save completes even if the turn is stopped: the tool has run, and the reference is recorded in its result.
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

// isID reports whether a text is a UUID in canonical form.
func isID(id string) bool {
	parsed, err := uuid.Parse(id)
	return err == nil && parsed.String() == id
}

// Whole returns the stage for callers that cannot read a reference: every result has its whole text. A result that the
// tool itself has cut says so.
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
