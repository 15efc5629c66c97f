package operator_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/approval"
	"github.com/zephbot/zephbot/bot/bottest"
	"github.com/zephbot/zephbot/bot/operator"
	"github.com/zephbot/zephbot/bot/quota"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/bot/turn"
	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/audit"
	"github.com/zephbot/zephbot/tools/mcp"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	annChat = bot.SessionKey("telegram/1/bot/42/0/42")
	team    = bot.SessionKey("telegram/1/bot/-100/0/43")
	secret  = "sk-planted-0123456789"
)

// world is what processes share: a store, a clock, admins.
type world struct {
	t      *testing.T
	store  *bottest.Store
	mu     sync.Mutex
	now    time.Time
	admins map[string]bool
	lines  []string // of the audit log

	approvers []string
	continued []bot.SessionKey // whose turns go on
}

// office is a process with its page.
type office struct {
	*world
	page *operator.Page
	url  string
	jar  http.CookieJar
	own  *http.Client
	csrf string
}

func (w *world) clock() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

func (w *world) pass(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.now.Add(d)
}

func (w *world) admin(caller string, is bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.admins[caller] = is
}

func (w *world) logged() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Join(w.lines, "\n")
}

func newWorld(t *testing.T) *world {
	t.Helper()
	return &world{t: t, store: bottest.New(), now: time.Now().UTC().Truncate(time.Second), admins: map[string]bool{"telegram:42": true}, approvers: []string{"telegram:42", "telegram:44"}}
}

// open starts a process on the world.
func (w *world) open(change func(*operator.Deps)) *office {
	w.t.Helper()
	deps := operator.Deps{
		About: operator.About{
			Channel: "telegram", Bot: "1", Name: "Zeph", Owner: "0f3a9c21-7777", Version: "0.10.0", Started: w.now.Add(-3 * time.Hour),
			Processes: func() []string { return []string{"0f3a9c21", "77aa01bc"} },
		},
		Store: w.store, Redact: func(text string) string { return strings.ReplaceAll(text, secret, "[redacted]") },
		Admin: func(_ context.Context, caller string) (bool, error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			return w.admins[caller], nil
		},
		Sources: operator.Sources{
			Servers: servers, Spent: func() map[string]float64 { return map[string]float64{"main": 1.87, "fallback": 0.12} },
			Names: func() map[string]string {
				return map[string]string{"telegram:42": "Ann", "telegram:43": "Ben", "telegram:-100": "Team"}
			},
			MonthBegan: func() string { return w.clock().Format("2006-01") + "-01" }, Bars: bars(w.clock),
			Audit: w.audit,
		},
		Effects: operator.Effects{Line: func(call *tools.Call) []bot.Fact {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.lines = append(w.lines, call.Origin.Caller+" "+call.Tool+" "+string(call.Args))
			return nil
		}},
		Decisions: w.decisions(),
		Words:     texts.Words{}, Now: w.clock, Log: zerolog.Nop(), Listen: "127.0.0.1:9090",
	}
	if change != nil {
		change(&deps)
	}
	o := &office{world: w, page: operator.New(deps)}
	server := httptest.NewServer(o.page)
	w.t.Cleanup(server.Close)
	o.url, o.own = server.URL, server.Client()
	o.jar, _ = cookiejar.New(nil)
	o.own.Jar = o.jar
	o.own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return o
}

// decisions are those of the chat: the broker of questions, and the manager of quotas.
func (w *world) decisions() operator.Decisions {
	broker := approval.New(approval.Deps{
		Store: w.store, Now: w.clock, Rights: func(context.Context, bot.Place, string) (approval.Rights, error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			return approval.Rights{Approvers: slices.Clone(w.approvers), Requester: true, Required: 1}, nil
		},
	}, time.Hour)
	meter := quota.New(quota.Options{}, nil, w.store, texts.Words{}, w.clock, nil)
	quotas := &quota.Manager{
		Meter: meter, Facts: w.store, Now: w.clock, Admins: func() []string { return nil },
		Record: func(call *turn.Call, args any) []bot.Fact {
			raw, _ := json.Marshal(args) // strings
			w.mu.Lock()
			defer w.mu.Unlock()
			w.lines = append(w.lines, call.Message.Caller+" quota_set "+string(raw))
			return nil
		},
	}
	return operator.Decisions{
		Card: broker.Card, Press: broker.Press, Quota: quotas.Manage,
		Apply: func(ctx context.Context, compute func() (turn.Effect, error)) error {
			e, err := compute()
			if err != nil {
				return err
			}
			applied, err := w.store.Apply(ctx, &e.Change)
			if err != nil {
				return err
			}
			w.mu.Lock()
			w.continued = append(w.continued, e.Decided...)
			w.mu.Unlock()
			if e.Then == nil {
				return nil
			}
			next, err := e.Then(ctx, applied)
			if err != nil {
				return err
			}
			w.mu.Lock()
			w.continued = append(w.continued, next.Decided...)
			w.mu.Unlock()
			_, err = w.store.Apply(ctx, &next.Change)
			return err
		},
	}
}

