package catalog_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/agent/catalog"
	"github.com/zephbot/zephbot/tools"
)

func rules(r map[string]catalog.Rule) catalog.Dependencies {
	return catalog.Dependencies{Enabled: true, BoostPerDep: 0.15, MaxTotalBoost: 0.2, Rules: r}
}

func steps() []tools.Definition {
	return []tools.Definition{
		tool("build", "Builds the program from its sources."), tool("test", "Tests the program that was built."),
		tool("lint", "Looks for mistakes in the sources."), tool("deploy", "Brings the program to its servers."),
	}
}

func TestRequires(t *testing.T) {
	t.Parallel()
	deploy := map[string]catalog.Rule{"deploy": {Requires: []string{"build", "test", "build"}}}
	tests := []struct {
		name      string
		rules     map[string]catalog.Rule
		alwaysOn  []string
		succeeded []string
		want      []string
	}{
		{"hidden", deploy, nil, nil, []string{"build", "test", "lint"}},
		{"half", deploy, nil, []string{"build"}, []string{"build", "test", "lint"}},
		{"met", deploy, nil, []string{"test", "build"}, []string{"build", "test", "lint", "deploy"}},
		{
			"everything would go",
			map[string]catalog.Rule{"build": {Requires: []string{"x"}}, "test": {Requires: []string{"x"}}, "lint": {Requires: []string{"x"}}, "deploy": {Requires: []string{"x"}}},
			nil, nil,
			[]string{"build", "test", "lint", "deploy"},
		},
		{
			"cycle",
			map[string]catalog.Rule{"build": {Requires: []string{"test"}}, "test": {Requires: []string{"lint"}}, "lint": {Requires: []string{"deploy"}}, "deploy": {Requires: []string{"lint"}}},
			nil, nil,
			[]string{"lint", "deploy"}, // build and test lead into the cycle
		},
		{"itself", map[string]catalog.Rule{"build": {Requires: []string{"build"}}}, nil, nil, []string{"build", "test", "lint", "deploy"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			k := setup(t, catalog.Options{Dependencies: rules(tt.rules)}, steps()...)
			if diff := cmp.Diff(tt.want, k.show("1", "go", tt.succeeded...)); diff != "" {
				t.Errorf("shown (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDependencyExclusionIsObserved(t *testing.T) {
	t.Parallel()
	k := setup(t, catalog.Options{Dependencies: rules(map[string]catalog.Rule{"deploy": {Requires: []string{"build", "test"}}})}, steps()...)
	k.show("1", "go", "test")
	ch := k.last("deploy")
	if diff := cmp.Diff([]string{"build"}, ch.Missing); diff != "" || !ch.Has(catalog.DependencyUnmet) || ch.Shown {
		t.Errorf("choice: %+v", ch)
	}
	k.show("2", "go", "test", "build")
	if ch := k.last("deploy"); !ch.Has(catalog.DependencyMet) || !ch.Shown {
		t.Errorf("choice: %+v", ch)
	}
}

func TestAlwaysOnBypassesTheGateAndMentionDoesNot(t *testing.T) {
	t.Parallel()
	deps := rules(map[string]catalog.Rule{"bash": {Requires: []string{"read"}}, "edit": {Requires: []string{"read"}}})
	k := setup(t, catalog.Options{Filter: filter(), Dependencies: deps}, builtins()...)
	if diff := cmp.Diff([]string{"bash", "grep"}, k.show("1", "edit or grep")); diff != "" {
		t.Errorf("shown (-want +got):\n%s", diff)
	}
	// Without the filter, nothing is always on.
	k = setup(t, catalog.Options{Filter: catalog.Filter{AlwaysOn: []string{"bash"}}, Dependencies: deps}, builtins()...)
	if got := k.show("1", "edit or grep"); slices.Contains(got, "bash") {
		t.Errorf("shown: %v", got)
	}
}

func TestGatesOffCountsOnlyWhatIsNotAlwaysOn(t *testing.T) {
	t.Parallel()
	k := setup(t, catalog.Options{Filter: filter(), Dependencies: rules(map[string]catalog.Rule{"edit": {Requires: []string{"read"}}})}, builtins()...)
	if diff := cmp.Diff([]string{"bash", "edit"}, k.show("1", "edit")); diff != "" {
		t.Errorf("shown (-want +got):\n%s", diff)
	}
}

func TestPrefers(t *testing.T) {
	t.Parallel()
	tests := []struct {
		succeeded []string
		boost     float64
		shown     bool
	}{
		{nil, 0, false},
		{[]string{"read"}, 0.15, true},
		{[]string{"read", "grep"}, 0.2, true},
		{[]string{"read", "grep", "fetch"}, 0.2, true},
		{[]string{"edit"}, 0, false},
	}
	for _, tt := range tests {
		t.Run(strings.Join(tt.succeeded, "+"), func(t *testing.T) {
			t.Parallel()
			deps := rules(map[string]catalog.Rule{"web_scrape": {Prefers: []string{"read", "grep", "fetch", "read"}}})
			k := setup(t, catalog.Options{Filter: filter(), Dependencies: deps}, builtins()...)
			// "page" alone would be enough; together with "download" it scores 0.18.
			got := k.show("1", "downloading pages", tt.succeeded...)
			ch := k.last("web_scrape")
			if ch.Boost != tt.boost {
				t.Errorf("boost = %v, want %v", ch.Boost, tt.boost)
			}
			if slices.Contains(got, "web_scrape") != tt.shown || ch.Has(catalog.PreferenceBoost) != tt.shown {
				t.Errorf("shown: %v; %v", got, ch)
			}
		})
	}
}

func TestWarnings(t *testing.T) {
	t.Parallel()
	k := setup(t, catalog.Options{
		Filter: filter(), Pruning: catalog.Pruning{Enabled: true},
		Dependencies: rules(map[string]catalog.Rule{
			"bash": {Requires: []string{"read"}}, "edti": {Prefers: []string{"github:fork", "nowhere"}},
			"read": {Requires: []string{"grep"}}, "grep": {Requires: []string{"read"}},
		}),
	}, builtins()...)
	want := []string{
		`pruning has no effect with the discovery strategy Embedding`,
		`dependency rule of "bash": what it requires has no effect, because the tool is always on`,
		`dependency rules: these tools require each other, so what they require is ignored: grep, read`,
	}
	if diff := cmp.Diff(want, k.Warnings()); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}
