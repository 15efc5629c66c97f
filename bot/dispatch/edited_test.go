package dispatch_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zephbot/zephbot/agent"
	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/bottest"
	"github.com/zephbot/zephbot/bot/dispatch"
	"github.com/zephbot/zephbot/bot/turn"
)

// edit is the update about a message whose person has changed it.
func (w *world) edit(m bot.Message, text string) bot.Message {
	id := w.private(m.Person, "").ID
	m.ID, m.Kind, m.Text = id, bot.Edited, text
	return m
}

// talking is a model by function.
type talking func(ctx context.Context, req *llm.Request) (*llm.Response, error)

func (talking) Name() string { return "model" }

func (f talking) Chat(ctx context.Context, req *llm.Request, _ func(string)) (*llm.Response, error) {
	return f(ctx, req)
}

// said are the texts of the person in a request, those of one turn joined.
func said(req *llm.Request) string {
	var list []string
	for _, m := range req.Messages {
		if m.Role == llm.User {
			list = append(list, m.Text)
		}
	}
	return strings.Join(list, "|")
}

// talks has the real Runner run the turns with a model.
func (w *world) talks(f talking, c *chain) {
	deps := agent.Deps{Provider: f, Tools: c, Catalog: catalog{}, System: func(*agent.Turn, bool) string { return "" }, Now: time.Now}
	w.runner = agent.NewRunner(deps, agent.Limits{}).Run
}

// again is the button that was offered last, pressed by a person.
func (w *world) again(person string, place bot.Place) bot.Message {
	w.t.Helper()
	m := w.private(person, "")
	m.Kind, m.Place, m.Query = bot.Press, place, "q"+m.ID
	due, err := w.store.Due(w.t.Context(), "test", "7", time.Now(), 0)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, r := range due {
		for _, line := range r.Content.Buttons {
			if strings.HasPrefix(line[0].Data, "e1:") {
				m.Data, m.Message = line[0].Data, "offer"
			}
		}
	}
	if m.Data == "" {
		w.t.Fatalf("no button in %q", w.rows())
	}
	return m
}

const offered = "You changed this message after I had answered it."

// TestEditOfWhatWaits: the text is replaced, also of a part of what is worked on together, and by the last edit; a
// preview of a link, a stranger and a command change nothing.
func TestEditOfWhatWaits(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		hold := make(chan struct{})
		w.runner = func(ctx context.Context, turn *agent.Turn, log agent.Journal, sink agent.Sink) (agent.Outcome, error) {
			if out, err, more := until(ctx, hold, turn); !more {
				return out, err
			}
			return echo(ctx, turn, log, sink)
		}
		p := w.start()
		one, two, three := w.private("ann", "one"), w.private("ann", "tow"), w.private("ann", "three")
		w.accept(p, one)
		w.accept(p, two, three)
		w.accept(p, w.edit(two, "tw"), w.edit(two, "two"), w.edit(three, "three"))
		foreign, command := w.edit(two, "mine"), w.edit(three, "/stop")
		foreign.Caller, foreign.Person, command.Command = "test:stranger", "stranger", "stop"
		w.accept(p, foreign, command)
		close(hold)
		pass(time.Minute)
		w.want(bot.Final, "re: one", "re: two", "re: three")
		w.want(bot.Notice)
	})
}

// Behaviour 27 of a good bot: nothing runs by itself. There is one button, which works once, for its writer alone, after a
// restart, and with the newest text; what it began can be changed like any other message.
func TestBehaviour27AnEditIsNoSecondQuestion(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		p := w.start()
		m := w.group("g", "ann", "wath is it")
		w.accept(p, m)
		pass(time.Second)
		w.accept(p, w.edit(m, "wath is it"))
		w.want(bot.Notice)
		w.accept(p, w.edit(m, "what is it"))
		w.accept(p, w.edit(m, "what is that"))
		pass(time.Second)
		w.want(bot.Notice, offered)
		w.want(bot.Final, "re: wath is it")
		p.stop()
		p = w.start()
		w.accept(p, w.again("ben", m.Place))
		w.accept(p, w.again("ann", m.Place), w.again("ann", m.Place))
		pass(time.Second)
		w.accept(p, w.again("ann", m.Place))
		w.want(bot.Toast, "Only the person who wrote the message can do this.", "", "I already work on it, or have answered it.", "I already work on it, or have answered it.")
		w.want(bot.Record, "I work on the changed message.")
		w.want(bot.Final, "re: wath is it", "re: what is that")
		if charges, _ := w.store.Charges(t.Context(), ""); len(charges) != 2 {
			t.Errorf("charged %d times", len(charges))
		}
		w.accept(p, w.edit(m, "what is this"))
		pass(time.Second)
		w.want(bot.Notice, offered, offered)
		w.accept(p, w.again("ann", m.Place))
		pass(time.Second)
		w.want(bot.Final, "re: wath is it", "re: what is that", "re: what is this")
	})
}

