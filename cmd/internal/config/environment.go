package config

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/zephbot/zephbot/policy/nearest"
)

// environment contains the variables whose names begin with "ZEPH_", and how they were used.
type environment struct {
	vars     map[string]string
	used     map[string]string // key that a variable set
	values   map[string]any    // values of keys with a fixed place
	alike    []string          // other variables whose names begin almost like ours
	problems Problems
	warnings Problems
}

func newEnvironment(env []string) *environment {
	e := &environment{vars: map[string]string{}, used: map[string]string{}, values: map[string]any{}}
	for _, kv := range env {
		name, value, ok := strings.Cut(kv, "=")
		switch {
		case !ok:
		case strings.HasPrefix(name, envPrefix+"_"):
			e.vars[name] = value
		case strings.HasPrefix(strings.ToUpper(name), envPrefix):
			e.alike = append(e.alike, name)
		}
	}
	return e
}

// addProviders creates providers that are only described in the environment, if the file has none: for each
// ZEPH_LLM_PROVIDERS_<NAME>_MODEL or _TYPE, a provider with the name in lower case.
func (e *environment) addProviders(c *Config) {
	if len(c.LLM.Providers) > 0 {
		return
	}
	prefix := envName(envName(envPrefix, "llm"), "providers") + "_"
	fields := fieldsOf(reflect.TypeFor[Provider]())
	names := map[string]bool{}
	for variable, value := range e.vars {
		rest, ok := strings.CutPrefix(variable, prefix)
		if !ok || value == "" {
			continue
		}
		if name, key := splitField(rest, fields); name != "" && (key == "model" || key == "type") {
			names[strings.ToLower(name)] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		p, _ := reflect.TypeAssert[Provider](newEntry(reflect.TypeFor[Provider]()))
		p.Name = name
		c.LLM.Providers = append(c.LLM.Providers, p)
		variable := prefix + strings.ToUpper(name)
		c.origins[join(item("llm.providers", len(c.LLM.Providers)-1), "name")] = Origin{Env: variable + "_…"}
	}
}

// splitField splits "MAIN_API_KEY" into the name "MAIN" and the key "api_key"; the longest matching key wins.
func splitField(rest string, fields []field) (name, key string) {
	for _, f := range fields {
		n, ok := strings.CutSuffix(rest, envName("", f.name))
		if ok && len(f.name) > len(key) {
			name, key = n, f.name
		}
	}
	return name, key
}

// apply reads the variable of every key. Values of list and map entries are set at once, the others are collected.
func (e *environment) apply(c *Config) {
	known := map[string]bool{}
	walk(c, func(l leaf) {
		if l.env == "" {
			return
		}
		for _, name := range append([]string{l.env}, l.alts...) {
			known[name] = true
		}
		name, text := e.lookup(l)
		if name == "" {
			return
		}
		raw, ok := parse(text, l.typ)
		value, _, okType := reflect.Value{}, "", false
		if ok {
			value, _, okType = convert(raw, l.typ)
		}
		if !okType {
			e.wrong(name, "wanted "+envTypeName(l.typ)+", found "+found(text, !isSecret(l.typ))+" (sets "+l.key+")")
			return
		}
		c.origins[l.key] = Origin{Env: name}
		if l.fixed {
			e.values[l.key] = raw
			return
		}
		l.value.Set(value)
	})
	e.warnUnknown(known)
}

// lookup returns the variable that sets l, and its value; or "" when none does.
func (e *environment) lookup(l leaf) (name, text string) {
	for _, n := range append([]string{l.env}, l.alts...) {
		value := e.vars[n]
		switch {
		case value == "":
		case name == "":
			name, text = n, value
		case value != text:
			e.wrong(n, "is another spelling of "+name+", which is also set, to something else; keep one of them")
		}
	}
	if name == "" {
		return "", ""
	}
	if other, twice := e.used[name]; twice {
		e.wrong(name, "could mean "+other+" or "+l.key+"; rename one of them in the file")
		return "", ""
	}
	e.used[name] = l.key
	return name, text
}

func (e *environment) wrong(name, text string) {
	e.problems = append(e.problems, Problem{Key: name, Text: text})
}

// warnUnknown reports the variables that no key reads. One that is similar to a key is a mistake, as in the file: what
// it was meant to set, perhaps who may talk to the bot, would silently keep its default. Others may belong to another
// program.
func (e *environment) warnUnknown(known map[string]bool) {
	names := slices.Sorted(maps.Keys(known))
	provider := envName(envName(envPrefix, "llm"), "providers") + "_"
	fields := fieldsOf(reflect.TypeFor[Provider]())
	for _, name := range slices.Sorted(maps.Keys(e.vars)) {
		if known[name] {
			continue
		}
		text := "names no known key" + closest(name, names)
		rest, ofProvider := strings.CutPrefix(name, provider)
		who, key := splitField(rest, fields)
		if ofProvider && who != "" && key != "" { // perhaps a provider that is not configured at the moment
			text = "has no effect: there is no provider of this name; set " + provider + who +
				"_MODEL too, or add it to the file"
		} else if near, ok := nearest.Nearest(name, names); ok {
			e.wrong(name, "names no known key; did you mean "+near+"?")
			continue
		}
		e.warnings = append(e.warnings, Problem{Key: name, Text: text})
	}
	slices.Sort(e.alike)
	for _, name := range e.alike { // "zeph_telegram_token", "ZEPHBOT_TELEGRAM_TOKEN"
		_, rest, _ := strings.Cut(strings.ToUpper(name), "_")
		if meant := envPrefix + "_" + rest; known[meant] {
			e.wrong(name, "is not read, because our variables begin with "+
				envPrefix+"_ and are in upper case; did you mean "+meant+"?")
		}
	}
}

// closest says what a variable that names no key may be about: an entry of a list, which has no variables, or the key
// with the most words in common.
func closest(name string, names []string) string {
	for _, k := range Keys() {
		if list, _, ok := strings.Cut(k.Name, "[]"); ok && k.Env == "" && !strings.Contains(list, entryMark) &&
			strings.HasPrefix(name, envPrefix+"_"+strings.ToUpper(strings.ReplaceAll(list, ".", "_"))+"_") {
			return ": entries of [[" + list + "]] cannot be set in the environment; write them into the file"
		}
	}
	wanted, best, most := strings.Split(name, "_")[1:], "", 0
	for _, known := range names {
		words, common := strings.Split(known, "_")[1:], 0
		for _, w := range wanted {
			if slices.Contains(words, w) {
				common++
			}
		}
		// more common words are closer, and then fewer others
		if closeness := 100*common - len(words); common > 0 && closeness > most {
			best, most = known, closeness
		}
	}
	if best == "" {
		return "; docs/config.md lists the variables"
	}
	return "; the closest is " + best + ", and docs/config.md lists all"
}

// envTypeName says what a variable for a key of type t must contain.
func envTypeName(t reflect.Type) string {
	if t.Kind() == reflect.Slice {
		return typeName(t) + ", separated by commas"
	}
	return typeName(t)
}

// readFlags reads the values of flags, by key.
func readFlags(flags map[string]string, c *Config) (map[string]any, Problems) {
	values, types := map[string]any{}, map[string]reflect.Type{}
	walk(c, func(l leaf) {
		if l.fixed {
			types[l.key] = l.typ
		}
	})
	var problems Problems
	for _, key := range slices.Sorted(maps.Keys(flags)) {
		t, ok := types[key]
		if !ok {
			problems = append(problems, Problem{Key: key, Text: "no flag can set this key"})
			continue
		}
		raw, ok := parse(flags[key], t)
		if ok {
			_, _, ok = convert(raw, t)
		}
		if !ok {
			problems = append(problems, Problem{
				Key: key, Text: "flag: wanted " + envTypeName(t) + ", found " + found(flags[key], !isSecret(t)),
			})
			continue
		}
		values[key] = raw
	}
	return values, problems
}
