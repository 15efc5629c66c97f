package agent_test

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zephbot/zephbot/agent"
	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/llmtest"
	"github.com/zephbot/zephbot/policy"
	"github.com/zephbot/zephbot/policy/act"
	"github.com/zephbot/zephbot/policy/source"
	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/chain"
	"github.com/zephbot/zephbot/tools/file"
	"github.com/zephbot/zephbot/tools/shell"
	"github.com/zephbot/zephbot/tools/toolstest"
	"github.com/zephbot/zephbot/tools/web"
)

//go:embed testdata/web_tasks.txt
var webTasks string

// webTalk is a conversation of a test file; the head of web_tasks.txt describes the format.
type webTalk struct {
	name  string
	turns []*scene
}

// scene is a turn: what a person wrote and sent along, and the calls of the model.
type scene struct {
	said, document, foreign string
	calls                   []*action
}

// action is a call: what is decided about it, and its result.
type action struct {
	tool, input string
	was, now    string // allow, ask or refused
	because     string // now differs from was
	beside      bool   // requested in one step with the call before
	result      string
}

// args are the arguments that the tool gets.
func (a *action) args() json.RawMessage {
	if a.tool == "mcp" {
		_, args, _ := strings.Cut(a.input, " ")
		return json.RawMessage(args)
	}
	key := map[string]string{"fetch": "url", "web_scrape": "url", "web_search": "query", "bash": "command"}[a.name()]
	if key == "" {
		key = "path"
	}
	list := map[string]string{key: a.input}
	if a.name() == "web_scrape" {
		list["select"] = "a"
	}
	raw, err := json.Marshal(list)
	if err != nil {
		panic(err)
	}
	return raw
}

func (a *action) name() string {
	switch a.tool {
	case "mcp":
		name, _, _ := strings.Cut(a.input, " ")
		return name
	case "search", "scrape":
		return "web_" + a.tool
	}
	return a.tool
}

func webTalks(t *testing.T, text string) (list []*webTalk) {
	t.Helper()
	var turn *scene
	for i, line := range strings.Split(text, "\n") {
		switch rest, indented := strings.CutPrefix(line, "    "); {
		case line == "" || line[0] == '#':
		case indented:
			last := turn.calls[len(turn.calls)-1]
			last.result = strings.TrimPrefix(last.result+"\n"+rest, "\n")
		case strings.HasPrefix(line, "== "):
			list = append(list, &webTalk{name: line[3:]})
		case strings.HasPrefix(line, "> "), strings.HasPrefix(line, "forwarded "):
			turn = &scene{said: strings.TrimPrefix(strings.TrimPrefix(line, "> "), "forwarded ")}
			if line[0] == 'f' {
				turn.foreign = "a forwarded message"
			}
			list[len(list)-1].turns = append(list[len(list)-1].turns, turn)
		case strings.HasPrefix(line, "+ "):
			turn.document = line[2:]
		default:
			line, beside := strings.CutPrefix(line, "& ")
			parts := strings.Split(line, " = ")
			tool, input, ok := strings.Cut(parts[0], " ")
			if !ok || len(parts) < 2 {
				t.Fatalf("line %d: %q is no call", i+1, line)
			}
			a := &action{tool: tool, input: input, was: parts[1], now: parts[1], beside: beside}
			if len(parts) > 2 {
				if a.now, a.because, ok = strings.Cut(parts[2], ": "); !ok {
					t.Fatalf("line %d gives no reason", i+1)
				}
			}
			turn.calls = append(turn.calls, a)
		}
	}
	return list
}

// played is what became of a transcript.
type played struct {
	asked []tools.Question
	calls map[string]bool // what was asked, by callKey
	ran   map[string]bool
}

func (p *played) decided(a *action) string {
	if p.calls[callKey(a.name(), a.args())] {
		return "ask"
	}
	if !p.ran[callKey(a.name(), a.args())] {
		return "refused"
	}
	return "allow"
}

