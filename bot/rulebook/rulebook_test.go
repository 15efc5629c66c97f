package rulebook_test

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/approval"
	"github.com/zephbot/zephbot/bot/bottest"
	"github.com/zephbot/zephbot/bot/rulebook"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/bot/turn"
	"github.com/zephbot/zephbot/policy"
	"github.com/zephbot/zephbot/policy/act"
	"github.com/zephbot/zephbot/policy/pathrule"
	"github.com/zephbot/zephbot/policy/reason"
	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/workspace"
)

const (
	chat    = "telegram/7/bot/1"
	session = bot.SessionKey("telegram/7/bot/1/0/0")
)

// hosts are servers with their addresses; each has one tool, "do".
type hosts map[string]string

func (h hosts) Address(id string) string { return h[id] }
func (h hosts) Tools(id string) []tools.Definition {
	if h[id] == "" {
		return nil
	}
	return []tools.Definition{does(id)}
}

func does(server string) tools.Definition {
	return tools.Definition{Name: server + ":do", Server: server, Schema: json.RawMessage(`{"type":"object"}`)}
}

// bars can hide everything from every command, and records the directories it was asked about.
type bars struct{ dirs []string }

func (b *bars) Bars(_ context.Context, dir string) ([]string, bool) {
	b.dirs = append(b.dirs, dir)
	return nil, true
}

// world is a Book over two servers; a tool of the server "known" is registered.
type world struct {
	*rulebook.Book
	dir   string
	store *bottest.Store
	bars  *bars
}

func setup(t *testing.T, change func(*rulebook.Deps)) world {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	places, err := workspace.NewPlaces(nil, ".", func(tools.Origin) (string, error) { return dir, nil }, nil)
	if err != nil {
		t.Fatal(err)
	}
	rules, err := policy.New(policy.Options{Level: "supervised", Tools: []act.Tool{{Name: "bash", Statement: act.Statement{Act: act.Runs}}}})
	if err != nil {
		t.Fatal(err)
	}
	registry, err := tools.NewRegistry()
	if err != nil {
		t.Fatal(err)
	}
	run := func(context.Context, *tools.Call) (*tools.Result, error) { return &tools.Result{}, nil }
	if err := registry.Add(tools.Tool{Definition: does("known"), Run: run}); err != nil {
		t.Fatal(err)
	}
	w := world{dir: dir, store: bottest.New(), bars: &bars{}}
	deps := rulebook.Deps{
		Policy: rules, Confined: true, Reading: true, Sandbox: reason.Plain("full"), Commands: places, Files: places, Runner: w.bars, Tools: registry, Servers: hosts{"known": "a", "other": "b"},
		Store: w.store, Env: func() []string { return []string{"HOME"} }, Now: time.Now, Log: zerolog.Nop(),
		Problem: func(tool string) (reason.Reason, bool) {
			return reason.Plain("no such tool as " + tool), tool == "typo"
		},
	}
	if change != nil {
		change(&deps)
	}
	w.Book = rulebook.New(deps)
	return w
}

// grant stores a standing approval for the tool of a server.
func (w world) grant(t *testing.T, server string) policy.Grant {
	t.Helper()
	def := does(server)
	g := approval.Grant{Grant: policy.Grant{Tool: def.Name, Server: "a", Definition: def.Hash(), Kind: policy.GrantTool, Session: string(session)}, At: time.Now()}
	raw, err := json.Marshal(g)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.store.Apply(t.Context(), &bot.Change{Facts: []bot.Fact{{Bucket: approval.GrantBucket, Key: chat + "/" + def.Name + "/x", Value: string(raw)}}}); err != nil {
		t.Fatal(err)
	}
	return g.Grant
}

