package policy_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/zephbot/zephbot/policy"
)

// newSet compiles options that must be right.
func newSet(t testing.TB, o policy.Options) *policy.Set {
	t.Helper()
	if o.Tools == nil {
		o.Tools = stated()
	}
	s, err := policy.New(o)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	return s
}

// bash returns a request for a command.
func bash(command string) policy.Request {
	return policy.Request{Tool: "bash", Args: map[string]any{"command": command}, Inputs: []string{command}}
}

// rules returns an enabled policy table.
func rules(def policy.Effect, list ...policy.Rule) policy.Rules {
	return policy.Rules{Enabled: true, DefaultEffect: def, List: list}
}

func deny(tool string) policy.Rule {
	return policy.Rule{Effect: policy.Deny, Tools: []string{tool}}
}

func allow(tool string) policy.Rule {
	return policy.Rule{Effect: policy.Allow, Tools: []string{tool}}
}

// open are options in which everything asks but what the outer rules deny.
func open(r policy.Rules) policy.Options {
	return policy.Options{Policy: r, AllowNetwork: true}
}

// The rows P1 to P14 of the specification. Where a row says allow, the outer rules let the call pass, and the autonomy
// level full allows it.
func TestPolicyVectors(t *testing.T) {
	t.Parallel()
	etc := rules(policy.Allow, policy.Rule{Effect: policy.Deny, Tools: []string{"shell"}, Paths: []string{"/etc/*"}})
	at := func(tool, key, value string) policy.Request {
		return policy.Request{Tool: tool, Args: map[string]any{key: value}}
	}
	p5 := []policy.Rule{
		{Effect: policy.Allow, Tools: []string{"shell"}, Paths: []string{"/tmp/*"}},
		{Effect: policy.Deny, Tools: []string{"shell"}, Paths: []string{"/tmp/secret.sh"}},
	}
	p5back := []policy.Rule{p5[1], p5[0]}
	verified := rules(policy.Deny, policy.Rule{Effect: policy.Allow, Tools: []string{"shell"}, Trust: policy.Verified})
	sudo := rules(policy.Allow, policy.Rule{Effect: policy.Deny, Tools: []string{"bash"}, ArgsMatch: ".*sudo.*"})
	ci := rules(policy.Deny, policy.Rule{Effect: policy.Allow, Tools: []string{"*"}, Env: []string{"CI"}})
	home := policy.Rule{Effect: policy.Allow, Tools: []string{"read"}, Paths: []string{"/home/*"}}
	denyWins := func(r policy.Rules) policy.Rules {
		r.Evaluation = policy.DenyWins
		return r
	}
	withTrust := func(r policy.Request, trust policy.Trust) policy.Request {
		r.Trust = trust
		return r
	}
	withEnv := func(r policy.Request, env ...string) policy.Request {
		r.Env = env
		return r
	}
	tests := []struct {
		name    string
		options policy.Options
		request policy.Request
		want    policy.Effect
		rule    string
	}{
		{"P1 dots", open(etc), at("shell", "file_path", "/tmp/../etc/passwd"), policy.Deny, "rule[0] deny: tool=shell matched bash"},
		{"P2 dot", open(etc), at("shell", "file_path", "/etc/./shadow"), policy.Deny, "rule[0] deny"},
		{"P3 many dots", open(etc), at("shell", "file_path", "/a/b/c/d/../../../../../../etc/passwd"), policy.Deny, "rule[0] deny"},
		{"P4 shell", open(rules(policy.Allow, deny("Shell"))), at("shell", "command", "ls"), policy.Deny, "tool=shell"},
		{"P4 SHELL", open(rules(policy.Allow, deny("Shell"))), at("SHELL", "command", "ls"), policy.Deny, "tool=SHELL"},
		{"P5 deny wins", open(denyWins(rules(policy.Allow, p5...))), at("shell", "file_path", "/tmp/secret.sh"), policy.Deny, "rule[1] deny"},
		{"P5 deny wins, other order", open(denyWins(rules(policy.Allow, p5back...))), at("shell", "file_path", "/tmp/secret.sh"), policy.Deny, "rule[0] deny"},
		{"P5 deny wins, another path", open(denyWins(rules(policy.Deny, p5...))), at("shell", "file_path", "/tmp/x"), policy.Allow, ""},
		{"P5 first match", open(rules(policy.Allow, p5...)), at("shell", "file_path", "/tmp/secret.sh"), policy.Allow, ""},
		{"P6", open(rules(policy.Deny)), bash("ls"), policy.Deny, "default: deny (no matching rules)"},
		{"P7", open(rules(policy.Allow)), bash("ls"), policy.Allow, ""},
		{"P8 trusted", open(verified), withTrust(bash("ls"), policy.Trusted), policy.Allow, ""},
		{"P8 quarantined", open(verified), withTrust(bash("ls"), policy.Quarantined), policy.Deny, "default: deny"},
		{"P9 sudo", open(sudo), bash("x sudo rm -rf /tmp/x"), policy.Deny, "rule[0] deny: tool=bash matched bash"},
		{"P9 echo", open(sudo), bash("echo hello"), policy.Allow, ""},
		{"P10 bash", open(rules(policy.Allow, deny("shell"))), bash("ls"), policy.Deny, "tool=bash"},
		{"P10 sh", open(rules(policy.Allow, deny("shell"))), at("sh", "command", "ls"), policy.Deny, "tool=sh"},
		{"P13 without CI", open(ci), bash("ls"), policy.Deny, "default: deny"},
		{"P13 with CI", open(ci), withEnv(bash("ls"), "HOME", "CI"), policy.Allow, ""},
		{
			"P14 deny wins",
			policy.Options{Policy: denyWins(rules(policy.Deny, home)), Authorization: policy.Rules{Enabled: true, List: []policy.Rule{deny("read")}}},
			at("read", "path", "/home/a"), policy.Deny, "rule[1] deny: tool=read matched read (tools.authorization.rules[0])",
		},
		{
			"P14 first match",
			policy.Options{Policy: rules(policy.Deny, home), Authorization: policy.Rules{Enabled: true, List: []policy.Rule{deny("read")}}},
			at("read", "path", "/home/a"), policy.Allow, "",
		},
		{"P16 a grant does not lift a denial", open(rules(policy.Deny)), withGrant(bash("ls"), "bash", "ls"), policy.Deny, "default: deny"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.options.Level = policy.Full
			got := newSet(t, tt.options).Decide(tt.request)
			if got.Effect != tt.want || !strings.Contains(got.Rule, tt.rule) {
				t.Errorf("got %+v, want %s by %q", got, tt.want, tt.rule)
			}
			if got.Reason.String() == "" || strings.Contains(got.Reason.String(), "rule[") || strings.Contains(got.Reason.String(), "/etc") {
				t.Errorf("P15: reason %q", got.Reason.String())
			}
		})
	}
}

