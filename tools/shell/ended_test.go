package shell_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/shell"
)

// TestEveryEndKeepsItsOutput: however a run ends, its output is kept, and the envelope says how it ended.
func TestEveryEndKeepsItsOutput(t *testing.T) {
	t.Parallel()
	many := strings.Repeat("0123456789\n", 20_000) // more than any message of an error would hold
	print := "for ((i=0; i<20000; i++)); do echo 0123456789; done; "
	for _, tc := range []struct {
		name, then string
		options    shell.Options
		category   tools.Category // "" = no failure
		after      string
		want       shell.Envelope
	}{
		{"by itself", "exit 3", shell.Options{}, "", "\n[exit code 3]", shell.Envelope{ExitCode: new(3)}},
		{"time", "sleep 600", shell.Options{Timeout: 15 * time.Second}, tools.Timeout, "", shell.Envelope{Ended: "timeout"}},
		{"not found", "no-such-command-here 2>/dev/null", shell.Options{}, tools.PermanentFailure, "\n[exit code 127]", shell.Envelope{ExitCode: new(127)}},
		{"not executable", "exit 126", shell.Options{}, tools.PolicyBlocked, "\n[exit code 126]", shell.Envelope{ExitCode: new(126)}},
		{"a signal", "kill -9 $$", shell.Options{}, "", "\n[killed by signal: killed]", shell.Envelope{Signal: "killed"}},
		{
			"too much", "cat /dev/zero | tr '\\0' '\\n'",
			shell.Options{MaxOutput: 2 << 20},
			"",
			"\n[killed by signal: killed]\n[warn] stopped: it printed more than 2 MiB (tools.shell.limits.output_bytes)",
			shell.Envelope{Signal: "killed", Ended: "output_limit"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			k := setup(t, tc.options)
			res, trail, err := k.call(t.Context(), shell.In{Command: print + tc.then})
			if res == nil || (err == nil) != (tc.category == "") || (err != nil && tools.AsError(err).Category != tc.category) {
				t.Fatalf("%+v, %v", res, err)
			}
			env, ok := res.Raw.(shell.Envelope)
			if env.Signal == "terminated" { // the politer of our two
				env.Signal, res.Text = "killed", strings.Replace(res.Text, "signal: terminated", "signal: killed", 1)
			}
			if body := strings.TrimRight(strings.TrimSuffix(res.Text, tc.after), "\n"); body != strings.TrimRight(many, "\n") {
				t.Errorf("%d of %d bytes: …%q", len(body), len(many), res.Text[max(0, len(res.Text)-200):])
			}
			if diff := cmp.Diff(tc.want, env, cmpopts.IgnoreFields(env, "Millis", "Stdout", "Truncated", "Omitted")); diff != "" || !ok || !strings.HasPrefix(env.Stdout, many[:10_000]) {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if tc.category == tools.Timeout && env.Millis < 15_000 {
				t.Errorf("it took %d ms", env.Millis)
			}
			if diff := cmp.Diff(tc.want.ExitCode, trail.ExitCode); diff != "" {
				t.Errorf("trail (-want +got):\n%s", diff)
			}
		})
	}
}

// TestBackgroundIsShaped: a background run passes its whole output to the stages, with the data that they need.
func TestBackgroundIsShaped(t *testing.T) {
	t.Parallel()
	type shaped struct {
		call   *tools.Call
		result *tools.Result
	}
	got := make(chan shaped, 1)
	k := setup(t, shell.Options{Shape: func(_ context.Context, call *tools.Call, result *tools.Result) string {
		got <- shaped{call, result}
		return "in short"
	}})
	text := "for ((i=0; i<20000; i++)); do echo 0123456789; done; exit 4"
	if _, _, err := k.call(t.Context(), shell.In{Command: text, Background: true}); err != nil {
		t.Fatal(err)
	}
	s := <-got
	if n := strings.Count(s.result.Text, "0123456789\n"); n != 20_000 || s.result.ExitCode == nil || *s.result.ExitCode != 4 || !s.result.Error {
		t.Errorf("%d lines, %+v", n, s.result.ExitCode)
	}
	if s.call.Tool != shell.Name || !strings.Contains(string(s.call.Args), "0123456789") || s.call.Origin.Session != session || s.call.Trail == nil {
		t.Errorf("call %+v", s.call)
	}
	if done := completed(t, k, 1)[0]; done.Text != "in short" {
		t.Errorf("text %q", done.Text)
	}
}
