package mcp_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/zephbot/zephbot/tools/mcp"
	"github.com/zephbot/zephbot/tools/mcp/guard"
)

// TestForgottenSessions refuses a session as servers in use do after a restart. The call that was refused is made once
// more in a new session, without a notice, and so is each of many that had left together; other refusals are told. The
// words are from typescript-sdk (404; #1476), punkpeye/fastmcp#121 and samanhappy/mcphub#405 (also what the Python SDK
// says), mcphub#427, affine-mcp-server#301, OmniRoute#5957 and go-sdk.
func TestForgottenSessions(t *testing.T) {
	t.Parallel()
	rpc := func(code int, text string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","error":{"code":%d,"message":%q},"id":null}`, code, text)
	}
	text := regexp.MustCompile(`"text":"[^"]*"`)
	for name, c := range map[string]struct {
		status int
		body   string
		told   bool // to the caller, because it is no word about a session
	}{
		"TypeScript":         {404, rpc(-32001, "Session not found"), false},
		"Python and fastmcp": {400, rpc(-32000, "Bad Request: No valid session ID provided"), false},
		"plain Python":       {400, "Bad Request: No valid session ID provided", false},
		"affine":             {400, rpc(-32000, "Bad Request: No valid session ID or not an initialize request"), false},
		"TypeScript example": {400, rpc(-32000, "no session ID or not initialization request"), false},
		"mcphub":             {400, rpc(-32000, "Bad Request: Server not initialized"), false},
		"OmniRoute":          {404, rpc(-32000, "Not Found: Unknown Mcp-Session-Id header"), false},
		"Go":                 {404, "session not found\n", false},
		"nothing said":       {404, "", false},
		"bad arguments":      {400, rpc(-32602, "Bad Request: the text is too long"), true},
		"no word":            {400, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			one := hosted(t)
			h := streamable(func() *sdk.Server { return one }, false)
			var mu sync.Mutex
			refused, begun, executed := map[string]bool{}, 0, map[string]int{}
			var last string
			crowd := make(chan struct{}) // closed when so many calls as shall be refused together have come
			missing := 1
			cfg := web(t, "srv", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				id := r.Header.Get("Mcp-Session-Id")
				body, err := io.ReadAll(r.Body)
				if err != nil {
					t.Error(err)
				}
				r.Body = io.NopCloser(bytes.NewReader(body))
				called := bytes.Contains(body, []byte(`"tools/call"`))
				mu.Lock()
				if id == "" {
					begun++
				} else if last == "" || !refused[id] {
					last = id
				}
				gone, all := refused[id], crowd
				if called && gone {
					if missing--; missing == 0 {
						close(all)
					}
				} else if called {
					executed[text.FindString(string(body))]++
				}
				mu.Unlock()
				if gone {
					if called {
						select {
						case <-all:
						case <-r.Context().Done():
						}
					}
					w.WriteHeader(c.status)
					_, _ = io.WriteString(w, c.body)
					return
				}
				h.ServeHTTP(w, r)
			}))
			cfg.Protocol = "2025-11-25" // the newest has no sessions
			b := start(t, mcp.Options{Servers: []mcp.Server{cfg}})
			b.ready(t)
			b.want(t, "srv:echo", `{"text":"1"}`, "1")
			mu.Lock()
			refused[last], begun = true, 0
			mu.Unlock()
			if c.told {
				if _, _, err := b.call(t, "srv:echo", `{"text":"2"}`); err == nil {
					t.Error("the call was made again")
				}
				return
			}
			b.want(t, "srv:echo", `{"text":"2"}`, "2")
			mu.Lock()
			refused[last], crowd, missing = true, make(chan struct{}), 8
			clear(executed)
			mu.Unlock()
			var wg sync.WaitGroup
			for i := range 8 { // all of them have left when the first is refused
				wg.Go(func() { b.want(t, "srv:echo", fmt.Sprintf(`{"text":"%d"}`, i), fmt.Sprint(i)) })
			}
			wg.Wait()
			mu.Lock()
			defer mu.Unlock()
			if begun != 2 || len(executed) != 8 {
				t.Errorf("%d sessions were begun, executed: %v", begun, executed)
			}
			for call, n := range executed {
				if n != 1 {
					t.Errorf("%s was executed %d times", call, n)
				}
			}
			select {
			case n := <-b.notices:
				t.Errorf("a notice: %+v", n)
			default:
			}
		})
	}
}

