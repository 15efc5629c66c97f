package command

import (
	"path"
	"slices"
	"strings"
)

// shell reports whether name is a shell with the option -c.
func shell(name string) bool { return is("shells", name) }

// bashLike reports whether the shell reads the text like the parser.
func bashLike(name string) bool { return is("bash-like", name) }

// shell follows sh -c TEXT or a here-document, or records that the program is not known.
func (f *finder) shell(name string, words []word, at place) {
	if !bashLike(name) {
		f.indirect(name + " has another grammar than bash")
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
	f.program(name, words, i, withText, at)
}

// shellShort parses short options of a shell and returns how many following words they take.
func (f *finder) shellShort(name, option string, rest []word) (used int) {
	if strings.ContainsAny(option, "il") {
		f.indirect("the shell reads a start-up file")
	}
	if strings.Trim(option[1:], "ceuxvfnpshilmoO") != "" {
		f.indirect("an option of " + name + " changes how the shell reads the text")
	}
	if !strings.ContainsAny(option, "oO") || len(rest) == 0 {
		return 0
	}
	if rest[0].mark != 0 ||
		!listed("errexit nounset pipefail xtrace verbose noglob noclobber nullglob globstar dotglob", rest[0].text) {
		f.indirect("an option of " + name + " changes how the shell reads the text")
	}
	return 1
}

// shellLong returns how many more words a long option of bash takes.
func (f *finder) shellLong(option string, rest []word) int {
	switch {
	case option == "--rcfile" || option == "--init-file":
		f.indirect("the shell reads a start-up file")
		return min(1, len(rest))
	case strings.HasPrefix(option, "--rcfile=") || strings.HasPrefix(option, "--init-command") || option == "--login":
		f.indirect("the shell reads a start-up file")
	}
	return 0
}

// program follows what a shell runs after its options; i is the first word after them.
func (f *finder) program(name string, words []word, i int, withText bool, at place) {
	switch {
	case withText && i < len(words):
		f.code(name+" -c", words[i], at)
	case withText:
		f.indirect(name + " -c has no text")
	case i >= len(words) || words[i].text == "-" || stdinFile(words[i].text):
		f.stdinProgram(name, at)
	case words[i].mark&^MarkTilde != 0 || words[i].added:
		f.indirect(name + " runs a file that is not known before")
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
		f.indirect(name + " reads what it runs from its input")
		f.lastTake = len(f.out.Commands)
	}
	if in != nil && shell(name) {
		if strings.Contains(strings.TrimSpace(in.text), "\n") {
			f.indirect("the commands that " + name +
				" reads may read the lines behind them, which are commands no more then")
		}
		f.nested(in.text, name, at)
	}
}

// code follows shell text in one word.
func (f *finder) code(via string, text word, at place) {
	// File names to which a pattern expands would be read as code too.
	if text.mark&^MarkTilde != 0 || text.added {
		f.indirect("the text given to " + via + " is not known before it runs")
		f.lastTake = len(f.out.Commands)
		return
	}
	f.nested(text.text, via, at)
}

// joined follows words that a shell runs, joined by spaces.
func (f *finder) joined(via string, words []word, at place) {
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
	f.code(via, all, at)
}

// interpreter returns the family of a program that runs code of another language; "" for none.
func interpreter(name string) string {
	switch name {
	case "perl", "ruby", "node", "nodejs", "php", "lua", "luajit", "deno", "bun", "osascript", "tclsh", "expect",
		"guile", "rscript", "julia", "gdb", "sqlite3", "groovy", "jshell", "ghci", "irb", "ipython", "bc", "m4":
		return name
	case "awk", "gawk", "mawk", "nawk":
		return "awk"
	case "at", "batch":
		return "at"
	}
	for _, family := range []string{"python", "pypy", "perl5", "ruby2", "ruby3", "php7", "php8", "lua5"} {
		if strings.HasPrefix(name, family) {
			return family
		}
	}
	return ""
}

// codeOptions returns the short and long options by which an interpreter takes code.
func codeOptions(family string) (short, long string) {
	switch family {
	case "python", "pypy", "ipython":
		return "c", ""
	case "perl", "perl5":
		return "eEMm", ""
	case "node", "nodejs", "bun", "deno":
		return "epr", "eval print require import loader experimental-loader"
	case "php", "php7", "php8":
		return "rBRE", "run process-begin process-code process-end"
	case "sqlite3":
		return "", "cmd init"
	case "gdb":
		return "ex", "eval-command init-eval-command command init-command args"
	case "bc", "m4":
		return "", ""
	}
	return "eclrC", "eval"
}

// interpreter records code in an argument, and programs read from the standard input.
func (f *finder) interpreter(family string, words []word, at place) {
	switch {
	case family == "awk":
		f.awk(words)
	case family == "at":
		f.indirect("at runs later what it reads from its input")
	case !f.interpreted(family, words[1:]):
		f.stdinProgram(family, at)
	}
}

// interpreted records code among the arguments of an interpreter. It reports whether they determine what runs; if not,
// the program comes from the standard input.
func (f *finder) interpreted(family string, words []word) (file bool) {
	short, long := codeOptions(family)
	for i, w := range words {
		text := w.text
		switch {
		case w.dynamic() || w.added:
			if !file {
				f.indirect(family + " runs a program that is not known before")
				f.lastTake = len(f.out.Commands)
			}
			return true
		case codeWord(family, text):
			f.indirect(family + " runs code from its arguments")
		case file:
		case text == "-" || stdinFile(text):
			return false
		case runsModule(family, text):
			return true // a command of its own
		case len(text) > 1 && text[0] == '-':
			if takesCode(text, short, long) {
				f.indirect(family + " runs code from its arguments")
				return true
			}
			file = i == 0 && versionOnly(text)
		default:
			file = true
		}
	}
	return file
}

// codeWord reports whether a word that is not an option contains or announces code.
func codeWord(family, text string) bool {
	switch family {
	case "deno":
		if text == "eval" {
			return true
		}
	case "sqlite3":
		if hidesShell(text) {
			return true
		}
	}
	return strings.HasPrefix(text, "ext::")
}

// runsModule reports whether an option makes python run a module.
func runsModule(family, option string) bool {
	return option == "-m" && (family == "python" || family == "pypy")
}

// versionOnly reports whether an option only prints the version or help.
func versionOnly(option string) bool {
	return option == "--version" || option == "-V" || option == "--help" || option == "-v" || option == "-h"
}

// hidesShell reports whether a dot command of sqlite3 runs a program.
func hidesShell(text string) bool {
	return strings.Contains(text, ".sh") || strings.Contains(text, ".sy") || strings.Contains(text, "|") ||
		strings.Contains(text, ".r") || strings.Contains(text, ".o")
}

// takesCode reports whether an option contains or announces code.
func takesCode(option, short, long string) bool {
	if strings.HasPrefix(option, "--") {
		key, _, _ := strings.Cut(option[2:], "=")
		return longMatch(long, key) != ""
	}
	return strings.ContainsAny(option[1:], short)
}

// awk records programs that can start others.
func (f *finder) awk(words []word) {
	for i := 1; i < len(words); i++ {
		text := words[i].text
		switch {
		case words[i].dynamic() || words[i].added:
			f.indirect("the awk program is not known before it runs")
			return
		case text == "-F" || text == "-v":
			i++
			continue
		case awkSets(text):
			continue
		case strings.HasPrefix(text, "-f") || strings.HasPrefix(text, "--fi"):
			return // a program file: a command of its own
		case len(text) > 1 && text[0] == '-' && text != "--":
			f.doubt("the options of awk cannot be read for sure")
		}
		if awkStarts(text) {
			f.doubt("the awk program may start other programs")
			return
		}
	}
}

// awkSets reports whether an option sets a variable or the field separator in the same word.
func awkSets(option string) bool {
	return strings.HasPrefix(option, "-F") || strings.HasPrefix(option, "-v") || strings.HasPrefix(option, "--fie") ||
		strings.HasPrefix(option, "--as")
}

// awkStarts reports whether an awk program may start another one or use the network.
func awkStarts(program string) bool {
	return strings.Contains(program, "system") || strings.Contains(program, "|") ||
		strings.Contains(program, "getline") ||
		strings.Contains(program, "@") || strings.Contains(program, "/inet")
}

// eval follows literal words; with others, what runs is not known.
func (f *finder) eval(name string, words []word, at place) {
	rest := words[1:]
	if len(rest) > 0 && rest[0].text == "--" {
		rest = rest[1:]
	}
	f.joined(name, rest, at)
}

// trap follows the code that a trap runs.
func (f *finder) trap(name string, words []word, at place) {
	rest := words[1:]
	if len(rest) > 0 && rest[0].text == "--" {
		rest = rest[1:]
	}
	if len(rest) == 0 || rest[0].text == "-" || rest[0].text == "-l" || rest[0].text == "-p" {
		return
	}
	f.code(name, rest[0], at)
}

// source records a file that is run in the same shell.
func (f *finder) source(name string, words []word, _ place) {
	if len(words) > 1 {
		f.indirect(name + " runs the commands of a file in this shell")
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
		f.indirect(name + " changes what commands mean or runs code")
	}
}

// keepsGrammar reports whether the words of shopt only change how patterns expand, or how errors end a script.
func keepsGrammar(words []word) bool {
	for _, w := range words {
		if w.mark != 0 || w.added ||
			!listed("-s -u -q -p nullglob globstar dotglob failglob nocaseglob inherit_errexit lastpipe", w.text) {
			return false
		}
	}
	return true
}
