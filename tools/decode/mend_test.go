package decode_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/decode"
)

// quoted returns how a journal keeps arguments that are not JSON.
func quoted(t testing.TB, text string) json.RawMessage {
	t.Helper()
	raw, err := json.Marshal(text)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestMend(t *testing.T) {
	t.Parallel()
	r := list(t, tools.Definition{Name: "open", Schema: json.RawMessage(`{"type":"object"}`)}, tools.Definition{Name: "fetch", Schema: json.RawMessage(fetchSchema)})
	for _, tc := range []struct {
		name, tool, text string
		want             string // "" = refused
	}{
		{name: "an object written as a text", text: `{"a":1}`, want: `{"a":1}`},
		{name: "trailing commas", text: `{"a":[1,2,],"b":{"c":true,},}`, want: `{"a":[1,2],"b":{"c":true}}`},
		{name: "two commas", text: `{"a":1,,}`},
		{name: "only a comma", text: `{,}`},
		{name: "single quotes", text: `{'a': 'say "hi"', 'b': 'it\'s \u00e4'}`, want: `{"a":"say \"hi\"","b":"it's ä"}`},
		{name: "an apostrophe", text: `{'a': 'it's'}`},
		{name: "quotes within quotes", text: `{"a": "say "hi" to her"}`},
		{name: "quotes of two kinds", text: `{'a': "it's"}`, want: `{"a":"it's"}`},
		{name: "line ends in texts", text: "{\"a\": \"one\ntwo\r\n\tthree\"}", want: `{"a":"one\ntwo\r\n\tthree"}`},
		{name: "a quote forgotten before a line end", text: "{\"a\": \"one,\n \"b\": \"two\"}"},
		{name: "another control", text: "{\"a\": \"\x07\", }"},
		{name: "fence", text: "```json\n{\"a\":1}\n```", want: `{"a":1}`},
		{name: "fence without a name", text: " ```\n{\"a\":1,}```\n", want: `{"a":1}`},
		{name: "fence of something else", text: "```python\n{\"a\":1}\n```"},
		{name: "fence that does not end", text: "```json\n{\"a\":1}"},
		{name: "fence in one line", text: "```{\"a\":1}```"},
		{name: "words around", text: "Here it is: {\"a\":1}"},
		{name: "words after", text: "{\"a\":1} please"},
		{name: "a bracket is missing", text: `{"a":"x"`, want: `{"a":"x"}`},
		{name: "brackets are missing", text: `{"a":[{"b":"x"`, want: `{"a":[{"b":"x"}]}`},
		{name: "after a list", text: `{"a":["x","y"]`, want: `{"a":["x","y"]}`},
		{name: "after a word", text: `{"a":true`, want: `{"a":true}`},
		{name: "half a word", text: `{"a":tru`},
		{name: "half a number?", text: `{"a":12`},
		{name: "a number with a bracket behind it", text: `{"a":[12]`, want: `{"a":[12]}`},
		{name: "half a text", text: `{"a":"x`},
		{name: "after a comma", text: `{"a":"x",`},
		{name: "after a colon", text: `{"a":`},
		{name: "after a name", text: `{"a"`},
		{name: "missing within, or at the end?", text: `{"a":{"b":"x","c":"y"}`},
		{name: "missing within the list, or at the end?", text: `{"a":[["x","y"]]`, want: ""},
		{name: "in a list: within, or at the end?", text: `{"a":[{"b":"x","c":"y"}`},
		{name: "the wrong bracket", text: `{"a":[1}`},
		{name: "a bracket too many", text: `{"a":1}}`},
		{name: "names without quotes", text: `{a: "x"}`},
		{name: "values without quotes", text: `{"a": x}`},
		{name: "another language", text: `{"a": True, "b": None}`},
		{name: "a comment", text: "{\"a\": 1, // one\n}"},
		{name: "twice", text: `{"a":1,"a":2,}`},
		{name: "no object", text: `[1,]`},
		{name: "a strange escape", text: `{'a': '\x41'}`},
		{name: "half an escape", text: `{'a': '\`},
		{name: "a broken escape", text: `{'a': '\u00'}`},
		{name: "too deep", text: strings.Repeat(`{"a":`, 70) + `1,`},
		{name: "nothing", text: `{`},
		{name: "fits the schema", tool: "fetch", text: `{'url': 'x', 'thinking': 'hm',}`, want: `{"url":"x"}`},
		{name: "does not fit the schema", tool: "fetch", text: `{'url': 7}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			for _, args := range []json.RawMessage{quoted(t, tc.text), json.RawMessage(tc.text)} {
				tool := tc.tool
				if tool == "" {
					tool = "open"
				}
				call := &tools.Call{Tool: tool, Args: args}
				got, e := walk(t, r, decode.Options{}, call)
				if got != tc.want || (e == nil) != (tc.want != "") {
					t.Errorf("%s became %s, %v; want %s", args, got, e, tc.want)
				}
				if e != nil && string(call.Args) != string(args) && tc.text != `{"a":1,"a":2,}` {
					t.Errorf("the call was changed to %s", call.Args)
				}
			}
		})
	}
}

// letters returns what mending must not change: everything except JSON punctuation and the letters of escapes.
func letters(text string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(" \t\r\n\"'\\,{}[]`nrtu", r) {
			return -1
		}
		return r
	}, text)
}

