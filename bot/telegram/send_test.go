package telegram_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/render"
	"github.com/zephbot/zephbot/bot/telegram"
	"github.com/zephbot/zephbot/bot/telegram/telegramtest"
)

func TestNewClientRefuses(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string]telegram.Options{
		"no token":   {APIURL: "http://x"},
		"no number":  {Token: "abc:def", APIURL: "http://x"},
		"odd secret": {Token: "1:a b", APIURL: "http://x"},
		"no scheme":  {Token: "1:a", APIURL: "x"},
		"not http":   {Token: "1:a", APIURL: "ftp://x"},
		"no URL":     {Token: "1:a", APIURL: "http://%zz"},
	} {
		if _, err := telegram.NewClient(opts); err == nil || (len(opts.Token) > 3 && strings.Contains(err.Error(), opts.Token)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestOutcomesOfFaults(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fault telegramtest.Fault
		want  bot.SendOutcome
		wait  time.Duration
	}{
		"429":                 {fault: telegramtest.Fault{Kind: telegramtest.Fault429, RetryAfter: 7}, want: bot.Throttled, wait: 7 * time.Second},
		"403":                 {fault: telegramtest.Fault{Kind: telegramtest.Fault403}, want: bot.Gone},
		"400 rights":          {fault: telegramtest.Fault{Kind: telegramtest.Fault400}, want: bot.Gone},
		"400 chat":            {fault: telegramtest.Fault{Kind: telegramtest.Fault400, Description: "Bad Request: chat not found"}, want: bot.Gone},
		"400 entities":        {fault: telegramtest.Fault{Kind: telegramtest.Fault400, Description: "Bad Request: can't parse entities"}, want: bot.Refused},
		"400 edit":            {fault: telegramtest.Fault{Kind: telegramtest.Fault400, Description: "Bad Request: message to edit not found"}, want: bot.Missing},
		"409":                 {fault: telegramtest.Fault{Kind: telegramtest.Fault409}, want: bot.NotSent},
		"500":                 {fault: telegramtest.Fault{Kind: telegramtest.Fault500}, want: bot.NotSent},
		"502 with a page":     {fault: telegramtest.Fault{Kind: telegramtest.Fault502}, want: bot.Vague},
		"cut after execution": {fault: telegramtest.Fault{Kind: telegramtest.FaultCut}, want: bot.Vague},
		// nobody on this end can tell it from the one above
		"cut before execution":   {fault: telegramtest.Fault{Kind: telegramtest.FaultDrop}, want: bot.Vague},
		"hang":                   {fault: telegramtest.Fault{Kind: telegramtest.FaultHang}, want: bot.Vague},
		"executed, then no word": {fault: telegramtest.Fault{Kind: telegramtest.FaultStall}, want: bot.Vague},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t, time.Minute)
			w.AddFault(c.fault)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var wg sync.WaitGroup
			if c.fault.Kind == telegramtest.FaultHang || c.fault.Kind == telegramtest.FaultStall {
				wg.Go(func() { // the time limit of the request comes when the server has it
					if err := w.WaitFor(t.Context(), func() bool { return w.InFlight() > 0 }); err != nil {
						t.Error(err)
					}
					cancel()
				})
			}
			_, err := w.client.Send(ctx, hello("11"))
			wg.Wait()
			wantError(t, err, c.want)
			var e *bot.SendError
			if errors.As(err, &e) && e.RetryAfter != c.wait && c.wait != 0 {
				t.Errorf("wait %v", e.RetryAfter)
			}
		})
	}
}

// wantError wants an outcome, and no token or page in the text.
func wantError(t *testing.T, err error, want bot.SendOutcome) {
	t.Helper()
	if err == nil || bot.OutcomeOf(err) != want {
		t.Errorf("got %v, want %s", err, want)
		return
	}
	if strings.Contains(err.Error(), "telegramtest-token") || len(err.Error()) > 600 {
		t.Errorf("the error says too much: %v", err)
	}
}

