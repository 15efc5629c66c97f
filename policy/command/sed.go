package command

import "strings"

// sed records scripts that run commands: the e command and the e flag of s, both GNU extensions.
func (f *finder) sed(_ string, words []word, _ place) {
	for _, script := range sedScripts(words) {
		if script.dynamic() || script.added {
			f.indirect("the sed script is not known before it runs")
		} else if kind := sedScript(script.text); kind == sedRuns {
			f.indirect("the sed script may run commands")
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

// sedKind classifies what a sed script does besides printing.
type sedKind int

const (
	sedPrints sedKind = iota
	sedWrites         // w, W, r and similar: uses other files
	sedRuns           // runs commands, or cannot be parsed
)

// sedScript parses a script just far enough to know its commands.
func sedScript(s string) sedKind {
	kind := sedPrints
	for {
		s = strings.TrimLeft(s, " \t\n;{}")
		if s == "" {
			return kind
		}
		rest, ok := sedAddress(s)
		if !ok || rest == "" {
			return sedRuns
		}
		var what sedKind
		if s, what = sedCommand(rest[0], rest[1:]); what == sedRuns {
			return sedRuns
		}
		kind = max(kind, what)
	}
}

// sedCommand skips the arguments of a command.
func sedCommand(command byte, args string) (rest string, kind sedKind) {
	switch {
	case command == '#' || command == ':' || strings.IndexByte("btTaic", command) >= 0:
		_, rest, _ = strings.Cut(args, "\n")
		return rest, sedPrints
	case strings.IndexByte("rRwW", command) >= 0:
		_, rest, _ = strings.Cut(args, "\n")
		return rest, sedWrites
	case command == 's' || command == 'y':
		return sedSubstitute(args)
	case strings.IndexByte("{}=dDgGhHnNpPxFzlqQ", command) >= 0:
		rest = strings.TrimLeft(args, "0123456789 \t")
		if rest == "" || strings.IndexByte(";\n{}#", rest[0]) >= 0 || command == '{' || command == '}' {
			return rest, sedPrints
		}
	}
	return "", sedRuns
}

// sedAddress skips the addresses before a command.
func sedAddress(s string) (rest string, ok bool) {
	for s != "" {
		switch c := s[0]; {
		case c >= '0' && c <= '9' || strings.IndexByte("$,~+! \tIM", c) >= 0:
			s = s[1:]
		case c == '/':
			if s, ok = sedDelimited(s[1:], '/'); !ok {
				return "", false
			}
		case c == '\\' && len(s) > 1:
			if s, ok = sedDelimited(s[2:], s[1]); !ok {
				return "", false
			}
		default:
			return s, true
		}
	}
	return "", true
}

// sedDelimited skips past the next delimiter.
func sedDelimited(s string, delimiter byte) (rest string, ok bool) {
	bracket := false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\':
			i++
		case c == '[':
			bracket = true
		case c == ']':
			bracket = false
		case c == delimiter && bracket:
			return "", false // versions of sed differ here
		case c == delimiter:
			return s[i+1:], true
		}
	}
	return "", false
}

// sedSubstitute skips the two parts and the flags of s or y.
func sedSubstitute(s string) (rest string, kind sedKind) {
	if s == "" || s[0] == '\\' || s[0] == '\n' {
		return "", sedRuns
	}
	delimiter := s[0]
	s, ok := sedDelimited(s[1:], delimiter)
	if !ok {
		return "", sedRuns
	}
	if s, ok = sedReplacement(s, delimiter); !ok {
		return "", sedRuns
	}
	s = strings.TrimLeft(s, "gpiIM0123456789")
	switch {
	case s == "" || strings.IndexByte(";\n} \t#", s[0]) >= 0:
		return s, sedPrints
	case s[0] == 'w':
		_, s, _ = strings.Cut(s, "\n")
		return s, sedWrites
	}
	return "", sedRuns
}

// sedReplacement skips the second part, in which brackets have no meaning.
func sedReplacement(s string, delimiter byte) (rest string, ok bool) {
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case delimiter:
			return s[i+1:], true
		}
	}
	return "", false
}

