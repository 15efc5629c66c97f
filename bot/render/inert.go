package render

import (
	"regexp"
	"strings"
)

// clickable is what Telegram makes a link, a mention, a hashtag or a command of by itself, generously.
var clickable = regexp.MustCompile(`\S*([@#$][\pL\d_]|:/|\S\.\pL)\S*|(^|[^\pL\d_/.])/[\pL\d_]\S*|\+?\d[\d ()-]{5,}\d`)

// Inert keeps Telegram from making links, mentions, hashtags and commands of a plain text: it sets what could become one in code, from the first to the
// last on each line. The entities are in the order of the text.
func Inert(text string) []Entity {
	var list []Entity
	offset := 0
	for line := range strings.SplitSeq(text, "\n") {
		if found := clickable.FindAllStringIndex(line, -1); found != nil {
			from, to := found[0][0], found[len(found)-1][1]
			list = append(list, Entity{Type: "code", Offset: offset + Length(line[:from]), Length: Length(line[from:to])})
		}
		offset += Length(line) + 1
	}
	return list
}
