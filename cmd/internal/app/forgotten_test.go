package app_test

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zephbot/zephbot/bot/privacy"
	"github.com/zephbot/zephbot/bot/telegram/telegramtest"
	"github.com/zephbot/zephbot/cmd/internal/app"
	"github.com/zephbot/zephbot/cmd/internal/upkeep"
	"github.com/zephbot/zephbot/persistence/postgres/pgtest"
)

// heron is a person whose id is long enough to be looked for in files; canary is in all that they leave behind.
const (
	heron  = 4242424242
	canary = "CANARY-7Q"
)

const heronScript = `
on "keep a file": call write {"path":"note.txt","content":"CANARY-7Q in a file"}
then say Kept CANARY-7Q
on "remember": call memory_save {"content":"My word is CANARY-7Q","subject":"word","for":"me"}
then say I will remember CANARY-7Q
on "in the group": say Heard in the group
on "run it": call bash {"command":"echo CANARY-7Q > out.txt"}
then say It ran
on "hello again": say Hello stranger
on "hello Ann": say Hello Ann
`

// story is a service with two people, one of whom is to be forgotten.
func story(t *testing.T, env ...string) *world {
	t.Helper()
	w := begin(t, heronScript, app.Internet{}, append([]string{"ZEPH_TELEGRAM_ALLOWED_USERS=4242424242", "ZEPH_TELEGRAM_ALLOWED_CHATS=-2001", "ZEPH_TELEGRAM_GROUPS_TRIGGER=all"}, env...)...)
	w.fake.AddUser(telegramtest.User{ID: heron, FirstName: "Heron " + canary, Language: "en"})
	w.fake.AddPrivate(heron)
	w.fake.AddGroup(telegramtest.Group{ID: -2001, Title: "Team", Members: []int64{1001, heron}})
	return w
}

// toHeron says something as the person, and waits for the answer.
func (w *world) toHeron(chat int64, text, answer string) {
	w.t.Helper()
	w.fake.Say(heron, chat, telegramtest.Message{Text: text})
	w.hears(chat, answer)
}

// hears waits for a message of the bot.
func (w *world) hears(chat int64, answer string) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), 2*time.Minute)
	defer cancel()
	err := w.fake.WaitFor(ctx, func() bool {
		return slices.ContainsFunc(w.fake.Chat(chat), func(m telegramtest.Shown) bool { return m.FromBot && strings.Contains(m.Text, answer) })
	})
	if err != nil {
		w.t.Fatalf("waited in vain for %q: %v", answer, w.fake.Chat(chat))
	}
}

// lives has the person leave something everywhere.
func (w *world) lives() {
	w.t.Helper()
	w.toHeron(heron, "remember my word "+canary, "I will remember")
	w.fake.Say(heron, heron, telegramtest.Message{Text: "keep a file " + canary})
	w.asks("note.txt", "Approve once")
	w.hears(heron, "Kept")
	w.toHeron(-2001, "@zephbot in the group "+canary, "Heard in the group")
	w.toHeron(heron, "/timezone Europe/Berlin", "Berlin")
	w.toHeron(heron, "/settings", "Your settings")
	w.asks("Your settings", "Language")
	w.asks("In which language", "Deutsch")
	w.hears(heron, "Deine Einstellungen")
	w.fake.Say(heron, heron, telegramtest.Message{Text: "run it " + canary})
	w.asks("echo", "") // stays open
}

// asks waits for a question to the person, and presses a button of it; "" = none.
func (w *world) asks(text, label string) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), 2*time.Minute)
	defer cancel()
	var message int64
	err := w.fake.WaitFor(ctx, func() bool {
		for _, m := range w.fake.Chat(heron) {
			if m.FromBot && len(m.Keyboard) > 0 && strings.Contains(m.Text, text) {
				message = int64(m.MessageID)
			}
		}
		return message != 0
	})
	if err == nil && label != "" {
		_, err = w.fake.PressButton(heron, heron, int(message), label)
	}
	if err != nil {
		w.t.Fatalf("no question about %s: %v", text, err)
	}
}

