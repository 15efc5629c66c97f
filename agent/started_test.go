package agent_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/zephbot/zephbot/agent"
	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/policy"
	"github.com/zephbot/zephbot/policy/reason"
	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/approve"
	"github.com/zephbot/zephbot/tools/audit"
	"github.com/zephbot/zephbot/tools/chain"
	"github.com/zephbot/zephbot/tools/decode"
	"github.com/zephbot/zephbot/tools/toolstest"
)

// refusing is a stage, and a tool's own error, that refuses every call.
var refusing = &tools.Error{Category: tools.PolicyBlocked, Message: "Not now.", Reason: reason.Plain("Not now.")}

func refuses(tools.Handler) tools.Handler {
	return func(context.Context, *tools.Call) (*tools.Result, error) { return nil, refusing }
}

// refusals are the ways in which the chain can refuse a call when its turn is resumed, each by what is different then.
func refusals(t *testing.T) map[string]func(w *world, o *chain.Options) {
	t.Helper()
	asked := func(state approve.State) func(w *world, o *chain.Options) {
		return func(w *world, o *chain.Options) {
			o.Gate.Policy = toolstest.Always(policy.Ask)
			w.lookup.Set(w.turn.Origin.Session, "c2_0", approve.Approval{State: state})
		}
	}
	return map[string]func(w *world, o *chain.Options){
		"the policy denies it now":        func(_ *world, o *chain.Options) { o.Gate.Policy = toolstest.Always(policy.Deny) },
		"there is no policy any more":     func(_ *world, o *chain.Options) { o.Gate.Policy = nil },
		"the approval was denied":         asked(approve.Denied),
		"the approval has expired":        asked(approve.Expired),
		"the approval was withdrawn":      asked(approve.Cancelled),
		"the approval cannot be read":     asked("from a later version"),
		"approvals cannot be read at all": func(w *world, o *chain.Options) { asked("")(w, o); w.lookup.Err = errors.New("down") },
		"nobody can be asked any more": func(_ *world, o *chain.Options) {
			o.Gate.Policy, o.Approvals = toolstest.Always(policy.Ask), nil
		},
		"the tool is gone": func(_ *world, o *chain.Options) { o.Registry = &tools.Registry{} },
		"the tool was replaced": func(_ *world, o *chain.Options) {
			other := toolstest.Echo()
			other.Definition.Name = "save"
			o.Registry = registryOf(t, other)
		},
		"the tool is hidden in this chat": func(w *world, _ *chain.Options) {
			w.turn.Tools = tools.Only(func(string) bool { return false })
		},
		"the arguments are refused now": func(_ *world, o *chain.Options) {
			o.Decode = decode.Options{}
			strict := saving(func() error { return nil })
			strict.Definition.Schema = []byte(`{"type":"object","required":["more"]}`)
			o.Registry = registryOf(t, strict)
		},
		"the calls of the session are used up": func(_ *world, o *chain.Options) { o.Quota = chain.NewQuota(chain.QuotaOptions{}) },
		"the tool is blocked":                  func(_ *world, o *chain.Options) { o.Block = refuses },
		"the judge is against it":              func(_ *world, o *chain.Options) { o.Judge = refuses },
		"a cache refuses":                      func(_ *world, o *chain.Options) { o.Cache = refuses },
		"it has failed too often":              func(_ *world, o *chain.Options) { o.Anomaly = refuses },
		"this process is not sure of its work": func(_ *world, o *chain.Options) {
			o.Sure = func(context.Context) error { return refusing }
		},
		"the audit log cannot be written": func(_ *world, o *chain.Options) {
			closed, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(closed.Close(), w.Close()); err != nil {
				t.Fatal(err)
			}
			if o.Audit, err = audit.New(audit.Options{Writer: w, Required: true}); err != nil {
				t.Fatal(err)
			}
		},
		"the tool itself refuses, because its first run has used up the room": func(_ *world, o *chain.Options) {
			o.Registry = registryOf(t, saving(func() error { return refusing }))
		},
	}
}

