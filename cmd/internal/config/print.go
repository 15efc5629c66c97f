package config

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strings"
)

// Print writes c as TOML with the origin of every value as a comment. Secrets are redacted. With changedOnly it leaves
// out the keys that have their default.
func Print(w io.Writer, c *Config, changedOnly bool) error {
	p := printer{c: c, changedOnly: changedOnly}
	p.table("", "", reflect.ValueOf(c).Elem())
	if _, err := w.Write(p.out.Bytes()); err != nil {
		return fmt.Errorf("print config: %w", err)
	}
	return nil
}

type printer struct {
	c           *Config
	changedOnly bool
	out         bytes.Buffer
}

// table prints the values of a table and then the tables in it. The path contains the numbers of entries, the header
// does not.
func (p *printer) table(path, header string, v reflect.Value) {
	var lines strings.Builder
	fields := fieldsOf(v.Type())
	for _, f := range fields {
		p.line(&lines, join(path, f.name), f, v.Field(f.index))
	}
	if lines.Len() > 0 || strings.HasPrefix(header, "[[") {
		if header != "" {
			if p.out.Len() > 0 {
				p.out.WriteByte('\n')
			}
			p.out.WriteString(header + "\n")
		}
		p.out.WriteString(lines.String())
	}
	name := strings.Trim(header, "[]")
	for _, f := range fields {
		p.sub(join(path, f.name), joinHeader(name, f.name), f, v.Field(f.index))
	}
}

func joinHeader(table, key string) string {
	if table == "" {
		return quoteKey(key)
	}
	return table + "." + quoteKey(key)
}

// inline reports whether a field is printed on a line of its table: a leaf, or a map of texts.
func inline(f field) bool {
	s := shapeOf(f.typ)
	return s == leafShape || s == mapShape && f.typ.Elem().Kind() == reflect.String
}

func (p *printer) line(b *strings.Builder, key string, f field, v reflect.Value) {
	if !inline(f) {
		return
	}
	value := formatField(f, v)
	if p.changedOnly && value == formatField(f, defaultOf(f)) {
		return
	}
	origin := p.c.Origin(key).String()
	if value == "" {
		fmt.Fprintf(b, "# %s is not set\n", f.name)
		return
	}
	fmt.Fprintf(b, "%s = %s  # %s\n", f.name, value, strings.Map(printable, origin))
}

// printable keeps comments on their line whatever the name of the file is.
func printable(r rune) rune {
	if r < ' ' || r == 0x7f {
		return '?'
	}
	return r
}

// sub prints the tables in a table.
func (p *printer) sub(path, name string, f field, v reflect.Value) {
	if inline(f) {
		return
	}
	switch shapeOf(f.typ) {
	case tableShape:
		p.table(path, "["+name+"]", v)
	case tablePtr:
		if !v.IsNil() {
			p.table(path, "["+name+"]", v.Elem())
		}
	case arrayShape:
		for i := range v.Len() {
			p.table(item(path, i), "[["+name+"]]", v.Index(i))
		}
	default:
		for _, key := range slices.Sorted(maps.Keys(stringKeys(v))) {
			one, at, head := v.MapIndex(reflect.ValueOf(key)), join(path, key), joinHeader(name, key)
			if shapeOf(f.typ) == mapShape {
				p.table(at, "["+head+"]", one)
				continue
			}
			for i := range one.Len() {
				p.table(item(at, i), "[["+head+"]]", one.Index(i))
			}
		}
	}
}

// formatField returns the value of a field as TOML, without secrets.
func formatField(f field, v reflect.Value) string {
	if shapeOf(f.typ) == mapShape {
		items := []string{}
		for _, key := range slices.Sorted(maps.Keys(stringKeys(v))) {
			items = append(items, quoteKey(key)+" = "+formatValue(v.MapIndex(reflect.ValueOf(key))))
		}
		if len(items) == 0 {
			return "{}"
		}
		return "{ " + strings.Join(items, ", ") + " }"
	}
	if f.typ == durationType && v.Int() == defaultOf(f).Int() && f.def != "" {
		return quoteText(f.def)
	}
	if len(f.urls) > 0 && f.typ.Kind() == reflect.String {
		return quoteText(maskURL(v.String()))
	}
	return formatValue(v)
}

// maskURL removes the user name and the password from a URL.
func maskURL(s string) string {
	if !strings.Contains(s, "@") {
		return s
	}
	u, err := url.Parse(s)
	if err != nil {
		return redacted
	}
	if u.User != nil {
		u.User = url.User("redacted")
	}
	return u.String()
}

