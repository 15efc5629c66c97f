package command

import (
	"strings"
)

// Departure is a word with which a command does more than a rule for its program means: it runs another program, writes
// to a given place, or works elsewhere.
type Departure struct {
	// Option is the word as in the text, without its value: "--output", "-C", "-uo". If the word is not an option, it
	// is the word itself.
	Option string
	// Why says in words what it does: "of git diff writes a file".
	Why string
	// Starts: it tells a program, in words that are not followed, what to start. No rule knows that.
	Starts bool
	// Unknown: the option is in no table.
	Unknown bool
}

// mayRun reports whether it may run a program.
func (d Departure) mayRun() bool { return d.Starts || strings.HasSuffix(d.Why, effectOf("|runs")) }

// Rows in which no option is harmless, and every one.
var (
	noRow  optionRow
	anyRow = optionRow{any: true}
)

// departing compares the words of one command with the rows of its program, and finds the commands among them.
type departing struct {
	command  *Command
	table    optionTable
	title    string // "git diff", for people
	key      string // of the row; "" for the first, else such as "stash "
	row      *optionRow
	single   bool // options have one dash, as in the first row
	subs     bool // the next word may be a subcommand
	words    int  // words other than options since the row began
	ended    bool // no more options follow
	scripted bool // a script of sed was seen
	end      int  // the first word that is no option for sure
	from     int  // the first word of the command that the words end with; 0 = none
	execs    [][2]int
	codes    []word
	sets     []word
	replace  string // what xargs replaces
	found    []Departure
}

// judgeWords handles all words. A row with subcommands continues with the row of the first word.
func (d *departing) judgeWords() {
	d.enterRow("@")
	d.judgeTexts()
	from := 1
	if d.row.bundled && len(d.command.Words) > 1 && !strings.HasPrefix(d.command.Words[1], "-") {
		d.mayBeOption(1)
		from = 2 + d.judgeLetters(1, "-"+d.command.Words[1])
	}
	for i := from; i < len(d.command.Words) && d.from == 0; i++ {
		i += d.judgeNext(i)
	}
}

// judgeTexts judges the words that contain another language: a script, a database query.
func (d *departing) judgeTexts() {
	for i := 1; i < len(d.command.Words); i++ {
		switch text, before := d.command.Words[i], d.command.Words[i-1]; {
		case d.row.awk &&
			(before == "-F" || before == "-v" || strings.HasPrefix(text, "-F") || strings.HasPrefix(text, "-v")):
		case d.row.forbidsText(text), d.row.awk && d.command.markOf(i)&MarkExpansion != 0:
			d.addStart(text, "may run a program or touch a file")
		case d.row.awk && awkWrites(text):
			d.addDeparture(text, "writes a file")
		}
	}
}

// awkWrites reports whether an awk program writes its output to a file: print … > "name".
func awkWrites(program string) bool {
	for {
		at := strings.Index(program, "print")
		if at < 0 {
			return false
		}
		program = program[at+len("print"):]
		depth, quoted := 0, false
	statement:
		for i := 0; i < len(program); i++ {
			switch c := program[i]; {
			case c == '\\':
				i++
			case c == '"':
				quoted = !quoted
			case quoted:
			case c == '(':
				depth++
			case c == ')':
				depth--
			case c == '>' && depth <= 0:
				return true
			case c == ';' || c == '}' || c == '\n':
				break statement
			}
		}
	}
}

// enterRow continues with another row. For a program without that row, no option is harmless.
func (d *departing) enterRow(key string) {
	d.row = d.table.rowOf(key)
	d.single, d.subs = d.single || d.row.single, d.row.subs
	d.words, d.ended, d.end = 0, false, len(d.command.Words)
	if d.row.ask != "" {
		d.addDeparture(d.title[strings.LastIndexByte(d.title, ' ')+1:], d.row.ask)
	}
	if d.row.always {
		d.addStart(d.title[strings.LastIndexByte(d.title, ' ')+1:], effectOf("|starts"))
	}
}

