//go:build unix

package crashtest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/bot/telegram/telegramtest"
)

const (
	weatherSeeds    = 5
	weatherPatience = 10 * time.Minute
	firstPerson     = 2000
	firstGroup      = -5000
)

// weather is how rough it gets.
type weather struct {
	people, groups int // each group has one of the people
	questions      int // in all
	outages        int
	longest        time.Duration // of an outage
	every          time.Duration // between two questions, on average
	kills          int
}

// TestWeather asks a real process a hundred questions in many chats while the way to Telegram breaks in every manner, at moments that a seed chooses, and
// while the process is killed: every question is answered, in the order of its chat, and what comes again says so. A plain `go test` sends a small storm;
// ZEPH_WEATHER=full sends five great ones, one after the other.
func TestWeather(t *testing.T) {
	if os.Getenv("ZEPH_WEATHER") != "full" {
		t.Parallel()
		storm(t, 1, weather{people: 6, groups: 2, questions: 24, outages: 2, longest: 3 * time.Second, every: 200 * time.Millisecond, kills: 1})
		return
	}
	for seed := range uint64(weatherSeeds) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			storm(t, seed, weather{people: 16, groups: 4, questions: 100, outages: 6, longest: 12 * time.Second, every: 300 * time.Millisecond, kills: 3})
		})
	}
}

func storm(t *testing.T, seed uint64, w weather) {
	t.Helper()
	began := time.Now()
	random := rand.New(rand.NewPCG(seed, 2026))
	r := weatherRun(t, w)
	ctx, cancel := context.WithTimeout(t.Context(), weatherPatience)
	defer cancel()
	if err := r.start(); err != nil {
		t.Fatal(err)
	}
	var sky sync.WaitGroup
	sky.Go(func() { r.blow(ctx, rand.New(rand.NewPCG(seed, 7))) })
	kills := 0
	for i := range w.questions {
		r.ask(t, i)
		pause(ctx, time.Duration(random.Int64N(int64(2*w.every))))
		if w.kills*(i+1)/w.questions > kills {
			kills++
			r.killed(t)
		}
	}
	sky.Wait()
	if err := r.fake.WaitFor(ctx, func() bool { return r.answers() == w.questions }); err != nil {
		t.Errorf("%d of %d questions answered", r.answers(), w.questions)
	}
	if err := r.child.end(ctx); err != nil {
		t.Errorf("end of the process: %v", err)
	}
	again := r.orderly(t)
	t.Logf("seed %d: %d of %d answered in %.0f s; %d outages, %d kills, %d requests hit, %d answers repeated",
		seed, r.answers(), w.questions, time.Since(began).Seconds(), w.outages, kills, r.hit(), again)
	if t.Failed() {
		t.Log(r.child.log)
	}
}

// rough is a run in bad weather.
type rough struct {
	*run
	weather
}

func weatherRun(t *testing.T, w weather) *rough {
	t.Helper()
	r := &rough{run: &run{t: t, dir: t.TempDir(), counts: map[string]int{}, presses: map[int]string{}}, weather: w}
	// Telegram's own limits: a 429 that no fault asked for is a budget that we did not keep.
	r.fake = telegramtest.New(telegramtest.Options{PrivacyOff: true, Budgets: telegramtest.Budgets{
		Global: telegramtest.Limit{Count: 30, Per: time.Second}, Group: telegramtest.Limit{Count: 20, Per: time.Minute}, Chat: telegramtest.Limit{Count: 4, Per: time.Second},
	}})
	t.Cleanup(r.fake.Close)
	var err error
	if r.url, err = r.fake.Start(); err != nil {
		t.Fatal(err)
	}
	users, chats := []string{}, []string{}
	for i := range w.people {
		id := int64(firstPerson + i)
		r.fake.AddUser(telegramtest.User{ID: id, FirstName: fmt.Sprint("P", i), Language: "en"})
		r.fake.AddPrivate(id)
		users = append(users, strconv.FormatInt(id, 10))
	}
	for i := range w.groups {
		id := int64(firstGroup - i)
		r.fake.AddGroup(telegramtest.Group{ID: id, Title: fmt.Sprint("G", i), Members: []int64{int64(firstPerson + i)}})
		chats = append(chats, strconv.FormatInt(id, 10))
	}
	server := httptest.NewServer(http.HandlerFunc(echo))
	t.Cleanup(server.Close)
	r.model = &modelServer{Server: server}
	r.env = []string{
		"ZEPH_TELEGRAM_ALLOWED_USERS=" + strings.Join(users, ","), "ZEPH_TELEGRAM_ALLOWED_CHATS=" + strings.Join(chats, ","),
		"ZEPH_TELEGRAM_LIMITS_PER_SECOND=30", "ZEPH_TELEGRAM_LIMITS_PER_CHAT_PER_SECOND=1", "ZEPH_TELEGRAM_LIMITS_PER_GROUP_PER_MINUTE=20",
	}
	return r
}

// question finds the number of a question or an answer.
var question = regexp.MustCompile(`<([0-9]+)>`)

