package app_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/wire"
	"github.com/zephbot/zephbot/cmd/internal/app"
	"github.com/zephbot/zephbot/cmd/internal/check"
	"github.com/zephbot/zephbot/cmd/internal/config"
	"github.com/zephbot/zephbot/cmd/internal/doctor"
	"github.com/zephbot/zephbot/cmd/internal/tracing"
	"github.com/zephbot/zephbot/cmd/internal/tracing/tracetest"
	"github.com/zephbot/zephbot/cmd/internal/upkeep"
	"github.com/zephbot/zephbot/tools/mcp/mcptest"
)

// journalled is a log that a test reads while it is written.
type journalled struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

// Write implements io.Writer.
func (j *journalled) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.buf.Write(p)
}

func (j *journalled) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.buf.String()
}

// observed is a service that everything watches, after a conversation with approval, a command and a server's tool.
type observed struct {
	*wired
	planted
	log       *journalled
	collector *tracetest.Collector
	http      string
	turn      string
	mu        sync.Mutex
	parents   []string // of requests to the server; guarded by mu
}

// plant is everything that a service of these tests is told in confidence.
func plant() planted {
	return planted{
		credentials: map[string]string{
			"key of the provider": "sk-canary-provider-7713", "webhook secret": "canary-hook-7714", "password of Redis": "canary-redis-7715",
			"header of the MCP server": "canary-mcp-header-7716", "header of the collector": "canary-collector-7717",
			"variable of an MCP server": "canary-variable-7718", "key of the web search": "canary-search-7719",
		},
		contents: map[string]string{
			"prompt of the person": "canary-prompt-8801", "output of a command": "canary-output-8802", "argument of a tool": "canary-argument-8803",
			"answer of the model": "canary-answer-8804", "prompt of the operator": "canary-operator-8805", "result of a server": "canary-result-8806",
		},
	}
}

// watch runs a service with everything that observes it, and has a conversation on it.
func watch(t *testing.T) *observed {
	t.Helper()
	o := &observed{planted: plant(), log: &journalled{}, collector: &tracetest.Collector{}}
	c, s := o.credentials, o.contents
	collector := httptest.NewServer(o.collector)
	t.Cleanup(collector.Close)
	handler := mcptest.Options{Behaviour: mcptest.Plain}.Handler()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		o.mu.Lock()
		if parent := r.Header.Get("Traceparent"); parent != "" {
			o.parents = append(o.parents, parent)
		}
		o.mu.Unlock()
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	extra := fmt.Sprintf(`[agent]
system_prompt = %q
[metrics]
listen = "127.0.0.1:0"
pprof = true
[tracing]
endpoint = %q
headers = { Authorization = "Bearer %s" }
[redis]
url = "redis://zeph:%s@127.0.0.1:1"
[quotas]
on_redis_down = "allow"
[web_search]
api_key = %q
[tools.shell]
sandbox = "off"
[[mcp.servers]]
id = "kind"
url = %q
trust_level = "trusted"
headers = { X-Api-Key = %q }
[[mcp.servers]]
id = "gone"
url = "http://127.0.0.1:1/mcp"
trust_level = "trusted"
headers = { X-Api-Key = %q }
`, "Be kind. "+s["prompt of the operator"], collector.URL, c["header of the collector"], c["password of Redis"], c["key of the web search"],
		server.URL+"/mcp", c["header of the MCP server"], c["variable of an MCP server"])
	echo := wire.NamesOf(&llm.Request{Tools: []llm.Tool{{Name: "kind:echo"}}}).Encode("kind:echo")
	o.wired = wireTo(t, zerolog.New(o.log).Level(zerolog.TraceLevel), time.Date(2026, 5, 4, 0, 0, 0, 0, time.UTC),
		fmt.Sprintf("api_key = %q", c["key of the provider"]), extra,
		called("a", "bash", `{"command":"printf canary-%s output-8802; # `+s["argument of a tool"]+`"}`),
		called("b", echo, `{"text":"`+s["result of a server"]+`"}`),
		spoken("It says "+s["answer of the model"]),
	)
	o.http = <-o.opened
	c["token"] = o.fake.Token()
	o.say("run it: " + s["prompt of the person"])
	o.approve(o.await("canary-argument"))
	o.approve(o.await("echo"))
	o.await(s["answer of the model"])
	o.turn = o.named()
	o.say("the model has nothing more to say: " + s["prompt of the person"])
	o.await("")
	return o
}

// named returns the turn that the log names.
func (o *observed) named() string {
	o.t.Helper()
	found := regexp.MustCompile(`"turn":"(telegram-[0-9-]+)"`).FindStringSubmatch(o.log.String())
	if found == nil {
		o.t.Fatalf("the log names no turn:\n%s", o.log)
	}
	return found[1]
}

// get reads what the service serves at a path.
func (o *observed) get(path string) string {
	o.t.Helper()
	req, err := http.NewRequestWithContext(o.t.Context(), http.MethodGet, "http://"+o.http+path, nil)
	if err != nil {
		o.t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		o.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		o.t.Fatal(err)
	}
	return string(body)
}

