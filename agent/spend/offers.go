package spend

import (
	"cmp"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/cost"
)

// Offer is a model that may answer a turn, as far as that costs something.
type Offer struct {
	Provider string // name of its provider
	Model    string
	Tariff   cost.Tariff
	Priced   bool // Tariff is known
	BuiltIn  bool // it is part of the program
	Answer   int  // the longest answer that is asked for, in tokens
	// Unlimited reports whether its server is sent no limit of the answer, because its dialect or its refusals say so.
	Unlimited func() bool
	// Written is how many tokens the model can write after an input of some length where nothing limits its answer; 0 =
	// nobody knows.
	Written func(input int) int
}

// longestFor is the longest answer that an input may get.
func (o *Offer) longestFor(asked llm.Usage) int {
	output := asked.Output
	if output <= 0 {
		output = o.Answer
	}
	if o.Unlimited() {
		output = max(output, o.Written(asked.Input))
	}
	return output
}

// Offers are the models that may answer. People choose among them, so what one of them may cost counts for everybody.
// Methods are safe for concurrent use if those of the offers are.
type Offers []Offer

// Unpriced returns the models whose price nobody knows, by the names of their providers.
func (list Offers) Unpriced() map[string]string {
	unpriced := map[string]string{}
	for i := range list {
		if o := &list[i]; !o.Priced {
			unpriced[o.Provider] = cmp.Or(o.Model, o.Provider)
		}
	}
	return unpriced
}

// MostCost is the most USD that tokens cost, whichever model answers of those whose price is known.
func (list Offers) MostCost(u llm.Usage) float64 {
	var most float64
	for i := range list {
		if o := &list[i]; o.Priced {
			most = max(most, o.Tariff.Most(u))
		}
	}
	return most
}

// MostOf is the most USD that a call may cost, and the longest answer in tokens, whichever model gives it. A
// server that is sent no limit of the answer may answer with all that its model can write: that is what it may
// cost. What counts as the longest answer is what is asked for, because quotas of tokens would otherwise set
// aside what hardly any answer needs.
func (list Offers) MostOf(asked llm.Usage) (output int, usd float64) {
	output = max(asked.Output, 0)
	for i := range list {
		o := &list[i]
		if asked.Output <= 0 {
			output = max(output, o.Answer)
		}
		if o.Priced {
			usd = max(usd, o.Tariff.Most(llm.Usage{
				Input: asked.Input, CachedInput: asked.CachedInput, Output: o.longestFor(asked),
			}))
		}
	}
	return output, usd
}

// Longest is the answer for which the most is set aside before a call of a model, whatever is asked.
type Longest struct {
	Model     string
	Tokens    int
	USD       float64
	Unlimited bool // its server is sent no limit of the answer
}

// LongestAnswers returns the answers for which the most USD are set aside, of the models whose price is known, and the
// most tokens; nil = there is no such answer.
func (list Offers) LongestAnswers() (usd, tokens *Longest) {
	for i := range list {
		o := &list[i]
		if o.BuiltIn {
			continue
		}
		if tokens == nil || o.Answer > tokens.Tokens {
			tokens = &Longest{Model: o.Model, Tokens: o.Answer}
		}
		if !o.Priced {
			continue
		}
		one := Longest{Model: o.Model, Tokens: o.longestFor(llm.Usage{}), Unlimited: o.Unlimited()}
		one.USD = o.Tariff.Most(llm.Usage{Output: one.Tokens})
		if usd == nil || one.USD > usd.USD {
			usd = &one
		}
	}
	return usd, tokens
}