func servers() []mcp.Status {
	return []mcp.Status{
		{ID: "github", Transport: "http", Trust: "untrusted", State: mcp.Connected, Tools: []string{"github_search", "github_issue"}, Since: time.Now().Add(-time.Hour), Name: "GitHub MCP"},
		{ID: "jira", Transport: "stdio", Trust: "trusted", State: mcp.Broken, Problem: "exit status 1: no token " + secret, Attempts: 7, Since: time.Now().Add(-time.Minute)},
	}
}

func bars(now func() time.Time) func(context.Context, []bot.Charge) ([]quota.Bar, error) {
	return func(context.Context, []bot.Charge) ([]quota.Bar, error) {
		return []quota.Bar{
			{Level: "user/telegram:42", Scope: texts.User, Unit: quota.Turns, Window: texts.Day, Used: 18, Limit: 20, Fresh: now().Add(5 * time.Hour)},
			{Level: "user/telegram:43", Scope: texts.User, Unit: quota.Turns, Window: texts.Day, Used: 20, Limit: 20, By: "telegram:42", Name: "Ann", At: now().Add(-time.Hour), Fresh: now().Add(5 * time.Hour)},
			{Level: "chat/telegram/1/bot/-100", Scope: texts.Chat, Unit: quota.USD, Window: texts.Month, Used: 1_200_000, Limit: 5_000_000, Fresh: now().Add(90 * time.Hour)},
			{Level: "bot/telegram/1", Scope: texts.Bot, Unit: quota.Tokens, Window: texts.Day, Used: 1_830_000},
		}, nil
	}
}

func (w *world) audit(_ context.Context, q operator.AuditQuery) (operator.AuditPage, error) {
	lines := []any{
		audit.Found{At: w.clock(), Tool: "bash", Caller: "telegram:42", Result: "success", Rule: "3 (ask find … -delete)", Approved: "telegram:42", Millis: 86},
		audit.Found{At: w.clock().Add(-time.Minute), Tool: "fetch", Caller: "telegram:43", Result: "blocked", Reason: "host example.org is not allowed " + secret, Rule: "net"},
	}
	if q.Person != "" {
		lines = lines[1:]
	}
	return operator.AuditPage{Lines: lines, Back: w.clock()}, nil
}

// fill stores some of everything.
func (w *world) fill() {
	w.t.Helper()
	at := w.now.Add(-10 * time.Minute)
	private := bot.Place{Channel: "telegram", Bot: "1", Surface: "bot", Chat: "42"}
	group := bot.Place{Channel: "telegram", Bot: "1", Surface: "bot", Chat: "-100", Group: true}
	for session, place := range map[bot.SessionKey]bot.Place{annChat: private, team: group} {
		w.do(&bot.Change{
			Claim: &bot.Claim{Session: session, Place: place, Owner: "0f3a9c21-7777", Now: at, Until: at.Add(time.Hour)},
			Lanes: []bot.LaneUpdate{{Session: session, Since: &at}},
		})
	}
	running := bot.Running
	name := "t2"
	w.do(&bot.Change{Lanes: []bot.LaneUpdate{{Session: team, State: &running, Turn: &name}}})
	w.do(&bot.Change{Append: &bot.Append{Session: annChat, Entries: []journal.Entry{
		{Turn: "t1", Kind: journal.UserEntry, At: at, Text: "delete the temp files", Caller: "telegram:42"},
		{Turn: "t1", Kind: journal.AssistantEntry, At: at, Model: "gpt-5", Millis: 412, USD: 0.0041, Usage: llm.Usage{Input: 1700, Output: 130}, Uses: []journal.Use{{Call: "c", Name: "bash", Args: []byte(`{"command":"find . -name '*.tmp' -delete"}`)}}},
		{Turn: "t1", Kind: journal.ResultEntry, At: at, Tool: "bash", Text: "3 files " + secret, Rule: "3 (ask find … -delete)", By: "telegram:42", Millis: 86},
		{Turn: "t1", Kind: journal.AnswerEntry, At: at, Text: "Three files are gone.", Model: "gpt-5", Millis: 300},
	}}})
	arrived := w.do(&bot.Change{Arrive: []bot.Arrival{
		{Channel: "telegram", Bot: "1", ID: "900", Source: bot.FromTelegram, Session: annChat, Raw: []byte(`{"update_id":900}`), At: at},
		{Channel: "telegram", Bot: "1", ID: "901", Source: bot.FromTelegram, Session: annChat, Raw: []byte(`{"update_id":901}`), At: at},
		{Channel: "telegram", Bot: "1", ID: "902", Source: bot.FromTelegram, Session: team, Raw: []byte(`{"update_id":902}`), At: at},
	}}).Seqs
	w.do(&bot.Change{Dead: []bot.DeadLetter{{Seq: arrived[0], Problem: "decode update: token " + secret}, {Seq: arrived[1], Problem: "the model's answer has no end"}}})
	rows := w.do(&bot.Change{Send: []bot.Row{
		{Session: annChat, Place: private, Purpose: bot.Final, Content: bot.Content{Text: "Three files are gone."}, Turn: "t1"},
		{Session: team, Place: group, Purpose: bot.Reply, Content: bot.Content{Text: "Here it is."}},
		{Session: team, Place: group, Purpose: bot.Final, Content: bot.Content{Text: "On its way."}},
	}}).Rows
	w.do(&bot.Change{Rows: []bot.RowUpdate{
		{ID: rows[0], From: []bot.RowState{bot.Pending}, To: bot.Unknown, Attempts: 1, Problem: "no answer within 30 s"},
		{ID: rows[1], From: []bot.RowState{bot.Pending}, To: bot.Dead, Attempts: 3, Problem: "Forbidden: bot was kicked from the group chat"},
	}})
	w.do(&bot.Change{Ask: []bot.Approval{{
		ID: "q1", Short: "akun", Session: team, Place: group, Turn: "t2", Call: "c1", Caller: "telegram:43", Tool: "bash", State: bot.Open, Needed: 2, Votes: []string{"telegram:42"},
		Body: []byte(`{"question":{"tool":"bash","show":"make deploy ` + secret + `","command":true}}`), Hash: "h1", Created: at, Expires: at.Add(time.Hour),
	}}})
	w.charge()
}

