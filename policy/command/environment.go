package command

import (
	_ "embed"
	"strings"
	"sync"
)

// environmentText lists variables; see there.
//
//go:embed environment.txt
var environmentText string

// variableList is one list of variables.
type variableList struct {
	values map[string][]string // name → its only values; none = any
	begins []string
}

// environmentLists returns the two lists.
var environmentLists = sync.OnceValue(func() (lists map[string]*variableList) {
	lists = map[string]*variableList{"harmless": {}, "passed": {}}
	var into *variableList
	for line := range strings.Lines(environmentText) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		if name, rest, ok := strings.Cut(line, ":"); ok && lists[name] != nil {
			into, line = lists[name], rest
			into.values = map[string][]string{}
		}
		for entry := range strings.FieldsSeq(line) {
			into.addEntry(entry)
		}
	}
	return lists
})

// addEntry adds one entry.
func (l *variableList) addEntry(entry string) {
	name, values, limited := strings.Cut(entry, "=")
	switch {
	case limited:
		l.values[name] = strings.Split(values, "|")
	case strings.HasSuffix(name, "*"):
		l.begins = append(l.begins, strings.TrimSuffix(name, "*"))
	default:
		l.values[name] = nil
	}
}

// namesVariable reports whether the list contains a variable, and its only values; none = any.
func (l *variableList) namesVariable(name string) (values []string, ok bool) {
	if values, ok = l.values[name]; ok {
		return values, true
	}
	for _, begin := range l.begins {
		if strings.HasPrefix(name, begin) {
			return nil, true
		}
	}
	return nil, false
}

// Passed reports whether commands get a variable of the service's environment, if nothing else withholds it.
func Passed(name string) bool {
	_, ok := environmentLists()["passed"].namesVariable(name)
	return ok
}
