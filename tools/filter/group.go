package filter

import (
	"fmt"
	"slices"
	"strings"
)

// groupByRule writes diagnostics (Clippy's warnings) as one block per lint rule: its message and its places (seed 003).
// Errors stay whole.
type groupByRule struct {
	location, rule pattern
}

// it takes blocks of warnings that it recognised; every other line stays
func (groupByRule) names() bool { return true }

// finding is one rule and where it was broken.
type finding struct {
	rule, message string
	places        []string
}

// grouping is a walk over the lines.
type grouping struct {
	groupByRule
	out      []line
	found    []finding
	byRule   map[string]int
	message  string // of the diagnostic that we are in
	place    string // not yet counted
	first    int    // where the groups go
	block    []line // lines of the diagnostic that we are in
	known    map[string]string
	warnings int
	noise    int
	counted  bool        // the diagnostic that we are in has been counted
	cover    func(int32) // says that a line stands in a group
}

func (g groupByRule) apply(j *job) ([]line, Confidence) {
	if j.failed() {
		return nil, Fallback
	}
	w := &grouping{groupByRule: g, byRule: map[string]int{}, known: map[string]string{}, first: -1, cover: j.cover}
	for i := range j.lines {
		l := &j.lines[i]
		body := l.body()
		if errorHead(body) {
			return nil, Fallback
		}
		w.take(l, body)
	}
	w.close()
	if w.warnings == 0 {
		if w.noise == 0 {
			return nil, Fallback
		}
		return w.out, Partial
	}
	groups := w.groups()
	out := make([]line, 0, len(w.out)+len(groups))
	out = append(append(append(out, w.out[:w.first]...), groups...), w.out[w.first:]...)
	return out, Full
}

func errorHead(body string) bool {
	return strings.HasPrefix(body, "error[") || strings.HasPrefix(body, "error:")
}

// take reads one line.
func (g *grouping) take(l *line, body string) {
	head := strings.HasPrefix(body, "warning:")
	switch {
	case blank(body):
		g.close()
		g.noise++
		return
	case head, errorHead(body):
		g.close()
	case !g.inside() && body[0] == ' ' && stepOfCargo(strings.TrimLeft(body, " ")):
		g.noise++
		return
	}
	if head {
		text := strings.TrimSpace(strings.TrimPrefix(body, "warning:"))
		if strings.HasPrefix(text, "`") && strings.Contains(text, ") generated ") {
			g.noise++ // the count is said again below
			return
		}
		g.message = text
	}
	g.sort(l, body)
}

// sort finds out what a line says of the diagnostic that we are in.
func (g *grouping) sort(l *line, body string) {
	place, rule := g.location.re.FindStringSubmatch(body), g.rule.re.FindStringSubmatch(body)
	if place != nil && g.counted && g.message == "" {
		g.close() // diagnostics without a head follow each other
	}
	if !g.inside() && place == nil {
		g.out = append(g.out, *l)
		return
	}
	g.block = append(g.block, *l)
	if place != nil && g.place == "" && !g.counted {
		g.place = group(place)
	}
	if g.place == "" {
		return
	}
	if rule != nil {
		g.count(group(rule))
	} else if link := clippyLink(body); link != "" && g.known[g.message] == "" {
		g.known[g.message] = link
	}
}

// inside says whether a diagnostic has begun.
func (g *grouping) inside() bool { return g.message != "" || len(g.block) > 0 }

// stepOfCargo is a step of a build that succeeded.
func stepOfCargo(t string) bool {
	return cargoNoise(t) || strings.HasPrefix(t, "Running ")
}

func group(m []string) string {
	if len(m) > 1 {
		return m[1]
	}
	return m[0]
}

// clippyLink is the lint in a help line with Clippy's address.
func clippyLink(body string) string {
	if !strings.Contains(body, "rust-clippy/") {
		return ""
	}
	return "clippy::" + body[strings.LastIndexByte(body, '#')+1:]
}

// close ends a diagnostic. One without a rule of its own has that of an earlier one with the same message.
func (g *grouping) close() {
	if g.place != "" {
		rule := g.known[g.message]
		if rule == "" {
			rule = "other"
		}
		g.count(rule)
	}
	for i := range g.block {
		switch l := &g.block[i]; {
		case g.counted && (!l.keep || ofRustc(l.body())):
			g.cover(l.src)
		case g.counted: // it stands among the warnings and is none: the engine puts it back
		default: // no place was found in it: it is no diagnostic that we know
			g.out = append(g.out, g.block[i])
		}
	}
	g.block, g.message, g.counted = g.block[:0], "", false
}

// ofRustc says whether a line has the form of a part of a diagnostic of rustc: its head, its place, its excerpt, its
// notes.
func ofRustc(body string) bool {
	t := strings.TrimLeft(body, " 0123456789")
	return begin(t, "warning: ", "--> ", "::: ", "|", "= ", "...", "note: ", "help: ")
}

// count notes the diagnostic that we are in under a rule.
func (g *grouping) count(rule string) {
	if g.first < 0 {
		g.first = len(g.out)
	}
	if g.known[g.message] == "" {
		g.known[g.message] = rule
	}
	if rule == "other" { // without a rule the message is all there is
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

// groups writes what was found, sorted by rule.
func (g *grouping) groups() []line {
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
		out = append(out, written(strings.TrimRight(head, " ")))
		for _, p := range f.places {
			out = append(out, written("  "+p))
		}
	}
	return append(out, written(fmt.Sprintf("%d warnings total (%d rules)", g.warnings, len(g.found))))
}