func TestOutcomesOfAnswers(t *testing.T) {
	t.Parallel()
	page := "<html>" + strings.Repeat("x", 5000)
	for name, c := range map[string]struct {
		status int
		body   string
		want   bot.SendOutcome // "" = sent
		id     string
		wait   time.Duration
	}{
		"fine":                      {status: 200, body: `{"ok":true,"result":{"message_id":5,"chat":{"id":1},"date":1}}`, id: "5"},
		"sent, unknown shape":       {status: 200, body: `{"ok":true,"result":{"message_id":6,"chat":[]}}`, id: "6"},
		"sent, answer cut":          {status: 200, body: `{"ok":true,"result":{"message_id":7,"ch`, id: "7"},
		"sent, cut before the id":   {status: 200, body: `{"ok":true,"resu`},
		"a page of somebody else":   {status: 200, body: page, want: bot.Vague},
		"401":                       {status: 401, body: `{"ok":false,"error_code":401,"description":"Unauthorized"}`, want: bot.NotSent},
		"404 of method or token":    {status: 404, body: `{"ok":false,"error_code":404,"description":"Not Found"}`, want: bot.NotSent},
		"404 of a proxy":            {status: 404, body: page, want: bot.Vague},
		"403 of a proxy":            {status: 403, body: page, want: bot.Vague},
		"429 of a proxy":            {status: 429, body: page, want: bot.Throttled},
		"500 of a proxy":            {status: 500, body: page, want: bot.Vague},
		"413":                       {status: 413, body: page, want: bot.Refused},
		"503":                       {status: 503, body: `{"ok":false,"error_code":503,"description":"Service Unavailable"}`, want: bot.NotSent},
		"503 of a proxy":            {status: 503, body: page, want: bot.Vague},
		"closed topic":              {status: 400, body: `{"ok":false,"error_code":400,"description":"Bad Request: TOPIC_CLOSED"}`, want: bot.NoTopic},
		"deleted topic":             {status: 400, body: `{"ok":false,"error_code":400,"description":"Bad Request: message thread not found"}`, want: bot.NoTopic},
		"no documents here":         {status: 400, body: `{"ok":false,"error_code":400,"description":"Bad Request: not enough rights to send documents to the chat"}`, want: bot.Refused},
		"504":                       {status: 504, body: page, want: bot.Vague},
		"429 without a time":        {status: 429, body: `{"ok":false,"error_code":429,"description":"Too Many Requests"}`, want: bot.Throttled, wait: time.Second},
		"429 with a time":           {status: 429, body: `{"ok":false,"error_code":429,"description":"Too Many Requests","parameters":{"retry_after":7}}`, want: bot.Throttled, wait: 7 * time.Second},
		"migrated":                  {status: 400, body: `{"ok":false,"error_code":400,"description":"x","parameters":{"migrate_to_chat_id":-1005}}`, want: bot.Moved},
		"deactivated":               {status: 403, body: `{"ok":false,"error_code":403,"description":"Forbidden: user is deactivated"}`, want: bot.Gone},
		"the token in words of 400": {status: 400, body: `{"ok":false,"error_code":400,"description":"` + telegramtest.DefaultToken + `"}`, want: bot.Refused},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := answering(t, c.status, c.body)
			id, err := client.Send(t.Context(), hello("11"))
			if c.want != "" {
				wantError(t, err, c.want)
				var e *bot.SendError
				if errors.As(err, &e) && e.RetryAfter != c.wait && c.wait != 0 {
					t.Errorf("wait %v", e.RetryAfter)
				}
				if errors.As(err, &e) && c.want == bot.Moved && e.MovedTo != "-1005" {
					t.Errorf("moved to %q", e.MovedTo)
				}
				return
			}
			if err != nil || id != c.id {
				t.Errorf("got %q, %v", id, err)
			}
		})
	}
}

