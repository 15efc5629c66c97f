package telegram_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/bot/telegram"
	"github.com/zephbot/zephbot/bot/telegram/telegramtest"
)

// inbox keeps what is accepted, each id once, and fails on demand.
type inbox struct {
	mu     sync.Mutex
	fails  int
	ids    []int64
	raws   map[int64]string
	bumped chan struct{}
}

func newInbox(fails int) *inbox {
	return &inbox{fails: fails, raws: map[int64]string{}, bumped: make(chan struct{}, 1)}
}

func (b *inbox) accept(_ context.Context, updates []telegram.Update) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.fails > 0 {
		b.fails--
		return errors.New("the store is away")
	}
	for _, u := range updates {
		if _, known := b.raws[u.ID]; !known {
			b.ids = append(b.ids, u.ID)
			b.raws[u.ID] = string(u.Raw)
		}
	}
	select {
	case b.bumped <- struct{}{}:
	default:
	}
	return nil
}

func (b *inbox) list() []int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.ids)
}

// wait waits until n updates are stored.
func (b *inbox) wait(t *testing.T, n int) []int64 {
	t.Helper()
	for {
		if ids := b.list(); len(ids) >= n {
			return ids
		}
		select {
		case <-b.bumped:
		case <-t.Context().Done():
			t.Fatalf("%d updates, want %d", len(b.list()), n)
		}
	}
}

// poll runs a poller until the test ends; the channel has what Run returned.
func poll(t *testing.T, client *telegram.Client, accept telegram.Accept, log io.Writer, opts telegram.PollOptions) (stop func() error) {
	t.Helper()
	opts.Longest = time.Millisecond
	if opts.Conflict == 0 {
		opts.Conflict = time.Millisecond
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	var err error
	go func() {
		defer close(done)
		err = telegram.NewPoller(client, accept, zerolog.New(log), opts).Run(ctx)
	}()
	stop = func() error { cancel(); <-done; return err }
	t.Cleanup(func() { _ = stop() }) // a second stop gives the same
	return stop
}

// buffer is a log that may be read while it is written.
type buffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// say makes Ann say things and returns the ids of the updates.
func (w *world) say(texts ...string) []int64 {
	var ids []int64
	for _, text := range texts {
		_, id := w.Say(ann, ann, telegramtest.Message{Text: text})
		ids = append(ids, id)
	}
	return ids
}

// confirmed waits until Telegram has nothing more to deliver.
func (w *world) confirmed(t *testing.T) {
	t.Helper()
	if err := w.WaitFor(t.Context(), func() bool { return w.PendingUpdates() == 0 }); err != nil {
		t.Fatal(err)
	}
}

func TestPollConfirmsWhatIsStored(t *testing.T) {
	t.Parallel()
	w := setup(t, time.Minute)
	want := w.say("one", "two")
	box, log, connected := newInbox(2), &buffer{}, make(chan struct{})
	accept := func(ctx context.Context, updates []telegram.Update) error {
		if w.PendingUpdates() < len(updates) {
			t.Error("confirmed before it was stored")
		}
		return box.accept(ctx, updates)
	}
	stop := poll(t, w.client, accept, log, telegram.PollOptions{Connected: func() { close(connected) }})
	<-connected
	box.wait(t, 2)
	want = append(want, w.say("three")...)
	if got := box.wait(t, 3); !slices.Equal(got, want) {
		t.Errorf("stored %v, want %v", got, want)
	}
	w.confirmed(t)
	if err := stop(); err != nil {
		t.Error(err)
	}
	var offsets []string
	for _, c := range w.CallsOf("getUpdates") {
		offsets = append(offsets, c.Params["offset"])
	}
	// the store was down twice: the same was asked for again
	if len(offsets) < 4 || strings.Join(offsets[:3], "") != "" {
		t.Errorf("offsets %q", offsets)
	}
	if text := log.String(); !strings.Contains(text, "updates cannot be stored") || !strings.Contains(text, "responds again") {
		t.Errorf("log %s", text)
	}
}

func TestPollAfterAWeekOfSilence(t *testing.T) {
	t.Parallel()
	w := setup(t, time.Minute)
	box := newInbox(0)
	poll(t, w.client, box.accept, io.Discard, telegram.PollOptions{})
	want := w.say("old")
	box.wait(t, 1)
	w.confirmed(t)
	if err := w.JumpID(50); err != nil {
		t.Fatal(err)
	}
	want = append(want, w.say("new", "newer")...)
	if got := box.wait(t, 3); !slices.Equal(got, want) || got[1] != 50 {
		t.Errorf("stored %v, want %v", got, want)
	}
	w.confirmed(t)
}

func TestPollSurvives(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]telegramtest.Fault{
		"409":      {Kind: telegramtest.Fault409},
		"429":      {Kind: telegramtest.Fault429, RetryAfter: 1},
		"500":      {Kind: telegramtest.Fault500},
		"502":      {Kind: telegramtest.Fault502},
		"cut":      {Kind: telegramtest.FaultCut},
		"silence":  {Kind: telegramtest.FaultHang},
		"no token": {Kind: telegramtest.FaultDrop},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t, time.Minute)
			fault.Method, fault.Count = "getUpdates", 1
			w.AddFault(fault)
			want := w.say("one")
			box, log := newInbox(0), &buffer{}
			opts := telegram.PollOptions{}
			if name == "silence" {
				opts.Silence = time.Second
			}
			poll(t, w.client, box.accept, log, opts)
			if got := box.wait(t, 1); !slices.Equal(got, want) {
				t.Errorf("stored %v, want %v", got, want)
			}
			text := log.String()
			if !strings.Contains(text, "nothing is lost") && !strings.Contains(text, "another program polls") {
				t.Errorf("log %s", text)
			}
			if strings.Contains(text, "telegramtest-token") {
				t.Errorf("the token is in the log: %s", text)
			}
		})
	}
}

