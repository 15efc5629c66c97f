package policy_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/policy"
)

func TestRuleConditions(t *testing.T) {
	t.Parallel()
	rule := func(e policy.Effect, change func(*policy.Rule)) policy.Rule {
		r := policy.Rule{Effect: e, Tools: []string{"*"}}
		change(&r)
		return r
	}
	paths := func(e policy.Effect, globs ...string) policy.Rule {
		return rule(e, func(r *policy.Rule) { r.Paths = globs })
	}
	args := func(e policy.Effect, expr string) policy.Rule {
		return rule(e, func(r *policy.Rule) { r.ArgsMatch = expr })
	}
	req := func(tool string, args map[string]any, canonical ...string) policy.Request {
		return policy.Request{Tool: tool, Args: args, Paths: canonical}
	}
	tests := []struct {
		name    string
		def     policy.Effect
		rule    policy.Rule
		request policy.Request
		want    policy.Effect
	}{
		{"deny one of two paths", policy.Allow, paths(policy.Deny, "/etc/*"), req("copy_path", map[string]any{"source": "/work/a", "destination": "/etc/x"}), policy.Deny},
		{"allow needs every path", policy.Deny, paths(policy.Allow, "/work/*"), req("copy_path", map[string]any{"source": "/work/a", "destination": "/etc/x"}), policy.Deny},
		{"allow has every path", policy.Deny, paths(policy.Allow, "/work/*"), req("copy_path", map[string]any{"source": "/work/a", "destination": "/work/b"}), policy.Allow},
		{"allow goes by canonical paths", policy.Deny, paths(policy.Allow, "/work/*"), req("read", map[string]any{"path": "a"}, "/work/a"), policy.Allow},
		{"a link out of the allowed place", policy.Deny, paths(policy.Allow, "/work/*"), req("read", map[string]any{"path": "/work/a"}, "/etc/a"), policy.Deny},
		{"deny goes by both: canonical", policy.Allow, paths(policy.Deny, "/etc/*"), req("read", map[string]any{"path": "/work/a"}, "/etc/a"), policy.Deny},
		{"deny goes by both: written", policy.Allow, paths(policy.Deny, "/etc/*"), req("read", map[string]any{"path": "/etc/a"}, "/work/a"), policy.Deny},
		{"a query beside a path", policy.Deny, paths(policy.Allow, "/work/*"), req("x:y", map[string]any{"path": "/work/a", "query": "b"}), policy.Allow},
		{"a query alone", policy.Deny, paths(policy.Allow, "/work/*"), req("x:y", map[string]any{"query": "/work/b"}), policy.Allow},
		{"a query that is denied", policy.Allow, paths(policy.Deny, "/etc/*"), req("x:y", map[string]any{"path": "/work/a", "query": "/etc/b"}), policy.Deny},
		{"no path, deny", policy.Allow, paths(policy.Deny, "*"), req("list_tasks", nil), policy.Allow},
		{"no path, allow", policy.Deny, paths(policy.Allow, "*"), req("list_tasks", nil), policy.Deny},
		{"quotes", policy.Allow, paths(policy.Deny, "/etc/passwd"), req("read", map[string]any{"path": `"/etc/passwd"`}), policy.Deny},
		{"case counts", policy.Allow, paths(policy.Deny, "/etc/*"), req("read", map[string]any{"path": "/ETC/x"}), policy.Allow},
		{"URL", policy.Allow, paths(policy.Deny, "https://h.example/*"), req("fetch", map[string]any{"url": "https://h.example/a"}), policy.Deny},
		{"URL, normalised", policy.Allow, paths(policy.Deny, "https:/h.example/*"), req("fetch", map[string]any{"uri": "https://h.example/b/../a"}), policy.Deny},
		{"file URL", policy.Allow, paths(policy.Deny, "/etc/*"), req("x:read", map[string]any{"uri": "file:///etc/pass%77d"}), policy.Deny},
		{"list of paths", policy.Allow, paths(policy.Deny, "/etc/*"), req("x:read", map[string]any{"paths": []any{"/a", 1, "/etc/b"}}), policy.Deny},
		{"typed list of paths", policy.Allow, paths(policy.Deny, "/etc/*"), req("x:read", map[string]any{"files": []string{"/a", "/etc/b"}}), policy.Deny},
		{"command", policy.Allow, paths(policy.Deny, "/etc/*"), bash("cat /etc/passwd|wc"), policy.Deny},
		{"command, quoted in the middle", policy.Allow, paths(policy.Deny, "/etc/passwd"), bash(`cat /e"tc/pass"wd`), policy.Deny},
		{"command, in a flag", policy.Allow, paths(policy.Deny, "/etc/passwd"), bash(`x --file=/etc/passwd`), policy.Deny},
		{"command, upwards", policy.Allow, paths(policy.Deny, "/etc/passwd"), bash(`cat ../../../etc/passwd`), policy.Deny},
		{"command, redirection", policy.Allow, paths(policy.Deny, "/etc/passwd"), bash(`echo x >"/etc"/passwd`), policy.Deny},
		{"command of another tool", policy.Allow, paths(policy.Deny, "/etc/passwd"), req("x:run", map[string]any{"command": "cat /etc/passwd"}), policy.Deny},
		{"trust below", policy.Allow, rule(policy.Deny, func(r *policy.Rule) { r.Trust = policy.Quarantined }), req("read", nil), policy.Deny},
		{"args, second text", policy.Allow, args(policy.Deny, "b+c"), req("x:y", map[string]any{"p": "x", "q": "abbc"}), policy.Deny},
		{"args, no text", policy.Allow, args(policy.Deny, "1"), req("x:y", map[string]any{"p": 1, "q": []any{"1"}}), policy.Allow},
		{"args, case", policy.Allow, args(policy.Deny, "(?i)SECRET"), req("x:y", map[string]any{"p": "a Secret"}), policy.Deny},
		{"args, alternatives", policy.Allow, args(policy.Deny, "(one|two)x?"), req("x:y", map[string]any{"p": "two"}), policy.Deny},
		{"args, anchored", policy.Allow, args(policy.Deny, "^rm(s)+ x$"), req("x:y", map[string]any{"p": "rms x"}), policy.Deny},
		{"args, optional text", policy.Allow, args(policy.Deny, "(abc)?"), req("x:y", map[string]any{"p": "z"}), policy.Deny},
		{"qualified glob", policy.Allow, policy.Rule{Effect: policy.Deny, Tools: []string{"github:*"}}, req("github:create", nil), policy.Deny},
		{"qualified glob in another case", policy.Allow, policy.Rule{Effect: policy.Deny, Tools: []string{"github:*"}}, req("GitHub:create", nil), policy.Deny},
		{"glob over an alias", policy.Allow, policy.Rule{Effect: policy.Deny, Tools: []string{"read_*"}}, req("read_file", map[string]any{"path": "x"}), policy.Deny},
		{"several tools", policy.Allow, policy.Rule{Effect: policy.Deny, Tools: []string{"x", "read_file"}}, req("read", nil), policy.Deny},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			o := open(rules(tt.def, tt.rule))
			o.Level = policy.Full
			if got := newSet(t, o).Decide(tt.request); got.Effect != tt.want {
				t.Errorf("got %+v, want %s", got, tt.want)
			}
		})
	}
}

