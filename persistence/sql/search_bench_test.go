package sql_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/search"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/bot/turn"
	"github.com/zephbot/zephbot/persistence/sql"
)

// BenchmarkSearch looks for words in as many entries as a search looks at: a message of 120 characters, a call with an
// output of 4 kB, and an answer of 1000 characters each turn, in Latin and in Cyrillic letters.
func BenchmarkSearch(b *testing.B) {
	at := time.Unix(1_700_000_000, 0)
	store := open(b, sql.Options{Path: filepath.Join(b.TempDir(), "zephbot.db")})
	for chat, word := range map[string]string{"latin": "fine ", "cyrillic": "слово "} {
		place := bot.Place{Channel: "telegram", Bot: "7", Surface: bot.SurfaceBot, Chat: chat}
		var list []journal.Entry
		for i := range 5000 {
			id := fmt.Sprint("t", i)
			list = append(list,
				journal.Entry{Turn: id, Kind: journal.UserEntry, At: at, Text: strings.Repeat(word, 24)},
				journal.Entry{Turn: id, Kind: journal.AssistantEntry, At: at, Uses: []journal.Use{{Call: "1.0", Name: "bash", Args: []byte(`{}`)}}},
				journal.Entry{Turn: id, Kind: journal.ResultEntry, At: at, Call: "1.0", Text: strings.Repeat("out ", 1000)},
				journal.Entry{Turn: id, Kind: journal.AnswerEntry, At: at, Text: strings.Repeat(word, 200)},
			)
		}
		if _, err := store.Apply(b.Context(), &bot.Change{Append: &bot.Append{Session: place.SessionKey(""), Entries: list}}); err != nil {
			b.Fatal(err)
		}
		s := search.New(search.Deps{
			Store: store, Link: func(bot.Place, string) string { return "" }, Moved: func(bot.SessionKey) bool { return false },
			Zone: func(string) *time.Location { return time.UTC }, Words: texts.Words{},
		})
		call := &turn.Call{Message: &bot.Message{Place: place, Caller: "telegram:42", Args: "heron bittern"}}
		b.Run(chat, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.Feature("").Commands[0].Run(b.Context(), call); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
