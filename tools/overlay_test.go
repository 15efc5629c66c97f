package tools_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/tools"
)

// layered returns a tool that says where it comes from.
func layered(name, from string) tools.Tool {
	server, _, foreign := strings.Cut(name, ":")
	if !foreign {
		server = ""
	}
	return tools.Tool{
		Definition: tools.Definition{Name: name, Server: server},
		Run:        func(context.Context, *tools.Call) (*tools.Result, error) { return &tools.Result{Text: from}, nil },
	}
}

func layers(t *testing.T) *tools.Registry {
	t.Helper()
	r, err := tools.NewRegistry(layered("a", "below"), layered("b", "below"), layered("s:x", "below"))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func taking(names ...string) func(string) bool {
	return func(name string) bool { return slices.Contains(names, name) }
}

func TestOverlay(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		takes func(string) bool
		added []tools.Tool
		want  []string // name and origin, in order
	}{
		"nothing":             {nil, nil, []string{"a below", "b below", "s:x below"}},
		"taken":               {taking("a", "s:x"), nil, []string{"b below"}},
		"added before others": {nil, []tools.Tool{layered("new", "turn")}, []string{"a below", "b below", "new turn", "s:x below"}},
		"added alone":         {taking("a", "b", "s:x"), []tools.Tool{layered("new", "turn")}, []string{"new turn"}},
		"in another's place":  {taking("a"), []tools.Tool{layered("a", "turn")}, []string{"b below", "a turn", "s:x below"}},
		"covers":              {nil, []tools.Tool{layered("b", "turn")}, []string{"a below", "b turn", "s:x below"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o, err := tools.NewOverlay(tt.takes, tt.added...)
			if err != nil {
				t.Fatal(err)
			}
			view := o.Over(layers(t))
			var got []string
			for _, d := range view.Definitions() {
				tool, ok := view.Lookup(d.Name)
				if !ok || o.Takes(d.Name) {
					t.Fatalf("%s is listed and not there", d.Name)
				}
				res, err := tool.SafeRun(t.Context(), &tools.Call{})
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, d.Name+" "+res.Text)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			for _, name := range []string{"a", "b", "s:x", "new", "none"} {
				if _, ok := view.Lookup(name); ok != slices.ContainsFunc(got, func(s string) bool { return strings.HasPrefix(s, name+" ") }) {
					t.Errorf("%s: there and not listed", name)
				}
			}
		})
	}
}

func TestOverlayRefuses(t *testing.T) {
	t.Parallel()
	for name, list := range map[string][]tools.Tool{
		"of a server": {layered("s:y", "turn")}, "twice": {layered("a", "1"), layered("a", "2")}, "bad name": {layered("a b", "")}, "nothing to run": {{Definition: tools.Definition{Name: "a"}}},
	} {
		if _, err := tools.NewOverlay(nil, list...); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if tools.Only(nil) != nil {
		t.Error("no allow-list takes something away")
	}
}

// TestOverlayIsFixed: while servers come and go below, a turn continues to see what it adds and never what it removes.
func TestOverlayIsFixed(t *testing.T) {
	t.Parallel()
	r := layers(t)
	o, err := tools.NewOverlay(taking("s:x"), layered("a", "turn"))
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := range 200 {
			list := []tools.Tool{layered("s:x", "below"), layered("s:y", "below")}
			if err := r.Replace("s", list[:i%3%len(list)+1]); err != nil {
				t.Error(err)
			}
		}
	})
	for range 3 {
		wg.Go(func() {
			view := o.Over(r)
			for range 200 {
				names := []string{}
				for _, d := range view.Definitions() {
					names = append(names, d.Name)
				}
				if slices.Contains(names, "s:x") || !slices.Contains(names, "a") {
					t.Errorf("the turn sees %v", names)
				}
				if tool, ok := view.Lookup("a"); !ok || tool.Definition.Server != "" {
					t.Error("what the turn adds is gone")
				}
			}
		})
	}
	wg.Wait()
}
