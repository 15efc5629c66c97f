package command

import "strings"

// optionRow is one row of a table of options, see tables/README.md.
type optionRow struct {
	harmless map[string]string // option → how it takes a value
	begins   []optionEntry     // harmless words that begin so
	risky    []optionEntry
	ask      string
	texts    []string // lower-case
	// first is the number of the word after which no options follow, most that of the last word
	// that is not written to; 0 = none.
	first, most                                                            int
	any, subs, here, address, at, plus, assign, single, bundled, awk, keys bool
	// command: the words from the first-th on are a command; joined: a shell runs them;
	// shell: without them it starts one.
	command, joined, shell bool
	sets, dash, sed        bool // NAME=value, and a dash, may come before; words are scripts of sed
	starts, execs, always  bool // options start programs, or are followed by a command; every use starts programs
}

// followsCommand reports whether the words end with a command.
func (r *optionRow) followsCommand() bool { return r.command || r.joined || r.shell }

// optionEntry is one option of a row.
type optionEntry struct {
	name   string
	kind   string // how it takes a value
	effect string // what harm it does; "" for none
}

// kindEvery marks an entry that stands for every word that begins so.
const kindEvery = "*"

// forbidsText reports whether a word contains one of the row's texts.
func (r *optionRow) forbidsText(text string) bool {
	if len(r.texts) == 0 {
		return false
	}
	text = strings.ToLower(text)
	for _, each := range r.texts {
		if strings.Contains(text, each) {
			return true
		}
	}
	return false
}

// longOption returns how an option that is a whole word takes a value, and what harm it does.
func (r *optionRow) longOption(key string) (kind, effect string) {
	kind, effect, known := r.findOption(key, key)
	if known {
		return kind, effect
	}
	if plain, ok := strings.CutPrefix(key, "--no-"); ok {
		if _, effect, known = r.findOption("--"+plain, ""); known && effect == "" {
			return "", ""
		}
	}
	return r.unknownOption()
}

// shortOption does the same for a one-letter option. word is the word that begins with it; ""
// if it is not the first letter.
func (r *optionRow) shortOption(word string, letter byte) (kind, effect string) {
	kind, effect, known := r.findOption("-"+string(letter), word)
	if known {
		return kind, effect
	}
	return r.unknownOption()
}

// unknownOption returns the answer for an option that the row does not list.
func (r *optionRow) unknownOption() (kind, effect string) {
	if r.any {
		return "", ""
	}
	return "", unknownOption
}

// unknownOption is what is wrong with an option that the row does not list.
const unknownOption = "is not known to be harmless"

// How close an entry of a table is to an option, in addition to the length of what they share.
const (
	exact     = 1000
	shortened = 500
)

// findOption searches an option in both parts of the row. The closer match counts; if both are equally close, the
// harmful one does. word is what an entry such as -W* is compared with.
func (r *optionRow) findOption(key, word string) (kind, effect string, known bool) {
	best := 0
	if found, ok := r.harmless[key]; ok {
		kind, best = found, exact
	} else if full := r.unabbreviate(key); full != "" {
		kind, best = r.harmless[full], 1
	} else {
		for i := range r.begins {
			if close := r.begins[i].matchLevel(key, word); close > best {
				kind, best = kindEvery, close
			}
		}
	}
	for i := range r.risky {
		e := &r.risky[i]
		if close := e.matchLevel(key, word); close > 0 && (close > best || close == best && effect == "") {
			kind, effect, best = e.kind, e.effect, close
		}
	}
	return kind, effect, best > 0
}

// unabbreviate returns the option of a program that runs others which key alone abbreviates; "" for none.
func (r *optionRow) unabbreviate(key string) (full string) {
	if !r.followsCommand() || len(key) < 3 || !strings.HasPrefix(key, "--") {
		return ""
	}
	for name := range r.harmless {
		switch {
		case !strings.HasPrefix(name, key):
		case full != "":
			return ""
		default:
			full = name
		}
	}
	return full
}

// matchLevel returns how close an entry is to an option, 0 for no match. Harmful entries also match abbreviated
// options, which getopt and git allow.
func (e *optionEntry) matchLevel(key, word string) int {
	switch {
	case e.kind == kindEvery:
		if word != "" && strings.HasPrefix(word, e.name) {
			return len(e.name)
		}
	case e.name == key:
		return exact
	case e.effect != "" && len(key) > 3 && strings.HasPrefix(key, "--") && strings.HasPrefix(e.name, key):
		return shortened
	}
	return 0
}