func (w *world) charge() {
	var list []bot.Charge
	for n := range 24 {
		day := w.now.AddDate(0, 0, -n).Format(time.DateOnly)
		for scope, share := range map[string]int64{"bot/telegram/1": 3, "user/telegram:42": 2, "user/telegram:43": 1} {
			for unit, amount := range map[string]int64{quota.Turns: 4, quota.Tokens: 21_000, quota.USD: 40_000} {
				list = append(list, bot.Charge{Key: day + scope + unit, Scope: scope, Unit: unit, Day: day, N: share * amount * int64(1+(n*7)%5)})
			}
		}
	}
	w.do(&bot.Change{Charges: list})
}

func (w *world) do(change *bot.Change) *bot.Applied {
	w.t.Helper()
	applied, err := w.store.Apply(w.t.Context(), change)
	if err != nil {
		w.t.Fatal(err)
	}
	return applied
}

var linkPattern = regexp.MustCompile(`#([A-Z0-9]{20,})`)

// link asks the bot for a link, in the name of an admin, and returns its code.
func (o *office) link(caller string) string {
	o.t.Helper()
	e, err := o.page.Command(o.t.Context(), &turn.Call{Admin: true, Session: annChat, Message: &bot.Message{
		Place: bot.Place{Channel: "telegram", Bot: "1", Surface: "bot", Chat: "42"}, Caller: caller, Name: "Ann", Command: "admin",
	}})
	if err != nil {
		o.t.Fatal(err)
	}
	text := e.Change.Send[0].Content.Text
	o.do(&e.Change)
	found := linkPattern.FindStringSubmatch(text)
	if found == nil {
		o.t.Fatalf("no link in %q", text)
	}
	return found[1]
}

// signIn redeems a link, and wants this status.
func (o *office) signIn(code string, want int) {
	o.t.Helper()
	var me operator.Whoami
	if status, raw := o.post("signin", map[string]string{"code": code}, &me); status != want {
		o.t.Fatalf("sign in: %d %s, want %d", status, raw, want)
	}
	o.csrf = me.Token
}

func (o *office) request(method, path string, body any, header map[string]string, into any) (int, []byte) {
	o.t.Helper()
	var r io.Reader
	if body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			o.t.Fatal(err)
		}
		r = bytes.NewReader(raw)
	}
	req, err := http.NewRequestWithContext(o.t.Context(), method, o.url+path, r)
	if err != nil {
		o.t.Fatal(err)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	for k, v := range header {
		if k == "Host" {
			req.Host = v
			continue
		}
		req.Header.Set(k, v)
	}
	resp, err := o.own.Do(req)
	if err != nil {
		o.t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		o.t.Fatal(err)
	}
	if into != nil && resp.StatusCode == http.StatusOK {
		if err := json.Unmarshal(raw, into); err != nil {
			o.t.Fatalf("%s: %v: %s", path, err, raw)
		}
	}
	return resp.StatusCode, raw
}

func (o *office) get(path string, into any) (int, []byte) {
	o.t.Helper()
	return o.request(http.MethodGet, "/admin/api/"+path, nil, nil, into)
}

func (o *office) post(path string, body, into any) (int, []byte) {
	o.t.Helper()
	return o.request(http.MethodPost, "/admin/api/"+path, body, map[string]string{"X-Zephbot-Token": o.csrf}, into)
}
