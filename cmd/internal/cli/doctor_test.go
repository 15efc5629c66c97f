package cli_test

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/zephbot/zephbot/bot/telegram/telegramtest"
	"github.com/zephbot/zephbot/cmd/internal/cli"
	"github.com/zephbot/zephbot/persistence"
	"github.com/zephbot/zephbot/tools/mcp/mcptest"
)

const vendorKey = "sk-planted-secret-of-the-vendor"

// clinic is a machine that doctor examines: a Telegram, a vendor of models, and a configuration.
type clinic struct {
	*world
	tg  *telegramtest.Server
	api string
	llm *vendor
}

func newClinic(t *testing.T, o telegramtest.Options) *clinic {
	t.Helper()
	c := &clinic{world: here(t), tg: telegramtest.New(o), llm: newVendor(t, vendorKey, "gpt-good", "text-embed", "hear-1")}
	t.Cleanup(c.tg.Close)
	var err error
	if c.api, err = c.tg.Start(); err != nil {
		t.Fatal(err)
	}
	c.tg.AddUser(telegramtest.User{ID: 1001, FirstName: "Ann"})
	c.tg.AddPrivate(1001)
	return c
}

// waits leaves a message for the bot, so that a poll ends at once.
func (c *clinic) waits() { c.tg.Say(1001, 1001, telegramtest.Message{Text: "hello"}) }

// write writes the configuration: [telegram] with token and address, what is in it too, the vendor's model unless rest
// has providers, and rest.
func (c *clinic) write(t *testing.T, telegram, rest string) {
	t.Helper()
	text := "[telegram]\ntoken = \"" + c.tg.Token() + "\"\napi_url = \"" + c.api + "\"\nadmins = [1001]\n" + telegram + "\n"
	if !strings.Contains(rest, "[[llm.providers]]") {
		text += c.llm.provider("main", "gpt-good", vendorKey)
	}
	if err := os.WriteFile(filepath.Join(c.dir, "zephbot.toml"), []byte(text+rest), 0o600); err != nil {
		t.Fatal(err)
	}
}

// rows runs doctor and returns its rows by check, each as "status text → cure", and its exit code.
func (c *clinic) rows(t *testing.T, args ...string) (map[string]string, int) {
	t.Helper()
	code := c.run(t, append([]string{"doctor", "--json"}, args...)...)
	var list []struct{ Check, Status, Text, Cure string }
	if err := json.Unmarshal(c.out.Bytes(), &list); err != nil {
		t.Fatalf("exit %d: %v\n%s%s", code, err, c.out.String(), c.err.String())
	}
	rows := map[string]string{}
	failed := false
	for _, r := range list {
		if (r.Cure == "") != (r.Status == "ok") {
			t.Errorf("a cure goes with what is not ok: %+v", r)
		}
		failed = failed || r.Status == "fail"
		if was := rows[r.Check]; was != "" {
			was += "\n"
			rows[r.Check] = was + r.Status + " " + r.Text + " → " + r.Cure
			continue
		}
		rows[r.Check] = r.Status + " " + r.Text + " → " + r.Cure
	}
	if want := map[bool]int{true: cli.Failed, false: cli.Fine}[failed]; code != want || c.err.Len() > 0 {
		t.Errorf("exit %d, want %d: %s", code, want, c.err.String())
	}
	return rows, code
}

