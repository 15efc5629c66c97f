package policy_test

import (
	"path"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/policy"
)

// files are the contents of a disk by path. A path with -> is a link.
type files map[string]string

// inWork returns a bash call in /work with what the gate determines about its files.
func inWork(s *policy.Set, text string, disk files) policy.Request {
	r := bash(text)
	r.Dir, r.Confined, r.InsidePaths, r.Session, r.Caller = "/work", true, []string{"/work"}, "s", "ann"
	for _, n := range s.Named(r) {
		p := n.Name
		if !path.IsAbs(p) {
			p = "/work/" + p
		}
		f := policy.File{Name: n.Name, Path: path.Clean(p)}
		if to, ok := strings.CutPrefix(disk[f.Path], "->"); ok {
			f.Path = to
		}
		switch content, ok := disk[f.Path]; {
		case path.Base(n.Name) == ".":
			f.Hash = "directory"
		case ok && content == "large":
			f.Hash, f.Unread = "looks", true
		case ok:
			f.Hash = content
		case n.Optional:
			continue
		default:
			f.Path = ""
		}
		r.Scripts = append(r.Scripts, f)
	}
	return r
}

// offered returns what a choice of "Always" stores for a call.
func offered(t *testing.T, s *policy.Set, r policy.Request, kind policy.OfferKind) []policy.Grant {
	t.Helper()
	for _, o := range s.Offers(r) {
		if o.Kind == kind {
			return o.Grants
		}
	}
	t.Fatalf("%v: no %s is offered: %+v, %+v", r.Inputs, kind, s.Offers(r), s.Decide(r))
	return nil
}

func with(r policy.Request, grants ...[]policy.Grant) policy.Request {
	for _, g := range grants {
		r.Grants = append(r.Grants, g...)
	}
	return r
}

func TestGrants(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		options policy.Options
		granted string // for which exact grants are stored
		call    string
		want    policy.Effect
	}{
		{"covers", policy.Options{}, "go build ./...", "go build ./...", policy.Allow},
		{"other spelling of the same words", policy.Options{}, "go build ./...", `go  "build" \./...`, policy.Allow},
		{"a comment asks", policy.Options{}, "go build ./...", "go build ./... # all", policy.Ask},
		{"other words", policy.Options{}, "go build ./...", "go build ./x", policy.Ask},
		{"case counts", policy.Options{}, "go build -o x", "go build -o X", policy.Ask},
		{"a second command", policy.Options{}, "go build ./...", "go build ./...; make", policy.Ask},
		{"two grants", policy.Options{}, "go build ./...; make", "make && go build ./...", policy.Allow},
		{"redirection that writes", policy.Options{}, "go build ./...", "go build ./... > /tmp/x", policy.Ask},
		{"redirection that does not write", policy.Options{}, "go build ./...", "go build ./... 2>&1", policy.Allow},
		{"output dropped", policy.Options{}, "go build ./...", "go build ./... >/dev/null 2>&1", policy.Allow},
		{"confirm pattern", policy.Options{ConfirmPatterns: []string{"build"}}, "go build ./...", "go build ./...", policy.Allow},
		{"confirm pattern and another command", policy.Options{ConfirmPatterns: []string{"build"}, Unasked: policy.UnaskedReading}, "go build ./...", "go build ./...; ls", policy.Ask},
		{"beside a reading command", policy.Options{Unasked: policy.UnaskedReading}, "go build ./...", "ls && go build ./... | tail -3", policy.Allow},
		{"with rules", policy.Options{Permissions: perms("ask go *")}, "go build ./...", "go build ./...", policy.Allow},
		{"with rules and no match", policy.Options{Permissions: perms("allow ls")}, "go build ./...", "ls; go build ./...", policy.Allow},
		{"the same rule over the whole text", policy.Options{Permissions: perms("allow ls", "ask go *")}, "go build ./...", "go build ./... && ls", policy.Allow},
		{"another rule over the whole text", policy.Options{Permissions: perms("allow ls", "ask go *", "ask *&& ls")}, "go build ./...", "go build ./... && ls", policy.Ask},
		{"a rule over a redirection", policy.Options{Permissions: perms("ask go *", "ask < *")}, "go build ./... < x", "go build ./... < x", policy.Ask},
		{"negated", policy.Options{}, "go build ./...", "! go build ./...", policy.Allow},
		{"or", policy.Options{}, "go build ./...", "go build ./... || go build ./...", policy.Allow},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var grants []policy.Grant
			plain := newSet(t, policy.Options{})
			for one := range strings.SplitSeq(tt.granted, "; ") {
				grants = append(grants, offered(t, plain, inWork(plain, one, nil), policy.OfferExact)...)
			}
			s := newSet(t, tt.options)
			got := s.Decide(with(inWork(s, tt.call, nil), grants))
			if got.Effect != tt.want || got.Effect == policy.Allow && !strings.HasPrefix(got.Rule, "grant: bash") {
				t.Errorf("got %+v, want %s", got, tt.want)
			}
		})
	}
}

