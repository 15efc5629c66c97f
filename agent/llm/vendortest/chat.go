package vendortest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/zephbot/zephbot/agent/llm"
)

// chatVoice streams an answer of the chat API in the vendor's shape.
type chatVoice struct {
	x      *exchange
	lines  *lines
	shape  *stream
	chunks int
	opened bool
	spoke  bool // text was sent
}

func (v *chatVoice) begun() bool { return v.opened }

// delta is one piece of the text.
func (v *chatVoice) delta(text string) {
	if text == "" {
		return
	}
	v.open(Thought)
	v.spoke = true
	if v.thoughts() == "parts" {
		v.chunk(map[string]any{"content": []any{map[string]any{"type": "text", "text": text}}}, nil)
		return
	}
	v.chunk(map[string]any{"content": text}, nil)
}

// open sends what precedes the first piece: lines of the server, the role, the model's reasoning.
func (v *chatVoice) open(thought string) {
	if v.opened {
		return
	}
	v.opened = true
	for _, line := range v.shape.Before {
		v.lines.line(line)
		v.lines.line("")
	}
	if v.shape.First != "" {
		v.lines.data(write(v.shape.First, v.x.values(place{})))
	}
	v.chunk(map[string]any{"role": "assistant", "content": ""}, nil)
	switch v.thoughts() {
	case "":
	case "think":
		v.chunk(map[string]any{"content": "<think>"}, nil)
		v.chunk(map[string]any{"content": thought + "</think>\n\n"}, nil)
	case "reasoning tag":
		v.chunk(map[string]any{"content": "<reasoning>" + thought + "</reasoning>"}, nil)
	case "parts":
		text := map[string]any{"type": "text", "text": thought}
		v.chunk(map[string]any{"content": []any{map[string]any{"type": "thinking", "thinking": []any{text}}}}, nil)
	case "details":
		detail := map[string]any{"type": "reasoning.text", "text": thought, "index": 0, "format": "unknown"}
		v.chunk(map[string]any{"content": "", "reasoning": thought, "reasoning_details": []any{detail}}, nil)
	default:
		v.chunk(map[string]any{"content": nil, v.shape.Thoughts: thought}, nil)
	}
}

// thoughts is the form in which the model that is asked shows its reasoning; "" = it shows none.
func (v *chatVoice) thoughts() string {
	if !v.shape.thinks.MatchString(textOf(v.x.body["model"])) {
		return ""
	}
	return v.shape.Thoughts
}

// chunk sends one chunk; finish is the reason in it, nil = the answer goes on.
func (v *chatVoice) chunk(delta map[string]any, finish any) {
	v.chunks++
	if v.shape.Role == "every" && delta != nil {
		delta["role"] = "assistant"
	}
	choice := map[string]any{"index": 0, "finish_reason": finish, "logprobs": nil}
	if delta != nil {
		choice["delta"] = delta
	}
	body := v.frame([]any{choice})
	if finish != nil {
		switch v.shape.Usage {
		case "finish":
			body["usage"] = v.usage()
		case "x_groq":
			body["x_groq"] = map[string]any{"id": "req_1", "usage": v.usage()}
		}
	}
	if v.shape.Usage == "null" {
		body["usage"] = nil
	}
	v.lines.data(body)
	for _, line := range v.shape.Between {
		v.lines.line(line)
		v.lines.line("")
	}
}

func (v *chatVoice) frame(choices []any) map[string]any {
	return map[string]any{
		"id":      "chatcmpl-1",
		"object":  "chat.completion.chunk",
		"created": 1790000000,
		"model":   v.x.body["model"],
		"choices": choices,
	}
}

// usage counts what was read and written.
func (v *chatVoice) usage() map[string]any {
	return map[string]any{"prompt_tokens": v.x.used, "completion_tokens": v.chunks, "total_tokens": v.x.used + v.chunks}
}

