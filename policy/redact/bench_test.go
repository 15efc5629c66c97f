package redact_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/zephbot/zephbot/policy/redact"
)

// BenchmarkStringText measures texts without a credential, as in nearly every result of a tool.
func BenchmarkStringText(b *testing.B) {
	r := redact.New([]string{"s3cret value", "another secret"})
	for _, bc := range []struct {
		name string
		line func(i int) string
	}{
		{"english", func(i int) string {
			return fmt.Sprintf("The river passes %d villages before it meets the sea; people there keep secrets and tell tokens of their past, as every traveller notices.\n", i)
		}},
		{"log", func(i int) string {
			return fmt.Sprintf("2026-01-02T03:04:%02d.%03dZ host app[811]: request served in %dms for user u%d by worker %d of the pool\n", i%60, i%1000, i%97, i%800, i%4)
		}},
		{"code", func(i int) string {
			return fmt.Sprintf("func (s *Service) Handle%d(ctx context.Context, token *Token) error {\n\tif token == nil || s.now().After(token.Until) {\n\t\treturn errNew(\"x%d\")\n\t}\n\treturn nil\n}\n\n", i, i)
		}},
		{"hex", func(i int) string { return fmt.Sprintf("%064x  internal/service/handler_%d.go\n", i*i*7919, i) }},
	} {
		b.Run(bc.name, func(b *testing.B) {
			var text strings.Builder
			for i := 0; text.Len() < 100_000; i++ {
				text.WriteString(bc.line(i))
			}
			s := text.String()
			b.SetBytes(int64(len(s)))
			b.ReportAllocs()
			for b.Loop() {
				r.String(s)
			}
		})
	}
}
