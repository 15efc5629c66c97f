package cli_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/tools/txtar"

	"github.com/zephbot/zephbot/bot/telegram/telegramtest"
)

// answersAtOnce is a model that has one answer.
func answersAtOnce(w http.ResponseWriter, r *http.Request) {
	if strings.HasSuffix(r.URL.Path, "/embeddings") {
		http.Error(w, "no embeddings", http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = w.Write([]byte(`data: {"choices":[{"index":0,"delta":{"content":"Here I am."}}]}` + "\n\n" +
		`data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n"))
}

// programsAlone is a directory for PATH: bash, and an npx that downloads nothing and ends.
func programsAlone(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(bash, filepath.Join(dir, "bash")); err != nil {
		t.Fatal(err)
	}
	script := "#!" + bash + "\necho there is no such package >&2; exit 1\n"
	if err := os.WriteFile(filepath.Join(dir, "npx"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestBroughtConfigurations gives each configuration that people bring to `config check`, which says what it has to, and
// to the service, which starts with it and answers a person. Both are processes.
func TestBroughtConfigurations(t *testing.T) {
	t.Parallel()
	archive, err := txtar.ParseFile("testdata/brought.txtar")
	if err != nil {
		t.Fatal(err)
	}
	says := map[string]string{}
	for _, f := range archive.Files {
		if of, ok := strings.CutSuffix(f.Name, " says"); ok {
			says[of] = string(f.Data)
		}
	}
	played := 0
	for _, f := range archive.Files {
		if strings.HasSuffix(f.Name, " says") {
			continue
		}
		played++
		t.Run(f.Name, func(t *testing.T) {
			t.Parallel()
			playBrought(t, f, slices.DeleteFunc(strings.Split(says[f.Name], "\n"), func(line string) bool { return line == "" }))
		})
	}
	if played < 25 {
		t.Errorf("only %d configurations were played", played)
	}
}

// playBrought plays one; says are the texts of `config check`.
func playBrought(t *testing.T, f txtar.File, says []string) {
	t.Helper()
	dir := t.TempDir()
	file, text := "zephbot.toml", f.Data
	if strings.HasPrefix(f.Name, "filters-") {
		file = "filters.toml"
		if err := os.WriteFile(filepath.Join(dir, "zephbot.toml"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, file), text, 0o600); err != nil {
		t.Fatal(err)
	}
	fake, vendor := telegramtest.New(telegramtest.Options{}), httptest.NewServer(http.HandlerFunc(answersAtOnce))
	t.Cleanup(vendor.Close)
	t.Cleanup(fake.Close)
	api, err := fake.Start()
	if err != nil {
		t.Fatal(err)
	}
	fake.AddUser(telegramtest.User{ID: 1001, FirstName: "Ann", Language: "en"})
	fake.AddPrivate(1001)
	env := []string{
		"PATH=" + programsAlone(t), "ZEPH_DATA_DIR=" + filepath.Join(dir, "state"), "ZEPH_TELEGRAM_TOKEN=" + fake.Token(),
		"ZEPH_TELEGRAM_API_URL=" + api, "ZEPH_TELEGRAM_ALLOWED_USERS=1001", "ZEPH_LLM_PRIMARY=main", "GNOME_SESSION=harmless",
	}
	for _, name := range []string{"MAIN", "FAST"} {
		at := "ZEPH_LLM_PROVIDERS_" + name
		env = append(env, at+"_TYPE=openai", at+"_WIRE=chat", at+"_MODEL=m", at+"_BASE_URL="+vendor.URL+"/v1")
	}
	checkBrought(t, zephbot(t, dir, env, "config", "check"), says)

	log := newHeard()
	cmd := zephbot(t, dir, env, "serve")
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // it has ended, or the test has failed
	log.await(t, "connected to Telegram", 0)
	fake.Say(1001, 1001, telegramtest.Message{Text: "are you there?"})
	answered := func() bool {
		return slices.ContainsFunc(fake.Chat(1001), func(m telegramtest.Shown) bool {
			return m.FromBot && strings.Contains(m.Text, "Here I am.")
		})
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(patience)
	for !answered() {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("no answer; printed: %s", log)
		}
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	if code := ended(t, cmd); code != 0 {
		t.Errorf("exit %d; printed: %s", code, log)
	}
	if said := log.String(); strings.Contains(said, "GNOME_SESSION") || strings.Contains(said, "credential") ||
		strings.Count(said, "of this process's variables") != 1 {
		t.Errorf("one line has to say how many variables are withheld, and none that they are credentials: %s", said)
	}
}

// checkBrought compares what `config check` says with what it has to say, and nothing else.
func checkBrought(t *testing.T, cmd *exec.Cmd, says []string) {
	t.Helper()
	out, err := cmd.CombinedOutput()
	for line := range strings.Lines(string(out)) {
		i := slices.IndexFunc(says, func(want string) bool {
			return strings.Contains(strings.ReplaceAll(line, cmd.Dir+"/", ""), want)
		})
		switch {
		case i >= 0:
			says = slices.Delete(slices.Clone(says), i, i+1)
		case strings.HasPrefix(line, "zephbot: ") || strings.HasPrefix(line, "warning: ") && !strings.Contains(line, "ZEPH_"):
			t.Errorf("config check says (%v): %s", err, line)
		}
	}
	if len(says) > 0 {
		t.Errorf("config check does not say %q, but:\n%s", says, out)
	}
}
