package toolschema_test

import (
	"encoding/json"
	"testing"

	"github.com/zephbot/zephbot/agent/llm/toolschema"
)

// BenchmarkTool writes an ordinary tool. Lists of tools are cached by package toolbox: this is paid once for each.
func BenchmarkTool(b *testing.B) {
	raw := json.RawMessage(`{"type":"object","properties":{"path":{"type":"string","description":"Path of the file, relative to the workspace."},` +
		`"offset":{"type":"integer","description":"First line.","minimum":1},"limit":{"type":"integer","description":"Number of lines.","minimum":1,"maximum":2000},` +
		`"mode":{"type":"string","enum":["text","raw"]},"tags":{"type":"array","items":{"type":"string"}}},"required":["path"],"additionalProperties":false}`)
	d := dialectOf(b, "openai")
	b.ReportAllocs()
	for b.Loop() {
		toolschema.Tool("Reads a file.", raw, d)
	}
}
