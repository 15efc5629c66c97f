package policy_test

import (
	"strings"
	"testing"

	"github.com/zephbot/zephbot/policy"
)

func TestCanonical(t *testing.T) {
	t.Parallel()
	tests := map[string]string{
		"bash": "bash", "shell": "bash", "SH": "bash", " Shell ": "bash", "read_file": "read", "write_file": "write",
		"glob": "find_path", "Read": "read", "github:Create": "github:Create", " x:sh ": "x:sh", "": "",
	}
	s := newSet(t, policy.Options{})
	for name, want := range tests {
		if got := s.Canonical(name); got != want {
			t.Errorf("Canonical(%q) = %q", name, got)
		}
	}
}

func TestBuiltInRules(t *testing.T) {
	t.Parallel()
	s := newSet(t, policy.Options{})
	for _, tool := range []string{
		"read", "grep", "find_path", "list_directory", "search_code", "diagnostics", "read_overflow", "memory_search",
		"list_tasks", "fetch", "web_scrape", "memory_save", "schedule_periodic", "schedule_deferred", "cancel_task", "read_file", "glob",
	} {
		if got := s.Decide(policy.Request{Tool: tool}); got.Effect != policy.Allow {
			t.Errorf("%s: %+v", tool, got)
		}
	}
	for _, tool := range []string{
		"bash", "write", "edit", "create_directory", "delete_path", "move_path", "copy_path", "unknown", "", "x:read",
	} {
		got := s.Decide(policy.Request{Tool: tool, ReadOnly: true})
		if got.Effect != policy.Ask || got.Reason.String() == "" {
			t.Errorf("%s: %+v", tool, got)
		}
	}
	mcp := policy.Request{Tool: "x:read", TrustedServer: true}
	if got := s.Decide(mcp); got.Effect != policy.Ask {
		t.Errorf("trusted server, changes: %+v", got)
	}
	mcp.ReadOnly = true
	if got := s.Decide(mcp); got.Effect != policy.Allow {
		t.Errorf("trusted server, reads: %+v", got)
	}
}

func TestPermissionTables(t *testing.T) {
	t.Parallel()
	one := func(pattern string, e policy.Effect) []policy.Permission {
		return []policy.Permission{{Pattern: pattern, Action: e}}
	}
	s := newSet(t, policy.Options{Permissions: map[string][]policy.Permission{
		"write_file":     one("/work/*", policy.Allow),
		"read":           one("*.env", policy.Deny),
		"github:*":       one("*", policy.Deny),
		"github:list_*":  one("*", policy.Allow),
		"github:list_me": one("*", policy.Ask),
		"fetch":          one("https://*.example/*", policy.Allow),
		"move_path":      one("/work/*", policy.Allow),
		"memory_search":  one("*secret*", policy.Deny),
	}})
	tests := []struct {
		name    string
		request policy.Request
		want    policy.Effect
		reason  string
	}{
		{"inside", policy.Request{Tool: "write", Inputs: []string{"/work/a/b"}}, policy.Allow, "A rule allows `/work/a/b`."},
		{"no match asks", policy.Request{Tool: "write", Inputs: []string{"/etc/a"}}, policy.Ask, "No rule allows `/etc/a`."},
		{"from the arguments", policy.Request{Tool: "write", Args: map[string]any{"path": "/work/a"}}, policy.Allow, ""},
		{"case", policy.Request{Tool: "read", Inputs: []string{"/work/A.ENV"}}, policy.Deny, "A rule denies `/work/A.ENV`."},
		{"reading without a match asks", policy.Request{Tool: "read", Inputs: []string{"/work/a"}}, policy.Ask, ""},
		{"glob of tools", policy.Request{Tool: "github:create"}, policy.Deny, "A rule denies this."},
		{"longer glob", policy.Request{Tool: "github:list_all"}, policy.Allow, ""},
		{"own table", policy.Request{Tool: "github:list_me"}, policy.Ask, "A rule wants a person to approve this."},
		{"URL", policy.Request{Tool: "fetch", Args: map[string]any{"url": "https://a.example/x"}}, policy.Allow, ""},
		{"both paths, one matches", policy.Request{Tool: "move_path", Args: map[string]any{"source": "/work/a", "destination": "/etc/b"}}, policy.Ask, "No rule allows `/etc/b`."},
		{"both paths", policy.Request{Tool: "move_path", Inputs: []string{"/work/a", "/work/b"}}, policy.Allow, ""},
		{"query", policy.Request{Tool: "memory_search", Args: map[string]any{"query": "my Secret"}}, policy.Deny, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := s.Decide(tt.request)
			if got.Effect != tt.want || tt.reason != "" && got.Reason.String() != tt.reason {
				t.Errorf("got %+v, want %s %q", got, tt.want, tt.reason)
			}
		})
	}
}

