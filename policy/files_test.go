package policy_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/policy"
	"github.com/zephbot/zephbot/policy/command"
	"github.com/zephbot/zephbot/policy/pathrule"
)

// denyRead compiles deny globs.
func denyRead(t testing.TB, allow []string, deny ...string) *pathrule.Rules {
	t.Helper()
	r, err := pathrule.New(deny, allow)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// open allows bash everything and has a rule about files for one tool.
func fileRule(tool string, rules ...policy.Permission) policy.Options {
	return policy.Options{AllowNetwork: true, Permissions: map[string][]policy.Permission{"bash": {{Pattern: "*", Action: policy.Allow}}, tool: rules}}
}

func at(text string, files map[string][]string) policy.Request {
	r := bash(text)
	r.Dir, r.Files, r.Bared = "/w", files, true
	return r
}

// TestAttackBashObeysRead: if the disk was not inspected, the words alone decide, and what they leave open asks.
func TestAttackBashObeysRead(t *testing.T) {
	t.Parallel()
	o := fileRule("read", policy.Permission{Pattern: "private/*", Action: policy.Deny}, policy.Permission{Pattern: "work/*", Action: policy.Ask}, policy.Permission{Pattern: "*", Action: policy.Allow})
	o.Files = denyRead(t, []string{"/w/ok/secret.txt"}, "*/secret.txt", "/etc/shadow")
	s := newSet(t, o)
	for text, want := range map[string]policy.Effect{
		"cat secret.txt": policy.Deny, "cat private/x": policy.Deny, "cat work/x": policy.Ask, "cat open": policy.Allow, "cat ok/secret.txt": policy.Allow,
		"cat /etc/shadow": policy.Deny, "cat < /etc/shadow": policy.Deny, "tool secret.txt": policy.Ask, "cat *": policy.Ask, "cat $x": policy.Ask, "make": policy.Ask,
		"git show": policy.Ask, "cat ../w/secret.txt": policy.Deny, "cat /w/./private/../secret.txt": policy.Deny,
	} {
		if got := s.Decide(at(text, nil)); got.Effect != want {
			t.Errorf("%s: %+v, want %s", text, got, want)
		}
	}
	unknown := at("cat x/secret.txt", nil)
	unknown.Dir = ""
	if got := s.Decide(unknown); got.Effect != policy.Deny {
		t.Errorf("no directory: %+v", got)
	}
	unknown = at("cat open", nil)
	unknown.Dir = ""
	if got := s.Decide(unknown); got.Effect != policy.Ask || !strings.Contains(got.Reason.String(), "working directory is not known") {
		t.Errorf("no directory: %+v", got)
	}
	unknown.InsidePaths = []string{"/w"}
	if got := s.Decide(unknown); got.Effect != policy.Allow {
		t.Errorf("the first of the inside paths: %+v", got)
	}
}

// TestAttackBashObeysWhatIsThere: links and patterns count as what they lead to.
func TestAttackBashObeysWhatIsThere(t *testing.T) {
	t.Parallel()
	o := fileRule("read", policy.Permission{Pattern: "work*", Action: policy.Ask}, policy.Permission{Pattern: "*", Action: policy.Allow})
	o.Files = denyRead(t, nil, "*/secret.txt")
	s := newSet(t, o)
	for _, tt := range []struct {
		text  string
		files map[string][]string
		bared bool
		want  policy.Effect
	}{
		{"cat link", map[string][]string{"/w/link": {"/w/secret.txt"}}, true, policy.Deny},
		{"cat *", map[string][]string{"/w/*": {"/w/a", "/w/secret.txt"}}, true, policy.Deny},
		{"cat *", map[string][]string{"/w/*": {"/w/a"}}, true, policy.Allow},
		{"cat *", map[string][]string{}, true, policy.Ask},
		{"tool secret.txt", map[string][]string{"/w/secret.txt": {"/w/secret.txt"}}, true, policy.Deny},
		{"tool secret.txt", map[string][]string{"/w/secret.txt": {}}, true, policy.Ask},
		{"cat a", map[string][]string{"/w/a": {"/w/work.txt"}}, true, policy.Ask},
		{"grep -r x d", map[string][]string{"/w/d": {"/w/d"}}, true, policy.Ask}, // read asks for some
	} {
		r := at(tt.text, tt.files)
		r.Bared = tt.bared
		if got := s.Decide(r); got.Effect != tt.want {
			t.Errorf("%s %v: %+v, want %s", tt.text, tt.files, got, tt.want)
		}
	}
	o.Permissions["read"] = nil
	s = newSet(t, o)
	r := at("grep -r x d; tool 'open(\"secret.txt\")'", map[string][]string{"/w/secret.txt": {}})
	if got := s.Decide(r); got.Effect != policy.Allow {
		t.Errorf("the kernel holds it: %+v", got)
	}
	r = at("tool 'open(\"secret.txt\")'", map[string][]string{"/w/secret.txt": {"/w/secret.txt"}})
	if got := s.Decide(r); got.Effect != policy.Ask {
		t.Errorf("a name in code: %+v", got)
	}
	r = at("grep -r x d", map[string][]string{"/w/d": {"/w/d"}})
	if r.Bared = false; s.Decide(r).Effect != policy.Ask {
		t.Errorf("nothing holds it: %+v", s.Decide(r))
	}
}

// TestRulesBeyondASCII: letters with more than two cases, or with two encodings, are denied as the rule means, also
// next to ASCII paths.
func TestRulesBeyondASCII(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/srv/über/x", "/srv/ÜBER/x", "/srv/u\u0308ber/x", "/w/a.\u212aey"} {
		o := open(policy.Rules{})
		o.Files = denyRead(t, nil, "/srv/über/*", "*.key")
		if d := newSet(t, o).Decide(at("cat a.txt "+path, nil)); d.Effect != policy.Deny {
			t.Errorf("%s is %s: %s", path, d.Effect, d.Rule)
		}
	}
}

