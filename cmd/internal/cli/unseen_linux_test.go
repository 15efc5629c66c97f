package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/agent/llm/offline"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/telegram"
	"github.com/zephbot/zephbot/bot/telegram/telegramtest"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/cmd/internal/ledgertest"
	"github.com/zephbot/zephbot/persistence"
	"github.com/zephbot/zephbot/persistence/redis/redistest"
)

// balancer is a load balancer before the webhooks of processes: a delivery goes to one of them, by chance, and to
// another one when nobody is there.
type balancer struct {
	transport http.Transport

	mu     sync.Mutex
	chance *rand.Rand
	hooks  []string
}

// RoundTrip implements http.RoundTripper.
func (b *balancer) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err := errors.Join(err, r.Body.Close()); err != nil {
		return nil, err
	}
	b.mu.Lock()
	hooks := slices.Clone(b.hooks)
	b.chance.Shuffle(len(hooks), func(i, j int) { hooks[i], hooks[j] = hooks[j], hooks[i] })
	b.mu.Unlock()
	problem := errors.New("no process is there")
	for _, hook := range hooks {
		try := r.Clone(r.Context())
		try.URL.Host, try.Body = hook, io.NopCloser(bytes.NewReader(body))
		resp, err := b.transport.RoundTrip(try)
		if err == nil {
			return resp, nil
		}
		problem = err
	}
	return nil, problem
}

// CloseIdleConnections is what http.Client asks of its transport.
func (b *balancer) CloseIdleConnections() { b.transport.CloseIdleConnections() }

// priced is the built-in model as a server, where each answer has a cost of its own. Each process asks it under a path of
// its own.
type priced struct {
	*httptest.Server
	book  ledgertest.Book
	model *offline.Model
	hold  func(ctx context.Context, process string) // waits before a process gets an answer; nil = it does not
}

// wordPace is the time between two words of an answer.
const wordPace = 20 * time.Millisecond

func newPriced(t *testing.T) *priced {
	p := &priced{model: offline.New(offline.Options{Pace: func(ctx context.Context) error {
		select {
		case <-time.After(wordPace):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}})}
	p.Server = httptest.NewServer(p)
	t.Cleanup(p.Close)
	return p
}

// ServeHTTP implements http.Handler.
func (p *priced) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body ledgertest.Body
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	process := strings.Split(r.URL.Path, "/")[1]
	asked, usage := p.book.Ask(process, r.URL.Path)
	if p.hold != nil {
		p.hold(r.Context(), process)
	}
	req := body.Request()
	answer, err := p.model.Chat(r.Context(), req, nil)
	if err != nil {
		return // who asked has gone
	}
	answer.Usage = usage
	w.Header().Set("Content-Type", "text/event-stream")
	var text strings.Builder
	for _, frame := range ledgertest.Frames(answer) {
		_, _ = fmt.Fprintf(&text, "data: %s\n\n", frame)
	}
	_, err = io.WriteString(w, text.String()+"data: [DONE]\n\n")
	if err == nil && r.Context().Err() == nil {
		p.book.Answered(asked)
	}
}

// demo is some processes behind a webhook, with the built-in model, prices and limits that nobody reaches.
type demo struct {
	*together
	balancer  *balancer
	processes []*served
	db        persistence.Reader
	model     *priced
	plug      *redistest.Proxy // before Redis
	names     map[*served]string
	died      map[string]time.Time // by name
}

// people is how many conversations a demo has at most.
const people = 60

