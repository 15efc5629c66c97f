package content

import (
	"encoding/json"
	"math"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/zephbot/zephbot/tools/mcp/guard"
)

// Tool converts a tool of a server for package guard, unsanitised. A schema that cannot be encoded is left out.
func Tool(t *mcp.Tool) guard.Tool {
	if t == nil {
		return guard.Tool{}
	}
	return guard.Tool{
		Name: t.Name, Title: t.Title, Description: t.Description,
		Input: document(t.InputSchema), Output: document(t.OutputSchema), Annotations: Annotations(t.Annotations),
	}
}

// Tools converts a list of tools.
func Tools(list []*mcp.Tool) []guard.Tool {
	out := make([]guard.Tool, 0, len(list))
	for _, t := range list {
		if t != nil {
			out = append(out, Tool(t))
		}
	}
	return out
}

// document encodes a schema: as it was received, or with sorted keys if it was already decoded.
func document(schema any) json.RawMessage {
	switch s := schema.(type) {
	case nil:
		return nil
	case json.RawMessage:
		return s
	}
	raw, err := json.Marshal(schema)
	if err != nil || string(raw) == "null" {
		return nil
	}
	return raw
}

// Annotations converts a server's statements about a tool. For readOnlyHint and idempotentHint, the protocol library
// does not distinguish false from absent; a server that annotates a tool at all is taken to state both.
func Annotations(a *mcp.ToolAnnotations) guard.Annotations {
	if a == nil {
		return guard.Annotations{}
	}
	out := guard.Annotations{Title: a.Title, Destructive: a.DestructiveHint, OpenWorld: a.OpenWorldHint}
	if a.ReadOnlyHint || a.IdempotentHint || a.DestructiveHint != nil || a.OpenWorldHint != nil {
		readOnly, idempotent := a.ReadOnlyHint, a.IdempotentHint
		out.ReadOnly, out.Idempotent = &readOnly, &idempotent
	}
	return out
}

// maxResultKey is the key in a tool's _meta that asks for longer results.
const maxResultKey = "zeph/maxResultSizeChars"

// MaxResultChars returns the length of results, in characters, that a _meta of a tool or result asks for; 0 = not
// given.
func MaxResultChars(meta mcp.Meta) int {
	switch n := meta[maxResultKey].(type) {
	case float64:
		if n >= 1 && n <= math.MaxInt32 {
			return int(n)
		}
	case json.Number:
		if i, err := n.Int64(); err == nil && i >= 1 && i <= math.MaxInt32 {
			return int(i)
		}
	case int:
		if n >= 1 && n <= math.MaxInt32 {
			return n
		}
	}
	return 0
}