func FuzzMend(f *testing.F) {
	for _, s := range []string{"{'a': 'b',}", "```json\n{\"a\": \"x\ny\"", `{"a":[{"b":1},{"c":[true,null`, `{"a":"it's",'b':"\"'}`, `{"a":-0.5e3 `} {
		f.Add(s)
	}
	r := list(f, tools.Definition{Name: "open", Schema: json.RawMessage(`{"type":"object"}`)})
	stage := decode.New(r, decode.Options{})
	f.Fuzz(func(t *testing.T, text string) {
		got, e := through(t, stage, &tools.Call{Tool: "open", Args: quoted(t, text)})
		if e != nil {
			return
		}
		if !json.Valid([]byte(got)) || !strings.HasPrefix(got, "{") {
			t.Fatalf("%q became %q", text, got)
		}
		var wrote map[string]any
		if json.Unmarshal([]byte(text), &wrote) == nil {
			var read map[string]any
			if err := json.Unmarshal([]byte(got), &read); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(wrote, read); diff != "" {
				t.Fatalf("%q was valid, and changed:\n%s", text, diff)
			}
			return
		}
		// escapes are resolved and fences fall off: compared above where the text is JSON
		if strings.ContainsAny(text, "\\`") {
			return
		}
		count := map[rune]int{}
		for _, c := range letters(text) {
			count[c]++
		}
		for _, c := range letters(got) { // the order of fields changes
			count[c]--
		}
		for c, n := range count {
			if n != 0 {
				t.Fatalf("%q became %q: %q is %d times lost", text, got, c, n)
			}
		}
	})
}

// notebook is a Memory that survives the stage.
type notebook struct {
	mu        sync.Mutex
	notes     map[string]string
	read, put error
}

func (n *notebook) Recall(_ context.Context, session, call string) (string, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.notes[session+"/"+call], n.read
}

func (n *notebook) Remember(_ context.Context, session, call, args string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.put != nil {
		return n.put
	}
	if n.notes == nil {
		n.notes = map[string]string{}
	}
	n.notes[session+"/"+call] = args
	return nil
}

// corrector is a Reformat that counts.
type corrector struct {
	mu    sync.Mutex
	asked []string // what it was shown
	say   string
	err   error
	then  func() // before it answers; may be nil
}

func (c *corrector) correct(_ context.Context, def tools.Definition, _ *tools.Call, args json.RawMessage, problem *tools.Error) (json.RawMessage, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = append(c.asked, def.Name+" "+string(args)+" "+string(problem.Category))
	if c.then != nil {
		c.then()
	}
	return json.RawMessage(c.say), c.err
}

