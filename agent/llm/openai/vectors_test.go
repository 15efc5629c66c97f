package openai_test

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/dialect"
	"github.com/zephbot/zephbot/agent/llm/openai"
)

// delta is an event with a delta as it is.
func delta(fields string) string { return `{"choices":[{"index":0,"delta":{` + fields + `}}]}` }

// pieces streams a text in pieces of n bytes, as events with one field.
func pieces(field, text string, n int) []string {
	var events []string
	for i := 0; i < len(text); {
		end := min(i+n, len(text))
		for end < len(text) && text[end]&0xC0 == 0x80 {
			end++
		}
		encoded, err := json.Marshal(text[i:end])
		if err != nil {
			panic(err)
		}
		events = append(events, delta(fmt.Sprintf("%q:%s", field, encoded)))
		i = end
	}
	return events
}

// heard is what became of an answer.
type heard struct {
	Text, Thoughts, Streamed, Progress string
	Uses                               []string
	Stop                               llm.Stop
	Unmade                             bool
}

func hear(t *testing.T, body string) heard {
	t.Helper()
	var h heard
	req := hi()
	req.OnReset = func() { h.Streamed = "" }
	req.OnThought = func(text string) { h.Progress += text }
	res, err := pipedProvider(t, io.NopCloser(strings.NewReader(body))).Chat(t.Context(), req, func(d string) { h.Streamed += d })
	if err != nil {
		t.Fatalf("%v", err)
	}
	h.Text, h.Thoughts, h.Stop, h.Unmade = res.Text, res.Thoughts, res.Stop, res.Unmade
	for _, u := range res.Uses {
		if u.ID == "" {
			t.Errorf("a call without an id: %+v", u)
		}
		h.Uses = append(h.Uses, u.Name+" "+string(u.Args))
	}
	return h
}

