package simulate

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/zephbot/zephbot/bot/simulator"
	"github.com/zephbot/zephbot/cmd/internal/app"
	"github.com/zephbot/zephbot/cmd/internal/config"
)

// TestSampleFiles: the first start finds something to look at, and what a person deleted stays deleted.
func TestSampleFiles(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	if err := layOutSamples(home, "7"); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(home, "workspaces", "telegram_7_bot_1001_0_0")
	temp, err := filepath.Glob(filepath.Join(dir, "*.tmp"))
	if err != nil || len(temp) < 2 {
		t.Fatal(temp, err)
	}
	for _, name := range append(temp, filepath.Join(dir, "logs", "import.log")) {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	if err := os.Remove(temp[0]); err != nil {
		t.Fatal(err)
	}
	if err := layOutSamples(home, "7"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(temp[0]); !os.IsNotExist(err) {
		t.Errorf("%s came back: %v", temp[0], err)
	}
	if list, err := os.ReadDir(filepath.Dir(dir)); err != nil || len(list) != 9 {
		t.Errorf("workspaces: %v, %v; want those of three people, alone and in two topics", list, err)
	}
	if err := layOutTopic(home, "7", simulator.Team, 12); err != nil {
		t.Fatal(err)
	}
	for _, topic := range []string{"0", "7", "12"} {
		if _, err := os.Stat(filepath.Join(home, "workspaces", "telegram_7_bot_-1001_"+topic+"_1003", "todo.txt")); err != nil {
			t.Errorf("topic %s: %v", topic, err)
		}
	}
}

// TestSimulatedEnvironment: the bot of the simulator tells times as this machine has them, unless somebody said
// otherwise, and the built-in model speaks slowly enough to be watched.
func TestSimulatedEnvironment(t *testing.T) {
	t.Parallel()
	cfg := &config.Config{}
	env := simulated(app.Options{Config: cfg}, "http://x", "7:a")
	for _, want := range []string{"ZEPH_TELEGRAM_TIME_ZONE=Local", "ZEPH_LLM_PROVIDERS_MAIN_PACE=45ms", "ZEPH_QUOTAS_USER_TURNS_PER_DAY=100"} {
		if !slices.Contains(env, want) {
			t.Errorf("%s is missing in %q", want, env)
		}
	}
	cfg.Quotas.User.USDPerDay = 1
	if env = simulated(app.Options{Config: cfg}, "http://x", "7:a"); slices.Contains(env, "ZEPH_QUOTAS_USER_TURNS_PER_DAY=100") {
		t.Error("limits of the configuration are not the last word")
	}
	cfg.Telegram.TimeZone, cfg.Telegram.Language = "Asia/Tokyo", "de"
	env = simulated(app.Options{Config: cfg}, "http://x", "7:a")
	for _, want := range []string{"ZEPH_TELEGRAM_TIME_ZONE=Asia/Tokyo", "ZEPH_TELEGRAM_LANGUAGE=de"} {
		if !slices.Contains(env, want) {
			t.Errorf("%s is missing in %q", want, env)
		}
	}
}
