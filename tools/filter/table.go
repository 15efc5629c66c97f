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

func (t *table) recordFault(format string, args ...any) {
	if t.err == nil {
		t.err = fmt.Errorf(format, args...)
	}
}

func (t *table) takeKey(key string) (any, bool) {
	t.known = append(t.known, key)
	v, ok := t.values[key]
	return v, ok
}

func (t *table) readText(key string) string {
	v, ok := t.takeKey(key)
	if !ok {
		return ""
	}
	s, ok := v.(string)
	if !ok {
		t.recordFault("%s has to be a text in quotes", key)
	}
	return s
}

func (t *table) readFlag(key string) (value, given bool) {
	v, ok := t.takeKey(key)
	if !ok {
		return false, false
	}
	b, ok := v.(bool)
	if !ok {
		t.recordFault("%s has to be true or false", key)
	}
	return b, true
}

// readNumber reads a whole number that is not negative.
func (t *table) readNumber(key string, otherwise int) int {
	v, ok := t.takeKey(key)
	if !ok {
		return otherwise
	}
	n, ok := v.(int64)
	if !ok || n < 0 || n > 1<<30 {
		t.recordFault("%s has to be a whole number from 0 on", key)
		return otherwise
	}
	return int(n)
}

func (t *table) readTexts(key string) []string {
	v, ok := t.takeKey(key)
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
		t.recordFault("%s has to be a list of texts", key)
	}
	return out
}

func (t *table) readPatterns(key string) *patterns {
	exprs := t.readTexts(key)
	if t.err != nil || len(exprs) == 0 {
		return nil
	}
	p, err := newPatterns(exprs)
	if err != nil {
		t.recordFault("%s: %w", key, err)
	}
	return p
}

// readPattern reads a regular expression; otherwise is its default.
func (t *table) readPattern(key, otherwise string) pattern {
	expr := t.readText(key)
	if expr == "" {
		expr = otherwise
	}
	p, err := newPattern(expr)
	if err != nil {
		t.recordFault("%s: %w", key, err)
	}
	return p
}

// readTable reads a nested table.
func (t *table) readTable(key string) *table {
	v, ok := t.takeKey(key)
	m, isTable := v.(map[string]any)
	switch {
	case !ok:
		t.recordFault("%s is missing", key)
	case !isTable:
		t.recordFault("%s has to be a table: %s = { … }", key, key)
	}
	return &table{values: m}
}

