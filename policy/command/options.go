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

// runs reports whether it may run a program.
func (d Departure) runs() bool { return d.Starts || strings.HasSuffix(d.Why, effectOf("|runs")) }

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

// run handles all words. A row with subcommands continues with the row of the first word.
func (d *departing) run() {
	d.enter("@")
	d.texts()
	from := 1
	if d.row.bundled && len(d.command.Words) > 1 && !strings.HasPrefix(d.command.Words[1], "-") {
		d.mayBeOption(1)
		from = 2 + d.letters(1, "-"+d.command.Words[1])
	}
	for i := from; i < len(d.command.Words) && d.from == 0; i++ {
		i += d.next(i)
	}
}

// texts judges the words that contain another language: a script, a database query.
func (d *departing) texts() {
	for i := 1; i < len(d.command.Words); i++ {
		switch text, before := d.command.Words[i], d.command.Words[i-1]; {
		case d.row.awk && (before == "-F" || before == "-v" || strings.HasPrefix(text, "-F") || strings.HasPrefix(text, "-v")):
		case d.row.forbids(text), d.row.awk && d.command.mark(i)&MarkExpansion != 0:
			d.start(text, "may run a program or touch a file")
		case d.row.awk && awkWrites(text):
			d.depart(text, "writes a file")
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

// enter continues with another row. For a program without that row, no option is harmless.
func (d *departing) enter(key string) {
	d.row = d.table.row(key)
	d.single, d.subs = d.single || d.row.single, d.row.subs
	d.words, d.ended, d.end = 0, false, len(d.command.Words)
	if d.row.ask != "" {
		d.depart(d.title[strings.LastIndexByte(d.title, ' ')+1:], d.row.ask)
	}
	if d.row.always {
		d.start(d.title[strings.LastIndexByte(d.title, ' ')+1:], effectOf("|starts"))
	}
}

// depart records a departure. A rule can name it by its option.
func (d *departing) depart(option, why string) {
	d.found = append(d.found, Departure{
		Option: option, Why: "of " + d.title + " " + why, Starts: why == effectOf("|starts"), Unknown: why == unknownOption,
	})
}

// start records a departure that may start programs.
func (d *departing) start(option, why string) {
	d.depart(option, why)
	d.found[len(d.found)-1].Starts = true
}

// next judges the word at i and returns how many following words belong to it.
func (d *departing) next(i int) int {
	text := d.command.Words[i]
	if d.ended {
		d.word(i)
		return 0
	}
	d.mayBeOption(i)
	switch {
	case text == "--":
		d.ended, d.end = true, i
	case len(text) < 2 || text[0] != '-':
		d.word(i)
	case d.single:
		return d.whole(i, "-"+strings.TrimLeft(text, "-"))
	case strings.HasPrefix(text, "--"):
		return d.whole(i, text)
	default:
		return d.letters(i, text)
	}
	return 0
}

// mayBeOption records an expansion or a pattern that may become an option.
func (d *departing) mayBeOption(i int) {
	text, mark := d.command.Words[i], d.command.mark(i)
	switch {
	case mark&MarkExpansion != 0 && (startsOpen(text) || d.subs && d.row.starts && text[0] == '-'),
		mark&MarkPattern != 0 && text != "" && strings.IndexByte("*?[", text[0]) >= 0:
		d.depart(text, "may become an option; write -- or ./ before it")
		d.found[len(d.found)-1].Starts = d.row.execs || d.row.keys || d.subs && d.row.starts
	}
}

// startsOpen reports whether the first character of a word is only known at run time.
func startsOpen(text string) bool {
	text = strings.TrimLeft(text, `"`)
	return text == "" || strings.IndexByte("$`*?[@!+{", text[0]) >= 0
}

// word judges a word that is not an option.
func (d *departing) word(i int) {
	text := d.command.Words[i]
	if d.subs && d.words == 0 {
		if !strings.HasPrefix(text, "+") { // a toolchain of cargo
			d.sub(i)
		}
		return
	}
	switch {
	case d.row.dash && text == "-":
		return
	case d.row.sets && strings.Contains(text, "="): // env takes everything with a = for a variable, also a-b=1
		d.sets = append(d.sets, d.at(i))
		return
	case d.row.sed && !d.scripted:
		d.script(d.at(i))
	}
	d.words++
	if d.row.keys {
		d.setting(i)
	}
	if d.row.first > 0 && d.words >= d.row.first && !d.ended {
		d.ended, d.end = true, i+1
	}
	if d.row.first > 0 && d.words >= d.row.first {
		if d.row.follows() {
			d.from = i
			return
		}
	}
	if why := d.row.wordDeparts(text, d.words); why != "" {
		d.depart(text, why)
		d.found[len(d.found)-1].Starts = text[0] == '+' && d.row.starts || strings.Contains(text, "::") && !strings.Contains(text, "[")
	}
}

// at returns a word of the command.
func (d *departing) at(i int) word { return word{text: d.command.Words[i], mark: d.command.mark(i)} }

// script judges a script of sed.
func (d *departing) script(text word) {
	d.scripted = true
	if text.dynamic() || !sedShows(text.text) {
		d.start(text.text, "may run commands or use other files")
	}
}

// setting judges git config KEY VALUE and git config set KEY VALUE. Only settings that start nothing are harmless.
func (d *departing) setting(i int) {
	switch text := d.command.Words[i]; {
	case d.words == 1 && text == "set":
		d.words = 0
	case d.words == 2 && !harmlessSetting(strings.ToLower(d.command.Words[i-1])):
		d.start(d.command.Words[i-1], "changes what git does later")
	}
}

// harmlessSetting reports whether a key of git's configuration affects no program, file or address.
func harmlessSetting(key string) bool {
	for begin := range strings.FieldsSeq("user. author. committer. branch. pull. push. fetch. color. advice. commit.verbose commit.gpgsign rerere. rebase.auto merge.ff merge.conflictstyle " +
		"core.autocrlf core.filemode core.ignorecase core.eol core.quotepath core.safecrlf core.symlinks core.abbrev init.defaultbranch log. status. tag.sort tag.gpgsign gc. pack. " +
		"diff.renames diff.algorithm diff.colormoved diff.noprefix diff.context diff.mnemonicprefix help.autocorrect versionsort. column. format.pretty feature. index.") {
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
	case r.here && !staysHere(text) && !address(text):
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

// sub continues with the row of a subcommand. A word without a row is an ordinary one, unless the table has a row for
// others.
func (d *departing) sub(i int) {
	name := d.command.Words[i]
	if d.at(i).dynamic() && d.row.starts {
		d.start(name, "is not known before it runs")
	}
	for _, key := range [...]string{name, "other"} {
		if d.table[d.key+key] != nil {
			d.title += " " + clip(name)
			d.enter(d.key + key)
			d.key += name + " "
			return
		}
	}
	d.subs = false
	d.word(i)
}

// whole judges an option that is a whole word, perhaps with a value: --output=x, or -run x where options have one dash.
func (d *departing) whole(i int, text string) int {
	key, inline, attached := strings.Cut(text, "=")
	spelled, _, _ := strings.Cut(d.command.Words[i], "=")
	kind, effect := d.row.long(key)
	value, used := word{text: inline, mark: d.command.mark(i)}, 0
	if takesValue(kind) && !attached && i+1 < len(d.command.Words) {
		value, used = d.at(i+1), 1
	}
	if kind == "..." && !attached {
		return d.inner(i)
	}
	d.judge(spelled, kind, effect, value)
	return used
}

// inner skips the command after -exec, which is judged separately.
func (d *departing) inner(i int) int {
	to := i + 1
	for to < len(d.command.Words) && d.command.Words[to] != ";" && (d.command.Words[to] != "+" || d.command.Words[to-1] != "{}") {
		to++
	}
	d.execs = append(d.execs, [2]int{i, to})
	return to - i
}

// letters judges a word of one-letter options. In an old-style bundle, every letter may take a separate word.
func (d *departing) letters(i int, text string) int {
	used, bundle := 0, d.command.Words[i][0] != '-'
	if _, counts := d.row.harmless["-#"]; counts && strings.Trim(text[1:], "0123456789") == "" {
		return 0
	}
	for j := 1; j < len(text); j++ {
		whole := ""
		if j == 1 {
			whole = text
		}
		kind, effect := d.row.short(whole, text[j])
		value := word{}
		switch {
		case kind == "?":
			d.judge("-"+text[j:j+1], "", effect, value)
			return used
		case kind == "*":
			d.judge(d.command.Words[i], "", effect, value)
			return used
		case kind == "..." && j+1 == len(text):
			return d.inner(i)
		case takesValue(kind):
			if value = (word{text: text[j+1:], mark: d.command.mark(i)}); (value.text == "" || bundle) && i+used+1 < len(d.command.Words) {
				used++
				value = d.at(i + used)
			}
		}
		d.judge("-"+text[j:j+1], kind, effect, value)
		if takesValue(kind) && !bundle {
			return used
		}
	}
	return used
}

// judge records the departure of one option. kind is the notation for its value in the table.
func (d *departing) judge(option, kind, effect string, given word) {
	value := given.text
	switch kind {
	case "...": // and not in the words behind it
		d.start(option, effectOf("|starts"))
	case ":!":
		d.codes = append(d.codes, given)
	case ":{":
		d.replace = value
	case ":s":
		if d.scripted = true; effect == "" {
			d.script(given)
		}
	case ":;":
		d.ended, d.row = true, &anyRow
	}
	switch {
	case effect != "":
		d.depart(option, effect)
	case kind == ":/" && value != "" && !staysHere(value):
		d.depart(option, "leads out of this directory")
	case kind == ":@" && readsFile(value):
		d.depart(option, "reads or writes a file")
	case kind == ":-" && value != "-" && !strings.HasPrefix(value, "/dev/null") && value != "/dev/stdout":
		d.depart(option, "writes a file")
	case strings.HasPrefix(kind, ":~") && strings.Contains(strings.ToLower(value), kind[2:]):
		d.depart(option, "may run a program")
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

// address reports whether a word is an address on the network, such as https://host/path or user@host:path, rather than
// a path.
func address(text string) bool {
	host, rest, ok := strings.Cut(text, ":")
	if !ok || host == "" || strings.Contains(host, "/") || strings.HasPrefix(rest, ":") {
		return false
	}
	return !strings.HasPrefix(rest, "//") || listed("https http ssh git", host)
}

// plainVariable reports whether NAME=value for make neither sets a program of make itself nor is expanded by it.
func plainVariable(text string) bool {
	name, value, _ := strings.Cut(text, "=")
	name = strings.TrimRight(name, ":?+") // but not NAME!=, whose value is executed
	return isName(name) && !listed("SHELL MAKE MAKEFLAGS MAKEFILES MFLAGS GNUMAKEFLAGS MAKESHELL VPATH PATH", name) &&
		!strings.ContainsAny(value, "$`;|&<>()\n")
}
