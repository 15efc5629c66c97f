package filter

// Confidence says how sure the filter is of what it did to a text (seed 003).
type Confidence uint8

// The levels, from none to best.
const (
	// None: no rule applied; the text is sanitised only.
	None Confidence = iota
	// Fallback: a rule matched the command, but the output had not the structure that it knows; the text is sanitised
	// only.
	Fallback
	// Partial: a heuristic; some content may have been left out that mattered.
	Partial
	// Full: the filter is certain that it handled this output correctly.
	Full
)

// String is the name in JSON and metrics.
func (c Confidence) String() string {
	switch c {
	case Fallback:
		return "fallback"
	case Partial:
		return "partial"
	case Full:
		return "full"
	default:
		return "none"
	}
}

// Letter is the short form of counters: F, P, B, and "" for None.
func (c Confidence) Letter() string {
	switch c {
	case Fallback:
		return "B"
	case Partial:
		return "P"
	case Full:
		return "F"
	default:
		return ""
	}
}

// Worst is the lower of two levels.
func (c Confidence) Worst(other Confidence) Confidence { return min(c, other) }
