package approval_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/approval"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/bot/turn"
	"github.com/zephbot/zephbot/policy"
	"github.com/zephbot/zephbot/tools"
)

// ruled is a world whose admin boss may store rules; what is stored or revoked is recorded.
type ruled struct {
	*world
	lines  int
	events []approval.RuleEvent // that were stored when Record was called
	dead   bool
	covers func(q *tools.Question, grants []policy.Grant) bool
}

func rules(t *testing.T) *ruled {
	t.Helper()
	r := &ruled{world: setup(t)}
	r.rights.Admins = []string{"telegram:boss", "telegram:ann"}
	r.Broker = r.another()
	return r
}

// another returns the broker of another process.
func (r *ruled) another() *approval.Broker {
	t := r.t
	return approval.New(approval.Deps{
		Store: r.store, Rights: func(context.Context, bot.Place, string) (approval.Rights, error) { return r.rights, nil }, Words: texts.Words{}, Now: func() time.Time { return r.now },
		Covers: func(_ *bot.Approval, q *tools.Question, grants []policy.Grant) bool {
			return r.covers != nil && r.covers(q, grants)
		},
		Alive: func(policy.Grant) bool { return !r.dead },
		Apply: r.store.Apply, Redact: func(s string) string { return strings.ReplaceAll(s, "hunter2", "[redacted]") },
		Line: func(e approval.RuleEvent) []bot.Fact {
			raw, err := json.Marshal(e)
			if err != nil {
				t.Error(err)
			}
			r.lines++
			return []bot.Fact{{Bucket: "line", Key: strconv.Itoa(r.lines), Value: string(raw)}}
		},
		Record: func(ctx context.Context) { r.events = r.stored(ctx) },
	}, 10*time.Minute)
}

// stored are the events that were stored with their rules.
func (r *ruled) stored(ctx context.Context) (list []approval.RuleEvent) {
	facts, err := r.store.FactsOf(ctx, "line", "", r.now)
	for _, f := range facts {
		var e approval.RuleEvent
		err = errors.Join(err, json.Unmarshal([]byte(f.Value), &e))
		list = append(list, e)
	}
	if err != nil {
		r.t.Error(err)
	}
	return list
}

var (
	exactly = policy.Grant{Tool: "bash", Kind: policy.GrantExact, Words: []string{"git", "push"}, Dir: "/work"}
	prefix  = policy.Grant{Tool: "bash", Kind: policy.GrantPrefix, Words: []string{"git", "push"}, Dir: "/work"}
)

func offering(call string, offers ...policy.Offer) tools.Question {
	q := question(call)
	q.Offers, q.Dir = offers, "/work"
	return q
}

func both(call string) tools.Question {
	return offering(call, policy.Offer{Kind: policy.OfferExact, Grants: []policy.Grant{exactly}}, policy.Offer{Kind: policy.OfferPrefix, Grants: []policy.Grant{prefix}})
}

// card is what the message of a question shows by now.
func (r *ruled) card(e turn.Effect) bot.Content {
	r.t.Helper()
	row := e.Change.Send[len(e.Change.Send)-1]
	if row.EditRow == 0 && row.Edit == "" {
		r.t.Fatalf("no card is edited: %+v", row)
	}
	return row.Content
}

func labels(c bot.Content) (out []string) {
	for _, row := range c.Buttons {
		for _, b := range row {
			out = append(out, b.Label)
		}
	}
	return out
}

func (r *ruled) granted(chat string, session bot.SessionKey) []policy.Grant {
	r.t.Helper()
	list, err := approval.Grants(r.t.Context(), r.store, chat, session, "", r.now)
	if err != nil {
		r.t.Fatal(err)
	}
	return list
}

