package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/zephbot/zephbot/policy/reason"
	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/mcp"
	"github.com/zephbot/zephbot/tools/mcp/guard"
)

// TestCalls has calls that end well and badly.
func TestCalls(t *testing.T) {
	t.Parallel()
	cfg, _ := inProcess(t, "srv", testServer)
	cfg.Policy.Denied, cfg.CallsPerMinute = []string{"env"}, 3
	b := start(t, mcp.Options{Servers: []mcp.Server{cfg}})
	b.ready(t)
	res, trail, err := b.call(t, "srv:fail", `{"text":"x"}`)
	if err != nil || !res.Error || res.Text != "it did not work" || res.Untrusted != "mcp:srv" || trail.MCPServer != "srv" {
		t.Errorf("got %+v, %+v, %v", res, trail, err)
	}
	if res, _, err = b.call(t, "srv:echo", `{"text":7}`); err != nil || !res.Error {
		t.Errorf("arguments against the schema: %+v, %v", res, err)
	}
	_, trail, err = b.call(t, "srv:env", `{"text":"x"}`)
	if c, te := code(t, err); c != guard.PolicyBlocked || !te.Denied() || trail.MCPErrorCode != "policy_blocked" {
		t.Errorf("got %s, %+v", c, te)
	}
	b.want(t, "srv:meta", `{}`, "telegram:42")
	_, _, err = b.call(t, "srv:echo", `{"text":"one too many"}`)
	if c, te := code(t, err); c != guard.PolicyBlocked || te.Category != tools.PolicyBlocked || !strings.Contains(te.Message, "too many calls") {
		t.Errorf("got %s, %+v", c, te)
	}
}

// TestProgress hands on what a server says of a call that runs.
func TestProgress(t *testing.T) {
	t.Parallel()
	seen := make(chan string)
	cfg, _ := inProcess(t, "srv", func() *sdk.Server {
		s := plain()
		sdk.AddTool(s, &sdk.Tool{Name: "steps"}, func(ctx context.Context, req *sdk.CallToolRequest, _ struct{}) (*sdk.CallToolResult, any, error) {
			var lines []string
			for i := 1; i <= 2; i++ {
				err := req.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{
					ProgressToken: req.Params.GetProgressToken(), Progress: float64(i), Total: 2, Message: fmt.Sprintf("step\n%d", i),
				})
				if err != nil {
					return nil, nil, err
				}
				lines = append(lines, <-seen) // a notification that comes after the answer is lost
			}
			return text(strings.Join(lines, ", ")), nil, nil
		})
		return s
	})
	b := start(t, mcp.Options{Servers: []mcp.Server{cfg}})
	b.ready(t)
	tool, _ := b.registry.Lookup("srv:steps")
	call := &tools.Call{ID: "c", Tool: "srv:steps", Args: json.RawMessage(`{}`), Trail: &tools.Trail{}, Progress: func(s string) { seen <- s }}
	if res, err := tool.Run(t.Context(), call); err != nil || res.Text != "step 1 (50 %), step 2 (100 %)" {
		t.Fatalf("got %+v, %v", res, err)
	}
}

// TestCallEnds has calls of a tool that hangs: the time is up, the person cancels, the server dies.
func TestCallEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cancelled := make(chan struct{}, 10)
		cfg, stop := inProcess(t, "srv", func() *sdk.Server {
			s := plain()
			sdk.AddTool(s, &sdk.Tool{Name: "hang"}, func(ctx context.Context, _ *sdk.CallToolRequest, _ struct{}) (*sdk.CallToolResult, any, error) {
				<-ctx.Done()
				cancelled <- struct{}{}
				return nil, nil, ctx.Err()
			})
			return s
		})
		b := start(t, mcp.Options{Servers: []mcp.Server{cfg}, ToolTimeout: 7 * time.Second})
		b.ready(t)
		began := time.Now()
		_, _, err := b.call(t, "srv:hang", `{}`)
		if c, te := code(t, err); c != guard.Transient || te.Category != tools.Timeout || te.Message != "the server srv did not answer within 7s" || time.Since(began) != 7*time.Second {
			t.Errorf("got %s, %+v after %s", c, te, time.Since(began))
		}
		<-cancelled // the server was told
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { _, _, err = b.callFor(ctx, "srv:hang", `{}`, tools.Origin{}) })
		synctest.Wait()
		cancel()
		wg.Wait()
		if _, te := code(t, err); te.Category != tools.Cancelled || te.Retryable {
			t.Errorf("got %+v", te)
		}
		<-cancelled
		tool, _ := b.registry.Lookup("srv:hang")
		wg.Go(func() { _, _, err = b.callFor(t.Context(), "srv:hang", `{}`, tools.Origin{Session: "s"}) })
		synctest.Wait()
		stop()
		wg.Wait()
		if c, te := code(t, err); c != guard.Transient || te.Category != tools.NetworkError || !strings.Contains(te.Message, "went away during the call") {
			t.Errorf("got %s, %+v", c, te)
		}
		if n := b.notice(t, mcp.Away); n.Sessions[0] != "s" {
			t.Errorf("notice %+v", n)
		}
		b.notice(t, mcp.Back)
		b.stop()
		_, err = tool.Run(t.Context(), &tools.Call{Trail: &tools.Trail{}})
		if c, te := code(t, err); c != guard.Transient || !strings.Contains(te.Message, "is not connected at the moment") {
			t.Errorf("after the end: %s, %+v", c, te)
		}
	})
}

