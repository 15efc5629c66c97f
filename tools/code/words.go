package code

import (
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// maxWord is the size in bytes above which a word is not one that somebody looks for.
const maxWord = 40

// searchWords splits a text or an identifier into the words by which it is found: in lower case, at the borders of
// camelCase and snake_case, without endings, abbreviations as the word that they stand for.
func searchWords(text string) []string {
	var out []string
	splitWords(text, func(word string) {
		if len(word) < 2 || len(word) > maxWord {
			return
		}
		out = append(out, normalWord(strings.ToLower(word)))
	})
	return out
}

// splitWords calls see for each run of letters or digits of one case.
func splitWords(text string, see func(word string)) {
	start, last := 0, classOther
	flush := func(end int) {
		if start < end {
			see(text[start:end])
		}
		start = end
	}
	for i, r := range text {
		now := classOf(r)
		switch {
		case now == classOther:
			flush(i)
			start = i + utf8.RuneLen(r)
			if r == utf8.RuneError {
				start = i + 1
			}
		case now == classUpper && last != classUpper, now == classDigit && last != classDigit:
			flush(i)
		case now == classLower && last == classUpper && start < i: // the last capital of HTTPServer begins a word
			_, size := utf8.DecodeLastRuneInString(text[:i])
			if start < i-size {
				flush(i - size)
			}
		case now != classDigit && last == classDigit:
			flush(i)
		}
		last = now
	}
	flush(len(text))
}

type class uint8

const (
	classOther class = iota
	classLower
	classUpper
	classDigit
)

func classOf(r rune) class {
	switch {
	case r >= 'a' && r <= 'z':
		return classLower
	case r >= 'A' && r <= 'Z':
		return classUpper
	case r >= '0' && r <= '9':
		return classDigit
	case r < utf8.RuneSelf:
		return classOther
	case unicode.IsUpper(r):
		return classUpper
	case unicode.IsLetter(r):
		return classLower
	}
	return classOther
}

// normalWord returns the form in which a word is compared.
func normalWord(word string) string {
	if full, ok := abbreviations[word]; ok {
		word = full
	}
	return stemWord(word)
}

// endings are removed from words, the longest first, if something is left.
var endings = []string{
	"izations", "ization", "izing", "izers", "izer", "ized", "izes", "ize", "ations", "ation", "ators", "ating",
	"ator", "ates", "ated", "ings", "ions", "ments", "ate", "ing", "ion", "ers", "ors", "ies", "ied", "ment", "able",
	"es", "ed", "er", "or", "ly", "y", "s", "e",
}

// leastStem is how much of a word is left at least.
const leastStem = 4

// stemWord removes the ending of an English word. What it leaves need not be a word, but is the same for its forms.
func stemWord(word string) string {
	for _, end := range endings {
		if len(word)-len(end) >= leastStem && strings.HasSuffix(word, end) {
			rest := word[:len(word)-len(end)]
			if n := len(rest); n > leastStem && rest[n-1] == rest[n-2] && end != "s" { // running
				rest = rest[:n-1]
			}
			if strings.HasSuffix(rest, "ific") { // notification, notify
				rest = strings.TrimSuffix(rest, "ic")
			}
			return strings.TrimSuffix(rest, "i")
		}
	}
	return word
}

// abbreviations are words that stand for others in programs.
var abbreviations = map[string]string{
	"auth":           "authentication",
	"authn":          "authentication",
	"authenticated":  "authentication",
	"authenticates":  "authentication",
	"authz":          "authorization",
	"authorisation":  "authorization",
	"cfg":            "config",
	"conf":           "config",
	"configs":        "config",
	"configuration":  "config",
	"configurations": "config",
	"configured":     "config",
	"db":             "database",
	"err":            "error",
	"errs":           "error",
	"msg":            "message",
	"msgs":           "message",
	"req":            "request",
	"reqs":           "request",
	"resp":           "response",
	"res":            "response",
	"ctx":            "context",
	"init":           "initialize",
	"param":          "parameter",
	"params":         "parameter",
	"arg":            "argument",
	"args":           "argument",
	"repo":           "repository",
	"repos":          "repository",
	"env":            "environment",
	"dir":            "directory",
	"dirs":           "directory",
	"directories":    "directory",
	"doc":            "document",
	"docs":           "document",
	"exec":           "execute",
	"execution":      "execute",
	"executor":       "execute",
	"impl":           "implement",
	"addr":           "address",
	"addrs":          "address",
	"conn":           "connect",
	"conns":          "connect",
	"info":           "information",
	"max":            "maximum",
	"maximal":        "maximum",
	"min":            "minimum",
	"minimal":        "minimum",
	"num":            "number",
	"pwd":            "password",
	"passwd":         "password",
	"tmp":            "temporary",
	"temp":           "temporary",
	"len":            "length",
	"del":            "delete",
	"rm":             "delete",
	"mw":             "middleware",
	"fn":             "function",
	"func":           "function",
	"str":            "string",
	"pkg":            "package",
	"cmd":            "command",
	"cmds":           "command",
	"util":           "utility",
	"utils":          "utility",
	"lib":            "library",
	"libs":           "library",
	"spec":           "specification",
	"specs":          "specification",
	"id":             "identifier",
	"ids":            "identifier",
	"sync":           "synchronize",
	"async":          "asynchronous",
	"perm":           "permission",
	"perms":          "permission",
}

// isFiller reports whether a word of a question says nothing about the code that is looked for.
func isFiller(word string) bool {
	switch word {
	case "a", "an", "the", "is", "are", "was", "were", "be", "been",
		"being", "do", "does", "did", "done", "has", "have", "had",
		"where", "what", "which", "who", "how", "why", "when", "that", "this", "these", "those", "there", "it", "its",
		"find", "show", "me", "my", "we", "us", "our", "you", "your", "look", "search", "locate", "tell", "explain",
		"of", "in", "on", "at", "to", "for", "from", "by", "with",
		"into", "about", "and", "or", "not", "if", "as", "so",
		"can", "could", "should", "would", "will", "may", "please", "code", "all", "any", "some", "used", "uses", "use",
		"implemented", "implementation", "defined", "definition", "happen",
		"happens", "work", "works", "get", "gets", "made", "make", "makes":
		return true
	}
	return false
}

// vagueWeigh is what a word that says little counts, in comparison with another one that is as rare.
const vagueWeigh = 0.6

// vagueWords are frequent in questions and say little there. In programs they are names, and so seem to say much.
var vagueWords = sync.OnceValue(func() map[string]bool {
	const list = `whether without within while after before once one two than then only also more most less several own
		each other another they them their still just now never always no yes here up out off over under through during
		between against because until since both same such very too but he she his her him every nothing something
		anything nobody somebody anybody first last long new way thing things take takes taken give gives given keep
		keeps kept let lets say says said go goes going come comes know knows known leave leaves left want wants need
		needs put puts tell tells told ask asks see sees seen call called mean means exactly later again away back`
	out := map[string]bool{}
	for word := range strings.FieldsSeq(list) {
		out[normalWord(word)] = true
	}
	return out
})

// isVague reports whether a word, as it is compared, says little in a question.
func isVague(word string) bool { return vagueWords()[word] }

// questionWords returns the words of a question and its identifiers, each once.
func questionWords(text string) (words, identifiers []string) {
	seen := map[string]bool{}
	for _, field := range strings.FieldsFunc(text, func(r rune) bool {
		return classOf(r) == classOther && r != '_' && r != '$'
	}) {
		if len(field) > 2 && len(field) <= 200 && isIdentifier(field) && !seen[field] {
			seen[field] = true
			identifiers = append(identifiers, field)
		}
	}
	if words = tellingWords(text, isFiller); len(words) == 0 { // a question of nothing but fillers is about them
		words = tellingWords(text, func(string) bool { return false })
	}
	return words, identifiers
}

// tellingWords returns the words of a text that are not to be skipped, each once, as they are compared.
func tellingWords(text string, skip func(string) bool) (words []string) {
	splitWords(text, func(word string) {
		word = strings.ToLower(word)
		if len(word) < 2 || len(word) > maxWord || skip(word) || len(words) == maxQuestion {
			return
		}
		if n := normalWord(word); !slices.Contains(words, n) {
			words = append(words, n)
		}
	})
	return words
}

// maxQuestion limits the words of a question that are looked for.
const maxQuestion = 32

// isIdentifier reports whether a word of a question is written like an identifier rather than like a word.
func isIdentifier(s string) bool {
	if strings.ContainsAny(s, "_$") {
		return true
	}
	last := classOther
	for i, r := range s {
		now := classOf(r)
		if i > 0 && now == classUpper && last == classLower {
			return true
		}
		last = now
	}
	return false
}