func TestChooseAndStore(t *testing.T) {
	t.Parallel()
	r := rules(t)
	r.covers = func(q *tools.Question, grants []policy.Grant) bool {
		return len(grants) == 1 && grants[0].Kind == policy.GrantPrefix && strings.HasPrefix(q.Call, "c")
	}
	for i := range 5 {
		r.ask(question(fmt.Sprint("c", i)))
	}
	r.ask(question("x"))
	r.now = r.now.Add(8 * 24 * time.Hour)
	for i := range 4 {
		r.ask(question(fmt.Sprint("c", 10+i)))
	}
	open := r.ask(both("new"))
	a := open[len(open)-1]

	e, _ := r.pressIn("boss", data(a, "a"), here)
	c := r.card(e)
	if want := "What may I always do in this chat without asking?\n1. exactly git push\n2. everything beginning with git push *\n"; !strings.HasPrefix(c.Text, want) {
		t.Errorf("choices: %q", c.Text)
	}
	if diff := cmp.Diff([]string{"1. Exactly this", "2. Begins with git push *", "Back"}, labels(c)); diff != "" {
		t.Error(diff)
	}
	e, _ = r.pressIn("boss", data(a, "a1"), here)
	want := "Store this rule for this chat?\nbash: git push *\nIn the last 7 days I asked 4 times about what this would allow:\n• rm c13\n• rm c12\n• rm c11\n"
	if c = r.card(e); !strings.HasPrefix(c.Text, want) {
		t.Errorf("the rule: %q", c.Text)
	}
	if got := c.Buttons[1][0].Data; got != data(a, "a") {
		t.Errorf("back goes to %s", got)
	}
	if len(r.granted(here.ChatKey(), session)) != 0 {
		t.Error("stored before it was asked once more")
	}
	r.press("boss", data(a, "A1"))
	if diff := cmp.Diff([]policy.Grant{prefix}, r.granted(here.ChatKey(), session)); diff != "" {
		t.Error(diff)
	}
	if got := r.read(a.ID); got.State != bot.Approved || got.Scope != bot.Always {
		t.Errorf("the question: %+v", got)
	}
	if len(r.events) != 1 || r.events[0].Verb != "store" || r.events[0].By != "telegram:boss" || r.events[0].Chat != here.ChatKey() {
		t.Errorf("recorded: %+v", r.events)
	}
	r.press("boss", data(a, "A0")) // once more, and for more
	if got := r.granted(here.ChatKey(), session); len(got) != 1 || len(r.events) != 1 {
		t.Errorf("a second press stored more: %+v", got)
	}
}

// A single choice needs no list.
func TestOneChoice(t *testing.T) {
	t.Parallel()
	r := rules(t)
	a := r.ask(offering("c", policy.Offer{Kind: policy.OfferExact, Grants: []policy.Grant{exactly}}))[0]
	e, _ := r.pressIn("boss", data(a, "a"), here)
	if c := r.card(e); !strings.HasPrefix(c.Text, "Store this rule for this chat?\nbash: git push\nIn the last 7 days I asked about nothing else") || c.Buttons[1][0].Data != data(a, "b") {
		t.Errorf("%+v", c)
	}
	e, _ = r.pressIn("boss", data(a, "b"), here)
	if c := r.card(e); !strings.Contains(c.Text, "May I run this?") {
		t.Errorf("%+v", c)
	}
}

// Only what was offered can be stored, and only by an admin.
func TestAttackForgedRule(t *testing.T) {
	t.Parallel()
	r := rules(t)
	a := r.ask(both("c1"))[0]
	b := r.ask(question("c2"))[1]
	for _, choice := range []string{"A", "A2", "A-1", "A00", "A 0", "A+0", "a2", "ab", "b0", "B", "A0x", "", "A99999999999999999999"} {
		r.press("boss", data(a, choice))
	}
	for _, choice := range []string{"a", "a0", "A0", "t"} {
		r.press("boss", data(b, choice))
	}
	r.rights.Admins = []string{"telegram:boss"}
	for _, choice := range []string{"a", "a0", "A0", "b"} {
		if _, toast := r.press("ann", data(a, choice)); toast.Content.Text != (texts.Words{}).AdminsStore("") {
			t.Errorf("%s by one who is no admin: %q", choice, toast.Content.Text)
		}
	}
	r.press("boss", data(a, "t")) // nobody offered it
	if got := r.granted(here.ChatKey(), session); len(got) != 0 || len(r.events) != 0 {
		t.Errorf("stored: %+v", got)
	}
	if got := r.read(a.ID); got.State != bot.Open {
		t.Errorf("decided: %+v", got)
	}
	r.now = r.now.Add(time.Hour)
	r.press("boss", data(a, "A0"))
	if got := r.granted(here.ChatKey(), session); len(got) != 0 {
		t.Errorf("stored after the question had expired: %+v", got)
	}
}