func TestConnectionRefused(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var seen []string
	client := newClient(t, telegram.Options{Token: telegramtest.DefaultToken, APIURL: refusing(t), Observe: func(_ context.Context, method string, status int, _ time.Duration) {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, method+" "+strconv.Itoa(status))
	}})
	_, err := client.Send(t.Context(), hello("11"))
	wantError(t, err, bot.NotSent)
	_, err = client.Me(t.Context())
	wantError(t, err, bot.NotSent)
	wantError(t, client.Typing(t.Context(), place("11")), bot.NotSent)
	if strings.Join(seen, ", ") != "sendMessage 0, getMe 0, sendChatAction 0" {
		t.Errorf("observed %q", seen)
	}
}

func TestIDsThatAreNone(t *testing.T) {
	t.Parallel()
	w := setup(t, time.Minute)
	bad := place("x")
	_, err := w.client.Send(t.Context(), hello("x"))
	wantError(t, err, bot.Refused)
	_, err = w.client.Send(t.Context(), &bot.Row{Place: bad, Content: bot.Content{File: &bot.File{Name: "a"}}})
	wantError(t, err, bot.Refused)
	wantError(t, w.client.Revise(t.Context(), bad, "1", bot.Content{Text: "x"}), bot.Refused)
	wantError(t, w.client.Revise(t.Context(), place("11"), "x", bot.Content{Text: "x"}), bot.Missing)
	wantError(t, w.client.Draft(t.Context(), bad, 1, bot.Content{}), bot.Refused)
	wantError(t, w.client.Typing(t.Context(), bad), bot.Refused)
}

func TestMigratedGroup(t *testing.T) {
	t.Parallel()
	w := setup(t, time.Minute)
	to, err := w.Migrate(group)
	if err != nil {
		t.Fatal(err)
	}
	_, err = w.client.Send(t.Context(), hello("-500"))
	wantError(t, err, bot.Moved)
	var e *bot.SendError
	if errors.As(err, &e) && e.MovedTo != strconv.FormatInt(to, 10) {
		t.Errorf("moved to %q, want %d", e.MovedTo, to)
	}
}

// send sends a row and returns what people see.
func (w *world) send(t *testing.T, row *bot.Row) telegramtest.Shown {
	t.Helper()
	id, err := w.client.Send(t.Context(), row)
	if err != nil {
		t.Fatal(err)
	}
	chat, _ := strconv.ParseInt(row.Place.Chat, 10, 64)
	n, _ := strconv.Atoi(id)
	m, ok := w.Message(chat, n)
	if !ok {
		t.Fatalf("no message %q", id)
	}
	return m
}

func TestSend(t *testing.T) {
	t.Parallel()
	w := setup(t, time.Minute)
	asked, _ := w.Say(ann, group, telegramtest.Message{Text: "hi"})
	row := hello("-500")
	row.ReplyTo = strconv.Itoa(asked)
	row.Content = bot.Content{
		Text: "ä code link", Entities: []render.Entity{{Type: "code", Offset: 2, Length: 4}, {Type: "text_link", Offset: 7, Length: 4, URL: "https://example.org/"}},
		Buttons: [][]bot.Button{{{Label: "Yes", Data: "y", Style: "success"}, {Label: "Done", Data: "n", Gray: true}}},
	}
	m := w.send(t, row)
	if m.Text != row.Content.Text || len(m.Entities) != 2 || m.ReplyTo != asked || len(m.Keyboard) != 1 || m.Keyboard[0][0].Style != "success" {
		t.Errorf("%+v", m)
	}
	if len(m.Keyboard[0]) != 2 || m.Keyboard[0][1].Disabled == nil {
		t.Errorf("keyboard %+v", m.Keyboard)
	}
	row.ReplyTo = "999999" // deleted meanwhile
	if m = w.send(t, row); m.ReplyTo != 0 {
		t.Errorf("%+v", m)
	}
	file := hello("-500")
	file.ReplyTo = strconv.Itoa(asked)
	file.Content = bot.Content{Text: "a file", File: &bot.File{Name: "a.txt", Data: []byte("data")}, Entities: []render.Entity{{Type: "bold", Offset: 0, Length: 1}}}
	m = w.send(t, file)
	if m.Attachment == nil || m.Attachment.Name != "a.txt" || m.Text != "a file" || len(m.Entities) != 1 || m.ReplyTo != asked {
		t.Errorf("%+v", m)
	}
	if data, _ := w.FileData(m.Attachment.FileID); string(data) != "data" {
		t.Errorf("file %q", data)
	}
	file.Content.Text = strings.Repeat("x", 2000)
	if m = w.send(t, file); render.Length(m.Text) != 1024 || len(m.Entities) != 0 {
		t.Errorf("caption of %d", render.Length(m.Text))
	}
	if p := w.Problems(); len(p) > 0 {
		t.Errorf("problems %q", p)
	}
}

