package catalog

import "encoding/json"

// Internals for the fuzz tests.
var (
	ParseNames   = parseNames
	Terms        = splitTerms
	WithThinking = func(schema []byte) (json.RawMessage, bool) { return withThinking(schema) }
	Clean        = cleanLine
	Mentioned    = isMentioned
)
