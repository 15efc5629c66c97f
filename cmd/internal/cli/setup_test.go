package cli_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zephbot/zephbot/bot/telegram/telegramtest"
	"github.com/zephbot/zephbot/cmd/internal/cli"
)

// screen is what a program has written so far. Its reader waits for what it expects.
type screen struct {
	mu      sync.Mutex
	text    bytes.Buffer
	read    int
	changed chan struct{}
}

func newScreen() *screen { return &screen{changed: make(chan struct{})} }

// Write implements io.Writer.
func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.changed)
	s.changed = make(chan struct{})
	return s.text.Write(p)
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// next returns what follows the last text that was found, up to and with one that matches.
func (s *screen) next(ctx context.Context, want *regexp.Regexp) (string, error) {
	for {
		s.mu.Lock()
		rest, changed := s.text.String()[s.read:], s.changed
		at := want.FindStringIndex(rest)
		if at != nil {
			s.read += at[1]
		}
		s.mu.Unlock()
		if at != nil {
			return rest[:at[1]], nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return rest, fmt.Errorf("%q does not come: %w", want, ctx.Err())
		}
	}
}

// dialogue is a person who is asked by `zephbot setup`.
type dialogue struct {
	*clinic
	t      *testing.T
	screen *screen
	keys   *io.PipeWriter
	press  chan os.Signal
	stop   context.CancelFunc
	code   chan int
}

// begin starts setup with somebody at the terminal.
func begin(t *testing.T, c *clinic, local []string, args ...string) *dialogue {
	t.Helper()
	in, keys := io.Pipe()
	ctx, stop := context.WithCancel(t.Context())
	d := &dialogue{clinic: c, t: t, screen: newScreen(), keys: keys, press: make(chan os.Signal, 1), stop: stop, code: make(chan int, 1)}
	c.env = append(c.env, "ZEPH_TELEGRAM_API_URL="+c.api)
	var running sync.WaitGroup
	running.Go(func() {
		d.code <- cli.Main(ctx, append([]string{"setup"}, args...), cli.Env{
			In: in, Out: d.screen, Err: &locked{w: &c.err}, Environ: c.env, WorkDir: c.dir, Home: c.dir, Executable: os.Args[0], InTerm: true,
			Interrupts: d.press, Local: append([]string{}, local...),
		})
	})
	t.Cleanup(func() {
		stop()
		_ = keys.Close() // nobody types any more
		running.Wait()
	})
	return d
}

// sees waits for a text.
func (d *dialogue) sees(want string) string {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(d.t.Context(), time.Minute)
	defer cancel()
	text, err := d.screen.next(ctx, regexp.MustCompile(want))
	if err != nil {
		d.t.Fatalf("%v; the screen:\n%s\n%s", err, d.screen, d.err.String())
	}
	return text
}

// says waits for a question and answers it.
func (d *dialogue) says(question, answer string) {
	d.t.Helper()
	d.sees(question)
	d.types(answer)
}

// types enters a line.
func (d *dialogue) types(answer string) {
	d.t.Helper()
	if _, err := io.WriteString(d.keys, answer+"\n"); err != nil {
		d.t.Fatal(err)
	}
}

// ends waits for the end, and returns the exit code.
func (d *dialogue) ends() int {
	d.t.Helper()
	select {
	case code := <-d.code:
		return code
	case <-time.After(time.Minute):
		d.t.Fatalf("it does not end; the screen:\n%s", d.screen)
		return -1
	}
}

// redeems waits for the code and sends it to the bot as Ann.
func (d *dialogue) redeems() {
	d.t.Helper()
	text := d.sees(`this message:\n\n/start [A-Z2-7]+\n`)
	d.tg.Say(1001, 1001, telegramtest.Message{Text: strings.TrimSpace(text[strings.LastIndex(text, "/start"):])})
	d.sees(`ok: Ann \(id 1001\) is the admin\.`)
}

// hears waits for a message of the bot.
func (d *dialogue) hears(text string) {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(d.t.Context(), time.Minute)
	defer cancel()
	if err := d.tg.WaitFor(ctx, func() bool {
		for _, call := range d.tg.Calls() {
			if strings.HasPrefix(call.Method, "sendMessage") && strings.Contains(call.Params["text"], text) {
				return true
			}
		}
		return false
	}); err != nil {
		d.t.Fatalf("the bot does not say %q: %v\n%s", text, err, d.err.String())
	}
}

