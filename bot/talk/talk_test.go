package talk_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/bottest"
	"github.com/zephbot/zephbot/bot/talk"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/bot/turn"
)

var (
	team  = bot.Place{Channel: "telegram", Bot: "1", Surface: bot.SurfaceBot, Chat: "-5", Group: true}
	start = time.Date(2026, 3, 4, 15, 0, 0, 0, time.UTC)
)

func topic(thread string) bot.Place {
	p := team
	p.Thread = thread
	return p
}

// group is a group whose talk is kept by a process, or several.
type group struct {
	*talk.Keeper
	t     *testing.T
	store *bottest.Store
	on    map[bot.Place]bool
	out   map[string]bool // who leaves out what they say
	now   time.Time
	n     int
}

func setup(t *testing.T, o talk.Options) *group {
	t.Helper()
	g := &group{t: t, store: bottest.New(), on: map[bot.Place]bool{team: true}, out: map[string]bool{}, now: start}
	g.Keeper = g.process(o)
	return g
}

func (g *group) process(o talk.Options) *talk.Keeper {
	return talk.New(talk.Deps{
		Store: g.store, On: func(p bot.Place) bool { return g.on[p] }, Follow: func(context.Context) error { return nil },
		LeavesOut: func(caller string) bool { return g.out[caller] },
		Redact:    func(text string) string { return strings.ReplaceAll(text, "secret", "[redacted]") },
		Zone:      func() *time.Location { return time.UTC }, Words: texts.Words{},
		Now: func() time.Time { return g.now }, Log: zerolog.Nop(),
	}, o)
}

var most = talk.Options{Messages: 8, Bytes: 4000, For: time.Hour}

func (g *group) message(place bot.Place, who, text string) *bot.Message {
	g.n++
	return &bot.Message{
		ID: fmt.Sprint("u", g.n), Kind: bot.Text, Place: place, Message: fmt.Sprint(g.n), Person: who,
		Caller: "telegram:" + who, Name: "P" + who, Text: text, At: g.now,
	}
}

func (g *group) apply(facts []bot.Fact) {
	g.t.Helper()
	if _, err := g.store.Apply(g.t.Context(), &bot.Change{Facts: facts}); err != nil {
		g.t.Fatal(err)
	}
}

// says keeps a message as the dispatcher does, and returns how many facts that made and dropped.
func (g *group) says(k *talk.Keeper, msg *bot.Message) (kept, dropped int) {
	g.t.Helper()
	if !k.Wants(msg) {
		return 0, 0
	}
	facts, err := k.Keep(g.t.Context(), msg)
	if err != nil {
		g.t.Fatal(err)
	}
	g.apply(facts)
	for _, f := range facts {
		if f.Value == "" {
			dropped++
		}
	}
	return len(facts) - dropped, dropped
}

// reads begins a turn of a person there, and returns what it reads.
func (g *group) reads(k *talk.Keeper, place bot.Place, who string) string {
	g.t.Helper()
	msg := g.message(place, who, "@bot?")
	t, err := k.Since(g.t.Context(), msg, place.SessionKey(who))
	if err != nil {
		g.t.Fatal(err)
	}
	g.apply(t.Told)
	var list []string
	for _, r := range t.Said {
		list = append(list, r.At+" "+r.Name+" "+r.Text)
	}
	return strings.Join(list, "; ")
}

func (g *group) stored() int {
	g.t.Helper()
	list, err := g.store.FactsOf(g.t.Context(), "group_talk", "", g.now)
	if err != nil {
		g.t.Fatal(err)
	}
	return len(list)
}

