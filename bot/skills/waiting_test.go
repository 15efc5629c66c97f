package skills_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/bottest"
	"github.com/zephbot/zephbot/bot/skills"
	"github.com/zephbot/zephbot/tools/skill"
)

// desks is two processes on one store and one folder, by a clock.
type desks struct {
	t     *testing.T
	store *bottest.Store
	root  string
	now   time.Time
	libs  []*skill.Library
	list  []*skills.Handler
}

func openDesks(t *testing.T) *desks {
	d := &desks{t: t, store: bottest.New(), root: t.TempDir(), now: now}
	d.restart()
	return d
}

// restart replaces both processes.
func (d *desks) restart() {
	d.libs, d.list = nil, nil
	for range 2 {
		library := skill.NewLibrary(skill.Options{Roots: []string{d.root}, Log: zerolog.Nop()})
		desk := skills.New(skills.Deps{Store: d.store, Library: library, Now: func() time.Time { return d.now }})
		d.libs, d.list = append(d.libs, library), append(d.list, desk)
	}
}

func (d *desks) write(name, body string) {
	d.t.Helper()
	dir := filepath.Join(d.root, name)
	text := "---\nname: " + name + "\ndescription: Does it.\n---\n" + body + "\n"
	if err := os.MkdirAll(dir, 0o700); err != nil {
		d.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, skill.Document), []byte(text), 0o600); err != nil {
		d.t.Fatal(err)
	}
}

// pass lets both processes look every five seconds, for a time.
func (d *desks) pass(span time.Duration) {
	d.t.Helper()
	admins := []bot.Place{{Channel: "telegram", Bot: "1", Chat: "7"}, {Channel: "telegram", Bot: "1", Chat: "8"}}
	for end := d.now.Add(span); d.now.Before(end); d.now = d.now.Add(5 * time.Second) {
		for i, desk := range d.list {
			d.libs[i].Sync()
			if err := desk.Follow(d.t.Context()); err != nil {
				d.t.Fatal(err)
			}
			if err := desk.Announce(d.t.Context(), admins, func(bot.Place) {}); err != nil {
				d.t.Fatal(err)
			}
		}
	}
}

// said returns what both admins were told; it has to be the same.
func (d *desks) said() (list []string) {
	d.t.Helper()
	rows, err := d.store.Rows(d.t.Context(), "", 100)
	if err != nil {
		d.t.Fatal(err)
	}
	byChat := map[string][]string{}
	for i := range rows {
		byChat[rows[i].Place.Chat] = append(byChat[rows[i].Place.Chat], rows[i].Content.Text)
	}
	if a, b := strings.Join(byChat["7"], "\n"), strings.Join(byChat["8"], "\n"); a != b {
		d.t.Errorf("one admin was told %q, the other %q", a, b)
	}
	return byChat["7"]
}

// TestAnnounce: fifty skills are one message to each admin, a minute after the folders have come to rest; a restart
// repeats nothing, a change is told once, and a decision ends it.
func TestAnnounce(t *testing.T) {
	t.Parallel()
	d := openDesks(t)
	for i := range 25 {
		d.write(fmt.Sprintf("first-%02d", i), "Do it.")
	}
	d.pass(50 * time.Second)
	for i := range 25 { // somebody is still copying
		d.write(fmt.Sprintf("second-%02d", i), "Do it.")
	}
	d.pass(50 * time.Second)
	if said := d.said(); len(said) != 0 {
		t.Fatalf("told while folders change: %q", said)
	}
	d.pass(10 * time.Minute)
	said := d.said()
	if len(said) != 1 || !strings.Contains(said[0], "first-00, first-01") || !strings.Contains(said[0], "40 more") {
		t.Fatalf("told %q", said)
	}
	d.restart()
	d.pass(10 * time.Minute)
	if said := d.said(); len(said) != 1 {
		t.Errorf("told again after a restart: %q", said)
	}
	d.write("first-03", "Do something else.")
	d.pass(10 * time.Minute)
	if said := d.said(); len(said) != 2 || !strings.HasSuffix(said[1], ": first-03.") {
		t.Errorf("after a change: %q", said)
	}
	var refused []bot.Fact
	entries, _ := d.libs[0].Entries()
	for i := range entries {
		value := fmt.Sprintf(`{"verdict":"refused","hash":%q}`, entries[i].Hash)
		refused = append(refused, bot.Fact{Bucket: "skill", Key: entries[i].Name, Value: value})
	}
	refused = append(refused, bot.Fact{Bucket: "skill_revision", Value: "2"})
	if _, err := d.store.Apply(t.Context(), &bot.Change{Facts: refused}); err != nil {
		t.Fatal(err)
	}
	d.restart()
	d.pass(10 * time.Minute)
	if said := d.said(); len(said) != 2 {
		t.Errorf("told of what is decided: %q", said)
	}
	d.write("first-04", "It has changed since it was refused.")
	d.pass(10 * time.Minute)
	if said := d.said(); len(said) != 3 || !strings.HasSuffix(said[2], ": first-04.") {
		t.Errorf("told %q", said)
	}
}