func TestOuterTraceNamesTheRule(t *testing.T) {
	t.Parallel()
	o := policy.Options{
		Policy:        policy.Rules{Enabled: true, DefaultEffect: policy.Allow, File: "p.toml", List: []policy.Rule{allow("read"), {Effect: policy.Deny, Tools: []string{"write"}, Line: 7, Comment: "no  writing"}}},
		Authorization: policy.Rules{Enabled: true, List: []policy.Rule{deny("edit")}},
	}
	s := newSet(t, o)
	tests := map[string]string{
		"write": "rule[1] deny: tool=write matched write (p.toml:7 rules[1]: no writing)",
		"read":  "rule[0] allow: tool=read matched read (p.toml rules[0]); built-in: read runs without asking",
		"fetch": "default: allow (no matching rules); built-in: fetch runs without asking",
		"edit":  "rule[2] deny: tool=edit matched edit (tools.authorization.rules[0])",
	}
	for tool, want := range tests {
		if got := s.Decide(policy.Request{Tool: tool}); got.Rule != want {
			t.Errorf("%s: %q, want %q", tool, got.Rule, want)
		}
	}
}

func TestAuthorizationAlonePassesOn(t *testing.T) {
	t.Parallel()
	s := newSet(t, policy.Options{
		Policy:        policy.Rules{DefaultEffect: policy.Deny, List: []policy.Rule{deny("read")}},
		Authorization: policy.Rules{Enabled: true, List: []policy.Rule{deny("bash")}},
	})
	for tool, want := range map[string]policy.Effect{"read": policy.Allow, "bash": policy.Deny, "write": policy.Ask} {
		if got := s.Decide(policy.Request{Tool: tool}); got.Effect != want {
			t.Errorf("%s: %+v, want %s", tool, got, want)
		}
	}
	if s.Hides("read", nil) || !s.Hides("shell", nil) {
		t.Error("hides the wrong tools")
	}
}

