package command_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/bottest"
	"github.com/zephbot/zephbot/bot/command"
	"github.com/zephbot/zephbot/bot/feature"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/bot/turn"
	"github.com/zephbot/zephbot/policy/reason"
)

var (
	noon     = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	errStore = errors.New("the store is away")
	private  = bot.Place{Channel: "telegram", Bot: "1", Surface: "bot", Chat: "42"}
	session  = private.SessionKey("")
)

// store is a bot's store of which one call may fail.
type store struct {
	*bottest.Store
	fail string
}

func (s *store) Lane(ctx context.Context, session bot.SessionKey) (bot.Lane, error) {
	if s.fail == "lane" {
		return bot.Lane{}, errStore
	}
	return s.Store.Lane(ctx, session)
}

func (s *store) Tickets(ctx context.Context, scope string) ([]bot.Ticket, error) {
	if s.fail == "tickets" {
		return nil, errStore
	}
	return s.Store.Tickets(ctx, scope)
}

func (s *store) OpenApprovals(ctx context.Context, session bot.SessionKey) ([]bot.Approval, error) {
	if s.fail == "open" {
		return nil, errStore
	}
	return s.Store.OpenApprovals(ctx, session)
}

func (s *store) Express(ctx context.Context, channel, id string, limit int) ([]bot.Arrival, error) {
	if s.fail == "express" {
		return nil, errStore
	}
	return s.Store.Express(ctx, channel, id, limit)
}

func (s *store) Counts(ctx context.Context, channel, id string) (bot.Counts, error) {
	if s.fail == "counts" {
		return bot.Counts{}, errStore
	}
	return s.Store.Counts(ctx, channel, id)
}

// desk is a table with the commands of this package and some of other features.
type desk struct {
	t            *testing.T
	store        *store
	servers      texts.Connected
	conversation *command.Conversation
	status       *command.Status
	others       feature.List
	deps         command.Deps
	table        *command.Table
}

// welcome knows the code of an admin.
func welcome(_ context.Context, call *turn.Call) (turn.Effect, bool, error) {
	if call.Admin && call.Message.Args == "ABCDEFGH23456777" {
		return call.ReplyText("You are an admin"), true, nil
	}
	return turn.Effect{}, false, nil
}

func setup(t *testing.T) *desk {
	t.Helper()
	d := &desk{t: t, store: &store{Store: bottest.New()}}
	admins := func() []string { return []string{"Ben", "8"} }
	now := func() time.Time { return noon }
	d.deps = command.Deps{Admins: admins, Welcome: welcome}
	d.conversation = &command.Conversation{Store: d.store, Now: now}
	d.status = &command.Status{Store: d.store, Admins: admins, Now: now, About: command.About{
		Model:    func(bot.SessionKey) string { return "main/gpt" },
		Sandbox:  reason.New(reason.Sandbox).With(reason.New(reason.SandboxNone)),
		Embedded: true,
		Engine:   "PostgreSQL",
		Version:  "1.2",
		Started:  noon.Add(-3 * time.Hour),
		Tools:    func(bot.SessionKey, bot.Place) []texts.Tool { return []texts.Tool{{Name: "bash"}, {Name: "read"}} },
		Servers:  func() texts.Connected { return d.servers },
	}}
	answer := func(_ context.Context, call *turn.Call) (turn.Effect, error) { return call.ReplyText("done"), nil }
	words := texts.Words{}
	d.others = feature.List{
		{Name: "approval", Commands: []feature.Command{{Name: "approve", Audience: feature.Deciders, Run: answer}, {Name: "deny", Audience: feature.Deciders, Run: answer}}},
		{Name: "rules", Commands: []feature.Command{{Name: "policy", Audience: feature.Admins, Run: answer}}},
		{Name: "memory", Off: true, Commands: []feature.Command{{Name: "memory", Run: answer, OffText: words.MemoryOff}}},
		{Name: "privacy", Commands: []feature.Command{{Name: "export"}}},
	}
	d.make()
	return d
}

// make makes the table of the features as they are now.
func (d *desk) make() {
	d.table = command.New(append(feature.List{d.conversation.Feature(), d.status.Feature()}, d.others...), d.deps)
}

