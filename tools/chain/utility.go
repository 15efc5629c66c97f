package chain

import (
	"context"
	"math"
	"slices"

	"github.com/zephbot/zephbot/tools"
)

// UtilityDecision is what happens with a call.
type UtilityDecision string

// Decisions.
const (
	UtilityRun     UtilityDecision = "run"
	UtilityRespond UtilityDecision = "respond" // the model should answer with what it has
	// the model should look for context first; the same call runs after that
	UtilityRetrieve UtilityDecision = "retrieve"
	UtilityVerify   UtilityDecision = "verify" // the model should check what it has first
	UtilityStop     UtilityDecision = "stop"   // the model should make no further tool calls
)

// Limits that are not configurable.
const (
	highGain       = 0.7 // from this gain on, only the threshold matters
	retrieveGain   = 0.5 // from this gain on, looking for context is worth it
	retrieveDoubt  = 0.5 // a higher uncertainty means that the turn is at its beginning
	maxCost        = 0.9
	sureAfter      = 10 // number of calls after which the uncertainty is 0
	configuredGain = 0.8
	unknownGain    = 0.5
)

// UtilityOptions configures the gate.
type UtilityOptions struct {
	// Threshold is the minimum utility of a call.
	Threshold float64
	// Weights of the parts of the utility.
	GainWeight, CostWeight, RedundancyWeight, UncertaintyBonus float64
	// ExemptTools always run.
	ExemptTools []string
	// HighGainTools always have a high gain.
	HighGainTools []string
	// Seen returns what happened in the turn before this batch (before Call.Batch, so that the result is the same when
	// the call comes again); see Look. Nil = nothing. It must not block.
	Seen func(call *tools.Call) UtilityHistory
	// Cost returns the part of the turn's budget that was spent, 0 to 1. Nil = 0. It must not block.
	Cost func(call *tools.Call) float64
	// Observe receives every decision except those for probes. It may be nil and must not block.
	Observe func(tool string, d UtilityDecision)
}

// UtilityDefaults returns the numbers of [tools.utility].
func UtilityDefaults() UtilityOptions {
	return UtilityOptions{
		Threshold: 0.1, GainWeight: 1, CostWeight: 0.5, RedundancyWeight: 0.3, UncertaintyBonus: 0.2,
	}
}

// UtilityFactors are the parts of the utility of a call, each from 0 to 1.
type UtilityFactors struct {
	Gain, Cost, Redundancy, Uncertainty float64
}

// UtilityScore returns the utility: g·gain − c·cost − r·redundancy + u·uncertainty.
func UtilityScore(o UtilityOptions, f UtilityFactors) float64 {
	return o.GainWeight*f.Gain - o.CostWeight*f.Cost - o.RedundancyWeight*f.Redundancy +
		o.UncertaintyBonus*f.Uncertainty
}

// UtilitySituation is the input of a decision.
type UtilitySituation struct {
	UtilityFactors
	Explicit bool // the person asked for this tool
	Mandated bool // the same call was put off with Retrieve: it runs now
	Calls    int  // calls that ran in the turn
}

// DecideUtility applies the first rule that matches.
func DecideUtility(o UtilityOptions, s UtilitySituation) UtilityDecision {
	u := UtilityScore(o, s.UtilityFactors)
	switch {
	case s.Explicit, s.Mandated:
		return UtilityRun
	case math.IsNaN(u), math.IsInf(u, 0), s.Cost > maxCost:
		return UtilityStop
	case s.Redundancy > 0:
		return UtilityRespond
	case s.Gain >= highGain && u >= o.Threshold:
		return UtilityRun
	case s.Gain >= retrieveGain && s.Uncertainty > retrieveDoubt:
		return UtilityRetrieve
	case u < o.Threshold && s.Calls > 0:
		return UtilityVerify
	case u >= o.Threshold:
		return UtilityRun
	default:
		return UtilityRespond
	}
}

// Gain returns the expected gain of a call of a tool, from 0 to 1: as configured by the operator, or else as stated by
// the tool.
func (o UtilityOptions) Gain(def tools.Definition) float64 {
	if slices.Contains(o.HighGainTools, def.Name) {
		return configuredGain
	}
	if gain := def.Stated().Gain; gain > 0 {
		return gain
	}
	return unknownGain
}

// NewUtility returns the stage that skips tool calls of little use ([tools.utility], off by default). It compares what
// a call is expected to bring with what was already spent and done in the turn. It is safe for concurrent use.
//
// The result of a skipped call says so. It is not an error: nothing failed, and the model should continue as the text
// says. The stage has no state. What was done in the turn comes from the journal, so that a call that waited for a
// person, or that another process continues, is judged in the same way again.
func NewUtility(o UtilityOptions) tools.Middleware {
	return func(next tools.Handler) tools.Handler {
		return func(ctx context.Context, call *tools.Call) (*tools.Result, error) {
			d := o.decideCall(call)
			if o.Observe != nil && !call.Probe {
				o.Observe(call.Def.Name, d)
			}
			if d == UtilityRun {
				return next(ctx, call)
			}
			call.Trail.Summary = "skipped by the utility gate: " + string(d)
			return &tools.Result{Text: utilityText(d)}, nil
		}
	}
}

func (o UtilityOptions) decideCall(call *tools.Call) UtilityDecision {
	tool := call.Def.Name
	if slices.Contains(o.ExemptTools, tool) {
		return UtilityRun
	}
	var seen UtilityHistory
	if o.Seen != nil {
		seen = o.Seen(call)
	}
	f := UtilityFactors{Gain: o.Gain(call.Def), Uncertainty: min(1, max(0, 1-float64(seen.Calls)/sureAfter))}
	if o.Cost != nil {
		f.Cost = o.Cost(call)
		if !math.IsNaN(f.Cost) {
			f.Cost = min(1, max(0, f.Cost))
		}
	}
	if seen.Repeated {
		f.Redundancy = 1
	}
	return DecideUtility(o, UtilitySituation{
		UtilityFactors: f, Explicit: AsksForTool(call.Ask, tool), Mandated: seen.PutOff,
		Calls: seen.Calls,
	})
}

// Beginnings of the texts that replace a result.
const (
	utilitySkipped = "[skipped]"
	utilityStopped = "[stopped]"
	utilityPutOff  = utilitySkipped + " Not enough is known for this call yet."
)

// utilityText returns what the model reads instead of a result.
func utilityText(d UtilityDecision) string {
	switch d {
	case UtilityRetrieve:
		return utilityPutOff +
			" Fetch the context that it needs first, then call the tool again with the same arguments: it runs then."
	case UtilityVerify:
		return utilitySkipped + " This call promises little now. Check what you have found so far before you go on."
	case UtilityStop:
		return utilityStopped +
			" This turn has used up what it may spend on tools. Call no more tools and answer with what you have."
	default:
		return utilitySkipped + " This call brings nothing new. Answer with what you have."
	}
}
