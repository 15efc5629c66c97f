package content

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/mail"
	"net/url"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Parse converts what a person wrote for a field. A boolean accepts yes, 1, no and 0. An integer is a signed 64-bit
// integer; a number is finite. An enum accepts the number of an option, counted from 1, or its text; a multi-select
// accepts several of those, separated by commas. Other text is trimmed and used as it is. An empty text selects the
// default; without one it leaves the field out (nil), or is an error if the field is required. Errors are sentences for
// the person.
func Parse(f Field, text string) (any, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		switch {
		case f.Default != nil:
			return f.Default, nil
		case f.Required && (f.Type != String || f.MinLength == nil || *f.MinLength > 0):
			return nil, errors.New("a value is needed")
		case f.Required:
			return "", nil
		}
		return nil, nil
	}
	value, err := f.read(text)
	if err != nil {
		return nil, err
	}
	if err := f.Validate(value); err != nil {
		return nil, err
	}
	return value, nil
}

// YesNo reads what a person answers to a question with yes or no: a word or its first letter, in any case and any
// language that the service speaks, or what programs write for it. ok is false if it is none of these.
func YesNo(text string) (yes, ok bool) {
	switch strings.ToLower(strings.TrimSpace(text)) {
	case "y", "yes", "j", "ja", "s", "si", "sí", "д", "да", "true", "on", "1":
		return true, true
	case "n", "no", "nein", "н", "нет", "false", "off", "0":
		return false, true
	}
	return false, false
}

func (f Field) read(text string) (any, error) {
	switch f.Type {
	case Boolean:
		if yes, ok := YesNo(text); ok {
			return yes, nil
		}
		return nil, errors.New("answer y or n")
	case Integer:
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, errors.New("write a whole number")
		}
		return n, nil
	case Number:
		n, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsNaN(n) || math.IsInf(n, 0) {
			return nil, errors.New("write a number")
		}
		return n, nil
	case Enum:
		return f.choose(text)
	case Multi:
		return f.chooseAll(text)
	default:
		if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
			return nil, errors.New("write text")
		}
		return text, nil
	}
}

// choose finds an option by its number, or by its value or title regardless of case.
func (f Field) choose(text string) (string, error) {
	if n, err := strconv.Atoi(text); err == nil && n >= 1 && n <= len(f.Options) {
		return f.Options[n-1].Value, nil
	}
	for _, o := range f.Options {
		if o.Value == text { // exact matches first: two options may differ only in case
			return o.Value, nil
		}
	}
	for _, o := range f.Options {
		if strings.EqualFold(strings.TrimSpace(o.Value), text) || strings.EqualFold(o.Title, text) {
			return o.Value, nil
		}
	}
	return "", fmt.Errorf("choose one of the options by its number, 1 to %d, or by its text", len(f.Options))
}

func (f Field) chooseAll(text string) ([]string, error) {
	if v, err := f.choose(text); err == nil { // an option may contain a comma
		return []string{v}, nil
	}
	chosen := []string{}
	for part := range strings.SplitSeq(text, ",") {
		v, err := f.choose(strings.TrimSpace(part))
		if err != nil {
			return nil, fmt.Errorf("choose options by their numbers, 1 to %d, with commas between them", len(f.Options))
		}
		if !slices.Contains(chosen, v) {
			chosen = append(chosen, v)
		}
	}
	return chosen, nil
}

// Validate checks a value for the field, from Parse or from JSON. Errors are sentences for the person.
func (f Field) Validate(value any) error {
	switch v := f.normal(value).(type) {
	case bool:
		if f.Type == Boolean {
			return nil
		}
	case string:
		switch f.Type {
		case String:
			return f.checkText(v)
		case Enum:
			if slices.ContainsFunc(f.Options, func(o Option) bool { return o.Value == v }) {
				return nil
			}
			return errors.New("it is none of the options")
		}
	case int64:
		if f.Type == Integer {
			return f.checkRange(float64(v))
		}
	case float64:
		if f.Type == Number && !math.IsNaN(v) && !math.IsInf(v, 0) {
			return f.checkRange(v)
		}
	case []string:
		if f.Type == Multi {
			return f.checkChoice(v)
		}
	}
	return f.mistyped()
}

