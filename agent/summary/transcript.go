package summary

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/agent/prompt"
	"github.com/zephbot/zephbot/agent/window"
)

// Most characters of one text, by how much room there is. Output of tools is shortened first: what the
// assistant made of it is in its answers.
var detailLevels = []struct{ said, output int }{{8000, 1500}, {4000, 300}, {1500, 80}, {500, 0}, {200, 0}, {80, 0}}

// WriteTranscript writes entries down in at most so many tokens, as window.Tokens counts them. Long texts lose their
// middle, then the oldest entries are left out, which a line says. The days are those of a zone; nil = UTC.
func WriteTranscript(entries []journal.Entry, tokens int, zone *time.Location) string {
	if zone == nil {
		zone = time.UTC
	}
	var lines []string
	for _, level := range detailLevels {
		lines = writeEntries(entries, level.said, level.output, zone)
		if countTokens(lines) <= tokens {
			return strings.Join(lines, "")
		}
	}
	left := 0
	for rest := countTokens(lines); left < len(lines) && rest > tokens; left++ {
		rest -= window.Tokens(lines[left])
	}
	return fmt.Sprintf("[the oldest %d messages are left out]\n", left) + strings.Join(lines[left:], "")
}

func countTokens(lines []string) int {
	n := 16 // for a line that says that something is left out
	for _, line := range lines {
		n += window.Tokens(line)
	}
	return n
}

// writeEntries returns the text of each entry that has one.
func writeEntries(entries []journal.Entry, said, output int, zone *time.Location) []string {
	var lines []string
	day := ""
	for i := range entries {
		text := describeEntry(&entries[i], said, output)
		if text == "" {
			continue
		}
		if at := entries[i].At.In(zone).Format(time.DateOnly); at != day && !entries[i].At.IsZero() {
			day, text = at, "["+at+"]\n"+text
		}
		lines = append(lines, text)
	}
	return lines
}

// describeEntry is what somebody said or did, "" = nothing that counts. Further lines of a text are indented, so that
// it cannot imitate another speaker.
func describeEntry(e *journal.Entry, said, output int) string {
	switch e.Kind {
	case journal.UserEntry:
		who := "person"
		if e.Speaker != "" {
			who += " " + prompt.Name(e.Speaker, "")
		}
		if e.Joins == journal.Edited {
			who += " (changing the message before)"
		}
		text := e.Text
		if hook := e.Foreign.HookName(); hook != "" { // a recap may repeat the first words
			who += " (the hook " + hook + " was called)"
			_, text, _ = strings.Cut(text, "\n")
		} else if e.Scheduled {
			who += " (a scheduled task)"
			_, text, _ = strings.Cut(text, "\n")
		}
		return speakerLine(who, prompt.Said(text, e.Parts), said)
	case journal.AnswerEntry:
		return speakerLine("assistant", e.Text, said)
	case journal.EndEntry:
		return speakerLine("assistant", "(no answer: "+e.Reason+")", said)
	case journal.AssistantEntry:
		var b strings.Builder
		if e.Text != "" {
			b.WriteString(speakerLine("assistant", e.Text, said))
		}
		for _, u := range e.Uses {
			b.WriteString(speakerLine("assistant calls "+u.Name, string(u.Args), max(200, output)))
		}
		return b.String()
	case journal.ResultEntry:
		return describeResult(e, output)
	case journal.SummaryEntry, journal.ResetEntry, journal.StartedEntry:
	}
	return ""
}

func describeResult(e *journal.Entry, most int) string {
	who := "result of " + e.Tool
	if e.Failed {
		who += " (failed)"
	}
	if e.Flagged {
		return speakerLine(who, "(left out: it tried to give instructions)", 200)
	}
	if most == 0 {
		return speakerLine(who, fmt.Sprintf("(%d characters)", utf8.RuneCountInString(e.Text)), 200)
	}
	return speakerLine(who, e.Text, most)
}

func speakerLine(who, text string, most int) string {
	text = indentBreaks.Replace(strings.TrimSpace(cutMiddle(text, most)))
	return who + ": " + text + "\n"
}

// indentBreaks indents what follows a character that a reader may take for a line break.
var indentBreaks = strings.NewReplacer(
	"\r\n", "\n  ", "\n", "\n  ", "\r", "\n  ", "\v", "\n  ", "\f",
	"\n  ", "\u0085", "\n  ", "\u2028", "\n  ", "\u2029", "\n  ",
)

// cutMiddle leaves out the middle of a long text.
func cutMiddle(text string, most int) string {
	if len(text) <= most {
		return text
	}
	r := []rune(text)
	if len(r) <= most {
		return text
	}
	head := most * 2 / 3
	return string(r[:head]) + fmt.Sprintf(" [… %d characters …] ", len(r)-most) + string(r[len(r)-(most-head):])
}
