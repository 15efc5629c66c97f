package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/zephbot/zephbot/agent/journal"
)

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

// standing summarises the conversation up to its last entry.
func (b *book) standing() journal.Standing { return b.standingAt(b.lastNumber()) }

// standingAt summarises the conversation up to the entry with number n.
func (b *book) standingAt(n int64) journal.Standing {
	tail := b.readTail()
	return tail.Standing(n)
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
		if !errors.Is(err, ErrUnheard) && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
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
