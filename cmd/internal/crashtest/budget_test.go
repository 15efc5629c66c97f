//go:build linux

package crashtest_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zephbot/zephbot/bot/telegram/telegramtest"
	"github.com/zephbot/zephbot/persistence/postgres/pgtest"
	"github.com/zephbot/zephbot/persistence/redis/redistest"
)

// trio is three processes of one bot on PostgreSQL and Redis, behind a balancer, and a model that charges the same for
// every answer.
type trio struct {
	t       *testing.T
	fake    *telegramtest.Server
	front   *balancer
	cluster *pgtest.Cluster
	base    string // the database

	again map[int64]bool // who is to write again

	mu    sync.Mutex
	asked map[string]int // answers of the model, by process
	most  int            // requests to it at the same time
	now   int
	many  chan struct{} // closed when there are manyAtOnce
}

// manyAtOnce is how many requests are to be under way together.
const manyAtOnce = 10

// ServeHTTP is the model. It answers after a while, the first ones not before many turns are under way at once.
func (w *trio) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	process := strings.Split(r.URL.Path, "/")[1]
	w.mu.Lock()
	w.asked[process]++
	w.now++
	if w.now > w.most {
		w.most = w.now
		if w.most == manyAtOnce {
			close(w.many)
		}
	}
	w.mu.Unlock()
	wait(r.Context(), 20*time.Second, w.many)
	wait(r.Context(), 300*time.Millisecond, nil)
	w.mu.Lock()
	w.now--
	w.mu.Unlock()
	for _, piece := range []string{
		`{"choices":[{"index":0,"delta":{"role":"assistant","content":"Yes."}}]}`, `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`,
		`{"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":100,"total_tokens":110}}`, `[DONE]`,
	} {
		_, _ = fmt.Fprintf(out, "data: %s\n\n", piece) // a process that ends drops the answer
	}
}