// firstFault returns the first error, including unknown keys.
func (t *table) firstFault(what string) error {
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

// readRule reads a whole rule.
func (t *table) readRule(name string) (rule, error) {
	r := rule{name: name}
	if strings.TrimSpace(name) == "" {
		t.recordFault("name is missing")
	}
	match := t.readTable("match")
	r.readMatch(match)
	how := t.readTable("strategy")
	if err := t.firstFault("a rule"); err != nil {
		return rule{}, err
	}
	if err := match.firstFault("match"); err != nil {
		return rule{}, err
	}
	typ := how.readText("type")
	r.strategy = how.readStrategy(typ)
	if err := how.firstFault("strategy " + typ); err != nil {
		return rule{}, err
	}
	return r, nil
}

// readMatch reads what a rule applies to: exactly one of exact, prefix and regex.
func (r *rule) readMatch(t *table) {
	if t.err != nil || t.values == nil {
		return
	}
	r.exact, r.prefix = t.readText("exact"), t.readText("prefix")
	expr := t.readText("regex")
	given := 0
	for _, v := range []string{r.exact, r.prefix, expr} {
		if v != "" {
			given++
		}
	}
	if given != 1 {
		t.recordFault("match needs exactly one of exact, prefix and regex, not %d of them", given)
		return
	}
	if expr == "" {
		return
	}
	p, err := newPattern(expr)
	if err != nil {
		t.recordFault("match.regex: %w", err)
		return
	}
	r.regex = &p
}

// readStrategy reads one of the twelve strategies.
func (t *table) readStrategy(typ string) strategy {
	switch typ {
	case "strip_noise", "keep_matching":
		p := t.readPatterns("patterns")
		if p == nil {
			t.recordFault("%s needs patterns", typ)
		}
		return drop{patterns: p, invert: typ == "keep_matching"}
	case "truncate":
		s := truncate{head: t.readNumber("head", 20), tail: t.readNumber("tail", 20)}
		s.most = t.readNumber("max_lines", s.head+s.tail)
		if s.head+s.tail > s.most {
			t.recordFault("head (%d) and tail (%d) are more than max_lines (%d)", s.head, s.tail, s.most)
		}
		return s
	case "strip_annotated":
		return t.readAnnotated()
	case "test_summary":
		return testSummary{most: t.readNumber("max_failures", 10), trace: t.readNumber("truncate_stack_trace", 50)}
	case "group_by_rule":
		return groupByRule{
			location: t.readPattern("location_pattern", `^\s*-->\s*(.+:\d+)`),
			rule:     t.readPattern("rule_pattern", `#\[(?:warn|deny)\(([^)]+)\)\]`),
		}
	case "git_status":
		return gitStatus{}
	case "git_diff":
		return gitDiff{most: t.readNumber("max_diff_lines", 500)}
	case "dedup":
		return t.readDedup()
	case "fold":
		progress, _ := t.readFlag("progress")
		return fold{progress: progress}
	case "diagnostics":
		return diagnostics{}
	case "listing":
		return listing{most: t.readNumber("per_directory", 4)}
	case "":
		t.recordFault("strategy.type is missing")
	default:
		t.recordFault("unknown strategy %q; there are strip_noise, truncate, keep_matching, strip_annotated, "+
			"test_summary, group_by_rule, git_status, git_diff, dedup, fold, diagnostics, listing", typ)
	}
	return nil
}

func (t *table) readAnnotated() strategy {
	exprs := t.readTexts("patterns")
	for _, prefix := range t.readTexts("prefixes") {
		if strings.TrimSpace(prefix) == "" {
			t.recordFault("prefixes has an empty entry")
			continue
		}
		exprs = append(exprs, `^[\s=|]*`+regexp.QuoteMeta(prefix))
	}
	a := annotated{
		most: t.readNumber("long_output_threshold", 0), head: t.readNumber("keep_head", 10),
		tail: t.readNumber("keep_tail", 5),
	}
	if expr := t.readText("summary_pattern"); expr != "" {
		a.summary = t.readCompiled("summary_pattern", []string{expr})
	}
	if len(exprs) == 0 {
		t.recordFault("strip_annotated needs patterns or prefixes")
		return a
	}
	a.patterns = t.readCompiled("patterns", exprs)
	if a.most > 0 && a.head+a.tail > a.most {
		t.recordFault(
			"keep_head (%d) and keep_tail (%d) are more than long_output_threshold (%d)", a.head, a.tail, a.most,
		)
	}
	return a
}

func (t *table) readCompiled(key string, exprs []string) *patterns {
	p, err := newPatterns(exprs)
	if err != nil {
		t.recordFault("%s: %w", key, err)
	}
	return p
}

// readDedup reads the patterns of what is ignored when lines are compared.
func (t *table) readDedup() strategy {
	var d dedup
	v, given := t.takeKey("normalize_patterns")
	list, ok := v.([]any)
	if given && !ok {
		t.recordFault("normalize_patterns has to be a list of { pattern, replacement }")
	}
	for i, one := range list {
		m, _ := one.(map[string]any)
		entry := &table{values: m}
		r := replacement{with: entry.readText("replacement")}
		expr := entry.readText("pattern")
		if expr == "" && entry.err == nil {
			entry.err = errors.New("pattern is missing")
		}
		if strings.Contains(strings.ReplaceAll(r.with, "$$", ""), "$") && entry.err == nil {
			entry.err = fmt.Errorf("the replacement %q has a $; write $$ for the character itself", r.with)
		}
		p, err := newPattern(expr)
		r.pattern = p
		if err = errors.Join(entry.firstFault("an entry of normalize_patterns"), err); err != nil {
			t.recordFault("normalize_patterns %d: %w", i+1, err)
		}
		d.replace = append(d.replace, r)
	}
	return d
}