// hides checks that no secret was shown.
func (d *dialogue) hides(secrets ...string) {
	d.t.Helper()
	all := d.screen.String() + d.err.String()
	for _, secret := range secrets {
		if strings.Contains(all, secret) {
			d.t.Errorf("%q is shown:\n%s", secret, all)
		}
	}
}

// TestSetup: a new operator, who makes every mistake once, answers five questions, and then chats with the bot as its
// admin.
func TestSetup(t *testing.T) {
	t.Parallel()
	c := newClinic(t, telegramtest.Options{})
	c.llm.say = "Good morning, Ann."
	c.env = nil
	d := begin(t, c, nil)
	d.says(`Token \(not shown\): `, "hunter2-hunter2")
	d.sees("This is no bot token: .* Please try again")
	d.says(`Token \(not shown\): `, "123456:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA")
	d.sees("Telegram does not accept this token; .* Please try again")
	d.says(`Token \(not shown\): `, " "+c.tg.Token()+" ")
	d.sees("ok: @zephbot answers")
	d.says("Waiting", "ann")
	d.sees("That is no id")
	code := regexp.MustCompile(`/start [A-Z2-7]{16}\n`).FindString(d.screen.String())
	c.tg.Say(1001, 1001, telegramtest.Message{Text: "/start WRONG"})
	d.sees("another code than this one; it makes nobody admin")
	c.tg.Say(1001, 1001, telegramtest.Message{Text: strings.TrimSpace(code)})
	d.sees(`ok: Ann \(id 1001\) is the admin\.`)
	d.hears("You are my admin. A few questions are left at the terminal")
	d.says(`Which one\? \[1\]: `, "99")
	d.says(`type a number from 1 to 18\.\nWhich one\? \[1\]: `, "17")
	d.says("Address of its API", "example.com")
	d.says("That is no address: .*\nAddress of its API", c.llm.URL+"/v1/")
	d.says(`Key of the API; Enter if it needs none \(not shown\): `, "sk-wrong-key-of-ann")
	d.says(`does not accept the key .*\nKey, once more; Enter goes on with this one \(not shown\): `, vendorKey)
	d.says(`It has 3 models: gpt-good, hear-1, text-embed\nModel: `, "gpt-god")
	d.says(`has no model gpt-god; did you mean gpt-good\?\nIt has 3 models: gpt-good, hear-1, text-embed\nModel \[gpt-good\]: `, "")
	d.sees("ok: gpt-good answers")
	d.says("or the path of yours: ", "zephbot.go")
	d.says(`zephbot.go does not exist. Make it\? \[Y/n\]: `, "n")
	d.says("or the path of yours: ", "/")
	d.says(`everything in /. Is that what you want\? \[y/N\]: `, "perhaps")
	d.says(`Please answer y or n\.\n.*\[y/N\]: `, "")
	d.says("or the path of yours: ", "project")
	d.says(`project does not exist. Make it\? \[Y/n\]: `, "")
	d.sees(`The network is open to them unless you set tools\.shell\.allow_network = false\.`)
	asked := d.sees(`\[y/N\]: `)
	if _, question, ok := strings.Cut(asked, "\n\n"); !ok || strings.Contains(asked, "kernel sandbox:") || !strings.Contains(question, "refuse") {
		t.Errorf("the last question is not set apart, or speaks of the parts of a kernel: %q", asked)
	}
	d.types("")
	d.sees(`Written: .*/zephbot\.toml \(only this account can read it\)\.\nThe bot starts; Ctrl-C ends it\. Later, in this directory: zephbot serve\.`)
	d.sees("Next: write to the bot. In a group: add it there")
	d.hears("You are an admin") // the messages that setup has read, answered by the service with one greeting
	c.tg.Say(1001, 1001, telegramtest.Message{Text: "good morning"})
	d.hears("Good morning, Ann.")
	within, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := c.tg.WaitFor(within, func() bool { return c.tg.About("short_description", "de") != "" }); err != nil {
		t.Errorf("the profile of the bot is empty: %v", err)
	}
	greetings := 0
	for _, call := range c.tg.Calls() {
		if strings.Contains(call.Params["text"], "Hello Ann") {
			greetings++
		}
	}
	if greetings != 1 || strings.Contains(d.err.String(), "names nobody") {
		t.Errorf("%d greetings: %s", greetings, d.err.String())
	}
	d.stop()
	if code := d.ends(); code != cli.Fine {
		t.Errorf("exit %d: %s", code, d.err.String())
	}
	d.hides(c.tg.Token(), vendorKey, "hunter2", "sk-wrong", "AAAAAAA")
	raw, err := os.ReadFile(filepath.Join(c.dir, "zephbot.toml"))
	if err != nil {
		t.Fatal(err)
	}
	want := `# Configuration of zephbot: what differs from the defaults. Every key is explained in
# https://github.com/zephbot/zephbot/blob/main/docs/config.md
# ` + "`zephbot config check` finds mistakes, `zephbot config print`" + ` shows what applies. A restart applies changes.

[telegram]
# From @BotFather. Whoever has it is the bot: /revoke there makes a new one.
token = "` + c.tg.Token() + `"
# Who manages the bot. Admins admit others in the chat: /admit ID.
admins = [1001]

# The model that answers.
[[llm.providers]]
name = "main"
type = "openai"
base_url = "` + c.llm.URL + `/v1"
model = "gpt-good"
api_key = "` + vendorKey + `"

[tools.shell]
# All conversations work in this directory. Without this line each has one of its own, below data_dir.
allowed_paths = ["` + c.dir + `/project"]

[tools.file]
allowed_paths = ["` + c.dir + `/project"]
`
	if string(raw) != want {
		t.Errorf("the file is\n%s\nwant\n%s", raw, want)
	}
	if info, err := os.Stat(filepath.Join(c.dir, "zephbot.toml")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
}

// written lists the files of a directory besides those that the test made.
func written(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return strings.Join(names, " ")
}

// TestSetupLink: a link that setup has shown makes somebody the admin who follows it after setup has gone on without
// them, also with another code at the start of the service, and once.
func TestSetupLink(t *testing.T) {
	t.Parallel()
	c := newClinic(t, telegramtest.Options{})
	c.env = nil
	d := begin(t, c, nil)
	d.says("Token", c.tg.Token())
	text := d.sees(`\?start=[A-Z2-7]+\n`)
	code := strings.TrimSpace(text[strings.LastIndex(text, "=")+1:])
	d.says("Waiting", "")
	d.sees("The link stays good")
	d.says("Which one", "18")
	d.says("or the path of yours: ", "")
	d.says(`\[y/N\]: `, "")
	d.sees("The bot starts")
	kept := filepath.Join(c.dir, "data", "first-admin")
	if raw, err := os.ReadFile(kept); err != nil || strings.Contains(string(raw), code) {
		t.Errorf("the code itself is stored: %s, %v", raw, err)
	}
	c.tg.Say(1001, 1001, telegramtest.Message{Text: "/start " + strings.ToLower(code)})
	d.hears("You are an admin")
	d.stop()
	if code := d.ends(); code != cli.Fine {
		t.Errorf("exit %d: %s", code, d.err.String())
	}
	// The next start finds an admin, and forgets the link.
	d = begin(t, c, nil)
	d.says("zephbot\\.toml exists already", "")
	d.sees("The bot starts")
	c.tg.Say(1001, 1001, telegramtest.Message{Text: "/people"})
	d.hears("By the configuration")
	if _, err := os.Stat(kept); !os.IsNotExist(err) {
		t.Errorf("the code is still there: %v", err)
	}
}

// TestSetupStops: an interrupt, or an input that ends, leaves nothing behind.
func TestSetupStops(t *testing.T) {
	t.Parallel()
	c := newClinic(t, telegramtest.Options{})
	d := begin(t, c, nil)
	d.says("Token", c.tg.Token())
	d.redeems()
	d.says("Which one", "18")
	d.sees("or the path of yours: ")
	d.press <- os.Interrupt
	if code := d.ends(); code != cli.Failed || written(t, c.dir) != "" || !strings.Contains(d.screen.String(), "Interrupted. Nothing was written.") {
		t.Errorf("exit %d, %q is left:\n%s", code, written(t, c.dir), d.screen)
	}
	d.hides(c.tg.Token())
	c = newClinic(t, telegramtest.Options{})
	d = begin(t, c, nil)
	d.sees("Token")
	_ = d.keys.Close()
	if code := d.ends(); code != cli.Failed || written(t, c.dir) != "" || !strings.Contains(d.err.String(), "the input has ended") {
		t.Errorf("exit %d, %q is left: %s", code, written(t, c.dir), d.err.String())
	}
}

// TestSetupLeavesTheAdminForLater: who goes on without becoming the admin is told at the end how to, with the one code
// that the screen shows.
func TestSetupLeavesTheAdminForLater(t *testing.T) {
	t.Parallel()
	c := newClinic(t, telegramtest.Options{})
	d := begin(t, c, nil)
	d.says("Token", c.tg.Token())
	d.says("Waiting", "")
	d.sees("Nobody is admin yet")
	d.says("Which one", "18")
	d.says("or the path of yours: ", "")
	d.says(`\[y/N\]: `, "")
	last := d.sees(`Next: open the link above, or send the bot /start [A-Z2-7]{16}: that makes you its admin\.`)
	code := regexp.MustCompile(`[A-Z2-7]{16}`).FindString(last[strings.Index(last, "Next"):])
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := c.tg.WaitFor(ctx, func() bool { return strings.Contains(d.err.String(), "first_admin") }); err != nil {
		t.Fatal(err)
	}
	for _, other := range regexp.MustCompile(`\b[A-Z2-7]{16}\b`).FindAllString(d.screen.String()+d.err.String(), -1) {
		if other != code {
			t.Errorf("a second code is shown, %s:\n%s%s", other, d.screen, d.err.String())
		}
	}
	c.tg.Say(1001, 1001, telegramtest.Message{Text: "/start " + code})
	d.hears("You are an admin")
	d.stop()
	if code := d.ends(); code != cli.Fine {
		t.Errorf("exit %d: %s", code, d.err.String())
	}
}

// TestSetupObstacles: a webhook of another program is taken away if the person wants that; another poller is named; the
// admin can be left to the service; models on this machine are found.
func TestSetupObstacles(t *testing.T) {
	t.Parallel()
	c := newClinic(t, telegramtest.Options{})
	c.llm.key = ""
	d := begin(t, c, []string{"127.0.0.1:1", strings.TrimPrefix(c.llm.URL, "http://")}, "--no-start", "--sandbox", "required", "--data-dir", "state")
	c.call(t, "setWebhook", `{"url":"https://other.example.com/secret-path"}`)
	d.says("Token", c.tg.Token())
	d.says(`A webhook is set for this bot at other\.example\.com: .*\nTake the webhook away.*\[y/N\]: `, "y")
	d.sees("It is gone")
	c.tg.AddFault(telegramtest.Fault{Method: "getUpdates", Kind: telegramtest.Fault409, Count: 1})
	d.sees(`Another program polls with this token \(409\); .*\. Waiting …\n`)
	if _, err := io.WriteString(d.keys, "\n"); err != nil {
		t.Fatal(err)
	}
	d.sees("Nobody is admin yet. The link stays good")
	d.says(`\n   1  a server on this machine at 127\.0\.0\.1:\d+ \(gpt-good, hear-1, text-embed\)\n   2  OpenAI\n(.*\n)*  19  none for now.*\nWhich one`, "1")
	d.says(`Model \[gpt-good\]: `, "")
	d.says("or the path of yours: ", "")
	d.sees(`Start the bot with: zephbot serve`)
	if code := d.ends(); code != cli.Fine {
		t.Errorf("exit %d: %s", code, d.err.String())
	}
	raw, err := os.ReadFile(filepath.Join(c.dir, "zephbot.toml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"data_dir = \"" + c.dir + "/state\"", "# Nobody is admin yet", "base_url = \"" + c.llm.URL + "/v1\"", "sandbox = \"required\"",
	} {
		if !strings.Contains(string(raw), line) {
			t.Errorf("%q is not in\n%s", line, raw)
		}
	}
	if strings.Contains(string(raw), "api_key") || strings.Contains(string(raw), "allowed_paths") {
		t.Errorf("there is more than was chosen:\n%s", raw)
	}
	d.hides(c.tg.Token(), "secret-path")
	// It is never overwritten: it can be used as it is, or another one is written.
	d = begin(t, c, nil, "--no-start")
	d.says(`zephbot\.toml exists already; it is never overwritten\.\n.*another file: `, "sub/other.toml")
	d.says("Token", c.tg.Token())
	d.says("Waiting", "4711")
	d.says("Which one", "18")
	d.says("or the path of yours: ", "")
	d.says(`\[y/N\]: `, "")
	d.sees(`Start the bot with: zephbot serve --config ".*/sub/other\.toml"`)
	if code := d.ends(); code != cli.Fine {
		t.Errorf("exit %d: %s", code, d.err.String())
	}
	d = begin(t, c, nil, "--no-start")
	d.says(`zephbot\.toml exists already`, "")
	d.sees("It is used as it is. Start the bot with: zephbot serve\n")
	if code := d.ends(); code != cli.Fine {
		t.Errorf("exit %d: %s", code, d.err.String())
	}
	other, err := os.ReadFile(filepath.Join(c.dir, "sub", "other.toml"))
	if err != nil || !strings.Contains(string(other), "admins = [4711]") {
		t.Errorf("%v: %s", err, other)
	}
	if again, err := os.ReadFile(filepath.Join(c.dir, "zephbot.toml")); err != nil || !bytes.Equal(again, raw) {
		t.Error("the first file has changed")
	}
	if left := written(t, filepath.Join(c.dir, "sub")); left != "other.toml" {
		t.Errorf("left: %s", left)
	}
}

// TestSetupWithoutTerminal: all answers can be given by flags and in the environment; what is missing or wrong is one
// sentence, and nothing is written then.
func TestSetupWithoutTerminal(t *testing.T) {
	t.Parallel()
	c := newClinic(t, telegramtest.Options{})
	model := []string{"--provider", "openai", "--base-url", c.llm.URL + "/v1", "--model", "gpt-good", "--key-file", "key"}
	for name, one := range map[string]struct {
		args []string
		env  []string
		code int
		want string // part of stderr
		file string // part of the file
	}{
		"nothing":          {code: cli.Usage, want: "there is no terminal to ask at: give the token with --token-file or ZEPH_TELEGRAM_TOKEN"},
		"token alone":      {args: []string{"--token-file", "token"}, code: cli.Usage, want: "give the model with --provider"},
		"no such file":     {args: []string{"--token-file", "tokn"}, code: cli.Usage, want: "--token-file tokn: no such file"},
		"two lines":        {args: []string{"--token-file", "lines"}, code: cli.Usage, want: "want the secret alone, on one line"},
		"wrong token":      {args: []string{"--token-file", "wrong"}, code: cli.Usage, want: "Telegram does not accept this token"},
		"no token":         {args: []string{"--token-file", "key"}, code: cli.Usage, want: "this is no bot token"},
		"telegram away":    {args: []string{"--token-file", "token"}, env: []string{"ZEPH_TELEGRAM_API_URL=http://127.0.0.1:1"}, code: cli.Failed, want: "see that this machine reaches it: a firewall, HTTPS_PROXY; --unchecked goes on without trying"},
		"unknown provider": {args: []string{"--token-file", "token", "--provider", "opnai"}, code: cli.Usage, want: "litellm; did you mean openai?"},
		"no model":         {args: []string{"--token-file", "token", "--provider", "openai"}, code: cli.Usage, want: "give the name of the model with --model"},
		"bad address":      {args: []string{"--token-file", "token", "--provider", "openai", "--model", "m", "--base-url", "x"}, code: cli.Usage, want: "--base-url: want an address"},
		"wrong key":        {args: append([]string{"--token-file", "token"}, append(model[:len(model)-1:len(model)-1], "wrong")...), code: cli.Usage, want: "does not accept the key"},
		"unknown model":    {args: []string{"--token-file", "token", "--provider", "openai", "--base-url", c.llm.URL + "/v1", "--model", "gpt-god", "--key-file", "key"}, code: cli.Usage, want: "did you mean gpt-good?"},
		"bad sandbox":      {args: append([]string{"--token-file", "token", "--sandbox", "on"}, model...), code: cli.Usage, want: `--sandbox "on": there are auto, required, off`},
		"bad directory":    {args: append([]string{"--token-file", "token", "--workdir", "nowhere"}, model...), code: cli.Usage, want: "--workdir: "},
		"bad admin":        {args: append([]string{"--token-file", "token", "--admin", "-4"}, model...), code: cli.Usage, want: "--admin -4: want the numeric id"},
		"not a number":     {args: []string{"--admin", "ann"}, code: cli.Usage, want: "--admin"},
		"bad path":         {args: append([]string{"--token-file", "token", "--config", "key/zephbot.toml"}, model...), code: cli.Usage, want: "key is a file"},
		"unknown flag":     {args: []string{"--modell", "x"}, code: cli.Usage, want: "did you mean --model?"},
		"an argument":      {args: []string{"now"}, code: cli.Usage, want: "usage: zephbot setup"},
		"all by flags": {
			args: append([]string{"--token-file", "token", "--admin", "7", "--admin", "8", "--workdir", ".", "--sandbox", "auto"}, model...), code: cli.Fine, file: "admins = [7, 8]",
		},
		"all by environment": {
			env: []string{
				"ZEPH_TELEGRAM_TOKEN=" + c.tg.Token(), "ZEPH_LLM_PROVIDERS_MAIN_MODEL=gpt-good", "ZEPH_LLM_PROVIDERS_MAIN_BASE_URL=" + c.llm.URL + "/v1",
				"ZEPH_LLM_PROVIDERS_MAIN_API_KEY=" + vendorKey,
			}, code: cli.Fine, file: "# The token is read from ZEPH_TELEGRAM_TOKEN.\n",
		},
		"the vendor's variable": {
			args: []string{"--unchecked", "--token-file", "token", "--provider", "anthropic", "--model", "m"}, env: []string{"ANTHROPIC_API_KEY=" + vendorKey}, code: cli.Fine,
			file: "type = \"anthropic\"\nmodel = \"m\"\napi_key = \"" + vendorKey + "\"\n",
		},
		"without network": {
			args: []string{"--unchecked", "--token-file", "wrong", "--provider", "ollama", "--model", "m"}, env: []string{"ZEPH_TELEGRAM_API_URL=http://127.0.0.1:1"}, code: cli.Fine,
			file: "type = \"ollama\"\nmodel = \"m\"\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := here(t)
			w.env = append([]string{"ZEPH_TELEGRAM_API_URL=" + c.api}, one.env...)
			for file, text := range map[string]string{
				"token": c.tg.Token() + "\n", "key": vendorKey, "wrong": "123456:planted-AAAAAAAAAAAAAAAAAAAAAAAAAAA", "lines": "a\nb\n",
			} {
				if err := os.WriteFile(filepath.Join(w.dir, file), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			code := w.run(t, append([]string{"setup", "--no-start"}, one.args...)...)
			if code != one.code || !strings.Contains(w.err.String(), one.want) || strings.Count(w.err.String(), "\n") > 1 {
				t.Errorf("exit %d, want %d: %s%s", code, one.code, w.out.String(), w.err.String())
			}
			for _, secret := range []string{c.tg.Token(), vendorKey, "planted"} {
				if strings.Contains(w.out.String()+w.err.String(), secret) {
					t.Errorf("%q is shown", secret)
				}
			}
			raw, err := os.ReadFile(filepath.Join(w.dir, "zephbot.toml"))
			if (err == nil) != (one.code == cli.Fine) || !strings.Contains(string(raw), one.file) {
				t.Errorf("the file: %v\n%s", err, raw)
			}
			if one.code != cli.Fine {
				return
			}
			if code := w.run(t, "config", "check"); code != cli.Fine {
				t.Errorf("config check: exit %d: %s", code, w.err.String())
			}
			if code := w.run(t, "setup", "--no-start"); code != cli.Usage || !strings.Contains(w.err.String(), "zephbot.toml exists already and is not overwritten") {
				t.Errorf("once more: exit %d: %s", code, w.err.String())
			}
		})
	}
}