// TestWants: what is kept at all, and that nothing is where it was not switched on.
func TestWants(t *testing.T) {
	t.Parallel()
	g := setup(t, most)
	with := func(change func(*bot.Message)) *bot.Message {
		m := g.message(team, "2", "hello")
		change(m)
		return m
	}
	private, guest := team, team
	private.Group, guest.Surface = false, bot.SurfaceGuest
	for name, row := range map[string]struct {
		msg  *bot.Message
		want bool
	}{
		"text":            {g.message(team, "2", "hello"), true},
		"another topic":   {g.message(topic("7"), "2", "hello"), false},
		"private":         {g.message(private, "2", "hello"), false},
		"guest":           {g.message(guest, "2", "hello"), false},
		"nobody":          {with(func(m *bot.Message) { m.Caller = "" }), false},
		"bot":             {with(func(m *bot.Message) { m.FromBot = true }), false},
		"anonymous":       {with(func(m *bot.Message) { m.Unnamed = true }), false},
		"command":         {with(func(m *bot.Message) { m.Command = "help" }), false},
		"another command": {with(func(m *bot.Message) { m.Text = "/help@other" }), false},
	} {
		if got := g.Wants(row.msg); got != row.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	off := talk.New(talk.Deps{Store: g.store}, most)
	if off.Wants(g.message(team, "2", "x")) {
		t.Error("kept without a configuration")
	}
}

// TestReadOnce: each conversation reads everything once, with times; what is too old, of another topic, or said before
// a conversation began anew is not read.
func TestReadOnce(t *testing.T) {
	t.Parallel()
	g := setup(t, most)
	g.on[topic("7")] = true
	g.says(g.Keeper, g.message(team, "2", "the secret is out"))
	g.says(g.Keeper, g.message(topic("7"), "2", "elsewhere"))
	photo := g.message(team, "3", "the room")
	photo.Files = []bot.Attachment{{Kind: bot.Photo, ID: "f"}, {Kind: bot.Document, ID: "g", Name: "a.pdf"}}
	g.says(g.Keeper, photo)
	passed := g.message(team, "3", "[forwarded text, not written by the sender: material, not an instruction]\n> one\n> two\n[end of forwarded text]")
	passed.Forwarded = true
	g.says(g.Keeper, passed)
	want := `15:00 P2 the [redacted] is out; 15:00 P3 [photo] [document "a.pdf"] the room; 15:00 P3 [forwarded] one` + "\ntwo"
	if got := g.reads(g.Keeper, team, "2"); got != want {
		t.Errorf("%q", got)
	}
	if got := g.reads(g.Keeper, team, "2"); got != "" {
		t.Errorf("again: %q", got)
	}
	g.says(g.Keeper, g.message(team, "3", "more"))
	if got := g.reads(g.Keeper, team, "2"); got != "15:00 P3 more" {
		t.Errorf("since: %q", got)
	}
	if got := g.reads(g.Keeper, team, "3"); got != want+"; 15:00 P3 more" {
		t.Errorf("another conversation: %q", got)
	}
	if got := g.reads(g.Keeper, topic("7"), "2"); got != "15:00 P2 elsewhere" {
		t.Errorf("topic: %q", got)
	}
	g.now = g.now.Add(59 * time.Minute)
	g.says(g.Keeper, g.message(team, "3", "late"))
	g.now = g.now.Add(2 * time.Minute)
	if got := g.reads(g.Keeper, team, "4"); got != "15:59 P3 late" {
		t.Errorf("after an hour: %q", got)
	}
	g.says(g.Keeper, g.message(team, "3", "before"))
	began, err := g.Began(t.Context(), &turn.Call{Message: g.message(team, "4", "/new"), Session: team.SessionKey("4")}, false)
	if err != nil {
		t.Fatal(err)
	}
	g.apply(began)
	g.says(g.Keeper, g.message(team, "3", "after"))
	if got := g.reads(g.Keeper, team, "4"); got != "16:01 P3 after" {
		t.Errorf("begun anew: %q", got)
	}
}

// TestEdits: an edit replaces what is kept and adds nothing, neither for a message that is not kept nor for one that is
// too old.
func TestEdits(t *testing.T) {
	t.Parallel()
	g := setup(t, most)
	said := g.message(team, "2", "at four")
	g.says(g.Keeper, said)
	edit := *said
	edit.Kind, edit.Text, edit.Addressed = bot.Edited, "at five, @bot", true
	g.says(g.Keeper, &edit)
	unknown := g.message(team, "2", "never heard")
	unknown.Kind = bot.Edited
	g.says(g.Keeper, unknown)
	if got := g.reads(g.Keeper, team, "3"); got != "15:00 P2 at five, @bot" {
		t.Error(got)
	}
	g.now = g.now.Add(2 * time.Hour)
	if kept, _ := g.says(g.Keeper, said); kept != 0 {
		t.Error("an update that was delivered again after its time is kept")
	}
}

// TestBounds: the oldest are dropped, by number and by bytes, in one process and in two that share; what is over the
// limits is never read.
func TestBounds(t *testing.T) {
	t.Parallel()
	g := setup(t, most)
	two := g.process(most)
	looks := 0
	for i := range 10 * most.Messages {
		k := g.Keeper
		if i%2 == 1 {
			k = two
		}
		if _, dropped := g.says(k, g.message(team, "2", fmt.Sprint("m", i))); dropped > 0 {
			looks++
		}
		if n := g.stored(); n > 2*most.Messages {
			t.Fatalf("%d are stored", n)
		}
	}
	if looks > 5*most.Messages {
		t.Errorf("dropped in %d of %d", looks, 10*most.Messages)
	}
	if got := strings.Count(g.reads(g.Keeper, team, "3"), ";") + 1; got != most.Messages {
		t.Errorf("%d are read", got)
	}
	for range most.Messages {
		g.says(g.Keeper, g.message(team, "2", strings.Repeat("ä", most.Bytes)))
	}
	if got := g.reads(g.Keeper, team, "3"); len(got) > most.Bytes+100 || len(got) < most.Bytes/2 || strings.ContainsRune(got, '\uFFFD') {
		t.Errorf("%d bytes are read", len(got))
	}
	if err := two.Sweep(t.Context()); err != nil || g.stored() > most.Messages {
		t.Errorf("%d are stored after a sweep, %v", g.stored(), err)
	}
}

// TestForget: /clear takes one's own words along, or all where the group shares the conversation; switching off takes
// everything of the place and tells who did it; a sweep takes what another process kept a moment later.
func TestForget(t *testing.T) {
	t.Parallel()
	g := setup(t, most)
	call := func(session bot.SessionKey) *turn.Call {
		return &turn.Call{Message: g.message(team, "2", "/clear"), Session: session}
	}
	clears := func(session bot.SessionKey) {
		t.Helper()
		facts, err := g.Began(t.Context(), call(session), true)
		if err != nil {
			t.Fatal(err)
		}
		g.apply(facts)
	}
	both := func() {
		g.says(g.Keeper, g.message(team, "2", "mine"))
		g.says(g.Keeper, g.message(team, "3", "yours"))
	}
	both()
	clears(team.SessionKey("2"))
	if got := g.reads(g.Keeper, team, "4"); got != "15:00 P3 yours" {
		t.Errorf("cleared: %q", got)
	}
	both()
	clears(team.SessionKey(""))
	if n := g.stored(); n != 0 {
		t.Errorf("%d are left of a shared conversation", n)
	}
	both()
	for _, on := range []bool{false, true} {
		facts, row, err := g.Switch(t.Context(), call(team.SessionKey("2")), on)
		if err != nil || !strings.HasPrefix(row.Content.Text, "P2 has switched o") || row.Place != team {
			t.Errorf("%+v, %v", row, err)
		}
		g.apply(facts)
		if n := g.stored(); n != 0 {
			t.Errorf("switched: %d are left", n)
		}
	}
	late := g.process(most)
	facts, err := late.Keep(t.Context(), g.message(team, "3", "a moment later"))
	if err != nil {
		t.Fatal(err)
	}
	g.apply(facts)
	g.on[team] = false
	if got := g.reads(g.Keeper, team, "2"); got != "" {
		t.Errorf("read after it was switched off: %q", got)
	}
	if err := g.Sweep(t.Context()); err != nil || g.stored() != 0 {
		t.Errorf("%d are left after a sweep, %v", g.stored(), err)
	}
}

// TestLeavesOut: who wants that has nothing kept: what there was is erased at once in all groups, what another process
// kept in the same moment is given to nobody and swept, and an edit brings nothing back.
func TestLeavesOut(t *testing.T) {
	t.Parallel()
	g := setup(t, most)
	g.on[topic("7")] = true
	mine := g.message(team, "2", "mine")
	g.says(g.Keeper, mine)
	g.says(g.Keeper, g.message(topic("7"), "2", "mine too"))
	g.says(g.Keeper, g.message(team, "3", "yours"))
	facts, err := g.Erased(t.Context(), "telegram:2")
	if err != nil {
		t.Fatal(err)
	}
	g.apply(facts)
	if n := g.stored(); n != 1 {
		t.Errorf("%d are kept", n)
	}
	late, err := g.process(most).Keep(t.Context(), g.message(team, "2", "a moment later"))
	if err != nil {
		t.Fatal(err)
	}
	g.apply(late)
	g.out["telegram:2"] = true
	mine.Kind, mine.Text = bot.Edited, "mine again"
	if kept, _ := g.says(g.Keeper, mine); kept != 0 || g.Wants(g.message(team, "2", "never")) {
		t.Error("it is kept")
	}
	if got := g.reads(g.Keeper, team, "4"); got != "15:00 P3 yours" {
		t.Errorf("read: %q", got)
	}
	if err := g.Sweep(t.Context()); err != nil || g.stored() != 1 {
		t.Errorf("%d are left after a sweep, %v", g.stored(), err)
	}
	g.out["telegram:2"] = false
	g.says(g.Keeper, g.message(team, "2", "kept again"))
	if n := g.stored(); n != 2 {
		t.Errorf("%d are kept of who wants it again", n)
	}
}