func withGrant(r policy.Request, tool, pattern string) policy.Request {
	r.Grants = append(r.Grants, policy.Grant{Tool: tool, Kind: policy.GrantExact, Input: pattern})
	return r
}

func TestPolicyVectorP11Limits(t *testing.T) {
	t.Parallel()
	list := make([]policy.Rule, policy.MaxRules)
	for i := range list {
		list[i] = deny(fmt.Sprintf("tool%d", i))
	}
	newSet(t, open(rules(policy.Allow, list...)))
	if _, err := policy.New(open(rules(policy.Allow, append(list, deny("x"))...))); err == nil || !strings.Contains(err.Error(), "257 rules") {
		t.Errorf("257 rules: %v", err)
	}
	over := open(rules(policy.Allow, list...))
	over.Authorization = policy.Rules{Enabled: true, List: list[:1]}
	if _, err := policy.New(over); err == nil {
		t.Error("256 rules and one of authorization passed")
	}
}

func TestPolicyVectorP12File(t *testing.T) {
	t.Parallel()
	rule := "[[rules]]\neffect = \"deny\"\ntool = \"bash\"\n"
	fits := rule + strings.Repeat("#", policy.MaxPolicyFile-len(rule))
	if got, err := policy.ParseRules("p.toml", []byte(fits)); err != nil || len(got) != 1 {
		t.Errorf("262144 bytes: %d rules, %v", len(got), err)
	}
	if _, err := policy.ParseRules("p.toml", []byte(fits+"#")); err == nil || !strings.Contains(err.Error(), "p.toml: the file has 262145 bytes") {
		t.Errorf("262145 bytes: %v", err)
	}
}