// callKey identifies a call, however its arguments are encoded.
func callKey(tool string, args json.RawMessage) string {
	var in map[string]any
	if err := json.Unmarshal(args, &in); err != nil {
		panic(err)
	}
	return fmt.Sprint(tool, in)
}

// play plays a transcript through the runner, the chain and the rules of the service. Each question is answered with yes;
// where it offers more than this one call for this conversation, that is what the person presses.
func (c *webTalk) play(t *testing.T, set *policy.Set) *played {
	t.Helper()
	p := &played{calls: map[string]bool{}, ran: map[string]bool{}}
	shelf, lookup := &shelf{t: t}, &toolstest.Lookup{}
	var grants []policy.Grant
	registry, err := tools.NewRegistry(c.tools(t)...)
	if err != nil {
		t.Fatal(err)
	}
	hand := &hand{chain: chain.New(chain.Options{
		Registry: registry, Approvals: lookup, Now: func() time.Time { return noon },
		Gate: chain.GateOptions{Policy: set, Request: func(_ context.Context, call *tools.Call) (policy.Request, error) {
			r := policy.Request{Trust: policy.Trusted, Dir: "/w", InsidePaths: []string{"/w"}, Grants: slices.Clone(grants)}
			if call.Def.Server != "" {
				r.Server = "https://" + call.Def.Server
			}
			return r, nil
		}},
	})}
	for n, turn := range c.turns {
		id := fmt.Sprintf("turn-%d", n)
		e := journal.Entry{Turn: id, Kind: journal.UserEntry, At: noon, Text: turn.said, Caller: "telegram:42", Foreign: source.Source(turn.foreign)}
		if turn.document != "" {
			e.Parts = []llm.Part{{Kind: llm.TextPart, Text: turn.document}}
		}
		shelf.keep(e)
		w := &world{
			t: t, shelf: shelf, lookup: lookup, hand: hand, watch: &watcher{},
			turn: &agent.Turn{ID: id, Request: "7f3a", Origin: tools.Origin{
				Channel: "telegram", Session: "telegram/1/bot/42/0/0", Chat: "telegram/1/bot/42", Turn: id, Caller: "telegram:42",
			}},
			deps: agent.Deps{
				Provider: turn.model(), Tools: hand, Catalog: catalog(registry.Definitions),
				System: func(*agent.Turn, bool) string { return "You are a test." }, Now: func() time.Time { return noon },
			},
		}
		for over := false; !over; {
			switch out := w.must(t.Context()); out.Kind {
			case agent.Parked:
				for _, q := range out.Questions {
					p.asked = append(p.asked, q)
					p.calls[callKey(q.Tool, json.RawMessage(q.Args))] = true
					if q.Whole != nil {
						grants = append(grants, *q.Whole)
					}
				}
				w.approve(out)
			case agent.Answered:
				over = true
			default:
				t.Fatalf("%s: %+v", c.name, out)
			}
		}
	}
	for _, call := range hand.calls {
		if call.Trail.Started {
			p.ran[callKey(call.Def.Name, call.Args)] = true
		}
	}
	return p
}

// model plays the calls of the turn.
func (s *scene) model() llm.Provider {
	var steps []llmtest.Step
	for _, a := range s.calls {
		use := llm.ToolUse{Name: a.name(), Args: a.args()}
		if a.beside {
			steps[len(steps)-1].Uses = append(steps[len(steps)-1].Uses, use)
		} else {
			steps = append(steps, llmtest.Step{Uses: []llm.ToolUse{use}})
		}
	}
	return llmtest.New(append(steps, llmtest.Step{Text: "Done."})...)
}

