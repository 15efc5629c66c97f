package outline_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/zephbot/zephbot/tools/code/outline"
)

// TestLanguages compares the outline of each file in testdata/*.txtar with the part of the same name and ".want".
func TestLanguages(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files (%v)", len(files), err)
	}
	seen := map[outline.Language]bool{}
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i+1 < len(archive.Files); i += 2 {
			source, want := archive.Files[i], archive.Files[i+1]
			lang := outline.Of(source.Name)
			seen[lang] = true
			var got strings.Builder
			for _, s := range outline.Parse(lang, source.Data).Symbols {
				fmt.Fprintf(&got, "%s %s", s.Kind, s.Name)
				if s.Container != "" {
					fmt.Fprintf(&got, " in %s", s.Container)
				}
				fmt.Fprintf(&got, " %d:%d-%d", s.Start, s.Line, s.End)
				if s.Doc != "" {
					fmt.Fprintf(&got, " // %s", s.Doc)
				}
				got.WriteString("\n")
			}
			if os.Getenv("ZEPH_UPDATE") != "" {
				archive.Files[i+1].Data = []byte(got.String())
				continue
			}
			if diff := cmp.Diff(string(want.Data), got.String()); diff != "" {
				t.Errorf("%s: %s (-want +got):\n%s", file, source.Name, diff)
			}
		}
		if os.Getenv("ZEPH_UPDATE") != "" {
			if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, lang := range outline.Languages() {
		if !seen[lang] {
			t.Errorf("no file in %s", lang)
		}
	}
}
