package chain_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/policy"
	"github.com/zephbot/zephbot/policy/act"
	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/chain"
	"github.com/zephbot/zephbot/tools/file"
	"github.com/zephbot/zephbot/tools/shell"
	"github.com/zephbot/zephbot/tools/toolstest"
)

func TestUtilityScore(t *testing.T) {
	t.Parallel()
	o := chain.UtilityDefaults()
	for _, tc := range []struct {
		f    chain.UtilityFactors
		want float64
	}{
		{chain.UtilityFactors{}, 0},
		{chain.UtilityFactors{Gain: 0.6, Uncertainty: 1}, 0.8},
		{chain.UtilityFactors{Gain: 0.5, Cost: 1, Redundancy: 1}, -0.3},
		{chain.UtilityFactors{Gain: 1, Cost: 1, Redundancy: 1, Uncertainty: 1}, 0.4},
	} {
		if got := chain.UtilityScore(o, tc.f); math.Abs(got-tc.want) > 1e-9 {
			t.Errorf("%+v: %v, want %v", tc.f, got, tc.want)
		}
	}
}

func TestUtilityDecision(t *testing.T) {
	t.Parallel()
	type F = chain.UtilityFactors
	strict := chain.UtilityDefaults()
	strict.Threshold = 2
	broken := chain.UtilityDefaults()
	broken.GainWeight = math.Inf(1)
	for _, tc := range []struct {
		name string
		o    chain.UtilityOptions
		s    chain.UtilitySituation
		want chain.UtilityDecision
	}{
		{"asked for", broken, chain.UtilitySituation{Explicit: true, UtilityFactors: F{Cost: 1, Redundancy: 1}}, chain.UtilityRun},
		{"mandated", broken, chain.UtilitySituation{Mandated: true, UtilityFactors: F{Cost: 1, Redundancy: 1}}, chain.UtilityRun},
		{"no number", chain.UtilityDefaults(), chain.UtilitySituation{UtilityFactors: F{Gain: math.NaN()}}, chain.UtilityStop},
		{"endless", broken, chain.UtilitySituation{UtilityFactors: F{Gain: 0.5}}, chain.UtilityStop},
		{"expensive", chain.UtilityDefaults(), chain.UtilitySituation{UtilityFactors: F{Gain: 1, Cost: 0.91}}, chain.UtilityStop},
		{"just not expensive", chain.UtilityDefaults(), chain.UtilitySituation{UtilityFactors: F{Gain: 1, Cost: 0.9}}, chain.UtilityRun},
		{"repeated", chain.UtilityDefaults(), chain.UtilitySituation{UtilityFactors: F{Gain: 1, Redundancy: 1, Uncertainty: 1}}, chain.UtilityRespond},
		{"much gain", chain.UtilityDefaults(), chain.UtilitySituation{UtilityFactors: F{Gain: 0.7, Uncertainty: 1}}, chain.UtilityRun},
		{"much gain, not enough", strict, chain.UtilitySituation{UtilityFactors: F{Gain: 0.8, Uncertainty: 1}}, chain.UtilityRetrieve},
		{"early", chain.UtilityDefaults(), chain.UtilitySituation{UtilityFactors: F{Gain: 0.6, Uncertainty: 0.51}}, chain.UtilityRetrieve},
		{"not early", chain.UtilityDefaults(), chain.UtilitySituation{UtilityFactors: F{Gain: 0.6, Uncertainty: 0.5}}, chain.UtilityRun},
		{"little gain", chain.UtilityDefaults(), chain.UtilitySituation{UtilityFactors: F{Gain: 0.4, Uncertainty: 1}}, chain.UtilityRun},
		{"too little after calls", strict, chain.UtilitySituation{UtilityFactors: F{Gain: 0.5}, Calls: 1}, chain.UtilityVerify},
		{"too little at once", strict, chain.UtilitySituation{UtilityFactors: F{Gain: 0.4}}, chain.UtilityRespond},
		{"on the threshold", chain.UtilityOptions{Threshold: 0.25, GainWeight: 1}, chain.UtilitySituation{UtilityFactors: F{Gain: 0.25}, Calls: 9}, chain.UtilityRun},
	} {
		if got := chain.DecideUtility(tc.o, tc.s); got != tc.want {
			t.Errorf("%s: %s, want %s", tc.name, got, tc.want)
		}
	}
}

