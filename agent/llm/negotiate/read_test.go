package negotiate_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/zephbot/zephbot/agent/llm/dialect"
	"github.com/zephbot/zephbot/agent/llm/negotiate"
)

// chatBody is a request with eight tools t0 to t7, a call and its result, and the fields given.
func chatBody(t *testing.T, fields string) *negotiate.Sent {
	t.Helper()
	var tools []string
	for i := range 8 {
		tools = append(tools, fmt.Sprintf(`{"type":"function","function":{"name":"t%d","strict":false,"description":"d","parameters":{"type":"object","additionalProperties":false,"properties":{"user":{"type":"string","pattern":"\\d"}}}}}`, i))
	}
	body := `{"model":"m","stream":true,"stream_options":{"include_usage":true},"max_tokens":100,"user":"u","tools":[` + strings.Join(tools, ",") + `],
		"messages":[{"role":"system","content":"s"},{"role":"user","content":[{"type":"text","text":"hi"},{"type":"image_url","image_url":{"url":"data:"}}]},
		{"role":"assistant","reasoning_content":"r","tool_calls":[{"id":"call_1","type":"function","function":{"name":"t0","arguments":"{\"store\":1}"}}]},
		{"role":"tool","tool_call_id":"call_1","content":"x"}]` + fields + `}`
	if !json.Valid([]byte(body)) {
		t.Fatal(body)
	}
	return negotiate.Describe([]byte(body))
}

// describeChange is a change in one word.
func describeChange(c negotiate.Change) string {
	switch {
	case c.Omit != "":
		return "omit " + c.Omit
	case c.Rename != "":
		return "rename " + c.Rename + " " + c.To
	case c.Set != "":
		return "set " + c.Set + " " + c.Value
	case len(c.Aside) > 0:
		return fmt.Sprint("aside ", c.Aside)
	case c.History != "":
		return "history " + c.History
	case c.Wire != "":
		return "wire " + c.Wire
	case c.MaxTools > 0:
		return fmt.Sprint("most ", c.MaxTools)
	case c.MaxTokens > 0:
		return fmt.Sprint("tokens ", c.MaxTokens)
	case c.Safe:
		return "safe"
	case c.Closed:
		return "closed"
	case c.Halve:
		return "halve"
	case c.NoTools:
		return "no tools"
	case c.DropPictures:
		return "drop pictures"
	case c.Nudge:
		return "nudge"
	case c.Least:
		return "least"
	}
	return "nothing"
}

