package app_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/bot/telegram/telegramtest"
	"github.com/zephbot/zephbot/cmd/internal/app"
	"github.com/zephbot/zephbot/cmd/internal/config"
	"github.com/zephbot/zephbot/persistence/postgres/pgtest"
	"github.com/zephbot/zephbot/persistence/redis/redistest"
)

// replicas are processes of one service: one database, one Redis, one volume, one bot.
type replicas struct {
	*wired
	cluster                         *pgtest.Cluster
	name                            string // of the database
	url, vendorURL, database, redis string
	doors                           *doors // by which updates are delivered; nil: one process polls
	more                            string // configuration
}

// replica is one of them.
type replica struct {
	name string
	log  *logged
	stop context.CancelFunc
	done chan error
}

func newReplicas(t *testing.T, answers ...string) *replicas {
	t.Helper()
	return replicasOf(t, telegramtest.New(telegramtest.Options{}), answers...)
}

func replicasOf(t *testing.T, fake *telegramtest.Server, answers ...string) *replicas {
	t.Helper()
	cluster := pgtest.Shared(t)
	name := cluster.Database(t, "")
	w := &replicas{
		cluster: cluster, name: name,
		wired: &wired{
			t: t, dir: t.TempDir(), vendor: &vendor{answers: answers}, seen: map[int]bool{}, opened: make(chan string, 8), now: time.Now,
			fake: fake,
		},
		database: cluster.URL(name), redis: redistest.Run(t).URL(),
	}
	server := httptest.NewServer(w.vendor)
	t.Cleanup(server.Close)
	t.Cleanup(w.fake.Close)
	w.vendorURL = server.URL + "/v1"
	var err error
	if w.url, err = w.fake.Start(); err != nil {
		t.Fatal(err)
	}
	w.fake.AddUser(telegramtest.User{ID: 1001, FirstName: "Ann", Language: "en"})
	w.fake.AddPrivate(1001)
	return w
}

// join starts one more process.
func (w *replicas) join(name string) *replica {
	w.t.Helper()
	file := filepath.Join(w.dir, name+".toml")
	text := fmt.Sprintf("data_dir = %q\n[telegram]\ntoken = %q\napi_url = %q\nadmins = [1001]\n[[llm.providers]]\nname = \"main\"\nmodel = \"m\"\nwire = \"chat\"\nbase_url = %q\n"+
		"[database]\nurl = %q\n[redis]\nurl = %q\n[workspaces]\ndir = %q\nshared = true\n",
		filepath.Join(w.dir, name), w.fake.Token(), w.url, w.vendorURL, w.database, w.redis, filepath.Join(w.dir, "files"))
	listen := w.listen
	if w.doors != nil {
		text = strings.Replace(text, "admins =", "webhook_url = \"http://doors.invalid/updates\"\nadmins =", 1)
		listen = func(ctx context.Context, _ string) (net.Listener, error) { return w.doors.listen(ctx, name) }
	}
	text += w.more
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
	cfg, err := config.Load(config.Source{File: file, WorkDir: w.dir, Home: w.dir})
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.t.Context()))
	log := &logged{t: w.t, name: name}
	r := &replica{name: name, log: log, stop: cancel, done: make(chan error, 1)}
	go func() {
		r.done <- app.Serve(ctx, app.Options{Config: cfg, Version: "test", Log: zerolog.New(log), WorkDir: w.dir, Listen: listen})
	}()
	w.t.Cleanup(func() { w.leave(r) })
	return r
}

// logged keeps the log of a process, and shows its warnings where a test fails.
type logged struct {
	t    *testing.T
	name string

	mu   sync.Mutex
	text strings.Builder
}

// has says whether the log has a text.
func (l *logged) has(text string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(l.text.String(), text)
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Write(p)
	if strings.Contains(string(p), `"level":"warn"`) || strings.Contains(string(p), `"level":"error"`) {
		l.t.Log(l.name, strings.TrimSpace(string(p)))
	}
	return len(p), nil
}

// leave ends a process as a signal does.
func (w *replicas) leave(r *replica) {
	r.stop()
	if err := <-r.done; err != nil && !errors.Is(err, context.Canceled) {
		w.t.Errorf("%s ended with %v", r.name, err)
	}
	r.done <- nil
}

// eventually waits until something is so.
func (w *replicas) eventually(what string, so func() bool) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), 60*time.Second)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !so() {
		select {
		case <-ctx.Done():
			w.t.Fatal("waited for ", what)
		case <-tick.C:
		}
	}
}

// beside starts one more process while nothing is under way, and waits until it works.
func (w *replicas) beside(name string) *replica {
	w.t.Helper()
	w.eventually("an empty outbox", func() bool {
		n, err := w.cluster.Numbers(w.t.Context(), w.name, `SELECT count(*) FROM outbox WHERE state IN ('pending', 'sending')`)
		return err == nil && n[0] == 0
	})
	r := w.join(name)
	w.eventually(name, func() bool { return r.log.has("another process of this service polls") })
	return r
}

// until repeats a question to the bot until an answer fits.
func (w *replicas) until(question, answer string) {
	w.t.Helper()
	fits := regexp.MustCompile(answer)
	for range 60 {
		w.say(question)
		if fits.MatchString(w.await("").Text) {
			return
		}
	}
	w.t.Fatalf("%s was never answered with %s", question, answer)
}

// TestTwoProcesses: two processes serve one bot together. One of them polls, each message is answered once, and when
// the one that polls ends, the other goes on at once.
func TestTwoProcesses(t *testing.T) {
	t.Parallel()
	w := newReplicas(t, spoken("Answer 1."), spoken("Answer 2."), spoken("Answer 3."), spoken("Answer 4."))
	one := w.join("one")
	w.say("first")
	w.await("Answer 1.")
	two := w.beside("two")
	w.until("/status", `Processes: 2 work together`)
	w.say("second")
	w.await("Answer 2.")
	w.leave(one)
	began := time.Now()
	w.say("third")
	w.await("Answer 3.")
	if waited := time.Since(began); waited > 20*time.Second { // one to look, on a machine that is not busy
		t.Errorf("the other process went on after %s", waited)
	}
	w.until("/status", `cached\.\nzephbot test`) // the other one ends its work before it leaves the list
	w.beside("three")
	w.until("/status", `Processes: 2 work together`)
	w.leave(two)
	w.say("fourth")
	w.await("Answer 4.")
	var answers []string
	for _, m := range w.fake.Chat(1001) {
		if m.FromBot && strings.HasPrefix(m.Text, "Answer") {
			answers = append(answers, m.Text)
		}
	}
	if !slices.Equal(answers, []string{"Answer 1.", "Answer 2.", "Answer 3.", "Answer 4."}) {
		t.Errorf("answers %q", answers)
	}
	logs, err := filepath.Glob(filepath.Join(w.dir, "files", ".zephbot", "audit", "*.jsonl"))
	if err != nil || len(logs) != 3 {
		t.Errorf("audit logs %q, %v", logs, err)
	}
}