// TestEditOfWhatIsNone: what was never a question becomes none by an edit, and what the conversation has forgotten stays
// forgotten.
func TestEditOfWhatIsNone(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		p := w.start()
		aside, asked := w.group("g", "ann", "lunch?"), w.private("ann", "hello")
		aside.Addressed = false
		w.accept(p, aside, asked)
		pass(time.Second)
		mentioned := w.edit(aside, "@bot lunch?")
		mentioned.Addressed = true
		w.accept(p, mentioned)
		w.accept(p, w.private("ann", "/clear"))
		pass(time.Second)
		w.accept(p, w.edit(asked, "good morning"))
		other := w.edit(asked, "not mine")
		other.Caller, other.Person = "test:ben", "ben"
		w.accept(p, other)
		pass(time.Minute)
		w.want(bot.Final, "re: hello")
		w.want(bot.Notice)
		if c := w.counts(); c.Queued != 0 || c.DeadLetters != 0 {
			t.Errorf("something is left: %+v", c)
		}
	})
}

// TestEditOfParts: of messages that were worked on together one is changed, and they run together again.
func TestEditOfParts(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.opts.Merge = 600 * time.Millisecond
		p := w.start()
		one, two := w.private("ann", "one"), w.private("ann", "tow")
		one.Forwarded, two.Forwarded = true, true
		w.accept(p, one, two)
		pass(time.Minute)
		w.accept(p, w.edit(two, "two"))
		w.accept(p, w.edit(one, "One"))
		w.accept(p, w.again("ann", one.Place))
		pass(time.Minute)
		w.want(bot.Final, "re: one\ntow", "re: One\ntwo")
	})
}

// record is what a model was asked, by several processes.
type record struct {
	mu   sync.Mutex
	list []string
}

func (r *record) add(text string) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = append(r.list, text)
	return len(r.list)
}

func (r *record) all() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.list)
}

// changing is a model that wants the two tools of the crash tests until it reads what was changed.
func changing(asked *record) talking {
	return func(ctx context.Context, req *llm.Request) (*llm.Response, error) {
		text := said(req)
		asked.add(text)
		switch last := req.Messages[len(req.Messages)-1]; {
		case strings.HasSuffix(text, "think"):
			<-ctx.Done()
			return nil, context.Cause(ctx)
		case last.Result != nil || strings.Contains(text, "instead"):
			return &llm.Response{Text: "re: " + text, Stop: llm.StopEnd}, nil
		default:
			return model{}.Chat(ctx, req, nil)
		}
	}
}

// TestEditOfWhatRuns: the call of the model ends, the turn goes on with the new text as if it had been the only one, and
// there is one answer.
func TestEditOfWhatRuns(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		var asked record
		w.talks(changing(&asked), &chain{w: w, ran: map[string]int{}})
		p := w.start()
		m, behind := w.private("ann", "think"), w.private("ann", "instead of that")
		w.accept(p, m)
		w.accept(p, behind)
		w.accept(p, w.edit(m, "think ")) // no change
		pass(time.Second)
		w.accept(p, w.edit(m, "do this instead"))
		pass(time.Minute)
		w.want(bot.Final, "re: do this instead", "re: do this instead|instead of that")
		w.want(bot.Notice)
		if list := asked.all(); len(list) != 3 {
			t.Errorf("asked %q", list)
		}
		if charges, _ := w.store.Charges(t.Context(), ""); len(charges) != 2 {
			t.Errorf("charged %d times", len(charges))
		}
		if lane := w.lane(session("ann")); lane.Turn != "" || lane.Stop != "" || lane.State != bot.Idle {
			t.Errorf("lane %+v", lane)
		}
		w.accept(p, w.edit(m, "and now"))
		w.want(bot.Notice, offered)
	})
}