func TestWholeTool(t *testing.T) {
	t.Parallel()
	r := rules(t)
	whole := policy.Grant{Tool: "srv:read", Kind: policy.GrantTool, Server: "addr", Definition: "def", Session: session, Caller: "telegram:ann"}
	q := question("c1")
	q.Tool, q.Whole = "srv:read", &whole
	a := r.ask(q)[0]
	row, err := r.store.Row(t.Context(), a.Row)
	if err != nil || !strings.Contains(fmt.Sprint(labels(row.Content)), "Approve this tool in this conversation") {
		t.Errorf("card: %v, %v", labels(row.Content), err)
	}
	if _, toast := r.press("mallory", data(a, "t")); len(r.granted(here.ChatKey(), session)) != 0 {
		t.Errorf("a stranger approved: %+v", toast)
	}
	r.press("ann", data(a, "t"))
	if diff := cmp.Diff([]policy.Grant{whole}, r.granted(here.ChatKey(), session)); diff != "" {
		t.Error(diff)
	}
	if got := r.granted(here.ChatKey(), "telegram/7/bot/-5/0/bob"); len(got) != 0 {
		t.Errorf("in another conversation: %+v", got)
	}
	if got := r.granted("telegram/7/bot/-6", session); len(got) != 0 {
		t.Errorf("in another chat: %+v", got)
	}
	r.now = r.now.Add(time.Minute)
	r.apply(&bot.Change{Facts: []bot.Fact{{Bucket: bot.ResetBucket, Key: session, Value: r.now.Format(time.RFC3339Nano)}}})
	if got := r.granted(here.ChatKey(), session); len(got) != 0 {
		t.Errorf("after /new: %+v", got)
	}
	q.Call, q.Hash = "c2", "other"
	r.rights.Required = 2
	b := r.ask(q)[0]
	if row, _ := r.store.Row(t.Context(), b.Row); strings.Contains(fmt.Sprint(labels(row.Content)), "in this conversation") {
		t.Error("one of two is offered to approve for the other")
	}
	r.press("ann", data(b, "t"))
	if got := r.read(b.ID); got.State != bot.Open || len(got.Votes) != 0 {
		t.Errorf("one of two approved: %+v", got)
	}
}

// TestHostOfAWay: a question about where something goes offers the page and its host, or the server, and nothing else; a
// press on a button that it does not have changes nothing.
func TestHostOfAWay(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		grant policy.Grant
		want  string
	}{
		{policy.Grant{Tool: "fetch", Kind: policy.GrantHost, Input: "evil.example"}, "[This page This host, this conversation Deny]"},
		{policy.Grant{Tool: "srv:write", Kind: policy.GrantHost, Server: "addr", Definition: "def"}, "[Approve once This server, this conversation Deny]"},
	} {
		r := rules(t)
		tt.grant.Session, tt.grant.Caller = session, "telegram:ann"
		q := question("c1")
		q.Tool, q.Whole, q.Offers = tt.grant.Tool, &tt.grant, nil
		a := r.ask(q)[0]
		row, err := r.store.Row(t.Context(), a.Row)
		if err != nil || fmt.Sprint(labels(row.Content)) != tt.want {
			t.Errorf("card: %v, %v", labels(row.Content), err)
		}
		r.press("ann", data(a, "s"))
		r.press("mallory", data(a, "t"))
		if got := r.read(a.ID); got.State != bot.Open || len(r.granted(here.ChatKey(), session)) != 0 {
			t.Errorf("decided by a button that is not there, or a stranger: %+v", got)
		}
		r.press("ann", data(a, "t"))
		if diff := cmp.Diff([]policy.Grant{tt.grant}, r.granted(here.ChatKey(), session)); diff != "" {
			t.Error(diff)
		}
		if got := r.read(a.ID); got.State != bot.Approved || got.Scope != bot.Host {
			t.Errorf("%+v", got)
		}
	}
}

// put stores a rule as of now and moves the clock on.
func (r *ruled) put(chat string, g any) {
	r.t.Helper()
	value, err := json.Marshal(g)
	if err != nil {
		r.t.Fatal(err)
	}
	r.id++
	r.apply(&bot.Change{Facts: []bot.Fact{{Bucket: approval.GrantBucket, Key: fmt.Sprintf("%s/bash/%d", chat, r.id), Value: string(value)}}})
	r.now = r.now.Add(time.Minute)
}

// list is /policy rules in a place.
func (r *ruled) list(place bot.Place) bot.Content {
	r.t.Helper()
	m := r.message("boss")
	m.Place = place
	e, err := r.Rules(r.t.Context(), &turn.Call{Message: &m, Session: session, Admin: true})
	if err != nil {
		r.t.Fatal(err)
	}
	return e.Change.Send[0].Content
}