// TestSessionForgottenAlways: a server that refuses each session after its handshake is asked twice, not for ever.
func TestSessionForgottenAlways(t *testing.T) {
	t.Parallel()
	one := hosted(t)
	h := streamable(func() *sdk.Server { return one }, false)
	var calls atomic.Int64
	cfg := web(t, "srv", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil && bytes.Contains(body, []byte(`"tools/call"`)) {
			calls.Add(1)
			http.Error(w, "session not found", http.StatusNotFound)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		h.ServeHTTP(w, r)
	}))
	cfg.Protocol = "2025-11-25"
	b := start(t, mcp.Options{Servers: []mcp.Server{cfg}})
	b.ready(t)
	_, _, err := b.call(t, "srv:echo", `{"text":"1"}`)
	if c, te := code(t, err); c != guard.Transient || calls.Load() != 2 {
		t.Errorf("%d calls, %s: %v", calls.Load(), c, te)
	}
}

// TestSlash follows a redirect that only adds a slash (Starlette answers so with 307) or takes one away, and keeps
// method, body and scheme. Others are refused as ever (TestRefused).
func TestSlash(t *testing.T) {
	t.Parallel()
	for _, status := range []int{301, 302, 307, 308} {
		for _, from := range []string{"/mcp", "/mcp/"} {
			t.Run(fmt.Sprint(status, from), func(t *testing.T) {
				t.Parallel()
				one := hosted(t)
				h := streamable(func() *sdk.Server { return one }, true)
				cfg := web(t, "srv", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.URL.Path == from {
						to := strings.TrimSuffix(from, "/")
						if to == from {
							to += "/"
						}
						w.Header().Set("Location", "https://"+r.Host+to) // a proxy in between, the other way round
						w.WriteHeader(status)
						return
					}
					h.ServeHTTP(w, r)
				}))
				cfg.URL += from
				b := start(t, mcp.Options{Servers: []mcp.Server{cfg}})
				b.ready(t)
				b.want(t, "srv:echo", `{"text":"1"}`, "1")
			})
		}
	}
	t.Run("for ever", func(t *testing.T) {
		t.Parallel()
		var n atomic.Int64
		cfg := web(t, "srv", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			n.Add(1)
			to := strings.TrimSuffix(r.URL.Path, "/")
			if to == r.URL.Path {
				to += "/"
			}
			w.Header().Set("Location", to)
			w.WriteHeader(http.StatusTemporaryRedirect)
		}))
		cfg.URL += "/mcp"
		b := start(t, mcp.Options{})
		if _, err := b.Add(t.Context(), cfg); err == nil || n.Load() > 20 {
			t.Errorf("%d requests, %v", n.Load(), err)
		}
	})
}

// oddAnswer answers as a server does that knows the protocol from hearsay.
func oddAnswer(request []byte) string {
	var req struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		Params struct {
			Name   string `json:"name"`
			Cursor string `json:"cursor"`
		} `json:"params"`
	}
	if json.Unmarshal(request, &req) != nil || len(req.ID) == 0 {
		return ""
	}
	what := `"error":{"code":-32601,"message":"no such method"}`
	switch req.Method {
	case "initialize":
		what = `"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"odd","version":"1"}}`
	case "tools/list":
		var list []string
		for name := range oddAnswers {
			list = append(list, `{"name":"`+name+`","inputSchema":{"type":"object"}}`)
		}
		what = `"result":{"tools":[` + strings.Join(list, ",") + `,{"name":5},"x"],"nextCursor":"again"}`
	case "tools/call":
		what = oddAnswers[req.Params.Name].wire
	}
	return `{"jsonrpc":"2.0","id":` + string(req.ID) + `,` + what + `}`
}

