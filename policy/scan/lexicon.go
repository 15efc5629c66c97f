package scan

import (
	_ "embed" // vocabulary.txt
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// concept is an idea of which instructions to a model consist, regardless of words and language. A set of concepts is a
// bit mask.
type concept uint64

// Concepts. Those before anchorsEnd are rare in ordinary text: where one occurs, the text around it is searched for all
// of them.
const (
	drop        concept = 1 << iota // ignore, forget, disregard
	void                            // no longer applies, is superseded
	prompt                          // the text before the conversation
	verbatim                        // word for word
	untold                          // do not tell
	secretly                        // in the dark
	keyFile                         // files that contain keys
	machine                         // the model is addressed
	unasked                         // without approval
	consent                         // somebody has already agreed
	authority                       // claims to be in charge
	redirect                        // the real task is another one
	free                            // without rules
	dialogue                        // the conversation as data to take
	memory                          // remember this for ever
	whatever                        // regardless of what is found
	carbon                          // copies to a further address
	roleObject                      // {"role": "system"
	obey                            // follow only this
	foremost                        // call this before any other
	steal                           // immediate harm: pipe to a shell, remove everything
	anchorsEnd                      // the first concept that is not an anchor
	softly                          // silently
	respond                         // what to answer
	colon                           // follows the name of an addressee
	foreign                         // a word of a script without blanks
	instruction                     // instructions, guidelines, prompts
	rules_                          // weaker: rules, limits, policy
	past                            // previous, above
	every                           // all, any
	yours                           // your
	you                             // you
	reveal                          // print, show, output
	user                            // the person
	note                            // this message
	secret                          // keys, passwords
	send                            // upload, forward, post
	put                             // include, append, pass
	parameter                       // argument, field, the next call
	target                          // the address below, this server
	address                         // https://, name@host
	use                             // call, invoke
	tool                            // tool, function
	before                          // first, prior to
	must                            // must, mandatory, otherwise
	act                             // verbs for what agents are made to do
	become                          // you are now, act as
	now                             // from now on
	off                             // disabled, suspended
	mail                            // mails, messages, answers
	always                          // every, each, whenever
	technical                       // rules and instructions of other kinds
	letter                          // a mail that was sent in error, a recipe, a leaflet
	sentenceEnd
)

const anchors = anchorsEnd - 1

//go:embed vocabulary.txt
var vocabularyText string

// conceptNames lists the names of the concepts in vocabulary.txt, in the order of the constants.
const conceptNames = "drop void prompt verbatim untold secretly keyFile machine unasked consent authority redirect free dialogue memory whatever carbon roleObject obey foremost steal anchorsEnd softly respond colon foreign instruction rules past every yours you reveal user note secret send put parameter target address use tool before must act become now off mail always technical letter sentenceEnd"

// vocabulary returns the words of each concept; for the notation see expand.
func vocabulary() map[concept][]string {
	names := strings.Fields(conceptNames)
	list := map[concept][]string{}
	for line := range strings.Lines(vocabularyText) {
		name, row, _ := strings.Cut(strings.TrimSpace(line), ": ")
		if i := slices.Index(names, name); i >= 0 {
			list[1<<i] = append(list[1<<i], row)
		}
	}
	return list
}

// word is one entry of the vocabulary, folded like texts.
type word struct {
	text    string
	concept concept
	stem    bool // any ending may follow
	loose   bool // from a script without blanks or one that joins words
}

// words returns the vocabulary. With glued, the words contain no blanks.
func words(glued bool) []word {
	var list []word
	for c, rows := range vocabulary() {
		for _, row := range rows {
			for _, text := range expand(row) {
				for _, form := range forms(text) {
					list = append(list, entry(form, c, glued))
				}
			}
		}
	}
	return list
}

// forms returns the forms of a word that folding does not unify: Cyrillic capitals resemble other Latin letters than
// small ones.
func forms(text string) []string {
	if strings.ContainsFunc(text, func(r rune) bool { return unicode.Is(unicode.Cyrillic, r) }) {
		first, size := utf8.DecodeRuneInString(text)
		return []string{text, string(unicode.ToUpper(first)) + text[size:], strings.ToUpper(text)}
	}
	return []string{text}
}

// entry folds a word.
func entry(text string, c concept, glued bool) word {
	f := fold(text, false)
	w := word{text: level(strings.ToLower(f.text)), concept: c}
	w.text, w.stem = strings.CutSuffix(w.text, "*")
	w.text = strings.Join(strings.Fields(w.text), " ")
	first, _ := utf8.DecodeRuneInString(w.text)
	w.loose = first >= 0x590
	if glued {
		w.text = strings.ReplaceAll(w.text, " ", "")
	}
	return w
}

// letterByte reports whether c belongs to a word: a letter, a digit, or a byte of a non-ASCII letter.
func letterByte(c byte) bool { return c != '_' && wordByte(c) || c >= utf8.RuneSelf }

// level replaces what joins words by blanks, keeping the length.
func level(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '_' || r == '-' {
			return ' '
		}
		return r
	}, text)
}