func TestSuspicious(t *testing.T) {
	t.Parallel()
	s := newSet(t, policy.Options{Unasked: policy.UnaskedReading, Permissions: map[string][]policy.Permission{
		"write": {{Pattern: "*", Action: policy.Allow}}, "edit": {{Pattern: "*", Action: policy.Deny}}, "x:y": {{Pattern: "*", Action: policy.Allow}},
	}})
	git := newSet(t, policy.Options{Permissions: perms("allow git *", "allow echo *")})
	full := newSet(t, policy.Options{Level: policy.Full})
	tests := []struct {
		name    string
		set     *policy.Set
		request policy.Request
		want    policy.Effect
	}{
		{"writes", s, policy.Request{Tool: "write", Inputs: []string{"/a"}}, policy.Ask},
		{"reads what is new", s, policy.Request{Tool: "read", Inputs: []string{"/b"}, Paths: []string{"/b"}}, policy.Ask},
		{"reads again", s, policy.Request{Tool: "read", Inputs: []string{"/a"}, Paths: []string{"/a"}}, policy.Allow},
		{"reads below what it listed", s, policy.Request{Tool: "read", Inputs: []string{"/dir/b"}, Paths: []string{"/dir/b"}}, policy.Ask},
		{"searches again", s, policy.Request{Tool: "grep", Inputs: []string{"/dir"}, Paths: []string{"/dir"}}, policy.Allow},
		{"searches", s, policy.Request{Tool: "find_path", Inputs: []string{"/"}, Paths: []string{"/"}}, policy.Ask},
		{"lists", s, policy.Request{Tool: "list_directory", Inputs: []string{"/dir", "/c"}, Paths: []string{"/dir", "/c"}}, policy.Ask},
		{"reads what is not said", s, policy.Request{Tool: "read"}, policy.Ask},
		{"reads its own output", s, policy.Request{Tool: "read_overflow"}, policy.Allow},
		{"fetches", s, policy.Request{Tool: "fetch"}, policy.Ask},
		{"scrapes", s, policy.Request{Tool: "web_scrape"}, policy.Ask},
		{"denied", s, policy.Request{Tool: "edit"}, policy.Deny},
		{"remembers", s, policy.Request{Tool: "memory_save"}, policy.Ask},
		{"says that it reads", s, policy.Request{Tool: "schedule_periodic", ReadOnly: true}, policy.Ask},
		{"server", s, policy.Request{Tool: "x:y", ReadOnly: true}, policy.Ask},
		{"trusted server", s, policy.Request{Tool: "x:y", ReadOnly: true, TrustedServer: true}, policy.Ask},
		{"granted", s, withGrant(policy.Request{Tool: "copy_path"}, "copy_path", ""), policy.Ask},
		{"command that reads", git, bash("git log"), policy.Ask},
		{"command that changes", git, bash("git push"), policy.Ask},
		{"full", full, bash("git push"), policy.Allow},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.request.Suspicious, tt.request.Touched = "https://page.example", []string{"/a", "/dir"}
			got := tt.set.Decide(tt.request)
			if got.Effect != tt.want {
				t.Errorf("got %+v, want %s", got, tt.want)
			}
			if got.Effect == policy.Ask && !strings.Contains(got.Reason.String(), "https://page.example") {
				t.Errorf("reason %q", got.Reason.String())
			}
		})
	}
}

func TestTrust(t *testing.T) {
	t.Parallel()
	tests := []struct {
		trust policy.Trust
		want  int
		known bool
	}{
		{"", 0, true},
		{policy.Trusted, 0, true},
		{policy.Verified, 1, true},
		{policy.Quarantined, 2, true},
		{policy.Blocked, 3, true},
		{"Trusted", 3, false},
	}
	for _, tt := range tests {
		if tt.trust.Severity() != tt.want || tt.trust.Known() != tt.known {
			t.Errorf("%q: %d, %t", tt.trust, tt.trust.Severity(), tt.trust.Known())
		}
	}
	s := newSet(t, policy.Options{})
	if got := s.Decide(policy.Request{Tool: "fetch", Trust: policy.Verified}); got.Effect != policy.Allow {
		t.Errorf("verified: %+v", got)
	}
}

func TestReasonIsShort(t *testing.T) {
	t.Parallel()
	s := newSet(t, policy.Options{})
	long := "find . -name '*.go' " + strings.Repeat("-o -name 'x' ", 100) + "-delete"
	got := s.Decide(bash(long))
	if !strings.HasPrefix(got.Reason.String(), "No rule allows `find . -name") || !strings.HasSuffix(got.Reason.String(), "-delete`.") || !strings.Contains(got.Reason.String(), "…") || len(got.Reason.String()) > 120 {
		t.Errorf("reason %q", got.Reason.String())
	}
	got = s.Decide(bash("echo 'a\nb' \xff"))
	if strings.Contains(got.Reason.String(), "\n") || !strings.Contains(got.Reason.String(), "�") {
		t.Errorf("reason %q", got.Reason.String())
	}
}
