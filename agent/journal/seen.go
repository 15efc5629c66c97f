package journal

import (
	"slices"
	"strings"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/policy/netrule"
)

// MostFound bounds the addresses that one text brings.
const MostFound = 512

// listAddresses returns the web addresses of a user entry: those that a person has written, and those that came with
// it; and those that they have written in answer to a call. What the assistant has written counts for neither, wherever it comes from: an answer that is quoted, a task that
// it scheduled, the task of a sub-agent, the output of a command.
func (e *Entry) listAddresses() (said, seen netrule.Keys) {
	find := func(text string) netrule.Keys { return netrule.KeysOf(netrule.Find(text, MostFound, true)...) }
	if e.Kind == ResultEntry && e.Child == "" {
		said = e.Said
		for _, words := range e.Words {
			said = said.Add(find(words), mostSaid)
		}
		return said, nil
	}
	if e.Kind != UserEntry || e.Child != "" || e.Scheduled {
		return nil, nil
	}
	said, seen = e.Said, e.Seen
	if e.Foreign != "" {
		seen = seen.Add(find(e.Text), MostFound)
	} else {
		said = said.Add(find(e.Text), mostSaid)
	}
	for i := range e.Parts {
		switch p := &e.Parts[i]; {
		case p.Own:
			said = said.Add(find(p.Text), mostSaid)
		case p.Kind == llm.TextPart:
			seen = seen.Add(find(p.Text), MostFound)
		}
	}
	for i := range e.Talk {
		seen = seen.Add(find(e.Talk[i].Text), MostFound)
	}
	if e.Quote != nil && !e.Quote.Own {
		seen = seen.Add(find(e.Quote.Text), MostFound)
	}
	return said, seen
}

// noteAddresses notes which files a call may have changed, and which addresses it has brought. A file that something in
// this conversation may have written brings none: otherwise a model could make an address one that was found by writing
// it into a file and reading that.
func (s *ConversationState) noteAddresses(e *Entry) {
	said, _ := e.listAddresses()
	s.Said = s.Said.Add(said, mostSaid)
	switch {
	case e.Wrote && (len(e.Touched) == 0 || len(s.Made)+len(e.Touched) > MostMade):
		s.Wrote = true
	case e.Wrote:
		s.Made = append(s.Made, e.Touched...)
	case len(e.Seen) > 0 && !slices.ContainsFunc(e.Touched, s.mayHaveWritten):
		s.Seen = s.Seen.Add(e.Seen, mostSeen)
	}
}

// mayHaveWritten reports whether something in the conversation may have written a file.
func (s *ConversationState) mayHaveWritten(path string) bool {
	return s.Wrote || slices.ContainsFunc(s.Made, func(made string) bool {
		return path == made || strings.HasPrefix(path, strings.TrimSuffix(made, "/")+"/")
	})
}
