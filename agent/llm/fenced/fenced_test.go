package fenced_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"path"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/fenced"
)

// model answers with prepared pieces and records the request.
type model struct {
	pieces []string
	res    llm.Response // Text is filled in if it is empty
	err    error
	resets int // how often it starts over before it answers
	got    *llm.Request
}

func (m *model) Name() string { return "plain" }

func (m *model) Chat(_ context.Context, req *llm.Request, onDelta func(string)) (*llm.Response, error) {
	m.got = req
	for range m.resets {
		onDelta("void\n```bash\nrm -rf void\n```\n```ba")
		req.OnReset()
	}
	res := m.res
	text := ""
	for _, p := range m.pieces {
		text += p
		if onDelta != nil {
			onDelta(p)
		}
	}
	if m.err != nil {
		return nil, m.err
	}
	if res.Text == "" {
		res.Text = text
	}
	if res.Stop == "" {
		res.Stop = llm.StopEnd
	}
	return &res, nil
}

func offered(names ...string) *llm.Request {
	req := &llm.Request{Messages: []llm.Message{{Role: llm.User, Text: "go"}}}
	for _, name := range names {
		req.Tools = append(req.Tools, llm.Tool{Name: name, Schema: json.RawMessage(`{"type":"object"}`)})
	}
	return req
}

func all() *llm.Request { return offered("bash", "web_scrape", "read") }

// ask sends a text in pieces and returns the answer and what was shown.
func ask(t *testing.T, req *llm.Request, stop llm.Stop, pieces ...string) (*llm.Response, string) {
	t.Helper()
	shown := ""
	res, err := fenced.New(&model{pieces: pieces, res: llm.Response{Stop: stop}}, fenced.Options{}).
		Chat(t.Context(), req, func(d string) { shown += d })
	if err != nil {
		t.Fatal(err)
	}
	return res, shown
}

func flat(uses []llm.ToolUse) []string {
	var list []string
	for _, u := range uses {
		list = append(list, u.Name+" "+string(u.Args))
	}
	return list
}

const ls = "```bash\nls -l\n```\n"

