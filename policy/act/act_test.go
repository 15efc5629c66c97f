package act_test

import (
	"slices"
	"testing"

	"github.com/zephbot/zephbot/policy/act"
)

// TestActs checks what each act implies. A tool without a statement counts as one that may do anything.
func TestActs(t *testing.T) {
	t.Parallel()
	type kind struct{ onlyReads, quiet, readsFiles, free, own bool }
	for a, want := range map[act.Act]kind{
		act.Unknown: {}, act.Runs: {}, act.WritesFile: {own: true}, act.MakesDirectory: {own: true}, act.RemovesPath: {own: true}, act.MovesPath: {own: true}, act.CopiesPath: {own: true},
		act.ReadsFile: {true, true, true, true, false}, act.Searches: {true, true, true, true, false}, act.Inspects: {false, true, true, true, false},
		act.ShowsFile: {true, true, true, true, false},
		act.ReadsWeb:  {onlyReads: true, free: true}, act.Recalls: {quiet: true, free: true, own: true}, act.Keeps: {free: true, own: true}, act.Remembers: {free: true, own: true}, act.Delegates: {quiet: true, free: true},
		act.Asks:  {onlyReads: true, quiet: true, free: true, own: true},
		act.Makes: {free: true, own: true},
		act.Plans: {onlyReads: true, quiet: true, free: true, own: true},
	} {
		if got := (kind{a.OnlyReads(), a.Quiet(), a.ReadsFiles(), a.Free(), !a.Brings()}); got != want {
			t.Errorf("act %d: %+v, want %+v", a, got, want)
		}
	}
}

func TestVerbs(t *testing.T) {
	t.Parallel()
	verbs := act.Verbs()
	if slices.Contains(verbs, "") || len(slices.Compact(slices.Sorted(slices.Values(verbs)))) != len(verbs) || !slices.Contains(verbs, act.Fetch) {
		t.Errorf("verbs %q", verbs)
	}
}

// TestNames: built-in tools are found by name and alias in any case; the names of servers' tools are not changed.
func TestNames(t *testing.T) {
	t.Parallel()
	list := []act.Tool{
		{Name: "bash", Statement: act.Statement{Aliases: []string{"shell", "sh"}, Act: act.Runs}},
		{Name: "read", Statement: act.Statement{Act: act.ReadsFile, Cache: act.Files}},
	}
	names := act.NewNames(list)
	for name, want := range map[string]string{
		"bash": "bash", " Bash ": "bash", "SHELL": "bash", "sh": "bash", "read": "read", "other": "other", "Other": "other",
		"srv:Shell": "srv:Shell", " srv:Bash ": "srv:Bash", "": "",
	} {
		if got := names.Canonical(name); got != want {
			t.Errorf("%q is %q, want %q", name, got, want)
		}
	}
	if names.Act("bash") != act.Runs || names.Act("srv:bash") != act.Unknown || (act.Names{}).Act("bash") != act.Unknown {
		t.Error("acts by name")
	}
	if (act.Names{}).Canonical("Shell") != "shell" {
		t.Error("no names resolve nothing")
	}
	if s := act.Of(list, "read"); s == nil || s.Cache != act.Files || s != &list[1].Statement {
		t.Errorf("statement of read: %+v", s)
	}
	if s := act.Of(list, "shell"); s != nil {
		t.Errorf("a statement by an alias: %+v", s)
	}
}
