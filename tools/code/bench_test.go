package code_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/code"
	"github.com/zephbot/zephbot/tools/file"
)

// real returns an index over real code: the directory in ZEPH_CODE, or this project, and how many lines it has.
func real(b *testing.B) (*code.Index, string, int) {
	b.Helper()
	root := os.Getenv("ZEPH_CODE")
	if root == "" {
		root = "../.."
	}
	root, err := filepath.Abs(root)
	if err == nil {
		root, err = filepath.EvalSymlinks(root)
	}
	if err != nil {
		b.Fatal(err)
	}
	lines := 0
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") {
			return err
		}
		content, err := os.ReadFile(path)
		lines += bytes.Count(content, []byte("\n"))
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	sources, err := file.NewSources(file.Options{Workspace: func(tools.Origin) (string, error) { return root, nil }})
	if err != nil {
		b.Fatal(err)
	}
	index, err := code.New(code.Options{Sources: sources, Log: zerolog.Nop()})
	if err != nil {
		b.Fatal(err)
	}
	return index, root, lines
}

// BenchmarkFirst measures the first index, without a store, and what it keeps in memory.
func BenchmarkFirst(b *testing.B) {
	var before, after runtime.MemStats
	for b.Loop() {
		index, root, lines := real(b)
		runtime.GC()
		runtime.ReadMemStats(&before)
		b.ReportMetric(float64(lines), "lines")
		if err := index.Refresh(b.Context(), root, nil); err != nil {
			b.Fatal(err)
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/(1<<20), "MB-kept")
		runtime.KeepAlive(index)
	}
}

// BenchmarkQuery measures a question in words on an index that is up to date, with the walk that looks for changes.
func BenchmarkQuery(b *testing.B) {
	index, root, _ := real(b)
	if err := index.Refresh(b.Context(), root, nil); err != nil {
		b.Fatal(err)
	}
	tool, err := index.Tool()
	if err != nil {
		b.Fatal(err)
	}
	call := &tools.Call{Tool: code.ToolName, Args: []byte(`{"query":"where is the result of a tool call cached"}`), Trail: &tools.Trail{}}
	for b.Loop() {
		if _, err := tool.Run(b.Context(), call); err != nil {
			b.Fatal(err)
		}
	}
}
