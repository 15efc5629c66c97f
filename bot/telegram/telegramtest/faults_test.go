package telegramtest_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-telegram/bot"
	"github.com/go-telegram/bot/models"
	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/bot/telegram/telegramtest"
)

func TestFaults(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		fault  telegramtest.Fault
		status int    // 0: no answer
		body   string // part of it
		shown  int    // messages afterwards
	}{
		{telegramtest.Fault{Kind: "429", RetryAfter: 5}, 429, `"retry_after":5`, 0},
		{telegramtest.Fault{Kind: "429"}, 429, "Too Many Requests: retry after 1", 0},
		{telegramtest.Fault{Kind: "500"}, 500, "Internal Server Error", 0},
		{telegramtest.Fault{Kind: "502html"}, 502, "<html>", 0},
		{telegramtest.Fault{Kind: "400", Description: "Bad Request: odd"}, 400, "Bad Request: odd", 0},
		{telegramtest.Fault{Kind: "403"}, 403, "Forbidden: bot was blocked by the user", 0},
		{telegramtest.Fault{Kind: "409"}, 409, "Conflict: terminated by other getUpdates", 0},
		{telegramtest.Fault{Kind: "cut"}, 0, "", 1},
		{telegramtest.Fault{Kind: "drop"}, 0, "", 0},
		{telegramtest.Fault{Kind: "slow", Delay: time.Millisecond}, 200, `"ok":true`, 1},
	} {
		t.Run(row.fault.Kind, func(t *testing.T) {
			t.Parallel()
			w := setup(t, telegramtest.Options{})
			row.fault.Method, row.fault.Chat, row.fault.Count = "send*", ann, 1
			w.AddFault(row.fault)
			w.send(group, "another chat is not hit")
			w.must("getMe", nil, nil)
			r := w.call("sendMessage", p{"chat_id": ann, "text": "x"})
			if r.status != row.status || !strings.Contains(r.raw, row.body) || (row.status == 0) != (r.err != nil) {
				t.Errorf("got %d %q %v", r.status, r.raw, r.err)
			}
			if n := len(w.Chat(ann)); n != row.shown {
				t.Errorf("%d messages, want %d", n, row.shown)
			}
			if err := w.WaitFor(t.Context(), func() bool { return len(w.CallsOf("sendMessage")) == 2 }); err != nil {
				t.Fatal(err)
			}
			c := w.CallsOf("sendMessage")[1]
			if c.Fault != row.fault.Kind || c.Status != row.status || c.Executed != (row.shown == 1) || c.Chat != ann {
				t.Errorf("logged: %+v", c)
			}
			w.send(ann, "the count is used up")
		})
	}
}

func TestHangAndStall(t *testing.T) {
	t.Parallel()
	for kind, shown := range map[string]int{telegramtest.FaultHang: 0, telegramtest.FaultStall: 1} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			executed := make(chan struct{}, 4)
			w := setup(t, telegramtest.Options{OnCall: func(_ context.Context, c telegramtest.Call) {
				if c.Phase == "after" {
					executed <- struct{}{}
				}
			}})
			w.AddFault(telegramtest.Fault{Kind: kind})
			got := make(chan reply, 1)
			go func() { got <- w.post("sendMessage?chat_id=11&text=x", "", nil) }()
			if kind == telegramtest.FaultStall {
				<-executed
			} else if err := w.WaitFor(t.Context(), func() bool { return w.InFlight() == 1 }); err != nil {
				t.Fatal(err)
			}
			// The fault may not have been met yet; until it is, clearing would let the call through.
			if kind == telegramtest.FaultHang {
				w.Close()
			} else {
				w.ClearFaults()
			}
			if r := <-got; r.err == nil {
				t.Errorf("answered: %+v", r)
			}
			if n := len(w.Chat(ann)); n != shown {
				t.Errorf("%d messages, want %d", n, shown)
			}
		})
	}
}

