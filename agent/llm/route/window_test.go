package route_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/agent/llm"
)

// narrow is a provider that takes requests of at most so many messages, which count as 1000 tokens each, and says so.
type narrow struct {
	name  string
	takes int
	says  bool
	asked []int
}

func (n *narrow) Name() string { return n.name }

func (n *narrow) Chat(_ context.Context, req *llm.Request, _ func(string)) (*llm.Response, error) {
	n.asked = append(n.asked, len(req.Messages))
	if len(req.Messages) > n.takes {
		e := &llm.Error{Kind: llm.TooLong, Provider: n.name, Err: errors.New("too long")}
		if n.says {
			e.Window = n.takes * 1000
		}
		return nil, e
	}
	return &llm.Response{Text: strings.Repeat("x", len(req.Messages)), Stop: llm.StopEnd}, nil
}

// long is a request of 100 messages that can be shortened to four.
func long() *llm.Request {
	all := make([]llm.Message, 100)
	return &llm.Request{Messages: all, Window: 128_000, Smaller: func(window int) ([]llm.Message, bool) {
		n := min(100, window/1000)
		return all[:n], n >= 4
	}}
}

func TestSmallerWindows(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name       string
		main, back *narrow
		windows    map[string]int
		first      []int // messages that main and then back are asked with
		again      int   // in the next call of main
		text       int
		kind       llm.Kind
		remembers  int
	}{
		{name: "fits", main: &narrow{takes: 100}, first: []int{100}, again: 100, text: 100},
		{name: "configured", main: &narrow{takes: 20}, windows: map[string]int{"main": 20_000}, first: []int{20}, again: 20, text: 20, remembers: 20_000},
		{name: "larger than the request", main: &narrow{takes: 200}, windows: map[string]int{"main": 200_000}, first: []int{100}, again: 100, text: 100, remembers: 200_000},
		{name: "says so", main: &narrow{takes: 30, says: true}, first: []int{100, 30}, again: 30, text: 30, remembers: 30_000},
		{name: "does not say", main: &narrow{takes: 50}, first: []int{100, 76, 46}, again: 46, text: 46, remembers: 46_080},
		{name: "still too long", main: &narrow{takes: 5}, back: &narrow{takes: 100}, first: []int{100, 76, 46, 100}, again: 46, text: 100, remembers: 46_080},
		{name: "never", main: &narrow{takes: 2, says: true}, first: []int{100}, kind: llm.TooLong, remembers: 2000},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := newBench()
			b.options.Windows = tt.windows
			tt.main.name = "main"
			providers := []llm.Provider{tt.main}
			if tt.back != nil {
				tt.back.name = "back"
				providers = append(providers, tt.back)
			}
			r := b.router(t, providers...)
			resp, err := r.Chat(t.Context(), long(), nil)
			asked := tt.main.asked
			if tt.back != nil {
				asked = append(asked, tt.back.asked...)
			}
			if diff := cmp.Diff(tt.first, asked); diff != "" {
				t.Errorf("asked (-want +got):\n%s", diff)
			}
			if tt.kind != "" {
				if llm.KindOf(err) != tt.kind || err == nil {
					t.Errorf("error %v", err)
				}
			} else if err != nil || len(resp.Text) != tt.text {
				t.Fatalf("%+v, %v", resp, err)
			}
			if got := r.WindowFor(""); got != tt.remembers {
				t.Errorf("it remembers %d, want %d", got, tt.remembers)
			}
			if tt.again == 0 {
				return
			}
			tt.main.asked = nil
			if _, err := r.Chat(t.Context(), long(), nil); err != nil || tt.main.asked[0] != tt.again {
				t.Errorf("again: asked with %v, %v", tt.main.asked, err)
			}
		})
	}
	// A request that cannot be shortened is not sent to another provider.
	b := newBench()
	main, back := &narrow{name: "main", takes: 1}, &narrow{name: "back", takes: 200}
	req := long()
	req.Smaller = nil
	if _, err := b.router(t, main, back).Chat(t.Context(), req, nil); llm.KindOf(err) != llm.TooLong || len(back.asked) != 0 {
		t.Errorf("error %v, back asked %v", err, back.asked)
	}
}