func TestRulesList(t *testing.T) {
	t.Parallel()
	r := rules(t)
	if got := r.list(here); got.Text != (texts.Words{}).Rules("", nil, 1, 0, "") || len(got.Buttons) != 0 {
		t.Errorf("empty: %+v", got)
	}
	r.put(here.ChatKey(), map[string]any{"tool": "bash", "pattern": "git *", "by": "telegram:1", "at": r.now})
	mcp := exactly
	mcp.Tool, mcp.Server, mcp.Words, mcp.Input, mcp.Dir = "srv:read", "addr", nil, "{}", ""
	r.put(here.ChatKey(), approval.Grant{Grant: mcp, By: "telegram:1", Name: "Ann", At: r.now})
	for i := range 5 {
		g := exactly
		g.Words = []string{"make", fmt.Sprint("t", i)}
		r.put(here.ChatKey(), approval.Grant{Grant: g, Root: "/work", By: "telegram:1", Name: "Ann", At: r.now})
	}
	r.put("telegram/7/bot/-6", approval.Grant{Grant: prefix, Root: "/work", By: "telegram:1", Name: "Ben", At: r.now})
	r.dead = true
	got := r.list(here)
	if !strings.HasPrefix(got.Text, "What I may do without asking:\n\n1. bash: make t4\nthis chat · by Ann, 1 Nov 2026, 14:06 UTC\nnot used yet\n\n2. bash: make t3") || strings.Contains(got.Text, "git push") {
		t.Errorf("first page: %q", got.Text)
	}
	if diff := cmp.Diff([]string{"Revoke 1", "Revoke 2", "Revoke 3", "Revoke 4", "Revoke 5", "Older ›"}, labels(got)); diff != "" {
		t.Error(diff)
	}
	for _, row := range got.Buttons {
		if len(row[0].Data) > 64 {
			t.Errorf("Telegram takes 64 bytes: %q", row[0].Data)
		}
	}
	e, _ := r.pressIn("boss", got.Buttons[5][0].Data, here)
	got = r.card(e)
	for _, want := range []string{"6. srv:read: {}\n", "no longer valid: the server was removed or has changed", "7. bash: git *\nthis chat · by telegram:1", "no longer valid: stored by an older version", "6 to 7 of 7"} {
		if !strings.Contains(got.Text, want) {
			t.Errorf("no %q in %q", want, got.Text)
		}
	}
	private := here
	private.Chat, private.Group = "1", false
	if got := r.list(private); !strings.Contains(got.Text, "1. bash: git push *\nchat -6 · by Ben") {
		t.Errorf("in private: %q", got.Text)
	}
	for _, g := range r.granted(here.ChatKey(), session) {
		if g.Kind == "" && (g.Input != "" || len(g.Words) > 0) {
			t.Errorf("an old rule counts: %+v", g)
		}
	}
}

// pressIn presses in a place; the toast may be silent.
func (r *ruled) pressIn(person, data string, place bot.Place) (turn.Effect, bot.Content) {
	r.t.Helper()
	m := r.message(person)
	m.Kind, m.Data, m.Place = bot.Press, data, place
	e, err := r.Press(r.t.Context(), &m)
	if err != nil {
		r.t.Fatal(err)
	}
	next := r.follow(e, r.apply(&e.Change))
	for _, row := range next.Change.Send {
		return e, row.Content
	}
	return e, bot.Content{}
}

func TestAttackRevoke(t *testing.T) {
	t.Parallel()
	r := rules(t)
	r.put(here.ChatKey(), approval.Grant{Grant: prefix, Root: "/work", By: "telegram:1", Name: "Ann", At: r.now})
	button := r.list(here).Buttons[0][0].Data
	for person, place := range map[string]bot.Place{"ben": here, "": here} {
		e, _ := r.pressIn(person, button, place)
		if e.Change.Send[0].Content.Text != (texts.Words{}).AdminsStore("") || len(r.granted(here.ChatKey(), session)) != 1 {
			t.Errorf("%q revoked: %+v", person, e.Change)
		}
	}
	elsewhere := here
	elsewhere.Chat = "-6"
	e, _ := r.pressIn("boss", button, elsewhere)
	if len(r.granted(here.ChatKey(), session)) != 1 || e.Change.Send[0].Content.Text != (texts.Words{}).RevokedAlready("") {
		t.Errorf("revoked from another group: %+v", e.Change)
	}
	for _, data := range []string{"g1:x:0", "g1:" + strings.Split(button, ":")[1] + ":x", "g1:" + strings.Split(button, ":")[1] + ":-1", "g1::", "g1::-1", "g1", "g1:a:b:c"} {
		r.pressIn("boss", data, here)
		if len(r.granted(here.ChatKey(), session)) != 1 {
			t.Errorf("%q revoked", data)
		}
	}
	if len(r.events) != 0 {
		t.Errorf("recorded: %+v", r.events)
	}
	_, shown := r.pressIn("boss", button, here)
	if len(r.granted(here.ChatKey(), session)) != 0 || !strings.Contains(shown.Text, "Revoked: bash: git push *") || len(shown.Buttons) != 0 {
		t.Errorf("not revoked: %+v", shown)
	}
	if len(r.events) != 1 || r.events[0].Verb != "revoke" || r.events[0].By != "telegram:boss" || r.events[0].Chat != here.ChatKey() {
		t.Errorf("recorded: %+v", r.events)
	}
	e, _ = r.pressIn("boss", button, here)
	if e.Change.Send[0].Content.Text != (texts.Words{}).RevokedAlready("") || len(r.events) != 1 {
		t.Errorf("again: %+v", e.Change)
	}
}