// InitAll returns a commented config file with every key at its default.
func InitAll() []byte {
	var b bytes.Buffer
	b.WriteString("# Configuration of zephbot. Every key stands here with its default.\n" +
		"# A key can also be set by an environment variable: agent.concurrency by ZEPH_AGENT_CONCURRENCY.\n")
	in := initWriter{out: &b}
	in.table("", reflect.TypeFor[Config](), "", "", false)
	return b.Bytes()
}

type initWriter struct {
	out *bytes.Buffer
}

// table prints a table; an example is commented out as a whole.
func (w initWriter) table(header string, t reflect.Type, doc, idle string, example bool) {
	mark := ""
	if example {
		mark = "# "
	}
	fields := fieldsOf(t)
	if header != "" && (example || slices.ContainsFunc(fields, inline)) {
		fmt.Fprintf(w.out, "\n# %s%s\n%s%s\n", doc, note(idle), mark, header)
	}
	for _, f := range fields {
		if inline(f) {
			w.line(f, idle, example)
		}
	}
	name := strings.Trim(header, "[]")
	for _, f := range fields {
		if inline(f) {
			continue
		}
		part, sub := f.idle, joinHeader(name, f.name)
		if part == "" {
			part = idle
		}
		switch shapeOf(f.typ) {
		case tableShape:
			w.table("["+sub+"]", f.typ, f.doc, part, example)
		case tablePtr:
			w.table("["+sub+"]", f.typ.Elem(), f.doc, part, true)
		case arrayShape:
			w.table("[["+sub+"]]", f.typ.Elem(), f.doc, part, true)
		case mapOfArrays:
			w.table("[["+sub+".bash]]", f.typ.Elem().Elem(), f.doc, part, true)
		default:
			w.table("["+sub+"."+exampleKey(f)+"]", f.typ.Elem(), f.doc, part, true)
		}
	}
}

func exampleKey(f field) string {
	switch f.form {
	case "chatkey":
		return `"-100123"`
	case "persona":
		return "tutor"
	default:
		return "deploy"
	}
}

// note returns the remark that a table or key is not read yet. Keys in an idle table need no remark of their own.
func note(idle string) string {
	if idle == "" {
		return ""
	}
	return " (No effect yet: " + idle + ".)"
}

func (w initWriter) line(f field, outer string, example bool) {
	part := f.idle
	if part == outer {
		part = ""
	}
	value := "{}"
	if shapeOf(f.typ) == leafShape {
		value = formatField(f, defaultOf(f))
	}
	doc := f.doc + note(part)
	if len(f.enum) > 0 {
		doc += " One of: " + strings.Join(f.enum, ", ") + "."
	}
	switch {
	case example && value == "":
		fmt.Fprintf(w.out, "# # %s = …  (%s)\n", f.name, doc)
	case example:
		fmt.Fprintf(w.out, "# %s = %s  # %s\n", f.name, value, doc)
	case value == "":
		fmt.Fprintf(w.out, "# %s\n# %s = …\n", doc, f.name)
	default:
		fmt.Fprintf(w.out, "# %s\n%s = %s\n", doc, f.name, value)
	}
}

// Doc returns the reference of all keys as Markdown.
func Doc() []byte {
	var b bytes.Buffer
	b.WriteString("# Configuration\n\nMade from the source; do not edit. `<key>` and `<NAME>` stand for what an " +
		"entry is called; in names of\n" +
		"environment variables that is in upper case, with `_` for everything but letters and digits.\n" +
		"Lists in environment variables are separated by commas. Flags win over the environment, the environment " +
		"over the file.\n")
	table := "\x00"
	for _, k := range Keys() {
		if k.Table != table {
			table = k.Table
			title := "`[" + table + "]`"
			switch {
			case table == "":
				title = "Top of the file"
			case strings.HasSuffix(table, "[]"):
				title = "`[[" + strings.TrimSuffix(table, "[]") + "]]`"
			}
			fmt.Fprintf(&b, "\n## %s\n\n| key | type | default | environment | meaning |\n|---|---|---|---|---|\n",
				title)
		}
		doc := k.Doc + note(k.Idle)
		name := strings.TrimPrefix(strings.TrimPrefix(k.Name, table), ".")
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", name, cell(k.Type), code(k.Default), code(k.Env), cell(doc))
	}
	return b.Bytes()
}

func cell(s string) string { return strings.ReplaceAll(s, "|", `\|`) }

// code returns s as code in a cell of a table; the double delimiter allows backticks in s.
func code(s string) string {
	switch {
	case s == "":
		return ""
	case strings.Contains(s, "`"):
		return "`` " + cell(s) + " ``"
	default:
		return "`" + cell(s) + "`"
	}
}