func newDemo(t *testing.T, chance *rand.Rand, processes int) *demo {
	t.Helper()
	d := &demo{balancer: &balancer{chance: chance}, model: newPriced(t), names: map[*served]string{}, died: map[string]time.Time{}}
	d.together = togetherOn(t, telegramtest.New(telegramtest.Options{
		Local: true, WebhookClient: &http.Client{Transport: d.balancer, Timeout: time.Minute},
		WebhookPause: func(int) time.Duration { return 50 * time.Millisecond },
	}))
	d.plug = redistest.Between(t, d.cache.Addr())
	d.redis = "redis://" + d.plug.Addr()
	ids := make([]string, people)
	for i := range ids {
		id := int64(2000 + i)
		ids[i] = strconv.FormatInt(id, 10)
		d.fake.AddUser(telegramtest.User{ID: id, FirstName: "Ann", Language: "en"})
		d.fake.AddPrivate(id)
	}
	d.settle = []string{
		"ZEPH_LLM_PROVIDERS_MAIN_TYPE=openai", "ZEPH_LLM_PROVIDERS_MAIN_WIRE=chat", "ZEPH_LLM_PROVIDERS_MAIN_MODEL=m",
		fmt.Sprint("ZEPH_LLM_PROVIDERS_MAIN_INPUT_USD_PER_MTOK=", ledgertest.InputUSD), fmt.Sprint("ZEPH_LLM_PROVIDERS_MAIN_OUTPUT_USD_PER_MTOK=", ledgertest.OutputUSD),
		"ZEPH_QUOTAS_USER_USD_PER_DAY=1000000", "ZEPH_QUOTAS_USER_TURNS_PER_DAY=1000000", "ZEPH_QUOTAS_BOT_USD_PER_DAY=1000000",
		"ZEPH_TELEGRAM_ALLOWED_USERS=" + strings.Join(ids, ","),
		"ZEPH_TELEGRAM_WEBHOOK_URL=http://balancer.invalid/updates", "ZEPH_TOOLS_SHELL_SANDBOX=off",
	}
	for range processes {
		d.join()
	}
	db, err := persistence.OpenReader(t.Context(), "", d.url)
	if err != nil {
		t.Fatal(err)
	}
	d.db = db
	t.Cleanup(func() { _ = db.Close() }) // only read
	return d
}

// join starts one more process.
func (d *demo) join() {
	d.Helper()
	name, shared := strconv.Itoa(len(d.names)), d.settle
	d.settle = append(slices.Clip(shared), "ZEPH_LLM_PROVIDERS_MAIN_BASE_URL="+d.model.URL+"/"+name+"/v1")
	s := d.start()
	d.settle, d.names[s] = shared, name
	d.processes = append(d.processes, s)
	d.balancer.mu.Lock()
	defer d.balancer.mu.Unlock()
	d.balancer.hooks = append(d.balancer.hooks, s.hook)
}

// leave takes a process that has ended out of service.
func (d *demo) leave(s *served) {
	d.processes = slices.DeleteFunc(d.processes, func(other *served) bool { return other == s })
	d.balancer.mu.Lock()
	defer d.balancer.mu.Unlock()
	d.balancer.hooks = slices.DeleteFunc(d.balancer.hooks, func(hook string) bool { return hook == s.hook })
}

// count is the result of a query that counts.
func (d *demo) count(query string) int64 {
	d.Helper()
	n, err := d.cluster.Numbers(d.Context(), d.name, query)
	if err != nil {
		d.Fatal(err)
	}
	return n[0]
}

// What counts what is set aside, and the locks.
const (
	heldQuery   = `SELECT count(*) FROM hold`
	lockedQuery = `SELECT count(*) FROM fact WHERE bucket = '` + bot.LeaderBucket + `'`
)

// kill ends a process at once, and says whether it leaves a message of which nobody knows whether it arrived. The
// balancer finds out by itself.
func (d *demo) kill(i int) (unknown bool) {
	d.Helper()
	s := d.processes[i]
	s.signal(syscall.SIGKILL)
	d.died[d.names[s]] = time.Now()
	s.exit()
	n := d.count(`SELECT count(*) FROM outbox WHERE state = 'sending'`)
	d.leave(s)
	return n > 0
}

// settled waits until nothing is on its way.
func (d *demo) settled() {
	d.Helper()
	id := strconv.FormatInt(d.fake.BotID(), 10)
	still := func() bool {
		ctx, cancel := context.WithTimeout(d.Context(), patience)
		defer cancel()
		if d.fake.PendingUpdates() > 0 {
			return false
		}
		express, err := d.db.Express(ctx, telegram.Name, id, 1)
		if err != nil || len(express) > 0 {
			return false
		}
		for range 2 { // what moves on between two looks is seen by the second
			ready, err := d.db.Ready(ctx, telegram.Name, id, time.Now(), 1)
			if err != nil || len(ready) > 0 {
				return false
			}
			counts, err := d.db.Counts(ctx, telegram.Name, id)
			if err != nil || counts.Running > 0 || counts.Undelivered > 0 {
				return false
			}
		}
		return true
	}
	eventually(d.T, still)
}