// What precedes grants still precedes them.
func TestGrantsStandAfterDenials(t *testing.T) {
	t.Parallel()
	plain := newSet(t, policy.Options{})
	r := inWork(plain, "go build ./...", nil)
	grants := offered(t, plain, r, policy.OfferExact)
	for name, o := range map[string]policy.Options{
		"denied": {Permissions: perms("deny go *")}, "blocked": {BlockedCommands: []string{"go"}}, "readonly": {Level: policy.ReadOnly},
	} {
		if got := newSet(t, o).Decide(with(r, grants)); got.Effect != policy.Deny {
			t.Errorf("%s: %+v", name, got)
		}
	}
	r.Suspicious = "a page"
	if got := plain.Decide(with(r, grants)); got.Effect != policy.Ask {
		t.Errorf("flagged content: %+v", got)
	}
}

func TestGrantsOfOtherTools(t *testing.T) {
	t.Parallel()
	s := newSet(t, policy.Options{})
	file := func(tool string, paths ...string) policy.Request {
		return policy.Request{Tool: tool, Inputs: paths, InsidePaths: []string{"/work"}}
	}
	src := policy.Grant{Tool: "write", Kind: policy.GrantPath, Dir: "/work/src"}
	goFiles := policy.Grant{Tool: "write", Kind: policy.GrantPath, Dir: "/work/src", Ext: ".go"}
	one := policy.Grant{Tool: "write_file", Kind: policy.GrantExact, Input: "/work/a"}
	move := policy.Grant{Tool: "move_path", Kind: policy.GrantPath, Dir: "/work/src"}
	for _, tt := range []struct {
		name  string
		call  policy.Request
		grant policy.Grant
		want  policy.Effect
	}{
		{"this file", file("write", "/work/a"), one, policy.Allow},
		{"another file", file("write", "/work/b"), one, policy.Ask},
		{"a pattern is no pattern", file("write", "/work/a"), policy.Grant{Tool: "write", Kind: policy.GrantExact, Input: "/work/*"}, policy.Ask},
		{"below", file("write", "/work/src/x/y.txt"), src, policy.Allow},
		{"the directory itself", file("write", "/work/src"), src, policy.Ask},
		{"beside", file("write", "/work/srcs/x"), src, policy.Ask},
		{"a hidden file", file("write", "/work/src/.bashrc"), src, policy.Ask},
		{"in a hidden directory", file("write", "/work/src/.git/hooks/x"), src, policy.Ask},
		{"out by dots", file("write", "/work/src/../x"), src, policy.Ask},
		{"extension", file("write", "/work/src/x.go"), goFiles, policy.Allow},
		{"other extension", file("write", "/work/src/x.sh"), goFiles, policy.Ask},
		{"other tool", file("edit", "/work/src/x.go"), goFiles, policy.Ask},
		{"one of two paths", file("move_path", "/work/src/a", "/work/b"), move, policy.Ask},
		{"both paths", file("move_path", "/work/src/a", "/work/src/b"), move, policy.Allow},
		{"no kind", file("write", "/work/a"), policy.Grant{Tool: "write", Input: "/work/a"}, policy.Ask},
		{"words", file("write", "/work/a"), policy.Grant{Tool: "write", Kind: policy.GrantExact, Input: "/work/a", Words: []string{"a"}}, policy.Ask},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := s.Decide(with(tt.call, []policy.Grant{tt.grant})); got.Effect != tt.want {
				t.Errorf("got %+v, want %s", got, tt.want)
			}
		})
	}
}

