package redact_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/policy/redact"
)

// TestFirstLooksMissNothing compares with a Redactor that tries the expression wherever a keyword stands.
func TestFirstLooksMissNothing(t *testing.T) {
	t.Parallel()
	pieces := []string{
		"password", "passwd", "PGPASSWORD", "passphrase", "secret", "api_key", "apikey", "Api-Key", "access-key", "private_key", "credential", "token", "_TOKEN", "ſ", "K", "é", "=>", ":=",
		"==", "=", ":", " ", " ", "\t", "\n", "\\", `"`, "'", "`", "]", "[", "hunter2hunter", "aB3dE5gH7jK9", "x", "_", "-", strings.Repeat("w", 24), "bearer ", redact.Mask,
	}
	r := redact.New([]string{"hunter2hunter"})
	slow := r.Thorough()
	random := rand.New(rand.NewPCG(3, 4))
	found := 0
	for range 3000 {
		var b strings.Builder
		for range random.IntN(14) {
			b.WriteString(pieces[random.IntN(len(pieces))])
		}
		want := slow.Scan(b.String())
		found += len(want)
		if diff := cmp.Diff(want, r.Scan(b.String())); diff != "" {
			t.Fatalf("%q (-thorough +Scan):\n%s", b.String(), diff)
		}
	}
	if found < 200 {
		t.Errorf("only %d findings: the pieces make no credentials", found)
	}
}
