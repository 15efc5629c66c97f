package redact

import (
	_ "embed"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
)

// credentialsText is the table of rules; its first lines describe the format.
//
//go:embed credentials.txt
var credentialsText string

// rules is the table, shared by all Redactors. A row with a mistake, which a test finds, is left out.
var rules = sync.OnceValue(func() []rule {
	list, _ := readRules(credentialsText)
	return list
})

// rule describes one form of credential.
type rule struct {
	name     string
	keywords string // in lower case, separated by blanks; the expression is tried where one of them occurs
	re       *pattern
	edge     bool // the keyword must not follow a letter, digit, _ or -
	// the five to twelve digits before the keyword belong to the credential and are required: a bot's token
	digits  bool
	back    int     // bytes before the keyword that belong to the credential
	mixed   bool    // it must contain a digit or an upper-case letter
	entropy float64 // minimum bits per byte
	digit   bool    // it must contain a digit
	host    bool    // it is not a credential before an @
	exact   bool    // it has a fixed length and must not continue
	written bool    // people write such values, and placeholders for them
	encoded bool    // it is the base64 of name, colon and password
	kind    kind    // it is a value that is assigned to a name with the keyword; the expression is not used
	body    string  // with back: the allowed bytes before the keyword; empty = letters, digits and underscores
	group   bool    // the first group of the expression is the credential; otherwise all of it
	line    int     // of the table
	// something must be assigned to the name that begins with the keyword
	assigned bool
	pem      bool // the expression matches the first line; the credential continues to the last one
}

// readRules reads a table. The error joins all that is wrong with it, by line.
func readRules(text string) ([]rule, error) {
	var list []rule
	var errs []error
	number := 0
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimSuffix(line, "\n")
		var err error
		switch expression, ok := strings.CutPrefix(line, "  "); {
		case line == "" || line[0] == '#':
		case !ok:
			var r rule
			if r, err = readRule(line); err == nil {
				r.line = number
				list = append(list, r)
			}
		case len(list) == 0 || !list[len(list)-1].setExpression(expression):
			err = errors.New("this expression belongs to no row")
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("credentials.txt:%d: %w", number, err))
		}
	}
	for _, r := range list {
		if r.kind == none && r.re == nil {
			errs = append(errs, fmt.Errorf("credentials.txt:%d: no expression", r.line))
		}
	}
	return list, errors.Join(errs...)
}

// setExpression sets the expression of a rule. It returns false if the rule has one, or can have none.
func (r *rule) setExpression(text string) bool {
	if r.re != nil || r.kind != none {
		return false
	}
	if !r.group {
		text = "(" + text + ")"
	}
	r.re = lazily(`\A` + text)
	return true
}

// readRule reads the first line of a row.
func readRule(line string) (rule, error) {
	head, keywords, ok := strings.Cut(line, ": ")
	words := strings.Fields(head)
	if !ok || len(words) == 0 || strings.TrimSpace(keywords) == "" {
		return rule{}, errors.New("a row is: name and properties, a colon, a blank, keywords")
	}
	if keywords != strings.ToLower(keywords) {
		return rule{}, errors.New("keywords are in lower case")
	}
	r := rule{name: words[0], keywords: keywords, edge: true}
	for _, word := range words[1:] {
		if !r.setProperty(word) {
			return rule{}, fmt.Errorf("%q is no property", word)
		}
	}
	return r, nil
}

// setProperty sets a property of a rule. It returns false for a word that is none.
func (r *rule) setProperty(word string) bool {
	name, value, _ := strings.Cut(word, "=")
	var err error
	switch name {
	case "inside":
		r.edge = false
	case "group":
		r.group, r.edge = true, false
	case "edge":
		r.edge = true
	case "digits":
		r.digits = true
	case "back":
		r.back, err = strconv.Atoi(value)
	case "body":
		r.body = value
	case "mixed":
		r.mixed = true
	case "digit":
		r.digit = true
	case "entropy":
		r.entropy, err = strconv.ParseFloat(value, 64)
	case "host":
		r.host = true
	case "exact":
		r.exact = true
	case "written":
		r.written = true
	case "encoded":
		r.encoded = true
	case "assigned":
		r.assigned = true
	case "pem":
		r.pem = true
	case "password":
		r.kind, r.edge = password, false
	case "secret":
		r.kind, r.edge = secret, false
	case "service":
		r.kind, r.edge = service, false
	default:
		return false
	}
	return err == nil
}