// TestEditOfWhatWaitsForAPerson: the question is withdrawn, its call never runs, and what ran before is not repeated.
func TestEditOfWhatWaitsForAPerson(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		var asked record
		c := &chain{w: w, ran: map[string]int{}}
		w.talks(changing(&asked), c)
		p := w.start()
		m := w.private("ann", "do it")
		w.accept(p, m)
		pass(time.Second)
		open := w.open()
		if len(open) != 1 {
			t.Fatalf("open: %+v", open)
		}
		w.accept(p, w.edit(m, "leave it instead"))
		w.accept(p, w.press("ann", &open[0], "y"))
		pass(time.Minute)
		a, err := w.store.Approval(t.Context(), open[0].ID)
		if err != nil || a.State != bot.Withdrawn {
			t.Errorf("question %+v, %v", a, err)
		}
		if c.ran["change"] != 0 || c.ran["look"] != 1 {
			t.Errorf("ran %v", c.ran)
		}
		if finals := w.texts(bot.Final); len(finals) != 1 || !strings.Contains(finals[0], "it now reads]\nleave it instead") {
			t.Errorf("answers %q", finals)
		}
	})
}

// TestEditInAnotherProcess: the process that handles the edit is not the one that runs the turn.
func TestEditInAnotherProcess(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		var asked record
		w.talks(changing(&asked), &chain{w: w, ran: map[string]int{}})
		w.opts.Shared = true
		p, q := w.start(), w.start()
		m := w.private("ann", "think")
		w.accept(p, m)
		w.accept(q, w.edit(m, "do this instead"))
		pass(time.Minute)
		w.want(bot.Final, "re: do this instead")
	})
}

// TestStopBeatsAnEdit: who changes a message and then stops has stopped it, in whatever way.
func TestStopBeatsAnEdit(t *testing.T) {
	for _, way := range []string{"/stop", "tap", "/clear"} {
		t.Run(way, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				var asked record
				w.talks(changing(&asked), &chain{w: w, ran: map[string]int{}})
				p := w.start()
				m := w.private("ann", "think")
				w.accept(p, m)
				stop := w.private("ann", way)
				if way == "tap" {
					stop.Kind, stop.Text = bot.StopTap, ""
				}
				w.accept(p, w.edit(m, "think more"), stop)
				pass(time.Minute)
				w.want(bot.Final, "Stopped before anything was said.")
				if c := w.counts(); c.Queued+c.Running+c.Waiting != 0 {
					t.Errorf("something is left: %+v", c)
				}
			})
		})
	}
}

// TestEveryPointOfAnEdit: the store fails, or the process dies, before or after each Change of a turn that is changed
// while it waits for a person, answered, changed once more and run again. There is one answer to each, and what was
// approved for nobody never runs.
func TestEveryPointOfAnEdit(t *testing.T) {
	t.Parallel()
	for _, crash := range []bool{false, true} {
		for _, after := range []bool{false, true} {
			for at, hit := 1, true; hit; at++ {
				t.Run(fmt.Sprintf("crash=%t after=%t at=%d", crash, after, at), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						hit = editPoint(t, &injector{at: at, after: after, crash: crash})
					})
				})
			}
		}
	}
}

func editPoint(t *testing.T, inject *injector) bool {
	w := setup(t)
	c := &chain{w: w, ran: map[string]int{}}
	var asked record
	w.talks(changing(&asked), c)
	w.opts.Grace = time.Second
	w.store.Hooks.BeforeApply = func(*bot.Change) error { return inject.apply(false) }
	w.store.Hooks.AfterApply = func(*bot.Change) error { return inject.apply(true) }
	p := w.start()
	m := w.private("ann", "do it")
	steps := []struct {
		due func() bool
		say func() bot.Message
	}{
		{func() bool { return true }, func() bot.Message { return m }},
		{func() bool { return len(w.open()) == 1 }, func() bot.Message { return w.edit(m, "leave it instead") }},
		{func() bool { return len(w.texts(bot.Final)) == 1 }, func() bot.Message { return w.edit(m, "rather this instead") }},
		{func() bool { return len(w.texts(bot.Notice)) == 1 }, func() bot.Message { return w.again("ann", m.Place) }},
	}
	var now []turn.Raw
	quiet := 0
	for second := 0; second < 500 && quiet < 5; second++ {
		if inject.crashed() {
			p.stop()
			inject.revive()
			p = w.start()
		}
		if now == nil && len(steps) > 0 && steps[0].due() {
			now, steps = []turn.Raw{raw(t, steps[0].say())}, steps[1:]
		}
		if now != nil && p.Accept(t.Context(), now) == nil {
			now = nil
		}
		pass(time.Second)
		c := w.counts()
		if quiet++; now != nil || len(steps) > 0 || c.Queued+c.Running+c.Parked+c.Waiting > 0 {
			quiet = 0
		}
	}
	if got := w.counts(); got.Queued != 0 || got.DeadLetters != 0 || got.Running+got.Parked+got.Waiting != 0 {
		t.Errorf("something is left: %+v", got)
	}
	if finals := w.texts(bot.Final); len(finals) != 2 || !strings.Contains(finals[0], "leave it instead") || !strings.HasSuffix(finals[1], "rather this instead") {
		t.Errorf("answers %q", finals)
	}
	w.want(bot.Notice, offered)
	if c.ran["change"] != 0 || c.ran["look"] < 1 {
		t.Errorf("ran %v", c.ran)
	}
	p.stop()
	return inject.hit
}