// The rows M1 to M13 of the specification.
func TestPermissionVectors(t *testing.T) {
	t.Parallel()
	table := func(list ...policy.Permission) policy.Options {
		return policy.Options{Permissions: map[string][]policy.Permission{"bash": list}}
	}
	allDenied := table(policy.Permission{Pattern: "*", Action: policy.Deny})
	echo := table(policy.Permission{Pattern: "echo *", Action: policy.Allow})
	safe := table(policy.Permission{Pattern: "*safe*", Action: policy.Allow}, policy.Permission{Pattern: "*", Action: policy.Deny})
	sudo := table(policy.Permission{Pattern: "*sudo*", Action: policy.Deny})
	legacy := policy.Options{BlockedCommands: []string{"sudo"}, ConfirmPatterns: []string{"rm "}}
	mcp := policy.Request{Tool: "github:create_issue"}
	named := func(tool string, trust policy.Trust) policy.Request { return policy.Request{Tool: tool, Trust: trust} }
	tests := []struct {
		name    string
		options policy.Options
		request policy.Request
		want    policy.Effect
		rule    string
	}{
		{"M1 matches", echo, bash("echo hello"), policy.Allow, `permissions.bash[0] "echo *" allow`},
		{"M1 matches not", echo, bash("ls -la"), policy.Ask, "default: ask (no matching rules)"},
		{"M2 safe", safe, bash("safe command"), policy.Allow, `permissions.bash[0] "*safe*" allow`},
		{"M2 dangerous", safe, bash("dangerous command"), policy.Deny, `permissions.bash[1] "*" deny`},
		{"M3", sudo, bash("echo SUDO apt"), policy.Deny, `permissions.bash[0] "*sudo*" deny`},
		{"M4 case (want: the same tool)", allDenied, policy.Request{Tool: "BASH", Inputs: []string{"ls"}}, policy.Deny, `permissions.bash[0]`},
		{"M5 blocked", legacy, bash("sudo apt"), policy.Deny, ""},
		{"M5 blocked anywhere", legacy, bash("sudoku"), policy.Deny, `shell.blocked_commands "sudo" deny`},
		{"M5 confirmed", legacy, bash("rm file"), policy.Ask, `shell.confirm_patterns "rm " ask`},
		{"M5 the rest (want: asks)", legacy, bash("find . -name foo"), policy.Ask, "built-in: bash asks"},
		{"M7 read", policy.Options{Level: policy.ReadOnly}, named("read", ""), policy.Allow, "built-in: read runs without asking"},
		{"M7 bash", policy.Options{Level: policy.ReadOnly}, bash("ls"), policy.Deny, "built-in: autonomy level readonly"},
		{"M7 mcp", policy.Options{Level: policy.ReadOnly}, mcp, policy.Deny, "built-in: autonomy level readonly"},
		{"M8 full", policy.Options{Level: policy.Full}, bash("rm -rf ./x"), policy.Allow, "built-in: autonomy level full"},
		{"M8 blocklist", policy.Options{Level: policy.Full}, bash("rm -rf /"), policy.Deny, `built-in: blocklist "rm -rf /"`},
		{"M8 deny rule (want: holds)", withLevel(sudo, policy.Full), bash("echo sudo"), policy.Deny, `permissions.bash[0]`},
		{"M9 bash", policy.Options{Level: policy.Full}, named("bash", policy.Quarantined), policy.Deny, "built-in: trust quarantined"},
		{"M9 write", policy.Options{Level: policy.Full}, named("write", policy.Quarantined), policy.Deny, "built-in: trust quarantined"},
		{"M9 edit", policy.Options{Level: policy.Full}, named("edit", policy.Quarantined), policy.Deny, ""},
		{"M9 delete_path", policy.Options{Level: policy.Full}, named("delete_path", policy.Quarantined), policy.Deny, ""},
		{"M9 move_path", policy.Options{Level: policy.Full}, named("move_path", policy.Quarantined), policy.Deny, ""},
		{"M9 fetch", policy.Options{Level: policy.Full}, named("fetch", policy.Quarantined), policy.Deny, ""},
		{"M9 memory_save", policy.Options{Level: policy.Full}, named("memory_save", policy.Quarantined), policy.Deny, ""},
		{"M10", policy.Options{}, named("read", policy.Quarantined), policy.Allow, ""},
		{"M11 suffix", policy.Options{Level: policy.Full}, named("filesystem_write", policy.Quarantined), policy.Deny, ""},
		{"M11 mcp", policy.Options{Level: policy.Full}, named("x:read", policy.Quarantined), policy.Deny, ""},
		{"M12 blocked", policy.Options{Level: policy.Full}, named("read", policy.Blocked), policy.Deny, "built-in: trust blocked"},
		{"M12 unknown trust", policy.Options{Level: policy.Full}, named("read", "friend"), policy.Deny, "built-in: trust blocked"},
		{"M13 (want: asks)", policy.Options{}, mcp, policy.Ask, "built-in: github:create_issue asks"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := newSet(t, tt.options).Decide(tt.request)
			if got.Effect != tt.want || !strings.Contains(got.Rule, tt.rule) {
				t.Errorf("got %+v, want %s by %q", got, tt.want, tt.rule)
			}
		})
	}
}

func withLevel(o policy.Options, l policy.Level) policy.Options {
	o.Level = l
	return o
}

func TestPermissionVectorM6Hidden(t *testing.T) {
	t.Parallel()
	p := func(pattern string, e policy.Effect) policy.Permission {
		return policy.Permission{Pattern: pattern, Action: e}
	}
	tests := []struct {
		name string
		list []policy.Permission
		want bool
	}{
		{"none", nil, false},
		{"all deny", []policy.Permission{p("*", policy.Deny)}, true},
		{"several, everything in the end", []policy.Permission{p("x", policy.Deny), p("**", policy.Deny)}, true},
		{"deny of a part (want: shown, the rest asks)", []policy.Permission{p("*sudo*", policy.Deny)}, false},
		{"allow first", []policy.Permission{p("ls", policy.Allow), p("*", policy.Deny)}, false},
		{"ask first", []policy.Permission{p("ls", policy.Ask), p("*", policy.Deny)}, false},
		{"allow too late", []policy.Permission{p("*", policy.Deny), p("ls", policy.Allow)}, true},
	}
	for _, tt := range tests {
		s := newSet(t, policy.Options{Permissions: map[string][]policy.Permission{"shell": tt.list}})
		if got := s.Hides("bash", nil); got != tt.want {
			t.Errorf("%s: %t", tt.name, got)
		}
	}
	readonly := newSet(t, policy.Options{Level: policy.ReadOnly})
	if !readonly.Hides("bash", nil) || !readonly.Hides("x:y", nil) || readonly.Hides("read", nil) {
		t.Error("readonly hides the wrong tools")
	}
}
