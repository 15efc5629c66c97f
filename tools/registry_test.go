package tools_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"

	"github.com/zephbot/zephbot/policy/act"
	"github.com/zephbot/zephbot/tools"
)

func nothing(context.Context, *tools.Call) (*tools.Result, error) { return &tools.Result{}, nil }

func tool(name string) tools.Tool {
	server, _, qualified := strings.Cut(name, ":")
	d := tools.Definition{Name: name}
	if qualified {
		d.Server = server
	}
	return tools.Tool{Definition: d, Run: nothing}
}

func TestRegistryOrder(t *testing.T) {
	t.Parallel()
	r, err := tools.NewRegistry(tool("read"), tool("z:a"), tool("bash"), tool("a:z"), tool("edit"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"read", "bash", "edit", "a:z", "z:a"}, r.Names()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	before := r.Definitions()
	r.Remove("bash")
	r.Remove("never there")
	if err := r.Add(tool("m:m")); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"read", "edit", "a:z", "m:m", "z:a"}, r.Names()); diff != "" {
		t.Errorf("after a change (-want +got):\n%s", diff)
	}
	if len(before) != 5 || before[1].Name != "bash" {
		t.Error("a snapshot changed under its reader")
	}
	if _, ok := r.Lookup("bash"); ok {
		t.Error("bash is still there")
	}
	if got, ok := r.Lookup("m:m"); !ok || got.Definition.Server != "m" {
		t.Errorf("got %+v, %t", got.Definition, ok)
	}
}

func TestRegistryRefuses(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"", "a b", "a:", ":a", "a:b:c", "a\n", "ä", "../x", "a/b"} {
		if _, err := tools.NewRegistry(tool(name)); err == nil {
			t.Errorf("name %q was accepted", name)
		}
	}
	if _, err := tools.NewRegistry(tool("a"), tool("a")); err == nil || err.Error() != "tool a: registered twice" {
		t.Errorf("got %v", err)
	}
	if _, err := tools.NewRegistry(tools.Tool{Definition: tools.Definition{Name: "a"}}); err == nil || err.Error() != "tool a: nothing to run" {
		t.Errorf("got %v", err)
	}
}

func TestRegistryRaces(t *testing.T) {
	t.Parallel()
	r, err := tools.NewRegistry(tool("read"))
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			name := fmt.Sprintf("srv:t%d", w)
			for range 100 {
				if err := r.Add(tool(name)); err != nil {
					t.Error(err)
				}
				if _, ok := r.Lookup(name); !ok {
					t.Errorf("%s is not there", name)
				}
				if names := r.Names(); names[0] != "read" {
					t.Errorf("order %v", names)
				}
				r.Remove(name)
			}
		})
	}
	wg.Wait()
	if diff := cmp.Diff([]string{"read"}, r.Names()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDefinitionHash(t *testing.T) {
	t.Parallel()
	base := tools.Definition{Name: "a", Description: "b", Schema: json.RawMessage(`{}`)}
	seen := map[string]string{base.Hash(): "base"}
	for name, change := range map[string]func(*tools.Definition){
		"name": func(d *tools.Definition) { d.Name = "x" }, "description": func(d *tools.Definition) { d.Description = "x" },
		"schema": func(d *tools.Definition) { d.Schema = json.RawMessage(`{"type":"object"}`) }, "output": func(d *tools.Definition) { d.OutputSchema = json.RawMessage(`{}`) },
		"server": func(d *tools.Definition) { d.Server = "x" }, "read-only": func(d *tools.Definition) { d.ReadOnly = true },
		"destructive": func(d *tools.Definition) { d.Destructive = true }, "trusted": func(d *tools.Definition) { d.Trusted = true },
		"shifted": func(d *tools.Definition) { d.Name, d.Description = "a1:b", "" },
	} {
		d := base
		change(&d)
		if other, ok := seen[d.Hash()]; ok {
			t.Errorf("%s hashes like %s", name, other)
		}
		seen[d.Hash()] = name
	}
}

type grepArgs struct {
	Pattern string             `json:"pattern" jsonschema:"what to look for"`
	Paths   []string           `json:"paths,omitempty"`
	Limit   *int               `json:"limit,omitempty"`
	Labels  map[string][]int   `json:"labels,omitempty"`
	Nested  *struct{ A []int } `json:"nested,omitempty"`
}

func grep(t *testing.T) tools.Tool {
	t.Helper()
	tool, err := tools.New(tools.Typed[grepArgs]{
		Definition: tools.Definition{Name: "grep"},
		Describe: func(_ context.Context, _ *tools.Call, in grepArgs) (tools.Subject, error) {
			return tools.Subject{Inputs: in.Paths}, nil
		},
		Run: func(_ context.Context, _ *tools.Call, in grepArgs) (*tools.Result, error) {
			return &tools.Result{Text: in.Pattern}, nil
		},
		Adjust: func(s *jsonschema.Schema) { s.Properties["pattern"].MinLength = new(1) },
	})
	if err != nil {
		t.Fatal(err)
	}
	return tool
}

func TestTypedSchema(t *testing.T) {
	t.Parallel()
	raw := grep(t).Definition.Schema
	var s struct {
		Type                 string
		Required             []string
		AdditionalProperties any
		Properties           map[string]struct {
			Type        any
			Description string
			MinLength   int
		}
	}
	if err := json.Unmarshal(raw, &s); err != nil {
		t.Fatal(err)
	}
	if s.Type != "object" || !cmp.Equal(s.Required, []string{"pattern"}) || s.AdditionalProperties == nil {
		t.Errorf("schema %s", raw)
	}
	for name, want := range map[string]string{"pattern": "string", "paths": "array", "limit": "integer", "labels": "object", "nested": "object"} {
		if s.Properties[name].Type != want {
			t.Errorf("%s has type %v, want %s", name, s.Properties[name].Type, want)
		}
	}
	if s.Properties["pattern"].Description != "what to look for" || s.Properties["pattern"].MinLength != 1 {
		t.Errorf("pattern is %+v", s.Properties["pattern"])
	}
	if strings.Contains(string(raw), `"null"`) {
		t.Errorf("a type array is left: %s", raw)
	}
	if strings.Index(string(raw), `"pattern"`) > strings.Index(string(raw), `"paths"`) {
		t.Errorf("the fields are not in the struct's order: %s", raw)
	}
}

func TestTypedDecode(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		args, want string
		category   tools.Category
		message    string
	}{
		{args: `{"pattern":"x","paths":["a"]}`, want: "x"},
		{args: ``, want: ""},
		{args: `{"pattern":1}`, category: tools.TypeMismatch, message: "field pattern: got number, which does not fit"},
		{args: `[]`, category: tools.TypeMismatch, message: "arguments: want a JSON object, got array"},
		{args: `{"ptn":1}`, category: tools.InvalidParameters, message: `arguments: unknown field "ptn"`},
		{args: `{}{}`, category: tools.InvalidParameters, message: "arguments: something follows the JSON object"},
		{args: `{`, category: tools.InvalidParameters, message: "arguments: unexpected EOF"},
	} {
		g := grep(t)
		call := &tools.Call{Args: json.RawMessage(tc.args)}
		res, err := g.Run(t.Context(), call)
		_, described := g.Describe(t.Context(), call)
		if tc.category == "" {
			if err != nil || described != nil || res.Text != tc.want {
				t.Errorf("%s: got %v, %v, %v", tc.args, res, err, described)
			}
			continue
		}
		for _, err := range []error{err, described} {
			var e *tools.Error
			if !errors.As(err, &e) || e.Category != tc.category || e.Message != tc.message {
				t.Errorf("%s: got %v, want %s: %s", tc.args, err, tc.category, tc.message)
			}
		}
	}
}

