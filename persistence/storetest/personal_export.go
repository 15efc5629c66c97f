package storetest

import (
	"archive/zip"
	"bytes"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/bot/privacy"
)

// unzip returns the files of a ZIP by name.
func unzip(t *testing.T, raw []byte) map[string]string {
	t.Helper()
	r, err := zip.NewReader(bytes.NewReader(raw), int64(len(raw)))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, f := range r.File {
		in, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		files[f.Name] = string(content)
	}
	return files
}

// checkExport reads an export of the person.
func checkExport(t *testing.T, store PersonalStore) {
	t.Helper()
	files := exportOf(t, store)
	var names []string
	for name, content := range files {
		if strings.HasPrefix(name, "files/") {
			name = "files/"
		}
		names = append(names, name)
		if strings.Contains(content, "I said this.") || strings.Contains(content, similarID) {
			t.Errorf("%s has what others said: %s", name, content)
		}
		if name != "README.txt" && !strings.Contains(content, Canary) &&
			name != "usage.jsonl" && name != "sessions.jsonl" {
			t.Errorf("%s lacks what the person said: %s", name, content)
		}
	}
	slices.Sort(names)
	want := []string{
		"README.txt", "approvals.jsonl", "conversations.jsonl", "files/", "outputs.jsonl", "received.jsonl",
		"sent.jsonl", "sessions.jsonl", "settings.jsonl", "usage.jsonl",
	}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

func exportOf(t *testing.T, store PersonalStore) map[string]string {
	t.Helper()
	x := &privacy.Exporter{
		Tables:  store,
		Buckets: personalBuckets(),
		Files:   store,
		Clean:   func(s string) string { return s },
		Now:     func() time.Time { return start },
		Readme:  func(string, time.Time) string { return "read me" },
	}
	out, in := io.Pipe()
	go func() { _ = in.CloseWithError(x.Write(t.Context(), person(), "en", false, in)) }()
	raw, err := io.ReadAll(out)
	if err != nil {
		t.Fatal(err)
	}
	return unzip(t, raw)
}

// chargesStay checks that what was spent this month stays with a person to whom a limit
// applies, until the month is over.
func chargesStay(t *testing.T, store PersonalStore) {
	t.Helper()
	furnishPerson(t, store)
	now := start.Add(time.Hour)
	deps := privacy.Deps{
		Tables:  store,
		Store:   store,
		Buckets: personalBuckets(),
		Now:     func() time.Time { return now },
		Log:     zerolog.Nop(),
		Limited: func(string) bool { return true },
	}
	office := privacy.NewOffice(deps)
	before := spentBy(t, store)
	r, err := office.Erase(t.Context(), privacy.NewJob(person(), now))
	if err != nil || !slices.Contains(r.Stays, privacy.Stay{What: "charge", N: 1, Why: privacy.StaysSums}) {
		t.Fatalf("%+v, %v", r, err)
	}
	own := func() (n int) {
		list, err := store.Charges(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range list {
			if c.Scope == "user/telegram:"+personID {
				n++
			}
		}
		return n
	}
	for _, later := range []struct {
		at    time.Time
		stays int
	}{{now, 1}, {now.AddDate(0, 0, 20), 1}, {now.AddDate(0, 1, 0), 0}, {now.AddDate(0, 2, 0), 0}} {
		now = later.at
		if err := office.Spent(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := own(); n != later.stays {
			t.Errorf("on %s there are %d charges of the person, want %d", now.Format(time.DateOnly), n, later.stays)
		}
	}
	if left, err := store.FactsOf(t.Context(), privacy.SpentBucket, "", now); err != nil || len(left) > 0 {
		t.Errorf("still known: %v, %v", left, err)
	}
	if after := spentBy(t, store); after != before {
		t.Errorf("%d were spent, and %d after it", before, after)
	}
}
