package archtest_test

import (
	"maps"
	"os"
	"slices"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/cmd/internal/archtest"
)

// TestRefusals: what people read about a refusal is a reason, which has a sentence in every language. What is listed here
// does not reach them, or has no words of ours.
func TestRefusals(t *testing.T) {
	t.Parallel()
	english := map[string]string{
		"agent: overBudget":                     "the model reads it, in a sub-agent",
		"bot/memory: memoryOfCall":              "the model reads it, and says it in its own words",
		"bot/memory: scopeOfCall":               "as above",
		"bot/search: run":                       "as above",
		"bot/record: settleLine":                "the audit log is English",
		"bot/servers: errorSentence":            "what a connection failed with, behind a sentence in words",
		"tools/chain: followRedirects":          "the model reads it",
		"tools/file: systemError":               "the model reads what the system does not permit",
		"tools/mcp: serverError":                "the server refused it",
		"tools/shell/sandbox: has":              "names of mechanisms of the kernel",
		"tools/shell/sandbox: confinementLevel": "errors of the kernel",
		"tools/shell: runError":                 "the model reads it: a file that is no program",
		"tools/shell: watchGrowth":              "it ends a preview, whose card then says that it is too large",
	}
	got, err := archtest.EnglishRefusals(os.DirFS(root), projectFiles(t))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(english)), slices.Compact(slices.Sorted(slices.Values(got)))); diff != "" {
		t.Errorf("refusals that have only an English text: give them a reason (-known +source):\n%s", diff)
	}
}

func TestEnglishRefusals(t *testing.T) {
	t.Parallel()
	files := fstest.MapFS{
		"go.mod": {Data: []byte("module example.org/m\n")},
		"tools/a.go": {Data: []byte(`package tools

var errNo = &Error{Category: PolicyBlocked, Message: "no"}

var errWhy = &Error{Category: PolicyBlocked, Message: "no", Reason: reason.New(reason.No)}

func plain() reason.Reason { return reason.Plain("no") }

func failed() error { return Errorf(ServerError, "no") }

func (r Result) refused() error { return tools.Errorf(tools.PolicyBlocked, "no") }
`)},
		"tools/a_test.go": {Data: []byte("package tools\n\nvar errTest = &Error{Category: PolicyBlocked}\n")},
	}
	got, err := archtest.EnglishRefusals(files, []string{"tools/a.go", "tools/a_test.go", "tools/gone.go"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"tools: variable", "tools: plain", "tools: refused"}, got); diff != "" {
		t.Error(diff)
	}
}