// addDeparture records a departure. A rule can name it by its option.
func (d *departing) addDeparture(option, why string) {
	d.found = append(d.found, Departure{
		Option:  option,
		Why:     "of " + d.title + " " + why,
		Starts:  why == effectOf("|starts"),
		Unknown: why == unknownOption,
	})
}

// addStart records a departure that may start programs.
func (d *departing) addStart(option, why string) {
	d.addDeparture(option, why)
	d.found[len(d.found)-1].Starts = true
}

// judgeNext judges the word at i and returns how many following words belong to it.
func (d *departing) judgeNext(i int) int {
	text := d.command.Words[i]
	if d.ended {
		d.judgeWord(i)
		return 0
	}
	d.mayBeOption(i)
	switch {
	case text == "--":
		d.ended, d.end = true, i
	case len(text) < 2 || text[0] != '-':
		d.judgeWord(i)
	case d.single:
		return d.judgeWhole(i, "-"+strings.TrimLeft(text, "-"))
	case strings.HasPrefix(text, "--"):
		return d.judgeWhole(i, text)
	default:
		return d.judgeLetters(i, text)
	}
	return 0
}

// mayBeOption records an expansion or a pattern that may become an option.
func (d *departing) mayBeOption(i int) {
	text, mark := d.command.Words[i], d.command.markOf(i)
	switch {
	case mark&MarkExpansion != 0 && (startsOpen(text) || d.subs && d.row.starts && text[0] == '-'),
		mark&MarkPattern != 0 && text != "" && strings.IndexByte("*?[", text[0]) >= 0:
		d.addDeparture(text, "may become an option; write -- or ./ before it")
		d.found[len(d.found)-1].Starts = d.row.execs || d.row.keys || d.subs && d.row.starts
	}
}

// startsOpen reports whether the first character of a word is only known at run time.
func startsOpen(text string) bool {
	text = strings.TrimLeft(text, `"`)
	return text == "" || strings.IndexByte("$`*?[@!+{", text[0]) >= 0
}

// judgeWord judges a word that is not an option.
func (d *departing) judgeWord(i int) {
	text := d.command.Words[i]
	if d.subs && d.words == 0 {
		if !strings.HasPrefix(text, "+") { // a toolchain of cargo
			d.enterSubcommand(i)
		}
		return
	}
	switch {
	case d.row.dash && text == "-":
		return
	case d.row.sets && strings.Contains(text, "="): // env takes everything with a = for a variable, also a-b=1
		d.sets = append(d.sets, d.wordAt(i))
		return
	case d.row.sed && !d.scripted:
		d.judgeScript(d.wordAt(i))
	}
	d.words++
	if d.row.keys {
		d.judgeSetting(i)
	}
	if d.row.first > 0 && d.words >= d.row.first && !d.ended {
		d.ended, d.end = true, i+1
	}
	if d.row.first > 0 && d.words >= d.row.first {
		if d.row.followsCommand() {
			d.from = i
			return
		}
	}
	if why := d.row.wordDeparts(text, d.words); why != "" {
		d.addDeparture(text, why)
		d.found[len(d.found)-1].Starts = text[0] == '+' && d.row.starts ||
			strings.Contains(text, "::") && !strings.Contains(text, "[")
	}
}

// wordAt returns a word of the command.
func (d *departing) wordAt(i int) word {
	return word{text: d.command.Words[i], mark: d.command.markOf(i)}
}

// judgeScript judges a script of sed.
func (d *departing) judgeScript(text word) {
	d.scripted = true
	if text.isDynamic() || !sedShows(text.text) {
		d.addStart(text.text, "may run commands or use other files")
	}
}

// judgeSetting judges git config KEY VALUE and git config set KEY VALUE. Only settings that start nothing are harmless.
func (d *departing) judgeSetting(i int) {
	switch text := d.command.Words[i]; {
	case d.words == 1 && text == "set":
		d.words = 0
	case d.words == 2 && !harmlessSetting(strings.ToLower(d.command.Words[i-1])):
		d.addStart(d.command.Words[i-1], "changes what git does later")
	}
}