func TestPollEndsWithAPlainSentence(t *testing.T) {
	t.Parallel()
	w := setup(t, time.Minute)
	wrong := newClient(t, telegram.Options{Token: "1:wrong", APIURL: w.url})
	if err := telegram.NewPoller(wrong, newInbox(0).accept, zerolog.Nop(), telegram.PollOptions{}).Run(t.Context()); err == nil || !strings.Contains(err.Error(), "telegram.token") {
		t.Errorf("%v", err)
	}
	nowhere := answering(t, http.StatusNotFound, "no such page")
	if err := telegram.NewPoller(nowhere, newInbox(0).accept, zerolog.Nop(), telegram.PollOptions{}).Run(t.Context()); err == nil || !strings.Contains(err.Error(), "telegram.api_url") {
		t.Errorf("%v", err)
	}
}

func TestPollKeepsOddities(t *testing.T) {
	t.Parallel()
	w := setup(t, time.Minute)
	var want []int64
	for _, raw := range []string{`{"telepathy":{"strength":9}}`, `{"message_reaction":{"new_reaction":[{"type":"smell"}]}}`, `{"message":5}`} {
		id, err := w.RawUpdate([]byte(raw))
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, id)
	}
	want = append(want, w.say("neighbour")...)
	box := newInbox(0)
	poll(t, w.client, box.accept, io.Discard, telegram.PollOptions{})
	if got := box.wait(t, 4); !slices.Equal(got, want) {
		t.Errorf("stored %v, want %v", got, want)
	}
	if !strings.Contains(box.raws[want[0]], `"strength":9`) {
		t.Errorf("kept %s", box.raws[want[0]])
	}
	w.confirmed(t)
}

