package postgres_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// newer is what PostgreSQL can do since a version that is newer than the oldest one that is supported, as far as a text
// of ours could use it. The release notes of each version name it.
var newer = []struct {
	since string
	what  *regexp.Regexp
}{
	{"15", regexp.MustCompile(`(?i)\bmerge\s+into\b`)},
	{"15", regexp.MustCompile(`(?i)\bnulls\s+(?:not\s+)?distinct\b`)},
	{"15", regexp.MustCompile(`(?i)\bregexp_(?:count|instr|like|substr)\b`)},
	{"15", regexp.MustCompile(`(?i)\bsecurity_invoker\b`)},
	{"15", regexp.MustCompile(`(?i)\bon\s+delete\s+set\s+(?:null|default)\s*\(`)},
	{"15", regexp.MustCompile(`(?i)\bset\s+access\s+method\b`)},
	{"16", regexp.MustCompile(`(?i)\b(?:any_value|array_shuffle|array_sample|random_normal|pg_input_is_valid|date_add|date_subtract)\s*\(`)},
	{"16", regexp.MustCompile(`(?i)\b(?:json_array|json_object|json_arrayagg|json_objectagg)\s*\(`)},
	{"16", regexp.MustCompile(`(?i)\bis\s+(?:not\s+)?json\b`)},
	{"16", regexp.MustCompile(`\b(?:0[xob][0-9A-Fa-f]+|[0-9]+_[0-9]+)\b`)},
	{"17", regexp.MustCompile(`(?i)\b(?:json_table|json_query|json_value|json_exists|json_scalar|json_serialize)\s*\(`)},
	{"17", regexp.MustCompile(`(?i)\bon_error\b`)},
	{"17", regexp.MustCompile(`(?i)\b(?:to_bin|to_oct|xmltext|uuid_extract_\w+)\s*\(`)},
	{"17", regexp.MustCompile(`(?i)\btransaction_timeout\b`)},
	{"18", regexp.MustCompile(`(?i)\b(?:uuidv[47]|casefold|array_reverse|array_sort|crc32c?)\s*\(`)},
	{"18", regexp.MustCompile(`(?i)\breturning\b.*\b(?:old|new)\.`)},
	{"18", regexp.MustCompile(`(?i)\bwithout\s+overlaps\b`)},
	{"18", regexp.MustCompile(`(?i)\bgenerated\s+always\s+as\s*\([^)]*\)\s*(?:virtual|,|\))`)},
	{"18", regexp.MustCompile(`(?i)\bnot\s+enforced\b`)},
}

// subquery begins one in the place of a table; without a name behind it, only 16 and later take it.
var (
	subquery = regexp.MustCompile(`(?i)\b(?:from|join|,)\s*\(\s*select\b`)
	alias    = regexp.MustCompile(`(?i)^\s*(?:as\s+)?(\w+)`)
	clause   = regexp.MustCompile(`(?i)^(?:where|order|group|limit|on|join|left|inner|union|having|offset|for)$`)
)

// tooNew lists what a text uses that PostgreSQL 14 does not know.
func tooNew(text string) []string {
	text = regexp.MustCompile(`--[^\n]*`).ReplaceAllString(text, "")
	text = strings.Join(strings.Fields(regexp.MustCompile(`'[^']*'`).ReplaceAllString(text, "''")), " ")
	var found []string
	for _, feature := range newer {
		if match := feature.what.FindString(text); match != "" {
			found = append(found, match+" (since "+feature.since+")")
		}
	}
	for _, at := range subquery.FindAllStringIndex(text, -1) {
		rest := text[at[0]+strings.Index(text[at[0]:], "("):]
		depth, end := 0, len(rest)
		for i, r := range rest {
			switch r {
			case '(':
				depth++
			case ')':
				depth--
			}
			if depth == 0 {
				end = i + 1
				break
			}
		}
		if name := alias.FindStringSubmatch(rest[end:]); name == nil || clause.MatchString(name[1]) {
			found = append(found, "a subquery without a name (since 16)")
		}
	}
	return found
}

// TestNothingNewerThanTheOldestServer: only Debian's PostgreSQL is at hand for the tests, so what older servers do not
// know is looked for in the texts.
func TestNothingNewerThanTheOldestServer(t *testing.T) {
	t.Parallel()
	texts := statements(t)
	files, err := filepath.Glob("migrations/*.sql")
	check(t, err)
	for _, file := range files {
		raw, err := os.ReadFile(file)
		check(t, err)
		texts[file] = string(raw)
	}
	if len(texts) < 100 {
		t.Fatalf("%d texts were found", len(texts))
	}
	for name, text := range texts {
		for _, what := range tooNew(text) {
			t.Errorf("%s uses %s; the oldest supported server is PostgreSQL 14", name, what)
		}
	}
}

func TestTooNew(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"SELECT 1": false, "SELECT 'merge into' -- MERGE INTO": false, "SELECT a FROM (SELECT 1 AS a) AS b": false, "SELECT a FROM (SELECT (1) AS a) b WHERE a = 1": false,
		"SELECT EXISTS (SELECT 1)": false, "INSERT INTO x VALUES (1) RETURNING id": false, "SELECT jsonb_build_object('a', 1)": false, "SELECT $1::bigint": false,
		"MERGE INTO x USING y ON a": true, "CREATE UNIQUE INDEX i ON x (a) NULLS NOT DISTINCT": true, "SELECT a FROM (SELECT (1) AS a) WHERE a = 1": true,
		"SELECT * FROM x JOIN (SELECT 1) ON true": true, "SELECT 1_000": true, "SELECT 0xff": true, "UPDATE x SET a = 1 RETURNING old.a": true, "SELECT json_object('a': 1)": true,
		"SELECT any_value(a) FROM x": true, "SELECT uuidv7()": true,
	} {
		if got := tooNew(text); (len(got) > 0) != want {
			t.Errorf("%s: %q", text, got)
		}
	}
}