func TestEndServer(t *testing.T) {
	t.Parallel()
	r := rules(t)
	for tool, chat := range map[string]string{"srv:a": here.ChatKey(), "srv:b": "telegram/7/bot/-6", "srv2:a": here.ChatKey(), "bash": here.ChatKey()} {
		r.put(chat, approval.Grant{Grant: policy.Grant{Tool: tool, Kind: policy.GrantExact, Server: "addr"}, At: r.now})
	}
	facts, err := approval.EndServer(t.Context(), r.store, "srv", r.now)
	if err != nil || len(facts) != 2 {
		t.Fatalf("%v, %v", facts, err)
	}
	r.apply(&bot.Change{Facts: facts})
	for _, g := range append(r.granted(here.ChatKey(), session), r.granted("telegram/7/bot/-6", session)...) {
		if strings.HasPrefix(g.Tool, "srv:") {
			t.Errorf("left: %+v", g)
		}
	}
	if got := r.granted(here.ChatKey(), session); len(got) != 2 {
		t.Errorf("others ended too: %+v", got)
	}
}

// A file that is not what it was when the call was last approved is named on the card.
func TestAttackChangedSinceApproved(t *testing.T) {
	t.Parallel()
	r := rules(t)
	with := func(call, hash string) tools.Question {
		q := question(call)
		q.Hash = hash
		q.Files = []policy.File{{Name: ".", Path: "/work/" + call}, {Name: "./deploy.sh", Path: "/work/" + call + "/deploy.sh", Hash: hash}}
		return q
	}
	text := func(a bot.Approval) string {
		row, err := r.store.Row(t.Context(), a.Row)
		if err != nil {
			t.Fatal(err)
		}
		return row.Content.Text
	}
	const warning = "./deploy.sh has changed since you allowed it."
	a := r.ask(with("c1", "one"))[0]
	if strings.Contains(text(a), warning) {
		t.Error("nothing was allowed yet")
	}
	r.press("ann", data(a, "s"))
	if got, err := r.Approval(t.Context(), session, "c2", "one"); err != nil || got.State != "approved" {
		t.Errorf("unchanged: %+v, %v", got, err)
	}
	if got, err := r.Approval(t.Context(), session, "c2", "two"); err != nil || got.State != "" {
		t.Errorf("changed: %+v, %v", got, err)
	}
	b := r.ask(with("c2", "two"))[0]
	if !strings.Contains(text(b), warning) {
		t.Errorf("the card does not say so: %q", text(b))
	}
	r.press("ann", data(b, "n"))
	c := r.ask(with("c3", "one"))[0]
	if strings.Contains(text(c), warning) {
		t.Error("it is what was allowed")
	}
	r.press("ann", data(c, "y"))
	// The same call was approved once, and the file is another one by the time it runs.
	d := r.ask(with("c3", "three"))[0]
	if d.ID == c.ID || !strings.Contains(text(d), warning) {
		t.Errorf("approved once, then changed: %q", text(d))
	}
}

// What cannot be read is an error, never a rule.
func TestDamagedRules(t *testing.T) {
	t.Parallel()
	r := rules(t)
	r.apply(&bot.Change{Facts: []bot.Fact{{Bucket: approval.GrantBucket, Key: here.ChatKey() + "/bash/x", Value: "{"}}})
	if _, err := approval.Grants(t.Context(), r.store, here.ChatKey(), session, "", r.now); err == nil {
		t.Error("read")
	}
	if _, err := approval.EndServer(t.Context(), r.store, "srv", r.now); err == nil {
		t.Error("ended")
	}
	m := r.message("boss")
	if _, err := r.Rules(t.Context(), &turn.Call{Message: &m}); err == nil {
		t.Error("listed")
	}
	m.Kind, m.Data = bot.Press, "g1:x:0"
	if _, err := r.Press(t.Context(), &m); err == nil {
		t.Error("pressed")
	}
}
