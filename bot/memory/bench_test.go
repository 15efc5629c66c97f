package memory_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/bottest"
	"github.com/zephbot/zephbot/bot/memory"
)

// things are what the memories of the benchmark are about.
var things = []string{"editor", "tea", "deploy day", "birthday", "office", "language", "train", "project", "server", "budget", "holiday"}

// BenchmarkRecall is what a turn waits for if its person has a thousand memories: they are read and ranked by their words
// (docs/memory.md). "none" is a person without any.
func BenchmarkRecall(b *testing.B) {
	for name, n := range map[string]int{"none": 0, "1": 1, "1000": 1000} {
		b.Run(name, func(b *testing.B) {
			p := open(b, bottest.New(), func(d *memory.Deps) { d.Limits.Entries = 1000 })
			p.fill(n)
			msg := message("1", "1", "which editor do I use for the project, and when is the next deploy day?")
			b.ReportAllocs()
			for b.Loop() {
				if got := p.recall(msg); (got == "") != (n == 0) {
					b.Fatalf("recalled %q", got)
				}
			}
		})
	}
}

// BenchmarkRecallAnew is the first of them in a process, and one after a change: everything is read.
func BenchmarkRecallAnew(b *testing.B) {
	p := open(b, bottest.New(), func(d *memory.Deps) { d.Limits.Entries = 1000 })
	p.fill(1000)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		revision := bot.Fact{Bucket: "memory_scope", Key: "telegram:1", Value: fmt.Sprint(i)}
		if _, err := p.store.Apply(b.Context(), &bot.Change{Facts: []bot.Fact{revision}}); err != nil {
			b.Fatal(err)
		}
		if p.recall(message("1", "1", "which editor do I use?")) == "" {
			b.Fatal("nothing is recalled")
		}
	}
}

// fill stores so many memories of person 1, as a process does that has run for long.
func (p *process) fill(n int) {
	p.t.Helper()
	if n == 0 {
		return
	}
	list := []bot.Fact{{Bucket: "memory_scope", Key: "telegram:1", Value: "x"}}
	for i := range n {
		text := fmt.Sprintf("Person number %d prefers the %s of kind %d, as they said on a walk in the month %d of that year", i%7, things[i%len(things)], i, i%12)
		value := fmt.Sprintf(`{"text":%q,"by":"telegram:1","name":"Ann","at":%q}`, text, time.Unix(int64(i), 0).UTC().Format(time.RFC3339))
		list = append(list, bot.Fact{Bucket: "memory", Key: fmt.Sprintf("telegram:1/%08d", i), Value: value})
	}
	if _, err := p.store.Apply(p.t.Context(), &bot.Change{Facts: list}); err != nil {
		p.t.Fatal(err)
	}
	p.Reload()
	p.follow()
}