func TestUtilityGain(t *testing.T) {
	t.Parallel()
	o := chain.UtilityOptions{HighGainTools: []string{"read", "server:tool"}}
	says := func(gain float64) *act.Statement { return &act.Statement{Gain: gain} }
	for _, tt := range []struct {
		def  tools.Definition
		want float64
	}{
		{tools.Definition{Name: "bash", Says: says(0.6)}, 0.6},
		{tools.Definition{Name: "read", Says: says(0.55)}, 0.8}, // the operator's word counts more
		{tools.Definition{Name: "fetch", Says: says(0)}, 0.5},
		{tools.Definition{Name: "new"}, 0.5},
		{tools.Definition{Name: "server:tool", Server: "server"}, 0.8},
		{tools.Definition{Name: "server:other", Server: "server", Says: says(0.9)}, 0.5}, // a server is not believed
	} {
		if got := o.Gain(tt.def); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.def.Name, got, tt.want)
		}
	}
}

func TestAsksForTool(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		ask, tool string
		want      bool
	}{
		{"use the grep tool", "grep", true},
		{"hello", "grep", false},
		{"Please use the grep tool to find it.", "bash", false},
		{"USE GREP", "grep", true},
		{"run `bash` now", "bash", true},
		{"find it with web_scrape", "web_scrape", true},
		{"can you call the tool read?", "read", true},
		{"the bash tool please", "bash", true},
		{"read the file", "read", false},
		{"use thread breadcrumbs", "read", false},
		{"use readme", "read", false},
		{"use the read_overflow", "read", false},
		{"use read_overflow or the read tool", "read", true},
		{"use github:search", "github:search", true},
		{"use search", "github:search", true},
		{"use your tools", "anything", true},
		{"try any tool", "anything", true},
		{"what tools do you have?", "anything", false},
		{"Benutze das Werkzeug grep", "grep", true},
		{"Nimm bitte etwas anderes als grep", "grep", false},
		{"such mit grep", "grep", true},
		{"verwende deine Werkzeuge", "anything", true},
		{"grüße grep ü", "grep", false},
		{"", "grep", false},
		{"use the  ", "", false},
		{strings.Repeat("x ", 3000) + "use grep", "grep", false}, // too far in
	} {
		if got := chain.AsksForTool(tc.ask, tc.tool); got != tc.want {
			t.Errorf("%q for %s: %t", tc.ask, tc.tool, got)
		}
	}
}

func FuzzAsksForTool(f *testing.F) {
	f.Add("use the grep tool", "grep")
	f.Add("\xff use \xfe", "\xfe")
	f.Fuzz(func(t *testing.T, ask, tool string) {
		if chain.AsksForTool(ask, tool) && strings.TrimSpace(ask) == "" {
			t.Errorf("an empty message asks for %q", tool)
		}
	})
}

// utilityResult returns what the model reads when a call is decided on in a turn with this past.
func utilityResult(t *testing.T, o chain.UtilityOptions, call *tools.Call) string {
	t.Helper()
	call.Def.Name, call.Def.Says = call.Tool, act.Of(append(shell.Says(), file.Says()...), call.Tool)
	res, err := chain.NewUtility(o)(func(context.Context, *tools.Call) (*tools.Result, error) { return &tools.Result{Text: "ran"}, nil })(t.Context(), call)
	if err != nil || res == nil || res.Error {
		t.Fatalf("got %+v, %v", res, err)
	}
	if (res.Text == "ran") != (call.Trail.Summary == "") {
		t.Errorf("summary %q of %q", call.Trail.Summary, res.Text)
	}
	return res.Text
}