func TestRead(t *testing.T) {
	t.Parallel()
	openai := dialect.Dialect{Params: dialect.Params{Rename: map[string]string{"max_tokens": "max_completion_tokens"}}}
	for _, c := range []struct {
		name    string
		said    negotiate.Said
		fields  string // besides those of chatBody, each with a comma before it
		dialect dialect.Dialect
		want    string // the first change
	}{
		// A tool is named.
		{"openai", negotiate.Said{Status: 400, Code: "invalid_function_parameters", Message: "Invalid schema for function 't2': In context=(), object schema missing properties.", Places: []string{"tools[2].function.parameters"}}, "", openai, "aside [2]"},
		{"responses", negotiate.Said{Status: 400, Message: "Invalid schema", Places: []string{"tools[2].parameters"}}, "", openai, "aside [2]"},
		{"anthropic", negotiate.Said{Status: 400, Type: "invalid_request_error", Message: "tools.5.custom.input_schema: input_schema does not support oneOf, allOf, or anyOf at the top level"}, "", openai, "aside [5]"},
		{"gemini", negotiate.Said{Status: 400, Message: "Invalid JSON payload received.", Places: []string{"tools[0].function_declarations[3].parameters.properties[0].value"}}, "", openai, "aside [3]"},
		{"gemini, in words", negotiate.Said{Status: 400, Message: `Invalid JSON payload received. Unknown name "const" at 'tools[0].function_declarations[4].parameters': Cannot find field.`}, "", openai, "aside [4]"},
		{"groq", negotiate.Said{Status: 400, Message: "invalid JSON schema for tool t1, tools[1].function.parameters: `/required`", Places: []string{"tool t1, tools[1].function.parameters"}}, "", openai, "aside [1]"},
		{"deepseek", negotiate.Said{Status: 400, Message: `Invalid schema for function 't6': schema must be a JSON Schema of 'type: "object"', got 'type: null'.`}, "", openai, "aside [6]"},
		{"deepseek, name", negotiate.Said{Status: 400, Message: "Invalid 'tools[7].function.name': string does not match pattern."}, "", openai, "aside [7]"},
		{"mistral", negotiate.Said{Status: 422, Type: "extra_forbidden", Message: "Extra inputs are not permitted", Places: []string{"body.tools.3.function.parameters"}}, "", openai, "aside [3]"},
		{"bedrock", negotiate.Said{Status: 400, Message: "1 validation error detected: Value at 'toolConfig.tools.2.member.toolSpec.name' failed to satisfy constraint"}, "", openai, "aside [2]"},
		{"two at once", negotiate.Said{Status: 400, Message: "bad", Places: []string{"tools[1].function.parameters", "tools[4].function.parameters"}}, "", openai, "aside [1 4]"},
		// What one tool lacks, all lack.
		{"closed", negotiate.Said{Status: 400, Message: "invalid JSON schema for tool t1, tools[1].function.parameters: `/additionalProperties`: `additionalProperties:false` must be set on every object", Places: []string{"tool t1, tools[1].function.parameters"}}, "", openai, "closed"},
		{"closed, openai", negotiate.Said{Status: 400, Code: "invalid_function_parameters", Message: "Invalid schema for function 't2': In context=(), 'additionalProperties' is required to be supplied and to be false.", Places: []string{"tools[2].function.parameters"}}, "", openai, "closed"},
		{"closed, anthropic", negotiate.Said{Status: 400, Message: "tools.3.custom: For 'object' type, 'additionalProperties' must be explicitly set to false"}, "", openai, "closed"},
		{"closed already", negotiate.Said{Status: 400, Message: "tools.3.custom: For 'object' type, 'additionalProperties' must be explicitly set to false"}, "", dialect.Dialect{Schema: dialect.Schema{Closed: true}}, "aside [3]"},
		{"not to be closed", negotiate.Said{Status: 400, Message: `Invalid JSON payload received. Unknown name "additionalProperties" at 'tools[0].function_declarations[4].parameters': Cannot find field.`}, "", openai, "aside [4]"},
		// A field of every tool.
		{"strict", negotiate.Said{Status: 422, Message: "Extra inputs are not permitted", Places: []string{"body.tools.0.function.strict"}}, "", openai, "omit tools[].function.strict"},
		// None is named.
		{"moonshot", negotiate.Said{Status: 400, Message: "tools.function.parameters is not a valid moonshot flavored json schema, details: <At path 'properties.user': type is not defined>"}, "", openai, "safe"},
		{"llama.cpp", negotiate.Said{Status: 500, Message: "failed to parse grammar"}, "", openai, "safe"},
		{"llama.cpp, conversion", negotiate.Said{Status: 400, Message: "JSON schema conversion failed: Pattern must start with '^' and end with '$'"}, "", openai, "safe"},
		{"llama.cpp, size", negotiate.Said{Status: 400, Message: "Unable to generate parser for this template."}, "", openai, "safe"},
		{"fireworks", negotiate.Said{Status: 400, Message: "could not understand the instance `{'enum': ['a', None]}`"}, "", openai, "safe"},
		{"cerebras", negotiate.Said{Status: 400, Code: "wrong_api_format", Message: "Unsupported JSON schema fields: ['pattern']"}, "", openai, "safe"},
		{"ollama", negotiate.Said{Status: 400, Message: "json: cannot unmarshal array into Go struct field .tools.function.parameters.properties.type of type string"}, "", openai, "safe"},
		{"a keyword", negotiate.Said{Status: 400, Message: `Unknown name "additionalProperties": Cannot find field.`}, "", openai, "safe"},
		{"too many", negotiate.Said{Status: 400, Code: "array_above_max_length", Message: "Invalid 'tools': array too long. Expected an array with maximum length 5, but got an array with length 8 instead.", Places: []string{"tools"}}, "", openai, "most 5"},
		{"a gateway", negotiate.Said{Status: 501, Message: "Tool calling is not implemented for this model"}, "", openai, "no tools"},
		// Fields.
		{"mistral, user", negotiate.Said{Status: 422, Type: "extra_forbidden", Message: "Extra inputs are not permitted", Places: []string{"body.user"}}, "", openai, "omit user"},
		{"a validator's class", negotiate.Said{Status: 422, Type: "extra_forbidden", Message: "Extra inputs are not permitted", Places: []string{"body.ChatCompletionRequest.user"}}, "", openai, "omit user"},
		{"gemini, store", negotiate.Said{Status: 400, Message: `Invalid JSON payload received. Unknown name "store": Cannot find field.`}, `,"store":false`, openai, "omit store"},
		{"azure", negotiate.Said{Status: 400, Code: "unsupported_parameter", Message: "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.", Places: []string{"max_tokens"}}, "", dialect.Dialect{}, "rename max_tokens max_completion_tokens"},
		{"old server", negotiate.Said{Status: 422, Message: "Extra inputs are not permitted", Places: []string{"body.max_completion_tokens"}}, `,"max_completion_tokens":5`, dialect.Dialect{}, "rename max_completion_tokens max_tokens"},
		{"neither", negotiate.Said{Status: 400, Message: "Unsupported parameter: 'max_completion_tokens'", Places: []string{"max_completion_tokens"}}, `,"max_completion_tokens":5`, openai, "omit max_completion_tokens"},
		{"openai, temperature", negotiate.Said{Status: 400, Code: "unsupported_value", Message: "Unsupported value: 'temperature' does not support 0.7 with this model. Only the default (1) value is supported.", Places: []string{"temperature"}}, `,"temperature":0.7`, openai, "omit temperature"},
		{"kimi, temperature", negotiate.Said{Status: 400, Message: "invalid temperature: only 1 is allowed for this model"}, `,"temperature":0.7`, openai, "omit temperature"},
		{"anthropic, temperature", negotiate.Said{Status: 400, Message: "`temperature` is deprecated for this model."}, `,"temperature":0.7`, openai, "omit temperature"},
		{"xai", negotiate.Said{Status: 400, Message: "Argument not supported on this model: presencePenalty"}, `,"presence_penalty":0`, openai, "omit presence_penalty"},
		{"xai, another", negotiate.Said{Status: 400, Message: "Model grok-4 does not support parameter reasoningEffort."}, `,"reasoning_effort":"low"`, openai, "omit reasoning_effort"},
		{"groq, a field of messages", negotiate.Said{Status: 400, Message: "'messages.3' : for 'role:tool' the following must be satisfied[('messages.3' : property 'name' is unsupported)]", Places: []string{"messages.3.name"}}, `,"messages":[{"role":"tool","name":"x"}]`, openai, "omit messages[].name"},
		{"cerebras", negotiate.Said{Status: 422, Message: "parallel_tool_calls is not supported for this model", Code: "wrong_api_format"}, `,"parallel_tool_calls":true`, openai, "omit parallel_tool_calls"},
		{"tool choice", negotiate.Said{Status: 400, Message: `"tool_choice" is not supported`}, `,"tool_choice":"auto"`, openai, "omit tool_choice"},
		{"stream options", negotiate.Said{Status: 400, Message: "Unrecognized request argument supplied: stream_options"}, "", openai, "omit stream_options"},
		{"stream options, nested", negotiate.Said{Status: 422, Message: "Extra inputs are not permitted", Places: []string{"body.stream_options.include_usage"}}, "", openai, "omit stream_options.include_usage"},
		{"litellm", negotiate.Said{Status: 400, Message: "litellm.UnsupportedParamsError: xai does not support parameters: ['user'], for model=grok"}, "", openai, "omit user"},
		{"gpt-5.6", negotiate.Said{Status: 400, Message: "Function tools with reasoning_effort are not supported for gpt-5.6 in /v1/chat/completions. Please use /v1/responses instead.", Places: []string{"reasoning_effort"}}, "", openai, "wire responses"},
		{"range", negotiate.Said{Status: 400, Message: "max_tokens is too large: 100. This model supports at most 64 completion tokens", Places: []string{"max_tokens"}}, "", openai, "set max_tokens 64"},
		{"range, dashscope", negotiate.Said{Status: 400, Message: "Range of max_tokens should be [1, 64]"}, "", openai, "set max_tokens 64"},
		{"cache key", negotiate.Said{Status: 400, Message: "Unknown parameter: 'prompt_cache_key'.", Places: []string{"prompt_cache_key"}}, `,"prompt_cache_key":"x"`, openai, "omit prompt_cache_key"},
		{"include", negotiate.Said{Status: 400, Message: "include: extra fields not permitted"}, `,"include":["x"]`, openai, "omit include"},
		{"thinking", negotiate.Said{Status: 400, Message: "parameter.enable_thinking must be set to false for non-streaming calls"}, "", openai, "set enable_thinking false"},
		// Roles, tools, streams, pictures.
		{"developer", negotiate.Said{Status: 400, Message: "Failed to deserialize the JSON body into the target type: messages[0].role: unknown variant `developer`, expected one of `system`, `user`, `assistant`, `tool`"}, `,"messages":[{"role":"developer","content":"x"}]`, openai, "rename role:developer system"},
		{"no system", negotiate.Said{Status: 400, Message: "System role not supported"}, "", openai, "history no_system"},
		{"no tools", negotiate.Said{Status: 400, Message: "registry.ollama.ai/library/gemma:2b does not support tools"}, "", openai, "no tools"},
		{"no tools, openrouter", negotiate.Said{Status: 404, Unknown: true, Message: "No endpoints found that support tool use. To learn more about provider routing"}, "", openai, "no tools"},
		{"no tools, vllm", negotiate.Said{Status: 400, Message: `"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set`}, "", openai, "no tools"},
		{"no tools, llama.cpp", negotiate.Said{Status: 500, Message: "tools param requires --jinja flag"}, "", openai, "no tools"},
		{"no tools, groq", negotiate.Said{Status: 400, Message: "`tool calling` is not supported with this model", Places: nil}, "", openai, "no tools"},
		{"no tools, a field", negotiate.Said{Status: 422, Message: "Extra inputs are not permitted", Places: []string{"body.tools"}}, "", openai, "no tools"},
		{"no tools, old", negotiate.Said{Status: 400, Message: "Unrecognized request argument supplied: tools"}, "", openai, "no tools"},
		{"no stream", negotiate.Said{Status: 400, Code: "unsupported_value", Message: "Your organization must be verified to stream this model.", Places: []string{"stream"}}, "", openai, "omit stream"},
		{"no stream, another", negotiate.Said{Status: 400, Message: "This model does not support streaming."}, "", openai, "omit stream"},
		{"no pictures", negotiate.Said{Status: 500, Message: "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj"}, "", openai, "omit image"},
		{"no pictures, deepseek", negotiate.Said{Status: 400, Message: "Failed to deserialize the JSON body into the target type: messages[1]: unknown variant `image_url`, expected `text`"}, "", openai, "omit image"},
		{"no pictures, openrouter", negotiate.Said{Status: 404, Unknown: true, Message: "No endpoints found that support image input"}, "", openai, "omit image"},
		{"a bad picture", negotiate.Said{Status: 400, Message: "Could not process image"}, "", openai, "drop pictures"},
		// History.
		{"mistral, ids", negotiate.Said{Status: 400, Code: "3280", Message: "Tool call id was call_1 but must be a-z, A-Z, 0-9, with a length of 9."}, "", openai, "history call_ids"},
		{"mistral, order", negotiate.Said{Status: 400, Code: "3230", Message: "Unexpected role 'user' after role 'tool'"}, "", openai, "history bridge"},
		{"mistral, last", negotiate.Said{Status: 400, Message: "Expected last role User or Tool (or Assistant with prefix True) for serving but got assistant"}, "", openai, "history last_user"},
		{"openai, id", negotiate.Said{Status: 400, Code: "string_above_max_length", Message: "Invalid 'messages[2].tool_calls[0].id': string too long. Expected a string with maximum length 40, but got a string with length 51 instead.", Places: []string{"messages[2].tool_calls[0].id"}}, "", openai, "history call_ids"},
		{"litellm, id", negotiate.Said{Status: 400, Message: "litellm.ContextWindowExceededError: Invalid 'messages[2].tool_calls[0].id': string too long. Expected a string with maximum length 40", Places: []string{"messages[2].tool_calls[0].id"}}, "", openai, "history call_ids"},
		{"vllm, system", negotiate.Said{Status: 400, Message: "System message must be at the beginning."}, "", openai, "history one_system"},
		{"llama.cpp, system", negotiate.Said{Status: 500, Message: "System message must be at the beginning. at row 85, column 32"}, "", openai, "history one_system"},
		{"mlx, system", negotiate.Said{Status: 404, Unknown: true, Message: "System message must be at the beginning."}, "", openai, "history one_system"},
		{"gemma", negotiate.Said{Status: 500, Message: "Conversation roles must alternate user/assistant/user/assistant/..."}, "", openai, "history alternate"},
		{"deepseek, reasoning", negotiate.Said{Status: 400, Message: "Missing `reasoning_content` field in the assistant message at message index 2."}, "", openai, "history reasoning"},
		{"kimi, reasoning", negotiate.Said{Status: 400, Message: "thinking is enabled but reasoning_content is missing in assistant tool call message at index 2"}, "", openai, "history reasoning"},
		{"cerebras, reasoning", negotiate.Said{Status: 400, Code: "wrong_api_format", Message: "messages.2.assistant.reasoning_content: property 'messages.2.assistant.reasoning_content' is unsupported", Places: []string{"messages.2.assistant.reasoning_content"}}, "", openai, "history no_reasoning"},
		{"groq, reasoning", negotiate.Said{Status: 400, Message: "'messages.2' : for 'role:assistant' the following must be satisfied[('messages.2' : property 'reasoning_content' is unsupported)]"}, "", openai, "history no_reasoning"},
		{"tgi", negotiate.Said{Status: 422, Message: "Failed to deserialize the JSON body into the target type: messages[2]: missing field `content` at line 1 column 205"}, "", openai, "history empty_content"},
		{"gemini, invalid argument", negotiate.Said{Status: 400, Message: "Request contains an invalid argument."}, "", openai, "drop pictures"},
		// A malformed call of the model's own, and money.
		{"groq, call", negotiate.Said{Status: 400, Code: "tool_use_failed", Message: "Failed to call a function. Please adjust your prompt. See 'failed_generation' for more details."}, "", openai, "nudge"},
		{"openrouter, money", negotiate.Said{Status: 402, Message: "This request requires more credits, or fewer max_tokens. You requested up to 4096 tokens, but can only afford 900."}, "", openai, "tokens 900"},
		// Nothing to change.
		{"no credit", negotiate.Said{Status: 402, Message: "Insufficient credits"}, "", openai, ""},
		{"overload", negotiate.Said{Status: 503, Message: "The model is overloaded."}, "", openai, ""},
		{"key", negotiate.Said{Status: 401, Message: "invalid tools"}, "", openai, ""},
		{"unknown model", negotiate.Said{Status: 404, Unknown: true, Message: "The model `user` does not exist"}, "", openai, ""},
	} {
		sent := chatBody(t, c.fields)
		got, err := negotiate.Read(&c.said, sent, &c.dialect)
		if err != nil {
			t.Fatal(err)
		}
		first := ""
		if len(got) > 0 {
			first = describeChange(got[0])
		}
		if first != c.want {
			var all []string
			for _, g := range got {
				all = append(all, describeChange(g))
			}
			t.Errorf("%s: %q, want %q first", c.name, all, c.want)
		}
	}
}

