package command

import (
	"slices"
	"strings"

	"github.com/zephbot/zephbot/policy/reason"
)

// ObeyedByShell reports whether bash itself obeys a variable, also if it is not in the environment. No rule covers it.
func ObeyedByShell(name string) bool {
	for _, prefix := range [...]string{"BASH_", "LD_", "COMP_", "READLINE_", "TEXTDOMAIN"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	switch name {
	case "PATH", "ENV", "PROMPT_COMMAND", "PS0", "PS1", "PS2", "PS4", "IFS", "SHELLOPTS", "BASHOPTS", "CDPATH",
		"EXECIGNORE", "FIGNORE", "GLOBIGNORE", "HISTFILE", "HOME", "SHELL", "FCEDIT", "INPUTRC", "POSIXLY_CORRECT",
		"histchars", "MAILPATH", "HOSTFILE":
		return true
	}
	return false
}

// recordVariable records that by sets the variable name in the shell to a value that is not known.
func (f *finder) recordVariable(name, by string) { f.recordValue(name, "?", by) }

// recordValue records that by sets a variable of the shell. One that commands get from the
// service stays in their environment.
func (f *finder) recordValue(name, value, by string) {
	if !f.inShell(name, value, by) && (Passed(name) || setForCommands(name)) {
		f.recordExport(name, value, by)
	}
}

// inShell records that by sets a variable that matters to the shell itself, and reports whether it does.
func (f *finder) inShell(name, value, by string) bool {
	switch {
	case isCalculated(name):
		f.addIndirect(setBy(by, reason.SetsCalculated, clipText(name)))
	case ObeyedByShell(name):
		f.addIndirect(setBy(by, reason.SetsRuns, clipText(name)))
	case isLocale(name) && value != "C" && value != "POSIX" && !strings.HasSuffix(strings.ToLower(value), ".utf-8") &&
		!strings.HasSuffix(value, ".utf8"):
		f.addIndirect(setBy(by, reason.SetsReading, clipText(name)))
	default:
		return false
	}
	return true
}

// setForCommands reports whether every command gets a variable with a value of ours.
func setForCommands(name string) bool {
	switch name {
	case "TMPDIR", "TAR_OPTIONS", "PAGER", "GIT_PAGER", "GIT_TERMINAL_PROMPT", "XDG_CACHE_HOME":
		return true
	}
	return strings.HasPrefix(name, "GIT_CONFIG_")
}

// recordExport records that by sets a variable for programs. The value is in source form if it is not known.
func (f *finder) recordExport(name, value, by string) {
	if ObeyedByShell(name) {
		f.addIndirect(setBy(by, reason.SetsRuns, clipText(name)))
		return
	}
	if !isHarmless(name, value) {
		f.addDoubt(setBy(by, reason.SetsPrograms, clipText(name)))
	}
}

// isHarmless reports whether a variable chooses nothing with this value.
func isHarmless(name, value string) bool {
	values, known := environmentLists()["harmless"].namesVariable(name)
	return known && (len(values) == 0 || slices.Contains(values, value))
}

// anAssignment sets a variable where no program does.
const anAssignment = ""

// setBy is the reason for a variable that a program, or an assignment, sets.
func setBy(by string, code reason.Code, variable string) reason.Reason {
	r := reason.New(code, variable)
	if by == anAssignment {
		return r.With(reason.New(reason.Assignment))
	}
	return r.With(reason.New(reason.Name, by))
}

// isLocale reports whether the variable changes which bytes are one character.
func isLocale(name string) bool { return name == "LANG" || strings.HasPrefix(name, "LC_") }

// isCalculated reports whether bash reads every value of the variable as arithmetic, or as the words of an array, which
// may run commands.
func isCalculated(name string) bool {
	switch name {
	case "RANDOM", "SRANDOM", "SECONDS", "HISTCMD", "OPTIND", "LINENO", "PIPESTATUS", "GROUPS", "FUNCNAME", "DIRSTACK":
		return true
	}
	return false
}

// oneWord reports whether the shell cannot turn w into several words or none.
func (w word) oneWord() bool {
	if w.added {
		return false
	}
	if !w.isDynamic() {
		return w.mark&MarkPattern == 0
	}
	switch w.text {
	case "$#", "$?", "$$", "$!":
		return true
	}
	quoted := len(w.text) > 1 && w.text[0] == '"' && strings.IndexByte(w.text[1:], '"') == len(w.text)-2
	return quoted && !strings.Contains(w.text, "@")
}

// followDeclare handles declare, export and similar builtins.
func (f *finder) followDeclare(name string, words []word, _ place) {
	exported := name == "export" || slices.ContainsFunc(words[1:], func(w word) bool {
		return strings.HasPrefix(w.text, "-") && strings.Contains(w.text, "x")
	})
	for _, w := range words[1:] {
		variable, value, assigned := strings.Cut(w.text, "=")
		variable, _, _ = strings.Cut(strings.TrimSuffix(variable, "+"), "[")
		switch {
		case len(w.text) > 1 && (w.text[0] == '-' || w.text[0] == '+') && w.mark == 0:
			f.declareOption(name, w.text)
		case !isName(variable) || !assigned && w.mark != 0 || !f.declared && !w.oneWord():
			f.addIndirect(reason.New(reason.VariableUnknown, name))
		case strings.HasPrefix(value, "("):
			// declare -a x='($(command))' runs the command.
			f.addIndirect(reason.New(reason.ArrayValue, name))
		default:
			f.values = f.values || assigned && w.isDynamic()
			f.checkName(name, w.text)
			if exported {
				f.recordExport(variable, value, name)
			}
		}
	}
}

// declareOption records the type that an option of declare gives to a variable.
func (f *finder) declareOption(name, option string) {
	if strings.Contains(option, "n") && name != "export" {
		f.addIndirect(reason.New(reason.VariableRenamed))
	}
	if strings.Contains(option, "i") {
		f.addIndirect(reason.New(reason.ArithmeticRuns))
	}
	f.arrays = f.arrays || strings.ContainsAny(option, "aA")
	if strings.Contains(option, "f") && name == "export" {
		f.addIndirect(reason.New(reason.FunctionExported))
	}
}

// checkName checks a literal that a builtin takes for the name of a variable.
func (f *finder) checkName(builtin, text string) {
	variable, value, _ := strings.Cut(text, "=")
	variable, index, subscript := strings.Cut(strings.TrimSuffix(variable, "+"), "[")
	if subscript && strings.Trim(index, "0123456789]") != "" {
		f.addIndirect(reason.New(reason.NameRuns, builtin))
	}
	f.recordValue(variable, value, builtin)
}

// fillsVariable handles builtins that set or test variables by name; bash runs $(…) inside their subscripts.
func (f *finder) fillsVariable(name string, words []word, _ place) {
	switch name {
	case "let":
		f.addIndirect(reason.New(reason.ArithmeticRuns))
		return
	case "printf", "wait":
		f.byDashName(name, words)
		return
	case "test", "[":
		f.followTest(words)
		return
	}
	f.followNamed(name, words)
}

// followNamed handles builtins whose words are names, or options and their values.
func (f *finder) followNamed(name string, words []word) {
	mapfile := name == "mapfile" || name == "readarray"
	for i, w := range words[1:] {
		option := len(w.text) > 1 && w.text[0] == '-'
		f.arrays = f.arrays || mapfile || option && strings.Contains(w.text, "a")
		if mapfile && option && strings.Contains(w.text, "C") {
			f.addIndirect(reason.New(reason.RunsCode, name))
		}
		if !w.oneWord() || w.isDynamic() && !isNoName(name, words[i].text) {
			f.addIndirect(reason.New(reason.VariableUnknown, name))
			continue
		}
		f.checkName(name, w.text)
	}
}

// isNoName reports whether the option before a word of read or mapfile makes it a value instead of a variable.
func isNoName(name, option string) bool {
	letters := ""
	switch name {
	case "read":
		letters = "pdnNtui"
	case "mapfile", "readarray":
		letters = "dnOsu"
	}
	return len(option) > 1 && option[0] == '-' && option[1] != '-' &&
		strings.IndexByte(letters, option[len(option)-1]) >= 0
}

// byDashName handles printf -v NAME and wait -p NAME.
func (f *finder) byDashName(name string, words []word) {
	option := "-v"
	if name == "wait" {
		option = "-p"
	}
	for i := 1; i < len(words); i++ {
		text := words[i].text
		switch {
		case words[i].mark&^MarkTilde != 0 || words[i].added:
			if !harmlessStart(text) {
				f.addIndirect(reason.New(reason.VariableUnknown, name))
			}
			f.recordCounts(name, text, true, words[i+1:])
			return
		case len(text) < 2 || text[0] != '-':
			f.recordCounts(name, text, false, words[i+1:])
			return
		case text == "--" && i+1 < len(words):
			f.recordCounts(name, words[i+1].text, words[i+1].mark != 0, words[i+2:])
			return
		case text == option && i+1 < len(words):
			i++
			if words[i].mark != 0 || words[i].added {
				f.addIndirect(reason.New(reason.VariableUnknown, name))
			}
			f.checkName(name, words[i].text)
		case strings.HasPrefix(text, option):
			f.checkName(name, text[len(option):])
		}
	}
}

// recordCounts records the variables that printf sets through %n in its format.
func (f *finder) recordCounts(name, format string, dynamic bool, rest []word) {
	if name != "printf" || !dynamic && !strings.Contains(format, "%") {
		return
	}
	conversion := dynamic
	for _, part := range strings.Split(format, "%")[1:] {
		part = strings.TrimLeft(part, "-+ #0123456789.*'hlLjzt")
		conversion = conversion || strings.HasPrefix(part, "n")
	}
	if !conversion {
		return
	}
	for _, w := range rest {
		if w.mark != 0 || w.added {
			f.addIndirect(reason.New(reason.VariableUnknown, "printf"))
			continue
		}
		f.checkName(name, w.text)
	}
}

// harmlessStart reports whether the source of a word begins with a letter, a digit or a percent sign, so that the word
// cannot become an option.
func harmlessStart(source string) bool {
	source = strings.TrimLeft(source, `"`)
	return source != "" && (source[0] == '%' || source[0]|0x20 >= 'a' && source[0]|0x20 <= 'z' ||
		source[0] >= '0' && source[0] <= '9')
}

// followTest handles test -v NAME, whose subscript bash evaluates.
func (f *finder) followTest(words []word) {
	words = words[1:]
	if n := len(words); n > 0 && words[n-1].text == "]" {
		words = words[:n-1]
	}
	for i, w := range words {
		if !w.oneWord() {
			f.addIndirect(reason.New(reason.TestUnknown))
		}
		if (w.text == "-v" || w.text == "-R") && i+1 < len(words) && !isName(words[i+1].text) {
			f.addIndirect(reason.New(reason.NameRuns, "test"))
		}
	}
	if slices.ContainsFunc(words, word.isDynamic) && mayTestVariable(words) {
		f.addIndirect(reason.New(reason.TestUnknown))
	}
}

// mayTestVariable reports whether one of the words of test, some of which are unknown, may be -v: if there are more
// than three words, or if the operator is unknown.
func mayTestVariable(words []word) bool {
	if words[0].text == "!" {
		words = words[1:]
	}
	switch len(words) {
	case 2:
		return words[0].isDynamic()
	case 3:
		return words[1].isDynamic()
	}
	return len(words) > 3
}

// followSet handles set. Only options that do not change how the text is read are certain.
func (f *finder) followSet(name string, words []word, _ place) {
	for i := 1; i < len(words); i++ {
		text := words[i].text
		switch {
		case words[i].mark != 0 || words[i].added:
			f.addIndirect(reason.New(reason.OptionsUnknown, name))
			return
		case text == "--" || len(text) < 2 || text[0] != '-' && text[0] != '+':
			return
		case strings.Trim(text[1:], "euxvfCo") != "" || strings.Count(text, "o") > 1:
			f.addIndirect(reason.New(reason.OptionReading, name, clipText(text)))
			return
		}
		if strings.HasSuffix(text, "o") && i+1 < len(words) {
			i++
			if words[i].mark != 0 || !isListed("errexit nounset pipefail xtrace verbose noglob noclobber",
				words[i].text) {
				f.addIndirect(reason.New(reason.OptionReading, name, "-o "+clipText(words[i].text)))
				return
			}
		}
	}
}
