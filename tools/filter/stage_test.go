package filter_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/policy/act"
	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/file"
	"github.com/zephbot/zephbot/tools/filter"
	"github.com/zephbot/zephbot/tools/shell"
)

// said returns the definition of a tool as the tool states it.
func said(tool string) tools.Definition {
	return tools.Definition{Name: tool, Says: act.Of(append(shell.Says(), file.Says()...), tool)}
}

func TestStage(t *testing.T) {
	t.Parallel()
	noisy := "   Compiling a v1\n   Compiling b v1\nhello\nworld\n"
	long := strings.TrimSuffix(strings.Repeat("   Compiling a v1\n", 10)+"done", "\n")
	for _, tc := range []struct {
		name, tool, args string
		in               tools.Result
		text, whole      string
		summary          string
		seen             bool
	}{
		{"drops", "bash", `{"command":"cargo build"}`, tools.Result{Text: long, ExitCode: new(0)}, "(10 noise lines removed)\ndone", long, "[shell] 11 lines -> 2 lines, 81.8% filtered", true},
		{"another tool", "read", `{"command":"cargo build"}`, tools.Result{Text: noisy, ExitCode: new(0)}, noisy, "", "", false},
		{"background", "bash", `{"command":"cargo build","background":true}`, tools.Result{Text: noisy}, noisy, "", "", false},
		{"no arguments", "bash", `[]`, tools.Result{Text: noisy, ExitCode: new(0)}, noisy, "", "", false},
		{"no rule", "bash", `{"command":"cat x"}`, tools.Result{Text: "a\n\n\nb", ExitCode: new(0)}, "a\n\n\nb", "", "", true},
		{"killed", "bash", `{"command":"make"}`, tools.Result{Text: "[stderr] error: x\n[killed by signal: 9]", Error: true}, "[stderr] error: x\n[killed by signal: 9]", "", "", true},
		{"trailer", "bash", `{"command":"cargo build"}`, tools.Result{Text: strings.Repeat("[stderr]    Compiling a v1\n", 10) + "[exit code 3]", ExitCode: new(3), Error: true}, "(10 noise lines removed)\n[exit code 3]", strings.Repeat("[stderr]    Compiling a v1\n", 10) + "[exit code 3]", "[shell] 11 lines -> 2 lines, 81.8% filtered", true},
		{"kept whole", "bash", `{"command":"cargo build"}`, tools.Result{Text: long, Whole: "before", ExitCode: new(0)}, "(10 noise lines removed)\ndone", "before", "[shell] 11 lines -> 2 lines, 81.8% filtered", true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			var stats []filter.Stats
			stage := filter.New(engine(t, filter.Options{}), filter.Hooks{Observe: func(s filter.Stats) { stats = append(stats, s) }})
			own := tc.in
			call := &tools.Call{Tool: tc.tool, Def: said(tc.tool), Args: json.RawMessage(tc.args), Trail: &tools.Trail{}}
			got, err := stage(func(context.Context, *tools.Call) (*tools.Result, error) { return &tc.in, nil })(t.Context(), call)
			if err != nil {
				t.Fatal(err)
			}
			if got.Text != tc.text || got.Whole != tc.whole || call.Trail.Summary != tc.summary || len(stats) > 0 != tc.seen {
				t.Errorf("text %q\nwhole %q\nsummary %q, stats %+v", got.Text, got.Whole, call.Trail.Summary, stats)
			}
			if diff := cmp.Diff(own, tc.in); diff != "" {
				t.Errorf("the tool's own result was changed:\n%s", diff)
			}
		})
	}
}

func TestStageLeavesErrors(t *testing.T) {
	t.Parallel()
	want := &tools.Error{Category: tools.Timeout, Message: "x"}
	stage := filter.New(engine(t, filter.Options{}), filter.Hooks{})
	_, err := stage(func(context.Context, *tools.Call) (*tools.Result, error) { return nil, want })(t.Context(), &tools.Call{Tool: "bash", Def: said("bash")})
	if !errors.Is(err, error(want)) {
		t.Errorf("%v", err)
	}
	if res, err := stage(func(context.Context, *tools.Call) (*tools.Result, error) { return nil, nil })(t.Context(), &tools.Call{Tool: "bash", Def: said("bash")}); res != nil || err != nil {
		t.Errorf("%v %v", res, err)
	}
}

func TestCredentials(t *testing.T) {
	t.Parallel()
	text := "token [redacted] and [REDACTED]\n"
	for _, tc := range []struct {
		o    filter.Options
		want string
		n    int
	}{
		{filter.Options{}, "[security] 2 credentials in this output were hidden", 2},
		{filter.Options{Credentials: func(string) int { return 1 }}, "[security] this output holds 3 credentials; do not repeat or store them", 3},
		{filter.Options{Quiet: true}, "", 0},
		{filter.Options{Disabled: true}, "[security] 2 credentials in this output were hidden", 2},
	} {
		out := engine(t, tc.o).Filter("cat x", new(0), text)
		if out.Text != text+tc.want || out.Credentials != tc.n || out.Dropped || out.LinesOut != 1 {
			t.Errorf("%+v", out)
		}
	}
}

func TestSecurityLines(t *testing.T) {
	t.Parallel()
	e := user(t, `{ type = "strip_noise", patterns = ["."] }`)
	for _, line := range []string{
		"warning: unused `Result` that must be used", "warning: usage of unsafe block", "RUSTSEC-2024-0001 x", "possible SQL injection", "weak cipher RC4",
		"deprecated algorithm md5", "insecure hash sha1", "unsafe query built", "Security Advisory for x", "vulnerability detected in y", "dereference of raw pointer is unsafe",
	} {
		text := strings.Repeat("noise that is dropped by the rule\n", 5) + line
		out := e.Filter("x", new(0), text)
		if want := "Security lines:\n" + line; out.Text != want {
			t.Errorf("%q, want %q", out.Text, want)
		}
	}
	for _, line := range []string{ // these are failures: they stay where they stood
		"thread 'main' panicked at src/main.rs:1:1", "HTTP 403 Forbidden", "401 Unauthorized", "Permission denied (publickey)", "Authentication failed for 'https://x'",
	} {
		if out := e.Filter("x", new(0), strings.Repeat("noise\n", 5)+line+"\nnoise"); strings.Count(out.Text, line) != 1 || strings.Contains(out.Text, "Security") {
			t.Errorf("%q: %q", line, out.Text)
		}
	}
	if out := e.Filter("x", new(0), "Compiling x\nFinished dev, and this is a longer line of noise"); strings.Contains(out.Text, "Security") {
		t.Errorf("%q", out.Text)
	}
}

func TestConfidence(t *testing.T) {
	t.Parallel()
	if filter.Full.Worst(filter.Partial) != filter.Partial || filter.Partial.Worst(filter.Fallback) != filter.Fallback {
		t.Error("the worst level does not win")
	}
	var got []string
	for _, c := range []filter.Confidence{filter.None, filter.Fallback, filter.Partial, filter.Full} {
		got = append(got, c.String()+c.Letter())
	}
	if diff := cmp.Diff([]string{"none", "fallbackB", "partialP", "fullF"}, got); diff != "" {
		t.Error(diff)
	}
}
