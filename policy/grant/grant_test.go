package grant_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/policy/grant"
)

func TestGrantText(t *testing.T) {
	t.Parallel()
	for want, g := range map[string]grant.Grant{
		"rm 'a b'":            {Kind: grant.Exact, Words: []string{"rm", "'a b'"}},
		"cat x | psql db < y": {Kind: grant.Exact, Words: []string{"psql", "db"}, Feed: [][]string{{"cat", "x"}}, Stdin: []string{"y"}},
		"git push *":          {Kind: grant.Prefix, Words: []string{"git", "push"}},
		"/work/a":             {Kind: grant.Exact, Input: "/work/a"},
		"/work/src/*.go":      {Kind: grant.Path, Dir: "/work/src", Ext: ".go"},
		"*":                   {Kind: grant.Tool},
		"":                    {},
	} {
		if got := g.Text(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestRelative(t *testing.T) {
	t.Parallel()
	list := []grant.File{{Name: ".", Path: "/w"}, {Name: "a", Path: "/w/a"}, {Name: "b", Path: "/wb"}, {Name: "c"}}
	want := []grant.File{{Name: ".", Path: "."}, {Name: "a", Path: "./a"}, {Name: "b", Path: "/wb"}, {Name: "c"}}
	if diff := cmp.Diff(want, grant.Relative(list)); diff != "" || list[0].Path != "/w" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if diff := cmp.Diff(list[1:], grant.Relative(list[1:])); diff != "" {
		t.Errorf("without a directory (-want +got)\n%s", diff)
	}
}

func TestChangedFiles(t *testing.T) {
	t.Parallel()
	before := []grant.File{{Name: "same", Hash: "1"}, {Name: "other", Hash: "1"}, {Name: "gone", Hash: "1"}}
	now := []grant.File{{Name: "same", Hash: "1"}, {Name: "other", Hash: "2"}, {Name: "new", Hash: "1"}}
	if diff := cmp.Diff([]string{"other", "gone", "new"}, grant.ChangedFiles(before, now)); diff != "" {
		t.Error(diff)
	}
}

// TestHostText: a rule about a host, and about every address, is named for people.
func TestHostText(t *testing.T) {
	t.Parallel()
	for input, want := range map[string]string{"": "*", "a.example": "a.example"} {
		if got := (&grant.Grant{Kind: grant.Host, Input: input}).Text(); got != want {
			t.Errorf("%q: %q", input, got)
		}
	}
}