func registryOf(t *testing.T, list ...tools.Tool) *tools.Registry {
	t.Helper()
	r, err := tools.NewRegistry(list...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// saving is a tool that changes something once for each call, however often it runs.
func saving(run func() error) tools.Tool {
	return tools.Tool{
		Definition: tools.Definition{Name: "save", Schema: []byte(`{"type":"object"}`), Repeatable: true},
		Run: func(context.Context, *tools.Call) (*tools.Result, error) {
			if err := run(); err != nil {
				return nil, err
			}
			return &tools.Result{Text: "saved"}, nil
		},
	}
}

// TestStartedIsNeverRefused: a call was running when its process died. Whatever refuses it when the turn is resumed, it
// is told as one that may have run, to the model and to people: never as one that could not. That holds for calls that
// are not repeated and for those that are.
func TestStartedIsNeverRefused(t *testing.T) {
	t.Parallel()
	for name, refuse := range refusals(t) {
		for _, repeatable := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, script(t, "on \"go\": call save {}\nthen say Done"), "go")
				o := chain.Options{
					Registry: registryOf(t, saving(func() error { return nil })), Approvals: w.lookup,
					Gate: chain.GateOptions{Policy: toolstest.Always(policy.Allow)},
				}
				w.deps.Catalog = catalog(o.Registry.Definitions)
				definition := o.Registry.Definitions()[0].Hash()
				refuse(w, &o)
				w.hand = &hand{chain: chain.New(o)}
				w.deps.Tools = w.hand
				w.shelf.keep(
					journal.Entry{Turn: "turn-1", Kind: journal.AssistantEntry, Uses: []journal.Use{{
						Call: "c2_0", Name: "save", Args: []byte(`{}`), Repeatable: repeatable, Definition: definition,
					}}},
					journal.Entry{Turn: "turn-1", Kind: journal.StartedEntry, Call: "c2_0", Tool: "save"},
				)
				if out := w.must(t.Context()); out.Kind != agent.Answered {
					t.Fatalf("outcome %+v", out)
				}
				reported(t, w, "c2_0")
				r := w.results()["c2_0"]
				if r.Refusal != nil || !r.Ran || strings.Contains(r.Text, "category:") {
					t.Errorf("result %+v, refusal %+v", r, r.Refusal)
				}
			})
		}
	}
}

// TestRefusedBeforeItStarted: the same refusals of a call that has not started say so, so that the test above proves
// something.
func TestRefusedBeforeItStarted(t *testing.T) {
	t.Parallel()
	for name, refuse := range refusals(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, script(t, "on \"go\": call save {}\nthen say Done"), "go")
			o := chain.Options{
				Registry: registryOf(t, saving(func() error { return nil })), Approvals: w.lookup,
				Gate: chain.GateOptions{Policy: toolstest.Always(policy.Allow)},
			}
			w.deps.Catalog = catalog(o.Registry.Definitions)
			refuse(w, &o)
			w.hand = &hand{chain: chain.New(o)}
			w.deps.Tools = w.hand
			w.finish(t.Context())
			if r := w.results()["c2_0"]; !r.Failed || r.Category == "unknown" || r.Category == "" {
				t.Errorf("result %+v", r)
			}
		})
	}
}

// TestSubAgentIsNeverRefused: the work of a sub-agent that has begun is not told as work that was refused, although the
// call that began it only reads.
func TestSubAgentIsNeverRefused(t *testing.T) {
	t.Parallel()
	const talk = `on "go": call delegate {"name":"counter","task":"count","tools":["count"]}
on "count": call count {"by":1}
then say Done`
	w := newOffice(t, script(t, talk), "go")
	w.finish(t.Context())
	entries := w.shelf.all()
	cut := 0
	for i, e := range entries {
		if e.Child != "" && e.Kind == journal.StartedEntry {
			cut = i + 1
		}
	}
	if cut == 0 || w.counter.Runs() != 1 {
		t.Fatalf("%s, ran %d times", w.kinds(), w.counter.Runs())
	}
	again := newOffice(t, script(t, talk), "go")
	again.shelf.entries = entries[:cut:cut]
	again.turn.Tools = tools.Only(func(name string) bool { return name != "delegate" })
	again.finish(t.Context())
	for call, r := range again.results() {
		if r.Category != "unknown" && r.Category != string(tools.Cancelled) || !strings.HasPrefix(r.Text, "[outcome unknown]") || r.Refusal != nil {
			t.Errorf("%s: %+v", call, r)
		}
	}
	if len(again.results()) != 2 {
		t.Errorf("%d results in %s", len(again.results()), again.kinds())
	}
}
