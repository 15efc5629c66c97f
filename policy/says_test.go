package policy_test

import (
	"testing"

	"github.com/zephbot/zephbot/policy"
	"github.com/zephbot/zephbot/policy/act"
)

// TestSays: what the tool of a call says of itself decides, not its name.
func TestSays(t *testing.T) {
	t.Parallel()
	says := func(a act.Act) *act.Statement { return &act.Statement{Act: a} }
	for name, tt := range map[string]struct {
		options policy.Options
		request policy.Request
		want    policy.Effect
	}{
		"an unknown tool asks":               {request: policy.Request{Tool: "new"}, want: policy.Ask},
		"a new tool that reads":              {request: policy.Request{Tool: "new", Says: says(act.ReadsFile)}, want: policy.Allow},
		"a known name that says nothing":     {request: policy.Request{Tool: "read", Says: &act.Statement{}}, want: policy.Ask},
		"a known name, nothing handed over":  {request: policy.Request{Tool: "read"}, want: policy.Allow},
		"a new tool that runs commands":      {request: policy.Request{Tool: "new", Says: says(act.Runs), Inputs: []string{"sudo id"}}, want: policy.Deny},
		"a text that is no command":          {request: policy.Request{Tool: "new", Inputs: []string{"sudo id"}}, want: policy.Ask},
		"a server's tool is not believed":    {request: policy.Request{Tool: "srv:read", Says: says(act.ReadsFile)}, want: policy.Ask},
		"readonly, a new tool that reads":    {options: policy.Options{Level: policy.ReadOnly}, request: policy.Request{Tool: "new", Says: says(act.Searches)}, want: policy.Allow},
		"readonly, a tool that says nothing": {options: policy.Options{Level: policy.ReadOnly}, request: policy.Request{Tool: "new"}, want: policy.Deny},
		"readonly, a server's tool":          {options: policy.Options{Level: policy.ReadOnly}, request: policy.Request{Tool: "srv:a", Says: says(act.ReadsFile), TrustedServer: true, ReadOnly: true}, want: policy.Deny},
		"quarantined, says nothing":          {request: policy.Request{Tool: "new", Trust: policy.Quarantined}, want: policy.Deny},
		"quarantined, a server's tool":       {request: policy.Request{Tool: "srv:a", Says: says(act.Recalls), Trust: policy.Quarantined}, want: policy.Deny},
		"a startup file":                     {request: policy.Request{Tool: "new", Says: says(act.WritesFile), Inputs: []string{"/w/.bashrc"}, Grants: []policy.Grant{{Tool: "new", Kind: policy.GrantExact, Input: "/w/.bashrc"}}}, want: policy.Ask},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if d := newSet(t, tt.options).Decide(tt.request); d.Effect != tt.want {
				t.Errorf("%+v", d)
			}
		})
	}
}

// TestSaysRules: the rules of a tool that states that it writes files apply to commands, whatever its name. Those of a
// tool without a statement do not.
func TestSaysRules(t *testing.T) {
	t.Parallel()
	list := append(stated(), act.Tool{Name: "patch", Statement: act.Statement{Act: act.WritesFile, Verb: "patch", Aliases: []string{"fix"}}})
	o := policy.Options{Tools: list, Permissions: map[string][]policy.Permission{"fix": {{Pattern: "*.lock", Action: policy.Deny}, {Pattern: "*", Action: policy.Allow}}}}
	r := bash("rm x; echo 1 > a.lock")
	r.Dir, r.InsidePaths = "/w", []string{"/w"}
	if d := newSet(t, o).Decide(r); d.Effect != policy.Deny || d.Reason.String() != "A rule denies using patch on `a.lock`." {
		t.Errorf("%+v", d)
	}
	o.Tools = stated()
	if d := newSet(t, o).Decide(r); d.Effect != policy.Ask {
		t.Errorf("%+v", d)
	}
	o.Tools = []act.Tool{} // no tool reads commands: nothing is taken for one, and nothing is allowed
	if d := newSet(t, o).Decide(bash("ls")); d.Effect != policy.Ask {
		t.Errorf("%+v", d)
	}
}

// TestUse: a reason says what a tool does by a word that is said in all languages, else by the tool's name.
func TestUse(t *testing.T) {
	t.Parallel()
	s := newSet(t, policy.Options{})
	for tool, tt := range map[string]struct {
		says *act.Statement
		want string
	}{
		"delete_path": {&act.Statement{Act: act.WritesFile, Verb: act.Delete}, "No rule allows deleting `/w/a`."},
		"send_file":   {&act.Statement{Act: act.WritesFile, Verb: act.Send}, "No rule allows using send_file on `/w/a`."},
		"srv:delete":  {&act.Statement{Act: act.WritesFile, Verb: act.Delete}, "No rule allows using srv:delete on `/w/a`."},
		"unsaid":      {nil, "No rule allows using unsaid on `/w/a`."},
	} {
		got := s.Decide(policy.Request{Tool: tool, Says: tt.says, Inputs: []string{"/w/a"}})
		if got.Effect != policy.Ask || got.Reason.String() != tt.want {
			t.Errorf("%s: %+v, want %q", tool, got, tt.want)
		}
	}
}
