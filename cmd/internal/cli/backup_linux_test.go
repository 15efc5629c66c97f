package cli_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/zephbot/zephbot/bot/telegram/telegramtest"
	"github.com/zephbot/zephbot/cmd/internal/cli"
	"github.com/zephbot/zephbot/persistence/archive"
	"github.com/zephbot/zephbot/persistence/postgres/pgtest"
)

// counting is a model that says how many messages of a person it was shown, and writes them to a file if asked to.
func counting(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Messages []storyMessage `json:"messages"`
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	heard, results, asked := 0, 0, ""
	for i := range in.Messages {
		switch in.Messages[i].Role {
		case "user":
			heard, results, asked = heard+1, 0, string(in.Messages[i].Content)
		case "tool":
			results++
		}
	}
	deltas := say(fmt.Sprintf("I know %d of your messages.", heard))
	if strings.Contains(asked, "write") && results == 0 {
		deltas = calls(call("write", map[string]any{"path": "kept.txt", "content": "of the workspace"}))
	}
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = fmt.Fprintf(w, "data: %s\n\ndata: [DONE]\n\n", deltas[0]) // the service may have been killed
}

// kept is a service whose state is backed up and restored.
type kept struct {
	*testing.T
	fake  *telegramtest.Server
	env   []string // without data_dir
	world *world
}

func newKept(t *testing.T) *kept {
	t.Helper()
	k := &kept{T: t, fake: telegramtest.New(telegramtest.Options{}), world: here(t)}
	vendor := httptest.NewServer(http.HandlerFunc(counting))
	t.Cleanup(vendor.Close)
	api, err := k.fake.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.fake.Close)
	for id := int64(1001); id <= 1004; id++ {
		k.fake.AddUser(telegramtest.User{ID: id, FirstName: fmt.Sprint("P", id), Language: "en"})
		k.fake.AddPrivate(id)
	}
	k.env = []string{
		"ZEPH_TELEGRAM_TOKEN=" + k.fake.Token(), "ZEPH_TELEGRAM_API_URL=" + api, "ZEPH_TELEGRAM_ALLOWED_USERS=1001,1002,1003,1004",
		"ZEPH_LLM_PROVIDERS_MAIN_TYPE=openai", "ZEPH_LLM_PROVIDERS_MAIN_WIRE=chat", "ZEPH_LLM_PROVIDERS_MAIN_MODEL=m", "ZEPH_LLM_PROVIDERS_MAIN_BASE_URL=" + vendor.URL + "/v1",
		"ZEPH_SECURITY_AUTONOMY_LEVEL=full", "ZEPH_TELEGRAM_STREAM_INTERVAL_MS=60000",
	}
	return k
}

// start runs the service with a state; kill ends it at once.
func (k *kept) start(dir string) (said *heard, kill func()) {
	k.Helper()
	cmd := zephbot(k.T, filepath.Dir(dir), append(slices.Clone(k.env), "ZEPH_DATA_DIR="+dir), "serve")
	said = newHeard()
	cmd.Stdout, cmd.Stderr = said, said
	if err := cmd.Start(); err != nil {
		k.Fatal(err)
	}
	var once sync.Once
	kill = func() {
		once.Do(func() {
			_ = cmd.Process.Kill() // it may have ended
			_ = cmd.Wait()
		})
	}
	k.Cleanup(kill)
	said.await(k.T, "connected to Telegram", 0)
	return said, kill
}

func (k *kept) run(dir string, args ...string) int {
	k.Helper()
	k.world.env = append(slices.Clone(k.env), "ZEPH_DATA_DIR="+dir)
	return k.world.run(k.T, args...)
}

func (k *kept) fine(dir string, args ...string) {
	k.Helper()
	if code := k.run(dir, args...); code != cli.Fine {
		k.Fatalf("%v: exit %d: %s%s", args, code, k.world.out.String(), k.world.err.String())
	}
}

func (k *kept) refused(dir, why string, code int, args ...string) {
	k.Helper()
	if got := k.run(dir, args...); got != code || !strings.Contains(k.world.err.String(), why) {
		k.Errorf("%v: exit %d, want %d: %s, want %q", args, got, code, k.world.err.String(), why)
	}
}

// ask writes a message and waits for the answer with a text.
func (k *kept) ask(person int64, text, answer string) {
	k.Helper()
	before := len(k.fake.Chat(person))
	k.fake.Say(person, person, telegramtest.Message{Text: text})
	eventually(k.T, func() bool {
		for _, m := range k.fake.Chat(person)[before:] {
			if m.FromBot && strings.Contains(m.Text, answer) {
				return true
			}
		}
		return false
	})
}