// TestAFieldOfOneWord: a name that is an ordinary word too is found in the ways in which validators name a field.
func TestAFieldOfOneWord(t *testing.T) {
	t.Parallel()
	sent := chatBody(t, "")
	for _, words := range []string{
		"Unrecognized request argument supplied: user",
		"Unrecognized request arguments supplied: user, store",
		"Unknown parameter: 'user'.",
		"Unknown field: user",
		"user: Extra inputs are not permitted",
		"property 'user' is unsupported",
		`json: unknown field "user"`,
		"body.user: Extra inputs are not permitted",
		"body -> user: extra fields not permitted",
		"Argument not supported on this model: user",
		"The parameter user is not supported by this model",
		"Additional properties are not allowed ('user' was unexpected)",
		`"user" is not allowed`,
		"create() got an unexpected keyword argument 'user'",
		"must NOT have additional properties: user",
		"[{'type': 'extra_forbidden', 'loc': ('body', 'user'), 'msg': 'Extra inputs are not permitted', 'input': 'x'}]",
		"1 validation error for ChatCompletionRequest\nuser\n  Extra inputs are not permitted [type=extra_forbidden, input_value='x', input_type=str]",
		"litellm.UnsupportedParamsError: mistral does not support parameters: ['user'], for model=m. To drop these, set `litellm.drop_params=True`",
		`Invalid JSON payload received. Unknown name "user": Cannot find field.`,
		"Failed to deserialize the JSON body into the target type: unknown field `user`, expected one of `model`, `messages` at line 1 column 9",
		"Unrecognized key(s) in object: 'user'",
		"The following parameters are not supported: user",
		"'user' is not a valid parameter",
		"Parameter user not supported",
		"user is not supported",
		"Unsupported parameter(s): user",
		"Field user is not a known field of the request",
		"extra field not allowed: $.user",
		"不支持的参数: user",
		"The request body contains unexpected properties: user",
	} {
		got, err := negotiate.Read(&negotiate.Said{Status: 400, Message: words}, sent, &dialect.Dialect{})
		if err != nil || len(got) == 0 || got[0].Omit != "user" {
			t.Errorf("%s: %+v, %v", words, got, err)
		}
	}
}

