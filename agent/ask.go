package agent

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/cost"
	"github.com/zephbot/zephbot/agent/window"
	"github.com/zephbot/zephbot/policy/act"
	"github.com/zephbot/zephbot/tools"
)

// askModel calls the model once.
func (s *step) askModel(ctx context.Context) (*Outcome, error) {
	began := time.Now()
	offers := s.deps.Catalog.Tools(ctx, s.turn, s.state.catalogView())
	s.loading += time.Since(began)
	return s.askWith(ctx, offers, "")
}

// askWith calls the model with some tools. more is what it is told after the conversation; "" = nothing. An answer that
// says nothing, or has calls that cannot be made, is asked for once more: what the model is told for that
// does not stay in the conversation.
func (s *step) askWith(ctx context.Context, offers []Offer, more string) (*Outcome, error) {
	entry, resp, out, err := s.callModel(ctx, offers, more, "")
	if out != nil || err != nil {
		return out, err
	}
	if nudge := nudgeFor(resp); nudge != "" {
		zerolog.Ctx(ctx).Info().Str("provider", resp.Provider).Str("model", resp.Model).
			Bool("unmade_calls", resp.Unmade).Msg("model is asked once more for an answer")
		s.partial.Reset()
		s.sink.Emit(ctx, Event{Type: ResetEvent})
		again, second, out, err := s.callModel(ctx, offers, more, nudge)
		if err != nil {
			return nil, err
		}
		if out == nil { // else the first answer is all that there is
			resp = second
			again.Usage, again.USD = again.Usage.Add(entry.Usage), again.USD+entry.USD
			again.Millis += entry.Millis
			again.Retold = again.Retold || entry.Retold
			if again.Thoughts == "" {
				again.Thoughts = entry.Thoughts
			}
			entry = again
		}
	}
	if len(resp.Uses) > 0 && resp.Stop != llm.StopRefusal {
		return nil, s.journalUses(ctx, entry, resp, offers)
	}
	return s.endWithAnswer(entry, resp), nil
}

// What a model is told after an answer that was none. A model without calls of its own has been told what the function
// interface is for it (package fenced).
const (
	nudgeEmpty = "[your last answer was empty, so that nobody has read anything. Answer now, or call a tool. " +
		"This note is not from the person]"
	nudgeCalls = "[your last answer had a tool call in its text that could not be run: no such tool is offered to " +
		"you, or the " +
		"call could not be read. To call a tool, use the function interface and the names of the tools that you " +
		"are offered. " +
		"Text that only quotes a call belongs into a block of code. Nobody has read that answer: give it again. " +
		"This note is not from the person]"
)

// maxThinking bounds the thoughts of one model call that are handed on as they arrive, in bytes.
const maxThinking = 1 << 20

// nudgeFor returns what the model is told after an answer that is none; "" = it is one.
func nudgeFor(resp *llm.Response) string {
	switch {
	case resp.Stop == llm.StopRefusal || len(resp.Uses) > 0:
		return ""
	case resp.Unmade:
		return nudgeCalls
	case strings.TrimSpace(resp.Text) == "":
		return nudgeEmpty
	default:
		return ""
	}
}