// end sends the calls, the reason to stop and what follows it.
func (v *chatVoice) end(res *llm.Response) {
	// A model does not think aloud each time, and a server that wants its reasoning back wants it although it is empty.
	thought := Thought
	if len(res.Uses) > 0 && v.x.number%2 == 1 {
		thought = ""
	}
	if v.opened {
		thought = Thought
	}
	v.open(thought)
	calls := v.calls(res.Uses, thought)
	finish := cmp.Or(v.shape.TextEnd, "stop")
	switch {
	case res.Stop == llm.StopLength:
		finish = "length"
	case res.Stop == llm.StopRefusal:
		finish = "content_filter"
	case len(calls) > 0:
		finish = cmp.Or(v.shape.CallsEnd, "tool_calls")
	}
	switch v.shape.Calls {
	case "finish":
		if len(calls) > 0 {
			v.chunk(map[string]any{"content": "", "tool_calls": calls}, finish)
			v.close()
			return
		}
	case "whole":
		if len(calls) > 0 {
			v.chunk(v.beside(map[string]any{"tool_calls": calls}), nil)
		}
	default:
		for _, call := range calls {
			v.pieces(objectOf(call))
		}
	}
	v.chunk(map[string]any{}, finish)
	v.close()
}

// beside adds the content that a server sends with calls.
func (v *chatVoice) beside(delta map[string]any) map[string]any {
	switch v.shape.Content {
	case "none":
	case "empty":
		delta["content"] = ""
	default:
		delta["content"] = nil
	}
	return delta
}

// calls returns the calls of an answer as a server sends them in one piece.
func (v *chatVoice) calls(uses []llm.ToolUse, thought string) []any {
	var out []any
	for n, u := range uses {
		id := v.x.server.mint(u.Name, n)
		call := map[string]any{"id": id, "type": "function"}
		var args any = string(u.Args)
		var object map[string]any
		if v.shape.Arguments == "object" && json.Unmarshal(u.Args, &object) == nil {
			args = object
		}
		call["function"] = map[string]any{"name": u.Name, "arguments": args}
		switch v.shape.Index {
		case "none":
		case "zero":
			call["index"] = 0
		default:
			call["index"] = n
		}
		if v.shape.NoType {
			delete(call, "type")
		}
		v.gives(call, id, n, thought)
		out = append(out, call)
	}
	return out
}

// gives hands out with a call what the server wants back.
func (v *chatVoice) gives(call map[string]any, id string, n int, thought string) {
	switch v.shape.Gives {
	case "":
	case "extra_content":
		if n > 0 {
			return
		}
		extra := map[string]any{"google": map[string]any{"thought_signature": "c2lnbmF0dXJl" + id}}
		call["extra_content"] = extra
		v.x.server.given.keep(id, "extra_content", string(encode(extra)))
	default:
		if v.thoughts() == "" {
			return
		}
		v.x.server.given.keep(id, v.shape.Gives, string(encode(thought)))
	}
}

// pieces sends a call in pieces: its name, then its arguments in two halves.
func (v *chatVoice) pieces(call map[string]any) {
	function := objectOf(call["function"])
	args, ok := function["arguments"].(string)
	if !ok {
		v.chunk(v.beside(map[string]any{"tool_calls": []any{call}}), nil)
		return
	}
	function["arguments"] = ""
	v.chunk(v.beside(map[string]any{"tool_calls": []any{call}}), nil)
	half := len(args) / 2
	for half < len(args) && args[half]&0xC0 == 0x80 { // not within a letter
		half++
	}
	for _, part := range []string{args[:half], args[half:]} {
		more := map[string]any{"function": map[string]any{"arguments": part}}
		if index, ok := call["index"]; ok {
			more["index"] = index
		}
		v.chunk(map[string]any{"tool_calls": []any{more}}, nil)
	}
}

// close sends the usage and what ends the stream.
func (v *chatVoice) close() {
	if v.shape.Last != "" {
		v.lines.data(write(v.shape.Last, v.x.values(place{})))
	}
	asked, _ := objectOf(v.x.body["stream_options"])["include_usage"].(bool)
	if v.shape.Usage == "last" || asked && slices.Contains([]string{"", "asked", "null"}, v.shape.Usage) {
		body := v.frame([]any{})
		body["usage"] = v.usage()
		v.lines.data(body)
	}
	if !v.shape.NoDone {
		v.lines.data("[DONE]")
	}
}

// empty sends an answer without text.
func (v *chatVoice) empty(finish string) {
	if finish != "" {
		v.chunk(map[string]any{"role": "assistant", "content": ""}, nil)
		v.chunk(map[string]any{}, finish)
	}
	v.close()
}