// TestDescribe shows what policy and people see of a call.
func TestDescribe(t *testing.T) {
	t.Parallel()
	cfg, _ := inProcess(t, "srv", testServer)
	b := start(t, mcp.Options{Servers: []mcp.Server{cfg}})
	b.ready(t)
	tool, _ := b.registry.Lookup("srv:echo")
	if d := tool.Definition; d.ReadOnly || d.Destructive || d.Trusted || d.Server != "srv" || d.Timeout <= 0 {
		t.Errorf("an untrusted server is believed: %+v", d)
	}
	sum, _ := b.registry.Lookup("srv:sum")
	if d := sum.Definition; len(d.OutputSchema) == 0 || !strings.HasPrefix(d.Description, "Adds.\nStructured result: ") {
		t.Errorf("got %+v", d)
	}
	for args, want := range map[string]tools.Subject{
		`{"text": "hello"}`: {Inputs: []string{`{"text":"hello"}`}, Show: "{\n  \"text\": \"hello\"\n}"},
		`{"file_path":"src/../x.go","n":9007199254740993}`: {
			Inputs: []string{`{"file_path":"src/../x.go","n":9007199254740993}`, "x.go"}, Paths: []string{"x.go"},
			Show: "{\n  \"file_path\": \"src/../x.go\",\n  \"n\": 9007199254740993\n}",
		},
		`{"a":{"sources":["x"],"URLs":["https://x.example/a b"]},"note":"see https://y.example","z":"/etc/./passwd"}`: {
			Inputs: []string{
				`{"a":{"sources":["x"],"URLs":["https://x.example/a b"]},"note":"see https://y.example","z":"/etc/./passwd"}`, "https://x.example/a b", "/etc/passwd",
			},
			Paths: []string{"https://x.example/a b", "/etc/passwd"},
			Show: "{\n  \"a\": {\n    \"sources\": [\n      \"x\"\n    ],\n    \"URLs\": [\n      \"https://x.example/a b\"\n    ]\n  },\n" +
				"  \"note\": \"see https://y.example\",\n  \"z\": \"/etc/./passwd\"\n}",
		},
		``: {Inputs: []string{"{}"}, Show: "{}"},
	} {
		got, err := tool.Describe(t.Context(), &tools.Call{Tool: "srv:echo", Args: json.RawMessage(args)})
		if err != nil {
			t.Fatal(err)
		}
		want.Note = reason.Notes(reason.New(reason.OfServer, "srv"), reason.Trust("untrusted"), reason.New(reason.ServerSaysDoubtful).With(reason.New(reason.HintReads)))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", args, diff)
		}
	}
	if _, err := tool.Describe(t.Context(), &tools.Call{Args: json.RawMessage(`{`)}); err == nil {
		t.Error("broken arguments")
	}
}

// FuzzDescribe looks for arguments that break the description or are shown otherwise than they are.
func FuzzDescribe(f *testing.F) {
	var found sync.Map
	m, err := mcp.New(mcp.Options{Registry: &tools.Registry{}})
	if err != nil || m == nil {
		f.Fatal(err)
	}
	for _, s := range []string{`{}`, `{"path":"a"}`, `{"a":[{"url":"x://y"}]}`, `[]`, `null`, `{"a":"\u0000"}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, args string) {
		subject, err := mcp.Describe(json.RawMessage(args))
		if err != nil {
			return
		}
		found.Store(args, true)
		shown := subject.Show
		var a, b any
		if json.Unmarshal([]byte(shown), &a) != nil || strings.TrimSpace(args) != "" && json.Unmarshal([]byte(args), &b) != nil {
			t.Fatalf("%q is shown as %q", args, shown)
		}
		if strings.TrimSpace(args) != "" && !cmp.Equal(a, b) {
			t.Errorf("%q is shown as %q", args, shown)
		}
	})
}
