// Package utility is the stage that skips tool calls which promise little ([tools.utility], off by default). It weighs
// what a call is likely to bring against what was spent and done in the turn already.
//
// A call that is skipped has a result that says so, not an error: nothing failed, and the model is to go on in the way
// that the text names. The stage holds no state: what was done in the turn comes from the journal, so that a call which
// waited for a person, or is taken up by another process, is judged again in the same way.
package utility

import (
	"context"
	"math"
	"slices"

	"github.com/zephbot/zephbot/tools"
)

// Decision says what happens with a call.
type Decision string

// The decisions.
const (
	Run      Decision = "run"
	Respond  Decision = "respond"  // the model answers with what it has
	Retrieve Decision = "retrieve" // the model looks for context first; the same call runs after that
	Verify   Decision = "verify"   // the model checks what it has before it goes on
	Stop     Decision = "stop"     // the model calls no more tools
)

// The bounds that are not configured.
const (
	highGain       = 0.7 // a gain from here on needs only the threshold
	retrieveGain   = 0.5 // a gain from here on is worth looking for context
	retrieveDoubt  = 0.5 // uncertainty above this means: early in the turn
	maxCost        = 0.9
	sureAfter      = 10 // calls after which nothing is uncertain any more
	configuredGain = 0.8
	unknownGain    = 0.5
)

// Options configures the gate.
type Options struct {
	// Threshold is the least utility of a call.
	Threshold float64
	// The weights of what makes up the utility.
	GainWeight, CostWeight, RedundancyWeight, UncertaintyBonus float64
	// ExemptTools always run.
	ExemptTools []string
	// HighGainTools always promise much.
	HighGainTools []string
	// Seen says what happened in the turn before this batch (before Call.Batch, so that the answer stays the same when
	// the call comes again); see Look. Nil = nothing. Must not block.
	Seen func(call *tools.Call) History
	// Cost is the share of the turn's budget that is spent, 0 to 1. Nil = 0. Must not block.
	Cost func(call *tools.Call) float64
	// Observe hears of every decision, probes left out. May be nil. Must not block.
	Observe func(tool string, d Decision)
}

// Defaults returns the numbers of [tools.utility].
func Defaults() Options {
	return Options{
		Threshold: 0.1, GainWeight: 1, CostWeight: 0.5, RedundancyWeight: 0.3, UncertaintyBonus: 0.2,
	}
}

// Factors are what the utility of a call is made of, each from 0 to 1.
type Factors struct {
	Gain, Cost, Redundancy, Uncertainty float64
}

// Score returns the utility: g·gain − c·cost − r·redundancy + u·uncertainty.
func Score(o Options, f Factors) float64 {
	return o.GainWeight*f.Gain - o.CostWeight*f.Cost - o.RedundancyWeight*f.Redundancy +
		o.UncertaintyBonus*f.Uncertainty
}

// Situation is what is decided about.
type Situation struct {
	Factors
	Explicit bool // the person asked for this tool
	Mandated bool // the same call was put off with Retrieve: now it runs
	Calls    int  // that ran in the turn
}

// Decide applies the rules, the first that fits.
func Decide(o Options, s Situation) Decision {
	u := Score(o, s.Factors)
	switch {
	case s.Explicit, s.Mandated:
		return Run
	case math.IsNaN(u), math.IsInf(u, 0), s.Cost > maxCost:
		return Stop
	case s.Redundancy > 0:
		return Respond
	case s.Gain >= highGain && u >= o.Threshold:
		return Run
	case s.Gain >= retrieveGain && s.Uncertainty > retrieveDoubt:
		return Retrieve
	case u < o.Threshold && s.Calls > 0:
		return Verify
	case u >= o.Threshold:
		return Run
	default:
		return Respond
	}
}

// Gain returns what a call of a tool is expected to bring, from 0 to 1: what the operator says of it, else what the
// tool says itself.
func (o Options) Gain(def tools.Definition) float64 {
	if slices.Contains(o.HighGainTools, def.Name) {
		return configuredGain
	}
	if gain := def.Stated().Gain; gain > 0 {
		return gain
	}
	return unknownGain
}

// New makes the stage. It is safe for concurrent use.
func New(o Options) tools.Middleware {
	return func(next tools.Handler) tools.Handler {
		return func(ctx context.Context, call *tools.Call) (*tools.Result, error) {
			d := o.decide(call)
			if o.Observe != nil && !call.Probe {
				o.Observe(call.Def.Name, d)
			}
			if d == Run {
				return next(ctx, call)
			}
			call.Trail.Summary = "skipped by the utility gate: " + string(d)
			return &tools.Result{Text: texts(d)}, nil
		}
	}
}

func (o Options) decide(call *tools.Call) Decision {
	tool := call.Def.Name
	if slices.Contains(o.ExemptTools, tool) {
		return Run
	}
	var seen History
	if o.Seen != nil {
		seen = o.Seen(call)
	}
	f := Factors{Gain: o.Gain(call.Def), Uncertainty: min(1, max(0, 1-float64(seen.Calls)/sureAfter))}
	if o.Cost != nil {
		f.Cost = o.Cost(call)
		if !math.IsNaN(f.Cost) {
			f.Cost = min(1, max(0, f.Cost))
		}
	}
	if seen.Repeated {
		f.Redundancy = 1
	}
	return Decide(o, Situation{
		Factors: f, Explicit: Explicit(call.Ask, tool), Mandated: seen.PutOff,
		Calls: seen.Calls,
	})
}

// The beginnings of the texts that stand in for a result.
const (
	skipped = "[skipped]"
	stopped = "[stopped]"
	putOff  = skipped + " Not enough is known for this call yet."
)

// texts returns what the model reads instead of a result.
func texts(d Decision) string {
	switch d {
	case Retrieve:
		return putOff +
			" Fetch the context that it needs first, then call the tool again with the same arguments: it runs then."
	case Verify:
		return skipped + " This call promises little now. Check what you have found so far before you go on."
	case Stop:
		return stopped +
			" This turn has used up what it may spend on tools. Call no more tools and answer with what you have."
	default:
		return skipped + " This call brings nothing new. Answer with what you have."
	}
}