func call(text string, admin bool) *turn.Call {
	name, args, _ := strings.Cut(text, " ")
	return &turn.Call{
		Session: session, Admin: admin,
		Message: &bot.Message{ID: "100", Kind: bot.Text, Place: private, Caller: "telegram:42", Person: "42", Name: "Ann", Command: name, Args: args, Message: "9"},
	}
}

func (d *desk) run(c *turn.Call) turn.Effect {
	d.t.Helper()
	e, err := d.table.Run(d.t.Context(), c)
	if err != nil {
		d.t.Fatal(err)
	}
	return e
}

// answer is the text a command answers with.
func (d *desk) answer(c *turn.Call) string {
	d.t.Helper()
	e := d.run(c)
	if len(e.Change.Send) != 1 {
		d.t.Fatalf("%d rows", len(e.Change.Send))
	}
	row := e.Change.Send[0]
	if row.Purpose != bot.Reply || row.Session != session || row.Place != c.Message.Place {
		d.t.Errorf("row %+v", row)
	}
	return row.Content.Text
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	tests := []struct {
		text  string
		admin bool
		want  string
	}{
		{"start", false, "Hello Ann. I am"},
		{"START", false, "Hello Ann. I am"},
		{"help", false, "/approve – approve a question"},
		{"tools", false, "• bash – run commands\n• read – read files"},
		{"clear", false, "forgotten this conversation"},
		{"new", false, "A fresh conversation."},
		{"stop", false, "Nothing is running here."},
		{"statsu", false, "Did you mean /status?"},
		{"strat", false, "Did you mean /start?"},
		{"polixy", false, "Did you mean /policy?"},
		{"memoyr", false, "Did you mean /memory?"},
		{"xyzzy" + strings.Repeat("z", 100), false, "/help shows what there is."},
		{"approve", false, "done"},
		{"memory", false, "I remember nothing between conversations here"},
		{"export", false, "works in Telegram only"},
		{"policy", false, "That is for admins of this bot (Ben, 8)."},
		{"policy", true, "done"},
		{"tools unblock bash", false, "• bash"},
	}
	for _, tt := range tests {
		t.Run(tt.text, func(t *testing.T) {
			t.Parallel()
			d := setup(t)
			if got := d.answer(call(tt.text, tt.admin)); !strings.Contains(got, tt.want) {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

func TestClasses(t *testing.T) {
	t.Parallel()
	d := setup(t)
	overtakes := "start help stop status tools policy memory approve deny export unknown STOP"
	for name := range strings.FieldsSeq(overtakes) {
		if got := d.table.Class(name); got != turn.Overtakes {
			t.Errorf("/%s: class %d", name, got)
		}
	}
	for _, name := range []string{"new", "clear", "Clear"} {
		if got := d.table.Class(name); got != turn.Interrupts {
			t.Errorf("/%s: class %d", name, got)
		}
	}
}

// TestMenu: who reads /help or a menu finds the commands that they may use there, and no feature that is off.
func TestMenu(t *testing.T) {
	t.Parallel()
	own := []string{"new", "stop", "status", "tools", "approve", "deny", "clear", "help"}
	undecided := []string{"new", "stop", "status", "tools", "clear", "help"}
	for name, row := range map[string]struct {
		admin, group, people, bound bool
		more                        []string
	}{
		"person, private":                    {people: true},
		"person, group":                      {people: true, group: true},
		"admin, private":                     {admin: true, people: true, more: []string{"admit", "policy"}},
		"admin, group":                       {admin: true, group: true, people: true, more: []string{"policy"}},
		"person who decides nothing":         {people: true, bound: true},
		"admin where nobody can be admitted": {admin: true, more: []string{"policy"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := setup(t)
			d.others = append(d.others, feature.Feature{Name: "access", Off: !row.people, Commands: []feature.Command{
				{Name: "admit", Audience: feature.Admins, Private: true, Run: func(context.Context, *turn.Call) (turn.Effect, error) { return turn.Effect{}, nil }},
			}})
			want := own
			if row.bound {
				want = undecided
			}
			d.deps.Decides = func(context.Context, *bot.Message) (bool, error) { return !row.bound, nil }
			d.make()
			list := d.table.Menu(command.Reader{Admin: row.admin, Decides: !row.bound, Group: row.group})
			if diff := cmp.Diff(slices.Concat(want, row.more), list); diff != "" {
				t.Errorf("menu (-want +got):\n%s", diff)
			}
			c := call("help", row.admin)
			if row.group {
				c.Message.Place.Chat, c.Message.Place.Group = "-5", true
			}
			help := d.answer(c)
			for _, command := range (texts.Words{}).Names() {
				if told := strings.Contains(help, "\n/"+command+" "); told != slices.Contains(list, command) {
					t.Errorf("/help tells of /%s: %v", command, told)
				}
			}
		})
	}
}

// TestPing: a command is one value. With it, the command is answered, listed, found by who mistypes it, and given by a link.
func TestPing(t *testing.T) {
	t.Parallel()
	d := setup(t)
	d.others = append(d.others, feature.Feature{Name: "ping", Commands: []feature.Command{{
		Name: "ping", Shows: true, Run: func(_ context.Context, call *turn.Call) (turn.Effect, error) { return call.ReplyText("pong"), nil },
	}}})
	d.make()
	for text, want := range map[string]string{"ping": "pong", "PING": "pong", "start ping": "pong", "pign": "Did you mean /ping?", "help": "\n/ping"} {
		if got := d.answer(call(text, false)); !strings.Contains(got, want) {
			t.Errorf("/%s: %q, want %q", text, got, want)
		}
	}
	if list := d.table.Menu(command.Reader{}); !slices.Contains(list, "ping") {
		t.Errorf("menu %v", list)
	}
}

func TestNothing(t *testing.T) {
	t.Parallel()
	if diff := cmp.Diff(turn.Effect{}, setup(t).run(call("", false))); diff != "" {
		t.Errorf("a command for another bot (-want +got):\n%s", diff)
	}
}

func TestGroupReplies(t *testing.T) {
	t.Parallel()
	d := setup(t)
	c := call("tools", false)
	c.Message.Place.Group, c.Message.Language = true, "de-CH"
	row := d.run(c).Change.Send[0]
	if row.ReplyTo != "9" || !strings.HasPrefix(row.Content.Text, "Werkzeuge in diesem Chat") {
		t.Errorf("row %+v", row)
	}
	if row := d.run(call("tools", false)).Change.Send[0]; row.ReplyTo != "" {
		t.Errorf("a private answer quotes: %+v", row)
	}
}

// arrive stores arrivals of the session, or one that overtakes, and gives their numbers.
func (d *desk) arrive(ids ...string) []int64 {
	d.t.Helper()
	change := &bot.Change{}
	for _, id := range ids {
		a := bot.Arrival{Channel: "telegram", Bot: "1", ID: id, Session: session, At: noon}
		if id == "100" { // the command itself
			a.Express, a.Session = true, ""
		}
		change.Arrive = append(change.Arrive, a)
	}
	applied, err := d.store.Apply(d.t.Context(), change)
	if err != nil {
		d.t.Fatal(err)
	}
	return applied.Seqs
}

func (d *desk) begin(turn string, arrival int64, state bot.LaneState) {
	d.t.Helper()
	since := noon.Add(-5 * time.Minute)
	_, err := d.store.Apply(d.t.Context(), &bot.Change{
		Lanes:  []bot.LaneUpdate{{Session: session, Place: &private, State: &state, Turn: &turn, Arrival: &arrival, Since: &since}},
		Append: &bot.Append{Session: session, Entries: []journal.Entry{{Turn: turn, Kind: journal.UserEntry, Text: "go"}}},
	})
	if err != nil {
		d.t.Fatal(err)
	}
}

func TestStop(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		arrive  []string
		turn    string // of the first arrival
		dropped []int  // index of arrive
		want    string
	}{
		{"nothing there", nil, "", nil, "Nothing is running here."},
		{"running", []string{"1", "100"}, "turn-1", nil, ""},
		{"running, one waits", []string{"1", "2", "100"}, "turn-1", []int{1}, "Stopping. 1 waiting message dropped."},
		{"running, two wait", []string{"1", "2", "3", "100"}, "turn-1", []int{1, 2}, "Stopping. 2 waiting messages dropped."},
		{"two wait", []string{"1", "2", "100"}, "", []int{0, 1}, "2 waiting messages dropped."},
		{"what came after it stays", []string{"1", "2", "100", "3"}, "turn-1", []int{1}, "Stopping. 1 waiting message dropped."},
		{"only later ones", []string{"100", "3"}, "", nil, "Nothing is running here."},
		{"its place is not known", []string{"1", "2"}, "turn-1", []int{1}, "Stopping. 1 waiting message dropped."},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d := setup(t)
			var seqs []int64
			if len(tt.arrive) > 0 {
				seqs = d.arrive(tt.arrive...)
			}
			if tt.turn != "" {
				d.begin(tt.turn, seqs[0], bot.Running)
			}
			e := d.run(call("stop", false))
			var dropped []int64
			for _, i := range tt.dropped {
				dropped = append(dropped, seqs[i])
			}
			if diff := cmp.Diff(dropped, e.Change.Done); diff != "" {
				t.Errorf("dropped (-want +got):\n%s", diff)
			}
			text := ""
			if len(e.Change.Send) > 0 {
				text = e.Change.Send[0].Content.Text
			}
			if text != tt.want {
				t.Errorf("answer %q, want %q", text, tt.want)
			}
			if tt.turn == "" {
				if len(e.Stop) != 0 || len(e.Change.Lanes) != 0 {
					t.Errorf("effect %+v", e)
				}
				return
			}
			if !slices.Equal(e.Stop, []bot.SessionKey{session}) || len(e.Change.Lanes) != 1 || *e.Change.Lanes[0].Stop != tt.turn {
				t.Errorf("effect %+v", e)
			}
		})
	}
}

// TestStopMeansWhatCameBefore: a question that was written after a /stop may have begun its turn before the /stop is
// carried out.
func TestStopMeansWhatCameBefore(t *testing.T) {
	t.Parallel()
	d := setup(t)
	seqs := d.arrive("1", "100", "3")
	d.begin("turn-3", seqs[2], bot.Running)
	e := d.run(call("stop", false))
	if len(e.Stop) != 0 || len(e.Change.Lanes) != 0 {
		t.Errorf("the turn of a later message is stopped: %+v", e)
	}
	if !slices.Equal(e.Change.Done, seqs[:1]) {
		t.Errorf("dropped %v, want %v", e.Change.Done, seqs[:1])
	}
	if got, want := e.Change.Send[0].Content.Text, "1 waiting message dropped."; got != want {
		t.Errorf("answer %q, want %q", got, want)
	}
}

// behind counts the commands in the background of one session.
type behind struct {
	running, ended int
	elsewhere      []bot.Fact
}

func (b *behind) Running(_ context.Context, s bot.SessionKey) (int, []bot.Fact, error) {
	if s != session {
		return 0, nil, nil
	}
	return b.running, b.elsewhere, nil
}

func (b *behind) End(s bot.SessionKey) {
	if s == session {
		b.ended, b.running = b.ended+b.running, 0
	}
}

// TestStopDropsAll: thousands of messages, the open questions of the turn and the commands in the background go, and
// each is counted once.
func TestStopDropsAll(t *testing.T) {
	t.Parallel()
	d := setup(t)
	commands := &behind{running: 2}
	d.conversation.Behind = commands
	ids := make([]string, 2500)
	for i := range ids {
		ids[i] = fmt.Sprint("m", i)
	}
	seqs := d.arrive(append(ids, "100")...)
	d.begin("turn-1", seqs[0], bot.Parked)
	ask := func(id, short, turn string) bot.Approval {
		return bot.Approval{ID: id, Short: short, Session: session, Turn: turn, Call: id, Place: private, State: bot.Open, Needed: 1, Created: noon, Expires: noon.Add(time.Hour)}
	}
	if _, err := d.store.Apply(t.Context(), &bot.Change{Ask: []bot.Approval{ask("a", "a", "turn-1"), ask("b", "b", "turn-1"), ask("c", "c", "another")}}); err != nil {
		t.Fatal(err)
	}
	e := d.run(call("stop", false))
	if got, want := e.Change.Send[0].Content.Text, "Stopping. 2,499 waiting messages dropped, 2 questions withdrawn, 2 commands in the background ended."; got != want {
		t.Errorf("answer %q, want %q", got, want)
	}
	if commands.ended != 0 {
		t.Error("commands are ended before it is stored that they are")
	}
	if _, err := d.store.Apply(t.Context(), &e.Change); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Then(t.Context(), nil); err != nil || commands.ended != 2 {
		t.Errorf("%d commands ended, %v", commands.ended, err)
	}
	if left, err := d.store.Tickets(t.Context(), string(session)); err != nil || len(left) != 1 {
		t.Errorf("%d messages wait, %v", len(left), err)
	}
	commands.running, commands.elsewhere = 0, []bot.Fact{{Bucket: "ends", Key: "run", Value: "1"}}
	if _, err := d.store.Apply(t.Context(), &bot.Change{Lanes: []bot.LaneUpdate{{Session: session, Turn: new(""), Arrival: new(int64(0))}}, Done: []int64{seqs[0]}}); err != nil {
		t.Fatal(err)
	}
	e = d.run(call("stop", false))
	if got, want := e.Change.Send[0].Content.Text, "1 command in the background ended."; got != want {
		t.Errorf("answer %q, want %q", got, want)
	}
	if diff := cmp.Diff(commands.elsewhere, e.Change.Facts); diff != "" {
		t.Errorf("what other processes are to end (-want +got):\n%s", diff)
	}
}

func TestClear(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"clear", "new"} {
		d := setup(t)
		d.begin("turn-1", 0, bot.Idle)
		e := d.run(call(name, false))
		want := &bot.Append{Session: session, After: 1, Entries: []journal.Entry{{Turn: "reset/100", Kind: journal.SummaryEntry, At: noon, Caller: "telegram:42", Parted: name == "new"}}}
		if diff := cmp.Diff(want, e.Change.Append); diff != "" {
			t.Errorf("/%s (-want +got):\n%s", name, diff)
		}
		if _, err := d.store.Apply(t.Context(), &e.Change); err != nil {
			t.Fatal(err)
		}
		entries, err := d.store.Journal(t.Context(), session, 0)
		if err != nil || len(entries) == 0 || entries[len(entries)-1].Kind != journal.SummaryEntry || entries[len(entries)-1].N != 2 {
			t.Errorf("/%s: journal %+v, %v", name, entries, err)
		}
	}
}

// TestStatusOfFencedModel: a model that takes no tools is said to write its calls as text, where it has tools.
func TestStatusOfFencedModel(t *testing.T) {
	t.Parallel()
	d := setup(t)
	fenced := true
	d.status.About.Fenced = func(of bot.SessionKey) bool { return fenced && of == session }
	d.make()
	if got := d.answer(call("status", false)); !strings.HasSuffix(got, "/tools lists them.\nTool calls of this model are off: it writes them as text, which I read.") {
		t.Errorf("fenced:\n%s", got)
	}
	if fenced = false; strings.Contains(d.answer(call("status", false)), "are off") {
		t.Error("not fenced, and said to be")
	}
	fenced = true
	d.status.About.Tools = func(bot.SessionKey, bot.Place) []texts.Tool { return nil }
	d.make()
	if got := d.answer(call("status", false)); strings.Contains(got, "are off") {
		t.Errorf("without tools:\n%s", got)
	}
}

func TestStatus(t *testing.T) {
	t.Parallel()
	d := setup(t)
	if got := d.answer(call("status", false)); got != "Nothing is running here.\nI use the model main/gpt and 2 tools; /tools lists them." {
		t.Errorf("idle:\n%s", got)
	}
	// the turn's own message and the command do not wait
	d.begin("turn-1", d.arrive("1", "2", "3", "100")[0], bot.Parked)
	d.servers = texts.Connected{Connected: 1, All: 2}
	want := `A question has been waiting for your decision for 5 minutes.
2 messages wait.
I use the model main/gpt and 2 tools; /tools lists them.
MCP servers: 1 of 2 connected`
	if diff := cmp.Diff(want, d.answer(call("status", false))); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
	want += `

For admins:
Everywhere: 1 question waits for a decision, 2 messages in the queue
Kernel sandbox: none
Stores: PostgreSQL, counters in the process
zephbot 1.2, up 3 hours`
	if diff := cmp.Diff(want, d.answer(call("status", true))); diff != "" {
		t.Errorf("status for an admin (-want +got):\n%s", diff)
	}
}

func TestStoreAway(t *testing.T) {
	t.Parallel()
	for name, parts := range map[string][]string{"status": {"lane", "counts", "tickets"}, "stop": {"lane", "tickets", "express", "open"}, "clear": {"lane"}} {
		for _, part := range parts {
			d := setup(t)
			d.begin("turn-1", d.arrive("1")[0], bot.Parked)
			d.store.fail = part
			if _, err := d.table.Run(t.Context(), call(name, true)); !errors.Is(err, errStore) {
				t.Errorf("/%s without %s: %v", name, part, err)
			}
		}
	}
}
