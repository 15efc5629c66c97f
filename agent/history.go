package agent

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/agent/prompt"
	"github.com/zephbot/zephbot/tools"
)

// state is the end of a session's journal, read for one turn, or for one of its sub-agents. It is all that the Runner
// decides from.
type state struct {
	*book
	turn  string
	child string // call that began the sub-agent; "" = the turn itself
	bot   string // its name
	from  int    // index of the first entry of the current turn
}

func newState(b *book, turn string) *state {
	tail := b.tail
	s := &state{book: b, turn: turn, from: len(tail.Entries)}
	for i := range tail.Entries {
		if tail.Entries[i].Turn == turn {
			s.from = i
			break
		}
	}
	return s
}

// turnEntries returns the entries of this turn, including those of its sub-agents. Entries after
// its end belong to other turns.
func (s *state) turnEntries() []journal.Entry {
	tail := s.readTail()
	own := tail.Entries[min(s.from, len(tail.Entries)):]
	for i := range own {
		if own[i].Turn != s.turn {
			return own[:i]
		}
	}
	return own
}

// currentEntries returns the entries of this turn, or those of its sub-agent.
func (s *state) currentEntries() []journal.Entry { return s.entriesOf(s.turnEntries(), s.child) }

// openBatch returns the last assistant entry of the turn with the results of its uses, or nil if the model has not
// requested tools yet.
func (s *state) openBatch() *batch {
	var b *batch
	for _, e := range s.currentEntries() {
		switch e.Kind {
		case journal.AssistantEntry:
			b = &batch{
				entry:   e,
				started: map[string]bool{},
				results: map[string]journal.Entry{},
				failed:  b.countMistakes(),
			}
		case journal.StartedEntry:
			if b != nil {
				b.started[e.Call] = true
			}
		case journal.ResultEntry:
			if b != nil {
				b.results[e.Call] = e
			}
		}
	}
	return b
}

// endEntry returns the entry that ended the turn, or nil.
func (s *state) endEntry() *journal.Entry {
	for i, e := range s.currentEntries() {
		if e.Kind == journal.AnswerEntry || e.Kind == journal.EndEntry {
			return &s.currentEntries()[i]
		}
	}
	return nil
}

// turnStats sums up the turn with its sub-agents, whose steps are not those of the turn; or one sub-agent.
func (s *state) turnStats() journal.Stats {
	var st journal.Stats
	entries := s.turnEntries()
	if s.child != "" {
		entries = s.currentEntries()
	}
	for _, e := range entries {
		switch e.Kind {
		case journal.AssistantEntry:
			if e.Child == s.child {
				st.Steps++
			}
		case journal.ResultEntry:
			st.Calls++
			if e.Ran {
				st.Ran++
			}
			if e.Refusal != nil {
				st.Refused++
			}
		}
		st.Usage, st.USD = st.Usage.Add(e.Usage), st.USD+e.USD
	}
	return st
}

// catalogView returns what a catalog may use to choose tools.
func (s *state) catalogView() View {
	v := View{Step: s.turnStats().Steps + 1, Query: s.askedText(), Succeeded: s.conversationState().Succeeded}
	entries := s.currentEntries()
	for i := range entries {
		v.Found = append(v.Found, entries[i].Found...)
	}
	v.Shown = s.shownTools()
	if v.Step > 1 {
		v.Before = func() []string { return s.conversationStateAt(entries[0].N).Succeeded }
	}
	return v
}

// shownTools returns the tools that the model was shown last, as far as that is recorded.
func (s *state) shownTools() (names []string) {
	entries := s.currentEntries()
	for i := range entries {
		if len(entries[i].Shown) > 0 {
			names = entries[i].Shown
		}
	}
	return names
}

// askedText returns what the person said in this turn.
func (s *state) askedText() string {
	var first *journal.Entry
	var more strings.Builder
	for i, e := range s.currentEntries() {
		switch {
		case e.Kind != journal.UserEntry:
		case first == nil:
			first = &s.currentEntries()[i]
		case e.Joins == journal.Edited:
			first = reviseMessage(first, &e)
		default:
			more.WriteString("\n" + prompt.Said(e.Text, e.Parts))
		}
	}
	if first == nil {
		return ""
	}
	return prompt.Said(first.Text, first.Parts) + more.String()
}

// typedText returns what the person has written or said themselves in this turn: nothing in a sub-agent,
// whose task a model has written.
func (s *state) typedText() string {
	if s.child != "" {
		return ""
	}
	var list []string
	for _, e := range s.currentEntries() {
		switch {
		case e.Kind == journal.ResultEntry:
			list = append(list, e.Words...)
		case e.Kind != journal.UserEntry || e.Foreign != "" || e.Scheduled:
			continue
		case e.Joins == journal.Edited && len(list) > 0:
			list[0] = e.Text
		default:
			list = append(list, e.Text)
		}
		for i := range e.Parts {
			if e.Parts[i].Own {
				list = append(list, e.Parts[i].Text)
			}
		}
	}
	return strings.Join(list, "\n")
}

// listSpeakers are the people who share the conversation; nil = one person speaks.
func (s *state) listSpeakers(shared bool) *prompt.Speakers {
	if !shared {
		return nil
	}
	soFar := s.conversationState()
	list := make([]prompt.Speaker, len(soFar.Speakers))
	for i, p := range soFar.Speakers {
		list[i] = prompt.Speaker(p)
	}
	return prompt.NewSpeakers(list, len(list) == journal.MostSpeakers, s.bot)
}