// sedShows reports whether a script certainly only prints and substitutes. It knows the p and s commands with line
// numbers, $ and /expressions/ as addresses, and the flags g, p, i, I and numbers of s. Everything else is not known to
// be harmless, because versions of sed read the same text differently, and some read files, write them or run commands.
func sedShows(script string) bool {
	for {
		s, ok := sedShownAddress(strings.TrimLeft(script, " \t"))
		if !ok || s == "" {
			return false
		}
		command := s[0]
		s = s[1:]
		switch command {
		case 'p':
		case 's':
			if s, ok = sedShownSubstitution(s); !ok {
				return false
			}
		default:
			return false
		}
		s = strings.TrimLeft(s, " \t")
		if s == "" {
			return true
		}
		if s[0] != ';' && s[0] != '\n' {
			return false
		}
		if script = strings.TrimLeft(s[1:], " \t\n;"); script == "" {
			return true
		}
	}
}

// sedShownAddress skips up to two addresses before a command.
func sedShownAddress(s string) (rest string, ok bool) {
	rest, found, ok := sedShownPlace(s)
	if !ok || !found || !strings.HasPrefix(rest, ",") {
		return strings.TrimLeft(rest, " \t"), ok
	}
	end := strings.TrimLeft(rest[1:], " \t")
	if len(end) > 1 && end[0] == '+' && digits(end[1:2]) { // so many lines more
		end = end[1:]
	}
	rest, found, ok = sedShownPlace(end)
	return strings.TrimLeft(rest, " \t"), ok && found
}

// digits reports whether a text consists of digits.
func digits(s string) bool { return strings.Trim(s, "0123456789") == "" }

// sedShownPlace skips a line number, $ or /expression/.
func sedShownPlace(s string) (rest string, found, ok bool) {
	switch {
	case s == "":
		return "", false, false
	case s[0] == '$':
		return s[1:], true, true
	case s[0] == '/':
		rest, ok = sedShownExpression(s[1:], '/')
		return rest, true, ok
	}
	rest = strings.TrimLeft(s, "0123456789")
	return rest, rest != s, true
}

// sedShownSubstitution skips the two parts of s and its flags.
func sedShownSubstitution(s string) (rest string, ok bool) {
	if s == "" || strings.IndexByte("/|,#@:%!_~=", s[0]) < 0 {
		return "", false
	}
	delimiter := s[0]
	if s, ok = sedShownExpression(s[1:], delimiter); !ok {
		return "", false
	}
	rest, ok = sedReplacement(s, delimiter)
	if !ok || strings.Contains(s[:len(s)-len(rest)], "\n") {
		return "", false
	}
	return strings.TrimLeft(rest, "gpiI0123456789"), true
}

// sedShownExpression skips an expression that every version of sed ends at the same delimiter: without line breaks, and
// with nothing in brackets at which one could end them earlier than another.
func sedShownExpression(s string, delimiter byte) (rest string, ok bool) {
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case delimiter:
			return s[i+1:], true
		case '\n':
			return "", false
		case '\\':
			if i++; i == len(s) || s[i] == '\n' {
				return "", false
			}
		case '[':
			n := sedBrackets(s[i+1:], delimiter)
			if n < 0 {
				return "", false
			}
			i += n
		}
	}
	return "", false
}

// sedBrackets returns how many bytes follow an opening bracket up to and with the closing one; -1 if versions of sed
// may disagree about that. Inside, only names of classes such as [:space:] have brackets.
func sedBrackets(s string, delimiter byte) int {
	i := 0
	if strings.HasPrefix(s, "^") {
		i = 1
	}
	for first := i; i < len(s); i++ {
		switch c := s[i]; {
		case c == ']' && i > first:
			return i + 1
		case c == ']' || c == delimiter || c == '\\' || c == '\n':
			return -1
		case c == '[':
			end := strings.Index(s[i:], ":]")
			if end < 2 || s[i+1] != ':' || strings.Trim(s[i+2:i+end], "abcdefghijklmnopqrstuvwxyz") != "" {
				return -1
			}
			i += end + 1
		}
	}
	return -1
}
