package command

import (
	"path"
	"slices"
	"strings"

	"github.com/zephbot/zephbot/policy/reason"
)

// isShell reports whether name is a shell with the option -c.
func isShell(name string) bool { return isOfKind("shells", name) }

// bashLike reports whether the shell reads the text like the parser.
func bashLike(name string) bool { return isOfKind("bash-like", name) }

// followShell follows sh -c TEXT or a here-document, or records that the program is not known.
func (f *finder) followShell(name string, words []word, at place) {
	if !bashLike(name) {
		f.addIndirect(reason.New(reason.ShellGrammar, name))
	}
	withText, input, i := false, false, 1
	for ; i < len(words); i++ {
		text := words[i].text
		if words[i].mark != 0 || len(text) < 2 || text[0] != '-' && text[0] != '+' {
			break
		}
		if text == "--" {
			i++
			break
		}
		if strings.HasPrefix(text, "--") {
			i += f.shellLong(text, words[i+1:])
			withText = withText || text == "--command"
			continue
		}
		withText = withText || text[0] == '-' && strings.ContainsAny(text[1:], "c")
		input = input || strings.Contains(text, "s")
		i += f.shellShort(name, text, words[i+1:])
	}
	if input && !withText {
		i = len(words)
	}
	f.followProgram(name, words, i, withText, at)
}

// shellShort parses short options of a shell and returns how many following words they take.
func (f *finder) shellShort(name, option string, rest []word) (used int) {
	if strings.ContainsAny(option, "il") {
		f.addIndirect(reason.New(reason.ShellStartup))
	}
	if strings.Trim(option[1:], "ceuxvfnpshilmoO") != "" {
		f.addIndirect(reason.New(reason.ShellOption, name))
	}
	if !strings.ContainsAny(option, "oO") || len(rest) == 0 {
		return 0
	}
	if rest[0].mark != 0 ||
		!isListed("errexit nounset pipefail xtrace verbose noglob noclobber nullglob globstar dotglob", rest[0].text) {
		f.addIndirect(reason.New(reason.ShellOption, name))
	}
	return 1
}

// shellLong returns how many more words a long option of bash takes.
func (f *finder) shellLong(option string, rest []word) int {
	switch {
	case option == "--rcfile" || option == "--init-file":
		f.addIndirect(reason.New(reason.ShellStartup))
		return min(1, len(rest))
	case strings.HasPrefix(option, "--rcfile=") || strings.HasPrefix(option, "--init-command") || option == "--login":
		f.addIndirect(reason.New(reason.ShellStartup))
	}
	return 0
}

// followProgram follows what a shell runs after its options; i is the first word after them.
func (f *finder) followProgram(name string, words []word, i int, withText bool, at place) {
	switch {
	case withText && i < len(words):
		f.followCode(name+" -c", words[i], at)
	case withText:
		f.addIndirect(reason.New(reason.ShellTextless, name))
	case i >= len(words) || words[i].text == "-" || stdinFile(words[i].text):
		f.stdinProgram(name, at)
	case words[i].mark&^MarkTilde != 0 || words[i].added:
		f.addIndirect(reason.New(reason.ShellFile, name))
		f.lastTake = len(f.out.Commands)
	}
}

// stdinFile reports whether a path may refer to the standard input or another descriptor.
func stdinFile(name string) bool {
	name = path.Clean(name)
	return strings.HasPrefix(name, "/dev/") || strings.HasPrefix(name, "/proc/")
}

// stdinProgram handles an interpreter that reads its program from the standard input.
func (f *finder) stdinProgram(name string, at place) {
	in := at.stdin
	if in == nil || !in.known || in.here || !bashLike(name) {
		f.addIndirect(reason.New(reason.ShellInput, name))
		f.lastTake = len(f.out.Commands)
	}
	if in != nil && isShell(name) {
		if strings.Contains(strings.TrimSpace(in.text), "\n") {
			f.addIndirect(reason.New(reason.CommandsBehind, name))
		}
		f.parseNested(in.text, name, at)
	}
}

// followCode follows shell text in one word.
func (f *finder) followCode(via string, text word, at place) {
	// File names to which a pattern expands would be read as code too.
	if text.mark&^MarkTilde != 0 || text.added {
		f.addIndirect(reason.New(reason.GivenUnknown, via))
		f.lastTake = len(f.out.Commands)
		return
	}
	f.parseNested(text.text, via, at)
}

// followJoined follows words that a shell runs, joined by spaces.
func (f *finder) followJoined(via string, words []word, at place) {
	if len(words) == 0 {
		return
	}
	var text strings.Builder
	all := word{}
	for i, w := range words {
		if i > 0 {
			text.WriteByte(' ')
		}
		text.WriteString(w.text)
		all.mark |= w.mark
		all.added = all.added || w.added
	}
	all.text = text.String()
	f.followCode(via, all, at)
}

// recordInterpreter records a program that is read from the standard input, or is not known before.
// Code in the arguments departs.
func (f *finder) recordInterpreter(name string, words []word, at place) {
	if slices.ContainsFunc(f.out.Commands[len(f.out.Commands)-1].Departures, func(d Departure) bool {
		return d.Starts
	}) {
		return
	}
	for i, w := range words[1:] {
		switch text := w.text; {
		case w.isDynamic() || w.added:
			f.addIndirect(reason.New(reason.ProgramUnknown, name))
			f.lastTake = len(f.out.Commands)
			return
		case text == "-" || stdinFile(text):
			f.stdinProgram(name, at)
			return
		case text == "" || text[0] != '-' || text == "-m" || i == 0 && isListed("--version -V --help -v -h", text):
			return
		}
	}
	f.stdinProgram(name, at)
}

// followEval follows literal words; with others, what runs is not known.
func (f *finder) followEval(name string, words []word, at place) {
	rest := words[1:]
	if len(rest) > 0 && rest[0].text == "--" {
		rest = rest[1:]
	}
	f.followJoined(name, rest, at)
}

// followTrap follows the code that a trap runs.
func (f *finder) followTrap(name string, words []word, at place) {
	rest := words[1:]
	if len(rest) > 0 && rest[0].text == "--" {
		rest = rest[1:]
	}
	if len(rest) == 0 || rest[0].text == "-" || rest[0].text == "-l" || rest[0].text == "-p" {
		return
	}
	f.followCode(name, rest[0], at)
}

// recordSource records a file that is run in the same shell.
func (f *finder) recordSource(name string, words []word, _ place) {
	if len(words) > 1 {
		f.addIndirect(reason.New(reason.SourcesFile, name))
		f.lastTake = len(f.out.Commands)
	}
}

// changesShell records builtins that change the meaning of later words or run code in their own way.
func (f *finder) changesShell(name string, words []word, _ place) {
	switch {
	case len(words) == 1:
	case name == "jobs" && !slices.ContainsFunc(words[1:],
		func(w word) bool { return w.mark != 0 || strings.Contains(w.text, "x") }):
	case name == "shopt" && keepsGrammar(words[1:]):
	default:
		f.addIndirect(reason.New(reason.ChangesMeaning, name))
	}
}

// keepsGrammar reports whether the words of shopt only change how patterns expand, or how errors end a script.
func keepsGrammar(words []word) bool {
	for _, w := range words {
		if w.mark != 0 || w.added ||
			!isListed("-s -u -q -p nullglob globstar dotglob failglob nocaseglob inherit_errexit lastpipe", w.text) {
			return false
		}
	}
	return true
}