// earlierCalls lists the calls of this turn that have a result and precede the batch with number n.
func (s *state) earlierCalls(n int64) []tools.Earlier {
	uses := map[string]journal.Use{}
	var list []tools.Earlier
	for _, e := range s.currentEntries() {
		switch {
		case e.N >= n:
			return list
		case e.Kind == journal.AssistantEntry:
			for _, u := range e.Uses {
				uses[u.Call] = u
			}
		case e.Kind == journal.ResultEntry:
			list = append(list, tools.Earlier{Tool: e.Tool, Args: uses[e.Call].Args, Text: e.Text})
		}
	}
	return list
}

// batch is one assistant message and the state of its uses.
type batch struct {
	entry   journal.Entry
	started map[string]bool
	results map[string]journal.Entry
	failed  map[string]int // by tool: the earlier steps of the turn in which the model called it with mistakes
	step    int            // number of the step within the turn, from 1
}

// countMistakes counts, by tool, the steps of the turn up to this one in which the model called
// it with mistakes. b may be nil.
func (b *batch) countMistakes() map[string]int {
	failed := map[string]int{}
	if b == nil {
		return failed
	}
	maps.Copy(failed, b.failed)
	wrong := map[string]bool{}
	for _, r := range b.results {
		if tools.Category(r.Category).Quality() {
			wrong[r.Tool] = true
		}
	}
	for tool := range wrong {
		failed[tool]++
	}
	return failed
}

// openUses lists the uses without a result, in the model's order.
func (b *batch) openUses() []journal.Use {
	var open []journal.Use
	for _, u := range b.entry.Uses {
		if _, ok := b.results[u.Call]; !ok {
			open = append(open, u)
		}
	}
	return open
}

// stateEvery is the most entries between two that carry a ConversationState. A reader of the end of a journal reads at
// most this many entries, plus the turn around them, only to find one.
const stateEvery = 32

// carryState adds the conversation's ConversationState to the last of the entries that end a turn if the previous entry
// with a ConversationState is far enough back.
func (s *state) carryState(entries []journal.Entry) {
	if len(entries) == 0 {
		return
	}
	tail := s.readTail()
	said := tail.Before.N
	for i := range tail.Entries {
		if e := &tail.Entries[i]; e.Begins() || (e.State != nil && e.State.N == e.N) {
			said = max(said, e.N)
		}
	}
	numbered, n := slices.Clone(entries), s.lastNumber()
	for i := range numbered {
		n++
		numbered[i].N = n
	}
	if n-said < stateEvery {
		return
	}
	soFar := s.conversationState().After(numbered...)
	entries[len(entries)-1].State = &soFar
}

// book is what is known of a journal during a run. A turn and its sub-agents share it: they write to the same journal,
// each entry with the sub-agent that it belongs to (journal.Entry.Child). Safe for concurrent use.
type book struct {
	journal   Journal
	appending sync.Mutex // a Journal takes one Append at a time; guards broken
	broken    error      // an Append failed, so it is not known what the journal has; nothing more is written

	mu       sync.Mutex // guards the fields below
	tail     journal.Tail
	children bool // tail has entries of sub-agents
	sites    *sites
}

func newBook(of Journal, tail journal.Tail) *book {
	return &book{journal: of, tail: tail, children: slices.ContainsFunc(tail.Entries, ofChild)}
}

func ofChild(e journal.Entry) bool { return e.Child != "" }

// readTail returns what is known now. Entries are only added, never changed.
func (b *book) readTail() journal.Tail {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.tail
}

func (b *book) lastNumber() int64 {
	tail := b.readTail()
	return tail.Last()
}

// conversationState summarises the conversation up to its last entry.
func (b *book) conversationState() journal.ConversationState {
	return b.conversationStateAt(b.lastNumber())
}

// conversationStateAt summarises the conversation up to the entry with number n.
func (b *book) conversationStateAt(n int64) journal.ConversationState {
	tail := b.readTail()
	return tail.StateAt(n)
}

// entriesOf returns the entries that belong to a sub-agent, or to none.
func (b *book) entriesOf(entries []journal.Entry, child string) []journal.Entry {
	if child == "" && !b.hasChildren() {
		return entries
	}
	return slices.DeleteFunc(slices.Clone(entries), func(e journal.Entry) bool { return e.Child != child })
}

// hasChildren reports whether entries of sub-agents are known.
func (b *book) hasChildren() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.children
}

// readEntries returns the entries that the model reads: those of the conversation, or of one sub-agent.
func (s *state) readEntries() []journal.Entry {
	if s.child != "" {
		return s.currentEntries()
	}
	return s.entriesOf(s.readTail().Entries, "")
}

// appendEntries stores the entries that write returns. It is given the number that the first of them will have.
func (s *state) appendEntries(ctx context.Context, write func(n int64) []journal.Entry) error {
	s.appending.Lock()
	defer s.appending.Unlock()
	if s.broken != nil {
		return s.broken
	}
	entries := write(s.lastNumber() + 1)
	for i := range entries {
		if entries[i].Child == "" { // a turn closes the calls of its sub-agents too
			entries[i].Child = s.child
		}
	}
	stored, err := s.journal.Append(ctx, entries...)
	if err != nil {
		err = fmt.Errorf("journal: %w", err)
		if !errors.Is(err, ErrWithdrawn) && !errors.Is(err, context.Canceled) &&
			!errors.Is(err, context.DeadlineExceeded) {
			s.broken = err
		}
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tail.Entries = append(s.tail.Entries, stored...)
	s.children = s.children || slices.ContainsFunc(stored, ofChild)
	return nil
}
