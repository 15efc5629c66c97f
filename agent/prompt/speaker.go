package prompt

import (
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/zephbot/zephbot/policy/scan"
)

// aPerson follows a name that looks like one of ours. No name can contain it, because Name drops brackets.
const aPerson = " (a person)"

// longestName limits a name, in characters.
const longestName = 40

// ours are names under which something else than a person speaks to the model, or that claim a role.
var ours = []string{
	"system", "assistant", "zeph", "zephbot", "user", "human", "operator", "admin", "administrator", "developer",
	"tool", "model", "ai", "bot", "somebody",
}

// Name makes a name that somebody chose harmless: one line of bounded length, without brackets, quotes, colons or
// invisible characters that could imitate a mark or another speaker. A name that looks like one of ours, or like that
// of the bot, is marked as a person's.
func Name(name, bot string) string {
	clean := strings.Map(func(r rune) rune {
		switch {
		case strings.ContainsRune("\"':>\uFF1A\uFF1E\uFE55\u02D0\uA789\u2236", r),
			unicode.In(r, unicode.Ps, unicode.Pe, unicode.Pi, unicode.Pf, unicode.Z, unicode.Cc):
			return ' '
		case unicode.In(r, unicode.C), r == unicode.ReplacementChar,
			strings.ContainsRune("\u115F\u1160\u2800\u3164\uFFA0\u034F", r):
			return -1
		}
		return r
	}, name)
	words := strings.Fields(clean)
	clean = strings.Join(words, " ")
	if r := []rune(clean); len(r) > longestName {
		clean = strings.TrimSpace(string(r[:longestName]))
	}
	if clean == "" {
		return "somebody"
	}
	like := func(name string) bool {
		looks := scan.Skeleton(name)
		return looks != "" && (looks == scan.Skeleton(bot) || slices.ContainsFunc(ours, func(o string) bool {
			return looks == scan.Skeleton(o)
		}))
	}
	if like(clean) || like(words[0]) {
		return clean + aPerson
	}
	return clean
}

// Speakers tells people apart who have names that look alike. The zero value knows nobody.
type Speakers struct {
	bot   string
	names map[[2]string]string // by caller and name
	most  bool                 // there may be more people than are known
}

// Speaker is a person under one name.
type Speaker struct{ Caller, Name string }

// NewSpeakers returns the names of people, in the order in which they first spoke. The second one with a name that
// looks like that of the first gets a number, and so on; so names stay the same while the conversation goes on. most:
// there may be more people than these. bot is the name of the bot.
func NewSpeakers(list []Speaker, most bool, bot string) *Speakers {
	s := &Speakers{bot: bot, names: make(map[[2]string]string, len(list)), most: most}
	seen := map[string][]string{} // callers by what their names look like
	for _, p := range list {
		label := Name(p.Name, bot)
		looks := scan.Skeleton(label)
		at := slices.Index(seen[looks], p.Caller)
		if at < 0 {
			at = len(seen[looks])
			seen[looks] = append(seen[looks], p.Caller)
		}
		if at > 0 {
			label += " (" + strconv.Itoa(at+1) + ")"
		}
		s.names[[2]string{p.Caller, p.Name}] = label
	}
	return s
}

// Of returns how the model reads the name of a person.
func (s *Speakers) Of(caller, name string) string {
	if label, ok := s.names[[2]string{caller, name}]; ok {
		return label
	}
	label := Name(name, s.bot)
	if s.most {
		label += " (new)"
	}
	return label
}

// Quoted returns how the model reads the name of the author of a quoted message, who may never have spoken here: a name
// that looks like that of somebody else is marked. s may be nil: one person speaks.
func (s *Speakers) Quoted(caller, name string) string {
	if s == nil {
		return Name(name, "")
	}
	if label, ok := s.names[[2]string{caller, name}]; ok {
		return label
	}
	label := s.Of(caller, name)
	looks := scan.Skeleton(Name(name, s.bot))
	for other := range s.names {
		if other[0] != caller && scan.Skeleton(Name(other[1], s.bot)) == looks {
			return Name(name, s.bot) + " (another)"
		}
	}
	return label
}

// Indented is what a speaker said, with every line but the first indented, so that no line of it can be taken for that
// of another speaker or for one of our own.
func Indented(text string) string {
	if !strings.ContainsFunc(text, Breaks) {
		return text
	}
	var b strings.Builder
	var before rune
	for _, r := range text {
		switch {
		case r == '\n' && before == '\r':
		case Breaks(r):
			b.WriteString("\n  ")
		default:
			b.WriteRune(r)
		}
		before = r
	}
	return b.String()
}