// until reads the metrics until they hold a text.
func (o *observed) until(text string) string {
	o.t.Helper()
	ctx, cancel := context.WithTimeout(o.t.Context(), 90*time.Second)
	defer cancel()
	for {
		said := o.get("/metrics")
		if strings.Contains(said, text) {
			return said
		}
		select {
		case <-ctx.Done():
			o.t.Fatalf("no %s:\n%s", text, said)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// TestObserved runs one service and looks at everything that an operator sees of it: the metrics of the contract, one
// trace of the turn, and no secret anywhere.
func TestObserved(t *testing.T) {
	t.Parallel()
	o := watch(t)
	said := o.until(`zephbot_turn_duration_seconds_count{phase="deliver"} 2`)
	o.measured(said)
	o.search(t, "/metrics", said, false)
	found := check.Check(app.Options{Config: o.cfg, WorkDir: o.dir}.Checks(), check.Use{Telegram: true, Model: true})
	o.search(t, "config check", fmt.Sprintln("findings:", found), false)
	for _, path := range []string{"/healthz", "/readyz", "/debug/pprof/", "/debug/pprof/goroutine?debug=2", "/debug/pprof/heap?debug=1", "/other"} {
		o.search(t, path, o.get(path), false)
	}
	o.dumped()
	rows, err := json.Marshal(doctor.Run(t.Context(), doctor.Options{
		Options: app.Options{Config: o.cfg, Version: "test", WorkDir: o.dir}, Problems: found.Problems, Warnings: found.Warnings, Each: time.Minute,
	}))
	if err != nil {
		t.Fatal(err)
	}
	o.search(t, "doctor", string(rows), false)
	o.end()
	o.traced()
	o.search(t, "the log", o.log.String(), false)
	var printed strings.Builder
	if err := config.Print(&printed, o.cfg, false); err != nil {
		t.Fatal(err)
	}
	o.search(t, "config print", printed.String(), true)
	o.serve() // the test ends it once more
}

// measured checks that every metric is there that the contract names, with its labels.
func (o *observed) measured(said string) {
	o.t.Helper()
	for _, want := range []string{
		`updates_total{kind="text"}`, `turns_total{outcome="answered"}`, `turns_total{outcome="parked"}`, `turns_ended_total{reason="model"} 1`, `llm_requests_total{provider="main",result="invalid"} 2`,
		`turn_duration_seconds_bucket{phase="queue",le=`, `turn_duration_seconds_bucket{phase="context",le=`, `turn_duration_seconds_bucket{phase="model",le=`,
		`turn_duration_seconds_bucket{phase="tools",le=`, `turn_duration_seconds_bucket{phase="deliver",le=`,
		`tool_calls_total{category="ok",tool="bash"} 1`, `tool_calls_total{category="ok",tool="kind:echo"} 1`, `tool_duration_seconds_count{tool="bash"} 1`,
		`approvals_total{decision="approved"} 2`, `llm_requests_total{provider="main",result="ok"} 3`,
		`llm_tokens_total{kind="input",provider="main"}`, `llm_tokens_total{kind="output",provider="main"}`, `llm_cost_usd_total{provider="main"}`,
		`telegram_requests_total{method="sendMessage",status="200"}`, `telegram_throttled_seconds_total`,
		`filter_chars_total{stage="raw"}`, `filter_chars_total{stage="filtered"}`, `filter_confidence_total{level=`, `cache_requests_total{result=`,
		`mcp_servers{state="connected"} 1`, `sessions_active`, `queue_depth`,
		`ready 1`, `build_info{version="test"} 1`, `turns_open{state="parked"} 0`, `inbox_waiting`, `outbox_rows{state="open"}`, `dead_letters 0`, `audit_due 0`, `audit_failures_total 0`,
		`database_bytes{part="data"}`, `database_bytes{part="wal"}`, `blob_bytes 0`, `disk_free_bytes`, `database_commit_seconds_count`, `redis_up 0`, `redis_requests_total{result="error"}`,
	} {
		if !strings.Contains(said, "\nzephbot_"+want) {
			o.t.Errorf("no metric zephbot_%s", want)
		}
	}
	if o.t.Failed() {
		o.t.Log(said)
	}
	o.documented(said)
}

// documented compares the metrics with docs/observability.md.
func (o *observed) documented(said string) {
	o.t.Helper()
	raw, err := os.ReadFile("../../../docs/observability.md")
	if err != nil {
		o.t.Fatal(err)
	}
	known := map[string]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| `(zephbot_[a-z_]+)").FindAllStringSubmatch(string(raw), -1) {
		known[row[1]] = true
	}
	for _, line := range regexp.MustCompile(`(?m)^# TYPE (zephbot_[a-z_]+) `).FindAllStringSubmatch(said, -1) {
		if !known[line[1]] {
			o.t.Errorf("docs/observability.md has no row for %s", line[1])
		}
		delete(known, line[1])
	}
	for _, other := range []string{ // what this service had no reason to count
		"zephbot_database_connections", "zephbot_database_connection_waits_total", "zephbot_quota_denied_total", "zephbot_tool_retries_total",
		"zephbot_tool_anomalies_total", "zephbot_utility_decisions_total", "zephbot_trace_spans_total",
	} {
		delete(known, other)
	}
	for name := range known {
		o.t.Errorf("docs/observability.md has %s, which the program does not have", name)
	}
}

// dumped checks what debug dump says.
func (o *observed) dumped() {
	o.t.Helper()
	opts := app.Options{Config: o.cfg, Version: "test", Log: zerolog.Nop(), WorkDir: o.dir}
	for _, texts := range []bool{false, true} {
		found, err := upkeep.Dump(o.t.Context(), opts, o.turn, texts)
		if err != nil {
			o.t.Fatal(err)
		}
		raw, err := json.Marshal(found)
		if err != nil {
			o.t.Fatal(err)
		}
		o.search(o.t, fmt.Sprintf("debug dump (texts %v)", texts), string(raw), texts)
		settings := strings.Join(found.Settings, "\n")
		if found.Schema == 0 || found.Sandbox == "" || len(found.Entries) < 5 || len(found.Audit) == 0 || !strings.Contains(settings, `sandbox = "off"`) {
			o.t.Errorf("%s", raw)
		}
		if texts != strings.Contains(string(raw), o.contents["answer of the model"]) {
			o.t.Errorf("texts %v: %s", texts, raw)
		}
	}
}

// traced checks the trace of the turn, once the service has ended.
func (o *observed) traced() {
	o.t.Helper()
	id, root := tracing.IDs(o.turn)
	spans := map[string]tracetest.Span{}
	var names []string
	for _, s := range o.collector.Spans() {
		if s.Trace != id.String() {
			continue // of the other turn
		}
		spans[s.ID] = s
		names = append(names, s.Name)
	}
	over := func(s tracetest.Span) string {
		if s.Above == root.String() {
			return "turn"
		}
		return spans[s.Above].Name
	}
	want := map[string]string{ // each with what it is below
		"turn": "", "queue": "turn", "invoke_agent zephbot": "turn", "context": "invoke_agent zephbot", "chat m": "invoke_agent zephbot",
		"execute_tool bash": "invoke_agent zephbot", "execute_tool kind:echo": "invoke_agent zephbot", "audit": "execute_tool ", "gate": "block decode",
		"approval": "turn", "deliver question": "turn", "deliver final": "turn", "telegram sendMessage": "deliver ", "registry": "keep start",
	}
	for _, s := range spans {
		above, known := want[s.Name]
		if !known {
			continue
		}
		ok := false
		for one := range strings.FieldsSeq(above) {
			ok = ok || strings.HasPrefix(over(s), one)
		}
		if above != "" && !ok && !(s.Name == "telegram sendMessage" && over(s) == "turn") {
			o.t.Errorf("%s is below %q, want %q", s.Name, over(s), above)
		}
	}
	for name := range want {
		if !slices.Contains(names, name) {
			o.t.Errorf("no span %s among %v", name, names)
		}
	}
	bodies, headers := o.collector.Raw()
	o.search(o.t, "the traces", string(bodies), false)
	if len(headers) == 0 || headers[0].Get("Authorization") != "Bearer "+o.credentials["header of the collector"] {
		o.t.Errorf("headers of the collector: %v", headers)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if !slices.ContainsFunc(o.parents, func(p string) bool { return strings.HasPrefix(p, "00-"+id.String()) }) {
		o.t.Errorf("the server was told no trace: %v", o.parents)
	}
	if !strings.Contains(o.log.String(), `"trace_id":"`) {
		o.t.Error("no line of the log names a trace")
	}
}

// TestRefusedStartsAreSilent: what makes a start impossible is said without the credentials that it is about.
func TestRefusedStartsAreSilent(t *testing.T) {
	t.Parallel()
	for name, extra := range map[string]string{
		"a database that is away":     "[database]\nurl = \"postgres://zephbot:canary-database-7720@127.0.0.1:1/zephbot?connect_timeout=1\"\n",
		"a database that is none":     "[database]\nurl = \"mysql://zephbot:canary-database-7720@127.0.0.1:1/zephbot\"\n",
		"a Redis of no known kind":    "[redis]\nurl = \"http://zephbot:canary-redis-7715@127.0.0.1:1\"\n",
		"a collector with a password": "[tracing]\nendpoint = \"http://zephbot:canary-collector-7717@127.0.0.1:1\"\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, log := t.TempDir(), &journalled{}
			file := dir + "/zephbot.toml"
			text := "data_dir = \"data\"\n[telegram]\ntoken = \"123456:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\"\napi_url = \"http://127.0.0.1:1\"\n[[llm.providers]]\nname = \"main\"\ntype = \"offline\"\n" + extra
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			cfg, err := config.Load(config.Source{File: file, WorkDir: dir, Home: dir})
			if err == nil {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				err = app.Serve(ctx, app.Options{Config: cfg, Version: "test", Log: zerolog.New(log).Level(zerolog.TraceLevel), WorkDir: dir})
			}
			if err == nil {
				t.Fatal("it starts")
			}
			p := plant()
			p.credentials["password of the database"] = "canary-database-7720"
			p.search(t, "the error and the log", err.Error()+log.String(), false)
		})
	}
}
