package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/cost"
	"github.com/zephbot/zephbot/agent/window"
)

// Talk is the part of a conversation that is to be summed up.
type Talk struct {
	Earlier   string          // the summary of what was before it; "" = there is none
	Entries   []journal.Entry // what was said and done
	MaxInput  int             // tokens that its text may have
	MaxTokens int             // of the summary
	Prefer    string          // as in llm.Request
	Party     string          // as in llm.Request
	// Conversation is as in llm.Request.
	Conversation string
}

// Compaction shortens conversations that become too long for the model.
type Compaction struct {
	// SumUp sums up a part of a conversation; the payer of the turn is in ctx. nil = without a
	// summary: the oldest turns are dropped.
	SumUp func(ctx context.Context, talk Talk) (string, error)
	// Suspect reports whether a text tries to give instructions; nil = none does.
	Suspect func(text string) bool
}

const (
	sumTime = 60 * time.Second // for one summary

	// keepShare is the part of the budget that the newest turns may have which a summary leaves as they are.
	keepShare = 0.10
	// After a summary that failed, the next one is tried after retrySum, and after each further one that fails after
	// twice the time, at most mostRetry: a model that never sums up is not asked, and paid, at every turn.
	retrySum, mostRetry = 5 * time.Minute, 6 * time.Hour

	// sumShare is the part of the budget that may be summed up at once.
	sumShare = 0.70
)

// windowSize returns the size of the window that the next request may fill, in tokens; 0 or less = no limit.
func (s *step) windowSize() int {
	budget, own := s.limits.ContextTokens, llm.WindowFor(s.deps.Provider, s.turn.Model)
	if own > 0 && (budget <= 0 || own < budget) {
		return own
	}
	return budget
}

// renderMessages fills in the messages of a request. A conversation that has become too long is summed up before that,
// once in a run: the summary is journalled, so every later request begins with it.
func (s *step) renderMessages(ctx context.Context, req *llm.Request, budget int) (estimate int, err error) {
	accepts := llm.AcceptsFor(s.deps.Provider, req.Prefer)
	view := s.state.buildConversation(req, s.turn.Shared, accepts)
	s.fixed = view.fixed
	plan := view.planRequest(budget, false)
	if s.state.needsSummary(plan.Total, budget) && !s.summed {
		s.summed = true
		done, err := s.sumUp(ctx, &view, plan, budget)
		if err != nil {
			return 0, err
		}
		if done {
			view = s.state.buildConversation(req, s.turn.Shared, accepts)
			plan = view.planRequest(budget, false)
		}
	}
	if budget > 0 && plan.Total > int(float64(budget)*window.High) {
		plan = view.planRequest(budget, true)
		s.leftOut = s.leftOut || plan.Dropped > 0 && s.deps.SumUp != nil
	}
	req.Messages, req.Window, req.Size = view.sentMessages(plan), max(0, budget), plan.Total
	req.Smaller = func(tokens int) ([]llm.Message, int, bool) {
		v := s.state.buildConversation(req, s.turn.Shared, accepts)
		smaller := v.planRequest(tokens, true)
		return v.sentMessages(smaller), smaller.Total, !window.Over(smaller.Total, tokens)
	}
	return plan.Total, nil
}

// needsSummary reports whether a conversation should be summed up: it fills the window, or more is read for each
// turn than a window has room for.
func (s *state) needsSummary(total, budget int) bool {
	if budget <= 0 {
		return false
	}
	if total > int(float64(budget)*window.High) {
		return true
	}
	size := 0
	entries := s.readTail().Entries
	for i := range entries {
		size += entries[i].Size()
	}
	return size > window.Room(budget)/4*3
}

