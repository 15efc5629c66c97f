package outline_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zephbot/zephbot/tools/code/outline"
)

// TestGoWithMistakes breaks a line in the middle of Go files of this project: no other function is lost.
func TestGoWithMistakes(t *testing.T) {
	t.Parallel()
	mistakes := map[string]func(line []byte) []byte{
		"half a line": func(line []byte) []byte { return line[:len(line)/2] },
		"prose":       func(line []byte) []byte { return append([]byte("this is not: finished {\n"), line...) },
		"conflict": func(line []byte) []byte {
			return fmt.Appendf(nil, "<<<<<<< HEAD\n%s\n=======\n%s\n>>>>>>> other", line, line)
		},
	}
	files, symbols := 0, 0
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") {
			return err
		}
		src, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		files++
		lines := bytes.Split(src, []byte("\n"))
		at := len(lines) / 2
		want := outline.Parse(outline.Go, src).Symbols
		for name, mistake := range mistakes {
			broken := bytes.Join(append(append(append([][]byte{}, lines[:at]...), mistake(lines[at])), lines[at+1:]...), []byte("\n"))
			got := map[string]bool{}
			for _, s := range outline.Parse(outline.Go, broken).Symbols {
				got[fmt.Sprint(s.Kind, s.Container, s.Name)] = true
			}
			for _, s := range want {
				if s.Kind == outline.Function && (s.End <= at || s.Start > at+1) {
					symbols++
					if !got[fmt.Sprint(s.Kind, s.Container, s.Name)] {
						t.Errorf("%s, %s in line %d: %s %s of line %d is lost", path, name, at+1, s.Kind, s.Name, s.Line)
					}
				}
			}
		}
		return nil
	})
	if err != nil || files < 200 || symbols < 1000 {
		t.Fatalf("%d files with %d symbols compared (%v)", files, symbols, err)
	}
}