// TestUtilityTurn plays a turn: what is put off runs when it comes again, and a third time it is skipped.
func TestUtilityTurn(t *testing.T) {
	t.Parallel()
	var past []chain.PastCall
	var observed []string
	o := chain.UtilityDefaults()
	o.ExemptTools = []string{"load_skill"}
	o.Seen = func(call *tools.Call) chain.UtilityHistory { return chain.ReadUtilityHistory(past, call, 0) }
	o.Observe = func(tool string, d chain.UtilityDecision) { observed = append(observed, tool+" "+string(d)) }
	for _, step := range []struct{ tool, args, want string }{
		{"bash", `{"command":"make"}`, "[skipped] Not enough is known"},
		{"edit", `{"path":"a"}`, "ran"},
		{"bash", `{ "command" : "make" }`, "ran"}, // the hint is followed
		{"bash", `{"command":"make"}`, "[skipped] This call brings nothing new"},
		{"bash", `{"command":"make test"}`, "[skipped] Not enough is known"},
		{"load_skill", `{}`, "ran"},
		{"load_skill", `{}`, "ran"},
	} {
		call := toolstest.Call(step.tool, step.args)
		got := utilityResult(t, o, call)
		if !strings.HasPrefix(got, step.want) {
			t.Errorf("%s %s: %q, want %q", step.tool, step.args, got, step.want)
		}
		// the turn was taken up again before the result was stored
		if again := utilityResult(t, o, toolstest.Call(step.tool, step.args)); again != got {
			t.Errorf("%s: %q, then %q", step.tool, got, again)
		}
		past = append(past, chain.PastCall{Tool: step.tool, Args: []byte(step.args), Text: got})
	}
	want := []string{"bash retrieve", "edit run", "bash run", "bash respond", "bash retrieve", "load_skill run", "load_skill run"}
	var got []string
	for i := 0; i < len(observed); i += 2 {
		got = append(got, observed[i])
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("observed (-want +got):\n%s", diff)
	}
}

