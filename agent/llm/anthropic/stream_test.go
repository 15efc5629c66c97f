package anthropic_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/anthropic"
)

// TestStreamForms: a stream has the same meaning in every form that the rules of server-sent events allow.
func TestStreamForms(t *testing.T) {
	t.Parallel()
	plain := stream("end_turn", text(0, "a \u2028 <b>"), text(1, " & c"))
	var bare strings.Builder // without event names
	for line := range strings.Lines(plain) {
		if !strings.HasPrefix(line, "event:") {
			bare.WriteString(line)
		}
	}
	for name, body := range map[string]string{
		"plain":          plain,
		"CRLF":           strings.ReplaceAll(plain, "\n", "\r\n"),
		"no blank":       strings.NewReplacer("data: ", "data:", "event: ", "event:").Replace(plain),
		"bare":           bare.String(),
		"comments":       ": keep-alive\n\n" + strings.ReplaceAll(plain, "data:", ":\nid: 7\nretry: 1\ndata:"),
		"several lines":  strings.ReplaceAll(plain, `{"type"`, "{\ndata: \"type\""),
		"new events":     sse(`{"type":"what_comes_next","x":1}`) + plain,
		"no end":         strings.TrimSuffix(plain, "\n\n"),
		"blank lines":    "\n\n" + strings.ReplaceAll(plain, "\n\n", "\n\n\n\n"),
		"only its names": "event: ping\n\n" + plain,
		"keepalives":     "data: : keepalive\n\ndata: []\n\ndata: null\n\ndata: \"ping\"\n\ndata: 1\n\nevent: ping\ndata:\n\ndata: OK\n\n" + strings.ReplaceAll(plain, "\n\n", "\n\ndata: ping\n\n"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			said := ""
			res, err := provider(t, serve(t, reply{body: body}), nil).Chat(t.Context(), hi(), func(s string) { said += s })
			if want := "a \u2028 <b> & c"; err != nil || res.Text != want || said != want || res.Stop != llm.StopEnd {
				t.Errorf("%+v, %v, said %q", res, err, said)
			}
		})
	}
}

// TestStreamGarbled: input that is not an event of the API is reported, not ignored.
func TestStreamGarbled(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		body string
		kind llm.Kind
		text string
	}{
		"half an event":    {"data: {\"type\":\"content_blo\n\n", llm.Truncated, "not as the API describes it"},
		"web page":         {"\n<html><title>Sign in</title></html>", llm.WrongAddress, "base_url"},
		"hidden refusal":   {`{"base_resp":{"status_code":1008,"status_msg":"insufficient balance"}}`, llm.NoCredit, "insufficient balance"},
		"error, no type":   {"data: {\"error\":{\"type\":\"overloaded_error\",\"message\":\"busy\"}}\n\n", llm.Unavailable, "busy"},
		"another JSON":     {"data: [1]\n\n", llm.Truncated, "stop_reason"},
		"event of numbers": {"data: {\"type\":1}\n\n", llm.Truncated, "not as the API describes it"},
		"cut in an event":  {"data: {\"type\":\"mess", llm.Truncated, "stop_reason"},
		"error by name":    {"event: error\ndata: Overloaded\n\n", llm.Unavailable, "Overloaded"},
		"error by type":    {"data: {\"type\":\"error\",\"error\":{\"type\":\"rate_limit_error\",\"message\":\"slow\"}}\n\n", llm.RateLimited, "slow"},
		"too many blocks":  {sse(append([]string{begin}, text(300, "x")...)...), llm.Truncated, "begins after"},
		"one endless line": {"data: " + strings.Repeat("x", 5<<20), llm.Oversize, "too large"},
		"an endless event": {strings.Repeat("data: "+strings.Repeat("x", 1<<20)+"\n", 5), llm.Oversize, "too large"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := provider(t, serve(t, reply{body: tt.body}), nil).Chat(t.Context(), hi(), nil)
			if e, ok := errors.AsType[*llm.Error](err); !ok || e.Kind != tt.kind || !strings.Contains(e.Error(), tt.text) {
				t.Errorf("%v, want %s with %q", err, tt.kind, tt.text)
			}
		})
	}
}

