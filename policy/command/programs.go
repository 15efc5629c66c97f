package command

import (
	"slices"
	"strings"
)

// find follows -exec and similar actions.
func (f *finder) find(name string, words []word, at place) {
	for i := 1; i < len(words); i++ {
		option := words[i].text
		switch option {
		case "-exec", "-execdir", "-ok", "-okdir":
		default:
			if words[i].dynamic() || words[i].added {
				if i > 1 && strings.HasPrefix(words[i-1].text, "-") && strings.HasPrefix(words[i].text, `"`) && !strings.Contains(words[i].text, "@") {
					continue // the value of a test, which remains one word
				}
				f.indirect("an expansion among the words of " + name + " may be -exec")
			}
			continue
		}
		start := i + 1
		for i = start; i < len(words) && words[i].text != ";"; i++ {
			if words[i].text == "+" && words[i-1].text == "{}" {
				break
			}
		}
		f.placeholder(name+" "+option, words[start:min(i, len(words))], at)
	}
}

// placeholder follows a command in which {} represents file names.
func (f *finder) placeholder(via string, words []word, at place) {
	if len(words) == 0 {
		return
	}
	if at.nest >= maxDepth {
		f.indirect("commands are nested too deeply to follow")
		return
	}
	inner := append([]word(nil), words...)
	for i := range inner {
		if strings.Contains(inner[i].text, "{") {
			inner[i].mark |= MarkExpansion
		}
	}
	at.stdin = nil
	f.command(inner, at.below(via))
}

// fd follows -x and -X of fd-find.
func (f *finder) fd(name string, words []word, at place) {
	for i := 1; i < len(words); i++ {
		text := words[i].text
		switch {
		case text == "-x" || text == "-X" || text == "--exec" || text == "--exec-batch":
			f.placeholder(name+" "+text, words[i+1:], at)
			return
		case strings.HasPrefix(text, "--exec") || len(text) > 2 && text[0] == '-' && text[1] != '-' && strings.ContainsAny(text, "xX"):
			f.indirect("the options of " + name + " cannot be read for sure")
		}
	}
}

// parallel follows GNU parallel: its words up to ::: are a shell template.
func (f *finder) parallel(name string, words []word, at place) {
	i := 1
	for ; i < len(words) && strings.HasPrefix(words[i].text, "-"); i++ {
		switch words[i].text {
		case "-j", "--jobs", "-P", "-n", "-N", "-L", "-a", "-d", "-C", "-I", "-S", "--colsep", "--delay", "--timeout", "--results", "--joblog":
			i++
		}
	}
	rest := words[min(i, len(words)):]
	for j, w := range rest {
		if strings.HasPrefix(w.text, ":::") {
			rest = rest[:j]
			break
		}
	}
	f.indirect("parallel builds commands from its input")
	if len(rest) > 0 {
		f.joined(name, rest, at)
	}
}

// ssh follows the command that runs on the other host, and records options that start a local one.
func (f *finder) ssh(name string, words []word, at place) {
	i := 1
	for ; i < len(words); i++ {
		text := words[i].text
		if len(text) < 2 || text[0] != '-' {
			break
		}
		if words[i].dynamic() {
			f.indirect("an option of ssh is not known before it runs")
		}
		letter := strings.IndexAny(text, "BbcDEeFIiJLlmOopQRSWw")
		if letter < 0 {
			continue
		}
		value := text[letter+1:]
		if letter == len(text)-1 && i+1 < len(words) {
			i++
			value = words[i].text
		}
		lower := strings.ToLower(value)
		if text[letter] == 'F' || text[letter] == 'o' && (strings.Contains(lower, "command") || strings.Contains(lower, "exec") || strings.Contains(lower, "include")) {
			f.indirect("an option of ssh runs a program")
		}
	}
	if i+1 < len(words) {
		f.joined(name, words[i+1:], at)
	}
}

// container follows exec of docker and kubectl.
func (f *finder) container(name string, words []word, at place) {
	sub := 1
	for sub < len(words) && words[sub].text != "exec" {
		sub++
	}
	if sub == len(words) {
		return
	}
	target := false
	for i := sub + 1; i < len(words); i++ {
		text := words[i].text
		switch {
		case text == "--":
			f.wrapped(name+" exec", words[i+1:], at)
			return
		case !strings.HasPrefix(text, "-"):
			if target {
				f.wrapped(name+" exec", words[i:], at)
				return
			}
			target = true
		case strings.Contains(text, "="):
		case listed("-e --env -u --user -w --workdir --env-file --detach-keys -c --container -n --namespace --context --pod-running-timeout", text):
			i++
		}
	}
}

// wrapped follows words that run as a command of their own.
func (f *finder) wrapped(via string, words []word, at place) {
	if len(words) == 0 {
		return
	}
	if at.nest >= maxDepth {
		f.indirect("commands are nested too deeply to follow")
		return
	}
	f.command(words, at.below(via))
}

// runsByOption returns the options with which a program starts another one.
func runsByOption(name string) []string { return facts()[fact{"runs", name}] }

// byOption records options that start another program.
func (f *finder) byOption(name string, words []word, _ place) {
	options := runsByOption(name)
	for i, w := range words[1:] {
		if options[0] == "*" || startsProgram(options, w.text) || (name == "tar" && i == 0 && strings.ContainsAny(w.text, "IF") && !strings.ContainsAny(w.text, "/.=")) {
			f.indirect("an option of " + name + " may start another program")
			return
		}
		if (w.dynamic() || w.added) && (strings.HasPrefix(w.text, "-") || strings.HasPrefix(w.text, "$") || w.added) {
			f.indirect("an expansion among the words of " + name + " may be an option that starts a program")
			return
		}
	}
	if name == "ed" || name == "ex" {
		f.indirect(name + " runs commands from its input")
	}
}

// startsProgram reports whether a word is one of the options, in any of its spellings.
func startsProgram(options []string, text string) bool {
	switch {
	case len(text) < 2:
		return text == "+"
	case text[0] == '+':
		return slices.Contains(options, "+")
	case text[0] != '-':
		return false
	case strings.HasPrefix(text, "--"):
		key, _, _ := strings.Cut(text[2:], "=")
		return longMatch(strings.Join(options, " "), key) != ""
	}
	for _, entry := range options {
		switch {
		case entry[0] != '-':
		case len(entry) > 2:
			if strings.HasPrefix(text, entry) {
				return true
			}
		case strings.IndexByte(text, entry[1]) > 0:
			return true
		}
	}
	return false
}
