package filter

import (
	"fmt"
	"strings"
)

// maxNames is how many files git_status lists per section.
const maxNames = 40

// gitStatus converts git status to a compact form with the branch and the sections (seed 003).
type gitStatus struct{}

func (gitStatus) isNaming() bool { return false }

// section is one part of a status.
type section struct {
	title string
	names []string // "M a.go"
}

func (gitStatus) applyTo(j *job) ([]line, Confidence) {
	if j.limited || j.isBlind() {
		return nil, Fallback
	}
	s := &status{}
	for i := range j.lines {
		l := &j.lines[i]
		if l.keep || !s.takeLine(l.bodyText(), l.off > 0) {
			s.flushSections()
			s.out = append(s.out, *l)
		}
	}
	s.flushSections()
	switch {
	case s.dropped == 0:
		return nil, Fallback
	case s.cut:
		return s.out, Partial
	}
	return s.out, Full
}

// status builds the compact form.
type status struct {
	out      []line
	sections []section
	current  string // title of the current section of the long form
	dropped  int
	cut      bool // not all files are listed
}

// takeLine handles a line; false = it is kept as it is.
func (s *status) takeLine(body string, foreign bool) bool {
	if foreign {
		return false
	}
	if title := longTitle(body); title != "" {
		s.current = title
		s.dropped++
		return true
	}
	trimmed := strings.TrimSpace(body)
	switch {
	case trimmed == "" && (s.current != "" || len(s.out) > 0):
		s.dropped++
		return true
	case strings.HasPrefix(trimmed, "(use \"git ") && strings.HasSuffix(trimmed, ")"):
		s.dropped++
		return true
	case s.current != "" && strings.HasPrefix(body, "\t"):
		s.addName(s.current, longName(trimmed))
		return true
	case s.current == "":
		return s.takeShort(body)
	case body[0] != '\t' && body[0] != ' ':
		s.current = ""
	}
	return false
}

// longTitle returns the short title for a section of the long form.
func longTitle(body string) string {
	switch body {
	case "Changes to be committed:":
		return "staged"
	case "Changes not staged for commit:":
		return "unstaged"
	case "Untracked files:":
		return "untracked"
	case "Ignored files:":
		return "ignored"
	case "Unmerged paths:":
		return "unmerged"
	}
	return ""
}

// longName converts "modified: a.go" to "M a.go".
func longName(s string) string {
	for _, kind := range []struct{ long, short string }{
		{"modified:", "M"},
		{"new file:", "A"},
		{"deleted:", "D"},
		{"renamed:", "R"},
		{"copied:", "C"},
		{"typechange:", "T"},
	} {
		if rest, ok := strings.CutPrefix(s, kind.long); ok {
			return kind.short + " " + strings.TrimSpace(rest)
		}
	}
	return s
}

// takeShort handles a line of the short form: "XY name".
func (s *status) takeShort(body string) bool {
	if len(body) < 4 || body[2] != ' ' || body[3] == ' ' || strings.Trim(body[:2], "MADRCTU?! ") != "" ||
		body[:2] == "  " {
		return false
	}
	x, y, name := body[0], body[1], body[3:]
	switch {
	case x == '?':
		s.addName("untracked", name)
	case x == '!':
		s.addName("ignored", name)
	case isUnmerged(body[:2]):
		s.addName("unmerged", body[:2]+" "+name)
	case x != ' ' && y != ' ':
		s.addName("staged and unstaged", body[:2]+" "+name)
	case x != ' ':
		s.addName("staged", body[:1]+" "+name)
	default:
		s.addName("unstaged", string(y)+" "+name)
	}
	return true
}

func isUnmerged(xy string) bool { return strings.Contains(xy, "U") || xy == "AA" || xy == "DD" }

func (s *status) addName(title, name string) {
	s.dropped++
	for i := range s.sections {
		if s.sections[i].title == title {
			s.sections[i].names = append(s.sections[i].names, name)
			return
		}
	}
	s.sections = append(s.sections, section{title, []string{name}})
}

// flushSections writes the sections read so far: "staged (2): M a, M b".
func (s *status) flushSections() {
	for _, sec := range s.sections {
		names := sec.names
		more := ""
		if len(names) > maxNames {
			more = fmt.Sprintf(", and %d more", len(names)-maxNames)
			names, s.cut = names[:maxNames], true
		}
		s.out = append(s.out,
			writtenLine(fmt.Sprintf(
				"%s (%d): %s%s", sec.title, len(sec.names), strings.Join(groupNames(names), ", "), more,
			)))
	}
	s.sections = nil
}

// groupNames writes the kind once for successive names: "M a", "b", "c".
func groupNames(names []string) []string {
	out := make([]string, len(names))
	last := ""
	for i, n := range names {
		kind, rest, ok := strings.Cut(n, " ")
		if ok && kind == last && len(kind) <= 2 {
			out[i] = rest
			continue
		}
		out[i] = n
		last = ""
		if ok && len(kind) <= 2 && kind != "" && strings.ToUpper(kind) == kind {
			last = kind
		}
	}
	return out
}