// join starts a process.
func (w *trio) join(name, dir, url, model, redis, quota string, people int) *child {
	w.t.Helper()
	home := filepath.Join(dir, name)
	if err := os.MkdirAll(home, 0o700); err != nil {
		w.t.Fatal(err)
	}
	text := fmt.Sprintf(`[telegram]
webhook_url = "http://front.example/updates"
webhook_listen = %q
merge_ms = 0
token = %q
api_url = %q
allowed_users = [%s]
[workspaces]
dir = %q
shared = true
[[llm.providers]]
name = "main"
type = "openai"
model = "m"
wire = "chat"
api_key = "opens-nothing"
base_url = "%s/%s/v1"
max_tokens = 100
input_usd_per_mtok = 0
output_usd_per_mtok = 1000
[database]
url = %q
[redis]
url = %q
[quotas.bot]
%s
`, w.front.listen(w.t), w.fake.Token(), url, strings.Join(ids(people), ", "), filepath.Join(dir, "files"), model, name, w.cluster.URL(w.base), redis, quota)
	if err := os.WriteFile(filepath.Join(home, "zephbot.toml"), []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
	c, err := newChild(w.t.Context(), home, []string{"ZEPH_DATA_DIR=" + home}, &lines{})
	if err != nil {
		w.t.Fatal(err)
	}
	if err := c.begin(w.t); err != nil {
		w.t.Fatal(err)
	}
	return c
}

func ids(people int) []string {
	list := make([]string, people)
	for i := range list {
		list[i] = fmt.Sprint(firstPerson + i)
	}
	return list
}

// ready waits until all processes take updates.
func (w *trio) ready() {
	w.t.Helper()
	for _, address := range w.front.addresses {
		for {
			conn, err := (&net.Dialer{}).DialContext(w.t.Context(), "tcp", address)
			if err == nil {
				_ = conn.Close()
				break
			}
			if w.t.Context().Err() != nil {
				w.t.Fatal("a process does not take updates")
			}
			wait(w.t.Context(), 50*time.Millisecond, nil)
		}
	}
}

// answers counts who got an answer and who was refused. Whoever is told that what is left is set aside for others writes
// again.
func (w *trio) answers(people int) (through, refused int) {
	for i := range people {
		id := int64(firstPerson + i)
		away := 0
		for _, m := range w.fake.Chat(id) {
			switch {
			case !m.FromBot:
				away--
			case strings.Contains(m.Text, "Yes."):
				through++
			case strings.Contains(m.Text, "used up"):
				refused++
			case strings.Contains(m.Text, "set aside for answers"):
				away++
			}
		}
		if away == 0 {
			w.again[id] = true
		}
	}
	return through, refused
}

// say has those write who are to write again.
func (w *trio) say() {
	for id := range w.again {
		w.fake.Say(id, id, telegramtest.Message{Text: "go on"})
	}
	clear(w.again)
}

// await waits until everybody has an answer or a refusal.
func (w *trio) await(ctx context.Context, people int) error {
	for {
		done := false
		err := w.fake.WaitFor(ctx, func() bool {
			through, refused := w.answers(people)
			done = through+refused >= people
			return done || len(w.again) > 0
		})
		if done || err != nil {
			return err
		}
		w.say()
	}
}

// TestBudgetOfFiftyOnThreeProcesses: of a hundred people who write at once to three processes, a budget of the whole bot
// for fifty lets exactly fifty through: one of turns, and one of money, which is set aside before the model is asked.
// Nobody is answered twice or not at all, and what is charged in the database is what was spent.
func TestBudgetOfFiftyOnThreeProcesses(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		unit  string
		quota string
		from  int64 // charged
		below int64
		lost  bool // Redis forgets everything, again and again
	}{
		"turns":            {"turns", "turns_per_day = 50", 50, 51, false},
		"turns, flushed":   {"turns", "turns_per_day = 50", 50, 51, true},
		"dollars":          {"microusd", "usd_per_day = 5.05", 5_000_000, 5_050_001, false}, // fifty answers of 100 tokens, and a half
		"dollars, flushed": {"microusd", "usd_per_day = 5.05", 5_000_000, 5_050_001, true},
	} {
		t.Run(name, func(t *testing.T) { //nolint:paralleltest // one at a time: three processes are enough for a machine
			const people, enough = 100, 50
			w := &trio{t: t, front: &balancer{}, cluster: pgtest.Shared(t), asked: map[string]int{}, again: map[int64]bool{}, many: make(chan struct{})}
			w.base = w.cluster.Database(t, "")
			w.fake = telegramtest.New(telegramtest.Options{Local: true, WebhookClient: &http.Client{Transport: w.front, Timeout: 10 * time.Second}, WebhookPause: hookPause})
			t.Cleanup(w.fake.Close)
			url, err := w.fake.Start()
			if err != nil {
				t.Fatal(err)
			}
			model := httptest.NewServer(w)
			t.Cleanup(model.Close)
			for i := range people {
				w.fake.AddUser(telegramtest.User{ID: int64(firstPerson + i), FirstName: "P", Language: "en"})
				w.fake.AddPrivate(int64(firstPerson + i))
			}
			dir, counters := t.TempDir(), redistest.Run(t)
			redis := counters.URL()
			var running []*child
			for _, name := range []string{"a", "b", "c"} {
				running = append(running, w.join(name, dir, url, model.URL, redis, tt.quota, people))
			}
			w.ready()
			for i := range people {
				w.again[int64(firstPerson+i)] = true
			}
			w.say()
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
			defer cancel()
			if tt.lost {
				flushing, stop := context.WithCancel(ctx)
				var wg sync.WaitGroup
				wg.Go(func() {
					for flushing.Err() == nil {
						counters.Do("FLUSHALL")
						wait(flushing, 20*time.Millisecond, nil)
					}
				})
				defer wg.Wait()
				defer stop()
			}
			err = w.await(ctx, people)
			through, refused := w.answers(people)
			if err != nil || through != enough || refused != people-enough {
				t.Errorf("%d got through and %d were refused, want %d each; %v", through, refused, enough, err)
			}
			ctx, cancel = context.WithTimeout(t.Context(), endsWithin)
			defer cancel()
			for _, c := range running {
				if err := c.end(ctx); err != nil {
					t.Errorf("a process: %v\n%s", err, c.log)
				}
			}
			if got, _ := w.answers(people); got != enough {
				t.Errorf("%d answers in the end", got)
			}
			w.check(tt.unit, tt.from, tt.below, enough)
		})
	}
}

// check compares what was charged with what was asked for.
func (w *trio) check(unit string, from, below int64, enough int) {
	w.t.Helper()
	charged, err := w.cluster.Numbers(w.t.Context(), w.base, `SELECT coalesce(sum(n), 0)::bigint FROM charge WHERE scope LIKE 'bot/%' AND unit = $1`, unit)
	if err != nil || len(charged) != 1 || charged[0] < from || charged[0] >= below {
		w.t.Errorf("charged %v, %v; want %d", charged, err, from)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	all := 0
	for _, n := range w.asked {
		all += n
	}
	if all < enough || len(w.asked) < 2 || w.most < manyAtOnce {
		w.t.Errorf("the model was asked %d times by %v, at most %d at once", all, w.asked, w.most)
	}
}