// files lists what there is below a directory.
func files(t *testing.T, dir string) []string {
	t.Helper()
	var list []string
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		list = append(list, path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// TestDoctorWell: where all is well, every row says so, nothing is created, no update is fetched, and each provider is
// asked once.
func TestDoctorWell(t *testing.T) {
	t.Parallel()
	c := newClinic(t, telegramtest.Options{PrivacyOff: true})
	c.write(t, "", "[llm]\nfallback = [\"other\"]\nembedding = \"other\"\n"+c.llm.provider("main", "gpt-good", vendorKey)+
		c.llm.provider("other", "gpt-good", vendorKey, "embedding_model = \"text-embed\"", "transcription_model = \"hear-1\"")+
		"[mcp]\nallowed_commands = [\"kindserver\"]\n"+kind(t, "good", mcptest.Plain, "trust_level = \"trusted\"")+"[metrics]\nlisten = \"127.0.0.1:0\"\n")
	c.waits()
	before := files(t, c.dir)
	rows, code := c.rows(t)
	if code != cli.Fine {
		t.Errorf("exit %d: %v", code, rows)
	}
	for check, begin := range map[string]string{
		"config": "ok zephbot.toml has no mistakes", "data_dir": "ok ", "service": "ok nothing runs", "database": "ok SQLite: ", "redis": "ok none",
		"telegram": "ok the token belongs to @zephbot", "updates": "ok nobody else polls, 1 wait", "model main": "ok gpt-good answers",
		"model other": "ok gpt-good answers", "embedding": "ok other offers text-embed", "transcription": "ok other offers hear-1", "mcp good": "ok connected over stdio, 1 tools",
		"programs": "ok ", "audit": "ok ", "workspaces": "ok ", "metrics": "ok 127.0.0.1:0 is free", "time zones": "ok ",
	} {
		if !strings.HasPrefix(rows[check], begin) {
			t.Errorf("%s is %q, want %q…", check, rows[check], begin)
		}
	}
	if after := files(t, c.dir); !slices.Equal(before, after) {
		t.Errorf("it creates files: %v", after)
	}
	if c.tg.PendingUpdates() != 1 {
		t.Error("the message is gone")
	}
	if n := c.llm.conversations(); n != 2 {
		t.Errorf("the models were asked %d times", n)
	}
	for _, call := range c.tg.Calls() {
		if !slices.Contains([]string{"getMe", "getWebhookInfo", "getUpdates"}, call.Method) {
			t.Errorf("it calls %s", call.Method)
		}
	}
}

// TestDoctorModel: --model gives each provider a turn with all tools, and shows what its server refuses and what that
// cost, without secrets.
func TestDoctorModel(t *testing.T) {
	t.Parallel()
	c := newClinic(t, telegramtest.Options{PrivacyOff: true})
	c.llm.minds = "read"
	deaf := newVendor(t, "another", "gpt-good")
	c.write(t, "", c.llm.provider("main", "gpt-good", vendorKey)+deaf.provider("other", "gpt-good", vendorKey))
	c.waits()
	rows, code := c.rows(t, "--model")
	if code == cli.Fine {
		t.Errorf("exit %d: %v", code, rows)
	}
	if row := rows["turn main"]; !strings.HasPrefix(row, "warn gpt-good answers with ") || !strings.Contains(row, "1 requests were refused: Invalid schema for function 'read'") ||
		!strings.Contains(row, "set aside read") || !strings.Contains(row, "at a price that nobody knows") || strings.Contains(row, vendorKey) {
		t.Errorf("turn main is %q", row)
	}
	if row := rows["turn other"]; !strings.HasPrefix(row, "fail ") {
		t.Errorf("turn other is %q", row)
	}
}

// TestDoctorIll: each failure has its row, its sentence and its cure.
func TestDoctorIll(t *testing.T) {
	t.Parallel()
	for name, one := range map[string]struct {
		options  telegramtest.Options
		telegram string
		rest     func(c *clinic) string
		prepare  func(t *testing.T, c *clinic)
		check    string
		want     []string // parts of the row
		all      bool     // the other rows may fail too
	}{
		"wrong token": {
			prepare: func(t *testing.T, c *clinic) {
				c.env = append(c.env, "ZEPH_TELEGRAM_TOKEN=123456:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA")
			},
			check: "telegram", want: []string{"fail ", "does not accept the token → take it from @BotFather"},
		},
		"telegram away": {
			prepare: func(_ *testing.T, c *clinic) { c.env = append(c.env, "ZEPH_TELEGRAM_API_URL=http://127.0.0.1:1") },
			check:   "telegram", want: []string{"fail http://127.0.0.1:1 cannot be reached: dial tcp 127.0.0.1:1: connect: connection refused →"},
		},
		"another poller": {prepare: polled, check: "updates", want: []string{"fail another program polls with this token (409)", "make a second bot"}},
		"webhook of another": {
			prepare: func(t *testing.T, c *clinic) {
				c.call(t, "setWebhook", `{"url":"https://other.example.com/secret-path"}`)
			},
			check: "updates", want: []string{"warn a webhook is set at other.example.com, and updates are to be polled"},
		},
		"webhook that is not registered": {
			telegram: "webhook_url = \"https://bot.example.com/path\"\nwebhook_listen = \"127.0.0.1:0\"", check: "updates", want: []string{"warn the webhook is not registered yet → start the service"},
		},
		"talk of groups": {
			telegram: "[groups]\ncontext = true", check: "telegram groups", want: []string{"warn the talk of groups may be kept (groups.context), but privacy mode is on", "/setprivacy"},
		},
		"privacy mode": {
			telegram: "allowed_chats = [-100]\n[telegram.groups]\ntrigger = \"all\"", check: "telegram groups", want: []string{"warn ", "privacy mode is on", "/setprivacy"},
		},
		"wrong key": {
			rest: func(c *clinic) string { return c.llm.provider("main", "gpt-good", "sk-another-secret-key") }, check: "model main",
			want: []string{"fail ", "does not accept the key", "correct llm.providers[0].api_key (zephbot.toml:", "ZEPH_LLM_PROVIDERS_MAIN_API_KEY"},
		},
		"nobody knows whose key": {
			rest: func(*clinic) string {
				return "[[llm.providers]]\nname = \"main\"\npreset = \"gemni\"\nmodel = \"m\"\napi_key = \"" + vendorKey + "\"\n"
			}, check: "model main", all: true,
			want: []string{"warn is not asked: the configuration does not say whose server it is → see the row config"},
		},
		"a wrong key of several": {
			rest: func(c *clinic) string {
				return strings.Replace(c.llm.provider("main", "gpt-good", vendorKey), "api_key = \""+vendorKey+"\"", "api_keys = [\"sk-another-secret-key\", \""+vendorKey+"\"]", 1)
			}, check: "model main",
			want: []string{"warn key 1 of 2: ", "does not accept the key", "correct llm.providers[0].api_keys (zephbot.toml:"},
		},
		"no credit": {
			prepare: func(_ *testing.T, c *clinic) { c.llm.broke = true }, check: "model main", want: []string{"fail ", "no credit", "add credit at the vendor"},
		},
		"busy": {
			prepare: func(_ *testing.T, c *clinic) { c.llm.busy = true }, check: "model main", want: []string{"warn ", "asked too often"},
		},
		"unknown model": {
			rest: func(c *clinic) string { return c.llm.provider("main", "gpt-god", vendorKey) }, check: "model main",
			want: []string{"fail ", "has no model gpt-god; did you mean gpt-good? (it has gpt-good, hear-1, text-embed) → correct llm.providers[0].model"},
		},
		"a model that nothing uses": {
			rest: func(c *clinic) string {
				return c.llm.provider("main", "gpt-good", vendorKey) + c.llm.provider("idle", "gone", vendorKey)
			}, check: "model idle",
			want: []string{"warn ", "has no model gone"},
		},
		"address that is no API": {
			rest: func(c *clinic) string {
				return strings.Replace(c.llm.provider("main", "gpt-good", vendorKey), "/v1\"", "/v9\"", 1)
			},
			check: "model main", want: []string{"fail ", "is no such API (404)"},
		},
		"unknown embedding model": {
			rest: func(c *clinic) string {
				return "[llm]\nembedding = \"main\"\n" + c.llm.provider("main", "gpt-good", vendorKey, "embedding_model = \"text-embd\"")
			},
			check: "embedding", want: []string{"fail main does not offer text-embd; did you mean text-embed?"},
		},
		"dead redis": {
			rest: func(*clinic) string { return "[redis]\nurl = \"redis://:planted-password@127.0.0.1:1\"\n" }, check: "redis", want: []string{"fail the server does not answer", "check redis.url"},
		},
		"dead postgres": {
			rest:  func(*clinic) string { return "[database]\nurl = \"postgres://u:planted-password@127.0.0.1:1/x\"\n" },
			check: "database", want: []string{"fail ", "cannot be reached", "check database.url"},
		},
		"dead qdrant": {
			rest: func(*clinic) string { return "[vector]\nbackend = \"qdrant\"\nurl = \"http://127.0.0.1:1\"\n" }, check: "qdrant", want: []string{"fail ", "cannot be reached", "vector.url"},
		},
		"a server that dies": {
			rest: func(*clinic) string {
				return "[mcp]\nallowed_commands = [\"false\"]\nmax_connect_attempts = 1\n[[mcp.servers]]\nid = \"bad\"\ncommand = \"false\"\n"
			},
			check: "mcp bad", want: []string{"fail ", "zephbot mcp test bad"},
		},
		"data_dir below a file": {
			prepare: func(t *testing.T, c *clinic) {
				c.env = []string{"ZEPH_DATA_DIR=" + filepath.Join(c.dir, "zephbot.toml", "data")}
			},
			check: "data_dir", want: []string{"fail ", "not a directory", "set data_dir to another place"}, all: true,
		},
		"data_dir for everybody": {
			prepare: func(t *testing.T, c *clinic) {
				dir := t.TempDir()
				if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // that is what is tested
					t.Fatal(err)
				}
				c.env = []string{"ZEPH_DATA_DIR=" + dir}
			},
			check: "data_dir", want: []string{"warn ", "can be read by other accounts", "chmod 700"},
		},
		"a port that is taken": {
			rest: func(c *clinic) string {
				return "[metrics]\nlisten = \"" + strings.TrimPrefix(c.api, "http://") + "\"\n"
			}, check: "metrics", want: []string{"fail ", "cannot be listened on", "metrics.listen"},
		},
		"metrics for everybody": {rest: func(*clinic) string { return "[metrics]\nlisten = \":0\"\n" }, check: "metrics", want: []string{"warn metrics.listen is :0"}},
		"no collector": {rest: func(*clinic) string {
			return "[tracing]\nendpoint = \"http://127.0.0.1:1\"\nheaders = { key = \"planted-secret\" }\n"
		}, check: "tracing", want: []string{"warn the collector at 127.0.0.1:1 cannot be reached"}},
		"sandbox off": {rest: func(*clinic) string { return "[tools.shell]\nsandbox = \"off\"\n" }, check: "sandbox", want: []string{"warn it is off"}},
		"audit off":   {rest: func(*clinic) string { return "[audit]\nenabled = false\n" }, check: "audit", want: []string{"warn it is off"}},
		"audit broken": {
			prepare: func(t *testing.T, c *clinic) {
				dir := strings.TrimPrefix(c.env[0], "ZEPH_DATA_DIR=")
				if err := os.MkdirAll(dir, 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(dir, "audit.jsonl"), []byte("{\"tool\":\"bash\",\"hash\":\"00\"}\n"), 0o600); err != nil {
					t.Fatal(err)
				}
			},
			check: "audit", want: []string{"fail ", "its chain is broken", "zephbot audit verify"},
		},
		"skills away": {rest: func(*clinic) string { return "[skills]\npaths = [\".\"]\n" }, check: "skills", want: []string{"warn there is no skill"}, all: true},
		"mistakes": {
			rest: func(*clinic) string { return "[agent]\nconcurency = 3\n" }, check: "config", want: []string{"fail zephbot.toml:", "agent.concurency: unknown key → did you mean agent.concurrency?"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newClinic(t, one.options)
			if one.rest == nil {
				one.rest = func(*clinic) string { return "" }
			}
			c.write(t, one.telegram, one.rest(c))
			if one.check != "updates" {
				c.waits()
			}
			if one.prepare != nil {
				one.prepare(t, c)
			}
			rows, _ := c.rows(t)
			for _, part := range one.want {
				if !strings.Contains(rows[one.check], part) {
					t.Errorf("%s is %q, want %q", one.check, rows[one.check], part)
				}
			}
			for check, row := range rows {
				if check != one.check && strings.Contains(row, "fail ") && !one.all {
					t.Errorf("%s fails too: %s", check, row)
				}
			}
			for _, secret := range []string{"planted", "another-secret", "secret-path", "AAAAAAAA", "token-that-opens"} {
				if strings.Contains(c.out.String(), secret) {
					t.Errorf("it shows %q:\n%s", secret, c.out.String())
				}
			}
		})
	}
}

// TestDoctorWithoutTemporaryDirectory: a directory for temporary files that cannot be written is named, with what helps.
//
//nolint:paralleltest // it changes the environment of the process
func TestDoctorWithoutTemporaryDirectory(t *testing.T) {
	c := newClinic(t, telegramtest.Options{})
	c.write(t, "", "")
	c.waits()
	gone := filepath.Join(c.dir, "gone")
	t.Setenv("TMPDIR", gone)
	rows, _ := c.rows(t)
	want := " → let this account write in " + gone + ", or set TMPDIR to another directory"
	if row := rows["config"]; !strings.HasPrefix(row, "fail ") || !strings.HasSuffix(row, want) {
		t.Errorf("config is %q, want %q", row, want)
	}
}

// call makes a request to Telegram as another program with the token.
func (c *clinic) call(t *testing.T, method, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, c.api+"/bot"+c.tg.Token()+"/"+method, bytes.NewBufferString(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		if t.Context().Err() == nil {
			t.Error(err)
		}
		return
	}
	_ = resp.Body.Close() // it is not read
}

// polled starts another program that polls.
func polled(t *testing.T, c *clinic) {
	var polling sync.WaitGroup
	ended := make(chan struct{})
	polling.Go(func() {
		for {
			select {
			case <-ended:
				return
			default:
				c.call(t, "getUpdates", `{"timeout":1}`)
			}
		}
	})
	t.Cleanup(func() {
		close(ended)
		polling.Wait()
	})
	if err := c.tg.WaitFor(t.Context(), c.tg.Polling); err != nil {
		t.Fatal(err)
	}
}

// TestDoctorBesideTheService: a running service is named and not disturbed: nothing polls, and nothing listens.
func TestDoctorBesideTheService(t *testing.T) {
	t.Parallel()
	c := newClinic(t, telegramtest.Options{})
	c.write(t, "", "[metrics]\nlisten = \""+strings.TrimPrefix(c.api, "http://")+"\"\n")
	dir := strings.TrimPrefix(c.env[0], "ZEPH_DATA_DIR=")
	release, err := persistence.Lock(dir, "lock", "serve")
	if err != nil {
		t.Fatal(err)
	}
	rows, code := c.rows(t)
	for check, part := range map[string]string{"service": "ok it runs (process ", "updates": "ok the running service polls", "metrics": "belongs to the running service"} {
		if code != cli.Fine || !strings.Contains(rows[check], part) {
			t.Errorf("exit %d, %s is %q, want %q", code, check, rows[check], part)
		}
	}
	if polls := c.tg.CallsOf("getUpdates"); len(polls) > 0 {
		t.Error("it polls")
	}
	if _, err := persistence.Lock(dir, "lock", "serve"); err == nil {
		t.Error("the lock is lost")
	}
	release()
	if rows, _ := c.rows(t, "--offline"); !strings.HasPrefix(rows["service"], "ok nothing runs") {
		t.Error(rows["service"])
	}
}

// TestDoctorText: what a person reads, with a file that cannot be read, offline.
func TestDoctorText(t *testing.T) {
	t.Parallel()
	w := here(t)
	if err := os.WriteFile(filepath.Join(w.dir, "zephbot.toml"), []byte("[telegram]\ntoken = \"planted-secret\nx\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code := w.run(t, "doctor", "--offline"); code != cli.Failed {
		t.Errorf("exit %d: %s", code, w.err.String())
	}
	lines := strings.Split(strings.TrimSpace(w.out.String()), "\n")
	for i, begin := range []string{
		"fail  config      zephbot.toml:2: not valid TOML at column ", "warn  config      everything below is about the environment and the defaults only, because the file cannot be read → correct it",
		"ok    data_dir    ", "ok    service     nothing runs in ", "ok    database    SQLite: ", "ok    redis       none: counters are kept in the process",
		"warn  model       none is configured: the simulator answers with the built-in offline model → zephbot setup, or add [[llm.providers]]",
	} {
		if i >= len(lines) || !strings.HasPrefix(lines[i], begin) {
			t.Errorf("line %d, want %q…:\n%s", i, begin, w.out.String())
		}
	}
	if last := lines[len(lines)-1]; !strings.HasSuffix(last, ", 1 failed") {
		t.Error(last)
	}
	if strings.Contains(w.out.String(), "planted") || strings.Contains(w.out.String(), "telegram ") {
		t.Errorf("a secret, or the network:\n%s", w.out.String())
	}
	if code := w.run(t, "doctor", "telegram"); code != cli.Usage || !strings.Contains(w.err.String(), "usage: zephbot doctor") {
		t.Errorf("exit %d: %s", code, w.err.String())
	}
	if code := w.run(t, "docter"); code != cli.Usage || !strings.Contains(w.err.String(), "did you mean doctor?") {
		t.Errorf("exit %d: %s", code, w.err.String())
	}
}
