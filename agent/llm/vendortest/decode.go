package vendortest

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/zephbot/zephbot/agent/llm"
)

// decode reads a request of any of the APIs. What the rules let pass is understood; what no API has is an error.
func decode(wire string, body map[string]any) (*llm.Request, error) {
	req := &llm.Request{}
	switch user := body["user"].(type) {
	case string:
		req.User = user
	}
	var err error
	switch wire {
	case "messages":
		req.System = textOf(body["system"])
		err = decodeMessages(req, listOf(body["messages"]))
	case "responses":
		req.System = textOf(body["instructions"])
		err = decodeItems(req, body["input"])
	default:
		err = decodeChat(req, listOf(body["messages"]))
	}
	for _, one := range listOf(body["tools"]) {
		tool := objectOf(one)
		if function, ok := tool["function"].(map[string]any); ok {
			tool = function
		}
		schema := tool["parameters"]
		if wire == "messages" {
			schema = tool["input_schema"]
		}
		req.Tools = append(req.Tools, llm.Tool{
			Name:        textOf(tool["name"]),
			Description: textOf(tool["description"]),
			Schema:      encode(schema),
		})
	}
	if err == nil && len(req.Messages) == 0 {
		err = fmt.Errorf("the request has no messages")
	}
	return req, err
}

func listOf(v any) []any            { list, _ := v.([]any); return list }
func objectOf(v any) map[string]any { object, _ := v.(map[string]any); return object }
func encode(v any) json.RawMessage  { data, _ := json.Marshal(v); return data } // decoded JSON can always be encoded
func addText(text, more string) string {
	return strings.TrimPrefix(text+"\n\n"+more, "\n\n")
}

// textOf returns a text, or the texts of a list of parts. A picture appears as a line, as in llmtest.
func textOf(v any) string {
	if text, ok := v.(string); ok {
		return text
	}
	var texts []string
	for _, one := range listOf(v) {
		part := objectOf(one)
		switch kind := textOf(part["type"]); kind {
		case "text", "input_text", "output_text":
			texts = append(texts, textOf(part["text"]))
		case "image_url", "input_image", "image":
			texts = append(texts, "[sees image]")
		case "input_file", "document", "file":
			texts = append(texts, "[sees file]")
		}
	}
	return strings.Join(texts, "\n")
}

func decodeChat(req *llm.Request, messages []any) error {
	for i, one := range messages {
		m := objectOf(one)
		text := textOf(m["content"])
		switch role := textOf(m["role"]); role {
		case "system", "developer":
			req.System = addText(req.System, text)
		case "user":
			req.Messages = append(req.Messages, llm.Message{Role: llm.User, Text: text})
		case "assistant":
			out := llm.Message{Role: llm.Assistant, Text: text}
			for _, call := range listOf(m["tool_calls"]) {
				object := objectOf(call)
				function := objectOf(object["function"])
				out.Uses = append(out.Uses, llm.ToolUse{
					ID:   textOf(object["id"]),
					Name: textOf(function["name"]),
					Args: json.RawMessage(textOf(function["arguments"])),
				})
			}
			req.Messages = append(req.Messages, out)
		case "tool":
			req.Messages = append(req.Messages, result(textOf(m["tool_call_id"]), text, false))
		default:
			return fmt.Errorf("messages[%d]: no role %q", i, role)
		}
	}
	return nil
}

func result(id, text string, failed bool) llm.Message {
	return llm.Message{Role: llm.ToolRole, Result: &llm.ToolResult{ID: id, Text: text, Error: failed}}
}

func decodeItems(req *llm.Request, input any) error {
	if text, ok := input.(string); ok {
		req.Messages = append(req.Messages, llm.Message{Role: llm.User, Text: text})
		return nil
	}
	for i, one := range listOf(input) {
		item := objectOf(one)
		n := len(req.Messages)
		spoken := n > 0 && req.Messages[n-1].Role == llm.Assistant
		switch kind := textOf(item["type"]); {
		case kind == "function_call":
			use := llm.ToolUse{
				ID:   textOf(item["call_id"]),
				Name: textOf(item["name"]),
				Args: json.RawMessage(textOf(item["arguments"])),
			}
			if !spoken {
				req.Messages, n = append(req.Messages, llm.Message{Role: llm.Assistant}), n+1
			}
			req.Messages[n-1].Uses = append(req.Messages[n-1].Uses, use)
		case kind == "function_call_output":
			req.Messages = append(req.Messages, result(textOf(item["call_id"]), textOf(item["output"]), false))
		case kind == "reasoning":
		case kind == "message" || kind == "" && item["role"] != nil:
			role := textOf(item["role"])
			if role == "system" || role == "developer" {
				req.System = addText(req.System, textOf(item["content"]))
				continue
			}
			if role != "user" && role != "assistant" {
				return fmt.Errorf("input[%d]: no role %q", i, role)
			}
			req.Messages = append(req.Messages, llm.Message{Role: llm.Role(role), Text: textOf(item["content"])})
		default:
			return fmt.Errorf("input[%d]: no type %q", i, kind)
		}
	}
	return nil
}

func decodeMessages(req *llm.Request, messages []any) error {
	for i, one := range messages {
		m := objectOf(one)
		role := textOf(m["role"])
		if role != "user" && role != "assistant" {
			return fmt.Errorf("messages.%d: no role %q", i, role)
		}
		out := llm.Message{Role: llm.Role(role), Text: textOf(m["content"])}
		for _, block := range listOf(m["content"]) {
			object := objectOf(block)
			switch textOf(object["type"]) {
			case "tool_use":
				out.Uses = append(out.Uses, llm.ToolUse{
					ID:   textOf(object["id"]),
					Name: textOf(object["name"]),
					Args: encode(object["input"]),
				})
			case "tool_result":
				failed, _ := object["is_error"].(bool)
				req.Messages = append(req.Messages, result(
					textOf(object["tool_use_id"]), textOf(object["content"]), failed,
				))
			}
		}
		if out.Text != "" || role == "assistant" {
			req.Messages = append(req.Messages, out)
		}
	}
	return nil
}