func TestBudgets(t *testing.T) {
	t.Parallel()
	w := setup(t, telegramtest.Options{Budgets: telegramtest.Budgets{
		Chat:   telegramtest.Limit{Count: 2, Per: time.Second},
		Group:  telegramtest.Limit{Count: 3, Per: time.Minute},
		Global: telegramtest.Limit{Count: 6, Per: time.Minute},
	}})
	wait := func(chat int64) int {
		t.Helper()
		r := w.call("sendMessage", p{"chat_id": chat, "text": w.clock.now().String()})
		if r.Code != 0 && r.Code != 429 {
			t.Fatalf("%+v", r)
		}
		return r.Parameters.RetryAfter
	}
	steps := []struct {
		after time.Duration
		chat  int64
		want  int
	}{
		{0, ann, 0},
		{0, ann, 0},
		{0, ann, 1}, // 2 a second in a chat
		{0, ann, 2}, // calling during the freeze makes it longer
		{2 * time.Second, group, 0},
		{time.Second, group, 0},
		{time.Second, group, 0},
		{time.Second, group, 57}, // 3 a minute in a group; the first was 3 s ago
		{0, ann, 0},              // another chat is free
		{time.Second, ann, 54},   // 6 a minute over all; the first was 6 s ago
		{54 * time.Second, ann, 0},
	}
	for i, s := range steps {
		w.clock.add(s.after)
		if got := wait(s.chat); got != s.want {
			t.Errorf("step %d: retry_after %d, want %d", i, got, s.want)
		}
	}
	if n := len(w.Chat(group)); n != 3 {
		t.Errorf("a refused call had an effect: %d messages", n)
	}
	w.must("sendChatAction", p{"chat_id": group, "action": "typing"}, nil)
	w.must("sendMessageDraft", p{"chat_id": ann, "draft_id": 1, "text": "free"}, nil)
}

func TestHooksAndLog(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var seen []string
	var logged []telegramtest.Call
	var w *world
	ready := make(chan struct{})
	w = setup(t, telegramtest.Options{
		KeepCalls: 3,
		OnCall: func(_ context.Context, c telegramtest.Call) {
			<-ready
			mu.Lock()
			defer mu.Unlock()
			if c.Method == "sendMessage" {
				seen = append(seen, c.Phase, string(rune('0'+len(w.Chat(ann)))))
			}
		},
		Log: func(c telegramtest.Call) {
			mu.Lock()
			defer mu.Unlock()
			logged = append(logged, c)
		},
	})
	close(ready)
	id := w.send(ann, "x")
	for range 9 {
		w.must("getMe", nil, nil)
	}
	w.call("sendMessage", p{"chat_id": 404, "text": "x"})
	mu.Lock()
	defer mu.Unlock()
	if diff := cmp.Diff([]string{"before", "0", "after", "1", "before", "1", "after", "1"}, seen); diff != "" {
		t.Error(diff)
	}
	if len(logged) != 11 || logged[0].Message != id || logged[0].N != 1 || !logged[0].Executed || logged[0].Params["text"] != "x" {
		t.Errorf("logged: %+v", logged)
	}
	calls := w.Calls()
	if len(calls) != 3 || calls[2].N != 11 || calls[2].Status != 400 || calls[2].Error != "Bad Request: chat not found" || calls[2].Executed {
		t.Errorf("kept: %+v", calls)
	}
}

// hook is a webhook receiver that answers with the given statuses, then 200.
type hook struct {
	mu       sync.Mutex
	statuses []int
	answer   string
	got      []update
	secrets  []string
}

func (h *hook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	raw, err := io.ReadAll(r.Body)
	h.mu.Lock()
	defer h.mu.Unlock()
	var u update
	if err == nil {
		err = json.Unmarshal(raw, &u)
	}
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	h.got = append(h.got, u)
	h.secrets = append(h.secrets, r.Header.Get("X-Telegram-Bot-Api-Secret-Token"))
	if len(h.statuses) > 0 {
		status := h.statuses[0]
		h.statuses = h.statuses[1:]
		w.WriteHeader(status)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, h.answer)
}

func (h *hook) ids() []int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return ids(h.got)
}

func webhookWorld(t *testing.T, h *hook, attempts int) *world {
	t.Helper()
	receiver := httptest.NewServer(h)
	t.Cleanup(receiver.Close)
	w := setup(t, telegramtest.Options{
		Local: true, FirstID: 50, WebhookAttempts: attempts, WebhookPause: func(int) time.Duration { return 0 },
	})
	w.must("setWebhook", p{"url": receiver.URL, "secret_token": "s3cret"}, nil)
	return w
}

func (w *world) drained() {
	w.t.Helper()
	if err := w.WaitFor(w.t.Context(), func() bool { return w.PendingUpdates() == 0 }); err != nil {
		w.t.Fatal(err)
	}
}

