package config

import (
	"reflect"
	"slices"
	"strings"
)

// Key describes one key of the config file.
type Key struct {
	Name    string // as in the file, such as "llm.providers[].model" or "telegram.chats.<key>.trigger"
	Env     string // environment variable; "" if there is none
	Type    string // in words
	Default string // as TOML; "" if the key is not set by default
	Doc     string // one line
	Idle    string // what will read it, if that is not part of this version; else ""
	Table   string // its table, as in the file; "" for the top level
}

// entryMark represents the name of an entry in Key.Name and Key.Env.
const entryMark = "<key>"

// Keys returns every key, in the order of the documentation.
func Keys() []Key {
	var k keyLister
	k.table(place{env: envPrefix}, reflect.TypeFor[Config]())
	return k.keys
}

type keyLister struct {
	keys []Key
}

// table lists the leaves of a table first, and then the tables in it, as in a TOML file.
func (k *keyLister) table(p place, t reflect.Type) {
	fields := fieldsOf(t)
	for _, f := range fields {
		if shapeOf(f.typ) == leafShape {
			key := k.key(p, f)
			if names(t, f) {
				key.Env = ""
			}
			k.keys = append(k.keys, key)
		}
	}
	for _, f := range fields {
		at := p.within(f)
		switch shapeOf(f.typ) {
		case leafShape:
		case tableShape:
			k.table(at, f.typ)
		case tablePtr:
			k.table(at, f.typ.Elem())
		case arrayShape:
			k.table(at.anyItem(f.typ.Elem()), f.typ.Elem())
		case mapOfArrays:
			at.path, at.env = at.path+"."+entryMark+"[]", ""
			k.table(at, f.typ.Elem().Elem())
		case mapShape:
			k.mapping(at, f)
		}
	}
}

// mapping lists what an entry of a map contains: keys of a table, or one value.
func (k *keyLister) mapping(at place, f field) {
	if f.typ.Elem().Kind() == reflect.Struct {
		at.path += "." + entryMark
		if at.env != "" {
			at.env += "_<KEY>"
		}
		k.table(at, f.typ.Elem())
		return
	}
	env := ""
	if at.env != "" {
		env = at.env + "_<KEY>"
	}
	k.keys = append(k.keys, Key{
		Name: at.path + "." + entryMark, Env: env, Type: typeName(f.typ.Elem()), Doc: f.doc, Idle: at.idle,
		Table: at.path,
	})
}

func (k *keyLister) key(p place, f field) Key {
	at := p.within(f)
	out := Key{Name: at.path, Env: at.env, Type: typeName(f.typ), Doc: f.doc, Idle: at.idle, Table: p.path}
	if len(f.enum) > 0 {
		out.Type = "one of " + strings.Join(f.enum, ", ")
	}
	if len(f.aliases) > 0 {
		out.Doc += " Also spelled " + strings.Join(f.aliases, ", ") + "."
	}
	if f.typ.Kind() != reflect.Pointer {
		out.Default = formatField(f, defaultOf(f))
	}
	return out
}

// within returns the place of a key in the table at p.
func (p place) within(f field) place {
	at := place{path: f.name, idle: p.idle}
	if p.path != "" {
		at.path = p.path + "." + f.name
	}
	if f.idle != "" {
		at.idle = f.idle
	}
	if p.env != "" {
		at.env = envName(p.env, f.name)
	}
	return at
}

// anyItem returns the place of any entry of a list of tables.
func (p place) anyItem(t reflect.Type) place {
	p.path += "[]"
	if !named(t) {
		p.env = ""
	}
	if p.env != "" {
		p.env += "_<NAME>"
	}
	return p
}

// uniquePlaces maps the last word of a key to its place, for words that are unique.
func uniquePlaces() map[string]string {
	places, count := map[string]string{}, map[string]int{}
	for _, k := range Keys() {
		word := k.Name[strings.LastIndexByte(k.Name, '.')+1:]
		places[word] = k.Name
		count[word]++
	}
	for word, n := range count {
		if n > 1 {
			delete(places, word)
		}
	}
	return places
}

// IsKey reports whether a text is the name of a key or of a table, as in the file.
func IsKey(text string) bool {
	return slices.ContainsFunc(Keys(), func(k Key) bool { return k.Name == text || k.Table == text && text != "" })
}