func TestTypedRefusesWhatHasNoSchema(t *testing.T) {
	t.Parallel()
	type wrong struct {
		C chan int `json:"c"`
	}
	if _, err := tools.New(tools.Typed[wrong]{Definition: tools.Definition{Name: "w"}}); err == nil || !strings.HasPrefix(err.Error(), "schema of w: ") {
		t.Errorf("got %v", err)
	}
}

func TestRegistryReplace(t *testing.T) {
	t.Parallel()
	r, err := tools.NewRegistry(tool("read"), tool("a:x"), tool("b:y"))
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Replace("a", []tools.Tool{tool("a:z"), tool("a:w")}); err != nil {
		t.Fatal(err)
	}
	want := []string{"read", "a:w", "a:z", "b:y"}
	if diff := cmp.Diff(want, r.Names()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	foreign := tool("a:x")
	foreign.Definition.Server = "b"
	for name, list := range map[string][]tools.Tool{
		"no server is named":              nil,
		"does not belong to the server a": {tool("a:q"), tool("b:q")},
		"registered twice":                {tool("a:q"), tool("a:q")},
		"want letters":                    {tool("a:b:c")},
		"nothing to run":                  {{Definition: tools.Definition{Name: "a:q", Server: "a"}}},
		"tool a:x: does not belong":       {foreign},
	} {
		server := "a"
		if list == nil {
			server = ""
		}
		if err := r.Replace(server, list); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("want %q, got %v", name, err)
		}
	}
	if diff := cmp.Diff(want, r.Names()); diff != "" {
		t.Errorf("an error changed it (-want +got):\n%s", diff)
	}
	if err := r.Replace("a", nil); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"read", "b:y"}, r.Names()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	var empty tools.Registry
	if err := empty.Replace("a", []tools.Tool{tool("a:x")}); err != nil || len(empty.Names()) != 1 {
		t.Errorf("got %v, %v", err, empty.Names())
	}
}

// TestRegistryReplaceAtOnce shows that no reader sees a half of a change.
func TestRegistryReplaceAtOnce(t *testing.T) {
	t.Parallel()
	var r tools.Registry
	var wg sync.WaitGroup
	for _, set := range [][]tools.Tool{{tool("s:a"), tool("s:b")}, {tool("s:c"), tool("s:d"), tool("s:e")}} {
		wg.Go(func() {
			for range 200 {
				if err := r.Replace("s", set); err != nil {
					t.Error(err)
				}
				if n := len(r.Names()); n != 2 && n != 3 {
					t.Errorf("%d tools are there", n)
				}
			}
		})
	}
	wg.Wait()
}

// TestServersStateNothing: what a server states about its tools relaxes no check, however it is registered.
func TestServersStateNothing(t *testing.T) {
	t.Parallel()
	run := func(context.Context, *tools.Call) (*tools.Result, error) { return nil, nil }
	foreign := tools.Tool{Definition: tools.Definition{Name: "srv:read", Server: "srv", Trusted: true, Says: &act.Statement{Act: act.ReadsFile, Cache: act.Files, Gain: 1}}, Run: run}
	var r tools.Registry
	if err := r.Add(foreign); err == nil {
		t.Error("added")
	}
	if err := r.Replace("srv", []tools.Tool{foreign}); err == nil || len(r.Names()) > 0 {
		t.Error("replaced")
	}
	if got := foreign.Definition.Stated(); got.Act != act.Unknown || got.Cache != act.NotCached || got.Gain != 0 {
		t.Errorf("believed: %+v", got)
	}
	if _, err := tools.State([]tools.Tool{{Definition: tools.Definition{Name: "new"}, Run: run}}, []act.Tool{{Name: "old"}}); err == nil {
		t.Error("a tool that says nothing passed")
	}
}
