package mcp_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/zephbot/zephbot/tools/mcp"
	"github.com/zephbot/zephbot/tools/mcp/guard"
)

// asking returns a server with a tool that asks for input a number of times, or until it gets an answer.
func asking(times int, params *sdk.ElicitParams) func() *sdk.Server {
	return func() *sdk.Server {
		s := plain()
		sdk.AddTool(s, &sdk.Tool{Name: "ask"}, func(ctx context.Context, req *sdk.CallToolRequest, _ struct{}) (*sdk.CallToolResult, any, error) {
			var said []string
			for range times {
				res, err := req.Session.Elicit(ctx, params)
				if err != nil {
					return nil, nil, err
				}
				said = append(said, fmt.Sprint(res.Action, res.Content))
				if res.Action == "accept" {
					break
				}
			}
			return text(strings.Join(said[:min(len(said), 5)], " ")), nil, nil
		})
		return s
	}
}

var nameForm = &sdk.ElicitParams{Message: "What is your name?", RequestedSchema: map[string]any{
	"type": "object", "properties": map[string]any{"name": map[string]any{"type": "string"}}, "required": []string{"name"},
}}

// TestElicitation has questions that are declined and one that is answered.
func TestElicitation(t *testing.T) {
	t.Parallel()
	answer := func(a mcp.Answer, err error) func(context.Context, mcp.Elicitation) (mcp.Answer, error) {
		return func(_ context.Context, e mcp.Elicitation) (mcp.Answer, error) {
			if e.Server != "srv" || e.Tool != "srv:ask" || e.Origin.Caller != "telegram:42" || e.Form.Message != "What is your name?" || len(e.Form.Fields) != 1 {
				return mcp.Answer{}, fmt.Errorf("got %+v", e)
			}
			return a, err
		}
	}
	page := &sdk.ElicitParams{Mode: "url", Message: "Sign in", URL: "https://x.example/login", ElicitationID: "1"}
	for name, tc := range map[string]struct {
		o      mcp.Options
		params *sdk.ElicitParams
		trust  guard.Trust
		said   string
		why    string
		silent bool
	}{
		"nobody":    {mcp.Options{Elicitation: true}, nameForm, "", "declinemap[]", "nobody can be asked here", false},
		"off":       {mcp.Options{Elicit: answer(mcp.Answer{Accept: true}, nil)}, nameForm, "", "declinemap[]", "questions of servers are turned off", false},
		"sandboxed": {mcp.Options{Elicitation: true, Elicit: answer(mcp.Answer{Accept: true}, nil)}, nameForm, guard.Sandboxed, "declinemap[]", "a sandboxed server may not ask", false},
		"page":      {mcp.Options{Elicitation: true, Elicit: answer(mcp.Answer{Accept: true}, nil)}, page, "", "declinemap[]", "pages are not opened", false},
		"queue":     {mcp.Options{Elicitation: true, ElicitationQueue: -1, Elicit: answer(mcp.Answer{Accept: true}, nil)}, nameForm, "", "declinemap[]", "too many questions are waiting", false},
		"no":        {mcp.Options{Elicitation: true, Elicit: answer(mcp.Answer{}, nil)}, nameForm, "", "declinemap[]", "the person said no", true},
		"cancel":    {mcp.Options{Elicitation: true, Elicit: answer(mcp.Answer{Cancel: true}, nil)}, nameForm, "", "cancelmap[]", "the person cancelled it", true},
		"error":     {mcp.Options{Elicitation: true, Elicit: answer(mcp.Answer{}, errors.New("x"))}, nameForm, "", "declinemap[]", "the question could not be asked", false},
		"yes": {
			mcp.Options{Elicitation: true, Elicit: answer(mcp.Answer{Accept: true, Values: map[string]any{"name": "Ann"}}, nil)}, nameForm, "", "acceptmap[name:Ann]", "", true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg, _ := inProcess(t, "srv", asking(1, tc.params))
			cfg.Trust, cfg.Allowlist, cfg.Protocol = tc.trust, &[]string{"ask"}, "2025-11-25"
			tc.o.Servers = []mcp.Server{cfg}
			b := start(t, tc.o)
			b.ready(t)
			res, trail, err := b.call(t, "srv:ask", `{}`)
			if err != nil {
				t.Fatal(err)
			}
			said, rest, _ := strings.Cut(res.Text, "\n")
			if said != tc.said || !strings.Contains(rest, tc.why) || tc.why == "" && rest != "" || tc.why != "" && !strings.Contains(rest, tc.params.Message) {
				t.Errorf("got %q", res.Text)
			}
			told := len(trail.Notices) == 1 && strings.HasPrefix(trail.Notices[0], "The server srv asked: “"+tc.params.Message) && strings.Contains(trail.Notices[0], tc.why)
			if told == tc.silent {
				t.Errorf("notices %q", trail.Notices)
			}
		})
	}
}

// TestElicitationTimeout leaves a question unanswered: the timeout of the call is paused meanwhile, and then the
// question is declined.
func TestElicitationTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cfg, _ := inProcess(t, "srv", asking(1, nameForm))
		cfg.Protocol, cfg.Timeout = "2025-11-25", 10*time.Second
		b := start(t, mcp.Options{
			Servers: []mcp.Server{cfg}, Elicitation: true, ElicitationTimeout: time.Minute,
			Elicit: func(ctx context.Context, _ mcp.Elicitation) (mcp.Answer, error) {
				<-ctx.Done()
				return mcp.Answer{}, ctx.Err()
			},
		})
		b.ready(t)
		began := time.Now()
		res, trail, err := b.call(t, "srv:ask", `{}`)
		if err != nil || !strings.Contains(res.Text, "nobody answered within 1m0s") || len(trail.Notices) != 1 || time.Since(began) != time.Minute {
			t.Errorf("got %+v, %+v, %v after %s", res, trail, err, time.Since(began))
		}
		b.stop()
	})
}

