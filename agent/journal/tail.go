package journal

import (
	"slices"
)

// Tail is the end of a journal, as far back as a turn needs it.
type Tail struct {
	// Before is the ConversationState at some entry before the last ones, which may be left out of Entries.
	Before  ConversationState
	Entries []Entry // in order; a gap is possible only after a leading summary
}

// Summary returns the last entry with which the conversation that the model sees begins, or nil, and the index of the
// first entry that the model reads after it. Those up to that index, and other summaries behind it, it does not read.
func Summary(entries []Entry) (summary *Entry, first int) {
	for i := len(entries) - 1; i >= 0; i-- {
		e := &entries[i]
		if e.Begins() {
			return e, i + 1
		}
		if e.Shortens() {
			first = i
			for first > 0 && entries[first-1].N > e.Floor() && !entries[first-1].Begins() {
				first--
			}
			return e, first
		}
	}
	return nil, 0
}

// StateAt sums up the conversation up to the entry with number n, which must not be less than Before.N.
func (t *Tail) StateAt(n int64) ConversationState {
	to := len(t.Entries)
	for to > 0 && t.Entries[to-1].N > n {
		to--
	}
	return t.Before.After(t.Entries[:to]...)
}

// Last returns the number of the last entry; 0 = none.
func (t *Tail) Last() int64 {
	if len(t.Entries) == 0 {
		return t.Before.N
	}
	return t.Entries[len(t.Entries)-1].N
}

// Cut returns the tail without the turns that do not fit into room bytes.
func (t *Tail) Cut(room int) Tail {
	size, floor := 0, int64(0)
	for i := range t.Entries {
		size += t.Entries[i].Size()
		if e := &t.Entries[i]; e.Shortens() {
			floor = max(floor, e.Floor())
		}
	}
	if size < room && (len(t.Entries) == 0 || t.Entries[0].N > floor || t.Entries[0].Shortens()) {
		return *t
	}
	back := Back{Room: room, before: t.Before}
	for _, e := range slices.Backward(t.Entries) {
		if !back.Take(e) {
			break
		}
	}
	tail := back.Tail()
	wanted := func(e Entry) bool { return e.N == back.Wants() }
	if at := slices.IndexFunc(t.Entries, wanted); at >= 0 && back.Wants() > 0 {
		return tail.With(t.Entries[at])
	}
	return tail
}

// With returns the tail with the summary that Back.Wants in front.
func (t *Tail) With(summary Entry) Tail {
	return Tail{Before: t.Before, Entries: append([]Entry{summary}, t.Entries...)}
}

// Back reads a journal from its last entry backwards. It takes whole turns until their entries have Room bytes
// (Entry.Size), and the last turn whatever its size; beyond a summary it takes what that keeps (Entry.Keeps). Of
// earlier entries only the ConversationState is needed: unless an entry that was taken carries it, Back continues until
// one does and keeps nothing else.
type Back struct {
	Room int

	before  ConversationState // before the first entry of the journal
	size    int
	taken   []Entry            // from the last one backwards
	counted []Entry            // those before, also backwards, reduced to what a ConversationState counts
	full    bool               // no more are taken
	floor   *int64             // number of the last entry that a summary takes the place of
	said    *ConversationState // from the last entry that carries one
	summary int64
}

// Take takes the entry before the last one taken. It returns false if no more are needed.
func (b *Back) Take(e Entry) (more bool) {
	boundary := len(b.taken) > 0 && b.taken[len(b.taken)-1].Turn != e.Turn
	b.full = b.full || boundary && b.size >= b.Room || b.floor != nil && e.N <= *b.floor
	if e.Child != "" && len(b.taken) > 0 && b.taken[0].Turn != e.Turn {
		e = e.outlineOf()
	}
	if b.full && b.said != nil {
		return false
	}
	b.learnEntry(&e)
	switch {
	case !b.full:
		b.size += e.Size()
		b.taken = append(b.taken, e)
	case b.said != nil:
		return false
	default:
		b.counted = append(b.counted, e.reducedEntry())
	}
	return !e.Begins()
}

// learnEntry notes what an entry says about those before it.
func (b *Back) learnEntry(e *Entry) {
	if b.said == nil && !e.Begins() && e.State != nil && e.State.N == e.N {
		b.said = e.State
	}
	if b.floor == nil && !b.full && e.Shortens() {
		b.floor = new(e.Floor())
	}
}

