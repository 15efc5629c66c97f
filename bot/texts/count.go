package texts

import (
	"fmt"
	"io"
	"slices"

	"golang.org/x/text/feature/plural"
	"golang.org/x/text/language"

	"github.com/zephbot/zephbot/bot/texts/languages"
)

// count is a sentence about a number, in each form that the plurals of its language need: singular, plural, few, many;
// at last the language, "" = English. Each form leaves open the same.
type count [5]string

// The fields of a count.
const (
	oneForm = iota
	otherForm
	fewForm
	manyForm
	languageOfForms
)

// formNames are what the forms are called in files.
var formNames = [...]string{oneForm: "one", otherForm: "other", fewForm: "few", manyForm: "many"}

// say says the sentence with a number.
func (c count) say(n int) string { return c.with(n, n) }

// with says the sentence with these values, in the form that fits n.
func (c count) with(n int, values ...any) string {
	for i, value := range values {
		if n, ok := value.(int); ok && (n >= 1000 || n <= -1000) {
			values[i] = grouped{n, c[languageOfForms]}
		}
	}
	return fmt.Sprintf(c[formOf(c[languageOfForms], n)], values...)
}

// grouped is a large number in a sentence: with the marks of its language between the thousands.
type grouped struct {
	n        int
	language string
}

// Format implements fmt.Formatter.
func (g grouped) Format(f fmt.State, _ rune) {
	_, _ = io.WriteString(f, Words{}.number(g.language, int64(g.n))) // fmt's own buffer
}

// formOf is the form for a number in a language.
func formOf(tag string, n int) int {
	if tag == "" {
		tag = languages.Standard
	}
	switch plural.Cardinal.MatchPlural(language.Make(tag), max(n, -n), 0, 0, 0, 0) {
	case plural.One:
		return oneForm
	case plural.Few:
		return fewForm
	case plural.Many:
		return manyForm
	default:
		return otherForm
	}
}

// formsOf lists the forms that a language needs for whole numbers.
func formsOf(tag string) []int {
	var forms []int
	for n := range 200 {
		if form := formOf(tag, n); !slices.Contains(forms, form) {
			forms = append(forms, form)
		}
	}
	slices.Sort(forms)
	return forms
}
