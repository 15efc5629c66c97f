package command_test

import (
	"strings"
	"testing"

	"github.com/zephbot/zephbot/policy/command"
)

// oneKB returns a command of about 1 KB as a model writes it.
func oneKB() string {
	line := `cd /srv/app && git status --short | head -n 20; for f in *.go; do grep -n "TODO" "$f" || true; done` + "\n" +
		`timeout 30 env CGO_ENABLED=0 go test ./... 2>&1 | tail -n 40 > /tmp/out.txt; echo "exit: $?"` + "\n"
	return strings.Repeat(line, 5)
}

func BenchmarkParse1KB(b *testing.B) {
	text := oneKB()
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		s := command.Parse(text)
		command.Blocked(s, nil)
		command.Confirm(s, nil)
	}
}