// TestQuotedTildeIsAName: it is a file in each directory to which the script changes, not the home directory.
func TestQuotedTildeIsAName(t *testing.T) {
	t.Parallel()
	o := open(policy.Rules{})
	o.Files = denyRead(t, nil, "/w/sub/~")
	if d := newSet(t, o).Decide(at("cd sub && cat '~'", nil)); d.Effect == policy.Allow {
		t.Errorf("%+v", d)
	}
}

// TestAttackOuterRulesHoldForFiles: rules with paths apply to files regardless of the tool, and also to relative paths.
func TestAttackOuterRulesHoldForFiles(t *testing.T) {
	t.Parallel()
	about := func(effect policy.Effect, tool string, paths ...string) policy.Rule {
		return policy.Rule{Effect: effect, Tools: []string{tool}, Paths: paths}
	}
	decide := func(o policy.Options, r policy.Request) policy.Effect {
		o.Permissions = map[string][]policy.Permission{"bash": {{Pattern: "*", Action: policy.Allow}}}
		return newSet(t, o).Decide(r).Effect
	}
	first := open(rules(policy.Allow, about(policy.Allow, "read", "private/pub/*"), about(policy.Deny, "read", "./private/*"), about(policy.Deny, "bash", "vault/*", "../other/*")))
	wins := first
	wins.Policy.Evaluation = policy.DenyWins
	for text, want := range map[string][2]policy.Effect{
		"cat private/x": {policy.Deny, policy.Deny}, "cat private/pub/x": {policy.Allow, policy.Deny}, "cat vault/x": {policy.Deny, policy.Deny},
		"cat ../other/x": {policy.Deny, policy.Deny}, "cat /other/x": {policy.Deny, policy.Deny}, "tee vault/x": {policy.Deny, policy.Deny}, "cat open": {policy.Allow, policy.Allow},
		"tool x/private/y": {policy.Allow, policy.Allow}, "tool --f=vault/x": {policy.Deny, policy.Deny},
		"tool 'x \"vault/x\"'": {policy.Allow, policy.Allow},
	} {
		if got := decide(first, at(text, map[string][]string{})); got != want[0] {
			t.Errorf("first match: %s: %s, want %s", text, got, want[0])
		}
		if got := decide(wins, at(text, map[string][]string{})); got != want[1] {
			t.Errorf("deny wins: %s: %s, want %s", text, got, want[1])
		}
	}
	// A rule that allows reading in some places, while the rest is denied by default.
	only := open(rules(policy.Deny, about(policy.Allow, "read", "pub/*"), policy.Rule{Effect: policy.Allow, Tools: []string{"bash"}}))
	if got := decide(only, at("cat pub/x", map[string][]string{})); got != policy.Allow {
		t.Errorf("an allowed place: %s", got)
	}
	if got := decide(only, at("cat x", map[string][]string{})); got != policy.Deny {
		t.Errorf("another place: %s", got)
	}
	if got := decide(only, at("make", map[string][]string{})); got != policy.Ask {
		t.Errorf("no word for it: %s", got)
	}
	// Conditions of a rule hold for files too.
	for _, rule := range []policy.Rule{
		{Effect: policy.Deny, Tools: []string{"read"}, Paths: []string{"*"}, Env: []string{"NOT_SET"}},
		{Effect: policy.Deny, Tools: []string{"read"}, Paths: []string{"*"}, ArgsMatch: "nothing like it"},
		{Effect: policy.Deny, Tools: []string{"read"}, ArgsMatch: "x"},
	} {
		if got := decide(open(rules(policy.Allow, rule)), at("cat x", map[string][]string{})); got != policy.Allow {
			t.Errorf("%+v: %s", rule, got)
		}
	}
	trusted := at("cat x", map[string][]string{})
	trusted.Trust = policy.Verified
	if got := decide(open(rules(policy.Allow, policy.Rule{Effect: policy.Deny, Tools: []string{"read"}, Paths: []string{"*"}, Trust: policy.Trusted})), trusted); got != policy.Allow {
		t.Errorf("a rule for others: %s", got)
	}
	// The tool that reads is denied completely, and so is reading.
	if got := decide(open(rules(policy.Allow, policy.Rule{Effect: policy.Deny, Tools: []string{"read"}})), at("cat x", map[string][]string{})); got != policy.Deny {
		t.Errorf("no reading at all: %s", got)
	}
}