func TestOuterHides(t *testing.T) {
	t.Parallel()
	some := policy.Rule{Effect: policy.Deny, Tools: []string{"bash"}, ArgsMatch: "x"}
	all := policy.Rule{Effect: policy.Deny, Tools: []string{"bash"}, Trust: policy.Blocked}
	tests := []struct {
		name       string
		evaluation policy.Evaluation
		def        policy.Effect
		list       []policy.Rule
		want       bool
	}{
		{"no rule, default deny", "", policy.Deny, nil, true},
		{"no rule, default allow", "", policy.Allow, nil, false},
		{"denied", "", policy.Allow, []policy.Rule{some, deny("bash")}, true},
		{"denied for every trust", "", policy.Allow, []policy.Rule{all}, true},
		{"denied in part", "", policy.Allow, []policy.Rule{some}, false},
		{"allowed", "", policy.Deny, []policy.Rule{allow("bash")}, false},
		{"allowed before denied", "", policy.Deny, []policy.Rule{allow("bash"), deny("bash")}, false},
		{"allowed, but deny wins", policy.DenyWins, policy.Deny, []policy.Rule{allow("bash"), deny("bash")}, true},
		{"another tool", "", policy.Allow, []policy.Rule{deny("read")}, false},
	}
	for _, tt := range tests {
		r := rules(tt.def, tt.list...)
		r.Evaluation = tt.evaluation
		if got := newSet(t, open(r)).Hides("bash", nil); got != tt.want {
			t.Errorf("%s: %t", tt.name, got)
		}
	}
}

