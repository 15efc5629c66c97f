package journal

import (
	"cmp"
	"slices"
	"time"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/policy/netrule"
	"github.com/zephbot/zephbot/policy/reason"
	"github.com/zephbot/zephbot/policy/source"
)

// ConversationState sums up a conversation up to one of its entries: everything that a turn has to know about the
// entries before those that it reads.
type ConversationState struct {
	// N is the number of the last entry that is included. Journals that are joined are numbered again, so a
	// ConversationState whose N differs from the number of its entry knows nothing of the journal that was put in
	// front. Such a ConversationState is ignored.
	N int64 `json:"n"`
	// Began is the number of the entry with which the conversation began; 0 = the first.
	Began   int64 `json:"began,omitempty"`
	Summary int64 `json:"summary,omitempty"` // number of the summary that the model reads first; 0 = none
	Batches int   `json:"batches,omitempty"` // steps in which the model requested tools
	Calls   int   `json:"calls,omitempty"`   // tool uses in all batches
	// By holds what the turns of each person have used; the person who used tools last is last. The part of Batches and
	// Calls that is in none of these counts for everybody: it comes from turns without a caller, or from a version that
	// did not tell people apart.
	By []Count `json:"by,omitempty"`
	// Turn is the turn in progress, and Caller the person who began it; "" between turns.
	Turn       string `json:"turn,omitempty"`
	Caller     string `json:"caller,omitempty"`
	Suspicious string `json:"suspicious,omitempty"` // source of the last text that tried to give instructions
	// Marked are the sources before Suspicious that count too, each once, the latest last. Whoever clears
	// one mark has not seen the others.
	Marked []string `json:"marked,omitempty"`
	// Foreign is the source of the last text that nobody in the conversation has written: a page, a file, the output of
	// a command, somebody else's message.
	Foreign string `json:"foreign,omitempty"`
	// Succeeded lists the tools that have run without failure, each once, in the order of their first success.
	Succeeded []string `json:"succeeded,omitempty"`
	Touched   []string `json:"touched,omitempty"` // paths that calls worked on, each once, the last MostTouched
	// Said are the web addresses that people have written, and Seen those that foreign text has brought:
	// pages, searches, quotations, documents that nothing in this conversation has written. Of each, the
	// last mostSaid and mostSeen count.
	Said netrule.Keys `json:"said,omitempty"`
	Seen netrule.Keys `json:"seen,omitempty"`
	// Wrote: something may have changed any file. Made are the files that calls have changed
	// otherwise, the first MostMade.
	Wrote bool     `json:"wrote,omitempty"`
	Made  []string `json:"made,omitempty"`
	// Speakers are the people who have spoken, each under each name once, in the order of their first words.
	Speakers []Speaker `json:"speakers,omitempty"`
	// Unsummed counts the summaries that the model was asked for in vain since the last one.
	Unsummed Unsummed `json:"unsummed,omitzero"`
}

// Unsummed is how often a conversation could not be summed up, one time after the other, and when that was last tried.
type Unsummed struct {
	Times int       `json:"times"`
	At    time.Time `json:"at"`
}

// Speaker is a person under one name.
type Speaker struct {
	Caller string `json:"caller"`
	Name   string `json:"name"`
}

// MostSpeakers bounds ConversationState.Speakers. Who comes later is not remembered.
const MostSpeakers = 256

// MostTouched bounds the paths that a ConversationState remembers. After flagged content, work on a path that was
// dropped needs a new approval; nothing else depends on it.
const MostTouched = 256

// mostMarked bounds ConversationState.Marked; source.Several stands for the oldest ones when there are more.
const mostMarked = 16

// markSource notes that a text of a source tried to give instructions.
func (s *ConversationState) markSource(from string) {
	if s.Suspicious != "" && !sameSource(s.Suspicious, from) {
		s.Marked = append(s.withoutMark(s.Suspicious), s.Suspicious)
	}
	s.Suspicious, s.Marked = from, s.withoutMark(from)
	if over := len(s.Marked) - mostMarked; over > 0 {
		s.Marked = s.Marked[over:]
		s.Marked[0] = string(source.Several)
	}
}

// clearMark takes back the mark of a source. If others count too, the latest of them is Suspicious.
func (s *ConversationState) clearMark(from string) {
	s.Marked = s.withoutMark(from)
	if !sameSource(s.Suspicious, from) {
		return
	}
	s.Suspicious = ""
	if last := len(s.Marked) - 1; last >= 0 {
		s.Suspicious, s.Marked = s.Marked[last], s.Marked[:last]
	}
}

// withoutMark returns Marked without a source, as a list of its own; nil = it is empty.
func (s *ConversationState) withoutMark(from string) []string {
	var list []string
	for _, m := range s.Marked {
		if !sameSource(m, from) {
			list = append(list, m)
		}
	}
	return list
}

// sameSource reports whether two sources are one. Older versions stored the English words of a source.
func sameSource(a, b string) bool {
	return a == b || reason.From(a).String() == b || a == reason.From(b).String()
}

// mostSaid, mostSeen and MostMade bound what a ConversationState knows of addresses and files. An address that was
// dropped has to be approved; if more files were changed, all of them count as changed.
const (
	mostSaid = 256
	mostSeen = 1024
	MostMade = 64
)

// Count is what the turns of one person have used in a conversation.
type Count struct {
	Caller  string `json:"caller"`
	Batches int    `json:"batches,omitempty"`
	Calls   int    `json:"calls,omitempty"`
}

// MostCallers bounds the length of ConversationState.By. When there are more people, the count of the one
// who has used no tools for the longest time is added to what counts for everybody, so that no use is
// forgotten before the next /clear.
const MostCallers = 256

