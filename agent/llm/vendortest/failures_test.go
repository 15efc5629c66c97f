package vendortest_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/openai"
	"github.com/zephbot/zephbot/agent/llm/vendortest"
)

// TestFailures: what every server says about keys, accounts, models and load is understood, in its own words.
func TestFailures(t *testing.T) {
	t.Parallel()
	busy := []llm.Kind{llm.RateLimited, llm.Unavailable} // both are waited for
	want := map[string][]llm.Kind{
		"key": {llm.Unauthorized}, "credit": {llm.NoCredit}, "model": {llm.UnknownModel}, "rate": busy, "overload": busy, "in flight": busy,
		"spend": {llm.NoCredit}, "billing": {llm.NoCredit}, "key limit": {llm.NoCredit}, "day": {llm.NoCredit}, "quota": {llm.NoCredit}, "region": {llm.Region},
		"forbidden model": {llm.Unauthorized, llm.UnknownModel}, "broken off": {llm.RateLimited, llm.Unavailable, llm.Truncated},
	}
	for _, vendor := range vendortest.Vendors() {
		t.Run(vendor, func(t *testing.T) {
			t.Parallel()
			s := serve(t, vendortest.Options{Vendor: vendor})
			for _, kind := range s.Failures() {
				class, _, _ := strings.Cut(kind, ":")
				declined := class == "content" || class == "moderation" // an answer: the model, or who guards it, says no
				if len(want[class]) == 0 && !declined {
					continue
				}
				if err := s.Fail(kind); err != nil {
					t.Fatal(err)
				}
				before := len(s.Exchanges())
				res, err := provider(t, s, true).Chat(t.Context(), &llm.Request{Messages: []llm.Message{{Role: llm.User, Text: "hello"}}}, nil)
				if declined {
					if err != nil || res.Stop != llm.StopRefusal {
						t.Errorf("%s: %+v %v", kind, res, err)
					}
					continue
				}
				if got := llm.KindOf(err); err == nil || !slices.Contains(want[class], got) {
					t.Errorf("%s is taken for %q: %v", kind, got, err)
				}
				if n := len(s.Exchanges()) - before; n != 1 {
					t.Errorf("%s: %d requests", kind, n)
				}
			}
		})
	}
}

// TestWaits: how long to wait is read wherever a server says it.
func TestWaits(t *testing.T) {
	t.Parallel()
	s := serve(t, vendortest.Options{Vendor: "gemini"})
	if err := s.Fail("rate"); err != nil {
		t.Fatal(err)
	}
	_, err := provider(t, s, true).Chat(t.Context(), &llm.Request{Messages: []llm.Message{{Role: llm.User, Text: "hello"}}}, nil)
	e, ok := errors.AsType[*llm.Error](err)
	if !ok || e.RetryAfter != 37*time.Second {
		t.Errorf("%v", err)
	}
}

// TestFilledWindow: an empty answer that ends "at its limit" because the request has filled the window is an overflow on
// both of OpenAI's APIs, and one that was stopped by its own limit is none.
func TestFilledWindow(t *testing.T) {
	t.Parallel()
	const chat = "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"},\"finish_reason\":null}]}\n\n" +
		"data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"length\"}]}\n\n" +
		"data: {\"choices\":[],\"usage\":{\"prompt_tokens\":8190,\"completion_tokens\":%d,\"total_tokens\":%[2]d}}\n\ndata: [DONE]\n\n"
	const responses = "event: response.created\ndata: {\"type\":\"response.created\",\"response\":{\"id\":\"resp_1\",\"status\":\"in_progress\",\"output\":[]}}\n\n" +
		"event: response.incomplete\ndata: {\"type\":\"response.incomplete\",\"response\":{\"id\":\"resp_1\",\"status\":\"incomplete\",\"incomplete_details\":{\"reason\":\"max_output_tokens\"},\"output\":[],\"usage\":{\"input_tokens\":8190,\"output_tokens\":%d,\"total_tokens\":%[2]d}}}\n\n"
	for wire, stream := range map[string]string{"chat": chat, "responses": responses} {
		for written, long := range map[int]bool{2: true, 1024: false} {
			t.Run(fmt.Sprint(wire, " ", written), func(t *testing.T) {
				t.Parallel()
				s := serve(t, vendortest.Options{Vendor: "xai"})
				s.Say(vendortest.Raw{Status: http.StatusOK, Header: map[string]string{"Content-Type": "text/event-stream"}, Body: fmt.Sprintf(stream, written, 8190+written)})
				p, err := openai.New(openai.Options{Name: "main", BaseURL: s.URL(), Key: openai.Key(s.Key()), Model: s.Name(), MaxTokens: 1024, Wire: wire})
				if err != nil {
					t.Fatal(err)
				}
				_, err = p.Chat(t.Context(), &llm.Request{Messages: []llm.Message{{Role: llm.User, Text: "hello"}}}, nil)
				e, ok := errors.AsType[*llm.Error](err)
				if long != (ok && e.Kind == llm.TooLong) || long && (e.Size != 8190 || e.Window != 8192) {
					t.Errorf("%v", err)
				}
			})
		}
	}
}