// callModel calls the model once and journals nothing. nudge is what it is told after an answer that was none; "" =
// this is the first call of the step. Instead of an answer there can be an outcome of the turn.
func (s *step) callModel(ctx context.Context, offers []Offer, more, nudge string) (
	entry journal.Entry, resp *llm.Response, out *Outcome, err error,
) {
	began := time.Now().Add(-s.loading)
	s.loading = 0
	req := &llm.Request{
		System:    s.deps.System(s.turn, len(offers) > 0),
		Tools:     offeredTools(offers),
		MaxTokens: s.limits.MaxTokens, User: opaqueID(s.turn.Origin),
		Party: s.turn.Origin.Caller, Conversation: s.turn.Origin.Session,
		Prefer: s.turn.Model, Again: nudge == nudgeEmpty,
		OnReset: func() {
			s.partial.Reset()
			s.sink.Emit(ctx, Event{Type: ResetEvent})
		},
		OnThought: func(text string) {
			if s.thinking.Len() > maxThinking {
				return
			}
			s.thinking.WriteString(text)
			s.sink.Emit(ctx, Event{Type: ThoughtEvent, Text: text})
		},
	}
	budget := s.windowSize()
	estimate, err := s.renderMessages(ctx, req, budget)
	if err != nil {
		return entry, nil, nil, err
	}
	s.observePhase(ctx, ContextPhase, began)
	s.openContents(req)
	for _, text := range []string{more, nudge} {
		if text != "" {
			tellLast(req, text)
		}
	}
	if window.Over(estimate, budget) {
		return entry, nil, s.endWithout(journal.ReasonContext, ""), nil
	}
	stepNo := s.state.turnStats().Steps + 1
	key := s.costKey(stepNo)
	if nudge != "" {
		key += "+"
	}
	reserved := llm.Usage{Input: estimate, Output: s.limits.MaxTokens}
	if out, err := s.reserveCost(ctx, key, reserved); out != nil || err != nil {
		return entry, nil, out, err
	}
	s.partial.Reset()
	s.thinking.Reset()
	s.sink.Emit(ctx, Event{Type: ModelEvent, Step: stepNo})
	asked := s.deps.Now()
	resp, err = s.deps.Provider.Chat(ctx, req, func(text string) {
		s.partial.WriteString(text)
		s.sink.Emit(ctx, Event{Type: DeltaEvent, Text: text})
	})
	if err != nil {
		out, err = s.handleFailure(ctx, key, estimate, err)
		return entry, nil, out, err
	}
	if resp.Stop == llm.StopLength && resp.Usage.Total() == 0 { // the call was abandoned before it reported its usage
		resp.Usage = llm.Usage{Input: estimate, Output: window.Tokens(resp.Text) + window.Tokens(resp.Thoughts)}
	}
	s.settleCost(ctx, key, resp.Usage, resp.USD)
	entry = journal.Entry{
		Turn: s.turn.ID, At: s.deps.Now(), Text: resp.Text, Usage: resp.Usage, USD: resp.USD, Model: resp.Model,
		Millis: s.deps.Now().Sub(asked).Milliseconds(), Retold: resp.Retold, Thoughts: journal.Thoughts(resp.Thoughts),
	}
	if len(resp.Extra) <= journal.MaxExtra {
		entry.Extra = resp.Extra
	}
	s.retold = s.retold || resp.Retold
	if more != "" {
		resp.Uses = nil // it was told to call no more tools
	}
	return entry, resp, nil, nil
}

// tellLast adds a note after the messages of a request, also of a shorter one.
func tellLast(req *llm.Request, text string) {
	last := llm.Message{Role: llm.User, Text: text}
	req.Messages = append(req.Messages, last)
	shorter := req.Smaller
	if shorter == nil {
		return
	}
	req.Smaller = func(tokens int) ([]llm.Message, int, bool) {
		messages, size, fits := shorter(tokens)
		return append(messages, last), size + window.Message(last), fits
	}
}

func (s *step) reserveCost(ctx context.Context, key string, estimate llm.Usage) (*Outcome, error) {
	if s.deps.Budget == nil {
		return nil, nil
	}
	err := s.deps.Budget.Reserve(ctx, s.turn, key, estimate)
	if denied, ok := errors.AsType[*Denied](err); ok {
		return s.endWithout(journal.ReasonBudget, denied.Text), nil
	}
	if err != nil {
		return nil, fmt.Errorf("reserve: %w", err)
	}
	return nil, nil
}

// settleCost runs even if the turn is cancelled, so that money that was spent is counted. An error is only logged: the
// answer exists and is paid for, and the next reservation will meet the same error.
func (s *step) settleCost(ctx context.Context, key string, used llm.Usage, usd float64) {
	if s.deps.Budget == nil {
		return
	}
	kept, cancel := storingContext(ctx)
	defer cancel()
	if err := s.deps.Budget.Settle(kept, s.turn, key, used, usd); err != nil {
		zerolog.Ctx(ctx).Error().Err(err).Str("key", key).Msg("model call not settled")
	}
}

// storingContext returns a context for storing results while the turn is being stopped or the service is shutting down.
func storingContext(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
}

// handleFailure decides what a failed model call means for the turn. If the model had started to
// answer, the call is settled by an estimate, because vendors charge for it; if nobody knows how it has
// ended, by what was set aside for it.
func (s *step) handleFailure(ctx context.Context, key string, estimate int, err error) (*Outcome, error) {
	var used llm.Usage
	var usd float64
	if s.partial.Len()+s.thinking.Len() > 0 {
		written := window.Tokens(s.partial.String()) + window.Tokens(s.thinking.String())
		used, usd = llm.Usage{Input: estimate, Output: written}, UnknownUSD
	} else if llm.MayHaveCost(err) {
		used, usd = llm.Usage{Input: estimate, Output: s.limits.MaxTokens}, cost.ReservedUSD
	}
	s.settleCost(ctx, key, used, usd)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if denied, ok := errors.AsType[*Denied](err); ok { // another attempt cannot be paid for
		return s.endWithout(journal.ReasonBudget, denied.Text), nil
	}
	line := zerolog.Ctx(ctx).Warn().Err(err)
	if advice := llm.KindOf(err).Advice(); advice != "" {
		line = line.Str("advice", advice)
	}
	line.Msg("model call failed")
	var e *llm.Error
	if !errors.As(err, &e) {
		return &Outcome{Kind: Later, Err: err}, nil
	}
	reason, final := endReasons[e.Kind]
	if !final && e.Retryable() {
		return &Outcome{Kind: Later, Err: err, RetryAfter: e.RetryAfter}, nil
	}
	out := s.endWithout(cmp.Or(reason, journal.ReasonModel), "")
	out.Err = err
	return out, nil
}

