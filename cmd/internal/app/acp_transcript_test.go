package app_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/bot/acp/acptest"
)

// TestEditorTranscript: what both sides say while a file is edited is as it was recorded in testdata/acp. With
// ZEPH_RECORD=1 it is recorded.
func TestEditorTranscript(t *testing.T) {
	t.Parallel()
	e := &acptest.Editor{Capabilities: acptest.Capabilities{Terminal: true, Fs: acptest.Files{ReadTextFile: true, WriteTextFile: true}}}
	e.Output = func(string) (string, int) { return "hello world\n", 0 }
	d := openStudio(t, e, `on "fix": call edit {"path":"a.txt","old_string":"helo","new_string":"hello"}
then call bash {"command":"cat a.txt"}
then say Fixed.`, "")
	d.file(t, "a.txt", "helo world\n")
	s := d.Begin(t, d.dir)
	d.Say(t, s, acptest.Text("fix it"))
	ids := map[string]string{string(s): "SESSION"}
	text := strings.NewReplacer(string(s), "SESSION", d.dir, "DIR").Replace(strings.Join(d.Lines(), "\n") + "\n")
	text = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`).ReplaceAllStringFunc(text, func(id string) string {
		if ids[id] == "" {
			ids[id] = fmt.Sprintf("CALL-%d", len(ids))
		}
		return ids[id]
	})
	for pattern, word := range map[string]string{
		`"updatedAt":"[^"]*"`: `"updatedAt":"TIME"`, `expires [0-9:]+`: "expires TIME", `/approve [a-z]+`: "/approve NAME", `"duration_ms":[0-9]+`: `"duration_ms":0`,
		`"availableCommands":\[[^]]*\]`: `"availableCommands":[]`, // each feature adds its own
	} {
		text = regexp.MustCompile(pattern).ReplaceAllString(text, word)
	}
	path := filepath.Join("testdata", "acp", "edit.txt")
	if os.Getenv("ZEPH_RECORD") == "1" {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(text, "\n")); diff != "" {
		t.Errorf("-recorded +said\n%s", diff)
	}
}