// reducedEntry returns an entry without the fields that no ConversationState uses.
func (e *Entry) reducedEntry() Entry {
	r := Entry{
		N:         e.N,
		Turn:      e.Turn,
		Child:     e.Child,
		Caller:    e.Caller,
		Speaker:   e.Speaker,
		Kind:      e.Kind,
		Tool:      e.Tool,
		Failed:    e.Failed,
		Source:    e.Source,
		Flagged:   e.Flagged,
		Brought:   e.Brought,
		Cleared:   e.Cleared,
		Touched:   e.Touched,
		Keeps:     e.Keeps,
		State:     e.State,
		Seen:      e.Seen,
		Wrote:     e.Wrote,
		Scheduled: e.Scheduled,
	}
	if e.Kind == UserEntry {
		r.Foreign = e.foreignSource()
		r.Said, r.Seen = e.listAddresses()
	}
	if e.Kind == ResultEntry {
		r.Said, _ = e.listAddresses()
	}
	if e.Unsummed {
		r.Unsummed, r.At = true, e.At
	}
	if e.Kind == AssistantEntry {
		r.Uses = make([]Use, len(e.Uses))
		for i := range e.Uses {
			r.Uses[i].Plans = e.Uses[i].Plans
		}
	}
	if e.Begins() {
		r.Text = e.Text
	}
	return r
}

// Tail returns what was read.
func (b *Back) Tail() Tail {
	t := Tail{Before: b.before, Entries: b.taken}
	slices.Reverse(t.Entries)
	if b.said != nil && b.said.N > b.before.N { // a summary in front of a gap knows less
		t.Before = *b.said
	}
	slices.Reverse(b.counted)
	t.Before = t.Before.After(b.counted...)
	if b.full && b.floor == nil && (len(t.Entries) == 0 || t.Entries[0].N > t.Before.Summary) {
		b.summary = t.Before.Summary
	}
	return t
}

// Wants returns the number of a summary that belongs in front of the Tail and was not read; 0 = none. Call it after
// Tail.
func (b *Back) Wants() int64 { return b.summary }

// overhead is the memory of an entry besides its texts, in bytes.
const overhead = 512

// Size estimates the memory of an entry without its ConversationState, in bytes. So an entry has the same size
// whether it carries one or not.
func (e *Entry) Size() int {
	n := overhead + len(e.Turn) + len(e.Text) + len(e.Speaker) + len(e.Caller) + len(e.News) +
		len(e.Foreign) + len(e.Source) + len(e.Cleared) + len(e.Audit) + len(e.Extra)
	if e.Recalled != nil {
		n += len(e.Recalled.Text) + sizeOf(e.Recalled.IDs)
	}
	if e.Quote != nil {
		n += len(e.Quote.Author) + len(e.Quote.Text) + len(e.Quote.Chat)
	}
	for i := range e.Talk {
		n += 64 + len(e.Talk[i].Caller) + len(e.Talk[i].Name) + len(e.Talk[i].Text)
	}
	for i := range e.Uses {
		n += 128 + len(e.Uses[i].Args) + len(e.Uses[i].Extra)
	}
	for i := range e.Parts {
		n += 128 + len(e.Parts[i].Hash) + len(e.Parts[i].Type) + len(e.Parts[i].Name) + len(e.Parts[i].Text)
	}
	for i := range e.Heard {
		n += 32 + len(e.Heard[i].Message) + len(e.Heard[i].Arrival)
	}
	for i := range e.Left {
		n += 48 + len(e.Left[i].Path) + len(e.Left[i].Before) + len(e.Left[i].After)
	}
	return n + len(e.Seen) + sizeOf(e.Notices, e.Touched, e.Found, e.Shown, e.Opened)
}

// Size estimates the memory of a ConversationState, in bytes. The receiver may be nil.
func (s *ConversationState) Size() int {
	if s == nil {
		return 0
	}
	n := 160 + len(s.Suspicious) + len(s.Foreign) + len(s.Turn) + len(s.Caller) +
		len(s.Said) + len(s.Seen) + sizeOf(s.Succeeded, s.Touched, s.Made, s.Marked)
	for i := range s.By {
		n += 32 + len(s.By[i].Caller)
	}
	for i := range s.Speakers {
		n += 32 + len(s.Speakers[i].Caller) + len(s.Speakers[i].Name)
	}
	return n
}

func sizeOf(lists ...[]string) int {
	n := 0
	for _, texts := range lists {
		for _, text := range texts {
			n += 16 + len(text)
		}
	}
	return n
}
