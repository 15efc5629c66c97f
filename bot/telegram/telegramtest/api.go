package telegramtest

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
)

//go:embed api.txt
var apiTable string

// api is what a request may hold: the parts of api.txt, by "method NAME" and "object NAME".
type api map[string]map[string]slot

// slot is a parameter of a method or a field of an object.
type slot struct {
	form     form
	required bool
}

// form is a type with its limits.
type form struct {
	kind  string // as in api.txt
	words []string
	of    string // object of json
	item  *form  // of list
	low   float64
	high  float64
}

// theAPI parses the table once.
var theAPI = sync.OnceValues(func() (api, error) { return parseAPI(apiTable) }) //nolint:gochecknoglobals // parsed once

// parseAPI parses the table.
func parseAPI(text string) (api, error) {
	out := api{}
	var part map[string]slot
	for n, line := range strings.Split(text, "\n") {
		words := strings.Fields(line)
		switch {
		case len(words) == 0 || strings.HasPrefix(line, "#"):
		case !strings.HasPrefix(line, " "):
			part = map[string]slot{}
			out[strings.Join(words, " ")] = part
		case strings.HasPrefix(words[0], "+"):
			group := out["group "+words[0][1:]]
			if group == nil {
				return nil, fmt.Errorf("line %d: no group %s before it", n+1, words[0][1:])
			}
			maps.Copy(part, group)
		default:
			f, err := parseForm(words[1:])
			if err != nil {
				return nil, fmt.Errorf("line %d: %w", n+1, err)
			}
			name, required := strings.CutSuffix(words[0], "!")
			part[name] = slot{f, required}
		}
	}
	return out, nil
}

// parseForm parses a type.
func parseForm(words []string) (form, error) {
	f := form{low: math.Inf(-1), high: math.Inf(1)}
	if len(words) == 0 {
		return f, fmt.Errorf("a parameter without a type")
	}
	f.kind, words = words[0], words[1:]
	if n := len(words); n > 0 && strings.Contains(words[n-1], "..") {
		low, high, _ := strings.Cut(words[n-1], "..")
		var err error
		if f.low, err = strconv.ParseFloat(low, 64); err != nil {
			return f, fmt.Errorf("limit %q", words[n-1])
		}
		if high != "" {
			if f.high, err = strconv.ParseFloat(high, 64); err != nil {
				return f, fmt.Errorf("limit %q", words[n-1])
			}
		}
		words = words[:n-1]
	}
	rest := strings.Join(words, " ")
	switch f.kind {
	case "word":
		if rest != "" {
			f.words = strings.Split(rest, "|")
		}
	case "json":
		f.of = rest
	case "list":
		f.item = &form{kind: "json", of: rest}
		if slices.Contains([]string{"id", "int", "word", "text", "block"}, rest) {
			f.item = &form{kind: rest, low: math.Inf(-1), high: math.Inf(1)}
		}
	case "chat", "id", "int", "number", "bool", "text", "bytes", "file", "keyboard", "block":
	default:
		return f, fmt.Errorf("no type %q", f.kind)
	}
	return f, nil
}

// fits returns what is wrong with the parameters of a request that was accepted.
func (a api) fits(method string, r *request) []string {
	part, known := a["method "+method]
	if !known {
		return nil // TestEveryMethodIsInTheTable says so
	}
	var wrong []string
	say := func(name, format string, args ...any) {
		wrong = append(wrong, method+": "+name+" "+fmt.Sprintf(format, args...))
	}
	for name, raw := range r.params {
		s, ok := part[name]
		if !ok {
			say(name, "is no parameter of it")
			continue
		}
		if s.form.kind == "file" {
			continue
		}
		a.check(name, s.form, decoded(s.form, raw), say)
	}
	for name, s := range part {
		_, given := r.params[name]
		_, uploaded := r.uploads[name]
		if s.required && !given && !uploaded {
			say(name, "is missing")
		}
	}
	for name := range r.uploads {
		if s, ok := part[name]; !ok && !refersTo(r, name) || ok && s.form.kind != "file" {
			say(name, "is an upload that nothing refers to")
		}
	}
	return wrong
}

// refersTo reports whether a parameter names an upload.
func refersTo(r *request, part string) bool {
	for _, value := range r.params {
		if strings.Contains(value, "attach://"+part+`"`) || value == "attach://"+part {
			return true
		}
	}
	return false
}

