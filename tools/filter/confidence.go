package filter

// Confidence says how certain the filter is about its result (seed 003).
type Confidence uint8

// Levels, lowest first.
const (
	// None: no rule applied; the text is only sanitised.
	None Confidence = iota
	// Fallback: a rule matched the command, but the output does not have the structure that it expects; the text is
	// only sanitised.
	Fallback
	// Partial: a heuristic was used; some relevant content may be missing.
	Partial
	// Full: the filter is certain that it handled this output correctly.
	Full
)

// String returns the name used in JSON and metrics.
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

// Letter returns the short form used by counters: F, P, B, and "" for None.
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

// Worst returns the lower of two levels.
func (c Confidence) Worst(other Confidence) Confidence { return min(c, other) }
