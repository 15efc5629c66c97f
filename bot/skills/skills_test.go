package skills_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/bottest"
	"github.com/zephbot/zephbot/bot/skills"
	"github.com/zephbot/zephbot/bot/turn"
	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/skill"
)

var now = time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)

// office is a Handler over a store, with one skill.
type office struct {
	t       *testing.T
	store   bot.Store
	library *skill.Library
	desk    *skills.Handler
	dir     string
	lines   []string
}

func open(t *testing.T) *office {
	t.Helper()
	o := &office{t: t, store: bottest.New(), dir: filepath.Join(t.TempDir(), "pdf")}
	o.write("Use it.")
	return o.other()
}

// other is another process on the same store and folder.
func (o *office) other() *office {
	n := &office{t: o.t, store: o.store, dir: o.dir}
	n.library = skill.NewLibrary(skill.Options{Roots: []string{o.dir}, Log: zerolog.Nop()})
	n.library.Sync()
	n.desk = skills.New(skills.Deps{
		Store: o.store, Library: n.library, Now: func() time.Time { return now },
		Line: func(call *tools.Call) []bot.Fact {
			n.lines = append(n.lines, call.Tool+" "+string(call.Args))
			return nil
		},
	})
	return n
}

func (o *office) write(body string) {
	o.t.Helper()
	text := "---\nname: pdf\ndescription: Fill in forms.\n---\n" + body + "\n"
	if err := os.MkdirAll(o.dir, 0o700); err != nil {
		o.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(o.dir, skill.Document), []byte(text), 0o600); err != nil {
		o.t.Fatal(err)
	}
}

func (o *office) state() skill.State {
	list, _ := o.library.Entries()
	return list[0].State
}

func (o *office) call(admin bool, args, data string) *turn.Call {
	msg := &bot.Message{
		ID: "m", Args: args, Data: data, Caller: "telegram:1", Person: "1", Name: "Ann", Message: "5", Query: "q",
		Place: bot.Place{Channel: "telegram", Bot: "1", Chat: "1"},
	}
	return &turn.Call{Message: msg, Session: msg.Place.SessionKey("1"), Admin: admin}
}

// apply stores an Effect and what follows it, and returns the texts that are sent.
func (o *office) apply(e turn.Effect, err error) (sent []bot.Row) {
	o.t.Helper()
	if err != nil {
		o.t.Fatal(err)
	}
	applied, err := o.store.Apply(context.Background(), &bot.Change{Facts: e.Change.Facts})
	if err != nil {
		o.t.Fatal(err)
	}
	sent = e.Change.Send
	if e.Then != nil {
		sent = append(sent, o.apply(e.Then(context.Background(), applied))...)
	}
	return sent
}

func (o *office) command(admin bool, args string) string {
	o.t.Helper()
	return o.apply(o.desk.Command(context.Background(), o.call(admin, args, "")))[0].Content.Text
}

func (o *office) press(admin bool, data string) []bot.Row {
	o.t.Helper()
	return o.apply(o.desk.Press(context.Background(), o.call(admin, "", data)))
}

// button returns the data of the newest button with a label.
func button(t *testing.T, content bot.Content, label string) string {
	t.Helper()
	for _, row := range content.Buttons {
		for _, b := range row {
			if b.Label == label {
				if len(b.Data) > 64 {
					t.Errorf("%s has %d bytes of data", label, len(b.Data))
				}
				return b.Data
			}
		}
	}
	t.Fatalf("no button %q in %+v", label, content.Buttons)
	return ""
}

