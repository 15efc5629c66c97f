package scan

import (
	_ "embed"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
)

// ordersText is the table of concepts and orders; its first lines describe the format.
//
//go:embed orders.txt
var ordersText string

// concept is an idea of which instructions to a model consist, regardless of words and language. A set of concepts is a
// bit mask.
type concept uint64

// Concepts that are no words.
const (
	sentenceEnd concept = 1 << 63
	colon       concept = 1 << 62 // or a comma; follows the name of somebody who is addressed
	foreign     concept = 1 << 61 // a word of a script without blanks
)

// orderList is what ordersText says.
type orderList struct {
	concepts map[string]concept // by name, and the named sets of them, which begin with $
	// rare in ordinary text: where one occurs, the text around it is searched for all of them
	anchors concept
	words   int // number of concepts that are words
	orders  []order
}

// orderTable returns the table. A row with a mistake, which a test finds, is left out.
var orderTable = sync.OnceValue(func() *orderList {
	list, _ := readOrders(ordersText)
	return list
})

// step is one concept of an order that must follow the previous one.
type step struct {
	any concept // one of these
	gap int     // at most this many bytes after the previous step
}

// order is one way to give instructions to a model, defined by the concepts that occur together.
type order struct {
	name, category string
	// one of each must occur, in any order, within span bytes; nil if there are steps
	all   []concept
	span  int
	steps []step  // in this order
	far   bool    // may extend beyond the end of a sentence
	not   concept // none of these may be among them
}

// readOrders reads a table.
func readOrders(text string) (*orderList, error) {
	l := &orderList{concepts: map[string]concept{"colon": colon, "foreign": foreign}}
	err := eachRow("orders.txt", text, func(_ int, row string) error {
		head, rest, ok := strings.Cut(row, ": ")
		if !ok {
			return errNoColon
		}
		words := strings.Fields(head)
		switch {
		case words[0] == "anchor" || words[0] == "concept":
			return l.addConcept(words)
		case words[0][0] == '$':
			set, err := l.set(rest)
			l.concepts[words[0]] = set
			return err
		}
		o, err := l.readOrder(words, rest)
		if err == nil {
			l.orders = append(l.orders, o)
		}
		return err
	})
	return l, err
}

// addConcept adds the concept of a row.
func (l *orderList) addConcept(words []string) error {
	if len(words) != 2 || l.concepts[words[1]] != 0 || l.words > 60 {
		return errors.New("a concept has one name, which is new, and there are at most 61")
	}
	c := concept(1) << l.words
	l.words++
	l.concepts[words[1]] = c
	if words[0] == "anchor" {
		l.anchors |= c
	}
	return nil
}

// set returns the concepts of alternatives that are joined by bars.
func (l *orderList) set(text string) (set concept, err error) {
	for name := range strings.SplitSeq(text, "|") {
		c := l.concepts[name]
		if c == 0 {
			return 0, fmt.Errorf("%q is no concept", name)
		}
		set |= c
	}
	return set, nil
}

// readOrder reads an order. words are its name, its category and the span, if it has one.
func (l *orderList) readOrder(words []string, text string) (o order, err error) {
	parts := strings.Split(text, ", ")
	for _, part := range parts[1:] {
		not, ok := strings.CutPrefix(part, "not ")
		switch {
		case part == "far":
			o.far = true
		case !ok:
			return o, fmt.Errorf("%q is neither far nor not", part)
		default:
			if o.not, err = l.set(not); err != nil {
				return o, err
			}
		}
	}
	gap := 0
	for word := range strings.FieldsSeq(parts[0]) {
		if number, ok := strings.CutPrefix(word, "<"); ok {
			gap, err = strconv.Atoi(number)
		} else {
			var set concept
			set, err = l.set(word)
			o.all, o.steps = append(o.all, set), append(o.steps, step{any: set, gap: gap})
		}
		if err != nil {
			return o, err
		}
	}
	switch len(words) {
	case 2:
		o.all = nil
	case 3:
		o.steps = nil
		o.span, err = strconv.Atoi(words[2])
	default:
		return o, errors.New("an order begins with its name, its category and perhaps a span")
	}
	o.name, o.category = words[0], words[1]
	return o, err
}

// event is a word of the vocabulary in a text.
type event struct {
	is         concept
	start, end int
}

// match tests the order with its first word at i, and returns the last event of the match.
func (o *order) match(events []event, i int) (last int, ok bool) {
	if o.steps != nil {
		return o.follow(events, i)
	}
	var seen, wanted concept
	for _, c := range o.all {
		wanted |= c
	}
	if events[i].is&wanted == 0 {
		return 0, false
	}
	for last = i; last < len(events) && events[last].end <= events[i].start+o.span; last++ {
		e := events[last].is
		if e&o.not != 0 || e == sentenceEnd && !o.far {
			return 0, false
		}
		if seen |= e; o.complete(seen) {
			return last, !o.refused(events, i, last)
		}
	}
	return 0, false
}

// complete reports whether one of each concept was seen.
func (o *order) complete(seen concept) bool {
	for _, c := range o.all {
		if seen&c == 0 {
			return false
		}
	}
	return true
}

// follow tests the steps in their order.
func (o *order) follow(events []event, i int) (last int, ok bool) {
	if events[i].is&o.steps[0].any == 0 {
		return 0, false
	}
	at, end := 1, events[i].end
	for last = i + 1; last < len(events); last++ {
		e := events[last]
		if e.start-end > o.steps[at].gap || e.is&o.not != 0 || e.is == sentenceEnd && !o.far {
			return 0, false
		}
		if e.start < end || e.is&o.steps[at].any == 0 {
			continue
		}
		if at, end = at+1, e.end; at == len(o.steps) {
			return last, !o.refused(events, i, last)
		}
	}
	return 0, false
}

// nearby is how many bytes before and after an order a word of another subject counts.
const nearby = 40

// refused reports whether one of the words that indicate another subject is nearby in the same sentence.
func (o *order) refused(events []event, first, last int) bool {
	for i := last + 1; i < len(events) && events[i].start < events[last].end+nearby &&
		events[i].is != sentenceEnd; i++ {
		if events[i].is&o.not != 0 {
			return true
		}
	}
	for i := first - 1; i >= 0 && events[i].end > events[first].start-nearby && events[i].is != sentenceEnd; i-- {
		if events[i].is&o.not != 0 {
			return true
		}
	}
	return false
}