// responsesVoice streams an answer of the Responses API.
type responsesVoice struct {
	x      *exchange
	lines  *lines
	opened bool
	text   string
	number int
	output []any
}

func (v *responsesVoice) begun() bool { return v.opened }

func (v *responsesVoice) event(kind string, fields map[string]any) {
	fields["type"], fields["sequence_number"] = kind, v.number
	v.number++
	v.lines.event(kind, fields)
}

func (v *responsesVoice) report(status string) map[string]any {
	out := map[string]any{
		"id":                 "resp_1",
		"object":             "response",
		"created_at":         1790000000,
		"model":              v.x.body["model"],
		"status":             status,
		"output":             v.output,
		"error":              nil,
		"incomplete_details": nil,
	}
	if status != "in_progress" {
		out["usage"] = map[string]any{
			"input_tokens":         v.x.used,
			"input_tokens_details": map[string]any{"cached_tokens": 0},
			"output_tokens":        v.number,
			"total_tokens":         v.x.used + v.number,
		}
	}
	return out
}

func (v *responsesVoice) open() {
	if v.opened {
		return
	}
	v.opened, v.output = true, []any{}
	v.event("response.created", map[string]any{"response": v.report("in_progress")})
}

// item sends a whole item of the output.
func (v *responsesVoice) item(item map[string]any, between func(index int)) {
	index := len(v.output)
	v.event("response.output_item.added", map[string]any{"output_index": index, "item": map[string]any{
		"type":      item["type"],
		"id":        item["id"],
		"status":    "in_progress",
		"role":      item["role"],
		"name":      item["name"],
		"call_id":   item["call_id"],
		"arguments": "",
		"content":   []any{},
		"summary":   []any{},
	}})
	if between != nil {
		between(index)
	}
	v.output = append(v.output, item)
	v.event("response.output_item.done", map[string]any{"output_index": index, "item": item})
}

func (v *responsesVoice) delta(text string) {
	if text == "" {
		return
	}
	if !v.opened {
		v.open()
		v.reason()
		v.event("response.output_item.added", map[string]any{"output_index": len(v.output), "item": map[string]any{
			"type":    "message",
			"id":      "msg_1",
			"status":  "in_progress",
			"role":    "assistant",
			"content": []any{},
		}})
		v.event("response.content_part.added", map[string]any{
			"output_index":  len(v.output),
			"item_id":       "msg_1",
			"content_index": 0,
			"part":          map[string]any{"type": "output_text", "text": "", "annotations": []any{}},
		})
	}
	v.text += text
	v.event("response.output_text.delta", map[string]any{
		"output_index":  len(v.output),
		"item_id":       "msg_1",
		"content_index": 0,
		"delta":         text,
	})
}

// reason sends an item of encrypted reasoning if the request asks for it.
func (v *responsesVoice) reason() {
	if !slices.Contains(listOf(v.x.body["include"]), any("reasoning.encrypted_content")) {
		return
	}
	id := v.x.server.mint("", 0)
	sealed := "Z0FBQUFB" + id
	v.x.server.given.keep(sealed, "encrypted_content", "true")
	v.item(map[string]any{
		"type":              "reasoning",
		"id":                "rs_" + id,
		"summary":           []any{},
		"encrypted_content": sealed,
		"status":            "completed",
	}, nil)
}

func (v *responsesVoice) end(res *llm.Response) {
	if !v.opened {
		v.open()
		v.reason()
	}
	if v.text != "" {
		part := map[string]any{"type": "output_text", "text": v.text, "annotations": []any{}}
		item := map[string]any{
			"type":    "message",
			"id":      "msg_1",
			"status":  "completed",
			"role":    "assistant",
			"content": []any{part},
		}
		v.event("response.output_text.done", map[string]any{
			"output_index":  len(v.output),
			"item_id":       "msg_1",
			"content_index": 0,
			"text":          v.text,
		})
		v.event("response.output_item.done", map[string]any{"output_index": len(v.output), "item": item})
		v.output = append(v.output, item)
	}
	for n, u := range res.Uses {
		id := v.x.server.mint(u.Name, n)
		item := map[string]any{
			"type":      "function_call",
			"id":        "fc_" + id,
			"call_id":   id,
			"name":      u.Name,
			"arguments": string(u.Args),
			"status":    "completed",
		}
		v.item(item, func(index int) {
			v.event("response.function_call_arguments.delta", map[string]any{
				"output_index": index,
				"item_id":      item["id"],
				"delta":        string(u.Args),
			})
			v.event("response.function_call_arguments.done", map[string]any{
				"output_index": index,
				"item_id":      item["id"],
				"arguments":    string(u.Args),
			})
		})
	}
	if res.Stop == llm.StopLength {
		report := v.report("incomplete")
		report["incomplete_details"] = map[string]any{"reason": "max_output_tokens"}
		v.event("response.incomplete", map[string]any{"response": report})
		return
	}
	v.event("response.completed", map[string]any{"response": v.report("completed")})
}