// harmlessSetting reports whether a key of git's configuration affects no program, file or address.
func harmlessSetting(key string) bool {
	for begin := range strings.FieldsSeq("user. author. committer. branch. pull. push. fetch. color. advice. " +
		"commit.verbose commit.gpgsign rerere. rebase.auto merge.ff merge.conflictstyle " +
		"core.autocrlf core.filemode core.ignorecase core.eol core.quotepath core.safecrlf core.symlinks core.abbrev " +
		"init.defaultbranch log. status. tag.sort tag.gpgsign gc. pack. " +
		"diff.renames diff.algorithm diff.colormoved diff.noprefix diff.context diff.mnemonicprefix help.autocorrect " +
		"versionsort. column. format.pretty feature. index.") {
		if strings.HasPrefix(key, begin) {
			return true
		}
	}
	return strings.HasPrefix(key, "remote.") && (strings.HasSuffix(key, ".url") || strings.HasSuffix(key, ".fetch") ||
		strings.HasSuffix(key, ".prune"))
}

// wordDeparts returns what harm the nth word that is not an option does; "" for none.
func (r *optionRow) wordDeparts(text string, n int) string {
	lower := strings.ToLower(text)
	switch {
	case r.most > 0 && n > r.most:
		return "is a file that it writes"
	case r.address && strings.Contains(text, "::"):
		return "is an address that runs a program"
	case r.address && strings.HasPrefix(lower, "file:"):
		return "is a file here and no address"
	case r.here && !staysHere(text) && !isAddress(text):
		return "leads out of this directory"
	}
	return r.wordObeyed(text)
}

// wordObeyed returns what a word does that the program treats like an option: @file, +command, SHELL=program; "" for
// none.
func (r *optionRow) wordObeyed(text string) string {
	switch {
	case r.at && strings.HasPrefix(text, "@"):
		return "names a file with more options"
	case r.plus && strings.HasPrefix(text, "+") && strings.Trim(text[1:], "0123456789") != "":
		return "is a command for it"
	case r.assign && strings.Contains(text, "=") && !plainVariable(text):
		return "sets what it runs"
	}
	return ""
}

// enterSubcommand continues with the row of a subcommand. A word without a row is an ordinary one, unless
// the table has a row for others.
func (d *departing) enterSubcommand(i int) {
	name := d.command.Words[i]
	if d.wordAt(i).isDynamic() && d.row.starts {
		d.addStart(name, "is not known before it runs")
	}
	for _, key := range [...]string{name, "other"} {
		if d.table[d.key+key] != nil {
			d.title += " " + clipText(name)
			d.enterRow(d.key + key)
			d.key += name + " "
			return
		}
	}
	d.subs = false
	d.judgeWord(i)
}

// judgeWhole judges an option that is a whole word, perhaps with a value: --output=x, or -run
// x where options have one dash.
func (d *departing) judgeWhole(i int, text string) int {
	key, inline, attached := strings.Cut(text, "=")
	spelled, _, _ := strings.Cut(d.command.Words[i], "=")
	kind, effect := d.row.longOption(key)
	value, used := word{text: inline, mark: d.command.markOf(i)}, 0
	if takesValue(kind) && !attached && i+1 < len(d.command.Words) {
		value, used = d.wordAt(i+1), 1
	}
	if kind == "..." && !attached {
		return d.skipInner(i)
	}
	d.judgeOption(spelled, kind, effect, value)
	return used
}

// skipInner skips the command after -exec, which is judged separately.
func (d *departing) skipInner(i int) int {
	to := i + 1
	for to < len(d.command.Words) && d.command.Words[to] != ";" &&
		(d.command.Words[to] != "+" || d.command.Words[to-1] != "{}") {
		to++
	}
	d.execs = append(d.execs, [2]int{i, to})
	return to - i
}