// TestBackup backs up a service that works, and continues in another place what people talked about.
func TestBackup(t *testing.T) {
	t.Parallel()
	k := newKept(t)
	home := t.TempDir()
	one, two, file := filepath.Join(home, "one"), filepath.Join(home, "two"), filepath.Join(home, "b.tar.gz")
	k.refused(one, "nothing to back up", cli.Usage, "backup", file)
	_, kill := k.start(one)
	k.ask(1001, "hello", "I know 1 of")
	k.ask(1001, "write it down", "I know 2 of")
	ctx, stop := context.WithCancel(t.Context())
	var busy sync.WaitGroup
	for id := int64(1002); id <= 1004; id++ {
		busy.Go(func() {
			for n := 1; ctx.Err() == nil; n++ {
				k.fake.Say(id, id, telegramtest.Message{Text: "write again"})
				_ = k.fake.WaitFor(ctx, func() bool { return answersIn(k.fake.Chat(id)) >= n }) // it is over
			}
		})
	}
	k.fine(one, "backup", filepath.Join(home, "early.tar.gz"))
	k.fine(one, "backup", file)
	if out := k.world.out.String(); !strings.Contains(out, "not in it: the configuration") || !strings.Contains(out, "sqlite, schema ") {
		t.Error(out)
	}
	stop()
	busy.Wait()
	k.fine(one, "backup", "--verify", "--json", file)
	k.fine(one, "backup", "--no-workspaces", "-")
	if m, err := archive.Verify(t.Context(), bytes.NewReader(k.world.out.Bytes())); err != nil || m.Has(archive.Workspaces) || !m.Has(archive.State) {
		t.Errorf("on stdout: %v, %v", m.Header, err)
	}
	k.refused(one, "belongs to another running zephbot", cli.Failed, "restore", "--force", file)
	kill()
	knownState(t, one)

	k.fine(two, "restore", file)
	k.fine(two, "audit", "verify", "--mode", "serve")
	log, kill := k.start(two)
	log.await(t, "this state is that of a backup", 0)
	k.ask(1001, "and now?", "I know 3 of")
	if list, err := filepath.Glob(filepath.Join(two, "workspaces", "*", "kept.txt")); err != nil || len(list) < 2 {
		t.Errorf("workspaces: %v, %v", list, err)
	}
	kill()
	k.fine(two, "audit", "verify", "--mode", "serve")
	k.refused(two, "--force moves it aside", cli.Usage, "restore", file)
	k.fine(two, "restore", "--force", file)
	if list, err := filepath.Glob(filepath.Join(two, "replaced-*", "zephbot.db")); err != nil || len(list) != 1 {
		t.Errorf("moved aside: %v, %v", list, err)
	}
	_, kill = k.start(two)
	k.ask(1001, "once more", "I know 3 of") // what came after the backup is not known
	kill()
}

func answersIn(chat []telegramtest.Shown) (n int) {
	for _, m := range chat {
		if m.FromBot && strings.Contains(m.Text, "I know") {
			n++
		}
	}
	return n
}

// knownState fails if the service stores something in data_dir about which nobody has decided whether a backup has it.
func knownState(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		name, _, _ := strings.Cut(e.Name(), ".db")
		if !slices.Contains([]string{
			"zephbot", "audit.jsonl", "workspaces", "mcp-tokens", // in a backup
			"vectors", "code-index", "undo", "mcp", "lock", "backup.lock", "running.json", "terminal", "simulate", // not
		}, name) {
			t.Errorf("%s in data_dir: does a backup need it? See estate in cmd/internal/app/backup.go", e.Name())
		}
	}
}