func TestBlocks(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, answer string
		text         string
		uses         []string
		stop         llm.Stop // of the model
	}{
		{name: "no block", answer: "Hello `bash`\n\nworld\n", text: "Hello `bash`\n\nworld\n"},
		{name: "bash", answer: "I look.\n" + ls + "Then on.", text: "I look.\nThen on.", uses: []string{`bash {"command":"ls -l"}`}},
		{name: "several lines", answer: "```bash\ncd x\n\n  make <a >b && c\n```", uses: []string{`bash {"command":"cd x\n\n  make <a >b && c"}`}},
		{name: "end without a line feed", answer: "```bash\nls\n```", uses: []string{`bash {"command":"ls"}`}},
		{name: "empty", answer: "```bash\n```\n", uses: []string{`bash {"command":""}`}},
		{name: "CRLF", answer: "a\r\n```bash\r\nls\r\npwd\r\n```\r\nb", text: "a\r\nb", uses: []string{`bash {"command":"ls\npwd"}`}},
		{name: "tildes", answer: "~~~bash\necho '```'\n~~~~ \n", uses: []string{"bash {\"command\":\"echo '```'\"}"}},
		{name: "blank before the word", answer: "``` bash\t\nls\n```", uses: []string{`bash {"command":"ls"}`}},
		{name: "longer", answer: "`````bash\n```\n````\n`````\n", uses: []string{"bash {\"command\":\"```\\n````\"}"}},
		{name: "indented by three", answer: "   ```bash\n   if x\n     y\n z\n ```\n", uses: []string{`bash {"command":"if x\n  y\nz"}`}},
		{name: "indented by four", answer: "    ```bash\n    ls\n    ```\n", text: "    ```bash\n    ls\n    ```\n"},
		{name: "indented by a tab", answer: "\t```bash\n\tls\n\t```\n", text: "\t```bash\n\tls\n\t```\n"},
		{name: "closing fence indented by four", answer: "```bash\nls\n    ```\n```\n", uses: []string{"bash {\"command\":\"ls\\n    ```\"}"}},
		{name: "closing fence of another kind", answer: "```bash\nls\n~~~\n```\n", uses: []string{`bash {"command":"ls\n~~~"}`}},
		{name: "closing fence with a word", answer: "```bash\nls\n```bash\npwd\n```\n", uses: []string{"bash {\"command\":\"ls\\n```bash\\npwd\"}"}},
		{name: "quoted", answer: "> ```bash\n> ls\n> ```\n", text: "> ```bash\n> ls\n> ```\n"},
		{name: "in a list", answer: "- ```bash\n  ls\n  ```\n", text: "- ```bash\n  ls\n  ```\n"},
		{name: "within a line", answer: "Use ```bash\nls\n```\n", text: "Use ```bash\nls\n```\n"},
		{name: "another language", answer: "```sh\nls\n```\n```python\nx\n```\n", text: "```sh\nls\n```\n```python\nx\n```\n"},
		{name: "no language", answer: "```\n" + "ls\n```\n", text: "```\nls\n```\n"},
		{name: "two words", answer: "```bash title=x\nls\n```\n", text: "```bash title=x\nls\n```\n"},
		{name: "capitals", answer: "```Bash\nls\n```\n", text: "```Bash\nls\n```\n"},
		{name: "longer word", answer: "```bashrc\nls\n```\n", text: "```bashrc\nls\n```\n"},
		{name: "two backticks", answer: "``bash\nls\n``\n", text: "``bash\nls\n``\n"},
		{name: "backtick in the word", answer: "```bash`\nls\n```\n", text: "```bash`\nls\n```\n"},
		{name: "example within a longer fence", answer: "````markdown\n" + ls + "````\n", text: "````markdown\n" + ls + "````\n"},
		{name: "example within tildes", answer: "~~~\n" + ls + "~~~\n" + ls, text: "~~~\n" + ls + "~~~\n", uses: []string{`bash {"command":"ls -l"}`}},
		{name: "example within another language", answer: "```text\n```bash\nls\n```\n", text: "```text\n```bash\nls\n```\n"},
		{name: "opening line too long", answer: "```" + strings.Repeat(" ", 250) + "bash\nls\n```\n", text: "```" + strings.Repeat(" ", 250) + "bash\nls\n```\n"},
		{name: "opening line not too long", answer: "```" + strings.Repeat(" ", 249) + "bash\nls\n```\n", uses: []string{`bash {"command":"ls"}`}},
		{name: "unterminated", answer: "a\n```bash\nrm -rf /", text: "a\n```bash\nrm -rf /"},
		{name: "unterminated, whole line", answer: "a\n```bash\nrm -rf /\n", text: "a\n```bash\nrm -rf /\n"},
		{name: "unterminated, cut", answer: "a\n```bash\nrm -rf /", text: "a\n```bash\nrm -rf /", stop: llm.StopLength},
		{name: "nothing but the opener", answer: "```bash", text: "```bash"},
		{name: "shorter closing fence", answer: "````bash\nls\n```\n", text: "````bash\nls\n```\n"},
		{name: "cut in the closing line", answer: "```bash\ncat >x <<E\n```", text: "```bash\ncat >x <<E\n```", stop: llm.StopLength},
		{name: "cut after the closing line", answer: ls + "And", text: "And", uses: []string{`bash {"command":"ls -l"}`}, stop: llm.StopLength},
		{name: "cut in the second", answer: ls + "```bash\nrm", text: "```bash\nrm", uses: []string{`bash {"command":"ls -l"}`}, stop: llm.StopLength},
		{
			name: "scrape", answer: "```scrape\n{\"url\": \"https://a\", \"select\": \"h1\"}\n```\n",
			uses: []string{`web_scrape {"url": "https://a", "select": "h1"}`},
		},
		{
			name: "scrape lines", answer: "```scrape\nurl: https://a?b=c:d\n\nselect = a[href=\"x\"]\nextract text\nlimit: 5\n```\n",
			uses: []string{`web_scrape {"extract":"text","limit":5,"select":"a[href=\"x\"]","url":"https://a?b=c:d"}`},
		},
		{name: "scrape nonsense", answer: "```scrape\nget it\n```\n", uses: []string{`web_scrape get it`}},
		{name: "scrape twice", answer: "```scrape\nurl: a\nurl: b\n```\n", uses: []string{"web_scrape url: a\nurl: b"}},
		{name: "tool", answer: "```tool\n{\"name\": \"read\", \"arguments\": {\"path\": \"a\"}}\n```\n", uses: []string{`read {"path": "a"}`}},
		{
			name: "several, one a line", answer: "```tool\n{\"name\":\"read\",\"arguments\":{\"path\":\"a\"}}\n{\"name\":\"bash\",\"arguments\":{\"command\":\"ls\"}}\n```\n",
			uses: []string{`read {"path":"a"}`, `bash {"command":"ls"}`},
		},
		{name: "array", answer: "```tool\n[{\"name\":\"read\"},\n {\"name\":\"read\",\"arguments\":null}]\n```\n", uses: []string{`read {}`, `read {}`}},
		{name: "arguments as a string", answer: "```tool\n{\"name\":\"read\",\"arguments\":\"{\\\"path\\\":1}\"}\n```", uses: []string{`read {"path":1}`}},
		{name: "parameters", answer: "```tool\n{\"name\":\"read\",\"parameters\":{\"path\":1}}\n```", uses: []string{`read {"path":1}`}},
		{name: "arguments of another type", answer: "```tool\n{\"name\":\"read\",\"arguments\":[1]}\n```", uses: []string{`read [1]`}},
		{name: "tool_id and params", answer: "```tool\n{\"tool_id\":\"read\",\"params\":{\"path\":\"a\"}}\n```", uses: []string{`read {"path":"a"}`}},
		{name: "tool_id alone", answer: "```tool\n{\"tool_id\":\"read\"}\n```", uses: []string{`read {}`}},
		{name: "name and tool_id", answer: "```tool\n{\"name\":\"read\",\"tool_id\":\"x\",\"params\":{}}\n```", uses: []string{`read {"name":"read","tool_id":"x","params":{}}`}},
		{name: "other fields", answer: "```tool\n{\"name\":\"read\",\"path\":1}\n```", uses: []string{`read {"name":"read","path":1}`}},
		{name: "nobody offered it", answer: "```tool\n{\"name\":\"fly\",\"arguments\":{}}\n```", uses: []string{`fly {}`}},
		{name: "malformed", answer: "```tool\n{\"name\":\"read\",\"arguments\":{\"path\":\n```\n", uses: []string{"read {\"name\":\"read\",\"arguments\":{\"path\":"}},
		{name: "second malformed", answer: "```tool\n{\"name\":\"read\"}\n{\"name\":\n```\n", uses: []string{"read {\"name\":\"read\"}\n{\"name\":"}},
		{name: "no name", answer: "```tool\n{\"arguments\":{}}\n```", uses: []string{`tool {"arguments":{}}`}},
		{name: "name of another type", answer: "```tool\n{\"name\":7}\n```", uses: []string{`tool {"name":7}`}},
		{name: "not JSON", answer: "```tool\nread a\n```", uses: []string{`tool read a`}},
		{name: "number", answer: "```tool\n7\n```", uses: []string{`tool 7`}},
		{name: "nothing", answer: "```tool\n\n```", uses: []string{`tool {}`}},
		{name: "empty array", answer: "```tool\n[]\n```", uses: []string{`tool []`}},
		{name: "refused", answer: ls + "I will not.", text: "I will not.", stop: llm.StopRefusal},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			res, shown := ask(t, all(), tt.stop, tt.answer)
			want := tt.stop
			switch {
			case len(tt.uses) > 0:
				want = llm.StopTools
			case want == "":
				want = llm.StopEnd
			}
			if res.Text != tt.text || shown != tt.text || res.Stop != want {
				t.Errorf("text %q, shown %q, stop %s; want %q and %s", res.Text, shown, res.Stop, tt.text, want)
			}
			if diff := cmp.Diff(tt.uses, flat(res.Uses)); diff != "" {
				t.Errorf("uses (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOfferedTools(t *testing.T) {
	t.Parallel()
	answer := ls + "```scrape\nurl: a\n```\n" + "```tool\n{\"name\":\"bash\",\"arguments\":{}}\n```\n"
	tests := []struct {
		name string
		req  *llm.Request
		text string
		uses []string
	}{
		{"none: all is text", offered(), answer, nil},
		{"bash is not offered", offered("read", "web_scrape"), ls, []string{`web_scrape {"url":"a"}`, `bash {}`}},
		{"web_scrape is not offered", offered("bash"), "```scrape\nurl: a\n```\n", []string{`bash {"command":"ls -l"}`, `bash {}`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			res, shown := ask(t, tt.req, llm.StopEnd, answer)
			if res.Text != tt.text || shown != tt.text {
				t.Errorf("text %q, shown %q, want %q", res.Text, shown, tt.text)
			}
			if diff := cmp.Diff(tt.uses, flat(res.Uses)); diff != "" {
				t.Errorf("uses (-want +got):\n%s", diff)
			}
		})
	}
}

// awkward contains all kinds of lines; every way of cutting it must give the same result.
const awkward = "Intro ``` x\n``\n   ```bash\r\n   ls SECRET\r\n   ```\r\nmid\n`````tool\n```\n{\"name\":\"SECRET\"}\n`````\n" +
	"````md\n```bash\nshown\n```\n````\n    ```bash\n~~~ tool \n{\"name\":\"read\",\"arguments\":{\"SECRET\":1}}\n~~~\n" +
	"```basil\nx\n```\n``\n ```scrape\nurl: SECRET\n```\n`end ```bash\n~~~bash\nö SECRET\n~~~ \n```ba\nshown\n```\n```bash\nleft open"

func TestAnyChunking(t *testing.T) {
	t.Parallel()
	want, shown := ask(t, all(), llm.StopEnd, awkward)
	if len(want.Uses) != 5 || shown != want.Text || strings.Contains(shown, "SECRET") || !strings.HasSuffix(shown, "```bash\nleft open") {
		t.Fatalf("uses %q, shown %q", flat(want.Uses), shown)
	}
	check := func(t *testing.T, pieces []string) {
		t.Helper()
		got, shown := ask(t, all(), llm.StopEnd, pieces...)
		if diff := cmp.Diff(want, got); diff != "" || shown != want.Text {
			t.Errorf("pieces %q: shown %q, answer (-whole +pieces):\n%s", pieces, shown, diff)
		}
	}
	for i := range len(awkward) {
		check(t, []string{awkward[:i], awkward[i:]})
	}
	for size := 1; size < 40; size++ {
		var pieces []string
		for rest := awkward; rest != ""; {
			n := min(size, len(rest))
			pieces, rest = append(pieces, rest[:n]), rest[n:]
		}
		check(t, pieces)
	}
}

// TestShownSoFar checks what a person sees after each piece: never a part of a call, and everything that cannot become
// one.
func TestShownSoFar(t *testing.T) {
	t.Parallel()
	steps := []struct{ piece, shown string }{
		{"Look", "Look"},
		{":\n", "Look:\n"},
		{"`", "Look:\n"},
		{"``ba", "Look:\n"},
		{"r", "Look:\n```bar"},
		{" baz\ncode", "Look:\n```bar baz\ncode"},
		{"\n```", "Look:\n```bar baz\ncode\n```"},
		{"\n  ", "Look:\n```bar baz\ncode\n```\n"},
		{"`x`", "Look:\n```bar baz\ncode\n```\n  `x`"},
		{"\n```bash", "Look:\n```bar baz\ncode\n```\n  `x`\n"},
		{"\nls\n``", "Look:\n```bar baz\ncode\n```\n  `x`\n"},
		{"`", "Look:\n```bar baz\ncode\n```\n  `x`\n"},
		{"\nDone", "Look:\n```bar baz\ncode\n```\n  `x`\nDone"},
	}
	var pieces []string
	for _, s := range steps {
		pieces = append(pieces, s.piece)
	}
	at, shown := 0, ""
	m := &spy{pieces: pieces, after: func(i int) {
		at = i
		if shown != steps[i].shown {
			t.Errorf("after %q: shown %q, want %q", steps[i].piece, shown, steps[i].shown)
		}
	}}
	if _, err := fenced.New(m, fenced.Options{}).Chat(t.Context(), all(), func(d string) { shown += d }); err != nil || at != len(steps)-1 {
		t.Errorf("error %v after step %d", err, at)
	}
}

// spy calls after when a piece has been taken.
type spy struct {
	pieces []string
	after  func(i int)
}

func (s *spy) Name() string { return "spy" }

func (s *spy) Chat(_ context.Context, _ *llm.Request, onDelta func(string)) (*llm.Response, error) {
	for i, p := range s.pieces {
		onDelta(p)
		s.after(i)
	}
	return &llm.Response{Text: strings.Join(s.pieces, ""), Stop: llm.StopEnd}, nil
}

func TestBound(t *testing.T) {
	t.Parallel()
	call := func(i int) string { return fmt.Sprintf(`{"name":"read","arguments":{"n":%d}}`, i) }
	var objects []string
	for i := range 3 {
		objects = append(objects, call(i))
	}
	list := strings.Join(objects, "\n")
	p := fenced.New(&model{pieces: []string{ls + "```tool\n" + list + "\n```\n" + ls + "between\n" + ls}}, fenced.Options{MaxUses: 3})
	if p.Name() != "plain" {
		t.Errorf("name = %q", p.Name())
	}
	res, err := p.Chat(t.Context(), all(), nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{`bash {"command":"ls -l"}`, "read " + list, `bash {"command":"ls -l"}`}
	if diff := cmp.Diff(want, flat(res.Uses)); diff != "" || res.Text != "between\n"+ls {
		t.Errorf("text %q, uses (-want +got):\n%s", res.Text, diff)
	}
	many, _ := ask(t, all(), llm.StopEnd, strings.Repeat(ls, fenced.DefaultMaxUses+2))
	if len(many.Uses) != fenced.DefaultMaxUses || many.Text != ls+ls {
		t.Errorf("%d uses, text %q", len(many.Uses), many.Text)
	}
}

func TestIDs(t *testing.T) {
	t.Parallel()
	m := &model{
		pieces: []string{ls + ls + ls},
		res:    llm.Response{Uses: []llm.ToolUse{{ID: "block_2", Name: "read"}}, Stop: llm.StopTools, Usage: llm.Usage{Input: 3}, Provider: "plain", USD: 1},
	}
	res, err := fenced.New(m, fenced.Options{}).Chat(t.Context(), all(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, u := range res.Uses {
		ids = append(ids, u.ID)
	}
	if diff := cmp.Diff([]string{"block_2", "block_1", "block_3", "block_4"}, ids); diff != "" {
		t.Errorf("ids (-want +got):\n%s", diff)
	}
	if res.Usage.Input != 3 || res.Provider != "plain" || res.USD != 1 || res.Text != "" {
		t.Errorf("answer = %+v", res)
	}
}

func TestStopWithoutCalls(t *testing.T) {
	t.Parallel()
	if res, _ := ask(t, all(), llm.StopTools, "text"); res.Stop != llm.StopEnd {
		t.Errorf("stop = %s", res.Stop)
	}
	if res, _ := ask(t, all(), llm.StopLength, "text"); res.Stop != llm.StopLength {
		t.Errorf("stop = %s", res.Stop)
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name     string
		pieces   []string
		err      error
		streamed bool
		shown    string
	}{
		{"text was shown", []string{"a\n```bash\nls"}, &llm.Error{Kind: llm.Truncated, Provider: "plain", Streamed: true}, true, "a\n"},
		{"all was held back", []string{"```bash\nls"}, &llm.Error{Kind: llm.Truncated, Provider: "plain", Streamed: true}, false, ""},
		{"nothing came", nil, &llm.Error{Kind: llm.Truncated, Provider: "plain"}, false, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			shown := ""
			_, err := fenced.New(&model{pieces: tt.pieces, err: tt.err}, fenced.Options{}).Chat(t.Context(), all(), func(d string) { shown += d })
			var e *llm.Error
			if !errors.As(err, &e) || e.Kind != llm.Truncated || e.Streamed != tt.streamed || shown != tt.shown {
				t.Errorf("error = %#v, shown %q", err, shown)
			}
		})
	}
	if _, err := fenced.New(&model{err: context.Canceled}, fenced.Options{}).Chat(t.Context(), all(), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("error = %v, want the context's", err)
	}
}

func TestStartingOver(t *testing.T) {
	t.Parallel()
	m := &model{pieces: []string{"fresh\n" + ls}, resets: 2}
	req, shown := all(), ""
	req.OnReset = func() { shown = "" }
	res, err := fenced.New(m, fenced.Options{}).Chat(t.Context(), req, func(d string) { shown += d })
	if err != nil || shown != "fresh\n" || res.Text != shown || len(res.Uses) != 1 {
		t.Errorf("answer %+v, %v, shown %q", res, err, shown)
	}
	m.resets = 0
	if _, err := fenced.New(m, fenced.Options{}).Chat(t.Context(), all(), nil); err != nil || m.got.OnReset != nil {
		t.Error("a caller who cannot start over got a provider that believes so")
	}
}

// TestTextThatWasNotStreamed: the whole answer counts, whether it was streamed or not.
func TestTextThatWasNotStreamed(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		pieces []string
		shown  string
	}{
		{"nothing", nil, "a\nb"},
		{"the beginning", []string{"a\n```ba"}, "a\nb"},
		{"something else", []string{"x"}, "x"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			shown := ""
			m := &model{pieces: tt.pieces, res: llm.Response{Text: "a\n" + ls + "b"}}
			res, err := fenced.New(m, fenced.Options{}).Chat(t.Context(), all(), func(d string) { shown += d })
			if err != nil || res.Text != "a\nb" || len(res.Uses) != 1 || shown != tt.shown {
				t.Errorf("answer %+v, %v, shown %q", res, err, shown)
			}
		})
	}
}

// TestExecutesNothing: the package cannot start a program, open a file or use the network, because it imports nothing
// that can. A block can only become a use, and only the chain executes uses.
func TestExecutesNothing(t *testing.T) {
	t.Parallel()
	allowed := map[string]bool{
		"bytes": true, "context": true, "encoding/json": true, "errors": true, "fmt": true, "io": true, "reflect": true, "regexp": true, "slices": true,
		"strconv": true, "strings": true, "unicode": true, "unicode/utf8": true, "github.com/zephbot/zephbot/agent/llm": true, "github.com/zephbot/zephbot/agent/llm/history": true,
	}
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	files := 0
	for _, e := range entries {
		if path.Ext(e.Name()) != ".go" || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		files++
		f, err := parser.ParseFile(token.NewFileSet(), e.Name(), nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, spec := range f.Imports {
			if name, err := strconv.Unquote(spec.Path.Value); err != nil || !allowed[name] {
				t.Errorf("%s imports %s", e.Name(), spec.Path.Value)
			}
		}
	}
	if files == 0 {
		t.Error("no source file found")
	}
}
