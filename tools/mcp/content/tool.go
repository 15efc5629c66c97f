package content

import (
	"encoding/json"
	"math"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/zephbot/zephbot/tools/mcp/guard"
)

// Tool is a tool of a server as package guard knows it; nothing is sanitised yet. A schema that cannot be written
// becomes none.
func Tool(t *mcp.Tool) guard.Tool {
	if t == nil {
		return guard.Tool{}
	}
	return guard.Tool{
		Name: t.Name, Title: t.Title, Description: t.Description,
		Input: document(t.InputSchema), Output: document(t.OutputSchema), Annotations: Annotations(t.Annotations),
	}
}

// Tools is Tool for a list.
func Tools(list []*mcp.Tool) []guard.Tool {
	out := make([]guard.Tool, 0, len(list))
	for _, t := range list {
		if t != nil {
			out = append(out, Tool(t))
		}
	}
	return out
}

// document writes a schema: as it came, or with sorted keys where it was decoded already.
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

// Annotations are a server's words on what a tool does. The protocol's library does not tell a hint that is false from
// one that is absent for readOnlyHint and idempotentHint: a server that annotates a tool at all is taken to say both.
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

// maxResultKey is where a tool's _meta asks for longer results.
const maxResultKey = "zeph/maxResultSizeChars"

// MaxResultChars is the size of results in characters that a _meta (of a tool or of a result) asks for; 0 = it asks for
// none.
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
