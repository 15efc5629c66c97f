package config

import (
	"maps"
	"reflect"
	"slices"
)

// leaf is a key with a value, as visited by a walk over a Config.
type leaf struct {
	field
	key   string
	env   string        // environment variable; "" if the key has none
	alts  []string      // environment variables of the aliases
	fixed bool          // the key is not in an entry of a list or map
	idle  string        // what will read it, if that is not built yet
	value reflect.Value // settable
}

// walker visits all leaves of a table, also in the entries of lists and maps, in the order of the structs.
type walker struct {
	visit func(leaf)
}

// place is the current position of a walk.
type place struct {
	path, env, idle string
	entry           bool // inside an entry of a list or map
}

func walk(c *Config, visit func(leaf)) {
	w := walker{visit: visit}
	w.table(place{env: envPrefix}, reflect.ValueOf(c).Elem())
}

func (w walker) table(p place, v reflect.Value) {
	for _, f := range fieldsOf(v.Type()) {
		at := place{path: join(p.path, f.name), idle: p.idle, entry: p.entry}
		if f.idle != "" {
			at.idle = f.idle
		}
		if p.env != "" && !(p.entry && names(v.Type(), f)) {
			at.env = envName(p.env, f.name)
		}
		l := leaf{field: f, key: at.path, env: at.env, fixed: !p.entry, idle: at.idle, value: v.Field(f.index)}
		for _, a := range f.aliases {
			if p.env != "" {
				l.alts = append(l.alts, envName(p.env, a))
			}
		}
		w.field(at, l)
	}
}

func (w walker) field(at place, l leaf) {
	v := l.value
	switch shapeOf(l.typ) {
	case leafShape:
		w.visit(l)
	case tableShape:
		w.table(at, v)
	case tablePtr:
		if !v.IsNil() {
			at.entry = true
			w.table(at, v.Elem())
		}
	case arrayShape:
		w.array(at, v)
	case mapShape, mapOfArrays:
		w.mapping(at, v)
	}
}

func (w walker) array(at place, v reflect.Value) {
	for i := range v.Len() {
		entry := place{path: item(at.path, i), idle: at.idle, entry: true}
		if id := identity(v.Index(i)); id != "" && at.env != "" {
			entry.env = envName(at.env, id)
		}
		w.table(entry, v.Index(i))
	}
}

func (w walker) mapping(at place, v reflect.Value) {
	names := slices.Sorted(maps.Keys(stringKeys(v)))
	for _, name := range names {
		key := reflect.ValueOf(name)
		one := reflect.New(v.Type().Elem()).Elem()
		one.Set(v.MapIndex(key))
		entry := place{path: join(at.path, name), idle: at.idle, entry: true}
		if at.env != "" {
			entry.env = envName(at.env, name)
		}
		switch shapeOf(one.Type()) {
		case tableShape:
			w.table(entry, one)
		case arrayShape:
			entry.env = ""
			w.array(entry, one)
		default:
			w.visit(leaf{field: field{typ: one.Type()}, key: entry.path, env: entry.env, idle: at.idle, value: one})
		}
		v.SetMapIndex(key, one)
	}
}

// stringKeys returns the keys of a map from strings.
func stringKeys(v reflect.Value) map[string]bool {
	keys := make(map[string]bool, v.Len())
	for _, k := range v.MapKeys() {
		keys[k.String()] = true
	}
	return keys
}

// identity returns the name or id of a list entry, "" if it has neither.
func identity(v reflect.Value) string {
	if !named(v.Type()) {
		return ""
	}
	if f := v.FieldByName("ID"); f.IsValid() {
		return f.String()
	}
	return v.FieldByName("Name").String()
}

// named reports whether entries of type t have a name or id.
func named(t reflect.Type) bool {
	_, name := t.FieldByName("Name")
	_, id := t.FieldByName("ID")
	return (name || id) && t != reflect.TypeFor[MCPRoot]()
}

// names reports whether f is the name or id of entries of type t; no environment variable can set it.
func names(t reflect.Type, f field) bool {
	return named(t) && (f.name == "name" || f.name == "id")
}