// echo is a model that answers a question with its number.
func echo(w http.ResponseWriter, req *http.Request) {
	var body struct {
		Messages []wireMessage `json:"messages"`
	}
	if err := json.NewDecoder(req.Body).Decode(&body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	all := question.FindAllString(body.Messages[len(body.Messages)-1].Content, -1)
	if len(all) == 0 {
		http.Error(w, `{"error":{"message":"no question"}}`, http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for _, f := range frames(&llm.Response{Text: "This is the answer to " + all[len(all)-1]}) {
		_, _ = fmt.Fprintf(w, "data: %s\n\n", f) // a client that is gone asks again
	}
	_, _ = fmt.Fprint(w, "data: [DONE]\n\n")
}

// ask writes question i in its chat.
func (r *rough) ask(t *testing.T, i int) {
	t.Helper()
	n := i % (r.people + r.groups)
	person, chat, text := int64(firstPerson+n), int64(firstPerson+n), fmt.Sprintf("<%d>", i)
	if n >= r.people {
		person, chat, text = int64(firstPerson+n-r.people), int64(firstGroup-(n-r.people)), "@zephbot "+text
	}
	if _, err := r.fake.Post(person, chat, telegramtest.Message{Text: text}); err != nil {
		t.Fatal(err)
	}
}

// faults of an outage, and how long a server that is overloaded asks to wait.
var faults = []telegramtest.FaultKind{
	telegramtest.Fault502, telegramtest.FaultDrop, telegramtest.FaultCut, telegramtest.Fault500, telegramtest.Fault429, telegramtest.FaultHang, telegramtest.FaultStall,
}

// blow makes one outage after the other, with fair weather between.
func (r *rough) blow(ctx context.Context, random *rand.Rand) {
	for range r.outages {
		pause(ctx, time.Duration(random.Int64N(int64(4*time.Second))))
		length := time.Second + time.Duration(random.Int64N(int64(r.longest-time.Second)))
		r.outage(ctx, random, length)
	}
}

// outage breaks the way to Telegram for a while, in a mix of manners: all of it, or sending alone.
func (r *rough) outage(ctx context.Context, random *rand.Rand, length time.Duration) {
	kinds, first := 1+random.IntN(len(faults)), random.IntN(len(faults))
	method := []string{"", "send*", "send*"}[random.IntN(3)]
	ctx, cancel := context.WithTimeout(ctx, length)
	defer cancel()
	for ctx.Err() == nil {
		version := r.fake.Version()
		if len(r.fake.Faults()) < 4 {
			kind := faults[(first+random.IntN(kinds))%len(faults)]
			r.fake.AddFault(telegramtest.Fault{Method: method, Kind: kind, RetryAfter: 1 + random.IntN(2), Count: 1 + random.IntN(3)})
			continue
		}
		select {
		case <-r.fake.Changed(version):
		case <-ctx.Done():
		}
	}
	r.fake.ClearFaults()
}

// pause lets time go by: people and the weather keep their own time.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// hit counts the attempts to send that went wrong.
func (r *rough) hit() (n int) {
	for _, c := range r.fake.Calls() {
		if c.Fault != "" && strings.HasPrefix(c.Method, "sendM") {
			n++
		}
	}
	return n
}

// killed ends the process as kill -9 does and starts the next one.
func (r *rough) killed(t *testing.T) {
	t.Helper()
	_ = r.child.cmd.Process.Kill() // its exit says more
	<-r.child.exited
	_ = r.child.stdin.Close()
	if err := r.start(); err != nil {
		t.Fatal(err)
	}
}

func (r *rough) chats() []int64 {
	var list []int64
	for i := range r.people {
		list = append(list, int64(firstPerson+i))
	}
	for i := range r.groups {
		list = append(list, int64(firstGroup-i))
	}
	return list
}

// answers counts the questions that are answered.
func (r *rough) answers() int {
	found := map[string]bool{}
	for _, chat := range r.chats() {
		for _, m := range r.fake.Chat(chat) {
			if id := question.FindString(m.Text); m.FromBot && id != "" {
				found[id] = true
			}
		}
	}
	return len(found)
}

// orderly wants the answers of a chat in the order of its questions, each again only when it says so. It returns how many came again.
func (r *rough) orderly(t *testing.T) (again int) {
	t.Helper()
	for _, chat := range r.chats() {
		last := -1
		for _, m := range r.fake.Chat(chat) {
			found := question.FindStringSubmatch(m.Text)
			if !m.FromBot || found == nil {
				continue
			}
			n, _ := strconv.Atoi(found[1]) // digits
			marks := strings.Count(m.Text, resent())
			switch {
			case n < last:
				t.Errorf("chat %d: answer %d after answer %d", chat, n, last)
			case n == last && marks == 0, marks > 1:
				t.Errorf("chat %d: answer %d came again with %d marks", chat, n, marks)
			}
			if n == last {
				again++
			}
			last = n
		}
	}
	for _, c := range r.fake.Calls() {
		if c.Status == http.StatusTooManyRequests && c.Fault == "" {
			t.Errorf("call %d, %s in chat %d, was over the budget", c.N, c.Method, c.Chat)
		}
	}
	return again
}