// piped answers every request with one body.
type piped string

func (p piped) RoundTrip(req *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(string(p))), Request: req}, nil
}

// FuzzStream: whatever a server sends, a call ends with an answer that has a stop reason, or with an error of ours.
func FuzzStream(f *testing.F) {
	f.Add(stream("tool_use", text(0, "x"), use(1, "a", "read", `{"a":`, `1}`)))
	f.Add(stream("end_turn") + "data: {\"type\":\"error\"}\n\n")
	f.Add("event: error\r\ndata: x\r\n\r\ndata:\n:\n\ndata: {}\n\n")
	f.Fuzz(func(t *testing.T, body string) {
		p, err := anthropic.New(anthropic.Options{Name: "main", Key: key, Model: "m", HTTPClient: &http.Client{Transport: piped(body)}})
		if err != nil {
			t.Fatal(err)
		}
		said := ""
		res, err := p.Chat(t.Context(), hi(), func(s string) { said += s })
		if err != nil {
			if _, ok := errors.AsType[*llm.Error](err); !ok {
				t.Errorf("error %v", err)
			}
			return
		}
		if res.Text != said || res.Stop == "" {
			t.Errorf("%+v, said %q", res, said)
		}
	})
}

// piece is an event with a piece of block 0.
func piece(kind, field, source string) string {
	return `{"type":"content_block_delta","index":0,"delta":{"type":"` + kind + `","` + field + `":"` + source + `"}}`
}

// TestOddStreams: what servers with this API stream besides what it describes.
func TestOddStreams(t *testing.T) {
	t.Parallel()
	block := func(kind string) string {
		return `{"type":"content_block_start","index":0,"content_block":{"type":"` + kind + `"}}`
	}
	for name, tt := range map[string]struct {
		body           string
		text, thoughts string
		use            string
		stop           llm.Stop
	}{
		"half a character":       {sse(begin, block("text"), piece("text_delta", "text", `x\ud83d`), piece("text_delta", "text", `\ude00`), stop("end_turn"), end), "x😀", "", "", llm.StopEnd},
		"thinking":               {sse(begin, block("thinking"), piece("thinking_delta", "thinking", "hm"), `{"type":"content_block_start","index":1,"content_block":{"type":"text","text":"Hi"}}`, stop("end_turn"), end), "Hi", "hm", "", llm.StopEnd},
		"thought in the text":    {stream("end_turn", text(0, "<think>hm</think>Hi")), "Hi", "hm", "", llm.StopEnd},
		"thought not opened":     {stream("end_turn", text(0, "hm</think>Hi")), "Hi", "hm", "", llm.StopEnd},
		"call in the text":       {stream("end_turn", text(0, `<minimax:tool_call><invoke name="read"><parameter name="path">x</parameter></invoke></minimax:tool_call>`)), "", "", `read {"path":"x"}`, llm.StopTools},
		"control tokens":         {stream("end_turn", text(0, "Hi<|im_end|>")), "Hi", "", "", llm.StopEnd},
		"no reason to stop":      {sse(begin, block("text"), piece("text_delta", "text", "Hi"), end), "Hi", "", "", llm.StopEnd},
		"DONE instead of an end": {sse(begin, block("text"), piece("text_delta", "text", "Hi")) + "data: [DONE]\n\n", "Hi", "", "", llm.StopEnd},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			req, streamed, progress := hi(), "", ""
			req.Tools = []llm.Tool{{Name: "read"}}
			req.OnReset, req.OnThought = func() { streamed = "" }, func(text string) { progress += text }
			res, err := provider(t, serve(t, reply{body: tt.body}), nil).Chat(t.Context(), req, func(s string) { streamed += s })
			if err != nil {
				t.Fatal(err)
			}
			use := ""
			for _, u := range res.Uses {
				use += u.Name + " " + string(u.Args)
			}
			if res.Text != tt.text || streamed != tt.text || res.Thoughts != tt.thoughts || progress != tt.thoughts || use != tt.use || res.Stop != tt.stop {
				t.Errorf("%+v, streamed %q, progress %q", res, streamed, progress)
			}
		})
	}
}
