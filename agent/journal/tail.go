package journal

import "slices"

// Tail is the end of a journal, as far back as a turn needs it.
type Tail struct {
	// what the conversation had come to by some entry before its last ones, perhaps one that is left out
	Before  Standing
	Entries []Entry // in order; only a summary may be in front of a gap
}

// Standing is what the conversation has come to up to the entry with the number n, which may not be smaller than
// Before.N.
func (t *Tail) Standing(n int64) Standing {
	to := len(t.Entries)
	for to > 0 && t.Entries[to-1].N > n {
		to--
	}
	return t.Before.After(t.Entries[:to]...)
}

// Last is the number of the last entry; 0 = there is none.
func (t *Tail) Last() int64 {
	if len(t.Entries) == 0 {
		return t.Before.N
	}
	return t.Entries[len(t.Entries)-1].N
}

// Cut is the tail without what does not fit into room bytes.
func (t *Tail) Cut(room int) Tail {
	size := 0
	for i := range t.Entries {
		size += t.Entries[i].Size()
	}
	if size < room {
		return *t
	}
	back := Back{Room: room, before: t.Before}
	for _, e := range slices.Backward(t.Entries) {
		if !back.Take(e) {
			break
		}
	}
	tail := back.Tail()
	if back.Wants() == 0 {
		return tail
	}
	return tail.With(t.Entries[0])
}

// With puts the summary that Back.Wants in front.
func (t *Tail) With(summary Entry) Tail {
	return Tail{Before: t.Before, Entries: append([]Entry{summary}, t.Entries...)}
}

// Back reads a journal from its last entry backwards. It takes whole turns until their entries have Room bytes
// (Entry.Size), and the last turn whatever its size. Of what is before only the Standing matters: unless an entry that
// was taken says it, Back goes on until one does, and keeps nothing else.
type Back struct {
	Room int

	before  Standing // of what is before the first entry of the journal
	size    int
	taken   []Entry   // from the last one backwards
	counted []Entry   // before those, likewise, reduced to what counts
	full    bool      // no more are taken
	said    *Standing // by the last entry that carries it
	summary int64
}

// Take takes the entry before the last one it took. False means that no more are needed.
func (b *Back) Take(e Entry) (more bool) {
	boundary := len(b.taken) > 0 && b.taken[len(b.taken)-1].Turn != e.Turn
	b.full = b.full || boundary && b.size >= b.Room
	if b.full && b.said != nil {
		return false
	}
	if b.said == nil && !e.Begins() && e.Standing != nil && e.Standing.N == e.N {
		b.said = e.Standing
	}
	switch {
	case !b.full:
		b.size += e.Size()
		b.taken = append(b.taken, e)
	case b.said != nil:
		return false
	default:
		b.counted = append(b.counted, e.reduced())
	}
	return !e.Begins()
}

// reduced is an entry without what no Standing looks at.
func (e *Entry) reduced() Entry {
	r := Entry{N: e.N, Kind: e.Kind, Tool: e.Tool, Failed: e.Failed, Source: e.Source, Flagged: e.Flagged, Touched: e.Touched, Standing: e.Standing}
	if e.Kind == AssistantEntry {
		r.Uses = make([]Use, len(e.Uses))
	}
	if e.Begins() {
		r.Text = e.Text
	}
	return r
}

// Tail is what was read.
func (b *Back) Tail() Tail {
	t := Tail{Before: b.before, Entries: b.taken}
	slices.Reverse(t.Entries)
	if b.said != nil {
		t.Before = *b.said
	}
	slices.Reverse(b.counted)
	t.Before = t.Before.After(b.counted...)
	if b.full && (len(t.Entries) == 0 || t.Entries[0].N > t.Before.Summary) {
		b.summary = t.Before.Summary
	}
	return t
}

// Wants is the number of a summary that belongs in front of the Tail and was not read; 0 = none. It is known after
// Tail.
func (b *Back) Wants() int64 { return b.summary }

// overhead is what an entry takes beside its texts, in bytes.
const overhead = 512

// Size estimates the memory of an entry, in bytes, without its Standing: an entry takes the same room whether it
// carries one or not.
func (e *Entry) Size() int {
	n := overhead + len(e.Turn) + len(e.Text) + len(e.Speaker) + len(e.Caller) + len(e.News) + len(e.Source)
	if e.Quote != nil {
		n += len(e.Quote.Author) + len(e.Quote.Text)
	}
	for i := range e.Uses {
		n += 128 + len(e.Uses[i].Args) + len(e.Uses[i].Extra)
	}
	for i := range e.Parts {
		n += 128 + len(e.Parts[i].Hash) + len(e.Parts[i].Type) + len(e.Parts[i].Name) + len(e.Parts[i].Text)
	}
	return n + sizeOf(e.Notices, e.Touched, e.Found)
}

// Size estimates the memory of a standing, in bytes. The receiver may be nil.
func (s *Standing) Size() int {
	if s == nil {
		return 0
	}
	return 128 + len(s.Suspicious) + sizeOf(s.Succeeded, s.Touched)
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
