package scan

import (
	_ "embed"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
)

// rulesText is the table of patterns; its first lines describe the format.
//
//go:embed rules.txt
var rulesText string

// rule is one pattern. Its matches begin with one of its phrases.
type rule struct {
	name, category string
	row            int // of the table
	phrases        []string
	expression     string                                     // "" if a function finds the matches
	find           func(h *hunt, p *progress, start, end int) // checks the phrase at this position
}

// rules are the patterns in the order of the table. A row with a mistake, which a test finds, is left out.
var rules = sync.OnceValue(func() []rule {
	list, _ := readRules(rulesText)
	return list
})

// readRules reads a table.
func readRules(text string) ([]rule, error) {
	var list []rule
	err := eachRow("rules.txt", text, func(number int, row string) error {
		line, inside := strings.CutPrefix(row, "  ")
		if !inside {
			words := strings.Fields(row)
			if len(words) != 2 {
				return errors.New("a rule begins with its name and its category")
			}
			list = append(list, rule{name: words[0], category: words[1], row: number})
			return nil
		}
		if len(list) == 0 {
			return errors.New("this belongs to no rule")
		}
		return list[len(list)-1].addLine(line)
	})
	for _, r := range list {
		if r.find == nil || r.phrases == nil {
			err = errors.Join(err, fmt.Errorf("rules.txt:%d: the phrases are missing, or what it matches", r.row))
		}
	}
	return list, err
}

// addLine adds a line to a rule.
func (r *rule) addLine(line string) error {
	if part, ok := strings.CutPrefix(line, "= "); ok {
		r.expression += part
		r.find = matchExpression(r.expression)
		return nil
	}
	if strings.HasPrefix(line, "hand ") {
		if r.find = handFinder(r.name); r.find == nil {
			return fmt.Errorf("no function finds %s", r.name)
		}
		return nil
	}
	r.phrases = append(r.phrases, expand(line)...)
	return nil
}

// matchExpression returns a function that finds an expression where a phrase was found.
func matchExpression(text string) func(h *hunt, p *progress, start, end int) {
	re := sync.OnceValue(func() *regexp.Regexp { // compiled on first use: few texts contain one of the phrases
		return regexp.MustCompile(written(text))
	})
	return func(h *hunt, p *progress, start, _ int) {
		if !p.free(start) {
			return
		}
		if loc := re().FindStringIndex(h.text[start:]); loc != nil {
			p.add(start, start+loc[1])
		}
	}
}

// written returns the expression that a text of the table stands for.
func written(text string) string {
	return `(?i)\A(?:` + strings.NewReplacer("$ws", ws, "_", ws+"+").Replace(text) + `)`
}

// handFinder returns the function that finds the matches of a rule; nil if there is none.
func handFinder(name string) func(h *hunt, p *progress, start, end int) {
	switch name {
	case "jailbreak":
		return wholeWord
	case "base64_payload":
		return payload
	case "markdown_image_exfil":
		return markdownImage
	case "html_image_exfil":
		return htmlImage
	case forgedTurns:
		return turn
	}
	return nil
}
