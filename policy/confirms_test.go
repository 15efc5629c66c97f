package policy_test

import (
	"testing"

	"github.com/zephbot/zephbot/policy"
	"github.com/zephbot/zephbot/policy/act"
	"github.com/zephbot/zephbot/policy/command"
)

// TestConfirms: what the operator wants to be asked about is recognised wherever it stands in a command, and also where
// another rule asks first.
func TestConfirms(t *testing.T) {
	t.Parallel()
	rules := func(list ...policy.Permission) policy.Options {
		return policy.Options{
			Permissions: map[string][]policy.Permission{"bash": list}, ConfirmPatterns: command.DefaultConfirm(),
		}
	}
	deploy := rules(policy.Permission{Pattern: "deploy *", Action: policy.Ask}, policy.Permission{Pattern: "make *", Action: policy.Allow})
	files := policy.Options{Permissions: map[string][]policy.Permission{
		"read": {{Pattern: "other/*", Action: policy.Ask}, {Pattern: "*", Action: policy.Allow}},
	}}
	own := policy.Options{ConfirmPatterns: []string{"deploy"}}
	for _, c := range []struct {
		options policy.Options
		text    string
		want    bool
	}{
		{policy.Options{ConfirmPatterns: command.DefaultConfirm()}, "rm a.tmp", false}, // built in, not the operator's own
		{policy.Options{ConfirmPatterns: command.DefaultConfirm()}, "echo $(date)", false},
		{policy.Options{}, "touch a", false},
		{files, "cat other/x.txt", true}, // its output would show what has to be approved
		{files, "cat open.txt", false},
		{own, "touch a", false},
		{own, "touch a && ./DEPLOY now", true},
		{own, `touch a; de"pl"oy`, true},
		{own, "x=dep; ${x}loy now", true}, // it cannot be foreseen
		{deploy, "touch a", false},
		{deploy, "deploy now", true},
		{deploy, "touch a && deploy now", true}, // that no rule allows touch is said first
		{deploy, "/usr/bin/deploy now", true},
		{deploy, "nice -n 5 deploy now", true},
		{deploy, "echo x | xargs deploy", true},
		{deploy, "bash -c 'deploy now'", true},
		{deploy, "unknown-wrapper deploy now", true},
		{deploy, "$RUN now", true},
		{rules(policy.Permission{Pattern: "*", Action: policy.Ask}), "touch a", true},
		{rules(policy.Permission{Pattern: "> *.lock", Action: policy.Ask}), "echo x > a.lock", true},
		{rules(policy.Permission{Pattern: "rm *", Action: policy.Allow}, policy.Permission{Pattern: "rm -r *", Action: policy.Ask}), "rm -r a", true},
	} {
		o := c.options
		o.Tools = []act.Tool{{Name: "bash", Statement: act.Statement{Act: act.Runs}}, {Name: "read", Statement: act.Statement{Act: act.ReadsFile, Verb: act.Read}}}
		set, err := policy.New(o)
		if err != nil {
			t.Fatal(err)
		}
		r := policy.Request{
			Tool: "bash", Inputs: []string{c.text}, Dir: "/w", InsidePaths: []string{"/w"}, Bared: true,
			Files: map[string][]string{"/w/other/x.txt": {"/w/other/x.txt"}, "/w/open.txt": {"/w/open.txt"}},
		}
		if got := set.Confirms(r); got != c.want {
			t.Errorf("%q with %v: %t, want %t", c.text, c.options.Permissions, got, c.want)
		}
	}
	set, err := policy.New(policy.Options{ConfirmPatterns: []string{"deploy"}})
	if err != nil {
		t.Fatal(err)
	}
	if set.Confirms(policy.Request{Tool: "read", Inputs: []string{"deploy"}}) {
		t.Error("a tool that runs no command")
	}
}