// endReasons say why a turn ends after a failure that another attempt does not mend.
var endReasons = map[llm.Kind]string{ //nolint:gochecknoglobals // a table
	llm.TooLong:      journal.ReasonContext,
	llm.Unauthorized: journal.ReasonKey,
	llm.NoCredit:     journal.ReasonCredit,
	llm.UnknownModel: journal.ReasonNoModel,
	llm.Region:       journal.ReasonRegion,
	llm.WrongAddress: journal.ReasonAddress,
	llm.Overtime:     journal.ReasonOvertime,
	llm.Oversize:     journal.ReasonOversize,
}

// journalUses journals the model's request to call tools.
func (s *step) journalUses(ctx context.Context, entry journal.Entry, resp *llm.Response, offers []Offer) error {
	known := map[string]tools.Definition{}
	for _, d := range offers {
		known[d.Name] = d.Definition
	}
	entry.Kind = journal.AssistantEntry
	if shown := s.turn.Shown; !slices.Equal(shown, s.state.shownTools()) {
		entry.Shown = shown
	}
	if resp.Stop == llm.StopLength {
		entry.Reason = journal.ReasonLength // the last use may be incomplete
	}
	for _, u := range resp.Uses {
		use := journal.Use{Model: u.ID, Name: u.Name, Args: rawArgs(u.Args), Extra: u.Extra}
		if d, ok := known[u.Name]; ok {
			use.Definition, use.ReadOnly, use.Repeatable = d.Hash(), d.ReadOnly, d.Repeatable && d.Server == ""
			use.Plans = d.Stated().Act == act.Plans
		}
		entry.Uses = append(entry.Uses, use)
	}
	s.partial.Reset()
	s.sink.Emit(ctx, Event{Type: ResetEvent})
	kept, cancel := storingContext(ctx)
	defer cancel()
	entries := []journal.Entry{entry}
	s.markFailedSummary(entries)
	return s.state.appendEntries(kept, func(n int64) []journal.Entry {
		for i := range entry.Uses {
			entry.Uses[i].Call = fmt.Sprintf("c%d_%d", n, i)
		}
		return entries
	})
}

// endWithAnswer ends the turn with the model's answer.
func (s *step) endWithAnswer(entry journal.Entry, resp *llm.Response) *Outcome {
	if strings.TrimSpace(resp.Text) == "" {
		reason := journal.ReasonEmpty
		if resp.Stop == llm.StopRefusal {
			reason = journal.ReasonRefusal
		}
		return s.endWith(entry, reason)
	}
	entry.Kind = journal.AnswerEntry
	switch {
	case resp.Stop == llm.StopLength:
		entry.Reason = journal.ReasonLength
	case resp.Stop == llm.StopRefusal && resp.Filtered:
		entry.Reason = journal.ReasonFiltered
	}
	text := forPeople(resp.Text)
	return &Outcome{Kind: Answered, Text: text, Reason: entry.Reason, Entries: []journal.Entry{entry}}
}

// endWith ends the turn after a model call without an answer and keeps its usage.
func (s *step) endWith(entry journal.Entry, reason string) *Outcome {
	out := s.endWithout(reason, "")
	e := &out.Entries[0]
	e.Retold = entry.Retold
	e.Usage, e.USD, e.Model, e.Millis = entry.Usage, entry.USD, entry.Model, entry.Millis
	e.Thoughts = entry.Thoughts
	return out
}

// opaqueID returns a stable pseudonym of a conversation for the vendor. It serves the vendor's cache and abuse
// detection and reveals no identity.
func opaqueID(o tools.Origin) string {
	if o.Session == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(o.Session + "\x00" + o.Caller))
	return hex.EncodeToString(sum[:16])
}

func offeredTools(offers []Offer) []llm.Tool {
	list := make([]llm.Tool, 0, len(offers))
	for i := range offers {
		if o := &offers[i]; !o.Named {
			list = append(list, llm.Tool{Name: o.Name, Description: o.Description, Schema: o.Schema})
		}
	}
	return list
}

// rawArgs normalises arguments to the form in which a journal returns them, so that a resumed turn compares equal to an
// uninterrupted one. Arguments that are not JSON become a JSON string, which the decode stage rejects with a clear
// message.
func rawArgs(args []byte) json.RawMessage {
	if len(args) == 0 {
		return json.RawMessage("{}")
	}
	args = bytes.ToValidUTF8(args, []byte("\uFFFD"))
	if stored, err := json.Marshal(json.RawMessage(args)); err == nil {
		return stored
	}
	quoted, err := json.Marshal(string(args))
	if err != nil {
		return json.RawMessage("{}") // unreachable: every string can be encoded
	}
	return quoted
}
