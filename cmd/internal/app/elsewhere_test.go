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
	"github.com/zephbot/zephbot/policy/reason"
	"github.com/zephbot/zephbot/policy/redact"
)

// englishWords are words that no sentence of the bot in another language has.
var englishWords = regexp.MustCompile(`(?i)(?:^|[^\pL\pN/_.\-])(the|and|is|are|of|to|your|you|with|not|cannot|by|waiting|since|nothing|this|that|it|for|from|have|what|there|can|nobody|file|be)(?:$|[^\pL\pN/_.\-])`)

// fewElsewhere is one in how many scenarios is played in German by a plain `go test`; with ZEPH_LANGUAGES=full
// each is, in every language.
const fewElsewhere = 12

// forModels matches lines in which the bot shows what a tool has told the model, whose language is English: the end of an
// output in which credentials were hidden, as the details of a receipt show it, and the error of a call that is not
// possible, behind words in the reader's language.
func forModels(language string) *regexp.Regexp {
	impossible := strings.TrimSuffix(texts.Words{}.Said(language, reason.New(reason.CallImpossible, "x")), "x")
	hidden, _, _ := strings.Cut(redact.Warning(2), "2")
	return regexp.MustCompile(`^(?:` + regexp.QuoteMeta(impossible) + `|` + regexp.QuoteMeta(hidden) + `)`)
}

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
					model := forModels(language)
					for _, line := range lines {
						if found := englishWords.FindStringSubmatch(line); found != nil && !model.MatchString(line) {
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