func TestReformat(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, tool, args string
		say              string
		err              error
		asked            string // "" = not asked
		want             string // canonical arguments, or:
		message          string
		category         tools.Category
	}{
		{name: "not needed", tool: "fetch", args: `{"url":"x"}`, want: `{"url":"x"}`},
		{name: "mended here", tool: "fetch", args: `"{'url':'x'}"`, want: `{"url":"x"}`},
		{name: "type", tool: "fetch", args: `{"limit":"5","url":"x","thinking":"secret"}`, say: ` {"url":"x","limit": 5,"thinking":"hm"}`, asked: `fetch {"limit":"5","url":"x"} type_mismatch`, want: `{"limit":5,"url":"x"}`},
		{name: "unknown field", tool: "fetch", args: `{"link":"x"}`, say: `{"url":"x"}`, asked: `fetch {"link":"x"} invalid_parameters`, want: `{"url":"x"}`},
		{name: "words", tool: "fetch", args: `"the page x"`, say: `{"url":"x"}`, asked: `fetch the page x invalid_parameters`, want: `{"url":"x"}`},
		{name: "a list", tool: "fetch", args: `["x"]`, say: `{"url":"x"}`, asked: `fetch ["x"] type_mismatch`, want: `{"url":"x"}`},
		{name: "no better", tool: "fetch", args: `{}`, say: `{"link":"x"}`, asked: `fetch {} invalid_parameters`, message: "missing required field: url", category: tools.InvalidParameters},
		{name: "no JSON", tool: "fetch", args: `{}`, say: `url: x`, asked: `fetch {} invalid_parameters`, message: "missing required field: url", category: tools.InvalidParameters},
		{name: "fails", tool: "fetch", args: `{}`, err: errors.New("away"), asked: `fetch {} invalid_parameters`, message: "missing required field: url", category: tools.InvalidParameters},
		{name: "no such tool", tool: "fitch", args: `{}`, message: `there is no tool named "fitch"`, category: tools.ToolNotFound},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			r := list(t, tools.Definition{Name: "fetch", Schema: json.RawMessage(fetchSchema)})
			c, memory := &corrector{say: tc.say, err: tc.err}, &notebook{}
			// the answer is asked for once, and stays the same
			for _, what := range []string{"first", "probe", "after a restart"} {
				call := &tools.Call{ID: "c1_0", Tool: tc.tool, Args: json.RawMessage(tc.args), Probe: what == "probe", Origin: tools.Origin{Session: "s"}}
				got, e := walk(t, r, decode.Options{Reformat: c.correct, Memory: memory}, call)
				if e != nil {
					if e.Message != tc.message || e.Category != tc.category || got != "" {
						t.Errorf("%s: %s, %v", what, got, e)
					}
				} else if got != tc.want || string(call.Args) != tc.want {
					t.Errorf("%s: got %s, want %s", what, got, tc.want)
				}
				if strings.Join(c.asked, "|") != tc.asked {
					t.Errorf("%s: asked %v, want %s", what, c.asked, tc.asked)
				}
			}
		})
	}
}

func TestReformatOff(t *testing.T) {
	t.Parallel()
	r := list(t, tools.Definition{Name: "fetch", Schema: json.RawMessage(fetchSchema)})
	if _, e := walk(t, r, decode.Options{Memory: &notebook{read: errors.New("not asked")}}, &tools.Call{ID: "x", Tool: "fetch", Args: []byte(`{}`)}); e == nil || e.Message != "missing required field: url" {
		t.Errorf("got %v", e)
	}
}

// TestReformatOfWhatIsDenied: no model is asked to correct a call that would be denied with any arguments.
func TestReformatOfWhatIsDenied(t *testing.T) {
	t.Parallel()
	r := list(t, tools.Definition{Name: "fetch", Schema: json.RawMessage(fetchSchema)})
	fetch := func(name string) bool { return name == "fetch" }
	for name, tc := range map[string]struct {
		hides func(tools.Definition) bool
		tools *tools.Overlay
	}{"by the policy": {func(d tools.Definition) bool { return fetch(d.Name) }, nil}, "in this chat": {nil, tools.Only(func(name string) bool { return !fetch(name) })}} {
		c := &corrector{say: `{"url":"x"}`}
		call := &tools.Call{ID: "c1_0", Tool: "fetch", Args: []byte(`{}`), Tools: tc.tools}
		if _, e := walk(t, r, decode.Options{Reformat: c.correct, Hides: tc.hides}, call); e == nil || len(c.asked) != 0 {
			t.Errorf("%s: %v, asked %v", name, e, c.asked)
		}
	}
}

