package decode_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/policy/act"
	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/decode"
	"github.com/zephbot/zephbot/tools/shell"
)

const fetchSchema = `{"type":"object","additionalProperties":false,"required":["url"],"properties":{
	"url":{"type":"string","minLength":1},
	"limit":{"type":"integer","minimum":1,"maximum":10},
	"kind":{"type":"string","enum":["check","clippy"]},
	"deep":{"type":"boolean"},
	"tags":{"type":"array","maxItems":2,"items":{"type":"object","required":["name"],"properties":{"name":{"type":"string"}}}},
	"options":{"type":"object","additionalProperties":false,"required":["depth"],"properties":{"depth":{"type":"integer"},"assignee":{"type":["string","null"]},"label":{"type":"string"}}},
	"range":{"anyOf":[{"type":"string"},{"type":"object","required":["from"],"properties":{"from":{"type":"integer"}}}]},
	"code":{"type":"string","pattern":"^[a-z]+$"}
}}`

// list returns a registry of tools by name, in order.
func list(t testing.TB, defs ...tools.Definition) *tools.Registry {
	t.Helper()
	r := &tools.Registry{}
	for _, d := range defs {
		err := r.Add(tools.Tool{Definition: d, Run: func(context.Context, *tools.Call) (*tools.Result, error) { return &tools.Result{}, nil }})
		if err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// walk passes a call through the stage and returns the arguments behind it; "" when it was stopped.
func walk(t testing.TB, r *tools.Registry, o decode.Options, call *tools.Call) (string, *tools.Error) {
	t.Helper()
	return through(t, decode.New(r, o), call)
}

func through(t testing.TB, stage tools.Middleware, call *tools.Call) (string, *tools.Error) {
	t.Helper()
	if call.Trail == nil {
		call.Trail = &tools.Trail{}
	}
	arrived := ""
	_, err := stage(func(_ context.Context, c *tools.Call) (*tools.Result, error) {
		arrived = string(c.Args)
		return &tools.Result{}, nil
	})(t.Context(), call)
	if err == nil {
		return arrived, nil
	}
	var e *tools.Error
	if !errors.As(err, &e) {
		t.Fatalf("got %T %v, want *tools.Error", err, err)
	}
	return arrived, e
}

func TestArguments(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, args string
		want       string // canonical form, or:
		category   tools.Category
		message    string
	}{
		{name: "canonical", args: ` {"limit": 3, "url" : "a<b>&" } `, want: `{"limit":3,"url":"a<b>&"}`},
		{name: "number as written", args: `{"url":"a","limit":1.0}`, want: `{"limit":1.0,"url":"a"}`},
		{name: "escapes are resolved", args: `{"\u0075rl":"\u00e4"}`, want: `{"url":"ä"}`},
		{name: "missing", args: `{}`, category: tools.InvalidParameters, message: "missing required field: url"},
		{name: "empty text", args: ``, category: tools.InvalidParameters, message: "missing required field: url"},
		{name: "null", args: `null`, category: tools.InvalidParameters, message: "missing required field: url"},
		{name: "missing and misspelt", args: `{"ulr":"x"}`, category: tools.InvalidParameters, message: "missing required field: url; unknown field: ulr (did you mean url?)"},
		{name: "unknown", args: `{"url":"x","colour":1}`, category: tools.InvalidParameters, message: "unknown field: colour (known fields: code, deep, kind, limit, options, range, tags, url)"},
		{name: "nested missing", args: `{"url":"x","options":{}}`, category: tools.InvalidParameters, message: "missing required field: options.depth"},
		{name: "nested unknown", args: `{"url":"x","options":{"depth":1,"labell":"a"}}`, category: tools.InvalidParameters, message: "unknown field: options.labell (did you mean label?)"},
		{name: "in a list", args: `{"url":"x","tags":[{"name":"a"},{}]}`, category: tools.InvalidParameters, message: "missing required field: tags[1].name"},
		{name: "wrong type", args: `{"url":7}`, category: tools.TypeMismatch, message: "field url: want string, got number"},
		{name: "text is no number", args: `{"url":"x","limit":"5"}`, category: tools.TypeMismatch, message: "field limit: want integer, got string"},
		{name: "fraction", args: `{"url":"x","limit":2.5}`, category: tools.TypeMismatch, message: "field limit: want integer, got number"},
		{name: "two types", args: `{"url":1,"deep":"yes"}`, category: tools.TypeMismatch, message: "field deep: want boolean, got string; field url: want string, got number"},
		{name: "either type", args: `{"url":"x","range":5}`, category: tools.TypeMismatch, message: "field range: want string or object, got number"},
		{name: "right form, wrong inside", args: `{"url":"x","range":{}}`, category: tools.InvalidParameters, message: "missing required field: range.from"},
		{name: "enum", args: `{"url":"x","kind":"lint"}`, category: tools.InvalidParameters, message: `field kind: want one of "check", "clippy", got "lint"`},
		{name: "minimum", args: `{"url":"x","limit":0}`, category: tools.InvalidParameters, message: "field limit: want at least 1, got 0"},
		{name: "maximum", args: `{"url":"x","limit":11}`, category: tools.InvalidParameters, message: "field limit: want at most 10, got 11"},
		{name: "length", args: `{"url":""}`, category: tools.InvalidParameters, message: "field url: want at least 1 characters, got 0"},
		{name: "items", args: `{"url":"x","tags":[{"name":"a"},{"name":"a"},{"name":"a"}]}`, category: tools.InvalidParameters, message: "field tags: want at most 2 items, got 3"},
		{name: "pattern", args: `{"url":"x","code":"A1"}`, category: tools.InvalidParameters, message: `field code: want text that matches ^[a-z]+$, got "A1"`},
		{name: "optional null is dropped", args: `{"url":"x","limit":null,"kind":null,"options":{"depth":1,"label":null}}`, want: `{"options":{"depth":1},"url":"x"}`},
		{name: "null that is wanted stays", args: `{"url":"x","options":{"depth":1,"assignee":null}}`, want: `{"options":{"assignee":null,"depth":1},"url":"x"}`},
		{name: "required null", args: `{"url":null}`, category: tools.TypeMismatch, message: "field url: want string, got null"},
		{name: "null dropped, the rest still wrong", args: `{"url":"x","limit":null,"deep":1}`, category: tools.TypeMismatch, message: "field deep: want boolean, got number"},
		{name: "list", args: `[1]`, category: tools.TypeMismatch, message: "the arguments must be a JSON object, got array"},
		{name: "text", args: `"{}"`, category: tools.TypeMismatch, message: "the arguments must be a JSON object, got string"},
		{name: "cut short", args: `{"url":"x`, category: tools.InvalidParameters, message: `the arguments are not JSON: unexpected end of JSON input at byte 9, near "{\"url\":\"x"`},
		{name: "not JSON", args: `{"url":x}`, category: tools.InvalidParameters, message: `the arguments are not JSON: invalid character 'x' looking for beginning of value at byte 8, near "{\"url\":x}"`},
		{name: "two objects", args: `{"url":"x"}{}`, category: tools.InvalidParameters, message: `the arguments are not JSON: invalid character '{' after top-level value at byte 12, near "{\"url\":\"x\"}{}"`},
		{name: "not JSON, as a journal keeps it", args: `"{\"url\": get the page of ünïcödé people}"`, category: tools.InvalidParameters, message: `the arguments are not JSON: invalid character 'g' looking for beginning of value at byte 9, near "{\"url\": get the pag"`},
		{name: "words", args: `"get it"`, category: tools.InvalidParameters, message: `the arguments are not JSON: invalid character 'g' looking for beginning of value at byte 1, near "get it"`},
		{name: "blank", args: `" "`, category: tools.TypeMismatch, message: "the arguments must be a JSON object, got string"},
		{name: "twice", args: `{"url":"x","\u0075rl":"y"}`, category: tools.InvalidParameters, message: "field url is given twice"},
		{name: "twice inside", args: `{"url":"x","tags":[{"name":"a","name":"b"}]}`, category: tools.InvalidParameters, message: "field tags[0].name is given twice"},
		{name: "broken UTF-8", args: "{\"url\":\"\xff\"}", category: tools.InvalidParameters, message: "the arguments are not valid UTF-8 at byte 8"},
		{name: "huge exponent", args: `{"url":"x","limit":1e999999999}`, category: tools.InvalidParameters, message: "field limit: the number 1e999999999 is out of range"},
		{name: "thinking is ours", args: `{"url":"x","thinking":"hm"}`, want: `{"url":"x"}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			r := list(t, tools.Definition{Name: "fetch", Schema: json.RawMessage(fetchSchema)})
			got, e := walk(t, r, decode.Options{}, &tools.Call{Tool: "fetch", Args: json.RawMessage(tc.args)})
			var problem tools.Error
			if e != nil {
				problem = *e
			}
			if (e == nil && got != tc.want) || problem.Category != tc.category || problem.Message != tc.message {
				t.Errorf("got %s, %s: %s\nwant %s, %s: %s", got, problem.Category, problem.Message, tc.want, tc.category, tc.message)
			}
		})
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	r := list(t, tools.Definition{Name: "any", Schema: json.RawMessage(`{"type":"object"}`)})
	nested := func(n int) string { return `{"a":` + strings.Repeat("[", n-1) + strings.Repeat("]", n-1) + `}` }
	for _, tc := range []struct {
		name, args, want string
	}{
		{"deep enough", nested(64), ""},
		{"too deep", nested(65), "the arguments are nested deeper than 64 levels"},
		{"big enough", `{"a":"` + strings.Repeat("x", 1<<20-8) + `"}`, ""},
		{"too big", `{"a":"` + strings.Repeat("x", 1<<20-7) + `"}`, "the arguments have 1048577 bytes; at most 1048576 are allowed"},
		{"long number", `{"a":` + strings.Repeat("1", 401) + `}`, "field a: a number of 401 characters is too long"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got, e := walk(t, r, decode.Options{}, &tools.Call{Tool: "any", Args: json.RawMessage(tc.args)})
			switch {
			case tc.want == "" && e != nil:
				t.Errorf("refused: %v", e)
			case tc.want == "" && got != tc.args:
				t.Errorf("the arguments changed: %d bytes, want %d", len(got), len(tc.args))
			case tc.want != "" && (e == nil || e.Message != tc.want):
				t.Errorf("got %v, want %s", e, tc.want)
			}
		})
	}
}

func TestSchemasOfOthers(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, schema, args string
		want               string // canonical, or:
		message            string
	}{
		{name: "look-ahead does not compile: the server checks it", schema: `{"type":"object","properties":{"a":{"type":"string","pattern":"(?!x)y"}}}`, args: `{"a":"z"}`, want: `{"a":"z"}`},
		{name: "look-ahead does not compile: the rest is checked", schema: `{"type":"object","properties":{"a":{"type":"string","pattern":"(?!x)y"}}}`, args: `{"a":1}`, message: "field a: want string, got number"},
		{name: "reference to a file is not followed", schema: `{"type":"object","properties":{"a":{"$ref":"file:///etc/passwd"}}}`, args: `{"a":1}`, want: `{"a":1}`},
		{name: "draft-07 without $schema", schema: `{"type":"object","properties":{"a":{"type":"array","items":[{"type":"string"}]}}}`, args: `{"a":[1]}`, message: "field a[0]: want string, got number"},
		{name: "local reference", schema: `{"type":"object","properties":{"a":{"$ref":"#/$defs/n"}},"$defs":{"n":{"type":"integer"}}}`, args: `{"a":"x"}`, message: "field a: want integer, got string"},
		{name: "not as false", schema: `{"type":"object","properties":{"path":{"type":"string"}},"additionalProperties":{"not":{}}}`, args: `{"pth":"x"}`, message: "unknown field: pth (did you mean path?)"},
		{name: "false schema", schema: `{"type":"object","properties":{"a":false}}`, args: `{"a":1}`, message: "field a is not allowed here"},
		{name: "open schema keeps thinking", schema: `{"type":"object"}`, args: `{"thinking":"x"}`, want: `{"thinking":"x"}`},
		{name: "own thinking", schema: `{"type":"object","properties":{"thinking":{"type":"string"}},"additionalProperties":false}`, args: `{"thinking":"x"}`, want: `{"thinking":"x"}`},
		{name: "no JSON at all", schema: `nonsense`, args: `{"a":1}`, want: `{"a":1}`},
		{name: "no schema", schema: ``, args: `{"a":1}`, want: `{"a":1}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			r := list(t, tools.Definition{Name: "srv:t", Server: "srv", Schema: json.RawMessage(tc.schema)})
			got, e := walk(t, r, decode.Options{}, &tools.Call{Tool: "srv:t", Args: json.RawMessage(tc.args)})
			switch {
			case tc.message == "" && (e != nil || got != tc.want):
				t.Errorf("got %s, %v; want %s", got, e, tc.want)
			case tc.message != "" && (e == nil || e.Message != tc.message):
				t.Errorf("got %s, %v; want %s", got, e, tc.message)
			}
		})
	}
}