// mistyped returns the error that says what type the field wants.
func (f Field) mistyped() error {
	switch f.Type {
	case Boolean:
		return errors.New("it has to be yes or no")
	case Integer:
		return errors.New("it has to be a whole number")
	case Number:
		return errors.New("it has to be a number")
	case Enum:
		return errors.New("it has to be one of the options")
	case Multi:
		return errors.New("it has to be a list of options")
	default:
		return errors.New("it has to be text")
	}
}

// normal converts the forms that a value can have to one: whole numbers to int64, lists to []string. Other values are
// returned unchanged.
func (f Field) normal(value any) any {
	switch v := value.(type) {
	case int:
		value = int64(v)
	case json.Number:
		if n, err := v.Int64(); err == nil {
			value = n
		} else if n, err := v.Float64(); err == nil {
			value = n
		}
	case []any:
		list := make([]string, 0, len(v))
		for _, each := range v {
			s, ok := each.(string)
			if !ok {
				return value
			}
			list = append(list, s)
		}
		return list
	}
	switch v := value.(type) {
	case float64:
		if f.Type == Integer && v == math.Trunc(v) && math.Abs(v) < 1<<53 {
			return int64(v)
		}
	case int64:
		if f.Type == Number {
			return float64(v)
		}
	}
	return value
}

func (f Field) checkText(s string) error {
	n := utf8.RuneCountInString(s)
	switch {
	case f.MinLength != nil && n < *f.MinLength:
		return fmt.Errorf("it needs at least %d characters", *f.MinLength)
	case f.MaxLength != nil && n > *f.MaxLength:
		return fmt.Errorf("it may have at most %d characters", *f.MaxLength)
	}
	switch f.Format {
	case "email":
		if a, err := mail.ParseAddress(s); err != nil || a.Address != s {
			return errors.New("write an e-mail address")
		}
	case "uri":
		if u, err := url.Parse(s); err != nil || !u.IsAbs() {
			return errors.New("write an address with its scheme, such as https://example.com")
		}
	case "date":
		if _, err := time.Parse(time.DateOnly, s); err != nil {
			return errors.New("write a date as 2026-01-31")
		}
	case "date-time":
		if _, err := time.Parse(time.RFC3339, s); err != nil {
			return errors.New("write date and time as 2026-01-31T09:30:00Z")
		}
	}
	return nil
}

func (f Field) checkRange(n float64) error {
	switch {
	case f.Minimum != nil && n < *f.Minimum:
		return fmt.Errorf("it has to be at least %v", *f.Minimum)
	case f.Maximum != nil && n > *f.Maximum:
		return fmt.Errorf("it may be at most %v", *f.Maximum)
	}
	return nil
}

func (f Field) checkChoice(list []string) error {
	for _, v := range list {
		if !slices.ContainsFunc(f.Options, func(o Option) bool { return o.Value == v }) {
			return errors.New("it is none of the options")
		}
	}
	switch {
	case f.MinItems != nil && len(list) < *f.MinItems:
		return fmt.Errorf("choose at least %d", *f.MinItems)
	case f.MaxItems != nil && len(list) > *f.MaxItems:
		return fmt.Errorf("choose at most %d", *f.MaxItems)
	}
	return nil
}

// Validate checks a whole answer: every required field is present, every value fits its field, and there are no other
// fields. The error names the first field that is wrong.
func (f Form) Validate(values map[string]any) error {
	known := map[string]bool{}
	for _, field := range f.Fields {
		known[field.Name] = true
		v, ok := values[field.Name]
		switch {
		case !ok && field.Required:
			return fmt.Errorf("%s: a value is needed", field.Label())
		case !ok:
			continue
		}
		if err := field.Validate(v); err != nil {
			return fmt.Errorf("%s: %w", field.Label(), err)
		}
	}
	var strangers []string
	for name := range values {
		if !known[name] {
			strangers = append(strangers, line(name, maxText))
		}
	}
	if len(strangers) > 0 {
		sort.Strings(strangers)
		return fmt.Errorf("%s: the form has no such field", strangers[0])
	}
	return nil
}
