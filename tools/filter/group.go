package filter

import (
	"fmt"
	"slices"
	"strings"
)

// groupByRule writes diagnostics (Clippy's warnings) as one block per lint rule, with its message and its locations
// (seed 003). Errors are kept whole.
type groupByRule struct {
	location, rule pattern
}

// it drops only blocks of warnings that it recognises
func (groupByRule) isNaming() bool { return true }

// finding is one rule and the places where it was violated.
type finding struct {
	rule, message string
	places        []string
}

// grouping is a pass over the lines.
type grouping struct {
	groupByRule
	out      []line
	found    []finding
	byRule   map[string]int
	message  string // of the current diagnostic
	place    string // not counted yet
	first    int    // where the groups are inserted
	block    []line // lines of the current diagnostic
	known    map[string]string
	warnings int
	noise    int
	counted  bool        // the current diagnostic has been counted
	cover    func(int32) // reports that a group contains a line
}

func (g groupByRule) applyTo(j *job) ([]line, Confidence) {
	if j.runFailed() {
		return nil, Fallback
	}
	w := &grouping{
		groupByRule: g,
		byRule:      map[string]int{},
		known:       map[string]string{},
		first:       -1,
		cover:       j.coverSource,
	}
	for i := range j.lines {
		l := &j.lines[i]
		body := l.bodyText()
		if errorHead(body) {
			return nil, Fallback
		}
		w.takeLine(l, body)
	}
	w.closeDiagnostic()
	if w.warnings == 0 {
		if w.noise == 0 {
			return nil, Fallback
		}
		return w.out, Partial
	}
	groups := w.writeGroups()
	out := make([]line, 0, len(w.out)+len(groups))
	out = append(append(append(out, w.out[:w.first]...), groups...), w.out[w.first:]...)
	return out, Full
}

func errorHead(body string) bool {
	return strings.HasPrefix(body, "error[") || strings.HasPrefix(body, "error:")
}

// takeLine handles one line.
func (g *grouping) takeLine(l *line, body string) {
	head := strings.HasPrefix(body, "warning:")
	switch {
	case isBlank(body):
		g.closeDiagnostic()
		g.noise++
		return
	case head, errorHead(body):
		g.closeDiagnostic()
	case !g.hasBegun() && body[0] == ' ' && stepOfCargo(strings.TrimLeft(body, " ")):
		g.noise++
		return
	}
	if head {
		text := strings.TrimSpace(strings.TrimPrefix(body, "warning:"))
		if strings.HasPrefix(text, "`") && strings.Contains(text, ") generated ") {
			g.noise++ // the count is repeated below
			return
		}
		g.message = text
	}
	g.sortLine(l, body)
}

// sortLine determines what a line says about the current diagnostic.
func (g *grouping) sortLine(l *line, body string) {
	place, rule := g.location.re.FindStringSubmatch(body), g.rule.re.FindStringSubmatch(body)
	if place != nil && g.counted && g.message == "" {
		g.closeDiagnostic() // diagnostics without a head follow each other
	}
	if !g.hasBegun() && place == nil {
		g.out = append(g.out, *l)
		return
	}
	g.block = append(g.block, *l)
	if place != nil && g.place == "" && !g.counted {
		g.place = matchedGroup(place)
	}
	if g.place == "" {
		return
	}
	if rule != nil {
		g.countRule(matchedGroup(rule))
	} else if link := clippyLink(body); link != "" && g.known[g.message] == "" {
		g.known[g.message] = link
	}
}

// hasBegun reports whether a diagnostic has begun.
func (g *grouping) hasBegun() bool { return g.message != "" || len(g.block) > 0 }

// stepOfCargo reports whether a line is a step of a successful build.
func stepOfCargo(t string) bool {
	return cargoNoise(t) || strings.HasPrefix(t, "Running ")
}

func matchedGroup(m []string) string {
	if len(m) > 1 {
		return m[1]
	}
	return m[0]
}

// clippyLink returns the lint named by a help line with a link to Clippy.
func clippyLink(body string) string {
	if !strings.Contains(body, "rust-clippy/") {
		return ""
	}
	return "clippy::" + body[strings.LastIndexByte(body, '#')+1:]
}

// closeDiagnostic ends a diagnostic. Without a rule of its own, it gets that of an earlier one with the same message.
func (g *grouping) closeDiagnostic() {
	if g.place != "" {
		rule := g.known[g.message]
		if rule == "" {
			rule = "other"
		}
		g.countRule(rule)
	}
	for i := range g.block {
		switch l := &g.block[i]; {
		case g.counted && (!l.keep || ofRustc(l.bodyText())):
			g.cover(l.src)
		case g.counted: // it is among the warnings without being one: the engine restores it
		default: // without a location it is not a diagnostic that we know
			g.out = append(g.out, g.block[i])
		}
	}
	g.block, g.message, g.counted = g.block[:0], "", false
}

// ofRustc reports whether a line has the form of a part of a rustc diagnostic: head, location, excerpt, notes.
func ofRustc(body string) bool {
	t := strings.TrimLeft(body, " 0123456789")
	return beginsWith(t, "warning: ", "--> ", "::: ", "|", "= ", "...", "note: ", "help: ")
}

// countRule adds the current diagnostic to a rule.
func (g *grouping) countRule(rule string) {
	if g.first < 0 {
		g.first = len(g.out)
	}
	if g.known[g.message] == "" {
		g.known[g.message] = rule
	}
	if rule == "other" { // without a rule there is only the message
		rule = g.message
	}
	i, ok := g.byRule[rule]
	if !ok {
		i = len(g.found)
		g.byRule[rule] = i
		g.found = append(g.found, finding{rule: rule, message: g.message})
	}
	f := &g.found[i]
	place := g.place
	if f.message != g.message {
		place += " " + g.message
	}
	f.places = append(f.places, place)
	g.warnings++
	g.place, g.counted = "", true
}

// writeGroups writes the findings, sorted by rule.
func (g *grouping) writeGroups() []line {
	slices.SortStableFunc(g.found, func(a, b finding) int { return strings.Compare(a.rule, b.rule) })
	var out []line
	for _, f := range g.found {
		plural := "s"
		if len(f.places) == 1 {
			plural = ""
		}
		head := fmt.Sprintf("%s (%d warning%s):", f.rule, len(f.places), plural)
		if f.message != f.rule {
			head += " " + f.message
		}
		out = append(out, writtenLine(strings.TrimRight(head, " ")))
		for _, p := range f.places {
			out = append(out, writtenLine("  "+p))
		}
	}
	return append(out, writtenLine(fmt.Sprintf("%d warnings total (%d rules)", g.warnings, len(g.found))))
}
