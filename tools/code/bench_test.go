package code_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

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

// resident returns how much memory the process occupies, in bytes; 0 = the system does not say.
func resident(b *testing.B) float64 {
	b.Helper()
	text, err := os.ReadFile("/proc/self/statm")
	fields := strings.Fields(string(text))
	if err != nil || len(fields) < 2 {
		return 0
	}
	pages, err := strconv.ParseFloat(fields[1], 64)
	if err != nil {
		b.Fatal(err)
	}
	return pages * float64(os.Getpagesize())
}

// spent returns the processor time of the process, which does not depend on what else the machine does.
func spent(b *testing.B) time.Duration {
	b.Helper()
	var use syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &use); err != nil {
		b.Fatal(err)
	}
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}

// BenchmarkFirst measures the first index, without a store, what it keeps in memory, and by how much the process grows,
// with what is garbage at its end.
func BenchmarkFirst(b *testing.B) {
	var before, after runtime.MemStats
	grown := 0.0
	for b.Loop() {
		b.StopTimer()
		index, root, lines := real(b)
		debug.FreeOSMemory()
		runtime.ReadMemStats(&before)
		small := resident(b)
		b.StartTimer()
		if err := index.Refresh(b.Context(), root, nil); err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		grown = max(grown, resident(b)-small)
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(lines), "lines")
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/(1<<20), "MB-kept")
		b.ReportMetric(grown/(1<<20), "MB-RSS")
		runtime.KeepAlive(index)
		b.StartTimer()
	}
}

// BenchmarkQuery measures questions through the tool on an index that is up to date, with the walk that looks for
// changes: in words, for a name, for a text in quotes, and one that has no answer, so that everything is searched.
func BenchmarkQuery(b *testing.B) {
	index, root, lines := real(b)
	if err := index.Refresh(b.Context(), root, nil); err != nil {
		b.Fatal(err)
	}
	tool, err := index.Tool()
	if err != nil {
		b.Fatal(err)
	}
	for _, q := range []struct{ name, args string }{
		{"words", `{"query":"where is the result of a tool call cached"}`},
		{"name", `{"symbol":"Refresh","include_references":true}`},
		{"quoted", `{"query":"\"there is nothing to look for\""}`},
		{"nothing", `{"query":"xylophone zeppelin"}`},
	} {
		b.Run(q.name, func(b *testing.B) {
			call := &tools.Call{Tool: code.ToolName, Args: []byte(q.args), Trail: &tools.Trail{}}
			small, began := resident(b), spent(b)
			for b.Loop() {
				if _, err := tool.Run(b.Context(), call); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64((spent(b)-began).Microseconds())/1000/float64(b.N), "cpu-ms/op")
			b.ReportMetric(float64(lines), "lines")
			b.ReportMetric((resident(b)-small)/(1<<20), "MB-RSS")
		})
	}
}