func TestWebhookRepeatsInOrder(t *testing.T) {
	t.Parallel()
	h := &hook{statuses: []int{500, 404, 204}}
	w := webhookWorld(t, h, 0)
	for range 3 {
		w.Say(ann, ann, telegramtest.Message{Text: "x"})
	}
	w.drained()
	if diff := cmp.Diff([]int64{50, 50, 50, 51, 52}, h.ids()); diff != "" {
		t.Error(diff)
	}
	for _, s := range h.secrets {
		if s != "s3cret" {
			t.Errorf("secret header %q", s)
		}
	}
	var info map[string]any
	w.must("getWebhookInfo", nil, &info)
	if info["pending_update_count"] != 0.0 || info["last_error_message"] != "wrong response from the webhook: 404 Not Found" {
		t.Errorf("getWebhookInfo: %v", info)
	}
	if err := w.Redeliver(51); err != nil {
		t.Fatal(err)
	}
	w.drained()
	if got := h.ids(); got[len(got)-1] != 51 {
		t.Errorf("redelivery: %v", got)
	}
}

func TestWebhookGivesUp(t *testing.T) {
	t.Parallel()
	h := &hook{statuses: []int{500, 500}}
	w := webhookWorld(t, h, 2)
	w.Say(ann, ann, telegramtest.Message{Text: "lost"})
	w.drained()
	w.Say(ann, ann, telegramtest.Message{Text: "kept"})
	w.drained()
	if diff := cmp.Diff([]int64{50, 50, 51}, h.ids()); diff != "" {
		t.Error(diff)
	}
}

func TestWebhookAnswersWithAMethod(t *testing.T) {
	t.Parallel()
	w := webhookWorld(t, &hook{answer: `{"method":"sendMessage","chat_id":11,"text":"by answer"}`}, 0)
	w.Say(ann, ann, telegramtest.Message{Text: "x"})
	w.drained()
	if got := w.Chat(ann); len(got) != 2 || got[1].Text != "by answer" {
		t.Errorf("shown: %+v", got)
	}
}

// TestWebhookBacklog: what waited in the queue comes after setWebhook, unless it was dropped with it.
func TestWebhookBacklog(t *testing.T) {
	t.Parallel()
	for drop, want := range map[bool][]int64{false: {50, 51}, true: {51}} {
		h := &hook{}
		receiver := httptest.NewServer(h)
		t.Cleanup(receiver.Close)
		w := setup(t, telegramtest.Options{Local: true, FirstID: 50})
		w.Say(ann, ann, telegramtest.Message{Text: "before"})
		w.must("setWebhook", p{"url": receiver.URL, "drop_pending_updates": drop}, nil)
		w.Say(ann, ann, telegramtest.Message{Text: "after"})
		w.drained()
		if diff := cmp.Diff(want, h.ids()); diff != "" {
			t.Errorf("drop %t: %s", drop, diff)
		}
	}
}

func TestMarkup(t *testing.T) {
	t.Parallel()
	e := func(kind string, offset, length int) models.MessageEntity {
		return models.MessageEntity{Type: models.MessageEntityType(kind), Offset: offset, Length: length}
	}
	link := e("text_link", 0, 1)
	link.URL = "https://a.example/?x=1&y=2"
	pre := e("pre", 0, 4)
	pre.Language = "go"
	for _, row := range []struct {
		mode, in, text string
		want           []models.MessageEntity
	}{
		{"HTML", "<b>a<i>b</i></b> &lt;&amp;&gt;", "ab <&>", []models.MessageEntity{e("bold", 0, 2), e("italic", 1, 1)}},
		{"HTML", `<a href="https://a.example/?x=1&amp;y=2">x</a>`, "x", []models.MessageEntity{link}},
		{"HTML", `<pre><code class="language-go">x:=1</code></pre>`, "x:=1", []models.MessageEntity{pre}},
		{"HTML", "<blockquote expandable>q</blockquote>", "q", []models.MessageEntity{e("expandable_blockquote", 0, 1)}},
		{"HTML", `<span class="tg-spoiler">😀</span>!`, "😀!", []models.MessageEntity{e("spoiler", 0, 2)}},
		{"MarkdownV2", `*a* _b_ __c__ ~d~ ||e||`, "a b c d e", []models.MessageEntity{
			e("bold", 0, 1), e("italic", 2, 1), e("underline", 4, 1), e("strikethrough", 6, 1), e("spoiler", 8, 1),
		}},
		{"MarkdownV2", `1\. a\*b`, "1. a*b", nil},
		{"MarkdownV2", "[x](https://a.example/?x=1&y=2)", "x", []models.MessageEntity{link}},
		{"MarkdownV2", "```go\nx:=1```", "x:=1", []models.MessageEntity{pre}},
		{"MarkdownV2", "`a\\`b`", "a`b", []models.MessageEntity{e("code", 0, 3)}},
		{"MarkdownV2", ">q\n>r", "q\nr", []models.MessageEntity{e("blockquote", 0, 3)}},
		{"MarkdownV2", "**>q||", "q", []models.MessageEntity{e("expandable_blockquote", 0, 1)}},
	} {
		w := setup(t, telegramtest.Options{})
		r := w.call("sendMessage", p{"chat_id": ann, "text": row.in, "parse_mode": row.mode})
		if !r.OK {
			t.Errorf("%q: %s", row.in, r.Text)
			continue
		}
		got := w.Chat(ann)[0]
		if got.Text != row.text || !cmp.Equal(row.want, got.Entities) {
			t.Errorf("%q: %q %s", row.in, got.Text, cmp.Diff(row.want, got.Entities))
		}
		w.Close()
	}
}

