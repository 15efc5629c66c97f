package route_test

import (
	stdcmp "cmp"
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
	count float64 // how many tokens it counts where we count one, if it says so; 0 = it does not say
	err   llm.Error
	asked []int
}

func (n *narrow) Name() string { return n.name }

func (n *narrow) Chat(_ context.Context, req *llm.Request, _ func(string)) (*llm.Response, error) {
	n.asked = append(n.asked, len(req.Messages))
	if len(req.Messages) > n.takes {
		e := n.err
		e.Kind, e.Provider, e.Err = stdcmp.Or(e.Kind, llm.TooLong), n.name, errors.New("too long")
		if n.says {
			e.Window = n.takes * 1000
		}
		if n.count > 0 {
			e.Window, e.Size = int(float64(e.Window)*n.count), int(float64(len(req.Messages))*1000*n.count)
		}
		return nil, &e
	}
	return &llm.Response{Text: strings.Repeat("x", len(req.Messages)), Stop: llm.StopEnd}, nil
}

// long is a request of 100 messages that can be shortened to four.
func long() *llm.Request {
	all := make([]llm.Message, 100)
	return &llm.Request{Messages: all, Window: 128_000, Size: 100_000, Smaller: func(window int) ([]llm.Message, int, bool) {
		n := max(min(100, window/1000), 4)
		return all[:n], n * 1000, n*1000 <= window
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
		{name: "does not say", main: &narrow{takes: 50}, first: []int{100, 75, 50}, again: 75, text: 50, remembers: 75_000},
		{name: "says how many it counts", main: &narrow{takes: 30, says: true, count: 1.5}, first: []int{100, 30}, again: 30, text: 30, remembers: 30_000},
		{name: "counts fewer than we", main: &narrow{takes: 30, says: true, count: 0.5}, first: []int{100, 15}, again: 15, text: 15, remembers: 15_000},
		{name: "names a budget", main: &narrow{takes: 30, says: true, err: llm.Error{Budget: true}}, first: []int{100, 30}, again: 30, text: 30, remembers: 30_000},
		{name: "named wrong", main: &narrow{takes: 10, err: llm.Error{Window: 30_000}}, first: []int{100, 30, 22, 15, 7}, again: 15, text: 7, remembers: 15_000},
		{name: "not understood", main: &narrow{takes: 80, err: llm.Error{Kind: llm.Invalid, Unexplained: true}}, first: []int{100, 75}, again: 100, text: 75, remembers: 100_000},
		{name: "not understood twice", main: &narrow{takes: 50, err: llm.Error{Kind: llm.Invalid, Unexplained: true}}, first: []int{100, 75}, kind: llm.Invalid},
		{name: "invalid", main: &narrow{takes: 80, err: llm.Error{Kind: llm.Invalid}}, first: []int{100}, kind: llm.Invalid},
		{name: "still too long", main: &narrow{takes: 5}, back: &narrow{takes: 100}, first: []int{100, 75, 50, 25, 12, 100}, again: 12, text: 100, remembers: 12_000},
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

// strict is a provider that counts the longest answer as part of the request, as many servers do.
type strict struct{ window, answer, asked int }

func (s *strict) Name() string { return "main" }

func (s *strict) Chat(_ context.Context, req *llm.Request, _ func(string)) (*llm.Response, error) {
	s.asked++
	most := stdcmp.Or(req.MaxTokens, s.answer)
	if size := len(req.Messages)*1000 + most; size > s.window {
		return nil, &llm.Error{Kind: llm.TooLong, Provider: "main", Window: s.window, Size: size, Err: errors.New("too long")}
	}
	return &llm.Response{Text: "fine", Stop: llm.StopEnd}, nil
}

// TestRoomForTheAnswer: where the longest answer does not fit beside the conversation, it is shortened, and what was learnt
// is reported once.
func TestRoomForTheAnswer(t *testing.T) {
	t.Parallel()
	b := newBench()
	learnt := map[string]int{}
	b.options.Answers = map[string]int{"main": 4096}
	b.options.Learn = func(provider string, window int) { learnt[provider] = window }
	s := &strict{window: 8192, answer: 4096}
	r := b.router(t, s)
	for i, want := range []int{2, 1, 1} {
		req := long()
		req.Messages, req.Size = req.Messages[:5], 5000
		req.Smaller = func(window int) ([]llm.Message, int, bool) {
			n := max(1, min(5, window*4/5/1000))
			return req.Messages[:n], n * 1000, true
		}
		s.asked = 0
		if _, err := r.Chat(t.Context(), req, nil); err != nil || s.asked != want {
			t.Errorf("call %d: asked %d times, %v", i, s.asked, err)
		}
	}
	if len(learnt) != 1 || learnt["main"] != 8192 {
		t.Errorf("learnt %v", learnt)
	}
}

// TestLearntElsewhere: a window that another process has learnt holds for the next request.
func TestLearntElsewhere(t *testing.T) {
	t.Parallel()
	b := newBench()
	known := 0
	b.options.Learnt = func(string) int { return known }
	n := &narrow{name: "main", takes: 30, says: true}
	r := b.router(t, n)
	known = 30_000
	if got := r.WindowFor(""); got != 30_000 {
		t.Errorf("window %d", got)
	}
	if _, err := r.Chat(t.Context(), long(), nil); err != nil || len(n.asked) != 1 {
		t.Errorf("asked with %v, %v", n.asked, err)
	}
}

// poor is a provider whose account can pay for short answers only.
type poor struct{ pays, asked int }

func (p *poor) Name() string { return "main" }

func (p *poor) Chat(_ context.Context, req *llm.Request, _ func(string)) (*llm.Response, error) {
	if p.asked++; req.MaxTokens == 0 || req.MaxTokens > p.pays {
		return nil, &llm.Error{Kind: llm.NoCredit, Provider: "main", Answer: p.pays, Err: errors.New("can only afford less")}
	}
	return &llm.Response{Text: "fine", Stop: llm.StopEnd}, nil
}

// TestAffordableAnswer: where the account can pay for a shorter answer, that is asked for, once; where it cannot pay for a
// useful one, nothing more is asked.
func TestAffordableAnswer(t *testing.T) {
	t.Parallel()
	for pays, want := range map[int]int{900: 2, 20: 1, 0: 1} {
		p := &poor{pays: pays}
		_, err := newBench().router(t, p).Chat(t.Context(), long(), nil)
		if p.asked != want || (err == nil) != (want == 2) {
			t.Errorf("pays for %d: asked %d times, %v", pays, p.asked, err)
		}
	}
}

// silent is a provider that answers requests of more than so many tokens with nothing.
type silent struct{ takes, asked int }

func (s *silent) Name() string { return "main" }

func (s *silent) Chat(_ context.Context, req *llm.Request, _ func(string)) (*llm.Response, error) {
	s.asked++
	if req.Size <= s.takes {
		return &llm.Response{Text: "fits", Stop: llm.StopEnd}, nil
	}
	return nil, &llm.Error{Kind: llm.Truncated, Unexplained: true, Err: errors.New("empty")}
}

// TestEmptyAnswer: an answer that ends before it begins may mean that the request is too long (LM Studio, 2026-08). It is
// shortened once before it is retried; what cannot be shortened is retried as it is.
func TestEmptyAnswer(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		fits bool // a shorter one is answered
		size int
		want int // requests
	}{
		{"shorter", true, 9000, 2},
		{"not because of its length", false, 9000, 4},
		{"small", false, 900, 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := newBench()
			p := &silent{takes: -1}
			if tt.fits {
				p.takes = tt.size - 1
			}
			req := request()
			req.Size, req.Window = tt.size, 2*tt.size
			req.Smaller = func(window int) ([]llm.Message, int, bool) { return req.Messages, window / 2, true }
			res, err := b.router(t, p).Chat(t.Context(), req, nil)
			if (err == nil) != tt.fits || tt.fits && res.Text != "fits" || p.asked != tt.want {
				t.Errorf("%v, %v after %d requests, want %d", res, err, p.asked, tt.want)
			}
		})
	}
}

// mute answers larger requests with nothing, as a whole answer.
type mute struct{ asked []int }

func (*mute) Name() string { return "main" }

func (m *mute) Chat(_ context.Context, req *llm.Request, _ func(string)) (*llm.Response, error) {
	m.asked = append(m.asked, req.Size)
	res := &llm.Response{Stop: llm.StopEnd, Usage: llm.Usage{Input: req.Size}}
	if req.Size < 9000 {
		res.Text = "fits"
	}
	return res, nil
}

// TestAnsweredWithNothing: an empty answer is an answer, unless it is the second one: then a shorter request is tried once,
// and what it cost to find that out is counted.
func TestAnsweredWithNothing(t *testing.T) {
	t.Parallel()
	b := newBench()
	p := &mute{}
	r := b.router(t, p)
	req := request()
	req.Size, req.Window = 9000, 18_000
	req.Smaller = func(window int) ([]llm.Message, int, bool) { return req.Messages, window / 2, true }
	if res, err := r.Chat(t.Context(), req, nil); err != nil || res.Text != "" || len(p.asked) != 1 || r.WindowFor("") != 0 {
		t.Errorf("first: %+v, %v, asked %v", res, err, p.asked)
	}
	req.Again = true
	res, err := r.Chat(t.Context(), req, nil)
	if err != nil || res.Text != "fits" || len(p.asked) != 3 || res.Usage.Input != p.asked[1]+p.asked[2] || r.WindowFor("") != 9000 {
		t.Errorf("again: %+v, %v, asked %v, window %d", res, err, p.asked, r.WindowFor(""))
	}
}
