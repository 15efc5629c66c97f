package chain_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/policy"
	"github.com/zephbot/zephbot/policy/act"
	"github.com/zephbot/zephbot/policy/reason"
	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/chain"
	"github.com/zephbot/zephbot/tools/toolstest"
)

func runNothing(context.Context, *tools.Call) (*tools.Result, error) {
	return &tools.Result{Text: "ran"}, nil
}

// gateRegistry has the test tools, one that does not describe itself and one that cannot.
func gateRegistry(t *testing.T) *tools.Registry {
	t.Helper()
	r, err := tools.NewRegistry(
		toolstest.Echo(),
		tools.Tool{Definition: tools.Definition{Name: "srv:raw", Server: "srv", Trusted: true, ReadOnly: true}, Run: runNothing},
		tools.Tool{
			Definition: tools.Definition{Name: "outside"}, Run: runNothing,
			Describe: func(context.Context, *tools.Call) (tools.Subject, error) {
				return tools.Subject{}, tools.Errorf(tools.PolicyBlocked, "that path is off limits")
			},
		},
	)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func decoded(t *testing.T, r *tools.Registry, tool, args string) *tools.Call {
	t.Helper()
	c := toolstest.Call(tool, args)
	found, _ := r.Lookup(tool)
	c.Def = found.Definition
	if c.Def.Name == "" {
		c.Def.Name = tool
	}
	return c
}

func TestDecision(t *testing.T) {
	t.Parallel()
	const secret = "rule[3] deny: tool=echo matched /secret/*"
	for _, tc := range []struct {
		effect     policy.Effect
		wantEffect string
		passes     bool
	}{
		{policy.Allow, "allow", true},
		{policy.Ask, "ask", true},
		{policy.Deny, "deny", false},
		{"", "deny", false},
		{"perhaps", "deny", false},
	} {
		t.Run(string(tc.effect), func(t *testing.T) {
			t.Parallel()
			r := gateRegistry(t)
			decide := toolstest.Decide(func(policy.Request) policy.Decision {
				return policy.Decision{Effect: tc.effect, Rule: secret, Reason: reason.Plain("Because of /secret.")}
			})
			c := decoded(t, r, "echo", `{"text":"hi"}`)
			res, err := chain.NewGate(r, chain.GateOptions{Policy: decide})(runNothing)(t.Context(), c)
			if (err == nil) != tc.passes {
				t.Fatalf("got %v, %v", res, err)
			}
			want := tools.Trail{Rule: secret, Effect: tc.wantEffect, Reason: reason.Plain("Because of /secret.")}
			if diff := cmp.Diff(want, *c.Trail); diff != "" {
				t.Errorf("trail (-want +got):\n%s", diff)
			}
			if tc.passes {
				return
			}
			var e *tools.Error
			if !errors.As(err, &e) || e.Category != tools.PolicyBlocked || !e.Denied() || e.Message != "This call is denied by policy." {
				t.Fatalf("got %+v", err)
			}
			if text := tools.Feedback(err); strings.Contains(text, "secret") || strings.Contains(text, "rule") {
				t.Errorf("the model learns about the rule:\n%s", text)
			}
		})
	}
}

func TestRequest(t *testing.T) {
	t.Parallel()
	r := gateRegistry(t)
	known := policy.Request{Confined: true, InsidePaths: []string{"/work"}, Env: []string{"HOME"}, Trust: "verified", Suspicious: "https://h", Caller: "telegram:1", Tool: "other"}
	for _, tc := range []struct {
		tool, args string
		want       policy.Request
		subject    tools.Subject
	}{
		{
			"echo", `{"text":"hi","times":2}`,
			policy.Request{Tool: "echo", Args: map[string]any{"text": "hi", "times": json.Number("2")}, Inputs: []string{"hi"}, ReadOnly: true},
			tools.Subject{Inputs: []string{"hi"}, Show: "say hi"},
		},
		{
			"srv:raw", `{"a":1}`,
			policy.Request{Tool: "srv:raw", Args: map[string]any{"a": json.Number("1")}, Inputs: []string{`{"a":1}`}, ReadOnly: true, TrustedServer: true},
			tools.Subject{Inputs: []string{`{"a":1}`}, Show: "{\n  \"a\": 1\n}"},
		},
	} {
		t.Run(tc.tool, func(t *testing.T) {
			t.Parallel()
			var got policy.Request
			decide := toolstest.Decide(func(r policy.Request) policy.Decision {
				got = r
				return policy.Decision{Effect: policy.Allow}
			})
			c := decoded(t, r, tc.tool, tc.args)
			o := chain.GateOptions{Policy: decide, Request: func(_ context.Context, c *tools.Call) (policy.Request, error) {
				if c.Subject.Show == "" {
					t.Error("the subject is not known yet")
				}
				return known, nil
			}}
			if _, err := chain.NewGate(r, o)(runNothing)(t.Context(), c); err != nil {
				t.Fatal(err)
			}
			want := tc.want
			want.Says = &act.Statement{} // the tool says nothing: that is handed over too
			want.Caller, want.Chat, want.Session = "telegram:42", "42", "telegram:42"
			if c.Def.Server != "" {
				want.Definition = c.Def.Hash()
			}
			want.Confined, want.InsidePaths, want.Env, want.Trust, want.Suspicious = true, known.InsidePaths, known.Env, known.Trust, known.Suspicious
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("request (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.subject, c.Subject); diff != "" {
				t.Errorf("subject (-want +got):\n%s", diff)
			}
			if c.Trail.Suspicious != "https://h" {
				t.Errorf("suspicious %q", c.Trail.Suspicious)
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	down := errors.New("redis: connection refused")
	allow := toolstest.Always(policy.Allow)
	for _, tc := range []struct {
		name     string
		tool     string
		args     string
		hidden   bool
		options  chain.GateOptions
		category tools.Category
		denied   bool
		message  string
	}{
		{name: "hidden", tool: "echo", hidden: true, options: chain.GateOptions{Policy: allow}, category: tools.PolicyBlocked, denied: true, message: "The tool echo is not permitted in this chat."},
		{name: "no policy", tool: "echo", category: tools.PolicyBlocked, denied: true, message: "This call is denied by policy."},
		{name: "describe fails", tool: "outside", options: chain.GateOptions{Policy: allow}, category: tools.PolicyBlocked, message: "that path is off limits"},
		{name: "gone", tool: "gone", options: chain.GateOptions{Policy: allow}, category: tools.PermanentFailure, message: "The tool gone is no longer available."},
		{name: "arguments are a list", tool: "srv:raw", args: `[]`, options: chain.GateOptions{Policy: allow}, category: tools.InvalidParameters, message: "The arguments are not a JSON object."},
		{
			name: "permissions away", tool: "echo", category: tools.ServerError, message: "The permissions for this call could not be read.",
			options: chain.GateOptions{Policy: allow, Request: func(context.Context, *tools.Call) (policy.Request, error) { return policy.Request{}, down }},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			r := gateRegistry(t)
			if tc.args == "" {
				tc.args = `{"text":"x"}`
			}
			c := decoded(t, r, tc.tool, tc.args)
			c.Tools = tools.Only(func(string) bool { return !tc.hidden })
			_, err := chain.NewGate(r, tc.options)(runNothing)(t.Context(), c)
			var e *tools.Error
			if !errors.As(err, &e) || e.Category != tc.category || e.Denied() != tc.denied || e.Message != tc.message {
				t.Errorf("got %+v", err)
			}
			if c.Trail.Effect == "allow" || c.Trail.Effect == "ask" {
				t.Errorf("effect %s of a call that was refused", c.Trail.Effect)
			}
		})
	}
}

// TestAttackAskedInVain: nobody is asked about a call that its tool will refuse. Where nobody would be asked, the tool
// refuses it.
func TestAttackAskedInVain(t *testing.T) {
	t.Parallel()
	for effect, want := range map[policy.Effect]string{policy.Ask: "not possible", policy.Allow: "rule", policy.Deny: "rule"} {
		checks := 0
		r, err := tools.NewRegistry(tools.Tool{
			Definition: tools.Definition{Name: "cannot"}, Run: runNothing,
			Check: func(context.Context, *tools.Call) error {
				checks++
				return tools.Errorf(tools.PermanentFailure, "that is a directory")
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		decide := toolstest.Decide(func(policy.Request) policy.Decision { return policy.Decision{Effect: effect, Rule: "rule"} })
		c := decoded(t, r, "cannot", `{}`)
		_, err = chain.NewGate(r, chain.GateOptions{Policy: decide})(runNothing)(t.Context(), c)
		if asked := effect == policy.Ask; asked != (checks == 1) || asked && (err == nil || !strings.Contains(err.Error(), "that is a directory") || c.Trail.Effect != "deny") {
			t.Errorf("%s: %d checks, %v, %+v", effect, checks, err, c.Trail)
		}
		if c.Trail.Rule != want {
			t.Errorf("%s: rule %q", effect, c.Trail.Rule)
		}
	}
}

// TestAttackNotOffered: in a session, a tool that the model was not shown cannot be called by its name. A denial by the
// policy takes precedence.
func TestAttackNotOffered(t *testing.T) {
	t.Parallel()
	r := gateRegistry(t)
	for _, tc := range []struct {
		effect  policy.Effect
		batch   int
		shown   string
		message string
	}{
		{policy.Allow, 1, "", "not offered"},
		{policy.Ask, 3, "", "not offered"},
		{policy.Deny, 1, "", "denied by policy"},
		{policy.Allow, 1, "hash", ""},
		{policy.Allow, 0, "", ""}, // the command line
	} {
		c := decoded(t, r, "echo", `{"text":"hi"}`)
		c.BatchN, c.Definition = tc.batch, tc.shown
		decide := toolstest.Decide(func(policy.Request) policy.Decision { return policy.Decision{Effect: tc.effect} })
		_, err := chain.NewGate(r, chain.GateOptions{Policy: decide})(runNothing)(t.Context(), c)
		if tc.message == "" && err != nil || tc.message != "" && (err == nil || !strings.Contains(err.Error(), tc.message) || c.Trail.Effect != "deny") {
			t.Errorf("%+v: %v, %+v", tc, err, c.Trail)
		}
	}
}
