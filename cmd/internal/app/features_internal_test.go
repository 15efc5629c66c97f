package app

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/bot/telegram"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/cmd/internal/config"
)

// TestFeatures: every command has one feature, and what /help and the menus say of it in every language; no language says
// more. No two features handle the same buttons, or have the same name.
func TestFeatures(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cfg, err := config.Load(config.Source{WorkDir: dir, Home: dir, Env: []string{"ZEPH_LLM_PROVIDERS_MAIN_TYPE=offline"}})
	if err != nil {
		t.Fatal(err)
	}
	c, err := OpenCore(t.Context(), Options{Config: cfg, Log: zerolog.Nop(), WorkDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}()
	s, err := newService(c, channel{name: telegram.Name, bot: "1", composer: silent{}, sender: silent{}, admins: func() []string { return nil }})
	if err != nil {
		t.Fatal(err)
	}
	commands := []string{"help", "start"} // of the table itself
	var names, prefixes []string
	for _, f := range s.features {
		names = append(names, f.Name)
		for _, b := range f.Buttons {
			prefixes = append(prefixes, b.Prefix)
		}
		for _, command := range f.Commands {
			commands = append(commands, command.Name)
		}
	}
	slices.Sort(commands)
	words := texts.Words{}
	if diff := cmp.Diff(words.Names(), commands); diff != "" {
		t.Errorf("commands (-described +of features):\n%s", diff)
	}
	for _, name := range commands {
		for _, language := range words.Languages() {
			if text := words.Describe(language, name); text == "" || len([]rune(text)) > 256 { // Bot API, BotCommand
				t.Errorf("/%s in %s: %q", name, language, text)
			}
		}
	}
	for what, list := range map[string][]string{"name": names, "button": prefixes} {
		slices.Sort(list)
		if unique := slices.Compact(slices.Clone(list)); len(unique) < len(list) {
			t.Errorf("a %s of two features: %q", what, list)
		}
	}
}