// sumUp replaces the older turns by a summary of the model. It reports false if there is nothing to sum up, or if the
// model did not; the conversation then goes on without it.
func (s *step) sumUp(ctx context.Context, view *conversation, plan window.Plan, budget int) (bool, error) {
	// a sub-agent has one turn, which a summary leaves as it is
	if s.deps.SumUp == nil || s.state.child != "" || s.summaryRests() {
		return false, nil
	}
	entries := s.state.readTail().Entries
	earlier, first := journal.Summary(entries)
	most := min(max(budget/16, 256), 4096)
	from := s.state.keepFrom(view, plan, first, budget, most)
	if from <= first {
		return false, nil
	}
	talk := Talk{
		Entries: s.state.entriesOf(entries[first:from:from], ""), MaxInput: int(float64(budget) * sumShare),
		MaxTokens: most, Prefer: s.turn.Model, Party: s.turn.Origin.Caller, Conversation: s.turn.Origin.Session,
	}
	if earlier != nil {
		talk.Earlier = earlier.Text
	}
	bounded, cancel := context.WithTimeout(ctx, sumTime)
	defer cancel()
	text, err := s.deps.SumUp(bounded, talk)
	if ctx.Err() != nil {
		return false, context.Cause(ctx)
	}
	if err == nil && (text == "" || !utf8.ValidString(text)) {
		err = errors.New("the summary is empty or no text")
	}
	if err != nil {
		s.unsummed = !cost.Refused(err) // what was not asked for has cost nothing
		zerolog.Ctx(ctx).Warn().Err(err).Msg("conversation not summed up; its oldest messages are left out")
		return false, nil
	}
	kept, done := storingContext(ctx)
	defer done()
	return true, s.state.appendEntries(kept, func(n int64) []journal.Entry {
		return []journal.Entry{s.summaryEntry(n, text, &entries[from])}
	})
}

// summaryRests reports whether a summary failed so short a time ago that it is not tried again.
func (s *step) summaryRests() bool {
	soFar := s.state.conversationState()
	failed := soFar.Unsummed
	if failed.Times == 0 {
		return false
	}
	wait := min(retrySum<<min(failed.Times-1, 10), mostRetry)
	return s.deps.Now().Sub(failed.At) < wait
}

// markFailedSummary notes in the first of the entries that follow it that a summary was tried in vain. It costs no
// append of its own; if the process dies before they are stored, the next run tries once more.
func (s *step) markFailedSummary(entries []journal.Entry) {
	if s.unsummed && len(entries) > 0 {
		entries[0].Unsummed, s.unsummed = true, false
	}
}

// summaryEntry is entry number n, which takes the place of the entries before from.
func (s *step) summaryEntry(n int64, text string, from *journal.Entry) journal.Entry {
	entry := journal.Entry{
		N: n, Turn: s.turn.ID, Kind: journal.SummaryEntry, At: s.deps.Now(), Text: text,
		Flagged: s.deps.Suspect != nil && s.deps.Suspect(text),
	}
	entry.Keeps = int(n - from.N)
	soFar := s.state.conversationState().After(entry)
	entry.State = &soFar
	return entry
}

// keepFrom returns the index of the first entry that a summary leaves as it is: the current turn, and before it the
// turns that take little room, but not all of them. With a summary of most tokens, what it leaves has to fit: a turn
// that is neither summed up nor sent would be lost.
func (s *state) keepFrom(view *conversation, plan window.Plan, first, budget, most int) int {
	entries := s.readTail().Entries
	starts := turnsOf(entries, first)
	from := s.from
	sizes, pieces := view.turnSizes(plan), view.listPieces()
	tokens, size := 0, 0
	for k := len(starts) - 1; k > 0; k-- {
		if starts[k] >= s.from {
			continue
		}
		for i := starts[k]; i < from; i++ {
			size += entries[i].Size()
		}
		tokens += sizes[k]
		if tokens > int(float64(budget)*keepShare) || size > window.Room(budget)/8 {
			break
		}
		left := pieces
		for len(left) > 0 && left[0].Group < k {
			left = left[1:]
		}
		if !fitsBudget(left, view.fixed, budget) || !fitsBudget(left, view.fixed+most, budget) {
			break
		}
		from = starts[k]
	}
	return from
}

