package catalog

import (
	"slices"
	"time"
)

// Reason says why a tool is shown, or why not.
type Reason string

// The reasons. A tool may have several.
const (
	AlwaysOn         Reason = "AlwaysOn"         // on a list of the configuration
	NameMentioned    Reason = "NameMentioned"    // the person said its name
	SimilarityRank   Reason = "SimilarityRank"   // similar enough to what the person said
	ShortDescription Reason = "ShortDescription" // too little to rank it by
	NoEmbedding      Reason = "NoEmbedding"      // nothing to rank it by
	ChosenByModel    Reason = "ChosenByModel"    // a model named it
	SmallServer      Reason = "SmallServer"      // its server has too few tools to filter
	Unfiltered       Reason = "Unfiltered"       // nothing filters it
	Unranked         Reason = "Unranked"         // the ranking failed, or knows none of the words
	Carried          Reason = "Carried"          // the person only said go on: what the turn before had
	Found            Reason = "Found"            // a search of this turn found it
	Used             Reason = "Used"             // it ran in this turn
	Kept             Reason = "Kept"             // shown earlier in this turn
	DependencyMet    Reason = "DependencyMet"    // all it requires has succeeded
	PreferenceBoost  Reason = "PreferenceBoost"  // tools it prefers to come after have succeeded
	DependencyUnmet  Reason = "DependencyUnmet"  // hidden: see Missing
	// hidden: the definitions of servers take more than their share of the context
	OverBudget Reason = "OverBudget"
	// hidden: not similar enough, or beyond the limit, or not named by the model
	NotRelevant Reason = "NotRelevant"
)

// Choice is what became of one tool.
type Choice struct {
	Tool    string
	Shown   bool
	Reasons []Reason
	Score   float64  // similarity with Boost, 0 where none was needed
	Boost   float64  // of Score
	Missing []string // what it requires and has not succeeded, also where the gate is off
}

// Has says whether the choice has a reason.
func (c Choice) Has(r Reason) bool { return slices.Contains(c.Reasons, r) }

// The ways to rank.
const (
	ByEmbedding = "embedding"
	ByWords     = "words"
	ByModel     = "model"
	ByNothing   = "none"
)

// Selection is what a catalog chose, for metrics and logs.
type Selection struct {
	Turn, Session string
	Step          int
	Ranked        string // how: ByEmbedding …; the model where both count
	Registered    int    // tools that could have been shown
	Shown         int
	GatesOff      bool     // requirements would have hidden everything, so they do not count in this turn
	Tokens        int      // of the definitions of servers that are shown
	Tools         []Choice // in the order of the source
	Took          time.Duration
}
