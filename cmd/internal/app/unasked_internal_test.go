package app

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/policy"
)

// TestSecurityNamesWhatRunsUnasked: SECURITY.md lists exactly the built-in tools that run without a rule and without a
// question.
func TestSecurityNamesWhatRunsUnasked(t *testing.T) {
	t.Parallel()
	b := sayingBench(t)
	var unasked []string
	for _, d := range b.Definitions() {
		if d.Server != "" {
			continue
		}
		decision := b.core.policy.Decide(policy.Request{
			Caller: "telegram:42", Tool: d.Name, Says: d.Says, ReadOnly: d.ReadOnly, Inputs: []string{"x"}, Trust: policy.Trusted,
		})
		if decision.Effect == policy.Allow {
			unasked = append(unasked, d.Name)
		}
	}
	slices.Sort(unasked)
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "SECURITY.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, row, _ := strings.Cut(string(page), "| What runs without a question | ")
	row, _, _ = strings.Cut(row, "\n")
	var named []string
	for _, name := range regexp.MustCompile("`([a-z_]+)`").FindAllStringSubmatch(row, -1) {
		named = append(named, name[1])
	}
	slices.Sort(named)
	if diff := cmp.Diff(unasked, named); diff != "" {
		t.Errorf("SECURITY.md (-runs unasked +named):\n%s", diff)
	}
}
