// Package cost knows what calls of models cost and who pays for them. The payer comes with the context (WithPayer), and
// agent/spend asks it before each call.
//
// What models cost and how long their windows are, where the configuration does not say it, is known from two tables.
// table.jsonl is made of the open tables genai-prices and catwalk (table.LICENSE; `.ci/prices`
// renews it) and is matched as the owner of the former does. own.jsonl has what those do not know yet. A row of the
// vendored table that names exactly the model that is asked for comes first, then one of our own, then the rules of the
// vendored one. What no row says is unknown, and never 0.
//
// The tables are read for each question and not kept: a service asks once for each of its providers, when it starts.
package cost

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/zephbot/zephbot/agent/llm"
)

// Tariff is what the tokens of a model cost. The zero Tariff is one of a model that costs nothing. It can be shared.
type Tariff struct {
	rates []Rate // in the order of the table: the last one that applies at a moment holds
}

// FixedTariff is a tariff of prices of a million tokens, in USD: of those that the model reads, reads from the vendor's
// cache, is charged for writing into that cache, and writes.
func FixedTariff(input, cached, written, output float64) Tariff {
	return Tariff{rates: []Rate{{
		Input:   flatSteps(input),
		Cached:  flatSteps(cached),
		Written: flatSteps(written),
		Output:  flatSteps(output),
	}}}
}

// Rate are prices of a time, in USD for a million tokens, or for a minute of a recording or a request. A nil price is
// not said.
type Rate struct {
	Input   *Steps // read by the model
	Cached  *Steps // read from the vendor's cache; nil = as Input
	Written *Steps // written into it; nil = as Input
	Output  *Steps // written, thinking included
	Minute  *Steps // of a recording that is written down
	Spoken  *Steps // a million characters of a text that is spoken
	Picture *Steps // a picture that is made, by its pixels
	Request float64

	from         time.Time     // zero = always
	begins, ends time.Duration // of each day in UTC; equal = the whole day
}

// Steps is a price that depends on how many tokens are read.
type Steps struct {
	base  float64
	above []step // by size
}

// step is the price if more than so many tokens are read.
type step struct {
	tokens int
	usd    float64
}

// flatSteps is a price that is the same for every request.
func flatSteps(usd float64) *Steps { return &Steps{base: usd} }

// For returns the price if a request has so many tokens of input.
func (s *Steps) For(input int) float64 {
	usd := s.base
	for _, above := range s.above {
		if input > above.tokens {
			usd = above.usd
		}
	}
	return usd
}

// At returns the prices at a moment; the first ones of the table if none is said to hold then.
func (t *Tariff) At(now time.Time) Rate {
	if len(t.rates) == 0 {
		return Rate{}
	}
	for i := len(t.rates) - 1; i >= 0; i-- {
		if t.rates[i].holdsAt(now) {
			return t.rates[i]
		}
	}
	return t.rates[0]
}

func (r *Rate) holdsAt(now time.Time) bool {
	if now.Before(r.from) {
		return false
	}
	if r.begins == r.ends {
		return true
	}
	now = now.UTC()
	clock := now.Sub(time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, time.UTC))
	if r.ends < r.begins {
		return clock >= r.begins || clock < r.ends
	}
	return clock >= r.begins && clock < r.ends
}

// Cost is what an answer costs at a moment, in USD. Of u.Input, written tokens were charged for writing them into the
// vendor's cache. A server that reports more cached or written tokens than read ones is not believed.
func (t *Tariff) Cost(now time.Time, u llm.Usage, written int) float64 {
	r := t.At(now)
	cached := min(max(u.CachedInput, 0), u.Input)
	written = min(max(written, 0), u.Input-cached)
	input := float64(u.Input-cached-written)*r.Input.orElse(nil, u.Input) +
		float64(cached)*r.Cached.orElse(r.Input, u.Input) + float64(written)*r.Written.orElse(r.Input, u.Input)
	return (input+float64(u.Output)*r.Output.orElse(nil, u.Input))/1e6 + r.Request
}

// orElse returns the price, or another one where it is not said.
func (s *Steps) orElse(other *Steps, input int) float64 {
	switch {
	case s != nil:
		return s.For(input)
	case other != nil:
		return other.For(input)
	default:
		return 0
	}
}

// Most is the most that an answer costs, whenever it is given and whatever of its input is cached, in USD.
func (t *Tariff) Most(u llm.Usage) float64 {
	var most float64
	for i := range t.rates {
		r := &t.rates[i]
		input := max(r.Input.orElse(nil, u.Input), r.Cached.orElse(nil, u.Input), r.Written.orElse(nil, u.Input))
		most = max(most, (float64(u.Input)*input+float64(u.Output)*r.Output.orElse(nil, u.Input))/1e6+r.Request)
	}
	return most
}

// Highest are the most that a million tokens cost, of those that are read, read from the cache and written: for people,
// who are told one price of each.
func (t *Tariff) Highest() (input, cached, output float64) {
	for i := range t.rates {
		r := &t.rates[i]
		input = max(input, r.Input.orElse(nil, math.MaxInt))
		cached = max(cached, r.Cached.orElse(r.Input, math.MaxInt))
		output = max(output, r.Output.orElse(nil, math.MaxInt))
	}
	return input, cached, output
}