func TestTopics(t *testing.T) {
	t.Parallel()
	w := setup(t, time.Minute)
	chat := strconv.FormatInt(forum, 10)
	for thread, want := range map[string]int{"7": 7, "1": 0, "": 0} {
		row := hello(chat)
		row.Place.Thread = thread
		if m := w.send(t, row); m.Thread != want {
			t.Errorf("thread %q: sent to %d", thread, m.Thread)
		}
		row.Content.File = &bot.File{Name: "x", Data: []byte("x")}
		w.send(t, row)
		if err := w.client.Typing(t.Context(), row.Place); err != nil {
			t.Errorf("thread %q: %v", thread, err)
		}
		if got := w.Typing(forum); !slices.ContainsFunc(got, func(a telegramtest.ChatAction) bool { return a.Thread == want }) {
			t.Errorf("thread %q: typing %+v", thread, got)
		}
	}
}

func TestEdit(t *testing.T) {
	t.Parallel()
	w := setup(t, time.Minute)
	row := hello("11")
	row.Content.Buttons = [][]bot.Button{{{Label: "Yes", Data: "y"}}}
	m := w.send(t, row)
	row.Edit = strconv.Itoa(m.MessageID)
	row.Content.Text = "changed"
	if m = w.send(t, row); m.Text != "changed" || len(m.Keyboard) != 1 {
		t.Errorf("%+v", m)
	}
	if m = w.send(t, row); m.Edits != 1 { // nothing to change: done already
		t.Errorf("%+v", m)
	}
	row.Content = bot.Content{}
	if m = w.send(t, row); m.Text != "changed" || len(m.Keyboard) != 0 {
		t.Errorf("%+v", m)
	}
	w.send(t, row)
	wantError(t, w.client.Revise(t.Context(), row.Place, "99999", bot.Content{Text: "x"}), bot.Missing)
	if err := w.client.Revise(t.Context(), row.Place, row.Edit, bot.Content{Text: "grown"}); err != nil {
		t.Error(err)
	}
}

func TestToast(t *testing.T) {
	t.Parallel()
	w := setup(t, time.Minute)
	row := hello("11")
	row.Content.Buttons = [][]bot.Button{{{Label: "Yes", Data: "y"}}}
	m := w.send(t, row)
	query, err := w.PressButton(ann, ann, m.MessageID, "Yes")
	if err != nil {
		t.Fatal(err)
	}
	toast := &bot.Row{Place: place("11"), Purpose: bot.Toast, Query: query, Alert: true, Content: bot.Content{Text: strings.Repeat("x", 300)}}
	for range 2 { // the second comes too late: no failure
		if _, err := w.client.Send(t.Context(), toast); err != nil {
			t.Error(err)
		}
	}
	got, ok := w.CallbackAnswered(query)
	if !ok || !got.ShowAlert || render.Length(got.Text) != 200 {
		t.Errorf("%+v", got)
	}
	w.AddFault(telegramtest.Fault{Kind: telegramtest.Fault500})
	_, err = w.client.Send(t.Context(), toast)
	wantError(t, err, bot.NotSent)
}

