package outline

import "strings"

// markdown lists headings. A heading contains what follows it up to the next one of its level.
func markdown(src []byte, out *builder) {
	l := lines{src: string(src)}
	var open []block // indent is the level
	fence, before, wants := "", "", -1
	heading := func(level, line int, name string) {
		for n := len(open); n > 0 && open[n-1].indent >= level; n-- {
			out.end(open[n-1].symbol, line-1)
			open = open[:n-1]
		}
		container := ""
		if n := len(open); n > 0 {
			container = open[n-1].name
		}
		name = cutText(strings.Trim(strings.ReplaceAll(name, "`", ""), "# *"), MaxName)
		if wants < 0 && line < l.line && len(out.Symbols) > 0 { // the line was taken for a paragraph
			out.Symbols[len(out.Symbols)-1].Doc = ""
		}
		wants = out.add(Symbol{Name: name, Container: container, Kind: Section, Start: line})
		open = append(open, block{indent: level, symbol: wants, name: name})
	}
	for {
		text, ok := l.next()
		if !ok {
			break
		}
		rest := strings.TrimSpace(text)
		switch {
		case fence != "":
			if strings.HasPrefix(rest, fence) {
				fence = ""
			}
			before = ""
			continue
		case strings.HasPrefix(rest, "```"), strings.HasPrefix(rest, "~~~"):
			fence = rest[:3]
			continue
		}
		level := len(rest) - len(strings.TrimLeft(rest, "#"))
		switch {
		case level > 0 && level <= 6 && len(rest) > level && rest[level] == ' ':
			heading(level, l.line, rest[level+1:])
			before = ""
			continue
		case before != "" && rest != "" && strings.Trim(rest, "=") == "":
			heading(1, l.line-1, before)
		case before != "" && len(rest) > 2 && strings.Trim(rest, "-") == "":
			heading(2, l.line-1, before)
		case wants >= 0 && rest != "": // the first paragraph
			out.Symbols[wants].Doc = strings.Clone(cutText(rest, MaxDoc))
			wants = -1
		}
		before = rest
	}
	for _, b := range open {
		out.end(b.symbol, l.line)
	}
}
