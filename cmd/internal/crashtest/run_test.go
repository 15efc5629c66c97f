//go:build unix

package crashtest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zephbot/zephbot/agent/llm/llmtest"
	"github.com/zephbot/zephbot/bot/telegram/telegramtest"
	"github.com/zephbot/zephbot/persistence/postgres/pgtest"
)

// Phases of a point: of a commit, a request to the Bot API, a request to the model.
const (
	before = "before"
	during = "during"
	after  = "after"
)

// patience limits one point. It is long because a test machine may be slow; a working run never comes near it.
const patience = 2 * time.Minute

// The story that is played at every point.
const (
	ann     int64 = 1001
	first         = "please note it"
	second        = "and now the second thing"
	answer1       = "Noted the plan in the file."
	answer2       = "That was the second thing."
	plan          = "plan.txt"
	notes         = "notes.txt"
	approve       = "Approve once"
	script        = `
on "please note it": call read {"path":"plan.txt"}
then call bash {"command":"echo line >> notes.txt"}
then say ` + answer1 + `
on "the second thing": say ` + answer2
)

// point is a moment to kill the process at: the Nth change, or the Nth request of a method ("model": of the model).
type point struct {
	What  string
	N     int
	Phase string
}

func (p point) String() string { return fmt.Sprintf("%s_%d_%s", p.What, p.N, p.Phase) }

const (
	commit = "commit"
	model  = "model"
)

// story is what happens, and what must be true at its end.
type story struct {
	script  string
	step    func(r *run, ctx context.Context) (done bool, err error)
	promise func(r *run, ctx context.Context) error
	from    string          // only points from the first Change on that has this part; "" = all
	fixed   bool            // it comes to the same requests each time
	cluster *pgtest.Cluster // stores the service's data; nil = SQLite does
	shared  bool            // the processes share their database and Redis
	prepare func(r *run)    // sets what further environment the service needs; nil = none
}

// noted is the story of a command that Ann approves, and of a message that waits behind it.
var noted = story{script: script, step: (*run).step, promise: (*run).promise, fixed: true}

// run is the story played once, with or without a kill.
type run struct {
	t     *testing.T
	story story
	dir   string
	base  string // name of the database on the story's cluster
	fake  *telegramtest.Server
	url   string
	model *modelServer
	kill  *point // nil = none, or done

	mu     sync.Mutex
	counts map[string]int // requests by method and phase
	seen   []point        // requests as they came
	child  *child

	more      []string // further environment of the service
	config    string   // its configuration file; "" = none
	calls     string   // the address of a hook
	followed  string   // the link of a sign-in that was followed last
	dead      *wreck   // what the killed process left behind
	said      int      // how many of the two messages are written
	presses   map[int]string
	lives     int
	polls     int    // getUpdates of earlier lives
	pressedIn int    // the life in which a card was pressed last
	first     string // the report of a process without a kill
	frozen    bool   // the story is told: what comes now is the end of the process
}

