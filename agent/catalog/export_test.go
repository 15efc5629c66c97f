package catalog

import "encoding/json"

// What fuzz tests look at from outside.
var (
	ParseNames   = parseNames
	Terms        = terms
	WithThinking = func(schema []byte) (json.RawMessage, bool) { return withThinking(schema) }
	Clean        = clean
	Mentioned    = mentioned
)