func TestUtilityStage(t *testing.T) {
	t.Parallel()
	history := func(h chain.UtilityHistory) func(*tools.Call) chain.UtilityHistory {
		return func(*tools.Call) chain.UtilityHistory { return h }
	}
	for _, tc := range []struct {
		name, tool, ask string
		change          func(*chain.UtilityOptions)
		want            string
	}{
		{"first", "grep", "", func(*chain.UtilityOptions) {}, "[skipped] Not enough"},
		{"asked for", "grep", "use the grep tool", func(*chain.UtilityOptions) {}, "ran"},
		{"late", "grep", "", func(o *chain.UtilityOptions) { o.Seen = history(chain.UtilityHistory{Calls: 5}) }, "ran"},
		{"after very many", "grep", "", func(o *chain.UtilityOptions) { o.Seen = history(chain.UtilityHistory{Calls: 500}) }, "ran"},
		{"repeated", "edit", "", func(o *chain.UtilityOptions) { o.Seen = history(chain.UtilityHistory{Calls: 1, Repeated: true}) }, "[skipped] This call brings nothing new."},
		{"little use", "fetch", "", func(o *chain.UtilityOptions) { o.Threshold, o.Seen = 0.9, history(chain.UtilityHistory{Calls: 5}) }, "[skipped] This call promises little"},
		{"all is spent", "edit", "", func(o *chain.UtilityOptions) { o.Cost = func(*tools.Call) float64 { return 7 } }, "[stopped] "},
		{"nobody knows what is spent", "edit", "", func(o *chain.UtilityOptions) { o.Cost = func(*tools.Call) float64 { return math.NaN() } }, "[stopped] "},
		{"less than nothing is spent", "edit", "", func(o *chain.UtilityOptions) { o.Cost = func(*tools.Call) float64 { return -7 } }, "ran"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			o := chain.UtilityDefaults()
			tc.change(&o)
			call := toolstest.Call(tc.tool, `{}`)
			call.Ask = tc.ask
			if got := utilityResult(t, o, call); !strings.HasPrefix(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestUtilityHistory(t *testing.T) {
	t.Parallel()
	call := toolstest.Call("read", `{"path":"a","n":12345678901234567}`)
	same := func(text string) chain.PastCall {
		return chain.PastCall{Tool: "read", Args: []byte(`{"n":12345678901234567, "path":"a"}`), Text: text}
	}
	other := chain.PastCall{Tool: "read", Args: []byte(`{"path":"a","n":12345678901234568}`), Text: "x"}
	const hint = "[skipped] Not enough is known for this call yet. Fetch …"
	for _, tc := range []struct {
		name   string
		past   []chain.PastCall
		window int
		want   chain.UtilityHistory
	}{
		{"nothing", nil, 0, chain.UtilityHistory{}},
		{"others", []chain.PastCall{other, {Tool: "grep", Args: call.Args}, {Tool: "read"}, {Tool: "read", Args: []byte("no JSON")}}, 0, chain.UtilityHistory{Calls: 4}},
		{"the same", []chain.PastCall{same("x"), other}, 0, chain.UtilityHistory{Calls: 2, Repeated: true}},
		{"put off", []chain.PastCall{same(hint), other}, 0, chain.UtilityHistory{Calls: 1, PutOff: true}},
		{"put off and run", []chain.PastCall{same(hint), same("x")}, 0, chain.UtilityHistory{Calls: 1, Repeated: true}},
		{"skipped otherwise", []chain.PastCall{same("[skipped] This"), same("[stopped] This")}, 0, chain.UtilityHistory{}},
		{"outside of the window", []chain.PastCall{same("x"), other, other}, 2, chain.UtilityHistory{Calls: 3}},
		{"inside of the window", []chain.PastCall{same("x"), other, other}, 3, chain.UtilityHistory{Calls: 3, Repeated: true}},
	} {
		if diff := cmp.Diff(tc.want, chain.ReadUtilityHistory(tc.past, call, tc.window)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
	}
	empty := toolstest.Call("read", "")
	if h := chain.ReadUtilityHistory([]chain.PastCall{{Tool: "read", Args: []byte(" {} "), Text: "x"}}, empty, 0); !h.Repeated {
		t.Errorf("no arguments and an empty object: %+v", h)
	}
}

// TestUtilityInChain: a probe is answered like the call itself and not counted, and nobody is asked about a call that is
// skipped.
func TestUtilityInChain(t *testing.T) {
	t.Parallel()
	var counter toolstest.Counter
	list, err := tools.NewRegistry(counter.Tool())
	if err != nil {
		t.Fatal(err)
	}
	var observed []string
	o := chain.UtilityDefaults()
	o.Observe = func(tool string, d chain.UtilityDecision) { observed = append(observed, fmt.Sprint(tool, " ", d)) }
	var lookup toolstest.Lookup
	parts := chain.Options{Registry: list, Approvals: &lookup, Quota: chain.NewUtility(o)}
	parts.Gate.Policy = toolstest.Always(policy.Ask)
	c := chain.New(parts)
	for _, probe := range []bool{true, false} {
		call := toolstest.Call("count", `{}`)
		call.Probe = probe
		res, err := c.Execute(t.Context(), call)
		if err != nil || !strings.HasPrefix(res.Text, "[skipped]") || call.Trail.Started {
			t.Errorf("probe %t: %v, %v", probe, res, err)
		}
	}
	if counter.Runs() != 0 || lookup.Asked() != 0 {
		t.Errorf("%d runs, %d look-ups", counter.Runs(), lookup.Asked())
	}
	if diff := cmp.Diff([]string{"count retrieve"}, observed); diff != "" {
		t.Errorf("observed (-want +got):\n%s", diff)
	}
}
