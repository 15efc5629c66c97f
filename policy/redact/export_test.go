package redact

import "strings"

// Patterns returns the expressions of tokens that are recognised by their form, by name.
func Patterns() map[string][]string {
	list := map[string][]string{}
	for _, r := range rules() {
		if r.kind == none && !r.group {
			list[r.name] = append(list[r.name], strings.TrimPrefix(r.re.text, `\A`))
		}
	}
	return list
}

// ReadRules returns what is wrong with a table.
func ReadRules(text string) (rows int, err error) {
	list, err := readRules(text)
	return len(list), err
}

// Table is the table of this package.
func Table() string { return credentialsText }

// Compile compiles every expression of the package, which otherwise happens on first use.
func Compile() (compiled int) {
	for _, r := range rules() {
		if r.re != nil {
			r.re.get()
			compiled++
		}
	}
	single := []*pattern{
		tails, compounds, stopWords, wordParts, identifier, variable, pathLike, typeLike, constant, hexDigits, allDigits, prose,
		secretObject, secretData, dataLine,
	}
	for _, p := range single {
		p.get()
	}
	return compiled + len(single)
}