// plugs are what happens to Redis in a step: nothing, then faults that end with the step, and the loss of all it has.
var plugs = []struct {
	name  string
	fault redistest.Fault
	flush bool
}{{name: "there"}, {name: "cut", fault: redistest.Cut}, {name: "silent", fault: redistest.Stall}, {name: "read-only", fault: redistest.ReadOnly}, {name: "flushed", flush: true}}

// bookedWithin is how long what a call has cost may wait to be stored.
const bookedWithin = 10 * time.Second

// judge compares what is charged with what the model was asked, once all processes have ended.
func (d *demo) judge() *ledgertest.Verdict {
	d.Helper()
	charges, err := d.db.Charges(d.Context(), "2000-01-01")
	if err != nil {
		d.Fatal(err)
	}
	v := d.model.book.Judge(charges, func(r *ledgertest.Request) bool {
		died, dead := d.died[r.By]
		return dead && died.After(r.At) && died.Before(r.Over.Add(bookedWithin))
	})
	for _, wrong := range v.Wrong {
		d.Error(wrong)
	}
	if held, locked := d.count(heldQuery), d.count(lockedQuery); held+locked > 0 {
		d.Errorf("%d amounts are still set aside, and %d locks are left", held, locked)
	}
	return v
}

// steps are the conversation of the README: a question with tools, one that needs an approval, the approval, and a last
// look.
var steps = []string{"what files are here?", "delete the temp files", "press Approve once", "what files are here?"}

// take takes a step of the conversation.
func (d *demo) take(person int64, step string) {
	d.Helper()
	label, press := strings.CutPrefix(step, "press ")
	if !press {
		d.fake.Say(person, person, telegramtest.Message{Text: step})
		return
	}
	for _, m := range slices.Backward(d.fake.Chat(person)) {
		if len(m.Keyboard) > 0 {
			if _, err := d.fake.PressButton(person, person, m.MessageID, label); err != nil {
				d.Fatal(err)
			}
			return
		}
	}
	d.Fatalf("no question to answer: %v", d.seen(person))
}

// workspace puts the sample files where a person's commands work.
func (d *demo) workspace(person int64) (dir string) {
	d.Helper()
	place := telegram.Private(strconv.FormatInt(d.fake.BotID(), 10), strconv.FormatInt(person, 10))
	dir = filepath.Join(d.together.files, bot.WorkspaceID(string(place.SessionKey(""))))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		d.Fatal(err)
	}
	for _, name := range []string{"report.md", "a.tmp", "b.tmp"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("x\n"), 0o600); err != nil {
			d.Fatal(err)
		}
	}
	return dir
}

// clocks are times of day in messages.
var clocks = regexp.MustCompile(`\d\d:\d\d UTC`)

// seen is what a person sees in the chat: texts and buttons.
func (d *demo) seen(person int64) []string {
	var list []string
	for _, m := range d.fake.Chat(person) {
		if m.Deleted {
			continue
		}
		// Everybody is called Ann here, and told apart by the id as soon as there are two.
		text := m.Name + ": " + clocks.ReplaceAllString(strings.ReplaceAll(m.Text, fmt.Sprintf("Ann (%d)", person), "Ann"), "TIME")
		for _, row := range m.Keyboard {
			for _, b := range row {
				text += " [" + b.Text + "]"
			}
		}
		list = append(list, text)
	}
	return list
}