func newRun(t *testing.T, s story, kill *point) *run {
	t.Helper()
	r := &run{t: t, story: s, dir: t.TempDir(), kill: kill, counts: map[string]int{}, presses: map[int]string{}}
	scripted, err := llmtest.ParseNamed("scripted", s.script)
	if err != nil {
		t.Fatal(err)
	}
	r.fake = telegramtest.New(telegramtest.Options{OnCall: func(ctx context.Context, c telegramtest.Call) { r.request(ctx, c.Method, c.Phase) }})
	t.Cleanup(r.fake.Close)
	if r.url, err = r.fake.Start(); err != nil {
		t.Fatal(err)
	}
	r.fake.AddUser(telegramtest.User{ID: ann, FirstName: "Ann", Language: "en"})
	r.fake.AddPrivate(ann)
	r.model = newModelServer(scripted, r.request)
	t.Cleanup(r.model.Close)
	if s.cluster != nil {
		r.base = s.cluster.Database(t, "")
	}
	if s.prepare != nil {
		s.prepare(r)
	}
	if s.shared {
		r.share()
	}
	if r.config != "" {
		if err := os.WriteFile(filepath.Join(r.dir, "zephbot.toml"), []byte(r.config), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(r.workspace(), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(r.workspace(), plan), []byte("the plan\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *run) workspace() string {
	return filepath.Join(r.dir, "workspaces", fmt.Sprintf("telegram_%d_bot_%d_0_0", r.fake.BotID(), ann))
}

// request counts a request, and ends the process at the one where it is to be killed. It returns only after the
// connection is closed, so that a request that is killed before its execution is not executed.
func (r *run) request(ctx context.Context, method, phase string) {
	r.mu.Lock()
	key := method + "/" + phase
	r.counts[key]++
	here := point{method, r.counts[key], phase}
	if !r.frozen {
		r.seen = append(r.seen, here)
	}
	kill := r.kill != nil && *r.kill == here
	c := r.child
	r.mu.Unlock()
	if !kill || c == nil {
		return
	}
	if err := c.cmd.Process.Kill(); err != nil {
		r.t.Errorf("kill: %v", err)
		return
	}
	<-c.exited
	<-ctx.Done()
}

// databaseURL is where the service's data is stored; "" = in SQLite.
func (r *run) databaseURL() string {
	if r.story.cluster == nil {
		return ""
	}
	return r.story.cluster.URL(r.base)
}

// start starts the bot on the run's state.
func (r *run) start() error {
	kill := ""
	if r.kill != nil && r.kill.What == commit {
		kill = fmt.Sprintf("%s %d", r.kill.Phase, r.kill.N)
	}
	env := []string{
		killVariable + "=" + kill,
		"ZEPH_DATA_DIR=" + r.dir, "ZEPH_TELEGRAM_TOKEN=" + r.fake.Token(), "ZEPH_TELEGRAM_API_URL=" + r.url,
		fmt.Sprintf("ZEPH_TELEGRAM_ALLOWED_USERS=%d", ann), "ZEPH_TELEGRAM_LIMITS_PER_SECOND=0", "ZEPH_TELEGRAM_LIMITS_PER_CHAT_PER_SECOND=0",
		"ZEPH_LLM_PROVIDERS_MAIN_TYPE=openai", "ZEPH_LLM_PROVIDERS_MAIN_MODEL=scripted", "ZEPH_LLM_PROVIDERS_MAIN_API_KEY=opens-nothing",
		"ZEPH_LLM_PROVIDERS_MAIN_BASE_URL=" + r.model.URL, "ZEPH_DATABASE_URL=" + r.databaseURL(),
	}
	c, err := newChild(r.t.Context(), r.dir, append(env, r.more...), &lines{})
	if err != nil {
		return err
	}
	r.mu.Lock() // the first request arrives after child is set
	defer r.mu.Unlock()
	if err := c.begin(r.t); err != nil {
		return err
	}
	r.child = c
	r.lives++
	r.polls = r.counts["getUpdates/"+before]
	return nil
}

// close ends the service. If the process is killed during that, the next one finishes first.
func (r *run) close(ctx context.Context) error {
	r.freeze()
	err := r.child.end(ctx)
	if err != nil && r.kill != nil && r.child.killed() {
		if err := r.bury(ctx); err != nil {
			return err
		}
		if err := r.listen(ctx); err != nil {
			return err
		}
		err = r.child.end(ctx)
	}
	if err != nil {
		return fmt.Errorf("end of the process: %w", err)
	}
	return nil
}

// tell plays the story to its end: a process that dies on the way is restarted once.
func (r *run) tell(ctx context.Context) error {
	if err := r.start(); err != nil {
		return err
	}
	return r.listen(ctx)
}

// listen continues the story.
func (r *run) listen(ctx context.Context) error {
	for {
		version := r.fake.Version()
		done, err := r.story.step(r, ctx)
		if done || err != nil {
			return err
		}
		select {
		case <-r.fake.Changed(version):
		case <-r.child.news:
		case <-r.child.exited:
			if err := r.bury(ctx); err != nil {
				return err
			}
		case <-ctx.Done():
			return errors.New("the story does not come to its end")
		}
	}
}

// bury examines what the killed process left behind, and starts the next one.
func (r *run) bury(ctx context.Context) error {
	if r.kill == nil || !r.child.killed() {
		return fmt.Errorf("the process ended by itself: %w", errors.Join(r.child.err, errors.New("nobody killed it")))
	}
	_ = r.child.stdin.Close() // nobody reads it any more
	var err error
	if r.dead, err = r.inspect(ctx); err != nil {
		return fmt.Errorf("look at the wreck: %w", err)
	}
	r.mu.Lock()
	r.kill = nil
	r.mu.Unlock()
	return r.start()
}

// step does what Ann does next, as far as she can see; done when the story is over.
func (r *run) step(ctx context.Context) (done bool, err error) {
	shown := r.fake.Chat(ann)
	card := newestCard(shown)
	switch {
	case r.requests("getUpdates") == r.polls: // this life does not listen yet
		return false, nil
	case r.said == 0:
		return false, r.say(first)
	case r.said == 1:
		if card == 0 && count(shown, answer1) == 0 {
			return false, nil
		}
		return false, r.say(second)
	case card != 0 && r.pressedIn < r.lives && (r.lives > 1 || r.queued(shown)):
		return false, r.press(card)
	case count(shown, answer1) == 0 || count(shown, answer2) == 0:
		return false, nil
	}
	if still, err := r.still(ctx); err != nil || !still {
		return false, err
	}
	if orphan := r.orphan(shown); orphan != 0 { // a card that was sent twice: the other copy no longer decides anything
		return false, r.press(orphan)
	}
	return true, nil
}

func (r *run) say(text string) error {
	r.said++
	_, err := r.fake.Post(ann, ann, telegramtest.Message{Text: text})
	return err
}

func (r *run) press(message int) error {
	r.pressedIn = r.lives
	id, err := r.fake.PressButton(ann, ann, message, approve)
	r.presses[message] = id
	return err
}

// queued reports that the second message was accepted and announced as waiting: without a kill the story has only one
// order.
func (r *run) queued(shown []telegramtest.Shown) bool {
	return r.fake.PendingUpdates() == 0 && count(shown, behind()) > 0
}

// orphan is a card with buttons that has not been pressed yet.
func (r *run) orphan(shown []telegramtest.Shown) int {
	for _, m := range shown {
		if asks(m) && r.presses[m.MessageID] == "" {
			return m.MessageID
		}
	}
	return 0
}

func asks(m telegramtest.Shown) bool {
	for _, row := range m.Keyboard {
		for _, b := range row {
			if b.Text == approve {
				return true
			}
		}
	}
	return false
}

// freeze ends the list of points: later ones belong to the end of the process.
func (r *run) freeze() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.frozen, r.first = true, r.child.report.String()
}

// newestCard is the newest message that asks for approval; 0 = none.
func newestCard(shown []telegramtest.Shown) int {
	id := 0
	for _, m := range shown {
		if asks(m) {
			id = m.MessageID
		}
	}
	return id
}

// count counts the bot's messages that begin with a text.
func count(shown []telegramtest.Shown, text string) int {
	n := 0
	for _, m := range shown {
		if m.FromBot && strings.HasPrefix(m.Text, text) {
			n++
		}
	}
	return n
}

func (r *run) requests(method string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.counts[method+"/"+before]
}

// dump shows what happened in a run that failed.
func (r *run) dump() string {
	var b strings.Builder
	for _, m := range r.fake.Chat(ann) {
		fmt.Fprintf(&b, "  %3d %s: %s\n", m.MessageID, m.Name, m.Text)
	}
	for _, c := range r.fake.Calls() {
		fmt.Fprintf(&b, "  call %3d %s message %d: %d executed %v %s\n", c.N, c.Method, c.Message, c.Status, c.Executed, c.Error)
	}
	if r.dead != nil {
		fmt.Fprintf(&b, "wreck: %+v\n", *r.dead)
	}
	if r.child != nil {
		fmt.Fprintf(&b, "life %d, changes:\n%slog:\n%s", r.lives, r.child.report, r.child.log)
	}
	return b.String()
}
