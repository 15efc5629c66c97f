package scan

import (
	"errors"
	"regexp"
	"strings"
)

// Fold returns the folded text and the way back, for tests.
func Fold(text string) (string, func(int) int) {
	f := fold(text, true)
	return f.text, f.at
}

// ReadTable returns what is wrong with a table of a kind.
func ReadTable(file, text string) (err error) {
	switch file {
	case "rules.txt":
		var list []rule
		list, err = readRules(text)
		for _, r := range list {
			if r.expression != "" {
				_, bad := regexp.Compile(written(r.expression))
				err = errors.Join(err, bad)
			}
		}
	case "orders.txt":
		_, err = readOrders(text)
	case "vocabulary.txt":
		_, err = readVocabulary(text, orderTable().concepts)
	case "conditions.txt":
		_, err = readSettings(text)
	}
	return err
}

// Conditioned returns the rules with conditions.
func Conditioned() (names []string) {
	for name := range settings() {
		names = append(names, strings.TrimPrefix(name, "strict "))
	}
	return names
}