// TestEditsAndClaims: a turn begins while its message is edited, a thousand times. Whichever is first, what is answered
// is what the message reads, or there is a button.
func TestEditsAndClaims(t *testing.T) {
	t.Parallel()
	store := bottest.New()
	for round := range 1000 {
		name := bot.SessionKey(fmt.Sprint("test/7/bot/", round, "/0/0"))
		applied, err := store.Apply(t.Context(), &bot.Change{Arrive: []bot.Arrival{{Channel: "test", Bot: "7", ID: fmt.Sprint(round), Session: name, Raw: []byte("old")}}})
		if err != nil {
			t.Fatal(err)
		}
		read, err := store.Next(t.Context(), name, 1)
		if err != nil {
			t.Fatal(err)
		}
		edited := make(chan error)
		go func() {
			_, err := store.Apply(t.Context(), &bot.Change{Replace: []bot.Replacement{{Seq: applied.Seqs[0], Session: name, Source: bot.FromEdit, Raw: []byte("new")}}})
			edited <- err
		}()
		id := fmt.Sprint("t", round)
		_, began := store.Apply(t.Context(), &bot.Change{
			Claim:  &bot.Claim{Session: name, Owner: "o", Now: time.Now(), Until: time.Now().Add(time.Hour), Arrival: applied.Seqs[0]},
			Lanes:  []bot.LaneUpdate{{Session: name, Turn: &id, Arrival: &applied.Seqs[0]}},
			Append: &bot.Append{Session: name, Entries: []journal.Entry{{Turn: id, Kind: journal.UserEntry, Text: string(read[0].Raw)}}},
		})
		if late := <-edited; (late == nil) == (began == nil) {
			t.Fatalf("the edit ended with %v, the turn with %v", late, began)
		}
	}
}

// slowly reads files until it is told to go on.
type slowly struct {
	hold  chan struct{}
	began *record
}

func (s slowly) Receive(ctx context.Context, sent *turn.Sent) (turn.Received, error) {
	if s.began.add(sent.Message.Text) == 1 {
		select {
		case <-s.hold:
		case <-ctx.Done():
			return turn.Received{}, ctx.Err()
		}
	}
	return turn.Received{}, nil
}

// TestEditWhileFilesAreRead: the reading ends, and the model is asked once, with the new text.
func TestEditWhileFilesAreRead(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		var asked, read record
		w.talks(changing(&asked), &chain{w: w, ran: map[string]int{}})
		w.parts = func(parts *dispatch.Parts) { parts.Attachments = slowly{make(chan struct{}), &read} }
		p := w.start()
		m := w.private("ann", "smu it up instead")
		m.Files = []bot.Attachment{{Kind: bot.Document, ID: "f"}}
		w.accept(p, m)
		w.accept(p, w.edit(m, "sum it up instead"))
		pass(time.Minute)
		w.want(bot.Final, "re: sum it up instead")
		if a, r := asked.all(), read.all(); len(a) != 1 || !slices.Equal(r, []string{"smu it up instead", "sum it up instead"}) {
			t.Errorf("asked %q, read %q", a, r)
		}
		if charges, _ := w.store.Charges(t.Context(), ""); len(charges) != 1 {
			t.Errorf("charged %d times", len(charges))
		}
	})
}

// TestEditedTooOften: who changes the message again and again while it is answered does not get a model call for each.
func TestEditedTooOften(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		var asked record
		w.talks(changing(&asked), &chain{w: w, ran: map[string]int{}})
		p := w.start()
		m := w.private("ann", "think")
		w.accept(p, m)
		for i := range 9 {
			w.accept(p, w.edit(m, fmt.Sprint(i, " think")))
			pass(time.Second)
		}
		if n := len(asked.all()); n != 6 {
			t.Errorf("asked %d times: %q", n, asked.all())
		}
		w.want(bot.Notice, offered)
		w.accept(p, w.private("ann", "/stop"))
		w.accept(p, w.edit(m, "this instead"))
		w.accept(p, w.again("ann", m.Place))
		pass(time.Minute)
		if finals := w.texts(bot.Final); len(finals) != 2 || !strings.HasSuffix(finals[1], "this instead") {
			t.Errorf("answers %q", finals)
		}
	})
}
