package command

import "strings"

// sed notes scripts that run commands: the e command and the e flag of s, both GNU extensions.
func (f *finder) sed(_ string, words []word, _ place) {
	given := false
	var scripts []word
	for i := 1; i < len(words); i++ {
		text := words[i].text
		switch {
		case text == "-f" || strings.HasPrefix(text, "--fi") || text == "-l" || text == "--line-length":
			given = given || text[1] != 'l' && text != "--line-length"
			i++
		case (text == "-e" || text == "--expression") && i+1 < len(words):
			given = true
			i++
			scripts = append(scripts, words[i])
		case strings.HasPrefix(text, "--e"):
			_, script, _ := strings.Cut(text, "=")
			given = true
			scripts = append(scripts, word{text: script, mark: words[i].mark})
		case len(text) > 1 && text[0] == '-':
			if at := strings.IndexAny(text, "ef"); text[1] != '-' && at > 0 {
				given = true
				script := word{text: text[at+1:], mark: words[i].mark}
				if script.text == "" && i+1 < len(words) {
					i++
					script = words[i]
				}
				if text[at] == 'e' {
					scripts = append(scripts, script)
				}
			}
		case !given:
			given = true
			scripts = append(scripts, words[i])
		}
	}
	for _, script := range scripts {
		if script.dynamic() || script.added {
			f.indirect("the sed script is not known before it runs")
		} else if kind := sedScript(script.text); kind == sedRuns {
			f.indirect("the sed script may run commands")
		}
	}
}

// sedKind is what a sed script can do besides printing.
type sedKind int

const (
	sedPrints sedKind = iota
	sedWrites         // w, W, r and their like: touches other files
	sedRuns           // runs commands, or cannot be read
)

// sedScript reads a script just far enough to know its commands.
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
		command := rest[0]
		rest = rest[1:]
		switch {
		case command == '#' || command == ':' || strings.IndexByte("btTaic", command) >= 0:
			_, rest, _ = strings.Cut(rest, "\n")
		case strings.IndexByte("rRwW", command) >= 0:
			kind = max(kind, sedWrites)
			_, rest, _ = strings.Cut(rest, "\n")
		case command == 's' || command == 'y':
			var what sedKind
			if rest, what = sedSubstitute(rest); what == sedRuns {
				return sedRuns
			} else if what > kind {
				kind = what
			}
		case strings.IndexByte("{}=dDgGhHnNpPxFzlqQ", command) >= 0:
			rest = strings.TrimLeft(rest, "0123456789 \t")
			if rest != "" && strings.IndexByte(";\n{}#", rest[0]) < 0 && command != '{' && command != '}' {
				return sedRuns
			}
		default:
			return sedRuns
		}
		s = rest
	}
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

// sedDelimited skips to behind the next delimiter.
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

// sedReplacement skips the second part, where brackets mean nothing.
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
