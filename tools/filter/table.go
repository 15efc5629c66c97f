package filter

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// table reads the keys of a rule. err is the first error. Every key that was read counts as known.
type table struct {
	values map[string]any
	known  []string
	err    error
}

func sortedKeys(m map[string]any) []string { return slices.Sorted(maps.Keys(m)) }

func (t *table) fail(format string, args ...any) {
	if t.err == nil {
		t.err = fmt.Errorf(format, args...)
	}
}

func (t *table) take(key string) (any, bool) {
	t.known = append(t.known, key)
	v, ok := t.values[key]
	return v, ok
}

func (t *table) text(key string) string {
	v, ok := t.take(key)
	if !ok {
		return ""
	}
	s, ok := v.(string)
	if !ok {
		t.fail("%s has to be a text in quotes", key)
	}
	return s
}

func (t *table) flag(key string) (value, given bool) {
	v, ok := t.take(key)
	if !ok {
		return false, false
	}
	b, ok := v.(bool)
	if !ok {
		t.fail("%s has to be true or false", key)
	}
	return b, true
}

// number reads a whole number that is not negative.
func (t *table) number(key string, otherwise int) int {
	v, ok := t.take(key)
	if !ok {
		return otherwise
	}
	n, ok := v.(int64)
	if !ok || n < 0 || n > 1<<30 {
		t.fail("%s has to be a whole number from 0 on", key)
		return otherwise
	}
	return int(n)
}

func (t *table) texts(key string) []string {
	v, ok := t.take(key)
	if !ok {
		return nil
	}
	list, ok := v.([]any)
	out := make([]string, 0, len(list))
	for _, one := range list {
		s, isText := one.(string)
		ok = ok && isText
		out = append(out, s)
	}
	if !ok {
		t.fail("%s has to be a list of texts", key)
	}
	return out
}

func (t *table) patterns(key string) *patterns {
	exprs := t.texts(key)
	if t.err != nil || len(exprs) == 0 {
		return nil
	}
	p, err := newPatterns(exprs)
	if err != nil {
		t.fail("%s: %w", key, err)
	}
	return p
}

// one reads a regular expression; otherwise is its default.
func (t *table) one(key, otherwise string) pattern {
	expr := t.text(key)
	if expr == "" {
		expr = otherwise
	}
	p, err := newPattern(expr)
	if err != nil {
		t.fail("%s: %w", key, err)
	}
	return p
}

// sub reads a nested table.
func (t *table) sub(key string) *table {
	v, ok := t.take(key)
	m, isTable := v.(map[string]any)
	switch {
	case !ok:
		t.fail("%s is missing", key)
	case !isTable:
		t.fail("%s has to be a table: %s = { … }", key, key)
	}
	return &table{values: m}
}

// done returns the first error, including unknown keys.
func (t *table) done(what string) error {
	if t.err != nil {
		return t.err
	}
	for _, key := range sortedKeys(t.values) {
		if !slices.Contains(t.known, key) {
			return fmt.Errorf("%s has the unknown key %q; it knows %s", what, key, strings.Join(t.known, ", "))
		}
	}
	return nil
}

// rule reads a whole rule.
func (t *table) rule(name string) (rule, error) {
	r := rule{name: name}
	if strings.TrimSpace(name) == "" {
		t.fail("name is missing")
	}
	match := t.sub("match")
	r.match(match)
	how := t.sub("strategy")
	if err := t.done("a rule"); err != nil {
		return rule{}, err
	}
	if err := match.done("match"); err != nil {
		return rule{}, err
	}
	typ := how.text("type")
	r.strategy = how.strategy(typ)
	if err := how.done("strategy " + typ); err != nil {
		return rule{}, err
	}
	return r, nil
}

// match reads what a rule applies to: exactly one of exact, prefix and regex.
func (r *rule) match(t *table) {
	if t.err != nil || t.values == nil {
		return
	}
	r.exact, r.prefix = t.text("exact"), t.text("prefix")
	expr := t.text("regex")
	given := 0
	for _, v := range []string{r.exact, r.prefix, expr} {
		if v != "" {
			given++
		}
	}
	if given != 1 {
		t.fail("match needs exactly one of exact, prefix and regex, not %d of them", given)
		return
	}
	if expr == "" {
		return
	}
	p, err := newPattern(expr)
	if err != nil {
		t.fail("match.regex: %w", err)
		return
	}
	r.regex = &p
}