func TestThinkingIsStrippedWhereItWasAdded(t *testing.T) {
	t.Parallel()
	r := list(t, tools.Definition{Name: "open", Schema: json.RawMessage(`{"type":"object"}`)})
	o := decode.Options{Thinking: func(d tools.Definition) bool { return d.Name == "open" }}
	got, e := walk(t, r, o, &tools.Call{Tool: "open", Args: json.RawMessage(`{"thinking":"secret plan","a":1}`)})
	if e != nil || got != `{"a":1}` {
		t.Errorf("got %s, %v", got, e)
	}
}

func TestRefusedCallIsLoggedWithoutThinking(t *testing.T) {
	t.Parallel()
	r := list(t, tools.Definition{Name: "fetch", Schema: json.RawMessage(fetchSchema)})
	call := &tools.Call{Tool: "fetch", Args: json.RawMessage(`{"thinking":"secret plan","limit":1}`)}
	if _, e := walk(t, r, decode.Options{}, call); e == nil {
		t.Fatal("passed without url")
	}
	if string(call.Args) != `{"limit":1}` {
		t.Errorf("the audit would see %s", call.Args)
	}
}

func TestResolve(t *testing.T) {
	t.Parallel()
	read := tools.Definition{Name: "read", Schema: json.RawMessage(`{"type":"object"}`)}
	defs := []tools.Definition{read, {Name: "bash", Says: act.Of(shell.Says(), "bash")}, {Name: "secret_tool"}, {Name: "shadow"}, {Name: "github:issues", Server: "github"}}
	hidden := func(name string) bool { return name == "secret_tool" }
	for _, tc := range []struct {
		name, tool, definition string
		category               tools.Category
		message, suggestion    string
	}{
		{name: "known", tool: "read"},
		{name: "known and unchanged", tool: "read", definition: read.Hash()},
		{name: "changed", tool: "read", definition: "0123", category: tools.PermanentFailure, message: "the tool has changed since it was offered"},
		{name: "gone", tool: "reed", definition: read.Hash(), category: tools.PermanentFailure, message: "the tool reed is no longer available"},
		{name: "misspelt", tool: "raed", category: tools.ToolNotFound, message: `there is no tool named "raed"`, suggestion: "Did you mean read? Check the name against the list of available tools."},
		{name: "alias", tool: "shell", category: tools.ToolNotFound, message: `there is no tool named "shell"`, suggestion: "Did you mean bash? Check the name against the list of available tools."},
		{name: "bare name", tool: "issues", category: tools.ToolNotFound, message: `there is no tool named "issues"`, suggestion: "Did you mean github:issues? Check the name against the list of available tools."},
		{name: "hidden is not named", tool: "secret_tol", category: tools.ToolNotFound, message: `there is no tool named "secret_tol"`},
		{name: "denied is not named", tool: "shado", category: tools.ToolNotFound, message: `there is no tool named "shado"`},
		{name: "nothing like it", tool: "teleport", category: tools.ToolNotFound, message: `there is no tool named "teleport"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			call := &tools.Call{Tool: tc.tool, Definition: tc.definition, Tools: tools.Only(func(name string) bool { return !hidden(name) })}
			_, e := walk(t, list(t, defs...), decode.Options{Hides: func(d tools.Definition) bool { return d.Name == "shadow" }}, call)
			if tc.category == "" {
				if e != nil {
					t.Fatalf("refused: %v", e)
				}
				if diff := cmp.Diff(read, call.Def); diff != "" {
					t.Errorf("definition (-want +got):\n%s", diff)
				}
				return
			}
			if e == nil || e.Category != tc.category || e.Message != tc.message || (tc.category == tools.ToolNotFound && e.Suggestion != tc.suggestion) {
				t.Errorf("got %+v", e)
			}
		})
	}
}

func FuzzDecode(f *testing.F) {
	for _, s := range []string{`{}`, `{"url":"x"}`, `{"url":null,"tags":[{"name":null}]}`, `{"a":{"a":{"a":1e400}}}`, `{"a":1,"a":2}`, "\xff", `{"\ud800":"\udfff"}`, `{"url":"x","options":{"depth":-0.0}}`} {
		f.Add(s)
	}
	r := list(f, tools.Definition{Name: "fetch", Schema: json.RawMessage(fetchSchema)}, tools.Definition{Name: "open", Schema: json.RawMessage(`{"type":"object"}`)})
	stage := decode.New(r, decode.Options{})
	f.Fuzz(func(t *testing.T, args string) {
		for _, tool := range []string{"fetch", "open"} {
			got, e := through(t, stage, &tools.Call{Tool: tool, Args: json.RawMessage(args)})
			if e != nil {
				if e.Message == "" || !e.Category.Quality() {
					t.Fatalf("%q: error %+v", args, e)
				}
				continue
			}
			if !json.Valid([]byte(got)) {
				t.Fatalf("%q became %q, which is no JSON", args, got)
			}
			again, e := through(t, stage, &tools.Call{Tool: tool, Args: json.RawMessage(got)})
			if e != nil || again != got {
				t.Fatalf("%q: the canonical form %q is not stable: %q, %v", args, got, again, e)
			}
		}
	})
}