// Free reports whether nothing has a price.
func (t *Tariff) Free() bool {
	return !slices.ContainsFunc(t.rates, func(r Rate) bool {
		for _, s := range []*Steps{r.Input, r.Cached, r.Written, r.Output, r.Minute, r.Spoken, r.Picture} {
			if s.orElse(nil, math.MaxInt) > 0 || s.orElse(nil, 0) > 0 {
				return true
			}
		}
		return r.Request > 0
	})
}

// Sizes are what is known of the window of a model, in tokens; 0 = unknown.
type Sizes struct {
	Window int // the answer included
	Output int // the longest answer
}

// TariffOf returns what a model costs at the server of an address, by the names that they have there. The address of an
// unknown server may be anything: then the model is looked for by its name alone. ok is false when nobody knows the
// price, also of a name that only resembles a known one.
func TariffOf(base, model string) (t Tariff, ok bool) {
	found := tariffs.of(modelAt{base, model}, func() *Tariff {
		r := findRow(base, model, func(r *row) bool {
			return r.hasRate(func(p *ratesJSON) bool { return p.In != nil && p.Out != nil })
		})
		if t, ok := r.readTariff(); ok {
			return &t
		}
		return nil
	})
	if found == nil {
		return Tariff{}, false
	}
	return *found, true
}

// TranscriptionPrice returns the price of a minute of a recording at a moment, as Of does.
func TranscriptionPrice(base, model string, now time.Time) (usd float64, ok bool) {
	t, ok := findRow(base, model, func(r *row) bool {
		return r.hasRate(func(p *ratesJSON) bool { return p.Minute != nil || p.AudioHour != nil })
	}).readTariff()
	rate := t.At(now)
	if !ok || rate.Minute == nil {
		return 0, false
	}
	return rate.Minute.For(0), true
}

// SpeechPrice returns the price of a million characters that are spoken at a moment, as Of does.
func SpeechPrice(base, model string, now time.Time) (usd float64, ok bool) {
	t, ok := findRow(base, model, func(r *row) bool {
		return r.hasRate(func(p *ratesJSON) bool { return p.Chars != nil })
	}).readTariff()
	rate := t.At(now)
	if !ok || rate.Spoken == nil {
		return 0, false
	}
	return rate.Spoken.For(0), true
}

// PicturePrice returns the price of a picture by its pixels at a moment, as Of does.
func PicturePrice(base, model string, now time.Time) (each *Steps, ok bool) {
	t, ok := findRow(base, model, func(r *row) bool {
		return r.hasRate(func(p *ratesJSON) bool { return p.Image != nil })
	}).readTariff()
	rate := t.At(now)
	return rate.Picture, ok && rate.Picture != nil
}

// FlatPrice is a price that is the same whatever the size.
func FlatPrice(usd float64) *Steps { return flatSteps(usd) }

// EmbeddingPrice returns the price of a million tokens of texts that are embedded at a moment, as Of does.
func EmbeddingPrice(base, model string, now time.Time) (usd float64, ok bool) {
	t, ok := findRow(base, model, func(r *row) bool {
		return r.hasRate(func(p *ratesJSON) bool { return p.In != nil })
	}).readTariff()
	rate := t.At(now)
	if !ok || rate.Input == nil {
		return 0, false
	}
	return rate.Input.For(0), true
}

// SizesOf returns the window and the longest answer of a model, as Of does.
func SizesOf(base, model string) Sizes {
	return sizes.of(modelAt{base, model}, func() (s Sizes) {
		if r := findRow(base, model, func(r *row) bool { return r.Window > 0 }); r != nil {
			s.Window = r.Window
		}
		if r := findRow(base, model, func(r *row) bool { return r.Output > 0 }); r != nil {
			s.Output = r.Output
		}
		return s
	})
}

// PricesAsOf names the tables and when they were made, for people.
func PricesAsOf() string {
	b, err := openTables()
	if err != nil {
		return "unreadable tables"
	}
	var list []string
	for _, s := range b.sources {
		list = append(list, s.Source+" of "+s.Date)
	}
	return strings.Join(list, ", ")
}

// findRow returns the row that has what is wanted of a model; nil = there is none.
func findRow(base, model string, wanted func(*row) bool) *row {
	b, err := openTables()
	if err != nil {
		return nil // TestTables fails with it
	}
	p := b.providerOf(base, model)
	if p == nil {
		return nil
	}
	r, err := b.findModel(p, model, wanted)
	if err != nil {
		return nil
	}
	return r
}

// hasRate reports whether all prices of a row have something.
func (r *row) hasRate(has func(*ratesJSON) bool) bool {
	if len(r.Prices) == 0 {
		return false
	}
	for i := range r.Prices {
		if !has(&r.Prices[i]) {
			return false
		}
	}
	return true
}

func (r *row) readTariff() (t Tariff, ok bool) {
	if r == nil {
		return t, false
	}
	for i := range r.Prices {
		rate, err := r.Prices[i].readRate()
		if err != nil {
			return Tariff{}, false
		}
		t.rates = append(t.rates, rate)
	}
	return t, len(t.rates) > 0
}