// traces lists the files of the service that contain a text.
func (w *world) traces(text string) (found []string) {
	w.t.Helper()
	dir := filepath.Join(w.dir, "data")
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		if strings.Contains(name, text) {
			found = append(found, name+" (name)")
		}
		if !e.Type().IsRegular() {
			return nil
		}
		raw, err := os.ReadFile(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if at := bytes.Index(raw, []byte(text)); at >= 0 {
			found = append(found, name+": …"+string(raw[max(0, at-40):min(len(raw), at+40)]))
		}
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return found
}

// exported checks what is in the export of the person.
func (w *world) exported() {
	w.t.Helper()
	u, err := upkeep.FindUser(w.opts, "4242424242")
	if err != nil {
		w.t.Fatal(err)
	}
	var out bytes.Buffer
	if err := u.Export(w.t.Context(), "en", &out); err != nil {
		w.t.Fatal(err)
	}
	r, err := zip.NewReader(bytes.NewReader(out.Bytes()), int64(out.Len()))
	if err != nil {
		w.t.Fatal(err)
	}
	var names []string
	for _, f := range r.File {
		in, err := f.Open()
		if err != nil {
			w.t.Fatal(err)
		}
		raw, err := io.ReadAll(in)
		if err != nil {
			w.t.Fatal(err)
		}
		names = append(names, f.Name)
		if f.Name == "settings.jsonl" && !strings.Contains(string(raw), `4242424242/language`) {
			w.t.Errorf("the export lacks what was chosen in /settings:\n%s", raw)
		}
		if strings.Contains(string(raw), w.fake.Token()) {
			w.t.Errorf("%s has a credential", f.Name)
		}
	}
	for _, want := range []string{
		"README.txt", "conversations.jsonl", "received.jsonl", "sent.jsonl", "approvals.jsonl", "settings.jsonl", "usage.jsonl", "audit.jsonl", "workspaces/1/note.txt",
	} {
		if !slices.Contains(names, want) {
			w.t.Errorf("the export lacks %s: %v", want, names)
		}
	}
}

// forgotten erases the person, and looks for them everywhere.
func (w *world) forgotten(files bool) {
	w.t.Helper()
	u, err := upkeep.FindUser(w.opts, "telegram:4242424242")
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(w.t.Context(), 3*time.Minute)
	defer cancel()
	r, err := u.Erase(ctx, func(string) {})
	if err != nil || len(r.Problems) > 0 || len(r.Stays) > 0 || len(r.Gone) < 6 {
		w.t.Fatalf("%+v, %v", r, err)
	}
	for _, text := range []string{canary, "4242424242"} {
		if found := w.traces(text); len(found) > 0 && files {
			w.t.Errorf("%s is still in:\n%s", text, strings.Join(found, "\n"))
		}
	}
	if again, err := u.Look(ctx); err != nil || !again.Empty() {
		w.t.Errorf("afterwards there is: %+v, %v", again, err)
	}
	var out bytes.Buffer
	if err := u.Export(ctx, "en", &out); !errors.Is(err, privacy.ErrNothing) {
		w.t.Errorf("an export afterwards: %v", err)
	}
}

// TestForgotten: a person with something everywhere is exported and erased beside the running service, and again while none
// runs; nothing in the directory of the service names them any more, the audit log remains whole, and they can begin again.
func TestForgotten(t *testing.T) {
	t.Parallel()
	w := story(t)
	w.lives()
	w.exported()
	w.forgotten(true)
	w.toHeron(heron, "hello again", "Hello stranger")
	w.stop()
	if err := <-w.done; err != nil && !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	u, err := upkeep.FindUser(w.opts, "telegram:4242424242")
	if err != nil {
		t.Fatal(err)
	}
	if r, err := u.Erase(t.Context(), func(string) { t.Error("no service runs") }); err != nil || len(r.Gone) == 0 || len(r.Stays) > 0 {
		t.Errorf("erased while no service runs: %+v, %v", r, err)
	}
	if found := w.traces("4242424242"); len(found) > 0 {
		t.Errorf("the id is still in:\n%s", strings.Join(found, "\n"))
	}
	w.serve()
	w.say("hello Ann")
	w.says("Hello Ann", 1)
	w.end()
}

// TestForgottenOnPostgreSQL: the same on PostgreSQL; its files are the server's.
func TestForgottenOnPostgreSQL(t *testing.T) {
	t.Parallel()
	cluster := pgtest.Shared(t)
	w := story(t, "ZEPH_DATABASE_URL="+cluster.URL(cluster.Database(t, "")))
	w.lives()
	w.exported()
	w.forgotten(true)
	w.end()
}