// Updates without a readable id are kept once, and do not hold up their neighbours; nothing but such updates is no
// reason to hurry.
func TestPollPoison(t *testing.T) {
	t.Parallel()
	box, log := newInbox(0), &buffer{}
	var mu sync.Mutex
	polls := 0
	answers := []string{
		`{"ok":true,"result":[7,{"update_id":"x"},{"update_id":5,"message":{}}]}`, `{"ok":true,"result":[7]}`, `{"ok":true,"result":5}`, `{"ok":true`,
		`{"ok":true,"result":[{"update_id":6}]}`, `{"ok":true,"result":[]}`,
	}
	offsets := []string{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		_, offset, _ := strings.Cut(string(body), `"offset":`)
		offset, _, _ = strings.Cut(offset, ",")
		offsets = append(offsets, offset)
		_, _ = io.WriteString(w, answers[min(polls, len(answers)-1)])
		polls++
	}))
	t.Cleanup(s.Close)
	client := newClient(t, telegram.Options{Token: telegramtest.DefaultToken, APIURL: s.URL, Observe: func(context.Context, string, int, time.Duration) {}})
	stop := poll(t, client, box.accept, log, telegram.PollOptions{})
	ids := box.wait(t, 4)
	if err := stop(); err != nil {
		t.Error(err)
	}
	if ids[0] >= 0 || ids[1] >= 0 || ids[0] == ids[1] || ids[2] != 5 || ids[3] != 6 {
		t.Errorf("stored %v", ids)
	}
	mu.Lock()
	defer mu.Unlock()
	if got := strings.Join(offsets[:5], " "); got != " 6 6 6 6" {
		t.Errorf("offsets %q", got)
	}
	if !strings.Contains(log.String(), "without an id") {
		t.Errorf("log %s", log)
	}
}

func TestWebhook(t *testing.T) {
	t.Parallel()
	const secret = "s3cret"
	for name, c := range map[string]struct {
		method, secret, body string
		own                  string
		fails                int
		want                 int
		stored               int
	}{
		"an update":       {method: "POST", secret: secret, own: secret, body: `{"update_id":5}`, want: 200, stored: 1},
		"GET":             {method: "GET", secret: secret, own: secret, want: 405},
		"wrong secret":    {method: "POST", secret: "other", own: secret, body: `{"update_id":5}`, want: 401},
		"no secret":       {method: "POST", own: secret, body: `{"update_id":5}`, want: 401},
		"none configured": {method: "POST", body: `{"update_id":5}`, want: 401},
		"too large":       {method: "POST", secret: secret, own: secret, body: `{"update_id":5,"x":"` + strings.Repeat("x", 2<<20) + `"}`, want: 413},
		"not an update":   {method: "POST", secret: secret, own: secret, body: `hello`, want: 400},
		"without an id":   {method: "POST", secret: secret, own: secret, body: `{}`, want: 400},
		"store is away":   {method: "POST", secret: secret, own: secret, body: `{"update_id":5}`, fails: 1, want: 503},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			box := newInbox(c.fails)
			h := telegram.Webhook{Secret: c.own, Accept: box.accept, Log: zerolog.Nop()}
			r := httptest.NewRequestWithContext(t.Context(), c.method, "/", strings.NewReader(c.body))
			if c.secret != "" {
				r.Header.Set("X-Telegram-Bot-Api-Secret-Token", c.secret)
			}
			rec := httptest.NewRecorder()
			h.ServeHTTP(rec, r)
			if rec.Code != c.want || len(box.list()) != c.stored {
				t.Errorf("got %d, stored %v", rec.Code, box.list())
			}
		})
	}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", io.MultiReader(strings.NewReader("{"), broken{}))
	r.Header.Set("X-Telegram-Bot-Api-Secret-Token", secret)
	rec := httptest.NewRecorder()
	telegram.Webhook{Secret: secret, Accept: newInbox(0).accept}.ServeHTTP(rec, r)
	if rec.Code != http.StatusBadRequest {
		t.Errorf("got %d", rec.Code)
	}
}

// broken is a body that ends too soon.
type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }
