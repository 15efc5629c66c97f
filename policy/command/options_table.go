package command

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// tables holds one file for each program; tables/README.md describes their format.
//
//go:embed tables/*.txt
var tables embed.FS

// optionTable are the options of a program by its subcommands; "@" is the row before any.
type optionTable map[string]*optionRow

// optionTables are the tables of all programs.
type optionTables struct {
	programs  map[string]optionTable
	versioned map[string]optionTable // programs whose name may end in a version
}

// knownTables returns the embedded tables. If a file is wrong, which a test finds, nothing is known to be harmless for
// its programs.
var knownTables = sync.OnceValue(func() optionTables {
	list, _ := readTables(tables)
	return list
})

// tableOf returns the table of a program by its lower-case name; nil if it has none.
func tableOf(name string) optionTable {
	list := knownTables()
	if table, ok := list.programs[name]; ok {
		return table
	}
	stem := cutVersion(name)
	switch {
	case isShell(stem):
		stem = "bash"
	case strings.HasPrefix(name, "ld-linux"), strings.HasPrefix(name, "ld-musl"):
		stem = "ld.so"
	}
	return list.versioned[stem]
}

// cutVersion returns a name without the version that those of interpreters and compilers often end in.
func cutVersion(name string) string { return strings.TrimRight(name, "0123456789.-") }

// rowOf returns a row of a table; the empty one, in which nothing is harmless, if there is none.
func (t optionTable) rowOf(key string) *optionRow {
	if row := t[key]; row != nil {
		return row
	}
	return &noRow
}

// tableLine is one line of a table, with those that continue it.
type tableLine struct {
	at          string // file and line
	names, rest string
}

// readTables reads every file of a directory tables. The error joins all that is wrong with them.
func readTables(dir fs.FS) (optionTables, error) {
	list := optionTables{programs: map[string]optionTable{}, versioned: map[string]optionTable{}}
	files, _ := fs.Glob(dir, "tables/*.txt") // its only error is about the pattern
	var errs []error
	lines := make([][]tableLine, len(files))
	parts := map[string]string{}
	for i, file := range files {
		text, err := fs.ReadFile(dir, file)
		if err == nil {
			lines[i], err = readLines(file, string(text), parts)
		}
		errs = append(errs, err)
	}
	for i, file := range files {
		errs = append(errs, list.addTables(file, lines[i], parts))
	}
	return list, errors.Join(errs...)
}

// readLines joins the lines of a table, and takes the named parts out of it.
func readLines(file, text string, parts map[string]string) (list []tableLine, err error) {
	number := 0
	for line := range strings.Lines(text) {
		number++
		at := file + ":" + strconv.Itoa(number)
		line = strings.TrimSuffix(line, "\n")
		switch {
		case strings.TrimSpace(line) == "" || line[0] == '#':
			continue
		case line[0] == ' ':
			if len(list) == 0 {
				return nil, fmt.Errorf("%s: the first line continues nothing", at)
			}
			list[len(list)-1].rest += line
			continue
		}
		list = append(list, tableLine{at: at, rest: line})
	}
	kept := list[:0]
	for _, each := range list {
		end := ":"
		if strings.HasPrefix(each.rest, "@ ") {
			end = " "
		}
		var ok bool
		each.names, each.rest, ok = strings.Cut(each.rest, end)
		switch {
		case !ok:
			return nil, fmt.Errorf("%s: no colon after the names of the row", each.at)
		case each.names[0] != '$':
			kept = append(kept, each)
		case parts[each.names] != "":
			return nil, fmt.Errorf("%s: %s is defined twice", each.at, each.names)
		default:
			parts[each.names] = each.rest
		}
	}
	return kept, nil
}

// addTables adds the tables in one file.
func (t *optionTables) addTables(file string, lines []tableLine, parts map[string]string) error {
	var table optionTable
	var errs []error
	for _, line := range lines {
		if into := map[string]map[string]optionTable{
			"programs":  t.programs,
			"versioned": t.versioned,
		}[line.names]; into != nil {
			table = optionTable{}
			for name := range strings.FieldsSeq(line.rest) {
				if into[name] != nil {
					errs = append(errs, fmt.Errorf("%s: %s has two tables", line.at, name))
				}
				into[name] = table
			}
			continue
		}
		if table == nil {
			break
		}
		row, err := readRow(line.rest, parts)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", line.at, err))
			continue
		}
		for name := range strings.SplitSeq(line.names, ",") {
			name = strings.Join(strings.Fields(name), " ")
			if table[name] != nil || name == "" {
				errs = append(errs, fmt.Errorf("%s: %q has two rows, or none", line.at, name))
			}
			table[name] = row
		}
	}
	switch {
	case table == nil:
		errs = append(errs, fmt.Errorf("%s: the first row is not the programs of the table", file))
	case table["@"] == nil:
		errs = append(errs, fmt.Errorf("%s: the row @ is missing", file))
	}
	return errors.Join(errs...)
}

// notation splits an option of a table from the notation for its value.
var notation = regexp.MustCompile(`^(-.+?)(:~.+|:[/@;!{s-]?|\?|\.\.\.|\*)?$`)

// readRow reads a row. parts are the named parts of all tables.
func readRow(text string, parts map[string]string) (*optionRow, error) {
	r := &optionRow{harmless: map[string]string{}}
	effect, began := "", false
	for token, rest := nextToken(text); token != ""; token, rest = nextToken(rest) {
		switch {
		case token[0] == '$':
			if parts[token] == "" {
				return nil, fmt.Errorf("%s is not defined", token)
			}
			rest = parts[token] + " " + rest
		case token[0] == '|':
			if effect = effectOf(token); effect == "" {
				return nil, fmt.Errorf("%s is no effect", token)
			}
		case token == "-":
			began = true
		case token[0] == '-':
			began = true
			r.addOption(token, effect)
		case began || effect != "":
			return nil, fmt.Errorf("%q stands behind an option, but is none", token)
		case token == "ask":
			if r.ask = strings.Join(strings.Fields(rest), " "); r.ask == "" {
				return nil, errors.New("ask without a reason")
			}
			return r, nil
		case !r.setProperty(token):
			return nil, fmt.Errorf("%q is not known", token)
		}
	}
	return r, nil
}

// nextToken returns the first word of a text and what follows it.
func nextToken(text string) (token, rest string) {
	text = strings.TrimLeft(text, " ")
	token, rest, _ = strings.Cut(text, " ")
	return token, rest
}

// addOption adds one option to the row.
func (r *optionRow) addOption(token, effect string) {
	parts := notation.FindStringSubmatch(token)
	e := optionEntry{name: parts[1], kind: parts[2], effect: effect}
	r.execs = r.execs || e.kind == "..."
	r.starts = r.starts || r.execs || effect == effectOf("|starts")
	switch {
	case effect != "":
		r.risky = append(r.risky, e)
	case e.kind == kindEvery:
		r.begins = append(r.begins, e)
	default:
		if _, ok := r.harmless[e.name]; !ok {
			r.harmless[e.name] = e.kind
		}
	}
}

// setProperty sets what a word before the options says about a row. It returns false for a word that says nothing.
func (r *optionRow) setProperty(token string) bool {
	name, value, _ := strings.Cut(token, "=")
	number := 0
	if len(value) == 1 && value[0] > '0' && value[0] <= '9' {
		number = int(value[0] - '0')
	}
	flags := map[string]*bool{
		"*":       &r.any,
		"sub":     &r.subs,
		"here":    &r.here,
		"addr":    &r.address,
		"at":      &r.at,
		"plus":    &r.plus,
		"assign":  &r.assign,
		"single":  &r.single,
		"bundled": &r.bundled,
		"awk":     &r.awk,
		"keys":    &r.keys,
		"command": &r.command,
		"joined":  &r.joined,
		"shell":   &r.shell,
		"sets":    &r.sets,
		"dash":    &r.dash,
		"sed":     &r.sed,
		"starts":  &r.always,
	}
	switch {
	case token[0] == '~' && len(token) > 1:
		r.texts = append(r.texts, strings.ToLower(token[1:]))
	case name == "first" && number > 0:
		r.first = number
	case name == "words" && number > 0:
		r.most = number
	case flags[token] != nil:
		*flags[token] = true
	default:
		return false
	}
	return true
}

// effectOf describes what the options after a keyword of the table do; "" for no keyword.
func effectOf(word string) string {
	switch word {
	case "|starts":
		return "starts another program"
	case "|runs":
		return "may run a program"
	case "|writes":
		return "writes a file"
	case "|leaves":
		return "leads out of this directory"
	case "|reads":
		return "reads a file that it obeys"
	}
	return ""
}
