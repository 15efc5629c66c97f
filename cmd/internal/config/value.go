package config

import (
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"
)

var (
	durationType = reflect.TypeFor[time.Duration]()
	secretType   = reflect.TypeFor[Secret]()
	refsType     = reflect.TypeFor[Refs]()
	namesType    = reflect.TypeFor[Names]()
	reachType    = reflect.TypeFor[Reach]()
)

// typeName describes in words what a key of type t contains.
func typeName(t reflect.Type) string {
	switch {
	case t == durationType:
		return `a duration such as "10m"`
	case t == refsType:
		return "a list of ids and strings"
	case t == namesType:
		return "a string or a list of strings"
	case t == reachType:
		return `true, false or "all"`
	}
	switch t.Kind() {
	case reflect.Pointer:
		return typeName(t.Elem())
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64:
		return "an integer"
	case reflect.Float64:
		return "a number"
	case reflect.Slice:
		switch t.Elem().Kind() {
		case reflect.Struct:
			return "a list of tables"
		case reflect.String:
			return "a list of strings"
		case reflect.Int64: // of people and chats
			return "a list of numeric ids such as 4711"
		default:
			return "a list of integers"
		}
	default:
		return "a table"
	}
}

// found describes in words what raw, a value of the TOML decoder, is. If show is false, the value itself is omitted.
func found(raw any, show bool) string {
	switch v := raw.(type) {
	case string:
		if show {
			return "the string " + shorten(v)
		}
		return "a string"
	case bool:
		return strconv.FormatBool(v)
	case int64:
		if show {
			return "the integer " + strconv.FormatInt(v, 10)
		}
		return "an integer"
	case float64:
		if show {
			return "the number " + formatFloat(v)
		}
		return "a number"
	case []any:
		return "a list"
	case map[string]any:
		return "a table"
	default:
		return "a date or time"
	}
}

// shorten quotes a text for a message.
func shorten(s string) string {
	const limit = 60
	if r := []rune(s); len(r) > limit {
		return quoteText(string(r[:limit])) + "…"
	}
	return quoteText(s)
}

// convert converts raw, a value of the TOML decoder, to a value of the leaf type t. It returns false if raw has another
// type; text then says what is wrong.
func convert(raw any, t reflect.Type) (value reflect.Value, text string, ok bool) {
	wrong := func(r any) (reflect.Value, string, bool) {
		return reflect.Value{}, fmt.Sprintf("wanted %s, found %s", typeName(t), found(r, !isSecret(t))), false
	}
	switch {
	case t.Kind() == reflect.Pointer:
		inner, text, ok := convert(raw, t.Elem())
		if !ok {
			return inner, text, false
		}
		ptr := reflect.New(t.Elem())
		ptr.Elem().Set(inner)
		return ptr, "", true
	case t == durationType:
		s, isText := raw.(string)
		d, err := time.ParseDuration(s)
		if !isText || err != nil {
			return wrong(raw)
		}
		return reflect.ValueOf(d), "", true
	case t.Kind() == reflect.Slice:
		return convertList(raw, t, wrong)
	}
	v, ok := convertScalar(raw, t)
	if !ok {
		return wrong(raw)
	}
	return v, "", true
}

// convertScalar converts raw to a text, bool or number of type t.
func convertScalar(raw any, t reflect.Type) (reflect.Value, bool) {
	v := reflect.New(t).Elem()
	switch r := raw.(type) {
	case string:
		if t.Kind() != reflect.String {
			return v, false
		}
		v.SetString(r)
	case bool:
		if t == reachType {
			v.SetString(strconv.FormatBool(r))
			break
		}
		if t.Kind() != reflect.Bool {
			return v, false
		}
		v.SetBool(r)
	case int64:
		switch t.Kind() {
		case reflect.Int, reflect.Int64:
			v.SetInt(r)
		case reflect.Float64:
			v.SetFloat(float64(r))
		default:
			return v, false
		}
	case float64:
		if t.Kind() != reflect.Float64 {
			return v, false
		}
		v.SetFloat(r)
	default:
		return v, false
	}
	return v, true
}

func convertList(raw any, t reflect.Type, wrong func(any) (reflect.Value, string, bool)) (reflect.Value, string, bool) {
	if one, isText := raw.(string); isText && t == namesType {
		return reflect.ValueOf(Names{one}), "", true
	}
	list, isList := raw.([]any)
	if !isList {
		return wrong(raw)
	}
	out := reflect.MakeSlice(t, 0, len(list))
	for _, r := range list {
		if n, isInt := r.(int64); isInt && t == refsType {
			r = strconv.FormatInt(n, 10)
		}
		v, ok := convertScalar(r, t.Elem())
		if !ok {
			return wrong(r)
		}
		out = reflect.Append(out, v)
	}
	return out, "", true
}

// parse parses the text of an environment variable, a flag or a default tag as the TOML value of a key of type t. Lists
// are separated by commas; spaces around an item and empty items do not count.
func parse(text string, t reflect.Type) (any, bool) {
	switch {
	case t.Kind() == reflect.Pointer:
		return parse(text, t.Elem())
	case t == durationType:
		return text, true
	}
	switch t.Kind() {
	case reflect.String:
		return text, true
	case reflect.Bool:
		b, err := strconv.ParseBool(strings.ToLower(strings.TrimSpace(text)))
		return b, err == nil
	case reflect.Int, reflect.Int64:
		n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
		return n, err == nil
	case reflect.Float64:
		x, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
		return x, err == nil
	default:
		return parseList(text, t)
	}
}

func parseList(text string, t reflect.Type) (any, bool) {
	list := []any{}
	for one := range strings.SplitSeq(text, ",") {
		one = strings.TrimSpace(one)
		if one == "" {
			continue
		}
		v, ok := parse(one, t.Elem())
		if !ok {
			return nil, false
		}
		list = append(list, v)
	}
	return list, true
}

// formatValue returns a value of a leaf type as TOML; secrets are redacted. For unset pointers it returns "".
func formatValue(v reflect.Value) string {
	switch {
	case v.Kind() == reflect.Pointer:
		if v.IsNil() {
			return ""
		}
		return formatValue(v.Elem())
	case v.Type() == durationType:
		return quoteText(formatDuration(time.Duration(v.Int())))
	case v.Type() == secretType:
		return quoteText(Secret(v.String()).String())
	case v.Type() == reachType && v.String() != string(ReachAll):
		return v.String() // true and false are not texts
	}
	switch v.Kind() {
	case reflect.String:
		return quoteText(v.String())
	case reflect.Bool:
		return strconv.FormatBool(v.Bool())
	case reflect.Float64:
		return formatFloat(v.Float())
	case reflect.Slice:
		items := make([]string, v.Len())
		for i := range items {
			items[i] = formatValue(v.Index(i))
		}
		return "[" + strings.Join(items, ", ") + "]"
	default:
		return strconv.FormatInt(v.Int(), 10)
	}
}

// formatDuration omits the zero parts that Duration.String appends: "10m", not "10m0s".
func formatDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// formatFloat returns a float as TOML, always with a point or an exponent.
func formatFloat(x float64) string {
	switch {
	case math.IsNaN(x):
		return "nan"
	case math.IsInf(x, 0):
		return strings.ToLower(strings.TrimPrefix(fmt.Sprintf("%+g", x), "+"))
	}
	s := strconv.FormatFloat(x, 'g', -1, 64)
	if !strings.ContainsAny(s, ".e") {
		s += ".0"
	}
	return s
}

// quoteText returns s as a TOML basic string.
func quoteText(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r < 0x20 || r == 0x7f:
			fmt.Fprintf(&b, `\u%04X`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