// TestNagging has a server that does not stop asking, on both wires.
func TestNagging(t *testing.T) {
	t.Parallel()
	old, _ := inProcess(t, "srv", asking(1000, nameForm))
	old.Protocol = "2025-11-25"
	rounds := func() *sdk.Server {
		s := plain()
		s.AddTool(&sdk.Tool{Name: "ask", InputSchema: map[string]any{"type": "object"}}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return &sdk.CallToolResult{InputRequests: sdk.InputRequestMap{"q": nameForm}, RequestState: "x"}, nil
		})
		return s
	}
	fresh, _ := inProcess(t, "srv", rounds)
	for name, cfg := range map[string]mcp.Server{"requests": old, "rounds": fresh} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := start(t, mcp.Options{Servers: []mcp.Server{cfg}})
			b.ready(t)
			_, trail, err := b.call(t, "srv:ask", `{}`)
			c, te := code(t, err)
			if c != guard.InvalidInput || te.Retryable || !strings.Contains(te.Message, "It was declined: nobody can be asked here") {
				t.Errorf("got %s, %+v", c, te)
			}
			if len(trail.Notices) != 3 {
				t.Errorf("%d notices: %q", len(trail.Notices), trail.Notices)
			}
			b.want(t, "srv:one", `{}`, "The first.") // the connection is still good
		})
	}
}

// TestStrayQuestion has a question while two calls are under way: it belongs to nobody.
func TestStrayQuestion(t *testing.T) {
	t.Parallel()
	go1, go2 := make(chan struct{}), make(chan struct{})
	cfg, _ := inProcess(t, "srv", func() *sdk.Server {
		s := plain()
		sdk.AddTool(s, &sdk.Tool{Name: "wait"}, func(context.Context, *sdk.CallToolRequest, struct{}) (*sdk.CallToolResult, any, error) {
			close(go1)
			<-go2
			return text("waited"), nil, nil
		})
		sdk.AddTool(s, &sdk.Tool{Name: "ask"}, func(ctx context.Context, req *sdk.CallToolRequest, _ struct{}) (*sdk.CallToolResult, any, error) {
			defer close(go2)
			res, err := req.Session.Elicit(ctx, nameForm)
			if err != nil {
				return nil, nil, err
			}
			return text(res.Action), nil, nil
		})
		return s
	})
	cfg.Protocol = "2025-11-25"
	b := start(t, mcp.Options{Servers: []mcp.Server{cfg}, Elicitation: true, Elicit: func(context.Context, mcp.Elicitation) (mcp.Answer, error) {
		return mcp.Answer{Accept: true}, nil
	}})
	b.ready(t)
	var wg sync.WaitGroup
	wg.Go(func() { b.want(t, "srv:wait", `{}`, "waited") })
	<-go1
	b.want(t, "srv:ask", `{}`, "decline")
	wg.Wait()
	if n := b.notice(t, mcp.Declined); !strings.Contains(n.Text, "it is not clear who is asked") {
		t.Errorf("notice %+v", n)
	}
}

// TestSampling refuses without a model, and passes on with one.
func TestSampling(t *testing.T) {
	t.Parallel()
	server := func() *sdk.Server {
		s := plain()
		sdk.AddTool(s, &sdk.Tool{Name: "think"}, func(ctx context.Context, req *sdk.CallToolRequest, _ struct{}) (*sdk.CallToolResult, any, error) {
			//nolint:staticcheck // servers use it
			params := &sdk.CreateMessageParams{MaxTokens: 10, Messages: []*sdk.SamplingMessage{{Role: "user", Content: &sdk.TextContent{Text: "2+2?"}}}}
			res, err := req.Session.CreateMessage(ctx, params) //nolint:staticcheck // servers use it
			if err != nil {
				return nil, nil, err
			}
			return text(res.Content.(*sdk.TextContent).Text), nil, nil
		})
		return s
	}
	model := func(_ context.Context, r mcp.SampleRequest) (mcp.SampleResult, error) {
		if r.Server != "srv" || r.MaxTokens != 10 || r.Origin.Caller != "telegram:42" || !cmp.Equal(r.Messages, []mcp.SampleMessage{{Role: "user", Text: "2+2?"}}) {
			return mcp.SampleResult{}, fmt.Errorf("got %+v", r)
		}
		return mcp.SampleResult{Text: "4", Model: "m"}, nil
	}
	for name, tc := range map[string]struct {
		sample func(context.Context, mcp.SampleRequest) (mcp.SampleResult, error)
		trust  guard.Trust
		want   string
	}{
		"without":   {nil, "", "does not support"},
		"with":      {model, "", "4"},
		"sandboxed": {model, guard.Sandboxed, "a sandboxed server may not ask the model"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg, _ := inProcess(t, "srv", server)
			cfg.Protocol, cfg.Trust, cfg.Allowlist = "2025-11-25", tc.trust, &[]string{"think"}
			b := start(t, mcp.Options{Servers: []mcp.Server{cfg}, Sample: tc.sample})
			b.ready(t)
			res, _, err := b.call(t, "srv:think", `{}`)
			if err != nil || !strings.Contains(res.Text, tc.want) {
				t.Errorf("got %+v, %v", res, err)
			}
		})
	}
}
