package app_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/cmd/internal/app"
	"github.com/zephbot/zephbot/persistence/sql"
	"github.com/zephbot/zephbot/tools/mcp/mcptest"
)

// wrecks keeps what a process that is killed right after a commit leaves behind, for each commit from the one that
// notes a command on.
type wrecks struct {
	t        *testing.T
	from, to string
	noted    bool
	n        int
}

// after is sql.Hooks.AfterCommit. It runs on one goroutine.
func (w *wrecks) after(group []*bot.Change) {
	for _, change := range group {
		for _, f := range change.Facts {
			w.noted = w.noted || f.Bucket == "mcp_job" && f.Value != ""
		}
	}
	if !w.noted {
		return
	}
	if err := copied(w.from, w.dir(w.n)); err != nil {
		w.t.Error(err)
	}
	w.n++
}

func (w *wrecks) dir(i int) string { return filepath.Join(w.to, fmt.Sprint(i)) }

// copied copies the database and the audit log, which may be written to meanwhile.
func copied(from, to string) error {
	if err := os.MkdirAll(to, 0o700); err != nil {
		return err
	}
	entries, err := os.ReadDir(from)
	for _, e := range entries {
		if e.IsDir() || strings.HasSuffix(e.Name(), "-shm") {
			continue
		}
		raw, readErr := os.ReadFile(filepath.Join(from, e.Name()))
		if errors.Is(readErr, fs.ErrNotExist) {
			continue
		}
		err = errors.Join(err, readErr, os.WriteFile(filepath.Join(to, e.Name()), raw, 0o600))
	}
	return err
}

// halt stops the service.
func (w *world) halt() {
	w.t.Helper()
	w.stop()
	if err := <-w.done; err != nil && !errors.Is(err, context.Canceled) {
		w.t.Fatal(err)
	}
}

// heard counts the messages of the bot that contain a text.
func (w *world) heard(text string) (n int) {
	for _, m := range w.fake.Chat(1001) {
		if m.FromBot && strings.Contains(m.Text, text) {
			n++
		}
	}
	return n
}

// TestServerJobsOverAKill kills the process after each commit of a command about a server, and starts it on what that
// left: the command is carried out and answered, once and truly, and the audit has one line of it.
func TestServerJobsOverAKill(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		command, answer, list string
	}{
		"remove":  {"/mcp remove kind", "kind: removed, with 1 tool.", "No MCP server."},
		"restart": {"/mcp restart kind", "kind: connected, 1 tool.", "kind · connected"},
	}
	for verb, tt := range tests {
		t.Run(verb, func(t *testing.T) {
			t.Parallel()
			w := begin(t, echoes, app.Internet{}, permitted, chatted, "ZEPH_TOOLS_SHELL_SANDBOX=off")
			w.add(mcptest.Plain)
			w.halt()
			kept := &wrecks{t: t, from: filepath.Join(w.dir, "data"), to: t.TempDir()}
			w.opts.Hooks = sql.Hooks{AfterCommit: kept.after}
			w.serve()
			w.connects("kind · connected")
			before := w.heard(tt.answer)
			w.say(tt.command)
			w.says(tt.answer, before+1)
			w.halt()
			w.opts.Hooks = sql.Hooks{}
			if kept.n < 3 {
				t.Fatalf("%d commits from the command to its answer", kept.n)
			}
			for i := range kept.n {
				w.told(kept.dir(i), verb, tt.answer, tt.list)
			}
			w.fake.Close()
		})
	}
}

// restore puts what a killed process left in the place of what there is.
func (w *world) restore(wreck string) {
	w.t.Helper()
	data := filepath.Join(w.dir, "data")
	for _, pattern := range []string{"zephbot.db*", "audit*"} {
		old, err := filepath.Glob(filepath.Join(data, pattern))
		for _, path := range old {
			err = errors.Join(err, os.Remove(path))
		}
		if err != nil {
			w.t.Fatal(err)
		}
	}
	if err := copied(wreck, data); err != nil {
		w.t.Fatal(err)
	}
}

// stored counts the answers to commands about servers that the store holds.
func (w *world) stored(answer string) (n int) {
	w.t.Helper()
	db, err := sql.OpenReader(w.t.Context(), filepath.Join(w.dir, "data", "zephbot.db"))
	if err != nil {
		w.t.Fatal(err)
	}
	rows, err := db.Rows(w.t.Context(), bot.SessionKey(fmt.Sprintf("telegram/%d/bot/1001/0/0", w.fake.BotID())), 1000)
	if err := errors.Join(err, db.Close()); err != nil {
		w.t.Fatal(err)
	}
	for _, r := range rows {
		if strings.Contains(r.Content.Text, answer) && strings.HasPrefix(r.Key, "later/end/") {
			n++
		}
	}
	return n
}

// told starts the service on what a killed one left, and looks at what becomes of the command.
func (w *world) told(wreck, verb, answer, list string) {
	w.t.Helper()
	w.restore(wreck)
	w.serve()
	w.connects(list)
	want := map[string]int{"remove": 1, "restart": 2}[verb] // the server was added before
	// The list is true before the answer is stored: who ends the service then leaves that to the next start.
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for late := time.After(time.Minute); w.stored(answer) < want; {
		select {
		case <-tick.C:
			continue
		case <-late:
		}
		break
	}
	w.halt()
	answers := w.stored(answer)
	raw, err := os.ReadFile(filepath.Join(w.dir, "data", "audit.jsonl"))
	lines := strings.Count(string(raw), `"tool":"/mcp `+verb+`"`)
	if answers != want || lines != 1 || err != nil {
		w.t.Errorf("commit %s: %d answers, want %d; %d audit lines, want 1; %v", filepath.Base(wreck), answers, want, lines, err)
	}
}