// TestAllowRulesCoverEveryPathOfACommand: an allow rule with paths must cover everything that a command certainly
// touches.
func TestAllowRulesCoverEveryPathOfACommand(t *testing.T) {
	t.Parallel()
	s := newSet(t, policy.Options{
		AllowNetwork: true, Permissions: map[string][]policy.Permission{"bash": {{Pattern: "*", Action: policy.Allow}}},
		Policy: rules(policy.Deny, policy.Rule{Effect: policy.Allow, Tools: []string{"bash"}, Paths: []string{"pub/*"}}),
	})
	for text, want := range map[string]policy.Effect{
		"cat pub/x": policy.Allow, "cat pub/x pub/y": policy.Allow, "cat pub/x private/y": policy.Deny, "cat pub/../private/x": policy.Deny, "cat pub/$x": policy.Deny,
		"ls": policy.Deny, "cat pub/link": policy.Deny,
	} {
		if got := s.Decide(at(text, map[string][]string{"/w/pub/link": {"/w/private/y"}})); got.Effect != want {
			t.Errorf("%s: %+v, want %s", text, got, want)
		}
	}
}

// TestRelativePatterns: a relative pattern is meant from the working directory, for every tool.
func TestRelativePatterns(t *testing.T) {
	t.Parallel()
	s := newSet(t, policy.Options{
		Permissions:   map[string][]policy.Permission{"read": {{Pattern: "./notes/*", Action: policy.Deny}, {Pattern: "*", Action: policy.Allow}}},
		Authorization: policy.Rules{Enabled: true, List: []policy.Rule{{Effect: policy.Deny, Tools: []string{"*"}, Paths: []string{"keys/*", "."}}}},
	})
	for _, tt := range []struct {
		request policy.Request
		want    policy.Effect
	}{
		{policy.Request{Tool: "read", Inputs: []string{"/w/notes/x"}, Paths: []string{"/w/notes/x"}, Dir: "/w"}, policy.Deny},
		{policy.Request{Tool: "read", Inputs: []string{"/v/notes/x"}, Paths: []string{"/v/notes/x"}, Dir: "/w"}, policy.Allow},
		{policy.Request{Tool: "read", Inputs: []string{"/w/keys/x"}, Paths: []string{"/w/keys/x"}, Dir: "/w"}, policy.Deny},
		{policy.Request{Tool: "read", Inputs: []string{"/w"}, Paths: []string{"/w"}, Dir: "/w"}, policy.Deny},
		{policy.Request{Tool: "read", Inputs: []string{"/"}, Paths: []string{"/"}, Dir: "/w"}, policy.Allow},
		{policy.Request{Tool: "read", Inputs: []string{"/w"}, Paths: []string{"/w"}, Dir: "/w/sub"}, policy.Allow},
		{policy.Request{Tool: "srv:read", Args: map[string]any{"path": "keys/x"}, Dir: "/w"}, policy.Deny},
		{policy.Request{Tool: "srv:read", Args: map[string]any{"path": "/w/a/../keys/x"}, Dir: "/w"}, policy.Deny},
		{policy.Request{Tool: "srv:read", Args: map[string]any{"path": "https://x/keys/y"}, Dir: "/w"}, policy.Ask},
		{policy.Request{Tool: "srv:read", Args: map[string]any{"path": "other"}, Dir: "/w"}, policy.Ask},
		{policy.Request{Tool: "read", Inputs: []string{"/w/other"}, Dir: "/w"}, policy.Allow},
	} {
		if got := s.Decide(tt.request); got.Effect != tt.want {
			t.Errorf("%+v: %+v, want %s", tt.request, got, tt.want)
		}
	}
	if got := newSet(t, policy.Options{Permissions: map[string][]policy.Permission{"read": {{Pattern: "x", Action: policy.Allow}}}}).Decide(
		policy.Request{Tool: "read", Inputs: []string{"/w/y"}, Dir: "/w"}); got.Effect != policy.Ask {
		t.Errorf("no rule: %+v", got)
	}
}