func (v *responsesVoice) empty(string) { v.end(&llm.Response{}) }

// messagesVoice streams an answer of the Messages API.
type messagesVoice struct {
	x      *exchange
	lines  *lines
	opened bool
	text   bool
	blocks int
}

func (v *messagesVoice) begun() bool { return v.opened }

func (v *messagesVoice) event(kind string, fields map[string]any) {
	fields["type"] = kind
	v.lines.event(kind, fields)
}

func (v *messagesVoice) open() {
	if v.opened {
		return
	}
	v.opened = true
	v.event("message_start", map[string]any{"message": map[string]any{
		"id":          "msg_1",
		"type":        "message",
		"role":        "assistant",
		"model":       v.x.body["model"],
		"content":     []any{},
		"stop_reason": nil,
		"usage":       map[string]any{"input_tokens": v.x.used, "output_tokens": 1},
	}})
	v.event("ping", map[string]any{})
	v.think()
}

// think sends a block of thinking if the request asks for it.
func (v *messagesVoice) think() {
	if kind := textOf(objectOf(v.x.body["thinking"])["type"]); kind == "" || kind == "disabled" {
		return
	}
	v.event("content_block_start", map[string]any{
		"index":         v.blocks,
		"content_block": map[string]any{"type": "thinking", "thinking": "", "signature": ""},
	})
	v.event("content_block_delta", map[string]any{
		"index": v.blocks,
		"delta": map[string]any{"type": "thinking_delta", "thinking": Thought},
	})
	v.event("content_block_delta", map[string]any{
		"index": v.blocks,
		"delta": map[string]any{"type": "signature_delta", "signature": fmt.Sprintf("c2ln%d", v.x.number)},
	})
	v.stop()
}

func (v *messagesVoice) stop() {
	v.event("content_block_stop", map[string]any{"index": v.blocks})
	v.blocks++
}

func (v *messagesVoice) delta(text string) {
	if text == "" {
		return
	}
	v.open()
	if !v.text {
		v.text = true
		v.event("content_block_start", map[string]any{
			"index":         v.blocks,
			"content_block": map[string]any{"type": "text", "text": ""},
		})
	}
	v.event("content_block_delta", map[string]any{
		"index": v.blocks,
		"delta": map[string]any{"type": "text_delta", "text": text},
	})
}

func (v *messagesVoice) end(res *llm.Response) {
	v.open()
	if v.text {
		v.stop()
	}
	for n, u := range res.Uses {
		v.event("content_block_start", map[string]any{"index": v.blocks, "content_block": map[string]any{
			"type":  "tool_use",
			"id":    v.x.server.mint(u.Name, n),
			"name":  u.Name,
			"input": map[string]any{},
		}})
		v.event("content_block_delta", map[string]any{
			"index": v.blocks,
			"delta": map[string]any{"type": "input_json_delta", "partial_json": string(u.Args)},
		})
		v.stop()
	}
	reason := "end_turn"
	switch {
	case res.Stop == llm.StopLength:
		reason = "max_tokens"
	case res.Stop == llm.StopRefusal:
		reason = "refusal"
	case len(res.Uses) > 0:
		reason = "tool_use"
	}
	v.finish(reason)
}

func (v *messagesVoice) finish(reason string) {
	v.event("message_delta", map[string]any{
		"delta": map[string]any{"stop_reason": reason, "stop_sequence": nil},
		"usage": map[string]any{"output_tokens": 12},
	})
	v.event("message_stop", map[string]any{})
}

func (v *messagesVoice) empty(reason string) {
	v.open()
	v.finish(cmp.Or(reason, "end_turn"))
}
