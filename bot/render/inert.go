package render

import (
	"strings"
	"unicode/utf8"

	"github.com/zephbot/zephbot/policy/lazyregexp"
)

// clickable matches, generously, what Telegram turns into a link, a mention, a hashtag or a command by itself. What
// looks like a number of a telephone is matched with the letters around it, so that a hash stays in one piece.
var clickable = lazyregexp.New(
	`\S*([@#][\pL\d_]|\$\pL|:/|\S\.\pL)\S*|(^|[^\pL\d_/.])/[\pL\d_]\S*|[^\s,;:]*\+?\d[\d ()-]{5,}\d[^\s,;:]*`,
)

// moment is a date, with or without a time of day, which looks like a number of a telephone but for its form.
var moment = lazyregexp.New(`(?:19|20)\d\d-[01]\d-[0-3]\d(?:[ T][0-2]\d:[0-5]\d(?::[0-5]\d)?)?`)

// withoutMoments replaces the dates of a line by as many letters, so that they are not taken for numbers of telephones.
func withoutMoments(line string) string {
	found := moment().FindAllStringIndex(line, -1)
	if found == nil {
		return line
	}
	const ofNumbers = "0123456789+()-"
	masked := []byte(line)
	for _, at := range found {
		from, to := at[0], at[1]
		if from > 0 && strings.IndexByte(ofNumbers, line[from-1]) >= 0 ||
			to < len(line) && strings.IndexByte(ofNumbers, line[to]) >= 0 {
			continue
		}
		for i := from; i < to; i++ {
			masked[i] = 'x'
		}
	}
	return string(masked)
}

// mostApart is how many parts of a text are formatted one by one: a message has at most 100 entities (Bot API), and what is
// beyond them would become a link again.
const mostApart = 40

// Inert prevents Telegram from turning parts of a plain text into links, mentions, hashtags or commands: it formats
// what could become one as code, without the signs of the sentence around it. In a text with many of them, it does so
// from the first to the last on each line. The entities are in the order of the text.
func Inert(text string) []Entity {
	var apart, whole []Entity
	offset := 0
	for line := range strings.SplitSeq(text, "\n") {
		found := clickable().FindAllStringIndex(withoutMoments(line), -1)
		for i := range found {
			found[i] = withoutSigns(line, found[i])
			apart = append(apart, codeAt(line, offset, found[i][0], found[i][1]))
		}
		if found != nil {
			whole = append(whole, codeAt(line, offset, found[0][0], found[len(found)-1][1]))
		}
		offset += Length(line) + 1
	}
	if len(apart) > mostApart {
		return whole
	}
	return apart
}

// codeAt formats a part of a line as code; offset is that of the line.
func codeAt(line string, offset, from, to int) Entity {
	return Entity{Type: "code", Offset: offset + Length(line[:from]), Length: Length(line[from:to])}
}

// Signs of a sentence that stand before and behind a word of it.
const (
	signsBefore = " ([{\"'«„“‚‘¿¡"
	signsBehind = " .,;:!?…\"'»“”’"
)

// withoutSigns returns where a word begins and ends without the signs of the sentence around it. A bracket that was opened
// within the word is a part of it.
func withoutSigns(line string, at []int) []int {
	word := strings.TrimLeft(line[at[0]:at[1]], signsBefore)
	from := at[1] - len(word)
	for {
		short := strings.TrimRight(word, signsBehind)
		for _, pair := range []string{"()", "[]", "{}"} {
			if strings.HasSuffix(short, pair[1:]) && strings.Count(short, pair[1:]) > strings.Count(short, pair[:1]) {
				short = short[:len(short)-1]
			}
		}
		if short == word || short == "" {
			return []int{from, from + len(word)}
		}
		word = short
	}
}

// codeMark surrounds what Marked formats as code. No text that people are shown contains it: what cannot be seen is shown by
// signs (bot/visible).
const codeMark = "\x00"

// Code marks a word of a sentence as code, for Marked.
func Code(word string) string { return codeMark + strings.ReplaceAll(word, codeMark, "") + codeMark }

// Marked formats what Code has marked, and makes the rest inert. The entities are in the order of the text.
func Marked(text string) (string, []Entity) {
	var b strings.Builder
	var list []Entity
	offset := 0
	for i, part := range strings.Split(text, codeMark) {
		found := Inert(part)
		if i%2 == 1 {
			found = []Entity{{Type: "code", Length: Length(part)}}
		}
		for _, e := range found {
			e.Offset += offset
			list = append(list, e)
		}
		b.WriteString(part)
		offset += Length(part)
	}
	return b.String(), list
}

// Quoted formats what a text quotes in backticks as code, without the backticks, and makes the rest inert. A line whose
// backticks are not plain pairs, such as one that quotes a command with backticks of its own, keeps them all and is
// only made inert. The entities are in the order of the text.
func Quoted(text string) (string, []Entity) { return quoteText(text, Inert) }

// Sentence is Quoted for what the bot says itself: links and commands in it stay usable.
func Sentence(text string) (string, []Entity) {
	return quoteText(text, func(string) []Entity { return nil })
}

// quoteText formats quotations as code, and the rest as rest does.
func quoteText(text string, rest func(string) []Entity) (string, []Entity) {
	var b strings.Builder
	var list []Entity
	offset := 0
	add := func(s string, entities ...Entity) {
		for _, e := range entities {
			e.Offset += offset
			list = append(list, e)
		}
		b.WriteString(s)
		offset += Length(s)
	}
	for i, line := range strings.Split(text, "\n") {
		if i > 0 {
			add("\n")
		}
		parts := strings.Split(line, "`")
		if !paired(parts) {
			parts = []string{line}
		}
		for j, part := range parts {
			if j%2 == 1 {
				add(part, Entity{Type: "code", Length: Length(part)})
				continue
			}
			add(part, rest(part)...)
		}
	}
	return b.String(), list
}

// paired reports whether every second part between backticks is a quotation: it is more than space, begins after a
// space or an opening sign, and ends before a space or a closing one.
func paired(parts []string) bool {
	if len(parts)%2 == 0 {
		return false
	}
	for i := 1; i < len(parts); i += 2 {
		before, _ := utf8.DecodeLastRuneInString(parts[i-1])
		after, _ := utf8.DecodeRuneInString(parts[i+1])
		opens := parts[i-1] == "" && i == 1 || strings.ContainsRune(" (", before)
		closes := parts[i+1] == "" && i+2 == len(parts) || strings.ContainsRune(" .,;:!?)", after)
		if strings.TrimSpace(parts[i]) == "" || !opens || !closes {
			return false
		}
	}
	return true
}
