package scan

import "strings"

const forgedTurns = "forged_turns"

// turn accepts the name of a speaker at the beginning of a line.
func turn(h *hunt, p *progress, start, end int) {
	if (start == 0 || h.text[start-1] == '\n') && end < len(h.text) && space(h.text[end]) && p.free(start) {
		p.add(start, end)
	}
}

// turns keeps the turns if both sides speak and there is other text before them. They become one match.
func (h *hunt) turns() {
	for i, r := range rules() {
		p := &h.rules[i]
		if r.name != forgedTurns || len(p.found) == 0 {
			continue
		}
		person, model := false, false
		for _, s := range p.found {
			switch strings.ToLower(h.text[s.start:s.end]) {
			case "human:", "user:":
				person = true
			default:
				model = true
			}
		}
		first, last := p.found[0], p.found[len(p.found)-1]
		p.found = p.found[:0]
		if person && model && strings.TrimSpace(h.text[:first.start]) != "" {
			p.add(first.start, last.end)
		}
	}
}
