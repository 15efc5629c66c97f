package audit_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/policy/reason"
	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/audit"
)

// history writes two logs whose lines alternate in time, the first one in two files.
func history(t *testing.T) (logs []string) {
	t.Helper()
	dir := t.TempDir()
	at := time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
	var open []*audit.Log
	for _, name := range []string{"a.jsonl", "b.jsonl"} {
		path := filepath.Join(dir, name)
		log, err := audit.New(audit.Options{Path: path, ID: name, Log: zerolog.Nop(), Now: func() time.Time { return at }})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = log.Close() })
		logs, open = append(logs, path), append(open, log)
	}
	for i := range 20 {
		at = at.Add(time.Second)
		if i == 10 {
			if err := os.Rename(logs[0], logs[0]+".1"); err != nil {
				t.Fatal(err)
			}
		}
		var failed error
		if i%5 == 0 {
			failed = &tools.Error{Category: tools.PolicyBlocked, Message: "no", Reason: reason.Plain("no")}
		}
		args, _ := json.Marshal(map[string]string{"n": fmt.Sprint(i), "long": strings.Repeat("x", 400)})
		res := &tools.Result{}
		if failed != nil {
			res = nil
		}
		open[i%2].Record(&tools.Call{
			ID: fmt.Sprint(i), Tool: []string{"bash", "read"}[i%2], Args: args, Trail: &tools.Trail{},
			Origin: tools.Origin{Channel: "telegram", Caller: fmt.Sprintf("telegram:%d", i%3), Session: "s"},
		}, res, failed)
	}
	return logs
}

func numbers(t *testing.T, lines []audit.Found) (list []string) {
	t.Helper()
	for _, l := range lines {
		var args struct{ N string }
		if json.Unmarshal(l.Args, &args) == nil && args.N != "" {
			list = append(list, args.N)
		}
	}
	return list
}

// TestSearchPages: all logs and their earlier files are one history, newest first, and pages join without gap or overlap.
func TestSearchPages(t *testing.T) {
	t.Parallel()
	logs := history(t)
	var got []string
	q := audit.Query{Limit: 3}
	for range 30 {
		page, err := audit.Search(t.Context(), logs, q)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, numbers(t, page.Lines)...)
		if q.Next = page.Next; q.Next == "" {
			break
		}
	}
	var want []string
	for i := 19; i >= 0; i-- {
		want = append(want, fmt.Sprint(i))
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %v", got)
	}
}

func TestSearchSelects(t *testing.T) {
	t.Parallel()
	logs := history(t)
	noon := time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		q    audit.Query
		want string
	}{
		"person":     {audit.Query{Person: "1"}, "19 16 13 10 7 4 1"},
		"caller id":  {audit.Query{Person: "telegram:1", Tool: "READ"}, "19 13 7 1"},
		"result":     {audit.Query{Result: "blocked"}, "15 10 5 0"},
		"time":       {audit.Query{Since: noon.Add(5 * time.Second), Until: noon.Add(8 * time.Second)}, "6 5 4"},
		"nobody":     {audit.Query{Person: "11"}, ""},
		"no id part": {audit.Query{Person: ""}, "19 18 17 16 15 14 13 12 11 10 9 8 7 6 5 4 3 2 1 0"},
	} {
		tc.q.Limit = 50
		page, err := audit.Search(t.Context(), logs, tc.q)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(numbers(t, page.Lines), " "); got != tc.want || page.Next != "" {
			t.Errorf("%s: %s, next %q", name, got, page.Next)
		}
	}
	if page, err := audit.Search(t.Context(), append(logs, filepath.Join(t.TempDir(), "none")), audit.Query{Limit: 1}); err != nil || len(page.Lines) != 1 {
		t.Errorf("a log that is not there: %v %v", page, err)
	}
}

// FuzzSearchNext: whatever a page sends as the place to go on from, a search ends and shows no line twice in a page.
func FuzzSearchNext(f *testing.F) {
	f.Add("")
	f.Add("e30")
	f.Add("eyIvYS5qc29ubCI6eyJmIjoiYS5qc29ubCIsImEiOjN9fQ")
	f.Fuzz(func(t *testing.T, next string) {
		page, err := audit.Search(t.Context(), history(t), audit.Query{Next: next, Limit: 50})
		if err == nil && len(page.Lines) > 22 {
			t.Errorf("%d lines", len(page.Lines))
		}
	})
}
