package config

import (
	"reflect"

	"github.com/zephbot/zephbot/policy"
)

// confirmDefault is how a key's tag refers to confirmPatterns, which a tag cannot contain.
const confirmDefault = "@confirm_patterns"

// confirmPatterns returns the default of tools.shell.confirm_patterns.
func confirmPatterns() []string {
	return []string{
		"rm ", "git push -f", "git push --force", "drop table", "drop database", "truncate ",
		"$(", "`", "<(", ">(", "<<<", "eval ",
	}
}

// quietDefault is how a key's tag refers to policy.QuietHosts.
const quietDefault = "@quiet_hosts"

// Default returns the configuration of an empty file and an empty environment.
func Default() Config {
	var c Config
	setDefaults(reflect.ValueOf(&c).Elem())
	return c
}

// defaultOf returns the value of a leaf that is not set.
func defaultOf(f field) reflect.Value {
	zero := reflect.Zero(f.typ)
	if f.def == confirmDefault {
		return reflect.ValueOf(confirmPatterns())
	}
	if f.def == quietDefault {
		return reflect.ValueOf(policy.QuietHosts())
	}
	if f.def == "" {
		return zero
	}
	raw, ok := parse(f.def, f.typ)
	if !ok {
		return zero
	}
	v, _, ok := convert(raw, f.typ)
	if !ok {
		return zero
	}
	return v
}

// setDefaults sets every leaf of the table v, and of the tables in it, to its default.
func setDefaults(v reflect.Value) {
	for _, f := range fieldsOf(v.Type()) {
		switch shapeOf(f.typ) {
		case leafShape:
			v.Field(f.index).Set(defaultOf(f))
		case tableShape:
			setDefaults(v.Field(f.index))
		default: // lists and maps of entries are empty by default
		}
	}
}

// newEntry returns a settable table of type t with its defaults.
func newEntry(t reflect.Type) reflect.Value {
	v := reflect.New(t).Elem()
	setDefaults(v)
	return v
}
