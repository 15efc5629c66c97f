package filter

import "fmt"

// drop removes lines by patterns. It implements strip_noise, and keep_matching with invert.
type drop struct {
	patterns *patterns
	invert   bool // drop what does not match
}

func (d drop) isNaming() bool { return !d.invert }

func (d drop) applyTo(j *job) ([]line, Confidence) {
	kept := make([]line, 0, len(j.lines))
	matched := 0
	for i := range j.lines {
		l := &j.lines[i]
		hit := d.patterns.matchAny(l.bodyText())
		if hit {
			matched++
		}
		if hit == d.invert || l.keep {
			kept = append(kept, *l)
		}
	}
	if len(kept) == len(j.lines) || matched == 0 || d.invert && j.isBlind() {
		return nil, Fallback
	}
	return kept, Full
}

// truncate keeps the beginning and the end of a text.
type truncate struct{ most, head, tail int }

func (truncate) isNaming() bool { return false }

func (t truncate) applyTo(j *job) ([]line, Confidence) {
	most, head, tail := t.most, t.head, t.tail
	if j.isBlind() { // the reason may be anywhere: show far more, especially of the end
		most, head, tail = max(most, 200), max(head, 40), max(tail, 120)
	}
	lines, cut := shortenLines(j.lines, most, head, tail)
	if !cut {
		return nil, Fallback
	}
	return lines, Partial
}

// shortenLines keeps the first head and the last tail lines of a text with more than most lines, and between
// them the lines that must be kept.
func shortenLines(lines []line, most, head, tail int) ([]line, bool) {
	if len(lines) <= most {
		return lines, false
	}
	out := append(make([]line, 0, head+tail+8), lines[:head]...)
	gap := 0
	flush := func(next int) {
		switch {
		case gap == 1: // a marker would not be shorter
			out = append(out, lines[next-1])
		case gap > 1:
			out = append(out, omittedLine(gap))
		}
		gap = 0
	}
	end := len(lines) - tail
	for i := head; i < end; i++ {
		if !lines[i].keep {
			gap++
			continue
		}
		flush(i)
		out = append(out, lines[i])
	}
	flush(end)
	out = append(out, lines[end:]...)
	return out, len(out) < len(lines)
}

func omittedLine(n int) line { return writtenLine(fmt.Sprintf("(%d lines omitted)", n)) }

// annotated drops lines with an annotation: a prefix such as note: or help:, or a pattern.
type annotated struct {
	patterns *patterns
	summary  *patterns // lines that are always kept
	most     int       // above this number of lines, the rest is shortened if the run succeeded; 0 = never
	head     int
	tail     int
}

func (a annotated) isNaming() bool { return a.most == 0 }

func (a annotated) applyTo(j *job) ([]line, Confidence) {
	kept := make([]line, 0, len(j.lines)+1)
	dropped, first := 0, -1
	for i := range j.lines {
		l := &j.lines[i]
		if !l.keep && a.patterns.matchAny(l.bodyText()) && !a.summary.matchAny(l.bodyText()) {
			if dropped++; first < 0 {
				first = len(kept)
				kept = append(kept, line{src: -1})
			}
			continue
		}
		kept = append(kept, *l)
	}
	level := Full
	if dropped == 0 {
		level = Fallback
	} else {
		kept[first] = writtenLine(fmt.Sprintf("(%d noise lines removed)", dropped))
	}
	if a.most > 0 && !j.isGuarded() && !j.limited {
		if short, cut := shortenLines(kept, a.most, a.head, a.tail); cut {
			return short, Partial
		}
	}
	return kept, level
}