// TestDecide: an admin decides by button or command about what they saw; others see the list.
func TestDecide(t *testing.T) {
	t.Parallel()
	o := open(t)
	if text := o.command(false, ""); !strings.Contains(text, "1. pdf – ✋ waits for an admin") {
		t.Errorf("list %s", text)
	}
	if text := o.command(false, "pdf"); !strings.Contains(text, "for admins") {
		t.Errorf("details for others: %s", text)
	}
	details := o.apply(o.desk.Command(context.Background(), o.call(true, "pdf", "")))[0].Content
	accept, refuse := button(t, details, "Accept"), button(t, details, "Refuse")
	if rows := o.press(false, accept); !rows[0].Alert || o.state() != skill.Waiting {
		t.Errorf("somebody else: %+v", rows)
	}
	if rows := o.press(true, accept); o.state() != skill.InUse || len(rows) != 2 || rows[0].Purpose != bot.Toast || rows[1].Edit != "5" {
		t.Errorf("accepted: %s %+v", o.state(), rows)
	}
	if rows := o.press(true, accept); !strings.Contains(rows[0].Content.Text, "Nothing to change") || len(o.lines) != 1 {
		t.Errorf("pressed twice: %+v %v", rows, o.lines)
	}
	if !strings.HasPrefix(o.lines[0], `skill_accepted {"dir":"`) || !strings.Contains(o.lines[0], `"skill":"pdf"`) {
		t.Errorf("audit %v", o.lines)
	}
	two := o.other()
	if err := two.desk.Follow(context.Background()); err != nil || two.state() != skill.InUse {
		t.Errorf("another process: %s %v", two.state(), err)
	}
	two.press(true, refuse)
	if err := o.desk.Follow(context.Background()); err != nil || o.state() != skill.Rejected {
		t.Errorf("refused in another process: %s %v", o.state(), err)
	}
}

// TestDecideOnOldContent: a button or a code of what the folder held before decides nothing.
func TestDecideOnOldContent(t *testing.T) {
	t.Parallel()
	o := open(t)
	details := o.apply(o.desk.Command(context.Background(), o.call(true, "pdf", "")))[0].Content
	code := details.Text[strings.LastIndex(details.Text, " ")+1:]
	o.write("Do something else.")
	if rows := o.press(true, button(t, details, "Accept")); !rows[0].Alert || !strings.Contains(rows[0].Content.Text, "has changed or is gone") || o.state() != skill.Waiting {
		t.Errorf("an old button: %+v", rows)
	}
	if text := o.command(true, "accept pdf "+code); !strings.Contains(text, "has changed or is gone") || o.state() != skill.Waiting {
		t.Errorf("an old code: %s", text)
	}
	list, _ := o.library.Entries()
	if text := o.command(true, "accept pdf "+strings.ToUpper(list[0].Brief())); !strings.Contains(text, "✅ pdf is accepted") || o.state() != skill.InUse {
		t.Errorf("accepted by command: %s", text)
	}
	o.write("Yet another thing.")
	if text := o.command(false, ""); !strings.Contains(text, "changed since it was accepted") {
		t.Errorf("list %s", text)
	}
}

func TestWrongUse(t *testing.T) {
	t.Parallel()
	o := open(t)
	for args, want := range map[string]string{
		"pfd": "There is no skill pfd. Did you mean pdf?", "accept pdf": "CODE", "accept none 1": "There is no skill none", "explode pdf 1": "CODE", "a b c d": "CODE",
	} {
		if text := o.command(true, args); !strings.Contains(text, want) {
			t.Errorf("/skills %s: %s", args, text)
		}
	}
	for _, data := range []string{"sk", "sk:", "sk:n", "sk:n:-1", "sk:n:x", "sk:a:0000000000000000:0", "sk:x:y:0", "sk:a:b:c:0", "sk:v:" + strings.Repeat("9", 40) + ":0"} {
		if rows := o.press(true, data); rows[0].Purpose != bot.Toast || o.state() != skill.Waiting {
			t.Errorf("%s: %+v", data, rows)
		}
	}
	if rows := o.press(true, "sk:n:99"); len(rows) != 2 || !strings.Contains(rows[1].Content.Text, "1. pdf") {
		t.Errorf("a page that is not there: %+v", rows)
	}
	none := skills.New(skills.Deps{Store: o.store, Now: func() time.Time { return now }})
	if e, err := none.Command(context.Background(), o.call(true, "", "")); err != nil || !strings.Contains(e.Change.Send[0].Content.Text, "No skills are set up here") {
		t.Errorf("without skills: %+v %v", e, err)
	}
}

// TestLaterVersion: a decision that this version does not know counts as none.
func TestLaterVersion(t *testing.T) {
	t.Parallel()
	o := open(t)
	list, _ := o.library.Entries()
	value, _ := json.Marshal(map[string]string{"verdict": "praised", "hash": list[0].Hash})
	if _, err := o.store.Apply(context.Background(), &bot.Change{Facts: []bot.Fact{{Bucket: "skill", Key: "pdf", Value: string(value)}, {Bucket: "skill_revision", Value: "1"}}}); err != nil {
		t.Fatal(err)
	}
	if err := o.desk.Follow(context.Background()); err != nil || o.state() != skill.Waiting {
		t.Errorf("%s %v", o.state(), err)
	}
}
