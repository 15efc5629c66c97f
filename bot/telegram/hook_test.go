package telegram_test

import (
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/bot/bottest"
	"github.com/zephbot/zephbot/bot/telegram"
	"github.com/zephbot/zephbot/bot/telegram/telegramtest"
)

func newFront(t *testing.T) *telegramtest.Front {
	t.Helper()
	f, err := telegramtest.NewFront(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	return f
}

// hooked is a Bot API server that delivers to a front.
func hooked(t *testing.T) (*world, *telegramtest.Front) {
	t.Helper()
	s := telegramtest.New(telegramtest.Options{Local: true, WebhookPause: func(int) time.Duration { return time.Millisecond }})
	t.Cleanup(s.Close)
	s.AddUser(telegramtest.User{ID: ann, FirstName: "Ann"})
	s.AddPrivate(ann)
	address, err := s.Start()
	if err != nil {
		t.Fatal(err)
	}
	f := newFront(t)
	w := &world{Server: s, url: address}
	w.client = newClient(t, telegram.Options{Token: s.Token(), APIURL: address})
	return w, f
}

// hook runs a Hook until stop is called, or the test ends.
func hook(t *testing.T, w *world, f *telegramtest.Front, accept telegram.Accept, store telegram.HookStore, log io.Writer, opts telegram.HookOptions) (stop func() error) {
	t.Helper()
	connected := make(chan struct{})
	opts.Connected = func() { close(connected) }
	opts.Look, opts.Again = time.Millisecond, time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	var err error
	go func() {
		defer close(done)
		err = telegram.NewHook(w.client, accept, store, zerolog.New(log), opts).Run(ctx, f.Listen())
	}()
	stop = func() error { cancel(); <-done; return err }
	t.Cleanup(func() { _ = stop() }) // a second stop gives the same
	select {
	case <-connected:
	case <-done:
		t.Fatal(err)
	}
	return stop
}

// sets counts how often a webhook was set.
func (w *world) sets() int { return len(w.CallsOf("setWebhook")) }

func TestHookStoresBeforeItAnswers(t *testing.T) {
	t.Parallel()
	w, f := hooked(t)
	box, log := newInbox(2), &buffer{}
	accept := func(ctx context.Context, updates []telegram.Update) error {
		if w.PendingUpdates() == 0 {
			t.Error("confirmed before it was stored")
		}
		return box.accept(ctx, updates)
	}
	early := w.say("said before the service starts")
	stop := hook(t, w, f, accept, bottest.New(), log, telegram.HookOptions{URL: f.URL("/updates"), Owner: "a"})
	want := slices.Concat(early, w.say("two", "three"))
	if got := box.wait(t, 3); !slices.Equal(got, want) {
		t.Errorf("stored %v, want %v", got, want)
	}
	w.confirmed(t)
	if err := stop(); err != nil {
		t.Error(err)
	}
	if !strings.Contains(log.String(), "telegram will deliver it again") {
		t.Errorf("log %s", log)
	}
	late := w.say("said while it was down")
	hook(t, w, f, box.accept, bottest.New(), log, telegram.HookOptions{URL: f.URL("/updates"), Owner: "b"})
	if got := box.wait(t, 4); got[3] != late[0] {
		t.Errorf("stored %v, want %v", got, late)
	}
}

// TestHookRegistersOnce: of processes that share a store one registers, and nobody again without a reason; a new
// address, secret or stranger's webhook is one.
func TestHookRegistersOnce(t *testing.T) {
	t.Parallel()
	w, f := hooked(t)
	store, box, log := bottest.New(), newInbox(0), &buffer{}
	start := func(owner string, opts telegram.HookOptions) func() error {
		opts.Owner = owner
		return hook(t, w, f, box.accept, store, log, opts)
	}
	stop := start("a", telegram.HookOptions{URL: f.URL("/one")})
	others := []func() error{start("b", telegram.HookOptions{URL: f.URL("/one")}), start("c", telegram.HookOptions{URL: f.URL("/one")})}
	if n := w.sets(); n != 1 {
		t.Errorf("set %d times, want once", n)
	}
	call := w.CallsOf("setWebhook")[0]
	if call.Params["max_connections"] != "100" || len(call.Params["secret_token"]) != 64 || !strings.Contains(call.Params["allowed_updates"], "my_chat_member") {
		t.Errorf("set with %v", call.Params)
	}
	for _, end := range append(others, stop) {
		if err := end(); err != nil {
			t.Error(err)
		}
	}
	stop = start("a", telegram.HookOptions{URL: f.URL("/one")})
	if n := w.sets(); n != 1 {
		t.Errorf("after a restart set %d times, want once", n)
	}
	_ = stop()
	stop = start("a", telegram.HookOptions{URL: f.URL("/two")})
	if n := w.sets(); n != 2 {
		t.Errorf("after a new address set %d times, want 2", n)
	}
	_ = stop()
	start("a", telegram.HookOptions{URL: f.URL("/two"), Secret: "another"})
	if n := w.sets(); n != 3 {
		t.Errorf("after a new secret set %d times, want 3", n)
	}
	stranger := newClient(t, telegram.Options{Token: w.Token(), APIURL: w.url})
	if err := stranger.Unhook(t.Context(), bottest.New()); err != nil {
		t.Fatal(err)
	}
	if err := w.WaitFor(t.Context(), func() bool { return w.sets() == 4 }); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(log.String(), "/two") || strings.Contains(log.String(), "telegramtest-token") {
		t.Errorf("the log tells a path or the token: %s", log)
	}
}

func TestHookServesItsPathAlone(t *testing.T) {
	t.Parallel()
	w, f := hooked(t)
	box := newInbox(0)
	hook(t, w, f, box.accept, bottest.New(), io.Discard, telegram.HookOptions{URL: f.URL("/a/b"), Secret: "s3cret", Owner: "a"})
	for path, want := range map[string]int{"/a/b": 200, "/": 404, "/a": 404, "/a/b/": 404, "/a/b/c": 404} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, f.URL(path), strings.NewReader(`{"update_id":7}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-Telegram-Bot-Api-Secret-Token", "s3cret")
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if _ = resp.Body.Close(); resp.StatusCode != want {
			t.Errorf("%s: %d, want %d", path, resp.StatusCode, want)
		}
	}
}

// TestHookRefused: what Telegram will never take ends the start with what to change; what may pass is waited out.
func TestHookRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status     int
		body, want string
	}{
		"address": {400, `{"ok":false,"error_code":400,"description":"Bad Request: bad webhook: Webhook can be set up only on ports 80, 88, 443 or 8443"}`, "telegram.webhook_url"},
		"token":   {401, `{"ok":false,"error_code":401,"description":"Unauthorized"}`, "telegram.token"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFront(t)
			h := telegram.NewHook(answering(t, c.status, c.body), newInbox(0).accept, bottest.New(), zerolog.Nop(), telegram.HookOptions{URL: f.URL("/"), Owner: "a"})
			if err := h.Run(t.Context(), f.Listen()); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %s", err, c.want)
			}
		})
	}
	w, f := hooked(t)
	for _, kind := range []telegramtest.FaultKind{telegramtest.Fault429, telegramtest.Fault500, telegramtest.Fault502, telegramtest.FaultDrop, telegramtest.FaultCut} {
		w.AddFault(telegramtest.Fault{Method: "*Webhook*", Kind: kind, Count: 1})
	}
	log := &buffer{}
	hook(t, w, f, newInbox(0).accept, bottest.New(), log, telegram.HookOptions{URL: f.URL("/"), Owner: "a"})
	if !strings.Contains(log.String(), "nothing is lost") {
		t.Errorf("log %s", log)
	}
}

// TestPollRemovesAWebhook: who configures polling again loses nothing that waits; a webhook that is set again meanwhile
// is somebody's who means it.
func TestPollRemovesAWebhook(t *testing.T) {
	t.Parallel()
	w, f := hooked(t)
	store, box, log := bottest.New(), newInbox(0), &buffer{}
	if err := hook(t, w, f, box.accept, store, log, telegram.HookOptions{URL: f.URL("/"), Owner: "a"})(); err != nil {
		t.Fatal(err)
	}
	f.Close() // what is delivered now is refused
	want := w.say("one", "two")
	unhook := func(ctx context.Context) error { return w.client.Unhook(ctx, store) }
	poll(t, w.client, box.accept, log, telegram.PollOptions{Unhook: unhook})
	if got := box.wait(t, 2); !slices.Equal(got, want) {
		t.Errorf("stored %v, want %v", got, want)
	}
	g := newFront(t)
	stop := hook(t, w, g, box.accept, store, io.Discard, telegram.HookOptions{URL: g.URL("/"), Owner: "b"})
	removed := len(w.CallsOf("deleteWebhook"))
	if err := w.WaitFor(t.Context(), func() bool { return strings.Contains(log.String(), "somebody has set a webhook") }); err != nil {
		t.Fatal(err)
	}
	if n := len(w.CallsOf("deleteWebhook")); n != removed {
		t.Errorf("the webhook was removed again")
	}
	_ = stop()
}
