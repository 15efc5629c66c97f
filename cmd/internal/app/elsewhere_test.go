package app_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/cmd/internal/apptest"
)

// englishWords are words that no sentence of the bot in another language has.
var englishWords = regexp.MustCompile(`(?i)(?:^|[^\pL\pN/_.\-])(the|and|is|are|of|to|your|you|with|not|cannot|by|waiting|since|nothing|this|that|it|for|from|have|what|there|can|nobody|file|be)(?:$|[^\pL\pN/_.\-])`)

// fewElsewhere is one in how many scenarios is played in German by a plain `go test`; with ZEPH_LANGUAGES=full
// each is, in every language.
const fewElsewhere = 12

// TestScenariosElsewhere plays scenarios with people who have another language. Whatever the bot says of its own accord
// then, nothing of it is English.
func TestScenariosElsewhere(t *testing.T) {
	t.Parallel()
	files := scenarioFiles(t)
	others := []string{"de"}
	full := os.Getenv("ZEPH_LANGUAGES") == "full"
	if full {
		others = texts.Words{}.Languages()[1:]
	}
	var said, played atomic.Int64
	t.Run("all", func(t *testing.T) {
		for i, file := range files {
			for j, language := range others {
				if !full && (i%fewElsewhere != 0 || i/fewElsewhere%len(others) != j) {
					continue
				}
				name := strings.TrimSuffix(filepath.Base(file), ".txtar")
				t.Run(name+"_"+language, func(t *testing.T) {
					t.Parallel()
					archive, err := txtar.ParseFile(file)
					if err != nil {
						t.Fatal(err)
					}
					lines := apptest.PlayElsewhere(t, archive, language)
					said.Add(int64(len(lines)))
					played.Add(1)
					for _, line := range lines {
						if found := englishWords.FindStringSubmatch(line); found != nil {
							t.Errorf("%q in %q", found[1], line)
						}
					}
				})
			}
		}
	})
	if said.Load() < played.Load() {
		t.Errorf("%d lines were said in %d scenarios: does this test still hear the bot?", said.Load(), played.Load())
	}
}
