package deploytest_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	ofChat     = regexp.MustCompile(`(?m)^([a-z]+)\.does = `)
	namedInTic = regexp.MustCompile("`/([a-z]+)(?: [^`]*)?`")
)

// TestChatCommandsInDocs: every command of the chat that a page names exists.
func TestChatCommandsInDocs(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile(filepath.Join(root, "bot", "texts", "languages", "en.toml"))
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, m := range ofChat.FindAllStringSubmatch(string(raw), -1) {
		known[m[1]] = true
	}
	named := 0
	for _, page := range pagesOf(t) {
		if !strings.HasPrefix(page, "docs/guide-") && page != "README.md" {
			continue // paths such as /data, and commands of BotFather
		}
		raw, err := os.ReadFile(filepath.Join(root, page))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range namedInTic.FindAllStringSubmatch(string(raw), -1) {
			if named++; !known[m[1]] && m[1] != "healthz" && m[1] != "readyz" && m[1] != "metrics" {
				t.Errorf("%s: there is no command /%s in the chat", page, m[1])
			}
		}
	}
	if named < 30 {
		t.Errorf("%d commands are named", named)
	}
}