// unmarked takes messages out that say that they were sent again, as far as the first one arrived, and the mark out of
// the others. It counts the marks. A question is sent again without one: its buttons decide the same. Of two, the one
// that nobody knows of stays as it was.
func unmarked(list []string) (out []string, marks int) {
	mark := texts.Words{}.Resent("en")
	for _, text := range list {
		if strings.HasPrefix(text, "Zeph: ✋ ") { // all of them are decided
			marks++
			continue
		}
		if !strings.Contains(text, mark) {
			out = append(out, text)
			continue
		}
		marks++
		text = strings.TrimSpace(strings.Replace(text, mark, "", 1))
		text = strings.ReplaceAll(text, "\n\n [", " [")
		if !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	return out, marks
}

// forgive takes the answers about commands that were cut off for those about commands that were not, and counts them: a
// command is not repeated, and people are told that nobody knows how far it came. What they see of its files afterwards
// is what it left.
func forgive(got, want []string) (n int) {
	for i, text := range got {
		if i >= len(want) {
			break
		}
		switch {
		case strings.Contains(text, "was interrupted while it ran"):
			got[i] = want[i]
			n++
		case n > 0 && strings.HasPrefix(text, "Zeph: There "):
			got[i] = want[i]
		}
	}
	return n
}

// interruptedCalls is how often the audit logs say that a command was cut off by the end of its process.
func (d *demo) interruptedCalls() (n int) {
	logs, _ := filepath.Glob(filepath.Join(d.together.files, ".zephbot", "audit", "*.jsonl")) // a pattern that is one
	for _, log := range logs {
		raw, err := os.ReadFile(log)
		if err != nil {
			d.Fatal(err)
		}
		n += strings.Count(string(raw), "outcome unknown (interrupted)")
	}
	return n
}

// seedOfKills is ZEPH_SEED, or a new one.
func seedOfKills(t *testing.T) uint64 {
	t.Helper()
	text := os.Getenv("ZEPH_SEED")
	if text == "" {
		return rand.Uint64N(1_000_000)
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("ZEPH_SEED: %v", err)
	}
	return seed
}

// TestUnseen: of three processes behind a webhook, one is killed (kill -9) at some moment of each step of the README's
// conversation. People see what they see without a kill: the same texts and buttons, each once. A message is marked as
// sent again only where its process died while it was being sent; a command that was cut off is told as such. In most
// steps Redis is away too, in some manner, or loses all it has; each call of the model is charged once, nothing stays set
// aside and no lock is left.
//
//	ZEPH_REPLICAS=full ZEPH_SEED=7 go test ./cmd/internal/cli -run '^TestUnseen$' -v -count=1 -timeout 30m
func TestUnseen(t *testing.T) {
	t.Parallel()
	rounds, seed := 1, seedOfKills(t)
	if os.Getenv("ZEPH_REPLICAS") == "full" {
		rounds = 25
	}
	t.Logf("seed %d", seed)
	chance := rand.New(rand.NewPCG(seed, 2)) //nolint:gosec // a choice that can be repeated, no secret
	d := newDemo(t, rand.New(rand.NewPCG(seed, 3)), 3)
	var took []time.Duration
	d.workspace(2000)
	for _, step := range steps {
		began := time.Now()
		d.take(2000, step)
		d.settled()
		took = append(took, time.Since(began))
	}
	want := d.seen(2000)
	t.Logf("without a kill (%v):\n%s", took, strings.Join(want, "\n"))
	cut, marked := 0, 0
	for round := range rounds {
		person := int64(2001 + round)
		dir, unknown, told := d.workspace(person), 0, ""
		for i, step := range steps {
			at := time.Duration(chance.Int64N(int64(took[i] + took[i]/4)))
			victim := chance.IntN(len(d.processes))
			plug := plugs[chance.IntN(len(plugs))]
			d.plug.Break(plug.fault)
			d.take(person, step)
			<-time.After(at)
			if plug.flush {
				d.cache.Do("FLUSHALL")
			}
			if d.kill(victim) {
				unknown++
			}
			told += fmt.Sprintf("\n  %s: process %d after %s, Redis %s", step, victim, at.Round(time.Millisecond), plug.name)
			d.join()
			d.settled()
			d.plug.Break(redistest.None)
		}
		seen := d.seen(person)
		got, marks := unmarked(seen)
		before := cut
		cut = d.interruptedCalls()
		if n := forgive(got, want); n > cut-before {
			t.Errorf("round %d, seed %d: told of %d commands that were cut off, want %d%s",
				round, seed, n, cut-before, told)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("round %d, seed %d%s\nseen (-without a kill +with):\n%s", round, seed, told, diff)
		}
		if marks > unknown {
			t.Errorf("round %d, seed %d: %d messages marked, %d kills in the middle of one%s\n%s",
				round, seed, marks, unknown, told, strings.Join(seen, "\n"))
		}
		left, err := filepath.Glob(filepath.Join(dir, "?*.tmp"))
		if err != nil || len(left) > 0 && cut == before {
			t.Errorf("round %d: left %q, %v", round, left, err)
		}
		marked += marks
	}
	t.Logf("%d kills, %d messages marked as sent again, %d commands cut off", rounds*len(steps), marked, cut)
	for _, s := range d.processes {
		s.end()
	}
	t.Log(d.judge())
}