// judgeLetters judges a word of one-letter options. In an old-style bundle, every letter may take a separate word.
func (d *departing) judgeLetters(i int, text string) int {
	used, bundle := 0, d.command.Words[i][0] != '-'
	if _, counts := d.row.harmless["-#"]; counts && strings.Trim(text[1:], "0123456789") == "" {
		return 0
	}
	for j := 1; j < len(text); j++ {
		whole := ""
		if j == 1 {
			whole = text
		}
		kind, effect := d.row.shortOption(whole, text[j])
		value := word{}
		switch {
		case kind == "?":
			d.judgeOption("-"+text[j:j+1], "", effect, value)
			return used
		case kind == "*":
			d.judgeOption(d.command.Words[i], "", effect, value)
			return used
		case kind == "..." && j+1 == len(text):
			return d.skipInner(i)
		case takesValue(kind):
			if value = (word{text: text[j+1:], mark: d.command.markOf(i)}); (value.text == "" || bundle) &&
				i+used+1 < len(d.command.Words) {
				used++
				value = d.wordAt(i + used)
			}
		}
		d.judgeOption("-"+text[j:j+1], kind, effect, value)
		if takesValue(kind) && !bundle {
			return used
		}
	}
	return used
}

// judgeOption records the departure of one option. kind is the notation for its value in the table.
func (d *departing) judgeOption(option, kind, effect string, given word) {
	value := given.text
	switch kind {
	case "...": // and not in the words behind it
		d.addStart(option, effectOf("|starts"))
	case ":!":
		d.codes = append(d.codes, given)
	case ":{":
		d.replace = value
	case ":s":
		if d.scripted = true; effect == "" {
			d.judgeScript(given)
		}
	case ":;":
		d.ended, d.row = true, &anyRow
	}
	switch {
	case effect != "":
		d.addDeparture(option, effect)
	case kind == ":/" && value != "" && !staysHere(value):
		d.addDeparture(option, "leads out of this directory")
	case kind == ":@" && readsFile(value):
		d.addDeparture(option, "reads or writes a file")
	case kind == ":-" && value != "-" && !strings.HasPrefix(value, "/dev/null") && value != "/dev/stdout":
		d.addDeparture(option, "writes a file")
	case strings.HasPrefix(kind, ":~") && strings.Contains(strings.ToLower(value), kind[2:]):
		d.addDeparture(option, "may run a program")
	}
}

// takesValue reports whether an option has a value, in its word or in the next.
func takesValue(kind string) bool { return strings.HasPrefix(kind, ":") }

// readsFile reports whether the value of an option of curl names a file instead of data.
func readsFile(value string) bool {
	return strings.HasPrefix(value, "@") || strings.HasPrefix(value, "<") || strings.Contains(value, "=@") ||
		strings.Contains(value, "=<") || strings.Contains(value, "%output{")
}

// staysHere reports whether a path is below the directory in which it is used, as far as its text shows.
func staysHere(path string) bool {
	switch {
	case path == "/dev/null" || path == "/dev/stdout" || path == "/dev/stderr":
		return true
	case path == ".." || strings.HasPrefix(path, "../") || strings.Contains(path, "/../") ||
		strings.HasSuffix(path, "/.."):
		return false
	}
	return path == "" || strings.IndexByte("/~$\"`", path[0]) < 0 && !strings.Contains(path, ":")
}

// isAddress reports whether a word is an address on the network, such as https://host/path or
// user@host:path, rather than a path.
func isAddress(text string) bool {
	host, rest, ok := strings.Cut(text, ":")
	if !ok || host == "" || strings.Contains(host, "/") || strings.HasPrefix(rest, ":") {
		return false
	}
	return !strings.HasPrefix(rest, "//") || isListed("https http ssh git", host)
}

// plainVariable reports whether NAME=value for make neither sets a program of make itself nor is expanded by it.
func plainVariable(text string) bool {
	name, value, _ := strings.Cut(text, "=")
	name = strings.TrimRight(name, ":?+") // but not NAME!=, whose value is executed
	return isName(name) && !isListed("SHELL MAKE MAKEFLAGS MAKEFILES MFLAGS GNUMAKEFLAGS MAKESHELL VPATH PATH", name) &&
		!strings.ContainsAny(value, "$`;|&<>()\n")
}