// fitsBudget reports whether messages need no further summary.
func fitsBudget(pieces []window.Piece, fixed, budget int) bool {
	return window.Compact(pieces, fixed, budget, false).Total <= int(float64(budget)*window.High)
}

// turnsOf returns the indexes at which the turns of a conversation begin, as groups groups them.
func turnsOf(entries []journal.Entry, first int) []int {
	var starts []int
	turn := ""
	for i := first; i < len(entries); i++ {
		if e := &entries[i]; !e.Shortens() && (len(starts) == 0 || e.Turn != turn) {
			starts, turn = append(starts, i), e.Turn
		}
	}
	return starts
}

// conversation is what a request can contain of a journal.
type conversation struct {
	fixed  int // tokens of what always belongs to it
	total  int
	head   []llm.Message   // the summary
	turns  [][]llm.Message // the others, by turn
	accept llm.Accepts
	state  *state
	reads  map[string]bool // calls that only read something; nil = not looked at yet
}

// buildConversation builds the messages of the journal; what is in the request already precedes them.
func (s *state) buildConversation(req *llm.Request, shared bool, accepts llm.Accepts) conversation {
	c := conversation{fixed: window.Fixed(req), accept: accepts, state: s}
	c.head, c.turns = groupTurns(s.readEntries(), s.listSpeakers(shared))
	c.fixed += window.Messages(c.head)
	c.total = c.fixed
	for _, g := range c.turns {
		c.total += window.Messages(g) + window.Parts(g, accepts)
	}
	return c
}

// isRepeatable reports whether a call only read something.
func (c *conversation) isRepeatable(call string) bool {
	if c.reads == nil {
		c.reads = map[string]bool{}
		entries := c.state.readEntries()
		for i := range entries {
			for _, u := range entries[i].Uses {
				c.reads[u.Call] = u.ReadOnly
			}
		}
	}
	return c.reads[call]
}

// planRequest decides what is sent within a budget. A short conversation costs no more than its size.
func (c *conversation) planRequest(budget int, drop bool) window.Plan {
	if budget <= 0 || c.total <= int(float64(budget)*(window.Soft-1.0/16)) {
		return window.Plan{Total: c.total}
	}
	return window.Compact(c.listPieces(), c.fixed, budget, drop)
}

// listPieces are the messages of the turns, one after the other.
func (c *conversation) listPieces() []window.Piece {
	var list []window.Piece
	batch := 0
	for k, g := range c.turns {
		for i := range g {
			m := &g[i]
			if len(m.Uses) > 0 {
				batch++
			}
			parts := window.Parts(g[i:i+1], c.accept)
			p := window.Piece{Size: window.Message(*m) + parts, Group: k, Batch: batch}
			if m.Result != nil {
				if short := window.Message(c.referTo(m)); p.Size > 2*short {
					p.Short = short
				}
				if least := c.leastTokens(m) + parts; p.Size > least {
					p.Least = least
				}
			}
			list = append(list, p)
		}
	}
	return list
}

// referTo is what the model reads in place of the output of a tool: which tool, how large, and how to read it.
func (c *conversation) referTo(m *llm.Message) llm.Message {
	result := *m.Result
	result.Parts = nil
	size := fmt.Sprintf(
		"[output of %s left out to save room, %d characters", result.Name, utf8.RuneCountInString(m.Result.Text),
	)
	switch id := volatile.FindString(m.Result.Text); {
	case id != "":
		result.Text = size + "; read_overflow reads " + id + " again]"
	case c.isRepeatable(result.ID):
		result.Text = size + "; the same call reads it again]"
	default:
		result.Text = size + "; the call has ended, and only its output is missing here]"
	}
	short := *m
	short.Result = &result
	return short
}

// leastShown is how many tokens of an output are shown besides its frame when it is cut as far as possible.
const leastShown = 40

// leastTokens returns the tokens of a result that is cut as far as possible, without its parts.
func (c *conversation) leastTokens(m *llm.Message) int {
	open, end := frameOf(m.Result.Text)
	short := llm.Message{Role: m.Role, Result: &llm.ToolResult{}}
	return window.Message(short) + window.Tokens(m.Result.Text[:open]) + window.Tokens(m.Result.Text[end:]) +
		window.Tokens(c.gapLine(m, len(m.Result.Text))) + leastShown
}

