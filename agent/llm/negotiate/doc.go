// Package negotiate finds out what a model server takes beyond what its dialect says. A refusal that names a part of a
// request (a tool, a field, a rule for messages) is not the end of a turn: Read says what to change, by the table of
// wordings in patterns.json, and the request is repeated with that change.
package negotiate