// tools are tools that state and describe what those of the service do, and return the results of the transcript.
func (c *webTalk) tools(t *testing.T) []tools.Tool {
	t.Helper()
	results := map[string]string{}
	servers := map[string]tools.Definition{}
	for _, turn := range c.turns {
		for _, a := range turn.calls {
			results[callKey(a.name(), a.args())] = a.result
			if server, name, ok := strings.Cut(a.name(), ":"); ok {
				reads := slices.Contains([]string{"list", "get", "search"}, strings.SplitN(name, "_", 2)[0])
				servers[a.name()] = tools.Definition{
					Name: a.name(), Server: server, Trusted: true, ReadOnly: reads, Reads: reads, Schema: json.RawMessage(`{"type":"object"}`),
				}
			}
		}
	}
	run := func(_ context.Context, call *tools.Call) (*tools.Result, error) {
		r := &tools.Result{Text: results[callKey(call.Def.Name, call.Args)]}
		if call.Def.Stated().Act == act.ReadsWeb {
			r.Untrusted = "https://somewhere.example"
		}
		return r, nil
	}
	list, err := web.New(web.Options{})
	if err != nil {
		t.Fatal(err)
	}
	search, err := web.NewSearch(web.SearchOptions{Backend: web.Brave, Key: "k"})
	if err != nil {
		t.Fatal(err)
	}
	list = append(list, search)
	for i := range list {
		list[i].Run = run
	}
	for _, said := range slices.Concat(file.Says(), shell.Says()) {
		list = append(list, tools.Tool{
			Definition: tools.Definition{
				Name: said.Name, Says: &said.Statement, Schema: json.RawMessage(`{"type":"object"}`), ReadOnly: said.Act.ReadsFiles(),
			},
			Run: run,
			Describe: func(_ context.Context, call *tools.Call) (tools.Subject, error) {
				var in struct{ Path, Command string }
				if err := json.Unmarshal(call.Args, &in); err != nil {
					return tools.Subject{}, err
				}
				if call.Def.Runs() {
					return tools.Subject{Inputs: []string{in.Command}, Show: in.Command}, nil
				}
				return tools.Subject{Inputs: []string{"/w/" + in.Path}, Paths: []string{"/w/" + in.Path}, Show: in.Path}, nil
			},
		})
	}
	for _, d := range servers {
		list = append(list, tools.Tool{Definition: d, Run: run})
	}
	return list
}

// webRules are the rules of the transcripts.
func webRules(t *testing.T) *policy.Set {
	t.Helper()
	set, err := policy.New(policy.Options{
		Tools: slices.Concat(shell.Says(), file.Says(), web.Says()), AllowNetwork: true, Unasked: policy.UnaskedReading, QuietHosts: policy.QuietHosts(),
		Permissions: map[string][]policy.Permission{"notes:*": {{Pattern: "*", Action: policy.Allow}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// TestEverydayWeb: the everyday tasks of the web ask at most a tenth more than before, and nothing asks that the list does
// not announce.
func TestEverydayWeb(t *testing.T) {
	t.Parallel()
	set, list := webRules(t), webTalks(t, webTasks)
	if len(list) != 60 {
		t.Errorf("%d tasks, want 60", len(list))
	}
	before, now := 0, 0
	for _, task := range list {
		p := task.play(t, set)
		now += len(p.asked)
		for _, turn := range task.turns {
			for _, a := range turn.calls {
				if a.was != "allow" {
					before++
				}
				if got := p.decided(a); got != a.now {
					t.Errorf("%s: %s %s: %s, want %s", task.name, a.tool, a.input, got, a.now)
				}
			}
		}
	}
	t.Logf("%d questions before, %d now", before, now)
	if now*10 > before*11 {
		t.Errorf("%d questions instead of %d", now, before)
	}
}

//go:embed testdata/web_attacks.txt
var webAttacks string

// TestAttackWaysOut: what a model that obeys a hostile page can send where without a person.
func TestAttackWaysOut(t *testing.T) {
	t.Parallel()
	set := webRules(t)
	for _, attack := range webTalks(t, webAttacks) {
		t.Run(attack.name, func(t *testing.T) {
			t.Parallel()
			p := attack.play(t, set)
			for _, turn := range attack.turns {
				for _, a := range turn.calls {
					if got := p.decided(a); got != a.now {
						t.Errorf("%s %s: %s, want %s", a.tool, a.input, got, a.now)
					}
				}
			}
		})
	}
}