// cutResult returns a result with as much left out of its middle that the message has a number of tokens.
func (c *conversation) cutResult(m *llm.Message, tokens int) llm.Message {
	text := m.Result.Text
	open, end := frameOf(text)
	room := tokens - (c.leastTokens(m) - leastShown) - window.Parts([]llm.Message{*m}, c.accept)
	head, tail := window.Ends(text[open:end], room)
	if head == tail {
		return *m
	}
	result := *m.Result
	begin := text[:open+head]
	if begin != "" && !strings.HasSuffix(begin, "\n") {
		begin += "\n"
	}
	result.Text = begin + c.gapLine(m, utf8.RuneCountInString(text[open+head:open+tail])) + text[open+tail:]
	short := *m
	short.Result = &result
	return short
}

// gapLine is the line in place of what is cut out of a result: how much it was, and how to read it.
func (c *conversation) gapLine(m *llm.Message, characters int) string {
	how := ""
	switch id := volatile.FindString(m.Result.Text); {
	case id != "":
		how = "; read_overflow reads " + id
	case c.isRepeatable(m.Result.ID):
		how = "; the same call reads them again, but no more fits at once: ask for a part"
	}
	return fmt.Sprintf("[… %d characters left out because the window is small%s …]\n", characters, how)
}

// The longest frame that is kept, in bytes.
const maxFrame = 1 << 10

// foreignOpen and foreignEnd begin the lines around content from outside (see chain.Marker).
const (
	foreignOpen = `<external-data id="`
	foreignEnd  = `</external-data id="`
)

// frameOf returns what of an output is never cut: text[:open], the lines that mark it as foreign, and text[end:], the
// note of where it was stored, and the closing mark.
func frameOf(text string) (open, end int) {
	end = len(text)
	if strings.HasPrefix(text, foreignOpen) {
		for range 3 { // the mark, its explanation and perhaps a warning
			line := strings.IndexByte(text[open:], '\n') + 1
			if line == 0 || open+line > maxFrame || open > 0 && text[open] != '[' {
				break
			}
			open += line
		}
		if at := strings.LastIndex(text, "\n"+foreignEnd); at >= open && len(text)-at < maxFrame {
			end = at + 1
		}
	}
	from := max(open, end-maxFrame)
	if ids := volatile.FindAllStringIndex(text[from:end], -1); len(ids) > 0 {
		line := strings.LastIndexByte(text[open:from+ids[len(ids)-1][0]], '\n') + 1 + open
		if line >= from && text[line] == '[' {
			end = line
		}
	}
	return open, end
}

// shownMessage is a message as a plan sends it; n is its number among the pieces.
func (c *conversation) shownMessage(m *llm.Message, plan *window.Plan, n int) llm.Message {
	switch {
	case n < len(plan.Short) && plan.Short[n]:
		return c.referTo(m)
	case n < len(plan.Cut) && plan.Cut[n] > 0:
		return c.cutResult(m, plan.Cut[n])
	default:
		return *m
	}
}

// turnSizes are the tokens of each turn in a plan.
func (c *conversation) turnSizes(plan window.Plan) []int {
	sizes, n := make([]int, len(c.turns)), 0
	for k, g := range c.turns {
		for i := range g {
			sizes[k] += window.Message(c.shownMessage(&g[i], &plan, n))
			n++
		}
		sizes[k] += window.Parts(g, c.accept)
	}
	return sizes
}

// sentMessages are those that a plan sends.
func (c *conversation) sentMessages(plan window.Plan) []llm.Message {
	n := 0
	for _, g := range c.turns {
		for i := range g {
			g[i] = c.shownMessage(&g[i], &plan, n)
			n++
		}
	}
	return slices.Concat(append([][]llm.Message{c.head}, c.turns[plan.Dropped:]...)...)
}