// Of returns what counts for a person: the batches and calls of their own turns, and those that count for everybody.
func (s *ConversationState) Of(caller string) (batches, calls int) {
	batches, calls = s.Batches, s.Calls
	for i := range s.By {
		if c := &s.By[i]; c.Caller != caller {
			batches, calls = batches-c.Batches, calls-c.Calls
		}
	}
	return batches, calls
}

// After returns the ConversationState after more entries, in order. Entries that it includes already are
// skipped. The receiver is not changed.
func (s ConversationState) After(entries ...Entry) ConversationState {
	s.ownLists()
	for i := range entries {
		if e := &entries[i]; e.N > s.N {
			s.addEntry(e)
		}
	}
	return s
}

// ownLists copies the lists that are changed in place.
func (s *ConversationState) ownLists() {
	s.Succeeded, s.Touched, s.By = slices.Clip(s.Succeeded), slices.Clone(s.Touched), slices.Clone(s.By)
	s.Made = slices.Clip(s.Made)
	s.Speakers = slices.Clip(s.Speakers)
}

func (s *ConversationState) addEntry(e *Entry) {
	if e.Unsummed {
		s.Unsummed = Unsummed{Times: s.Unsummed.Times + 1, At: e.At}
	}
	switch e.Kind {
	case SummaryEntry, ResetEntry:
		if e.Shortens() {
			s.applySummary(e)
		} else {
			s.beginConversation(e)
		}
	case UserEntry:
		s.noteMessage(e)
		if e.Turn != s.Turn { // a message that joins a turn does not change whose turn it is
			s.Turn, s.Caller = e.Turn, e.Caller
		}
	case AssistantEntry:
		s.countBatch(e)
	case ResultEntry:
		s.addResult(e)
	case AnswerEntry, EndEntry:
		if e.Child == "" { // the turn goes on after its sub-agents
			s.Turn, s.Caller = "", ""
		}
	case StartedEntry:
	}
	s.N = e.N
}

// noteMessage notes what a message of a person brings that they have not written.
func (s *ConversationState) noteMessage(e *Entry) {
	said, seen := e.listAddresses()
	s.Said, s.Seen = s.Said.Add(said, mostSaid), s.Seen.Add(seen, mostSeen)
	if who := (Speaker{e.Caller, e.Speaker}); e.Speaker != "" &&
		len(s.Speakers) < MostSpeakers && !slices.Contains(s.Speakers, who) {
		s.Speakers = append(s.Speakers, who)
	}
	if e.Flagged {
		from := e.Source
		if from == "" { // an entry of an older version, which did not say
			if from = source.Background; e.News == "" && e.Recalled != nil {
				from = source.Memory
			}
		}
		s.markSource(string(from))
	}
	if from := e.foreignSource(); from != "" {
		s.Foreign = string(from)
	}
}

// foreignSource returns the source of text in a user entry that its sender has not written; "" = there is none.
func (e *Entry) foreignSource() source.Source {
	switch {
	case e.News != "":
		return source.Background
	case e.Foreign != "":
		return e.Foreign
	case len(e.Talk) > 0:
		return source.Talk
	case e.Quote != nil && !e.Quote.Own:
		return source.Quoted
	case slices.ContainsFunc(e.Parts, func(p llm.Part) bool { return !p.Own }):
		return source.Attached
	}
	return ""
}

// beginConversation applies an entry with which a conversation begins.
func (s *ConversationState) beginConversation(e *Entry) {
	*s = ConversationState{Began: e.N}
	if e.State != nil {
		*s = *e.State
		s.ownLists()
	}
	if s.Summary = 0; e.Text != "" {
		s.Summary = e.N
	}
}

// applySummary applies a summary within a conversation. Nothing that counted stops counting: a model that sums up
// flagged content could otherwise wash the flag off.
func (s *ConversationState) applySummary(e *Entry) {
	s.Summary, s.Unsummed = e.N, Unsummed{}
	if e.Flagged {
		s.markSource(string(source.Summary))
	}
}

// countBatch counts a batch for the person who began its turn.
func (s *ConversationState) countBatch(e *Entry) {
	calls := e.Counted(len(e.Uses))
	if calls == 0 && len(e.Uses) > 0 {
		return // plans alone
	}
	s.Batches++
	s.Calls += calls
	if s.Caller == "" || e.Turn != s.Turn {
		return
	}
	count := Count{Caller: s.Caller}
	if i := slices.IndexFunc(s.By, func(c Count) bool { return c.Caller == s.Caller }); i >= 0 {
		count = s.By[i]
		s.By = slices.Delete(s.By, i, i+1)
	}
	count.Batches++
	count.Calls += calls
	s.By = append(s.By, count)
	if over := len(s.By) - MostCallers; over > 0 {
		s.By = slices.Delete(s.By, 0, over)
	}
}

func (s *ConversationState) addResult(e *Entry) {
	if e.Cleared != "" {
		s.clearMark(e.Cleared)
	}
	if e.Flagged {
		s.markSource(cmp.Or(string(e.Source), e.Tool))
	}
	if e.Brought {
		s.Foreign = cmp.Or(string(e.Source), e.Tool)
	}
	s.noteAddresses(e)
	if !e.Failed && !slices.Contains(s.Succeeded, e.Tool) {
		s.Succeeded = append(s.Succeeded, e.Tool)
	}
	for _, path := range e.Touched {
		s.Touched = slices.DeleteFunc(s.Touched, func(p string) bool { return p == path })
		s.Touched = append(s.Touched, path)
	}
	if over := len(s.Touched) - MostTouched; over > 0 {
		s.Touched = slices.Delete(s.Touched, 0, over)
	}
}
