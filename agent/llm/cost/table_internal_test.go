package cost

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/zephbot/zephbot/agent/llm"
)

// TestTables: every line is read, every expression compiles, and every price makes sense.
func TestTables(t *testing.T) {
	t.Parallel()
	b, err := openTables()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range b.sources {
		if _, err := time.Parse(time.DateOnly, s.Date); err != nil || s.Version == "" {
			t.Errorf("source %s has no date or version: %v", s.Source, err)
		}
	}
	models := 0
	for _, p := range b.providers {
		if _, err := regexp.Compile(p.API); err != nil {
			t.Errorf("%s: %v", p.Provider, err)
		}
		checkRule(t, p.Provider, p.Names)
		for _, id := range p.Also {
			if b.providerNamed(id) == nil {
				t.Errorf("%s has the models of %s, which is no provider", p.Provider, id)
			}
		}
		for _, list := range []*struct {
			rows func(func(*row) bool) (*row, error)
		}{{p.vendored.firstRow}, {p.own.firstRow}} {
			if _, err := list.rows(func(r *row) bool {
				models++
				checkRule(t, r.Model, r.Match)
				for i := range r.Prices {
					rate, err := r.Prices[i].readRate()
					if err != nil {
						t.Errorf("%s: %v", r.Model, err)
					}
					for _, s := range []*Steps{rate.Input, rate.Cached, rate.Written, rate.Output, rate.Minute} {
						if price := s.orElse(nil, math.MaxInt); price < 0 || price > 1e5 {
							t.Errorf("%s costs %v", r.Model, price)
						}
					}
				}
				if r.Window < 0 || r.Window > 1e8 || r.Output < 0 || (r.Match == nil && r.Model != strings.ToLower(r.Model)) {
					t.Errorf("%s: window %d, answer %d", r.Model, r.Window, r.Output)
				}
				return false
			}); err != nil {
				t.Error(err)
			}
		}
	}
	if models < 1000 || len(b.providers) < 30 {
		t.Errorf("%d models of %d providers", models, len(b.providers))
	}
}

func checkRule(t *testing.T, of string, r *rule) {
	t.Helper()
	if r == nil {
		return
	}
	for i := range r.Or {
		checkRule(t, of, &r.Or[i])
	}
	for i := range r.And {
		checkRule(t, of, &r.And[i])
	}
	checkRule(t, of, r.Not)
	if _, err := regexp.Compile(r.Regex); err != nil {
		t.Errorf("%s: %v", of, err)
	}
	if len(r.Or)+len(r.And) == 0 && r.Not == nil && r.Equals+r.StartsWith+r.EndsWith+r.Contains+r.Regex == "" {
		t.Errorf("%s: a rule without content", of)
	}
}

// TestOwner: a model that the owner of the vendored table finds is found, and costs the same. Another row may only be
// taken if it names exactly this model.
func TestOwner(t *testing.T) {
	t.Parallel()
	b, err := openTables()
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile("testdata/owner.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	compared := 0
	for line := range bytes.SplitSeq(bytes.TrimSpace(raw), []byte("\n")) {
		var want struct {
			provider, name, model string
			usd                   float64
		}
		fields := []any{&want.provider, &want.name, &want.model, &want.usd}
		if err := json.Unmarshal(line, &fields); err != nil {
			t.Fatal(err)
		}
		if want.model == "" || want.usd == 0 {
			continue // what costs nothing, or is paid by the page
		}
		got, err := b.findModel(b.providerNamed(want.provider), want.name, func(r *row) bool { return len(r.Prices) > 0 })
		if err != nil || got == nil {
			t.Errorf("%s of %s is not found: %v", want.name, want.provider, err)
			continue
		}
		if got.Model != want.model {
			if !strings.HasPrefix(strings.ToLower(want.name), strings.ToLower(got.Model)) {
				t.Errorf("%s of %s is taken for %s, the owner takes it for %s", want.name, want.provider, got.Model, want.model)
			}
			continue
		}
		tariff, ok := got.readTariff()
		usd := tariff.Cost(at, llm.Usage{Input: 300_000, CachedInput: 1000, Output: 5000}, 0)
		if !ok || math.Abs(usd-want.usd) > want.usd*1e-6 {
			t.Errorf("%s of %s costs %v, the owner says %v", want.name, want.provider, usd, want.usd)
		}
		compared++
	}
	if compared < 300 {
		t.Errorf("only %d models were compared", compared)
	}
}

// TestClock: prices of a time of the day hold in that time, also over midnight.
func TestClock(t *testing.T) {
	t.Parallel()
	var p []ratesJSON
	if err := json.Unmarshal([]byte(`[{"in":4,"out":4},{"begins":"22:00:00Z","ends":"06:00:00Z","in":1,"out":1},{"from":"2027-01-01","in":9,"out":9}]`), &p); err != nil {
		t.Fatal(err)
	}
	tariff, ok := (&row{Prices: p}).readTariff()
	if !ok {
		t.Fatal("not read")
	}
	for text, want := range map[string]float64{
		"2026-11-01T21:59:59Z": 4, "2026-11-01T22:00:00Z": 1, "2026-11-02T05:59:59Z": 1, "2026-11-02T06:00:00Z": 4,
		"2026-11-02T00:30:00+02:00": 1, "2027-01-01T12:00:00Z": 9,
	} {
		at, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t.Fatal(err)
		}
		rate := tariff.At(at)
		if got := rate.Input.For(1); got != want {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
}

// FuzzOf: a name is text from a configuration or a server.
func FuzzOf(f *testing.F) {
	for _, name := range []string{"gpt-4o", "openai/gpt-4o-2024-08-06", "-latest", "/", "\xff"} {
		f.Add("https://api.openai.com/v1", name)
	}
	f.Fuzz(func(t *testing.T, base, name string) {
		if tariff, ok := TariffOf(base, name); ok && tariff.Most(llm.Usage{Input: 1000, Output: 1000}) < 0 {
			t.Errorf("%q at %q costs less than nothing", name, base)
		}
	})
}
