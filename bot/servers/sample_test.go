package servers_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/cost"
	"github.com/zephbot/zephbot/agent/spend"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/servers"
	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/mcp"
)

// model keeps the request and says one word.
type model struct {
	llm.Provider // no other method is called
	asked        *llm.Request
}

func (m *model) Chat(_ context.Context, req *llm.Request, _ func(string)) (*llm.Response, error) {
	m.asked = req
	return &llm.Response{Text: "yes", Model: "m"}, nil
}

// one is the only question that was asked.
type one bot.Approval

func (o one) ApprovalOf(_ context.Context, session bot.SessionKey, call string) (bot.Approval, error) {
	if session != o.Session || call != o.Call {
		return bot.Approval{}, bot.ErrNotFound
	}
	return bot.Approval(o), nil
}

// free pays for every turn.
func free(string) cost.Payer { return cost.Unlimited{} }

// TestSampler: a server asks the model only within a call that a person has approved, and for so many tokens.
func TestSampler(t *testing.T) {
	t.Parallel()
	approved := one{Session: "s", Call: "c", State: bot.Approved}
	denied := approved
	denied.State = bot.Denied
	for _, tt := range []struct {
		name      string
		approvals servers.Approvals
		call      string
		tokens    int
		want      int // tokens asked for; 0 = refused
	}{
		{"nothing is stored", nil, "c", 5, 0},
		{"another call", approved, "d", 5, 0},
		{"denied", denied, "c", 5, 0},
		{"approved", approved, "c", 5, 5},
		{"more than anybody gets", approved, "c", 1 << 20, 2000},
		{"no bound", approved, "c", 0, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			m := &model{}
			got, err := servers.Sampler{Model: spend.NewModel("sample", m), Approvals: tt.approvals, Payer: free}.Sample(t.Context(), mcp.SampleRequest{
				Origin: tools.Origin{Session: "s"}, Call: tt.call, System: "be short", MaxTokens: tt.tokens,
				Messages: []mcp.SampleMessage{{Role: "user", Text: "a"}, {Role: "assistant", Text: "b"}},
			})
			if tt.want == 0 || m.asked == nil {
				if tt.want != 0 || err == nil || m.asked != nil {
					t.Errorf("answered %v, asked %v", got, m.asked)
				}
				return
			}
			want := &llm.Request{System: "be short", MaxTokens: tt.want, Size: m.asked.Size, Messages: []llm.Message{{Role: llm.User, Text: "a"}, {Role: llm.Assistant, Text: "b"}}}
			if diff := cmp.Diff(want, m.asked); diff != "" || m.asked.Size <= 0 || err != nil || got != (mcp.SampleResult{Text: "yes", Model: "m"}) {
				t.Errorf("%v, %v; asked (-want +got):\n%s", got, err, diff)
			}
		})
	}
}

// broke is a payer whose quota is used up.
type broke struct{ cost.Unlimited }

func (broke) Reserve(context.Context, string, cost.Amount) error {
	return &cost.Denied{Scope: "user", Text: "Used up."}
}

// TestSamplerPays: a server is told that the person's quota is used up, and gets nothing if nobody knows who pays.
func TestSamplerPays(t *testing.T) {
	t.Parallel()
	turns := map[string]cost.Payer{"turn": broke{}, "paid": cost.Unlimited{}}
	for turn, want := range map[string]bool{"turn": false, "paid": true, "": false} {
		m := &model{}
		s := servers.Sampler{Model: spend.NewModel("sample", m), Approvals: one{Session: "s", Call: "c", State: bot.Approved}}
		if turn != "" {
			s.Payer = func(id string) cost.Payer { return turns[id] }
		}
		_, err := s.Sample(t.Context(), mcp.SampleRequest{
			Origin: tools.Origin{Session: "s", Turn: turn}, Call: "c", MaxTokens: 5, Messages: []mcp.SampleMessage{{Role: "user", Text: "a"}},
		})
		refusal, told := errors.AsType[*mcp.SampleRefusal](err)
		if (err == nil) != want || (m.asked != nil) != want || (!want && (!told || !strings.Contains(refusal.Reason, "used up"))) {
			t.Errorf("turn %q: %v, asked %v", turn, err, m.asked != nil)
		}
	}
}
