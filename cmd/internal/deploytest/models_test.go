package deploytest_test

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/zephbot/zephbot/agent/llm/dialect"
)

// begin is where the table of docs/models.md begins; it ends at the end of the page.
const begin = "<!-- the table is written by TestModelsDoc from agent/llm/dialect/dialects.json -->\n"

// TestModelsDoc: the table of docs/models.md is what the source says. ZEPH_UPDATE=1 writes it again.
func TestModelsDoc(t *testing.T) {
	t.Parallel()
	name := filepath.Join(root, "docs", "models.md")
	page, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	head, _, found := bytes.Cut(page, []byte(begin))
	if !found {
		t.Fatal("docs/models.md has no table")
	}
	want := append(append(bytes.Clone(head), begin...), tableOfModels(t)...)
	if os.Getenv("ZEPH_UPDATE") != "" {
		if err := os.WriteFile(name, want, 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !bytes.Equal(page, want) {
		t.Error("the table of docs/models.md is not what the source says: ZEPH_UPDATE=1 go test ./cmd/internal/deploytest -run TestModelsDoc")
	}
}

func tableOfModels(t *testing.T) string {
	t.Helper()
	list, err := dialect.All()
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString("| Server | `preset` | Address | Key | Tools | Requests and history | Where the facts are from |\n|---|---|---|---|---|---|---|\n")
	for _, d := range list {
		key := "`" + d.Key + "`"
		if d.Key == "" {
			key = "none"
		}
		address := "`" + d.BaseURL + "`"
		if d.BaseURL == "" {
			address = "of your own resource"
		}
		fmt.Fprintf(&b, "| %s | `%s` | %s | %s | %s | %s | %s |\n", d.Title, d.Name, address, key, toolsOf(&d), historyOf(&d), strings.Join(d.Facts, "; "))
	}
	return b.String()
}

// toolsOf says what is rendered for a server of the schemas of tools.
func toolsOf(d *dialect.Dialect) string {
	var list []string
	if len(d.Schema.Keywords) == 0 {
		list = append(list, "the safe subset alone")
	} else {
		list = append(list, "with "+strings.Join(d.Schema.Keywords, " "))
	}
	if d.Schema.Closed {
		list = append(list, "objects are closed")
	}
	list = append(list, fmt.Sprintf("at most %d tools", cmp.Or(d.Schema.MaxTools, 128)))
	return strings.Join(list, "; ")
}

// historyOf says what is changed for a server in requests and messages.
func historyOf(d *dialect.Dialect) string {
	var list []string
	add := func(when bool, text string) {
		if when {
			list = append(list, text)
		}
	}
	add(len(d.Params.Omit) > 0, "without "+strings.Join(d.Params.Omit, ", "))
	for _, from := range slices.Sorted(maps.Keys(d.Params.Rename)) {
		list = append(list, from+" is called "+d.Params.Rename[from])
	}
	for _, field := range slices.Sorted(maps.Keys(d.Params.Set)) {
		list = append(list, field+" is "+string(d.Params.Set[field]))
	}
	add(d.History.CallIDs == dialect.CallIDsShort, "ids of calls have nine letters and digits")
	add(d.History.CallIDs == dialect.CallIDsVerbatim, "ids of calls stay as the model gave them")
	add(d.History.Bridge, "a short answer stands between a result and the next message")
	add(d.History.NoSystem, "instructions begin the first message")
	add(d.History.Alternate, "messages of one role in a row are joined")
	add(d.History.ToolNames, "results name their tool")
	add(d.History.Reasoning == dialect.ReasoningAll, "thoughts go back with every message")
	add(d.History.Reasoning == dialect.ReasoningRequired, "calls that another server or model made are told in words")
	add(d.History.Reasoning == dialect.ReasoningKept, "thoughts go back with every message; calls that another server or model made are told in words")
	add(d.History.Reasoning == dialect.ReasoningNever, "thoughts are never sent back")
	add(d.History.EmptyContent, "messages with calls have an empty text")
	add(d.History.KeepTools, "calls are sent only beside tools")
	add(d.History.NoChannels, "`<\\|channel\\|>` is taken out")
	if len(list) == 0 {
		return "as for every server"
	}
	return strings.Join(list, "; ")
}