// oddAnswers are answers by tool, and what the model reads of them.
var oddAnswers = map[string]struct{ wire, text, fails string }{
	"kind":     {`"result":{"content":[{"type":"text","text":"before"},{"type":"video","url":"https://x.example/v"},{"type":"text","text":"after"}]}`, "before\n[a part of a kind that is not known here: {\"type\":\"video\",\"url\":\"https://x.example/v\"}]\nafter", ""},
	"base64":   {`"result":{"content":[{"type":"text","text":"here"},{"type":"image","mimeType":"image/png","data":"%%%"}]}`, "here\n[image: its data is not valid base64]", ""},
	"lenient":  {`"result":{"content":[{"type":"image","mimeType":"image/png","data":"data:image/png;base64,aG-k\nx_8"}]}`, "[image: image/png, 5 B]", ""},
	"blob":     {`"result":{"content":[{"type":"resource","resource":{"uri":"file:///y","blob":"aGk"}}]}`, "[resource: 2 B, file:///y]", ""},
	"no_list":  {`"result":{"content":{"type":"text","text":"alone"}}`, "alone", ""},
	"no_block": {`"result":{"content":"only words"}`, "only words", ""},
	"both":     {`"result":{"content":[{"type":"text","text":"3 files"}],"structuredContent":{"files":3}}`, "3 files\n{\"files\":3}", ""},
	"string":   {`"error":"the disk is full"`, "", "the disk is full"},
	"letters":  {`"error":{"code":"ENOSPC","message":"the disk is full"}`, "", "the disk is full"},
	"fine":     {`"result":{"content":[{"type":"text","text":"fine"}]}`, "fine", ""},
}

// TestOddAnswers: what a server says wrongly costs that item and nothing else, on every transport.
func TestOddAnswers(t *testing.T) {
	t.Parallel()
	handler := func(stream bool) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			text := oddAnswer(body)
			switch {
			case r.Method != http.MethodPost || err != nil:
				w.WriteHeader(http.StatusMethodNotAllowed)
			case text == "":
				w.WriteHeader(http.StatusAccepted)
			case stream:
				w.Header().Set("Content-Type", "text/event-stream")
				_, _ = fmt.Fprintf(w, ": a comment\n\nevent: message\r\ndata:%s\r\n\r\n", text)
			default:
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, text)
			}
		})
	}
	for name, cfg := range map[string]mcp.Server{
		"document": web(t, "srv", handler(false)), "stream": web(t, "srv", handler(true)), "stdio": stdio("srv", "odd"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := start(t, mcp.Options{Servers: []mcp.Server{cfg}})
			b.ready(t)
			for tool, want := range oddAnswers {
				res, _, err := b.call(t, "srv:"+tool, `{}`)
				switch {
				case want.fails == "" && (err != nil || res.Text != want.text):
					t.Errorf("%s: %+v, %v\n%s", tool, res, err, b.log)
				case want.fails != "" && (err == nil || !strings.Contains(err.Error(), want.fails)):
					t.Errorf("%s: %v", tool, err)
				}
			}
			b.want(t, "srv:fine", `{}`, "fine")
			select {
			case n := <-b.notices:
				t.Errorf("a notice: %+v", n)
			default:
			}
		})
	}
}

// serveOdd is the server of TestOddAnswers in a process of its own.
func serveOdd() {
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		if text := oddAnswer(in.Bytes()); text != "" {
			fmt.Fprintln(os.Stdout, text)
		}
	}
}

// FuzzMend mends what it is given: the result is valid JSON whenever the message was, and mending it again changes nothing.
func FuzzMend(f *testing.F) {
	for _, a := range oddAnswers {
		f.Add(`{"jsonrpc":"2.0","id":1,` + a.wire + `}`)
	}
	f.Add(`{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":5}]}}`)
	f.Fuzz(func(t *testing.T, message string) {
		mended, _ := mcp.Mend([]byte(message))
		if json.Valid([]byte(message)) && !json.Valid(mended) {
			t.Fatalf("%q", mended)
		}
		if again, faults := mcp.Mend(mended); len(faults) > 0 || !bytes.Equal(again, mended) {
			t.Fatalf("%q, then %q: %v", mended, again, faults)
		}
	})
}