func TestDraft(t *testing.T) {
	t.Parallel()
	w := setup(t, time.Minute)
	if !w.client.Drafts(place("11")) || w.client.Drafts(place("-500")) {
		t.Error("drafts are for private chats")
	}
	for range 2 {
		if err := w.client.Draft(t.Context(), place("11"), 5, bot.Content{Text: "grows", Entities: []render.Entity{{Type: "bold", Length: 5}}}); err != nil {
			t.Fatal(err)
		}
	}
	if d, ok := w.Draft(ann); !ok || d.Frames != 2 || !d.CanStop || d.Text != "grows" || len(d.Entities) != 1 {
		t.Errorf("%+v", d)
	}
	wantError(t, w.client.Draft(t.Context(), place("-500"), 5, bot.Content{Text: "x"}), bot.Refused)
}

func TestMeAndCompose(t *testing.T) {
	t.Parallel()
	w := setup(t, time.Minute)
	me, err := w.client.Me(t.Context())
	if err != nil || me.ID != w.client.ID() || me.Username != "zephbot" || !me.ReadsAll {
		t.Errorf("%+v %v", me, err)
	}
	if got := w.client.Compose("**b**", place("11"), "en"); len(got) != 1 || got[0].Text != "b" || len(got[0].Entities) != 1 {
		t.Errorf("%+v", got)
	}
	wrong := newClient(t, telegram.Options{Token: "1:wrong", APIURL: w.url})
	if _, err := wrong.Me(t.Context()); err == nil || strings.Contains(err.Error(), "1:wrong") {
		t.Errorf("%v", err)
	}
	if _, err := answering(t, http.StatusOK, `{"ok":true,"result":5}`).Me(t.Context()); err == nil {
		t.Error("that is nobody")
	}
}

// TestOnly: what concerns one person of a group is shown to them alone where the bot may do that, else to everybody,
// and then without asking again.
func TestOnly(t *testing.T) {
	t.Parallel()
	w := setup(t, 0)
	send := func(chat int64, text string, want bot.SendOutcome) (requests int) {
		t.Helper()
		before := len(w.Calls())
		row := hello(strconv.FormatInt(chat, 10))
		row.Content.Text, row.Content.Only = text, strconv.FormatInt(ann, 10)
		_, err := w.client.Send(t.Context(), row)
		if (err != nil) != (want != "") || err != nil && bot.OutcomeOf(err) != want {
			t.Errorf("%q in %d: %v", text, chat, err)
		}
		return len(w.Calls()) - before
	}
	for _, step := range []struct {
		chat     int64
		text     string
		outcome  bot.SendOutcome
		requests int
	}{
		{forum, "hers", "", 1},
		{ann, "in private", "", 1},
		{group, "", bot.Refused, 2}, // refused in any case: nothing is learnt from it
		{group, "open", "", 2},
		{group, "open at once", "", 1},
		{forum, "hers too", "", 1},
	} {
		if n := send(step.chat, step.text, step.outcome); n != step.requests {
			t.Errorf("%q in %d took %d requests, want %d", step.text, step.chat, n, step.requests)
		}
	}
	if diff := cmp.Diff([]string{"hers", "hers too"}, w.Alone(forum, ann)); diff != "" {
		t.Errorf("shown to her alone (-want +got):\n%s", diff)
	}
	for chat, want := range map[int64]int{forum: 0, group: 2, ann: 1} {
		if got := len(w.Chat(chat)); got != want || len(w.Alone(chat, bob)) != 0 {
			t.Errorf("%d shows everybody %d messages, want %d", chat, got, want)
		}
	}
}
