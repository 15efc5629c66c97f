package content_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/zephbot/zephbot/tools/mcp/content"
)

// FuzzRender: whatever a server answers, the text is bounded, valid and free of control characters.
func FuzzRender(f *testing.F) {
	f.Add(`{"content":[{"type":"text","text":"ok"}],"structuredContent":{"count":"x"}}`, "\x1b]0;t\a\x9b\xff")
	f.Add(`{"content":[{"type":"resource_link","uri":"x:y","name":"n","size":3},{"type":"resource","resource":{"uri":"a","blob":"aGk="}}]}`, strings.Repeat("\x1b[", 900))
	f.Add(`{"content":[{"type":"image","data":"aGk=","mimeType":"image/png\u001b[1m"}],"structuredContent":[1],"isError":true}`, "a\rb")
	schema := content.Compile(json.RawMessage(numbers))
	f.Fuzz(func(t *testing.T, wire, text string) {
		var res mcp.CallToolResult
		_ = json.Unmarshal([]byte(wire), &res)
		res.Content = append(res.Content, &mcp.TextContent{Text: text}, &mcp.ImageContent{MIMEType: text, Data: []byte(text)})
		got := content.Render(t.Context(), &res, content.Options{Server: "s", Output: schema, MaxText: 700, MaxData: 64})
		if len(got.Text) > 700 || !utf8.ValidString(got.Text) || got.Untrusted != "mcp:s" {
			t.Fatalf("%d bytes: %q", len(got.Text), got.Text)
		}
		if i := strings.IndexFunc(got.Text, func(r rune) bool { return r < 0x20 && r != '\t' && r != '\n' || r >= 0x7F && r <= 0x9F }); i >= 0 {
			t.Fatalf("a control character: %q", got.Text[i:])
		}
		if _, err := json.Marshal(got.Raw); err != nil {
			t.Fatal(err)
		}
		if clean := content.Clean(text); content.Clean(clean) != clean {
			t.Fatalf("%q: not the same the second time", text)
		}
	})
}

// FuzzParse: what Parse takes, Validate takes, and it can be sent.
func FuzzParse(f *testing.F) {
	f.Add(`{"type":"string","enum":["a","b"],"default":"b"}`, "2")
	f.Add(`{"type":"integer","minimum":-5}`, "-9223372036854775808")
	f.Add(`{"type":"array","items":{"anyOf":[{"const":"x,y","title":"1"}]},"maxItems":3}`, "x,y, 1")
	f.Add(`{"type":"number","default":1e400}`, "1e-400")
	f.Add(`{"type":"string","format":"email","maxLength":9}`, "a@b")
	f.Fuzz(func(t *testing.T, property, text string) {
		var schema any
		if json.Unmarshal([]byte(`{"properties":{"f":`+property+`},"required":["f"]}`), &schema) != nil {
			return
		}
		form := content.Elicit(&mcp.ElicitParams{Message: text, RequestedSchema: schema})
		if len(form.Summary()) > 700 || utf8.RuneCountInString(form.Message) > 500 || !utf8.ValidString(form.Message) {
			t.Fatalf("%+v", form)
		}
		for _, field := range form.Fields {
			value, err := content.Parse(field, text)
			if err != nil || value == nil {
				continue
			}
			if err := form.Validate(map[string]any{field.Name: value}); err != nil {
				t.Fatalf("%q becomes %#v: %v", text, value, err)
			}
			if _, err := json.Marshal(value); err != nil {
				t.Fatal(err)
			}
		}
	})
}