// TestAFieldAtSeveralPlaces: one that is named without its place is left out everywhere at once.
func TestAFieldAtSeveralPlaces(t *testing.T) {
	t.Parallel()
	sent := chatBody(t, `,"system":[{"text":"x","cache_control":{}}],"extra":[{"cache_control":{}}]`)
	for _, words := range []string{"cache_control is not supported by this server", "system.0.cache_control: Extra inputs are not permitted"} {
		got, err := negotiate.Read(&negotiate.Said{Status: 400, Message: words}, sent, &dialect.Dialect{})
		if err != nil || len(got) < 2 || !got[0].Placed || !got[1].Placed || got[0].Omit != "extra[].cache_control" || got[1].Omit != "system[].cache_control" {
			t.Errorf("%s: %+v, %v", words, got, err)
		}
	}
}

func TestDescribe(t *testing.T) {
	t.Parallel()
	s := chatBody(t, "")
	if !s.Has("stream_options") || s.Has("store") || slices.Contains(s.Fields, "tools[].function.parameters.properties") ||
		!slices.Contains(s.Fields, "messages[].tool_calls[].id") || !slices.Contains(s.Keywords, "pattern") || slices.Contains(s.Keywords, "user") ||
		!s.Pictures || !s.Calls || len(s.Tools) != 8 || s.Tools[7] != "t7" {
		t.Errorf("%+v", s)
	}
	if s := negotiate.Describe([]byte("nonsense")); len(s.Fields) > 0 {
		t.Errorf("%+v", s)
	}
}