func TestStatus(t *testing.T) {
	t.Parallel()
	s := newSet(t, policy.Options{
		Policy:        policy.Rules{Enabled: true, Evaluation: policy.DenyWins, File: "p.toml", List: []policy.Rule{deny("a"), deny("b")}},
		Authorization: policy.Rules{List: []policy.Rule{deny("c")}},
		Permissions: map[string][]policy.Permission{
			"bash": {{Pattern: "*", Action: policy.Ask}}, "x:*": {{Pattern: "a", Action: policy.Ask}, {Pattern: "*", Action: policy.Deny}},
		},
	})
	want := policy.Status{
		Enabled: true, PolicyRules: 2, PermissionTools: 2, PermissionRules: 3, Default: policy.Deny,
		Evaluation: policy.DenyWins, File: "p.toml", Level: policy.Supervised,
	}
	if diff := cmp.Diff(want, s.Status()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if got := newSet(t, policy.Options{}).Status(); got.Evaluation != policy.FirstMatch || got.Enabled {
		t.Errorf("zero value: %+v", got)
	}
}

func TestNewReportsEverything(t *testing.T) {
	t.Parallel()
	_, err := policy.New(policy.Options{
		Tools: stated(),
		Level: "half",
		Policy: policy.Rules{Enabled: true, DefaultEffect: "ask", Evaluation: "last", List: []policy.Rule{
			{},
			{Effect: "ask", Tools: []string{"[a", ""}, Paths: []string{"[b"}, Env: []string{"A=1", ""}, Trust: "friend", ArgsMatch: "("},
			{Effect: policy.Deny, Tools: []string{"x"}, ArgsMatch: strings.Repeat("a", policy.MaxArgsMatch+1)},
			{Effect: policy.Deny, Tools: []string{"x"}, ArgsMatch: strings.Repeat("a", policy.MaxArgsMatch)},
		}},
		Authorization: policy.Rules{List: []policy.Rule{{Tools: []string{"x"}}}},
		Permissions: map[string][]policy.Permission{
			"bash":  {{Pattern: "ok", Action: policy.Ask}, {Pattern: "[", Action: "yes"}},
			"shell": {{Pattern: "ok", Action: policy.Ask}},
			"sh":    {{Pattern: "ok", Action: policy.Ask}},
			"x:[":   {},
			" ":     {},
		},
		BlockedCommands: []string{"a", " "}, AllowedCommands: []string{""}, ConfirmPatterns: []string{"\t"},
	})
	if err == nil {
		t.Fatal("wrong options passed")
	}
	for _, want := range []string{
		`security.autonomy_level: "half" is unknown`,
		`tools.policy.default_effect: "ask" is unknown`,
		`tools.policy.evaluation: "last" is unknown`,
		"tools.policy.rules[0].effect: is missing",
		"tools.policy.rules[0].tool: is missing",
		`tools.policy.rules[1].effect: "ask" is unknown`,
		"tools.policy.rules[1].tool: a class is not closed by ] at byte 0",
		"tools.policy.rules[1].tool: the pattern is empty",
		"tools.policy.rules[1].paths: a class is not closed",
		`tools.policy.rules[1].env: "A=1" is no variable name`,
		`tools.policy.rules[1].trust_level: "friend" is unknown`,
		"tools.policy.rules[1].args_match: error parsing regexp",
		"tools.policy.rules[2].args_match: has 1025 bytes",
		"tools.authorization.rules[0].effect: is missing",
		`tools.permissions.bash[1].action: "yes" is unknown`,
		"tools.permissions.bash[1].pattern: a class is not closed",
		"tools.permissions.shell: is the same tool as tools.permissions.sh",
		`tools.permissions."x:[": a class is not closed`,
		`tools.permissions." ": the name of the tool is empty`,
		"tools.shell.blocked_commands[1]: is empty",
		"tools.shell.allowed_commands[0]: is empty",
		"tools.shell.confirm_patterns[0]: is empty",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in:\n%v", want, err)
		}
	}
	if strings.Contains(err.Error(), "rules[3]") || strings.Contains(err.Error(), "bash[0]") {
		t.Errorf("a good rule is reported:\n%v", err)
	}
}

