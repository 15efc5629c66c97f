package catalog

import (
	"slices"
	"time"
)

// Reason says why a tool is shown or not shown.
type Reason string

// The reasons. A tool can have several.
const (
	AlwaysOn         Reason = "AlwaysOn"         // on a list in the configuration
	NameMentioned    Reason = "NameMentioned"    // the person mentioned its name
	SimilarityRank   Reason = "SimilarityRank"   // similar enough to what the person said
	ShortDescription Reason = "ShortDescription" // its description is too short to rank it by
	NoEmbedding      Reason = "NoEmbedding"      // it has nothing to rank it by
	ChosenByModel    Reason = "ChosenByModel"    // a model chose it
	SmallServer      Reason = "SmallServer"      // its server has too few tools to filter
	Unfiltered       Reason = "Unfiltered"       // no filter applies to it
	Unranked         Reason = "Unranked"         // the ranking failed, or knows none of the words
	Carried          Reason = "Carried"          // the person only agreed or said to go on: shown in the turn before
	Found            Reason = "Found"            // a search of this turn found it
	Used             Reason = "Used"             // it ran in this turn
	Kept             Reason = "Kept"             // shown earlier in this turn
	InUse            Reason = "InUse"            // seldom needed, but it has succeeded in this conversation
	DependencyMet    Reason = "DependencyMet"    // all tools that it requires have succeeded
	PreferenceBoost  Reason = "PreferenceBoost"  // tools that it is preferred after have succeeded
	DependencyUnmet  Reason = "DependencyUnmet"  // hidden: see Missing
	// Hidden: the definitions of servers exceed their share of the context, or there are
	// more tools than a request takes.
	OverBudget Reason = "OverBudget"
	// Hidden: seldom needed (tools.Definition.Seldom), and nobody has asked for it. tool_search names it.
	OnDemand Reason = "OnDemand"
	// Hidden: not similar enough, beyond the limit, or not chosen by the model.
	NotRelevant Reason = "NotRelevant"
)

// Choice is the result for one tool.
type Choice struct {
	Tool    string
	Shown   bool
	Reasons []Reason
	Score   float64  // similarity including Boost; 0 if no score was needed
	Boost   float64  // part of Score
	Missing []string // required tools that have not succeeded, also if requirements do not count
}

// Has reports whether the choice has a reason.
func (c Choice) Has(r Reason) bool { return slices.Contains(c.Reasons, r) }

// The ranking methods.
const (
	ByEmbedding = "embedding"
	ByWords     = "words"
	ByModel     = "model"
	ByNothing   = "none"
)

// Selection is a catalog's choice, for metrics and logs.
type Selection struct {
	Turn, Session string
	Step          int
	Ranked        string // ByEmbedding etc.; the model if both were used
	Registered    int    // tools that could have been shown
	Shown         int
	GatesOff      bool     // requirements would have hidden everything, so they do not count in this turn
	Tokens        int      // size of the definitions of servers' tools that are shown
	Tools         []Choice // in the order of Source
	Took          time.Duration
}