// TestClientLibrary talks to the server through the library the bot uses.
func TestClientLibrary(t *testing.T) {
	t.Parallel()
	w := setup(t, telegramtest.Options{})
	heard := make(chan *models.Update, 8)
	b, err := bot.New(w.Token(), bot.WithServerURL(w.url), bot.WithDefaultHandler(func(_ context.Context, _ *bot.Bot, u *models.Update) {
		heard <- u
	}))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { b.Start(ctx) })
	defer wg.Wait()
	defer cancel()
	_, id := w.Say(ann, ann, telegramtest.Message{Text: "/start"})
	if u := <-heard; u.ID != id || u.Message.Text != "/start" || u.Message.From.ID != ann {
		t.Errorf("heard %+v", u)
	}
	m, err := b.SendMessage(ctx, &bot.SendMessageParams{
		ChatID: ann, Text: "hello", Entities: []models.MessageEntity{{Type: "bold", Offset: 0, Length: 5}},
		ReplyMarkup: &models.InlineKeyboardMarkup{InlineKeyboard: [][]models.InlineKeyboardButton{{{Text: "A", CallbackData: "a"}}}},
	})
	if err != nil || m.ID == 0 {
		t.Fatalf("SendMessage: %+v %v", m, err)
	}
	if _, err := w.PressButton(ann, ann, m.ID, "A"); err != nil {
		t.Fatal(err)
	}
	if u := <-heard; u.CallbackQuery == nil || u.CallbackQuery.Message.Message.ID != m.ID {
		t.Errorf("heard %+v", u)
	}
	if _, err := b.SendMessageDraft(ctx, &bot.SendMessageDraftParams{ChatID: ann, DraftID: "1", Text: "…", CanStop: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Stop(ann, ann, 1); err != nil {
		t.Fatal(err)
	}
	if u := <-heard; u.StoppedMessageGeneration == nil || u.StoppedMessageGeneration.DraftID != 1 {
		t.Errorf("heard %+v", u)
	}
	member, err := b.GetChatMember(ctx, &bot.GetChatMemberParams{ChatID: forum, UserID: ann})
	if err != nil || member.Type != models.ChatMemberTypeAdministrator {
		t.Errorf("GetChatMember: %+v %v", member, err)
	}
	doc, err := b.SendDocument(ctx, &bot.SendDocumentParams{
		ChatID: ann, Document: &models.InputFileUpload{Filename: "a.log", Data: strings.NewReader("log")},
	})
	if err != nil || doc.Document.FileName != "a.log" {
		t.Errorf("SendDocument: %+v %v", doc, err)
	}
	if _, err := b.SetMessageReaction(ctx, &bot.SetMessageReactionParams{ChatID: ann, MessageID: m.ID, Reaction: []models.ReactionType{{
		Type: models.ReactionTypeTypeEmoji, ReactionTypeEmoji: &models.ReactionTypeEmoji{Emoji: "👀"},
	}}}); err != nil {
		t.Errorf("SetMessageReaction: %v", err)
	}
	if err := w.WaitFor(ctx, func() bool { return w.PendingUpdates() == 0 }); err != nil {
		t.Error(err)
	}
}

// TestManyChats is the shape of the load benchmark: every chat talks and is answered at once.
func TestManyChats(t *testing.T) {
	t.Parallel()
	w := setup(t, telegramtest.Options{PrivacyOff: true})
	var wg sync.WaitGroup
	for i := range 50 {
		chat := int64(10_000 + i)
		w.AddUser(telegramtest.User{ID: chat, FirstName: "P"})
		wg.Go(func() {
			for range 4 {
				w.Say(chat, chat, telegramtest.Message{Text: "x"})
				if r := w.call("sendMessage", p{"chat_id": chat, "text": "y"}); !r.OK {
					t.Errorf("send: %+v", r)
				}
			}
		})
	}
	wg.Wait()
	if n := w.PendingUpdates(); n != 200 {
		t.Errorf("%d updates, want 200", n)
	}
	if n := len(w.CallsOf("sendMessage")); n != 200 {
		t.Errorf("%d calls, want 200", n)
	}
}
