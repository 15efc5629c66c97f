package audit_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/audit"
)

// written returns a log of five calls, with numbers from there on.
func written(t *testing.T, from int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l := open(t, path)
	for n := range 5 {
		l.Record(call(from+n), &tools.Result{}, nil)
	}
	closeLog(t, l)
	return read(t, path)
}

func TestTampering(t *testing.T) {
	t.Parallel()
	good, other := written(t, 0), written(t, 50)
	split := func() []string { return slices.Collect(strings.Lines(good)) }
	for _, tc := range []struct {
		name   string
		tamper func() string
		want   []audit.Problem
	}{
		{"untouched", func() string { return good }, nil},
		{"empty", func() string { return "" }, nil},
		{
			"edited", func() string { return strings.Replace(good, `"text":"2"`, `"text":"9"`, 1) },
			[]audit.Problem{{Line: 3, Kind: audit.Changed, Text: "it was changed: its hash does not fit its text"}},
		},
		{
			"removed in the middle", func() string { s := split(); return strings.Join(append(s[:2:2], s[3:]...), "") },
			[]audit.Problem{{Line: 3, Kind: audit.Missing, Text: "it does not follow the line before: lines between them were removed, or the line before was rewritten with its hash"}},
		},
		{
			"removed at the top", func() string { return strings.Join(split()[1:], "") },
			[]audit.Problem{{Line: 1, Kind: audit.Missing, Text: "it continues a chain whose earlier lines are not here: name their files too, the oldest first"}},
		},
		{
			"moved", func() string { s := split(); s[1], s[2] = s[2], s[1]; return strings.Join(s, "") },
			[]audit.Problem{
				{Line: 2, Kind: audit.Reordered, Text: "it follows :3: lines were moved; the line that belongs here is :3"},
				{Line: 3, Kind: audit.Missing, Text: "it does not follow the line before: lines were removed, added or moved"},
				{Line: 4, Kind: audit.Missing, Text: "it does not follow the line before: lines were removed, added or moved"},
			},
		},
		{
			"doubled", func() string { s := split(); return s[0] + s[0] },
			[]audit.Problem{{Line: 2, Kind: audit.Reordered, Text: "it is a copy of :1: it was added"}},
		},
		{
			"other chain put in front", func() string { s := split(); return strings.Join(s[:3], "") + other },
			[]audit.Problem{{Line: 4, Kind: audit.Foreign, Text: "a new chain begins here: the lines before it may have been replaced"}},
		},
		{
			"torn at the end", func() string { return good[:len(good)-40] },
			[]audit.Problem{{Line: 5, Kind: audit.Truncated, Text: "it is cut short or no audit line, and nothing accounts for it yet"}},
		},
		{
			"garbage in the middle", func() string { s := split(); s[2] = "garbage\n"; return strings.Join(s, "") },
			[]audit.Problem{
				{Line: 3, Kind: audit.Foreign, Text: "it is no audit line, and the line after it does not account for it"},
				{Line: 4, Kind: audit.Missing, Text: "it does not follow the line before: lines were removed, added or moved"},
			},
		},
		{
			"hash and text from another line", func() string { s := split(); s[3] = s[2]; return strings.Join(s[:4], "") },
			[]audit.Problem{{Line: 4, Kind: audit.Reordered, Text: "it is a copy of :3: it was added"}},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, verify(t, tc.tamper()).Problems, cmpopts.IgnoreFields(audit.Problem{}, "Time")); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRestart(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name    string
		between func(s string) string
		lines   int
		torn    int
		want    []audit.Problem
	}{
		{"plain", func(s string) string { return s }, 4, 0, nil},
		{"last line cut short", func(s string) string { return s[:len(s)-30] }, 4, 1, nil},
		{"only a fragment stands", func(string) string { return `{"timest` }, 3, 1, nil},
		{"newline missing", func(s string) string { return s[:len(s)-1] }, 4, 0, nil},
		{"zeros after a power cut", func(s string) string { return s + "\x00\x00\x00" }, 5, 1, nil},
		{
			"garbage line is not excused", func(s string) string { return s + "garbage\n" }, 5, 0,
			[]audit.Problem{{Line: 3, Kind: audit.Foreign, Text: "it is no audit line, and the line after it does not account for it"}},
		},
		{
			"garbage and a fragment", func(s string) string { return s + "garbage\n{\"x" }, 5, 0,
			[]audit.Problem{{Line: 3, Kind: audit.Foreign, Text: "it is no audit line, and the line after it does not account for it"}},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "deep", "audit.jsonl")
			l := open(t, path)
			l.Record(call(1), &tools.Result{}, nil)
			l.Record(call(2), &tools.Result{}, nil)
			closeLog(t, l)
			before := tc.between(read(t, path))
			if err := os.WriteFile(path, []byte(before), 0o600); err != nil {
				t.Fatal(err)
			}
			l = open(t, path)
			l.Record(call(3), &tools.Result{}, nil)
			l.Record(call(4), &tools.Result{}, nil)
			closeLog(t, l)
			after := read(t, path)
			if !strings.HasPrefix(after, before) {
				t.Fatal("what stood in the file was changed")
			}
			r := verify(t, after)
			if r.Lines != tc.lines || r.Torn != tc.torn {
				t.Errorf("%d lines, %d torn; want %d, %d\n%s", r.Lines, r.Torn, tc.lines, tc.torn, after)
			}
			if diff := cmp.Diff(tc.want, r.Problems, cmpopts.IgnoreFields(audit.Problem{}, "Time")); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}