// TestBackupRefuses: what is damaged, newer or does not fit is refused before anything is touched.
func TestBackupRefuses(t *testing.T) {
	t.Parallel()
	k := newKept(t)
	home := t.TempDir()
	dir, file := filepath.Join(home, "one"), filepath.Join(home, "b.tar.gz")
	k.fine(dir, "migrate")
	k.fine(dir, "backup", file)
	k.refused(dir, "exists already", cli.Failed, "backup", file)
	k.refused(dir, "leave out --json", cli.Usage, "backup", "--json", "-")
	k.refused(dir, "none does not exist", cli.Failed, "restore", filepath.Join(home, "none"))
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	cut := filepath.Join(home, "cut.tar.gz")
	if err := os.WriteFile(cut, whole[:len(whole)-20], 0o600); err != nil {
		t.Fatal(err)
	}
	fresh := filepath.Join(home, "fresh")
	k.refused(fresh, "damaged or cut off", cli.Failed, "restore", cut)
	k.refused(fresh, "damaged or cut off", cli.Failed, "backup", "--verify", cut)
	newer := filepath.Join(home, "newer.tar.gz")
	if err := archive.Create(newer, false, func(out io.Writer) error {
		w, err := archive.NewWriter(out, archive.Header{Version: "v9", Database: archive.SQLite, Schema: 99, Parts: []archive.Part{archive.State}})
		if err == nil {
			_, err = w.Close()
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	k.refused(fresh, "newer version of the program (v9: schema 99", cli.Failed, "restore", newer)
	if left, err := filepath.Glob(filepath.Join(fresh, "zephbot*")); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	k.env = append(k.env, "ZEPH_DATABASE_URL=postgres://u:p@127.0.0.1:1/d")
	k.refused(fresh, "database.url names a PostgreSQL", cli.Usage, "restore", file)
	k.fine(dir, "backup", filepath.Join(home, "files.tar.gz"))
	if !strings.Contains(k.world.out.String(), "run pg_dump first") {
		t.Error(k.world.out.String())
	}
	k.env = k.env[:len(k.env)-1]
	k.refused(fresh, "contains no database", cli.Usage, "restore", filepath.Join(home, "files.tar.gz"))
}

// TestBackupIsKilled kills a backup and a restore in the middle: there is no backup, and the state is what it was.
func TestBackupIsKilled(t *testing.T) {
	t.Parallel()
	k := newKept(t)
	home := t.TempDir()
	dir, file := filepath.Join(home, "one"), filepath.Join(home, "b.tar.gz")
	k.fine(dir, "migrate")
	work := filepath.Join(dir, "workspaces", "w")
	if err := os.MkdirAll(work, 0o700); err != nil {
		t.Fatal(err)
	}
	noise := make([]byte, 1<<20) // does not fit into a pipe, however it is packed
	_, _ = rand.Read(noise)      // never fails
	if err := os.WriteFile(filepath.Join(work, "noise"), noise, 0o600); err != nil {
		t.Fatal(err)
	}
	k.fine(dir, "backup", file)
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if len(whole) < 200_000 {
		t.Fatalf("the backup has %d bytes only", len(whole))
	}
	env := append(slices.Clone(k.env), "ZEPH_DATA_DIR="+dir)
	backup := zephbot(t, home, env, "backup", "-")
	out, err := backup.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	interrupted(t, backup, func() error { _, err := io.ReadFull(out, make([]byte, 1000)); return err })
	k.fine(dir, "backup", "--force", file) // removes what the other one left
	if left, err := filepath.Glob(filepath.Join(dir, "backup-scratch*")); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}

	restore := zephbot(t, home, env, "restore", "--force", "-")
	in, err := restore.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	interrupted(t, restore, func() error {
		if _, err := in.Write(whole[:len(whole)-1000]); err != nil {
			return err
		}
		eventually(t, func() bool {
			_, err := os.Stat(filepath.Join(dir, "workspaces", ".restore", "workspaces", "w", "noise"))
			return err == nil
		})
		return nil
	})
	if now, err := os.ReadFile(filepath.Join(work, "noise")); err != nil || !bytes.Equal(now, noise) {
		t.Errorf("the workspace: %v", err)
	}
	_, kill := k.start(dir)
	kill()
	k.fine(dir, "restore", "--force", file)
}

// interrupted starts a process, waits until it is in the middle, and kills it.
func interrupted(t *testing.T, cmd *exec.Cmd, middle func() error) {
	t.Helper()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	err := middle()
	_ = cmd.Process.Kill() // it has not ended
	_ = cmd.Wait()
	if err != nil {
		t.Fatal(err)
	}
}

// TestBackupPostgreSQL follows the recipe of docs/postgresql.md: a dump first, then the files; the dump into an empty
// database, then the files.
func TestBackupPostgreSQL(t *testing.T) {
	t.Parallel()
	cluster := pgtest.Shared(t)
	from, to := cluster.Database(t, ""), cluster.Database(t, "")
	k := newKept(t)
	plain := k.env
	at := func(name string) { k.env = append(slices.Clone(plain), "ZEPH_DATABASE_URL="+cluster.URL(name)) }
	home := t.TempDir()
	one, two, file, dump := filepath.Join(home, "one"), filepath.Join(home, "two"), filepath.Join(home, "b.tar.gz"), filepath.Join(home, "b.dump")
	program := func(name string, args ...string) {
		t.Helper()
		if out, err := exec.CommandContext(t.Context(), pgtest.Program(t, name), args...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", name, err, out)
		}
	}
	at(from)
	_, kill := k.start(one)
	k.ask(1001, "hello", "I know 1 of")
	k.ask(1001, "write it down", "I know 2 of")
	program("pg_dump", "--format=custom", "--file="+dump, cluster.URL(from))
	k.fine(one, "backup", file)
	kill()
	at(to)
	program("pg_restore", "--exit-on-error", "--no-owner", "--dbname="+cluster.URL(to), dump)
	k.fine(two, "restore", file)
	k.fine(two, "audit", "verify", "--mode", "serve")
	_, kill = k.start(two)
	k.ask(1001, "and now?", "I know 3 of")
	if list, err := filepath.Glob(filepath.Join(two, "workspaces", "*", "kept.txt")); err != nil || len(list) != 1 {
		t.Errorf("workspaces: %v, %v", list, err)
	}
	kill()
}
