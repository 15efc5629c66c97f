package config

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/zephbot/zephbot/bot/texts/languages"
)

// Refs is a list of ids and words: numbers, "@name" or "*". Numbers are kept as decimal text.
type Refs []string

// Names is a list that may also be written as one text.
type Names []string

// field is one key of a table, read from the tags of a struct.
type field struct {
	name    string
	index   int
	typ     reflect.Type
	doc     string
	def     string
	idle    string
	form    string
	place   string
	tools   string
	aliases []string
	urls    []string
	enum    []string
	fold    bool
	min     float64
	max     float64 // 0: none
	clamp   bool
}

// knownFields are the fields of the tables that were looked at, by reflect.Type: tags are read once in a process, not
// at each of the walks through a configuration.
var knownFields sync.Map

// fieldsOf returns the keys of the table that t describes, in the order of the struct. The result is shared.
func fieldsOf(t reflect.Type) []field {
	if known, ok := knownFields.Load(t); ok {
		fields, _ := known.([]field) // nothing else is stored
		return fields
	}
	var fields []field
	for i := range t.NumField() {
		f := t.Field(i)
		name := f.Tag.Get("toml")
		if name == "" || name == "-" {
			continue
		}
		fields = append(fields, newField(name, i, f))
	}
	knownFields.Store(t, fields)
	return fields
}

func newField(name string, index int, f reflect.StructField) field {
	out := field{
		name: name, index: index, typ: f.Type,
		doc: f.Tag.Get("doc"), def: f.Tag.Get("default"), idle: f.Tag.Get("idle"), form: f.Tag.Get("form"),
		place: f.Tag.Get("place"), tools: f.Tag.Get("tools"),
		aliases: words(f.Tag.Get("alias")), urls: words(f.Tag.Get("url")), enum: words(f.Tag.Get("enum")),
	}
	if fold := f.Tag.Get("enumfold"); fold != "" {
		out.enum, out.fold = words(fold), true
	}
	if out.form == "language" {
		out.enum = languages.Tags()
	}
	out.min, out.max = bound(f.Tag.Get("min"), f.Type), bound(f.Tag.Get("max"), f.Type)
	if low, high, ok := strings.Cut(f.Tag.Get("clamp"), ".."); ok {
		out.clamp, out.min, out.max = true, bound(low, f.Type), bound(high, f.Type)
	}
	return out
}

func words(tag string) []string {
	if tag == "" {
		return nil
	}
	return strings.Split(tag, "|")
}

// bound parses a limit in a tag: a number, or for durations a duration in nanoseconds.
func bound(tag string, t reflect.Type) float64 {
	if t == durationType {
		d, _ := time.ParseDuration(tag)
		return float64(d)
	}
	n, _ := strconv.ParseFloat(tag, 64)
	return n
}

// find returns the field with a name or alias.
func find(fields []field, name string) (field, bool) {
	for _, f := range fields {
		if f.name == name {
			return f, true
		}
		if slices.Contains(f.aliases, name) {
			return f, true
		}
	}
	return field{}, false
}

// shape is how a value is written and traversed.
type shape int

const (
	leafShape   shape = iota // text, number, bool, duration, or a list of those
	tableShape               // a table with fixed keys
	arrayShape               // [[table]]
	mapShape                 // a table whose keys the person chooses
	tablePtr                 // a table that may be absent
	mapOfArrays              // [[table.KEY]]
)

func shapeOf(t reflect.Type) shape {
	switch {
	case t.Kind() == reflect.Struct:
		return tableShape
	case t.Kind() == reflect.Pointer && t.Elem().Kind() == reflect.Struct:
		return tablePtr
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct:
		return arrayShape
	case t.Kind() == reflect.Map && t.Elem().Kind() == reflect.Slice:
		return mapOfArrays
	case t.Kind() == reflect.Map:
		return mapShape
	default:
		return leafShape
	}
}

// isSecret reports whether values of t must not be shown.
func isSecret(t reflect.Type) bool {
	return t == secretType || (t.Kind() == reflect.Map || t.Kind() == reflect.Slice) && t.Elem() == secretType
}

// bare reports whether key needs no quotes in TOML.
func bare(key string) bool {
	for _, r := range key {
		if (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '-' {
			return false
		}
	}
	return key != ""
}

func quoteKey(key string) string {
	if bare(key) {
		return key
	}
	return quoteText(key)
}

// join appends a key to the path of its table; paths are unambiguous because all but bare keys are quoted.
func join(path, key string) string {
	if path == "" {
		return quoteKey(key)
	}
	return path + "." + quoteKey(key)
}

// item appends the number of an entry, from 0, to the path of its list.
func item(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

// envPrefix begins the names of all environment variables that zephbot reads.
const envPrefix = "ZEPH"

// envName appends a key to the environment variable of its table: in upper case, with "_" for all but letters and
// digits.
func envName(parent, key string) string {
	var b strings.Builder
	b.WriteString(parent)
	b.WriteByte('_')
	for _, r := range strings.ToUpper(key) {
		if (r < 'A' || r > 'Z') && (r < '0' || r > '9') {
			r = '_'
		}
		b.WriteRune(r)
	}
	return b.String()
}