func TestOffers(t *testing.T) {
	t.Parallel()
	bashExact := func(words ...string) policy.Offer {
		return policy.Offer{Kind: policy.OfferExact, Grants: []policy.Grant{{
			Tool: "bash", Kind: policy.GrantExact, Words: words, Dir: "/work",
		}}}
	}
	prefix := func(words ...string) policy.Offer {
		return policy.Offer{Kind: policy.OfferPrefix, Grants: []policy.Grant{{Tool: "bash", Kind: policy.GrantPrefix, Words: words, Dir: "/work"}}}
	}
	write := func(kind policy.OfferKind, g policy.Grant) policy.Offer {
		g.Tool = "write"
		return policy.Offer{Kind: kind, Grants: []policy.Grant{g}}
	}
	mcp := policy.Request{Tool: "x:y", Inputs: []string{`{"a":1}`}, Server: "addr", Definition: "def"}
	flagged := mcp
	flagged.Suspicious = "a page"
	tests := []struct {
		name    string
		options policy.Options
		call    string
		request *policy.Request
		want    []policy.Offer
	}{
		{"command", policy.Options{}, `rm "a b" [x]* '*'`, nil, []policy.Offer{bashExact("rm", "'a b'", "[x]*", "'*'")}},
		{"prefix", policy.Options{}, "git push origin", nil, []policy.Offer{bashExact("git", "push", "origin"), prefix("git", "push")}},
		{"only what asks", policy.Options{Permissions: perms("allow git *")}, "git log; touch a", nil, []policy.Offer{bashExact("touch", "a"), prefix("touch")}},
		{"no prefix where one has none", policy.Options{}, "git push; rm a", nil, []policy.Offer{{Kind: policy.OfferExact, Grants: append(bashExact("git", "push").Grants, bashExact("rm", "a").Grants...)}}},
		{"not the reading ones", policy.Options{Unasked: policy.UnaskedReading}, "ls && touch a", nil, []policy.Offer{bashExact("touch", "a"), prefix("touch")}},
		{"indirection", policy.Options{}, "$x", nil, nil},
		{"an assignment", policy.Options{}, "A=1 touch a", nil, nil},
		{"redirection", policy.Options{}, "touch a > x", nil, nil},
		{"whole text asks", policy.Options{Permissions: perms("allow git *", "allow make", "ask *; *")}, "git log; make", nil, nil},
		{"allowed", policy.Options{Permissions: perms("allow make")}, "make", nil, nil},
		{"denied", policy.Options{Permissions: perms("deny make")}, "make", nil, nil},
		{"file", policy.Options{}, "", &policy.Request{Tool: "write_file", Inputs: []string{"/work/a?.go"}}, []policy.Offer{
			write(policy.OfferExact, policy.Grant{Kind: policy.GrantExact, Input: "/work/a?.go"}),
			write(policy.OfferDirectory, policy.Grant{Kind: policy.GrantPath, Dir: "/work"}),
			write(policy.OfferExtension, policy.Grant{Kind: policy.GrantPath, Dir: "/work", Ext: ".go"}),
		}},
		{"file without extension", policy.Options{}, "", &policy.Request{Tool: "write", Inputs: []string{"/work/src/a"}}, []policy.Offer{
			write(policy.OfferExact, policy.Grant{Kind: policy.GrantExact, Input: "/work/src/a"}),
			write(policy.OfferDirectory, policy.Grant{Kind: policy.GrantPath, Dir: "/work/src"}),
		}},
		{"hidden file", policy.Options{}, "", &policy.Request{Tool: "write", Inputs: []string{"/work/.hidden"}}, []policy.Offer{
			write(policy.OfferExact, policy.Grant{Kind: policy.GrantExact, Input: "/work/.hidden"}),
		}},
		{"file outside", policy.Options{}, "", &policy.Request{Tool: "write", Inputs: []string{"/etc/a"}}, []policy.Offer{
			write(policy.OfferExact, policy.Grant{Kind: policy.GrantExact, Input: "/etc/a"}),
		}},
		{"mcp", policy.Options{}, "", &mcp, []policy.Offer{{Kind: policy.OfferExact, Grants: []policy.Grant{{
			Tool: "x:y", Kind: policy.GrantExact, Input: `{"a":1}`, Server: "addr", Definition: "def",
		}}}}},
		{"mcp without an address", policy.Options{}, "", &policy.Request{Tool: "x:y", Inputs: []string{`{}`}}, nil},
		{"flagged", policy.Options{}, "", &flagged, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newSet(t, tt.options)
			r := inWork(s, tt.call, nil)
			if tt.request != nil {
				r = *tt.request
				r.Confined, r.InsidePaths = true, []string{"/work"}
			}
			got := s.Offers(r)
			for i := range got {
				for j := range got[i].Grants {
					got[i].Grants[j].Files = nil
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Fatalf("(-want +got)\n%s", diff)
			}
			for _, o := range s.Offers(r) {
				if d := s.Decide(with(r, o.Grants)); d.Effect != policy.Allow {
					t.Errorf("the offer does not allow: %+v", d)
				}
			}
		})
	}
	if got := newSet(t, policy.Options{}).Offers(policy.Request{Tool: "bash", Inputs: []string{"make", "make"}}); got != nil {
		t.Errorf("two scripts: %+v", got)
	}
}

