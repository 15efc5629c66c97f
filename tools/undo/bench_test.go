package undo_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/zephbot/zephbot/tools/undo"
)

// BenchmarkKeep measures what keeping adds to a call that changes one file: alone, and in a directory with many.
func BenchmarkKeep(b *testing.B) {
	for _, files := range []int{0, 100, 2000} {
		for _, whole := range []bool{false, true} {
			b.Run(fmt.Sprintf("files=%d/whole=%t", files, whole), func(b *testing.B) {
				w := newWorld(b, b.TempDir(), undo.Limits{})
				for i := range files {
					if err := os.WriteFile(filepath.Join(w.dir, fmt.Sprint("f", i)), fmt.Appendf(nil, "%08192d", i), 0o600); err != nil {
						b.Fatal(err)
					}
				}
				if !whole {
					w.changes.Files[0].Paths = []string{filepath.Join(w.dir, "a")}
				}
				for i := 0; b.Loop(); i++ {
					w.run(b.Context(), fmt.Sprint("t", i), func() {
						if err := os.WriteFile(filepath.Join(w.dir, "a"), fmt.Appendf(nil, "%d", i), 0o600); err != nil {
							b.Fatal(err)
						}
					})
				}
			})
		}
	}
}