// decoded reads a parameter, which comes as text, by its type.
func decoded(f form, raw string) any {
	switch f.kind {
	case "text", "bytes", "word":
		return raw
	case "chat":
		if strings.HasPrefix(raw, "@") {
			return raw
		}
	}
	d := json.NewDecoder(strings.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return raw
	}
	return v
}

// tell reports what is wrong with a parameter.
type tell func(name, format string, args ...any)

// check compares a value with its type.
func (a api) check(name string, f form, v any, say tell) {
	switch f.kind {
	case "list", "keyboard":
		a.checkList(name, f, v, say)
		return
	case "json":
		a.checkObject(name, f.of, v, say)
		return
	case "block": // of a rich message; its kinds are checked when it is received
		return
	}
	switch v := v.(type) {
	case string:
		f.checkText(name, v, say)
	case json.Number:
		f.checkNumber(name, v, say)
	case bool:
		if f.kind != "bool" {
			say(name, "is %t, not of type %s", v, f.kind)
		}
	default:
		say(name, "is %T, not of type %s", v, f.kind)
	}
}

func (f form) within(name string, n float64, say tell) {
	if n < f.low || n > f.high {
		say(name, "is %v, outside of %v..%v", n, f.low, f.high)
	}
}

func (f form) checkText(name, v string, say tell) {
	switch {
	case f.kind == "text":
		f.within(name, float64(units(v)), say)
	case f.kind == "bytes":
		f.within(name, float64(len(v)), say)
	case f.kind == "word" && len(f.words) > 0 && !slices.Contains(f.words, v):
		say(name, "is %q, none of %q", v, f.words)
	case f.kind == "word", f.kind == "file", f.kind == "chat" && strings.HasPrefix(v, "@"):
	default:
		say(name, "is the text %q, not of type %s", v, f.kind)
	}
}

func (f form) checkNumber(name string, v json.Number, say tell) {
	n, err := v.Float64()
	switch {
	case err != nil, f.kind != "number" && n != math.Trunc(n),
		!slices.Contains([]string{"chat", "id", "int", "number"}, f.kind):
		say(name, "is the number %s, not of type %s", v, f.kind)
	case f.kind == "id" && n == 0:
		say(name, "is 0")
	default:
		f.within(name, n, say)
	}
}

// Limits of an inline keyboard.
const (
	keyboardRow = 8
	keyboardAll = 100
)

func (a api) checkList(name string, f form, v any, say tell) {
	list, ok := v.([]any)
	if !ok {
		say(name, "is no list")
		return
	}
	if f.kind == "list" {
		if n := float64(len(list)); n < f.low || n > f.high {
			say(name, "has %v items, outside of %v..%v", n, f.low, f.high)
		}
		for i, item := range list {
			a.check(fmt.Sprintf("%s[%d]", name, i), *f.item, item, say)
		}
		return
	}
	all := 0
	for i, row := range list {
		keys, ok := row.([]any)
		if all += len(keys); !ok || len(keys) == 0 || len(keys) > keyboardRow || all > keyboardAll {
			say(name, "row %d has %d buttons", i, len(keys))
		}
		for j, key := range keys {
			a.checkObject(fmt.Sprintf("%s[%d][%d]", name, i, j), "InlineKeyboardButton", key, say)
		}
	}
}

func (a api) checkObject(name, object string, v any, say tell) {
	fields, ok := v.(map[string]any)
	part, known := a["object "+object]
	if !ok || !known {
		say(name, "is no %s", object)
		return
	}
	for field, value := range fields {
		s, ok := part[field]
		if !ok {
			say(name+"."+field, "is no field of %s", object)
			continue
		}
		a.check(name+"."+field, s.form, value, say)
	}
	for field, s := range part {
		if _, given := fields[field]; s.required && !given {
			say(name+"."+field, "is missing")
		}
	}
}

// fits records what is wrong with a request that was accepted.
func (s *Server) fits(method string, r *request) {
	table, err := theAPI()
	wrong := table.fits(method, r)
	if err != nil {
		wrong = []string{"the table of the Bot API: " + err.Error()}
	}
	if len(wrong) == 0 {
		return
	}
	slices.Sort(wrong)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.problems = append(s.problems, wrong...)
}