// TestOddStreams: what servers and models are known to stream besides what their API describes.
func TestOddStreams(t *testing.T) {
	t.Parallel()
	readA := `read {"path":"a"}`
	for name, tt := range map[string]struct {
		body string
		want heard
	}{
		"Gemini: two calls without an index": {
			sse(
				calls(`{"id":"1","type":"function","function":{"name":"read","arguments":"{\"path\":\"a\"}"}}`),
				calls(`{"id":"2","type":"function","function":{"name":"read","arguments":"{\"path\":\"b\"}"}}`), finish("stop"), done),
			heard{Uses: []string{readA, `read {"path":"b"}`}, Stop: llm.StopTools},
		},
		"Gemini: index 0 twice": {
			sse(
				calls(`{"index":0,"id":"1","function":{"name":"read","arguments":"{\"path\":\"a\"}"}}`),
				calls(`{"index":0,"id":"2","function":{"name":"read","arguments":"{\"path\":\"a\"}"}}`), finish("stop"), done),
			heard{Uses: []string{readA, readA}, Stop: llm.StopTools},
		},
		"Mistral: call with the reason to stop, content a list": {
			sse(
				delta(`"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]},{"type":"text","text":"Look."}]`),
				`{"choices":[{"index":0,"delta":{"content":"","tool_calls":[{"id":"abcdefghi","function":{"name":"read","arguments":"{\"path\":\"a\"}"}}]},"finish_reason":"tool_calls"}]}`, done),
			heard{Text: "Look.", Thoughts: "hm", Uses: []string{readA}, Stop: llm.StopTools},
		},
		"Azure: no choices first, no delta last": {
			sse(
				`{"choices":[],"prompt_filter_results":[{}]}`, text("Hi"), finish("stop"), `{"choices":[{"index":0,"finish_reason":null,"content_filter_results":{}}]}`, done),
			heard{Text: "Hi", Stop: llm.StopEnd},
		},
		"vLLM: reasoning": {
			sse(delta(`"reasoning":"h"`), delta(`"reasoning":"m"`), text("Hi"), finish("stop"), done),
			heard{Text: "Hi", Thoughts: "hm", Stop: llm.StopEnd},
		},
		"DeepSeek: reasoning_content": {
			sse(delta(`"content":null,"reasoning_content":"hm \ud83d"`), delta(`"content":null,"reasoning_content":"\ude00"`), text("Hi"), finish("stop"), done),
			heard{Text: "Hi", Thoughts: "hm 😀", Stop: llm.StopEnd},
		},
		"OpenRouter: reasoning twice": {
			sse(delta(`"reasoning":"hm","reasoning_details":[{"type":"reasoning.text","text":"hm"}]`), delta(`"reasoning_details":[{"type":"reasoning.summary","summary":"!"},{"type":"reasoning.encrypted","data":"x"}]`), text("Hi"), finish("stop"), done),
			heard{Text: "Hi", Thoughts: "hm!", Stop: llm.StopEnd},
		},
		"keepalives": {
			": OPENROUTER PROCESSING\r\n\r\n" + strings.ReplaceAll(sse(": keepalive", text("H"), "", "ping", "OK", text("i"), "{}", finish("stop"), done), "\n", "\r\n") + "event: ping\ndata: x\n\n",
			heard{Text: "Hi", Stop: llm.StopEnd},
		},
		"keepalives of other kinds": {
			sse("\u200b", "keep-alive", "{", "<!-- -->", "null", text("Hi"), "event: ping", finish("stop")),
			heard{Text: "Hi", Stop: llm.StopEnd},
		},
		"keepalives that are JSON": {
			sse("null", "[]", `"ping"`, "1", text("H"), "[null,1]", `["ping"]`, "true", text("i"), finish("stop"), done),
			heard{Text: "Hi", Stop: llm.StopEnd},
		},
		"fields of other types": {
			sse(`{"id":5,"created":1.5,"model":7,"usage":"","error":false,"choices":[{"index":"0","delta":{"content":"H","tool_calls":{}}}]}`,
				`{"error":{},"usage":[],"choices":[{"index":0,"delta":{"content":"i"}}]}`, finish("stop"), `{"choices":[],"usage":{"prompt_tokens":"10"}}`, done),
			heard{Text: "Hi", Stop: llm.StopEnd},
		},
		"a list of events": {
			sse("["+text("H")+","+text("i")+"]", finish("stop"), done),
			heard{Text: "Hi", Stop: llm.StopEnd},
		},
		"DONE without a reason to stop":        {sse(text("Hi"), done), heard{Text: "Hi", Stop: llm.StopEnd}},
		"DONE without a reason, after a call":  {sse(calls(`{"index":0,"id":"1","function":{"name":"read","arguments":"{\"path\":\"a\"}"}}`), done), heard{Uses: []string{readA}, Stop: llm.StopTools}},
		"DONE without a reason, only thoughts": {sse(delta(`"reasoning":"hm"`), done), heard{Thoughts: "hm", Stop: llm.StopEnd}},
		"a whole answer without a reason":      {`{"choices":[{"message":{"content":"Hi"}}]}`, heard{Text: "Hi", Stop: llm.StopEnd}},
		"arguments an object": {
			sse(calls(`{"index":0,"id":"1","function":{"name":"read","arguments":{"path":"a"}}}`), finish("tool_calls")),
			heard{Uses: []string{readA}, Stop: llm.StopTools},
		},
		"arguments with half a character": {
			sse(calls(`{"index":0,"id":"1","function":{"name":"read","arguments":"{\"path\":\"\ud83d"}}`), calls(`{"index":0,"function":{"arguments":"\ude00\"}"}}`), finish("tool_calls")),
			heard{Uses: []string{`read {"path":"😀"}`}, Stop: llm.StopTools},
		},
		"the old field of calls": {
			sse(delta(`"function_call":{"name":"read","arguments":"{\"pa"}`), delta(`"function_call":{"arguments":"th\":\"a\"}"}`), finish("function_call")),
			heard{Uses: []string{readA}, Stop: llm.StopTools},
		},
		"gpt-oss: name with the next token": {
			sse(calls(`{"index":0,"id":"1","function":{"name":"read<|channel|>commentary","arguments":"{\"path\":\"a\"}"}}`), finish("tool_calls")),
			heard{Uses: []string{readA}, Stop: llm.StopTools},
		},
		"Together: eos":         {sse(text("Hi"), finish("eos")), heard{Text: "Hi", Stop: llm.StopEnd}},
		"the window is full":    {sse(text("Hi"), finish("model_context_window_exceeded")), heard{Text: "Hi", Stop: llm.StopLength}},
		"the window, Mistral":   {sse(text("Hi"), finish("model_length")), heard{Text: "Hi", Stop: llm.StopLength}},
		"z.ai: sensitive":       {sse(text("Hi"), finish("sensitive")), heard{Text: "Hi", Stop: llm.StopRefusal}},
		"half a character":      {sse(delta(`"content":"a\ud83d"`), delta(`"content":"\ude00b"`), finish("stop")), heard{Text: "a😀b", Stop: llm.StopEnd}},
		"half a character last": {sse(delta(`"content":"Hi\ud83d"`), finish("stop")), heard{Text: "Hi\uFFFD", Stop: llm.StopEnd}},

		"Qwen Coder: element without its container": {
			sse(append(pieces("content", "<function=read>\n<parameter=path>\na\n</parameter>\n</function>\n</tool_call>", 5), finish("stop"), done)...),
			heard{Uses: []string{readA}, Stop: llm.StopTools},
		},
		"DeepSeek: DSML over three events": {
			sse(append(pieces("content", "Look.<｜DSML｜function_calls><｜DSML｜invoke name=\"read\"><｜DSML｜parameter name=\"path\" string=\"true\">a</｜DSML｜parameter></｜DSML｜invoke></｜DSML｜function_calls>", 60), finish("stop"), done)...),
			heard{Text: "Look.", Uses: []string{readA}, Stop: llm.StopTools},
		},
		"thought without a beginning":    {sse(append(pieces("content", "hm, hm\n</think>\n\nHi", 3), finish("stop"))...), heard{Text: "Hi", Thoughts: "hm, hm\n", Stop: llm.StopEnd}},
		"thought":                        {sse(append(pieces("content", "<think>hm</think>Hi", 4), finish("stop"))...), heard{Text: "Hi", Thoughts: "hm", Stop: llm.StopEnd}},
		"thoughts only":                  {sse(append(pieces("content", "<think>hm", 4), finish("stop"))...), heard{Thoughts: "hm", Stop: llm.StopEnd}},
		"Hermes: the server announces":   {sse(append(pieces("content", `<tool_call>{"name":"read","arguments":{"path":"a"}}</tool_call>`, 9), finish("tool_calls"))...), heard{Uses: []string{readA}, Stop: llm.StopTools}},
		"the server found the call too":  {sse(append(pieces("content", `<tool_call>{"name":"read","arguments":{"path":"a"}}</tool_call>`, 9), calls(`{"index":0,"id":"1","function":{"name":"read","arguments":"{\"path\":\"a\"}"}}`), finish("tool_calls"))...), heard{Uses: []string{readA}, Stop: llm.StopTools}},
		"name of the wire":               {sse(text(`<tool_call>{"name":"github__create_issue","arguments":{}}</tool_call>`), finish("stop")), heard{Uses: []string{`github:create_issue {}`}, Stop: llm.StopTools}},
		"tool that was not offered":      {sse(text("So:\n"), text(`<tool_call>{"name":"get_weather","arguments":{}}</tool_call>`), finish("stop")), heard{Text: "So:\n" + `<tool_call>{"name":"get_weather","arguments":{}}</tool_call>`, Streamed: "So:\n", Unmade: true, Stop: llm.StopEnd}},
		"call in a block of code":        {sse(append(pieces("content", "```\n<tool_call>{\"name\":\"read\",\"arguments\":{}}</tool_call>\n```", 7), finish("stop"))...), heard{Text: "```\n<tool_call>{\"name\":\"read\",\"arguments\":{}}</tool_call>\n```", Stop: llm.StopEnd}},
		"Kimi: call within its thoughts": {sse(append(pieces("reasoning_content", "hm <|tool_calls_section_begin|><|tool_call_begin|>functions.read:0<|tool_call_argument_begin|>{\"path\":\"a\"}<|tool_call_end|><|tool_calls_section_end|>", 11), finish("stop"))...), heard{Thoughts: "hm <|tool_calls_section_begin|><|tool_call_begin|>functions.read:0<|tool_call_argument_begin|>{\"path\":\"a\"}<|tool_call_end|><|tool_calls_section_end|>", Uses: []string{readA}, Stop: llm.StopTools}},
		"control tokens":                 {sse(text("Hi<|im_end|>"), text("</s>"), finish("stop")), heard{Text: "Hi", Stop: llm.StopEnd}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := hear(t, tt.body)
			want := tt.want
			if want.Streamed == "" {
				want.Streamed = want.Text
			}
			want.Progress = want.Thoughts
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestMalformedCallIsRead: a server that cannot read a call refuses the answer and says what the model wrote.
func TestMalformedCallIsRead(t *testing.T) {
	t.Parallel()
	for written, want := range map[string]heard{
		`<function=read>{"path":"a"}</function>`:                {Uses: []string{`read {"path":"a"}`}, Stop: llm.StopTools},
		`<function(read)>{"path": "a"}</function>`:              {Uses: []string{`read {"path": "a"}`}, Stop: llm.StopTools},
		`{"name": "read", "parameters": {"path": "a"}}`:         {Uses: []string{`read {"path": "a"}`}, Stop: llm.StopTools},
		`I would read it, but cannot.`:                          {Text: "I would read it, but cannot.", Unmade: true, Stop: llm.StopEnd},
		`<function=get_weather>{"city": "x"}</function>`:        {Text: `<function=get_weather>{"city": "x"}</function>`, Unmade: true, Stop: llm.StopEnd},
		`[read(path="a")]`:                                      {Uses: []string{`read {"path":"a"}`}, Stop: llm.StopTools},
		`<tool_call>{"name":"read","arguments":{"path":"a"}`:    {Uses: []string{`read {"name":"read","arguments":{"path":"a"}`}, Stop: llm.StopTools},
		"<|python_tag|>{\"name\":\"read\",\"parameters\":null}": {Uses: []string{`read {}`}, Stop: llm.StopTools},
	} {
		encoded, err := json.Marshal(written)
		if err != nil {
			t.Fatal(err)
		}
		refusal := `{"error":{"message":"Failed to call a function. Please adjust your prompt.","type":"invalid_request_error","code":"tool_use_failed","failed_generation":` + string(encoded) + `}}`
		for where, r := range map[string]reply{"status 400": {status: 400, body: refusal}, "event": {body: "event: error\ndata: " + refusal + "\n\n"}} {
			res, err := provider(t, serve(t, r), nil).Chat(t.Context(), hi(), func(string) { t.Error("something was streamed") })
			if err != nil {
				t.Fatalf("%s, %s: %v", where, written, err)
			}
			got := heard{Text: res.Text, Stop: res.Stop, Unmade: res.Unmade}
			for _, u := range res.Uses {
				got.Uses = append(got.Uses, u.Name+" "+string(u.Args))
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s, %s (-want +got):\n%s", where, written, diff)
			}
		}
	}
}

// TestOpenedThoughtIsExpected: once a thought has ended that had not begun, the next answer's is not shown at all.
func TestOpenedThoughtIsExpected(t *testing.T) {
	t.Parallel()
	s := serve(t, reply{body: sse(append(pieces("content", "hm, hm</think>Hi", 3), finish("stop"), done)...)})
	p := provider(t, s, nil)
	for turn, resets := range []int{1, 0} {
		req, got, streamed := hi(), 0, ""
		req.OnReset = func() { got++; streamed = "" }
		if _, err := p.Chat(t.Context(), req, func(d string) { streamed += d }); err != nil || got != resets || streamed != "Hi" {
			t.Errorf("turn %d: %d resets, streamed %q, %v", turn, got, streamed, err)
		}
	}
}

// TestThoughtsByName: of a model whose template is known to open a thought, nobody sees even the first one; if answers
// have none, they grow again after some.
func TestThoughtsByName(t *testing.T) {
	t.Parallel()
	const model = "Qwen/Qwen3-235B-A22B-Thinking-2507-FP8"
	memory := &dialect.Local{}
	named := func(o *openai.Options) { o.Model, o.Memory = model, memory }
	thinks := serve(t, reply{body: sse(append(pieces("content", "hm, hm</think>Hi", 3), finish("stop"), done)...)})
	req := hi()
	req.OnReset = func() { t.Error("a person saw thoughts") }
	if res, err := provider(t, thinks, named).Chat(t.Context(), req, func(string) {}); err != nil || res.Text != "Hi" || res.Thoughts != "hm, hm" {
		t.Fatalf("%+v, %v", res, err)
	}
	plain := provider(t, serve(t, reply{body: sse(append(pieces("content", "Hi, you there", 3), finish("stop"), done)...)}), named)
	for turn, grows := range []bool{false, false, false, true} {
		pieces, streamed := 0, ""
		if _, err := plain.Chat(t.Context(), hi(), func(d string) { pieces++; streamed += d }); err != nil || (pieces > 1) != grows || streamed != "Hi, you there" {
			t.Errorf("turn %d: %q grew in %d pieces, %v", turn, streamed, pieces, err)
		}
	}
	if l := memory.Recall("main", model); l == nil || l.Begins != dialect.BeginsText {
		t.Errorf("learnt %+v", l)
	}
}

// TestThoughtsLearnt: what the first answer showed is kept in the memory, also for a provider that begins anew.
func TestThoughtsLearnt(t *testing.T) {
	t.Parallel()
	memory := &dialect.Local{}
	s := serve(t, reply{body: sse(append(pieces("content", "hm, hm</think>Hi", 3), finish("stop"), done)...)})
	for turn, resets := range []int{1, 0, 0} {
		p := provider(t, s, func(o *openai.Options) { o.Memory = memory })
		req, got := hi(), 0
		req.OnReset = func() { got++ }
		if res, err := p.Chat(t.Context(), req, func(string) {}); err != nil || got != resets || res.Text != "Hi" {
			t.Errorf("turn %d: %d resets, %+v, %v", turn, got, res, err)
		}
	}
	if l := memory.Recall("main", "m"); l == nil || l.Begins != dialect.BeginsThought || l.Empty() {
		t.Errorf("learnt %+v", l)
	}
}

// TestBrokenOffAnywhere: a stream that ends at any byte is an answer or a failure, and nobody has seen markup or thoughts.
func TestBrokenOffAnywhere(t *testing.T) {
	t.Parallel()
	for name, content := range map[string]string{
		"thought": "<think>secret 😀</think>Hi there",
		"call":    "Look.\n<tool_call>{\"name\":\"read\",\"arguments\":{\"path\":\"secret\"}}</tool_call><|im_end|>",
		"element": "Look.\n<function=read>\n<parameter=path>\nsecret\n</parameter>\n</function>\n</tool_call>",
		"section": "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>read<｜tool▁sep｜>{\"path\":\"secret\"}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
		"harmony": "<|channel|>analysis<|message|>secret<|end|><|start|>assistant<|channel|>final<|message|>Hi there<|return|>",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			body := ": keepalive\n\n" + sse(append(pieces("content", content, 6), finish("stop"), done)...)
			for end := range len(body) {
				streamed := ""
				res, err := pipedProvider(t, io.NopCloser(strings.NewReader(body[:end]))).Chat(t.Context(), hi(), func(d string) { streamed += d })
				if strings.ContainsAny(streamed, "<|") || strings.Contains(streamed, "secret") {
					t.Fatalf("cut at %d: a person saw %q", end, streamed)
				}
				if err == nil && (res.Text != streamed || strings.HasSuffix(body[:end], `"delta":{`)) {
					t.Fatalf("cut at %d: %+v after %q", end, res, streamed)
				}
			}
		})
	}
}