func TestParseRules(t *testing.T) {
	t.Parallel()
	const file = `# policy
[[rules]]
effect = "deny"
tool = "bash"
args_match = ".*sudo.*"
paths = ["/etc/*"]
env = ["CI"]
trust_level = "verified"
capabilities = ["fs"]

[[rules]]
comment = """
[[rules]]
"""
action = "allow"
tools = ["read_file", "list_directory"]

  [[rules]]
  effect = "allow"
  action = "allow"
  tool = ["a", "b"]
  tools = ["a", "b"]
`
	want := []policy.Rule{
		{Effect: policy.Deny, Tools: []string{"bash"}, ArgsMatch: ".*sudo.*", Paths: []string{"/etc/*"}, Env: []string{"CI"}, Trust: policy.Verified, Capabilities: []string{"fs"}, Line: 2},
		{Effect: policy.Allow, Tools: []string{"read_file", "list_directory"}, Comment: "[[rules]]\n", Line: 11},
		{Effect: policy.Allow, Tools: []string{"a", "b"}, Line: 18},
	}
	got, err := policy.ParseRules("p.toml", []byte(file))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	inline, err := policy.ParseRules("p.toml", []byte(`rules = [{effect = "deny", tool = "x"}]`))
	if err != nil || len(inline) != 1 || inline[0].Line != 0 {
		t.Errorf("inline: %v, %v", inline, err)
	}
	if none, err := policy.ParseRules("p.toml", nil); err != nil || len(none) != 0 {
		t.Errorf("empty: %v, %v", none, err)
	}
}

func TestParseRulesErrors(t *testing.T) {
	t.Parallel()
	const head = "\n[[rules]]\n"
	tests := []struct {
		name, file string
		want       []string
	}{
		{"syntax", "[[rules]]\neffect = deny\n", []string{"p.toml:2:"}},
		{"type", "[[rules]]\neffect = 1\n", []string{"p.toml:2:"}},
		{"unknown keys", head + "efect = \"deny\"\nother = 1\n", []string{`p.toml:3: unknown key "rules.efect"`, `p.toml:4: unknown key "rules.other"`}},
		{"two effects", head + "effect = \"deny\"\naction = \"allow\"\ntool = \"x\"", []string{`p.toml:2 rules[0].effect: "deny" and action "allow" contradict`}},
		{"two tools", head + "effect = \"deny\"\ntool = \"x\"\ntools = [\"y\"]", []string{`p.toml:2 rules[0].tool: ["x"] and tools ["y"] contradict`}},
		{"tool of a wrong type", head + "effect = \"deny\"\ntool = 1", []string{"p.toml:2 rules[0].tool: must be a text"}},
		{"tools of a wrong type", head + "effect = \"deny\"\ntools = [\"a\", 1]", []string{"p.toml:2 rules[0].tools: 1 is not a text"}},
		{"several", head + "effect = \"deny\"\n[[rules]]\ntool = \"[\"\n", []string{"p.toml:2 rules[0].tool: is missing", "p.toml:4 rules[1].effect: is missing", "p.toml:4 rules[1].tool: a class"}},
		{"inline", `rules = [{tool = "x"}]`, []string{"p.toml rules[0].effect: is missing"}},
		{"too many", strings.Repeat("[[rules]]\n", policy.MaxRules+1), []string{"p.toml: the file has 257 rules"}},
		{"not text", "\xff", []string{"p.toml:"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := policy.ParseRules("p.toml", []byte(tt.file))
			if err == nil {
				t.Fatal("passed")
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q is missing in:\n%v", want, err)
				}
			}
		})
	}
}

func TestRawRuleTakesTypedLists(t *testing.T) {
	t.Parallel()
	r, err := policy.RawRule{Action: "deny", Tools: []string{"a"}}.Rule()
	if err != nil || r.Effect != policy.Deny || len(r.Tools) != 1 {
		t.Errorf("%+v, %v", r, err)
	}
}

// FuzzParseRules: nothing panics, and what is read can be compiled.
func FuzzParseRules(f *testing.F) {
	f.Add("[[rules]]\neffect = \"deny\"\ntool = \"bash\"\nargs_match = \"x\"\n")
	f.Add("rules = [{action = \"allow\", tools = [\"a\"]}]")
	f.Add("[[rules]]\n[rules.tool]\n")
	f.Fuzz(func(t *testing.T, data string) {
		list, err := policy.ParseRules("p.toml", []byte(data))
		if err != nil {
			return
		}
		if _, err := policy.New(policy.Options{Policy: policy.Rules{Enabled: true, List: list}}); err != nil {
			t.Fatal(err)
		}
	})
}
