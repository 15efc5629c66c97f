package command

import (
	"regexp"
	"slices"
	"strings"
	"sync"
)

// sed records scripts that may run commands or use other files: the commands and flags e, w, r and F among them.
func (f *finder) sed(_ string, words []word, _ place) {
	for _, script := range sedScripts(words) {
		if script.dynamic() || script.added {
			f.indirect("the sed script is not known before it runs")
		} else if !sedShows(script.text) {
			f.doubt("the sed script may run commands or use other files")
		}
	}
}

// sedScripts returns the scripts among the words of sed: the values of -e, or the first word that is not an option.
func sedScripts(words []word) (scripts []word) {
	given := false
	for i := 1; i < len(words); i++ {
		text := words[i].text
		switch {
		case len(text) > 1 && text[0] == '-':
			script, gives, used := sedOption(words[i:])
			given = given || gives
			if script != nil {
				scripts = append(scripts, *script)
			}
			i += used
		case !given:
			given = true
			scripts = append(scripts, words[i])
		}
	}
	return scripts
}

// sedOption parses the option words[0]. script is the script in it, gives reports whether it names the program (-f
// names a file), and used is how many following words it takes.
func sedOption(words []word) (script *word, gives bool, used int) {
	text := words[0].text
	switch {
	case text == "-l" || text == "--line-length":
		return nil, false, 1
	case strings.HasPrefix(text, "--fi"):
		return nil, true, 1
	case text == "--expression" && len(words) > 1:
		return &words[1], true, 1
	case strings.HasPrefix(text, "--e"):
		_, value, _ := strings.Cut(text, "=")
		return &word{text: value, mark: words[0].mark}, true, 0
	case text[1] == '-':
		return nil, false, 0
	}
	return sedLetters(words)
}

// sedLetters is sedOption for one-letter options, of which -e and -f take the rest of the word or the next word.
func sedLetters(words []word) (script *word, gives bool, used int) {
	text := words[0].text
	at := strings.IndexAny(text, "ef")
	if at < 0 {
		return nil, false, 0
	}
	value := word{text: text[at+1:], mark: words[0].mark}
	if value.text == "" && len(words) > 1 {
		value, used = words[1], 1
	}
	if text[at] == 'f' {
		return nil, true, used
	}
	return &value, true, used
}

// sedShows reports whether a sed command has only scripts that do nothing but print.
func (c *Command) sedShows() bool {
	if c.Name != "sed" {
		return false
	}
	words := make([]word, len(c.Words))
	for i, text := range c.Words {
		words[i] = word{text: text, mark: c.mark(i)}
	}
	scripts := sedScripts(words)
	return len(scripts) > 0 && !slices.ContainsFunc(scripts, func(w word) bool { return w.dynamic() || !sedShows(w.text) }) &&
		!slices.ContainsFunc(c.Words, func(w string) bool { return strings.HasPrefix(w, "-") && strings.Contains(w, "f") })
}

// sedShows reports whether a script certainly only edits what it prints. It knows s and the commands of one letter, with
// line numbers, $ and /expressions/ as addresses, and the flags g, p, i, I and numbers of s. Everything else is not known
// to be harmless, because versions of sed read the same text differently, and some read files, write them or run commands.
func sedShows(script string) bool { return sedShown().MatchString(script) }

// sedShown matches such a script. Every version of sed ends an expression of it at the same delimiter: it is without line
// breaks, and has nothing in brackets but characters and names of classes such as [:space:].
var sedShown = sync.OnceValue(func() *regexp.Regexp {
	expression := func(delimiter string) string {
		const class = `|\[:[a-z]+:\])`
		inside := `\]\[\\\n` + delimiter + `]` + class
		return `(?:[^\\\n\[` + delimiter + `]|\\[^\n]|\[\^?(?:[^^` + inside + `(?:[^` + inside + `*\])*` + delimiter
	}
	place := `(?:[0-9]+|\$|/` + expression("/") + `)`
	var edits []string
	for d := range strings.SplitSeq("/ | , # @ : % ! _ ~ =", " ") {
		d = regexp.QuoteMeta(d)
		edits = append(edits, d+expression(d)+`(?:[^\\\n`+d+`]|\\[^\n])*`+d)
	}
	command := `(?:` + place + `(?:,[ \t]*(?:\+[0-9]+|` + place + `))?)?[ \t]*!? *` +
		`(?:[pd=DgGhHnNPqx]|s(?:` + strings.Join(edits, "|") + `)[gpiI0-9]*)[ \t]*`
	return regexp.MustCompile(`^[ \t]*` + command + `(?:[;\n][ \t\n;]*` + command + `)*(?:[;\n][ \t\n;]*)?$`)
})
