package app_test

import (
	"bytes"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/agent/llm/llmtest"
	"github.com/zephbot/zephbot/bot/bottest"
	"github.com/zephbot/zephbot/cmd/internal/app"
	"github.com/zephbot/zephbot/cmd/internal/config"
)

// TestAskedInTheTerminal: at a terminal without a screen, a question is answered by the number of a choice or in words. A
// program that runs the terminal is not asked.
func TestAskedInTheTerminal(t *testing.T) {
	t.Parallel()
	const questions = `{"question":"Where?","choices":["Lisbon","Oslo"]},{"question":"Who?","choices":["Ann","Ben","Cy"],"several":true},{"question":"Why?"}`
	for name, tt := range map[string]struct {
		lines []string
		want  string
	}{
		"answered":         {[]string{"2", "1", "3", "4", "", "just so"}, `[{"question":"Where?","chosen":["Oslo"]},{"question":"Who?","chosen":["Ann","Cy"]},{"question":"Why?","said":"just so"}]`},
		"in words":         {[]string{"lisbon", "ben, cy", "4 reasons"}, `[{"question":"Where?","chosen":["Lisbon"]},{"question":"Who?","chosen":["Ben","Cy"]},{"question":"Why?","said":"4 reasons"}]`},
		"too long once":    {[]string{"Rome", strings.Repeat("x", 2001), "1, 2", "so"}, `[{"question":"Where?","said":"Rome"},{"question":"Who?","chosen":["Ann","Ben"]},{"question":"Why?","said":"so"}]`},
		"declined":         {[]string{"3", "5"}, "The person does not want to answer."},
		"left":             {[]string{"1"}, "Nobody answered in time."},
		"nobody sits here": {nil, "Nobody is there who could answer a question in this turn."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			cfg, err := config.Load(config.Source{WorkDir: dir, Home: dir, Env: []string{"ZEPH_DATA_DIR=" + filepath.Join(dir, "data")}})
			if err != nil {
				t.Fatal(err)
			}
			model, err := llmtest.Parse("on \"go\": call ask_user {\"questions\":[" + questions + "]}\nthen expect " + strconv.Quote(tt.want) + "\nand say Done.")
			if err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			person := bottest.NewTypist("", tt.lines...)
			err = app.Chat(t.Context(), app.Options{Config: cfg, Version: "test", Log: zerolog.New(zerolog.NewTestWriter(t)), WorkDir: dir, Provider: model},
				app.ChatOptions{In: person, Out: &out, Err: person, Once: "go", Ask: tt.lines != nil, Language: "en"})
			if err != nil || !strings.Contains(out.String(), "Done.") {
				t.Errorf("%v\n%s\n%s", err, out.String(), person.Seen())
			}
			if tt.lines != nil && !strings.Contains(person.Seen(), "❓ Where?\nChoose below.\nquestion 1 of 3 · open until ") {
				t.Errorf("%s", person.Seen())
			}
		})
	}
}
