// Package price knows what well-known models cost, for providers whose configuration names no price.
package price

import (
	"regexp"
	"strings"
)

// Price is what a million tokens cost, in USD.
type Price struct {
	Input  float64 // read by the model
	Cached float64 // read from the vendor's cache
	Output float64 // written, thinking included
}

// AsOf is when the table was last compared with what vendors publish.
const AsOf = "2026-11-06"

// row is a model and those of its family whose names only add a date or a version of the same price.
type row struct {
	model string
	Price
}

// table lists prices of the standard tier, as the vendors publish them:
//
//   - Anthropic: https://platform.claude.com/docs/en/about-claude/pricing
//   - OpenAI: https://developers.openai.com/api/docs/pricing
//   - Google: https://ai.google.dev/gemini-api/docs/pricing
//
// Where a vendor asks more for prompts of more than 100 000 tokens, that price is listed. What it asks for prompts of
// more than 200 000 is not: agent.context_budget_tokens is smaller, unless somebody raises it.
func table() []row {
	return []row{
		{"claude-fable-5-1", Price{10, 0.25, 50}},
		{"claude-fable-5", Price{10, 1, 50}},
		{"claude-mythos-5-1", Price{10, 0.25, 50}},
		{"claude-mythos-5", Price{10, 1, 50}},
		{"claude-opus-5-5", Price{4, 0.2, 20}},
		{"claude-opus-5", Price{5, 0.5, 25}},
		{"claude-opus-4-8", Price{5, 0.5, 25}},
		{"claude-opus-4-7", Price{5, 0.5, 25}},
		{"claude-opus-4-6", Price{5, 0.5, 25}},
		{"claude-opus-4-5", Price{5, 0.5, 25}},
		{"claude-opus-4-1", Price{15, 1.5, 75}},
		{"claude-opus-4", Price{15, 1.5, 75}},
		{"claude-sonnet-5-5", Price{2, 0.1, 10}},
		{"claude-sonnet-5", Price{2, 0.2, 10}},
		{"claude-sonnet-4-6", Price{3, 0.3, 15}},
		{"claude-sonnet-4-5", Price{3, 0.3, 15}},
		{"claude-sonnet-4", Price{3, 0.3, 15}},
		{"claude-3-7-sonnet", Price{3, 0.3, 15}},
		{"claude-3-5-sonnet", Price{3, 0.3, 15}},
		{"claude-haiku-5-5", Price{0.5, 0.05, 2.5}},
		{"claude-haiku-4-5", Price{1, 0.1, 5}},
		{"claude-3-5-haiku", Price{0.8, 0.08, 4}},
		{"claude-3-haiku", Price{0.25, 0.03, 1.25}},

		{"gpt-6.1-sol", Price{2, 0.1, 10}},
		{"gpt-6.1-terra", Price{1, 0.05, 5}},
		{"gpt-6-astra", Price{10, 1, 50}},
		{"gpt-6-sol", Price{2, 0.2, 10}},
		{"gpt-6-luna", Price{0.1, 0.01, 0.5}},
		{"gpt-5.6-terra", Price{2, 0.2, 12}},
		{"gpt-5.6-luna", Price{0.2, 0.02, 1.2}},
		{"gpt-5.4-mini", Price{0.75, 0.075, 4.5}},
		{"gpt-5.4", Price{2.5, 0.25, 15}},
		{"gpt-5.2", Price{1.75, 0.175, 14}},
		{"gpt-5.1", Price{1.25, 0.125, 10}},
		{"gpt-5-mini", Price{0.25, 0.025, 2}},
		{"gpt-5-nano", Price{0.05, 0.005, 0.4}},
		{"gpt-5-pro", Price{15, 15, 120}},
		{"gpt-5", Price{1.25, 0.125, 10}},
		{"gpt-4.1-mini", Price{0.4, 0.1, 1.6}},
		{"gpt-4.1-nano", Price{0.1, 0.025, 0.4}},
		{"gpt-4.1", Price{2, 0.5, 8}},
		{"gpt-4o-mini", Price{0.15, 0.075, 0.6}},
		{"gpt-4o", Price{2.5, 1.25, 10}},
		{"o4-mini", Price{1.1, 0.275, 4.4}},
		{"o3-mini", Price{1.1, 0.55, 4.4}},
		{"o3", Price{2, 0.5, 8}},
		{"o1", Price{15, 7.5, 60}},

		{"gemini-2.5-pro", Price{1.25, 0.125, 10}},
		{"gemini-2.5-flash-lite", Price{0.1, 0.01, 0.4}},
		{"gemini-2.5-flash", Price{0.3, 0.03, 2.5}},
		{"gemini-2.0-flash", Price{0.1, 0.025, 0.4}},
	}
}

// edition is what a name adds to that of its model without another price: a date, or that it is the latest.
var edition = regexp.MustCompile(`^(?:-latest|[-@](?:19|20)\d{6}|-(?:19|20)\d\d-\d\d-\d\d)?$`)

// Of is the price of a model by the name that its API knows; a router's name may stand before it ("openai/gpt-4o"). ok
// is false when nobody knows the price: also of a name that only resembles a known one, since a small difference of
// names may be a great one of prices.
func Of(model string) (p Price, ok bool) {
	name := plain(model)
	for _, r := range table() {
		if named(name, r.model) {
			return r.Price, true
		}
	}
	return Price{}, false
}

// plain is the name of a model without that of a router.
func plain(model string) string { return strings.ToLower(model[strings.LastIndexByte(model, '/')+1:]) }

// named reports whether a name is that of a model of the table.
func named(name, model string) bool {
	rest, found := strings.CutPrefix(name, model)
	return found && edition.MatchString(rest)
}

// Highest is the highest price of each kind that the table has.
func Highest() Price {
	var high Price
	for _, r := range table() {
		high = Price{max(high.Input, r.Input), max(high.Cached, r.Cached), max(high.Output, r.Output)}
	}
	return high
}