// TestAttackBashObeysWriting: redirections and well-known commands obey the rules of the tools that write.
func TestAttackBashObeysWriting(t *testing.T) {
	t.Parallel()
	o := fileRule("write", policy.Permission{Pattern: "kept/*", Action: policy.Deny}, policy.Permission{Pattern: "*", Action: policy.Ask})
	o.Permissions["delete_path"] = []policy.Permission{{Pattern: "kept*", Action: policy.Deny}}
	s := newSet(t, o)
	for text, want := range map[string]policy.Effect{
		"echo > kept/x": policy.Deny, "tee kept/x": policy.Deny, "cp a kept": policy.Deny, "rm kept/x": policy.Deny, "mv kept x": policy.Deny, "rm other": policy.Allow,
		"tee other": policy.Allow, "cat kept/x": policy.Allow, "cp other .bashrc": policy.Ask, "mv other .git": policy.Ask, "tee .git": policy.Allow,
	} {
		if got := s.Decide(at(text, map[string][]string{})); got.Effect != want {
			t.Errorf("%s: %+v, want %s", text, got, want)
		}
	}
}

func TestCommandPaths(t *testing.T) {
	t.Parallel()
	want := []policy.CommandPath{{Path: "/w/d*", Pattern: true}, {Path: "/w/sub/d*", Pattern: true}, {Path: "/w/~"}, {Path: "/w/sub/~"}, {Path: "/w/a"}, {Path: "/x"}}
	if diff := cmp.Diff(want, policy.CommandPaths((*command.Reader)(nil).Read(`cd sub; cat '~' ~/a /x d*`), "/w")); diff != "" {
		t.Errorf("paths (-want +got):\n%s", diff)
	}
}