// TestRequest: a call is judged by the place it works in, the approvals of its conversation, and its server.
func TestRequest(t *testing.T) {
	t.Parallel()
	w := setup(t, nil)
	g := w.grant(t, "known")
	r, err := w.Request(t.Context(), &tools.Call{Def: does("known"), Origin: tools.Origin{Chat: chat, Session: string(session)}})
	want := policy.Request{
		Trust: policy.Trusted, Confined: true, Grants: []policy.Grant{g}, Server: "a", InsidePaths: []string{w.dir}, Dir: w.dir, Env: []string{"HOME"},
	}
	if diff := cmp.Diff(want, r); diff != "" || err != nil {
		t.Errorf("-want +got\n%s%v", diff, err)
	}
	r, err = w.Request(t.Context(), &tools.Call{Origin: tools.Origin{Chat: chat, Session: "telegram/7/bot/1/0/2"}})
	if len(r.Grants) > 0 || r.Server != "" || err != nil {
		t.Errorf("of another conversation: %+v, %v", r, err)
	}
	bash := tools.Definition{Name: "bash", Says: &act.Statement{Act: act.Runs}}
	if _, err = w.Request(t.Context(), &tools.Call{Def: bash}); err != nil || len(w.bars.dirs) > 0 {
		t.Errorf("nothing restricts reading, but files were looked for in %q, %v", w.bars.dirs, err)
	}
	off := setup(t, func(d *rulebook.Deps) { d.Off = true })
	if _, err := off.Request(t.Context(), &tools.Call{}); tools.AsError(err).Category != tools.PolicyBlocked {
		t.Errorf("switched off: %v", err)
	}
	nowhere := setup(t, func(d *rulebook.Deps) {
		d.Files, _ = workspace.NewPlaces(nil, ".", func(tools.Origin) (string, error) { return "", errors.New("no place") }, nil)
	})
	if _, err := nowhere.Request(t.Context(), &tools.Call{}); err == nil {
		t.Error("no error without a place")
	}
	bare := setup(t, func(d *rulebook.Deps) { d.Store = nil })
	if r, err := bare.Request(t.Context(), &tools.Call{}); err != nil || len(r.Grants) > 0 {
		t.Errorf("without a store: %+v, %v", r, err)
	}
	if _, err := w.store.Apply(t.Context(), &bot.Change{Facts: []bot.Fact{{Bucket: approval.GrantBucket, Key: chat + "/x", Value: "{"}}}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Request(t.Context(), &tools.Call{Origin: tools.Origin{Chat: chat}}); err == nil {
		t.Error("unreadable approvals cause no error")
	}
}

// TestAlive: a standing approval applies to the server and the tool for which it was stored, even while that server is
// away.
func TestAlive(t *testing.T) {
	t.Parallel()
	w := setup(t, nil)
	good := policy.Grant{Tool: "known:do", Server: "a", Definition: does("known").Hash()}
	for _, tt := range []struct {
		name   string
		change func(*policy.Grant)
		want   bool
	}{
		{"the same", func(*policy.Grant) {}, true},
		{"another server of the name", func(g *policy.Grant) { g.Server = "b" }, false},
		{"another tool of the name", func(g *policy.Grant) { g.Definition = "x" }, false},
		{"away for the moment", func(g *policy.Grant) { g.Tool, g.Server, g.Definition = "other:do", "b", "x" }, true},
		{"removed", func(g *policy.Grant) { g.Tool = "gone:do" }, false},
	} {
		g := good
		tt.change(&g)
		if got := w.Alive(g); got != tt.want {
			t.Errorf("%s: %t", tt.name, got)
		}
	}
}

// TestCovers: a grant covers only what the current rules ask about and would not ask about with the grant.
func TestCovers(t *testing.T) {
	t.Parallel()
	w := setup(t, nil)
	g := policy.Grant{Tool: "known:do", Server: "a", Definition: "d", Kind: policy.GrantTool, Session: string(session), Caller: "telegram:1"}
	a := &bot.Approval{Caller: "telegram:1", Session: session, Place: bot.Place{Channel: "telegram", Bot: "7", Surface: "bot", Chat: "1"}}
	q := tools.Question{
		Tool: "known:do", Args: "{}", ReadOnly: true,
		Basis: tools.Basis{Server: "a", Definition: "d", Dir: w.dir, Inputs: []string{"{}"}},
	}
	if w.Covers(a, &q, nil) {
		t.Error("it is covered without a grant")
	}
	if !w.Covers(a, &q, []policy.Grant{g}) {
		t.Error("the grant for the tool does not cover it")
	}
	broken := q
	broken.Args = "{"
	if w.Covers(a, &broken, []policy.Grant{g}) {
		t.Error("an unreadable call is covered")
	}
	other := q
	other.Definition = "e"
	if w.Covers(a, &other, []policy.Grant{g}) {
		t.Error("another tool of the name is covered")
	}
}

// TestEndServer: the approvals of a server end with it in every chat; no others do.
func TestEndServer(t *testing.T) {
	t.Parallel()
	w := setup(t, nil)
	w.grant(t, "known")
	w.grant(t, "other")
	for range 2 {
		if err := w.EndServer(t.Context(), "known"); err != nil {
			t.Fatal(err)
		}
	}
	left, err := approval.Grants(t.Context(), w.store, chat, session, "", time.Now())
	if err != nil || len(left) != 1 || left[0].Tool != "other:do" {
		t.Errorf("left: %+v, %v", left, err)
	}
}

// TestLine pins the audit line of a standing approval.
func TestLine(t *testing.T) {
	t.Parallel()
	w := setup(t, nil)
	e := approval.RuleEvent{
		Verb: "store", ID: "9", By: "telegram:1", Chat: chat, Session: session, Place: bot.Place{Channel: "telegram", Bot: "7", Surface: "bot", Chat: "1"},
		Grant: approval.Grant{Grant: policy.Grant{Tool: "known:do"}, By: "telegram:1"},
	}
	var got *tools.Call
	facts := w.Line(e, func(call *tools.Call, err error) []bot.Fact {
		if got = call; err != nil {
			t.Error(err)
		}
		return []bot.Fact{{Key: "due"}}
	})
	if len(facts) != 1 || got.Tool != "policy_store" || got.ID != "9" || got.Trail.Rule != "grant: known:do" || got.Trail.ApprovedBy != "telegram:1" ||
		got.Origin != (tools.Origin{Channel: "telegram", Session: string(session), Chat: chat, Caller: "telegram:1"}) || !strings.Contains(string(got.Args), `"chat":"`+chat) {
		t.Errorf("%v: %+v %+v", facts, got, got.Trail)
	}
}

// chain is the verdict of the stages about a call.
type chain func(call *tools.Call) error

func (c chain) Execute(_ context.Context, call *tools.Call) (*tools.Result, error) {
	if !call.Probe {
		return nil, errors.New("it would run")
	}
	return nil, c(call)
}

// TestCheck: the stages decide; what they do not reach is decided by the rules alone; an unknown name is refused with
// the nearest one.
func TestCheck(t *testing.T) {
	t.Parallel()
	w := setup(t, nil)
	for _, tt := range []struct {
		name, tool, args string
		says             chain
		want             rulebook.Decision
		wrong            string
	}{
		{"decided", "known:do", `{}`, func(c *tools.Call) error {
			c.Trail.Effect, c.Trail.Rule, c.Trail.Reason = "ask", "r", reason.Plain("why")
			return errors.New("asked")
		}, rulebook.Decision{Effect: "ask", Rule: "r", Reason: reason.Plain("why")}, ""},
		{"may run", "known:do", `{}`, func(*tools.Call) error { return tools.ErrProbed }, rulebook.Decision{Effect: "allow"}, ""},
		{"not an object", "known:do", `[]`, func(*tools.Call) error { return errors.New("x") }, rulebook.Decision{}, "the arguments are not a JSON object"},
		{"a typo", "typo", `{}`, nil, rulebook.Decision{}, "no such tool as typo"},
		{"a typo of a server's tool", "known:du", `{}`, nil, rulebook.Decision{}, `"known:du" names no tool of the server known (did you mean known:do?)`},
	} {
		got, err := w.Check(t.Context(), tt.says, &tools.Call{Tool: tt.tool, Args: []byte(tt.args), Trail: &tools.Trail{}})
		if !reflect.DeepEqual(got, tt.want) || (err != nil) != (tt.wrong != "") {
			t.Errorf("%s: %+v, %v", tt.name, got, err)
		}
		if err != nil && (!errors.Is(err, rulebook.ErrMistaken) || !strings.HasPrefix(err.Error(), tt.wrong)) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
	got, err := w.Check(t.Context(), chain(func(*tools.Call) error { return errors.New("unknown") }), &tools.Call{Tool: "maybe", Args: []byte(`{"command":"ls"}`), Trail: &tools.Trail{}})
	if got.Effect == "" || err != nil {
		t.Errorf("by the rules alone: %+v, %v", got, err)
	}
}

// TestAnswers: /policy shows the rules in force, and judges a call where the conversation works.
func TestAnswers(t *testing.T) {
	t.Parallel()
	w := setup(t, func(d *rulebook.Deps) { d.Judged = true })
	if _, err := w.store.Apply(t.Context(), &bot.Change{Claim: &bot.Claim{Session: session, Workspace: "kept", Owner: "o", Until: time.Now()}}); err != nil {
		t.Fatal(err)
	}
	var seen tools.Origin
	a := rulebook.Answers{Book: w.Book, Chain: func() rulebook.Chain {
		return chain(func(c *tools.Call) error {
			seen = c.Origin
			return tools.ErrProbed
		})
	}}
	status := texts.Words{}.PolicyStatus("en", a.Status())
	for _, line := range []string{"what rules allow; else I ask", "Further rules: none", "Rules about people: none", "A model looks at risky calls", "confines commands: full"} {
		if !strings.Contains(status, line) {
			t.Errorf("no %q in\n%s", line, status)
		}
	}
	msg := &bot.Message{Caller: "telegram:1", Place: bot.Place{Channel: "telegram", Bot: "7", Surface: "bot", Chat: "1"}}
	effect, _, err := a.Check(t.Context(), msg, session, "known:do", []byte(`{}`))
	if effect != "allow" || err != nil || seen.Workspace != "kept" || seen.Chat != chat || seen.Caller != "telegram:1" {
		t.Errorf("%s, %v, asked for %+v", effect, err, seen)
	}
	if _, _, err := a.Check(t.Context(), msg, session, "known:do", []byte(`{`)); !errors.Is(err, rulebook.ErrMistaken) {
		t.Errorf("no JSON: %v", err)
	}
}

// TestPolicyCommand: /policy shows the rules, those that are always allowed, and what the rules would decide.
func TestPolicyCommand(t *testing.T) {
	t.Parallel()
	w := setup(t, nil)
	listed := 0
	a := rulebook.Answers{
		Book:  w.Book,
		Chain: func() rulebook.Chain { return chain(func(*tools.Call) error { return tools.ErrProbed }) },
		Granted: func(_ context.Context, call *turn.Call) (turn.Effect, error) {
			listed++
			return call.ReplyText("granted"), nil
		},
	}
	for args, want := range map[string]string{
		"":                         "what rules allow; else I ask",
		"status":                   "what rules allow; else I ask",
		"rules":                    "granted",
		"check known:do {\"a\":1}": "It would run",
		"check known:do nonsense":  "not JSON",
		"check known:do":           "/policy check TOOL",
		"rules more":               "/policy check TOOL",
		"foo":                      "/policy check TOOL",
	} {
		msg := &bot.Message{ID: "1", Caller: "telegram:1", Args: args, Place: bot.Place{Channel: "telegram", Bot: "7", Surface: "bot", Chat: "1"}}
		e, err := a.Command(t.Context(), &turn.Call{Message: msg, Session: session, Admin: true})
		if err != nil || len(e.Change.Send) != 1 || !strings.Contains(e.Change.Send[0].Content.Text, want) {
			t.Errorf("/policy %s: %+v, %v, want %q", args, e.Change.Send, err, want)
		}
	}
	if listed != 1 {
		t.Errorf("what is always allowed was listed %d times", listed)
	}
}

// TestUnreadable: a denied directory is hidden as a whole, unless allow_read may allow something below it. Otherwise
// each file in it would have to be hidden, and where that are too many, every command would ask.
func TestUnreadable(t *testing.T) {
	t.Parallel()
	files, err := pathrule.New([]string{"/etc/*", "/root/*"}, []string{"/etc/hostname"})
	if err != nil {
		t.Fatal(err)
	}
	rules, err := policy.New(policy.Options{Files: files})
	if err != nil {
		t.Fatal(err)
	}
	u, restricts := rulebook.Unreadable(rules, func() []string { return nil })("/work")
	if !restricts {
		t.Fatal("nothing restricts reading")
	}
	for _, tc := range []struct {
		path  string
		isDir bool
		want  bool
	}{
		{"/root/.cache", true, true},
		{"/root/notes", false, true},
		{"/etc/ssl", true, true},
		{"/etc/hostname", false, false},
		{"/etc/passwd", false, true},
		{"/etc", true, false},
		{"/work/a", false, false},
	} {
		if got := u.Denied(tc.path, tc.isDir); got != tc.want {
			t.Errorf("%s: hidden %v", tc.path, got)
		}
	}
}
