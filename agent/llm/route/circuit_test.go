package route_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/zephbot/zephbot/agent/llm"
)

// patient is a provider that fails for some conversations.
type patient struct {
	fails map[string]llm.Kind
	asked map[string]int
}

func (p *patient) Name() string { return "main" }

func (p *patient) Chat(_ context.Context, req *llm.Request, _ func(string)) (*llm.Response, error) {
	p.asked[req.Conversation]++
	if kind := p.fails[req.Conversation]; kind != "" {
		return nil, &llm.Error{Kind: kind, Provider: "main", Err: errors.New("broken")}
	}
	return &llm.Response{Text: "fine", Stop: llm.StopEnd}, nil
}

func of(conversation string) *llm.Request {
	req := request()
	req.Conversation = conversation
	return req
}

// TestOneConversation: whatever fails in one conversation or in two, others are answered, and the conversation itself is
// tried a few times.
func TestOneConversation(t *testing.T) {
	t.Parallel()
	for _, kind := range []llm.Kind{llm.Truncated, llm.Timeout, llm.Unavailable, llm.Invalid, llm.TooLong, llm.Oversize} {
		b := newBench()
		b.options.Observe = nil
		p := &patient{fails: map[string]llm.Kind{"poisoned": kind, "another": kind}, asked: map[string]int{}}
		r := b.router(t, p)
		for range 20 { // no answer of others between the failures
			for name := range p.fails {
				if _, err := r.Chat(t.Context(), of(name), nil); err == nil {
					t.Fatalf("%s: answered", kind)
				}
			}
		}
		for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
			if _, err := r.Chat(t.Context(), of(name), nil); err != nil {
				t.Errorf("%s: %s is not answered: %v", kind, name, err)
			}
		}
		if most := 6; p.asked["poisoned"] > most && kind != llm.Invalid && kind != llm.TooLong && kind != llm.Oversize {
			t.Errorf("%s: the provider was asked %d times for one conversation", kind, p.asked["poisoned"])
		}
	}
}

// TestOutage: different conversations fail, so nobody is sent to the provider any more, and the first one that tries again is
// another one than the last that failed.
func TestOutage(t *testing.T) {
	t.Parallel()
	b := newBench()
	b.options.Observe, b.options.Attempts = nil, 1
	p := &patient{fails: map[string]llm.Kind{"": "", "a": llm.Unavailable, "b": llm.Unavailable, "c": llm.Unavailable}, asked: map[string]int{}}
	r := b.router(t, p)
	chat := func(name string) error {
		_, err := r.Chat(t.Context(), of(name), nil)
		return err
	}
	for _, name := range []string{"a", "b", "a", "b", "c"} {
		if chat(name) == nil {
			t.Fatal("answered")
		}
	}
	if err := chat("d"); err == nil || p.asked["d"] != 0 {
		t.Fatalf("d is sent to a provider that is down: %v", err)
	}
	if err := b.clock.sleep(t.Context(), 30*time.Second); err != nil {
		t.Fatal(err)
	}
	if chat("c") == nil || p.asked["c"] != 1 {
		t.Error("the one whose failure came last is the first to try")
	}
	if err := chat("d"); err != nil || p.asked["d"] != 1 {
		t.Errorf("d does not try: %v", err)
	}
	delete(p.fails, "c")
	if err := chat("c"); err != nil {
		t.Errorf("c is not answered although the provider works: %v", err)
	}
}

// TestOutageOfOne: if nobody else is waiting, the one whose failure came last tries again after the pause.
func TestOutageOfOne(t *testing.T) {
	t.Parallel()
	b := newBench()
	b.options.Observe, b.options.Attempts = nil, 1
	p := &patient{fails: map[string]llm.Kind{"a": llm.Unavailable}, asked: map[string]int{}}
	r := b.router(t, p)
	for range 9 {
		_, _ = r.Chat(t.Context(), of("a"), nil)
	}
	if p.asked["a"] != 5 {
		t.Errorf("asked %d times", p.asked["a"])
	}
	if err := b.clock.sleep(t.Context(), 30*time.Second); err != nil {
		t.Fatal(err)
	}
	delete(p.fails, "a")
	if _, err := r.Chat(t.Context(), of("a"), nil); err != nil {
		t.Error(err)
	}
}

// TestCauseOfPause: a pause because of the key, the account or the model is said to be that.
func TestCauseOfPause(t *testing.T) {
	t.Parallel()
	for _, kind := range []llm.Kind{llm.Unauthorized, llm.NoCredit, llm.UnknownModel, llm.Region, llm.WrongAddress} {
		b := newBench()
		b.options.Observe = nil
		r := b.router(t, &patient{fails: map[string]llm.Kind{"a": kind}, asked: map[string]int{}})
		for range 9 {
			if _, err := r.Chat(t.Context(), of("a"), nil); llm.KindOf(err) != kind {
				t.Errorf("%s: %v", kind, err)
			}
		}
	}
}

// TestPauseSaysItsOwnCause: a conversation that rests alone hears what failed for it, not what failed for another one since,
// and after the pause the provider is asked anew.
func TestPauseSaysItsOwnCause(t *testing.T) {
	t.Parallel()
	b := newBench()
	b.options.Observe, b.options.Attempts = nil, 1
	p := &patient{fails: map[string]llm.Kind{"a": llm.Timeout, "b": llm.Unauthorized}, asked: map[string]int{}}
	r := b.router(t, p)
	for range 5 {
		_, _ = r.Chat(t.Context(), of("a"), nil)
	}
	_, _ = r.Chat(t.Context(), of("b"), nil)
	_, err := r.Chat(t.Context(), of("a"), nil)
	if llm.KindOf(err) != llm.Unavailable || !strings.Contains(err.Error(), "paused until 03:04:35 UTC") || !strings.Contains(err.Error(), "because") || p.asked["a"] != 5 {
		t.Errorf("%v, asked %d times", err, p.asked["a"])
	}
	if err := b.clock.sleep(t.Context(), 30*time.Second); err != nil {
		t.Fatal(err)
	}
	p.fails = nil
	if _, err := r.Chat(t.Context(), of("a"), nil); err != nil {
		t.Error(err)
	}
}
