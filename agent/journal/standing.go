package journal

import "slices"

// Standing sums up a conversation up to one of its entries: everything that a turn has to know about the entries before
// those that it reads.
type Standing struct {
	// N is the number of the last entry that is included. Journals that are joined are numbered again, so a Standing
	// whose N differs from the number of its entry knows nothing of the journal that was put in front. Such a Standing
	// is ignored.
	N int64 `json:"n"`
	// Began is the number of the entry with which the conversation began; 0 = the first.
	Began      int64  `json:"began,omitempty"`
	Summary    int64  `json:"summary,omitempty"`    // number of the summary that the model reads first; 0 = none
	Batches    int    `json:"batches,omitempty"`    // steps in which the model requested tools
	Calls      int    `json:"calls,omitempty"`      // tool uses in all batches
	Suspicious string `json:"suspicious,omitempty"` // source of the last text that tried to give instructions
	// Succeeded lists the tools that have run without failure, each once, in the order of their first success.
	Succeeded []string `json:"succeeded,omitempty"`
	Touched   []string `json:"touched,omitempty"` // paths that calls worked on, each once, the last MostTouched
}

// MostTouched bounds the paths that a Standing remembers. After flagged content, work on a path that was dropped needs
// a new approval; nothing else depends on it.
const MostTouched = 256

// background is the source of flagged news.
const background = "a command in the background"

// After returns the Standing after more entries, in order. Entries that it includes already are skipped. The receiver
// is not changed.
func (s Standing) After(entries ...Entry) Standing {
	s.Succeeded, s.Touched = slices.Clip(s.Succeeded), slices.Clone(s.Touched)
	for i := range entries {
		if e := &entries[i]; e.N > s.N {
			s.add(e)
		}
	}
	return s
}

func (s *Standing) add(e *Entry) {
	switch e.Kind {
	case SummaryEntry, ResetEntry:
		s.begin(e)
	case UserEntry:
		if e.Flagged {
			s.Suspicious = background
		}
	case AssistantEntry:
		s.Batches++
		s.Calls += len(e.Uses)
	case ResultEntry:
		s.result(e)
	case StartedEntry, AnswerEntry, EndEntry:
	}
	s.N = e.N
}

// begin applies an entry with which a conversation begins.
func (s *Standing) begin(e *Entry) {
	*s = Standing{Began: e.N}
	if e.Standing != nil {
		*s = *e.Standing
		s.Succeeded, s.Touched = slices.Clip(s.Succeeded), slices.Clone(s.Touched)
	}
	if s.Summary = 0; e.Text != "" {
		s.Summary = e.N
	}
}

func (s *Standing) result(e *Entry) {
	if e.Flagged {
		s.Suspicious = e.Source
	}
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