func TestEdits(t *testing.T) {
	t.Parallel()
	body := `{"model":"m","max_tokens":100, "stream":true,"stream_options":{"include_usage":true},"user":"u","messages":[{"role":"developer","name":"n","content":"a  b"},{"role":"user","content":[{"name":"x"}]}]}`
	for _, c := range []struct {
		params dialect.Params
		want   string
	}{
		{dialect.Params{}, body},
		{dialect.Params{Omit: []string{"user", negotiate.Tools, negotiate.Pictures}}, `{"model":"m","max_tokens":100,"stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"developer","name":"n","content":"a  b"},{"role":"user","content":[{"name":"x"}]}]}`},
		{dialect.Params{Omit: []string{negotiate.Stream, "messages[].name"}}, `{"model":"m","max_tokens":100,"user":"u","messages":[{"role":"developer","content":"a  b"},{"role":"user","content":[{"name":"x"}]}]}`},
		{dialect.Params{Omit: []string{"stream_options.include_usage"}, Rename: map[string]string{"max_tokens": "max_completion_tokens", "role:developer": "system"}, Set: map[string]json.RawMessage{"max_completion_tokens": json.RawMessage("50"), "thinking": json.RawMessage(`{"type":"on"}`)}}, `{"model":"m","max_completion_tokens":50,"stream":true,"stream_options":{},"user":"u","messages":[{"role":"system","name":"n","content":"a  b"},{"role":"user","content":[{"name":"x"}]}],"thinking":{"type":"on"}}`},
		{dialect.Params{Set: map[string]json.RawMessage{"max_tokens": json.RawMessage("500"), "max_output_tokens": json.RawMessage("5")}}, strings.Replace(body, "100, ", "100,", 1)},
		{dialect.Params{Omit: []string{"max_completion_tokens"}, Rename: map[string]string{"max_tokens": "max_completion_tokens"}}, strings.Replace(body, `"max_tokens":100, `, "", 1)},
	} {
		e := negotiate.NewEdits(c.params)
		got, err := e.Object([]byte(body))
		if err != nil || string(got) != c.want {
			t.Errorf("%+v:\n%s, %v\nwant\n%s", c.params, got, err, c.want)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(400, "tools[99999999999999999999].function", "tools.1.x", `{"tools":[{"name":"x"}]}`)
	f.Add(422, "Unknown name \"x\"", "body.user", `{"user":1,"messages":[{"role":"tool"}]}`)
	f.Fuzz(func(t *testing.T, status int, message, place, body string) {
		sent := negotiate.Describe([]byte(body))
		if _, err := negotiate.Read(&negotiate.Said{Status: status, Message: message, Places: []string{place}}, sent, &dialect.Dialect{}); err != nil {
			t.Fatal(err)
		}
		e := negotiate.NewEdits(dialect.Params{Omit: []string{place, message}, Rename: map[string]string{"a": "b"}})
		if out, err := e.Object([]byte(body)); err == nil && json.Valid([]byte(body)) && !json.Valid(out) {
			t.Errorf("%s became %s", body, out)
		}
	})
}

// TestBlocksAsText: a list of texts that a server wants as one is found on every wire, and becomes one; what is more than
// text stays.
func TestBlocksAsText(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ body, place, want string }{
		{
			`{"system":[{"type":"text","text":"a"},{"type":"text","text":"b"}],"messages":[{"role":"user","content":"x"}]}`, "body.system",
			`{"system":"a\n\nb","messages":[{"role":"user","content":"x"}]}`,
		},
		{
			`{"messages":[{"role":"user","content":[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}}]},{"role":"user","content":[{"type":"text","text":"a"},{"type":"image","source":{}}]}]}`, "body.messages.0.content",
			`{"messages":[{"role":"user","content":"a"},{"role":"user","content":[{"type":"text","text":"a"},{"type":"image","source":{}}]}]}`,
		},
		{
			`{"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":[{"type":"text","text":"out"}]}]}]}`, "messages[0].content[0].content",
			`{"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":"out"}]}]}`,
		},
		{
			`{"input":[{"role":"user","content":[{"type":"input_text","text":"a"}]}]}`, "body.input.0.content.str",
			`{"input":[{"role":"user","content":"a"}]}`,
		},
	} {
		said := &negotiate.Said{Status: 422, Message: "Input should be a valid string", Type: "string_type", Places: []string{tt.place}}
		changes, err := negotiate.Read(said, negotiate.Describe([]byte(tt.body)), &dialect.Dialect{})
		if err != nil || len(changes) == 0 || changes[0].Class != "blocks" {
			t.Errorf("%s: %+v, %v", tt.place, changes, err)
			continue
		}
		edits := negotiate.NewEdits(dialect.Params{Rename: map[string]string{changes[0].Rename: changes[0].To}})
		if got, err := edits.Object([]byte(tt.body)); err != nil || string(got) != tt.want {
			t.Errorf("%s: %s, %v", tt.place, got, err)
		}
	}
	// Without such a list, the same words mean something else.
	said := &negotiate.Said{Status: 422, Message: "Input should be a valid string", Places: []string{"body.messages.0.content"}}
	changes, err := negotiate.Read(said, negotiate.Describe([]byte(`{"messages":[{"role":"assistant","content":null}]}`)), &dialect.Dialect{})
	if err != nil || slices.ContainsFunc(changes, func(c negotiate.Change) bool { return c.Class == "blocks" }) {
		t.Errorf("%+v, %v", changes, err)
	}
}