// strategy reads one of the twelve strategies.
func (t *table) strategy(typ string) strategy {
	switch typ {
	case "strip_noise", "keep_matching":
		p := t.patterns("patterns")
		if p == nil {
			t.fail("%s needs patterns", typ)
		}
		return drop{patterns: p, invert: typ == "keep_matching"}
	case "truncate":
		s := truncate{head: t.number("head", 20), tail: t.number("tail", 20)}
		s.most = t.number("max_lines", s.head+s.tail)
		if s.head+s.tail > s.most {
			t.fail("head (%d) and tail (%d) are more than max_lines (%d)", s.head, s.tail, s.most)
		}
		return s
	case "strip_annotated":
		return t.annotated()
	case "test_summary":
		return testSummary{most: t.number("max_failures", 10), trace: t.number("truncate_stack_trace", 50)}
	case "group_by_rule":
		return groupByRule{
			location: t.one("location_pattern", `^\s*-->\s*(.+:\d+)`),
			rule:     t.one("rule_pattern", `#\[(?:warn|deny)\(([^)]+)\)\]`),
		}
	case "git_status":
		return gitStatus{}
	case "git_diff":
		return gitDiff{most: t.number("max_diff_lines", 500)}
	case "dedup":
		return t.dedup()
	case "fold":
		progress, _ := t.flag("progress")
		return fold{progress: progress}
	case "diagnostics":
		return diagnostics{}
	case "listing":
		return listing{most: t.number("per_directory", 4)}
	case "":
		t.fail("strategy.type is missing")
	default:
		t.fail("unknown strategy %q; there are strip_noise, truncate, keep_matching, strip_annotated, test_summary, group_by_rule, git_status, git_diff, dedup, fold, diagnostics, listing", typ)
	}
	return nil
}

func (t *table) annotated() strategy {
	exprs := t.texts("patterns")
	for _, prefix := range t.texts("prefixes") {
		if strings.TrimSpace(prefix) == "" {
			t.fail("prefixes has an empty entry")
			continue
		}
		exprs = append(exprs, `^[\s=|]*`+regexp.QuoteMeta(prefix))
	}
	a := annotated{
		most: t.number("long_output_threshold", 0), head: t.number("keep_head", 10),
		tail: t.number("keep_tail", 5),
	}
	if expr := t.text("summary_pattern"); expr != "" {
		a.summary = t.compiled("summary_pattern", []string{expr})
	}
	if len(exprs) == 0 {
		t.fail("strip_annotated needs patterns or prefixes")
		return a
	}
	a.patterns = t.compiled("patterns", exprs)
	if a.most > 0 && a.head+a.tail > a.most {
		t.fail("keep_head (%d) and keep_tail (%d) are more than long_output_threshold (%d)", a.head, a.tail, a.most)
	}
	return a
}

func (t *table) compiled(key string, exprs []string) *patterns {
	p, err := newPatterns(exprs)
	if err != nil {
		t.fail("%s: %w", key, err)
	}
	return p
}

// dedup reads the patterns of what is ignored when lines are compared.
func (t *table) dedup() strategy {
	var d dedup
	v, given := t.take("normalize_patterns")
	list, ok := v.([]any)
	if given && !ok {
		t.fail("normalize_patterns has to be a list of { pattern, replacement }")
	}
	for i, one := range list {
		m, _ := one.(map[string]any)
		entry := &table{values: m}
		r := replacement{with: entry.text("replacement")}
		expr := entry.text("pattern")
		if expr == "" && entry.err == nil {
			entry.err = errors.New("pattern is missing")
		}
		if strings.Contains(strings.ReplaceAll(r.with, "$$", ""), "$") && entry.err == nil {
			entry.err = fmt.Errorf("the replacement %q has a $; write $$ for the character itself", r.with)
		}
		p, err := newPattern(expr)
		r.pattern = p
		if err = errors.Join(entry.done("an entry of normalize_patterns"), err); err != nil {
			t.fail("normalize_patterns %d: %w", i+1, err)
		}
		d.replace = append(d.replace, r)
	}
	return d
}
