package config

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/zephbot/zephbot/policy/nearest"
)

// maxSuggestions limits for how many unknown keys a known one is suggested, so that a hostile file costs little.
const maxSuggestions = 200

// decoder fills a Config from the tree of a TOML document and records what does not fit.
type decoder struct {
	file     string
	lines    map[string]int
	problems Problems
	origins  map[string]Origin
	bad      map[string]bool // keys of the wrong type
	moved    map[string]any  // values of keys that were spelled with an alias, by the key's canonical name
	unknown  int
	places   map[string]string // by their last word, the place of keys with a unique last word
}

func (d *decoder) origin(key string) Origin { return Origin{File: d.file, Line: d.lines[key]} }

func (d *decoder) wrong(key, format string, args ...any) {
	d.problems = append(d.problems, d.origin(key).problem(key, fmt.Sprintf(format, args...)))
}

// table fills the struct dst from tree.
func (d *decoder) table(path string, tree map[string]any, dst reflect.Value) {
	fields := fieldsOf(dst.Type())
	for _, key := range slices.Sorted(maps.Keys(tree)) {
		if _, ok := find(fields, key); !ok {
			d.unknownKey(path, key, fields)
		}
	}
	for _, f := range fields {
		if raw, spelled, ok := d.pick(path, tree, f); ok {
			key := join(path, f.name)
			d.origins[key] = d.origin(join(path, spelled))
			if spelled != f.name {
				d.moved[key] = raw
				d.lines[key] = d.lines[join(path, spelled)]
			}
			d.value(key, raw, dst.Field(f.index), f)
		}
	}
}

// pick returns the value of f in tree under its name or an alias. Two spellings with different values are a problem.
func (d *decoder) pick(path string, tree map[string]any, f field) (raw any, spelled string, ok bool) {
	for _, name := range append([]string{f.name}, f.aliases...) {
		r, there := tree[name]
		switch {
		case !there:
		case !ok:
			raw, spelled, ok = r, name, true
		case !same(raw, r, f.typ):
			d.wrong(join(path, name), "is another spelling of %s, which is also set, to something else; keep one of "+
				"them",
				join(path, spelled))
		}
	}
	return raw, spelled, ok
}

// same reports whether two values of the TOML decoder mean the same for a key of type t.
func same(a, b any, t reflect.Type) bool {
	if shapeOf(t) != leafShape {
		return reflect.DeepEqual(a, b)
	}
	x, _, okX := convert(a, t)
	y, _, okY := convert(b, t)
	return okX == okY && (!okX || reflect.DeepEqual(x.Interface(), y.Interface()))
}

func (d *decoder) unknownKey(path, key string, fields []field) {
	d.unknown++
	full := join(path, key)
	if d.unknown > maxSuggestions {
		d.wrong(full, "unknown key")
		return
	}
	var names []string
	for _, f := range fields {
		names = append(append(names, f.name), f.aliases...)
	}
	if place, ok := d.places[key]; ok && place != full {
		if _, near := nearest.Nearest(key, names); !near {
			d.wrong(full, "unknown key; did you mean %s?", place)
			return
		}
	}
	if name, ok := nearest.Nearest(key, names); ok {
		d.wrong(full, "unknown key; did you mean %s?", join(path, name))
		return
	}
	if path == "" {
		d.wrong(full, "unknown key; zephbot has nothing of this name, so take it out (docs/config.md lists what there is)")
		return
	}
	d.wrong(full, "unknown key; known in [%s]: %s", path, strings.Join(names, ", "))
}

// value fills dst, the place of the key, from raw.
func (d *decoder) value(key string, raw any, dst reflect.Value, f field) {
	switch shapeOf(f.typ) {
	case leafShape:
		v, text, ok := convert(raw, f.typ)
		if !ok {
			d.bad[key] = true
			d.wrong(key, "%s", text)
			return
		}
		dst.Set(v)
	case tableShape:
		if tree, ok := d.tree(key, raw); ok {
			d.table(key, tree, dst)
		}
	case tablePtr:
		if tree, ok := d.tree(key, raw); ok {
			entry := newEntry(f.typ.Elem())
			d.table(key, tree, entry)
			dst.Set(entry.Addr())
		}
	case arrayShape:
		dst.Set(d.array(key, raw, f.typ))
	case mapShape, mapOfArrays:
		if tree, ok := d.tree(key, raw); ok {
			d.mapping(key, tree, dst, f)
		}
	}
}

// tree checks that raw is a table.
func (d *decoder) tree(key string, raw any) (map[string]any, bool) {
	tree, ok := raw.(map[string]any)
	if !ok {
		d.bad[key] = true
		d.wrong(key, "wanted a table, found %s", found(raw, false))
	}
	return tree, ok
}

// array decodes a list of tables of type t.
func (d *decoder) array(key string, raw any, t reflect.Type) reflect.Value {
	out := reflect.MakeSlice(t, 0, 0)
	list, ok := raw.([]any)
	if !ok {
		d.bad[key] = true
		d.wrong(key, "wanted a list of tables ([[%s]]), found %s", key, found(raw, false))
		return out
	}
	for i, one := range list {
		entry := newEntry(t.Elem())
		if tree, ok := d.tree(item(key, i), one); ok {
			d.origins[item(key, i)] = d.origin(item(key, i))
			d.table(item(key, i), tree, entry)
		}
		out = reflect.Append(out, entry)
	}
	return out
}

// mapping decodes a table with keys that the person chose; they are kept as written.
func (d *decoder) mapping(key string, tree map[string]any, dst reflect.Value, f field) {
	dst.Set(reflect.MakeMap(f.typ))
	elem := f.typ.Elem()
	for _, name := range slices.Sorted(maps.Keys(tree)) {
		at := join(key, name)
		d.origins[at] = d.origin(at)
		var v reflect.Value
		switch shapeOf(elem) {
		case tableShape:
			v = newEntry(elem)
			if sub, ok := d.tree(at, tree[name]); ok {
				d.table(at, sub, v)
			}
		case arrayShape:
			v = d.array(at, tree[name], elem)
		default:
			v = reflect.New(elem).Elem()
			d.value(at, tree[name], v, field{typ: elem})
		}
		dst.SetMapIndex(reflect.ValueOf(name), v)
	}
}
