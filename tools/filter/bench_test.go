package filter_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/zephbot/zephbot/policy/redact"
	"github.com/zephbot/zephbot/tools/filter"
)

// typical builds outputs of about a megabyte in the form of real tools.
func typical(line func(b *strings.Builder, i int)) string {
	var b strings.Builder
	for i := 0; b.Len() < 1<<20; i++ {
		line(&b, i)
	}
	return b.String()
}

func BenchmarkFilter(b *testing.B) {
	e := engine(b, filter.Options{})
	cargo := typical(func(b *strings.Builder, i int) {
		fmt.Fprintf(b, "   Compiling crate-%d v0.%d.1\nwarning: field is never read\ntest module_%d::tests::handles_input ... ok\n", i, i%9, i)
	})
	gotest := typical(func(b *strings.Builder, i int) {
		fmt.Fprintf(b, "=== RUN   TestThing%d\n    thing_test.go:%d: prepared the case\n--- PASS: TestThing%d (0.00s)\n", i, i%999+1, i)
	})
	log := typical(func(b *strings.Builder, i int) {
		fmt.Fprintf(b, "2026-01-02T03:04:%02d.%03dZ host app[811]: request served in 3ms by worker %d of the pool\n", i%60, i%1000, i%4)
	})
	paths := typical(func(b *strings.Builder, i int) {
		fmt.Fprintf(b, "./internal/service/handler_%d/testdata/input_%d.json\n", i%300, i)
	})
	npm := typical(func(b *strings.Builder, i int) {
		fmt.Fprintf(b, "npm warn deprecated package-%d@1.0.%d: this version is no longer maintained\nbuilt the native module number %d\n", i, i%9, i)
	})
	diff := typical(func(b *strings.Builder, i int) {
		if i%200 == 0 {
			fmt.Fprintf(b, "diff --git a/f%d.go b/f%d.go\nindex 1111111..2222222 100644\n--- a/f%d.go\n+++ b/f%d.go\n@@ -1,9 +1,9 @@\n", i, i, i, i)
		}
		fmt.Fprintf(b, "+\tresult = append(result, value%d)\n", i)
	})
	for _, bc := range []struct {
		name, command string
		exit          int
		text          string
	}{
		{"cargo", "cargo test", 0, cargo},
		{"cargo-failed", "cargo test", 101, cargo},
		{"go-test", "go test -v ./...", 0, gotest},
		{"go-test-failed", "go test -v ./...", 1, gotest + "--- FAIL: TestX (0.00s)\nFAIL\n"},
		{"log", "docker logs app", 0, log},
		{"find", "find .", 0, paths},
		{"find-failed", "find .", 1, paths},
		{"npm", "npm install", 0, npm},
		{"diff", "git diff", 0, diff},
		{"no-rule", "frobnicate", 0, log},
	} {
		b.Run(bc.name, func(b *testing.B) {
			b.SetBytes(int64(len(bc.text)))
			b.ReportAllocs()
			for b.Loop() {
				e.Filter(bc.command, &bc.exit, bc.text)
			}
		})
	}
}

// BenchmarkCorpus runs all real outputs of testdata/corpus, including small ones: the goal is 100 MB/s on one core, and
// 20 MB/s with the credential scan that comes before the filter in the chain.
func BenchmarkCorpus(b *testing.B) {
	e := engine(b, filter.Options{})
	scan := redact.New(nil)
	samples := corpus(b)
	size := 0
	for _, s := range samples {
		size += len(s.input)
	}
	for _, bc := range []struct {
		name string
		run  func(s *sample)
	}{
		{"filter", func(s *sample) { e.Filter(s.command, &s.exit, s.input) }},
		{"filter+redact", func(s *sample) { e.Filter(s.command, &s.exit, scan.String(s.input)) }},
	} {
		b.Run(bc.name, func(b *testing.B) {
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				for i := range samples {
					bc.run(&samples[i])
				}
			}
		})
	}
}

// BenchmarkNewEngine measures what the first text pays.
func BenchmarkNewEngine(b *testing.B) {
	for b.Loop() {
		engine(b, filter.Options{}).Filter("true", nil, "")
	}
}