// TestReformatWithoutMemory remembers within the process, for calls that have a name.
func TestReformatWithoutMemory(t *testing.T) {
	t.Parallel()
	r := list(t, tools.Definition{Name: "fetch", Schema: json.RawMessage(fetchSchema)})
	c := &corrector{say: `{"url":"x"}`}
	stage := decode.New(r, decode.Options{Reformat: c.correct})
	for _, tc := range []struct {
		session, id string
		asked       int
	}{{"s", "c1_0", 1}, {"s", "c1_0", 1}, {"s", "c1_1", 2}, {"t", "c1_0", 3}, {"s", "", 4}, {"s", "", 5}} {
		got, e := through(t, stage, &tools.Call{ID: tc.id, Tool: "fetch", Args: []byte(`{}`), Origin: tools.Origin{Session: tc.session}})
		if e != nil || got != `{"url":"x"}` || len(c.asked) != tc.asked {
			t.Errorf("%+v: %s, %v, asked %d times", tc, got, e, len(c.asked))
		}
	}
}

func TestReformatAndTheStore(t *testing.T) {
	t.Parallel()
	r := list(t, tools.Definition{Name: "fetch", Schema: json.RawMessage(fetchSchema)})
	away := errors.New("away")
	call := func() *tools.Call {
		return &tools.Call{ID: "c1_0", Tool: "fetch", Args: []byte(`{"link":"x"}`), Origin: tools.Origin{Session: "s"}}
	}
	c := &corrector{say: `{"url":"x"}`}
	if _, e := walk(t, r, decode.Options{Reformat: c.correct, Memory: &notebook{read: away}}, call()); e == nil || e.Category != tools.ServerError || !errors.Is(e, away) || len(c.asked) != 0 {
		t.Errorf("unreadable: %v, asked %v", e, c.asked)
	}
	unwritten := call()
	if _, e := walk(t, r, decode.Options{Reformat: c.correct, Memory: &notebook{put: away}}, unwritten); e == nil || e.Category != tools.InvalidParameters || string(unwritten.Args) != `{"link":"x"}` {
		t.Errorf("unwritable: %v, %s", e, unwritten.Args)
	}
	// A stored result is validated like all arguments, because the tool may have changed since.
	spoilt := &notebook{notes: map[string]string{"s/c1_0": `{"url":7}`}}
	if _, e := walk(t, r, decode.Options{Reformat: c.correct, Memory: spoilt}, call()); e == nil || e.Category != tools.InvalidParameters {
		t.Errorf("spoilt: %v", e)
	}
}

// TestReformatCancelled: a call that is cut off meanwhile has not used up its attempt.
func TestReformatCancelled(t *testing.T) {
	t.Parallel()
	r := list(t, tools.Definition{Name: "fetch", Schema: json.RawMessage(fetchSchema)})
	ctx, cancel := context.WithCancel(t.Context())
	c, memory := &corrector{err: context.Canceled, then: cancel}, &notebook{}
	stage := decode.New(r, decode.Options{Reformat: c.correct, Memory: memory})
	handler := stage(func(context.Context, *tools.Call) (*tools.Result, error) { return &tools.Result{}, nil })
	_, err := handler(ctx, &tools.Call{ID: "c1_0", Tool: "fetch", Args: []byte(`{}`)})
	if e := tools.AsError(err); e.Category != tools.Cancelled || len(memory.notes) != 0 {
		t.Errorf("got %v, remembered %v", err, memory.notes)
	}
	memory.read = errors.New("away with the context")
	if _, err := handler(ctx, &tools.Call{ID: "c1_0", Tool: "fetch", Args: []byte(`{}`)}); tools.AsError(err).Category != tools.Cancelled {
		t.Errorf("got %v", err)
	}
}