// What a grant has answered already is not offered again.
func TestOfferBesideAGrant(t *testing.T) {
	t.Parallel()
	s := newSet(t, policy.Options{})
	r := with(inWork(s, "touch a; rm b", nil), offered(t, s, inWork(s, "rm b", nil), policy.OfferExact))
	if got := offered(t, s, r, policy.OfferExact); len(got) != 1 || got[0].Text() != "touch a" {
		t.Errorf("got %+v", got)
	}
}

func TestNamedOfOtherTools(t *testing.T) {
	t.Parallel()
	if got := newSet(t, policy.Options{}).Named(policy.Request{Tool: "write", Inputs: []string{"/work/x.sh"}}); got != nil {
		t.Errorf("got %v", got)
	}
}

// TestGranted: a decision names each standing approval that it needs, once, and none that it does not.
func TestGranted(t *testing.T) {
	t.Parallel()
	s := newSet(t, policy.Options{})
	script := inWork(s, "git push; rm a; git push", nil)
	both := s.Offers(script)[0].Grants
	other := policy.Grant{Tool: "write", Kind: policy.GrantExact, Input: "/work/x"}
	below := policy.Grant{Tool: "move_path", Kind: policy.GrantPath, Dir: "/work/src"}
	for name, tt := range map[string]struct {
		request policy.Request
		grants  []policy.Grant
		want    []policy.Grant
	}{
		"each command":   {script, both, both[:2]},
		"one is missing": {script, both[:1], nil},
		"not needed":     {inWork(s, "git push", nil), []policy.Grant{other, both[0]}, both[:1]},
		"both paths":     {policy.Request{Tool: "move_path", Inputs: []string{"/work/src/a", "/work/src/b"}}, []policy.Grant{other, below}, []policy.Grant{below}},
		"one path":       {policy.Request{Tool: "move_path", Inputs: []string{"/work/src/a", "/work/b"}}, []policy.Grant{below}, nil},
	} {
		d := s.Decide(with(tt.request, tt.grants))
		if diff := cmp.Diff(tt.want, d.Granted); diff != "" || (d.Effect == policy.Allow) != (tt.want != nil) {
			t.Errorf("%s: %s (-want +got)\n%s", name, d.Effect, diff)
		}
	}
}