func TestReadLimits(t *testing.T) {
	t.Parallel()
	o := fileRule("read", policy.Permission{Pattern: "/srv/pub*", Action: policy.Allow}, policy.Permission{Pattern: "*.key", Action: policy.Deny}, policy.Permission{Pattern: "*", Action: policy.Allow})
	o.Files = denyRead(t, []string{"/etc/motd"}, "/etc/*", "/opt/x/secret", "*/y")
	o.Policy = policy.Rules{Enabled: true, DefaultEffect: policy.Allow, List: []policy.Rule{
		{Effect: policy.Deny, Tools: []string{"read"}, Paths: []string{"/var/lib/{a,b}/x"}}, {Effect: policy.Allow, Tools: []string{"read"}, Paths: []string{"/w/*"}},
	}}
	s := newSet(t, o)
	want := policy.ReadLimits{Any: true, Places: []string{"/etc", "/opt/x/secret", "/var/lib"}}
	if diff := cmp.Diff(want, s.ReadLimits()); diff != "" {
		t.Errorf("limits (-want +got):\n%s", diff)
	}
	r := &policy.Request{Dir: "/w"}
	for path, want := range map[string]bool{"/etc/passwd": true, "/etc/motd": false, "/w/a.key": true, "/v/a.key": true, "/v/y": true, "/v/x": false} {
		if got := s.DeniesRead(r, path); got != want {
			t.Errorf("%s: %v", path, got)
		}
	}
	if l := newSet(t, policy.Options{}).ReadLimits(); l.Any || l.Wide || len(l.Places) > 0 {
		t.Errorf("nothing is restricted: %+v", l)
	}
	if !s.ExceptionBelow("/nowhere") { // the rules of tools are not searched for what they may allow
		t.Error("a rule allows something, and nothing is an exception")
	}
	plain := newSet(t, policy.Options{Files: denyRead(t, []string{"/etc/motd"}, "/etc/*", "/root/*")})
	if !plain.ExceptionBelow("/etc") || plain.ExceptionBelow("/root") || newSet(t, policy.Options{}).ExceptionBelow("/") {
		t.Error("the exceptions are not those of allow_read")
	}
	if newSet(t, policy.Options{}).DeniesRead(r, "/x") {
		t.Error("nothing is denied")
	}
	if l := newSet(t, fileRule("read", policy.Permission{Pattern: "*", Action: policy.Deny})).ReadLimits(); !l.Wide {
		t.Errorf("everything is denied: %+v", l)
	}
}

// TestGitObjectsOnlyWhereARuleReaches: a rule about another place does not make git ask.
func TestGitObjectsOnlyWhereARuleReaches(t *testing.T) {
	t.Parallel()
	o := fileRule("write")
	o.Files = denyRead(t, nil, "/etc/shadow")
	s := newSet(t, o)
	if got := s.Decide(at("git show", map[string][]string{})); got.Effect != policy.Allow {
		t.Errorf("elsewhere: %+v", got)
	}
	for _, glob := range []string{"/w/keys/*", "/w*", "*/key", "/W/Keys"} {
		o.Files = denyRead(t, nil, glob)
		if got := newSet(t, o).Decide(at("git show", map[string][]string{})); got.Effect != policy.Ask {
			t.Errorf("%s: %+v", glob, got)
		}
	}
	if !slices.Contains(denyRead(t, nil, "/w*").Denies(), "/w*") {
		t.Error("the globs are not listed")
	}
}
