package footprint

import (
	"os"
	"path/filepath"
	"runtime/debug"
	"testing"
)

// TestTurnMemory sets the limit of the process, so it does not run beside others.
func TestTurnMemory(t *testing.T) { //nolint:paralleltest // it changes the limit of the process
	before := debug.SetMemoryLimit(1 << 30)
	defer debug.SetMemoryLimit(before)
	if got := TurnMemory(); got > 256<<20 || got < turnsLeast {
		t.Errorf("a quarter of 1 GiB is %d", got)
	}
	debug.SetMemoryLimit(100 << 20)
	if got := TurnMemory(); got != turnsLeast {
		t.Errorf("of 100 MiB: %d", got)
	}
}

func TestKernelNumbers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, tt := range []struct {
		text, key string
		want      int64
	}{
		{"1073741824\n", "", 1 << 30},
		{"max\n", "", 0},
		{"", "", 0},
		{"MemFree: 1 kB\nMemTotal:       24683 kB\n", "MemTotal:", 24683},
		{"MemFree: 1 kB\n", "MemTotal:", 0},
	} {
		path := filepath.Join(dir, "f")
		if err := os.WriteFile(path, []byte(tt.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := kernelNumber(path, tt.key); got != tt.want {
			t.Errorf("%q: %d, want %d", tt.text, got, tt.want)
		}
	}
	if got := kernelNumber(filepath.Join(dir, "none"), ""); got != 0 {
		t.Errorf("of a file that is not there: %d", got)
	}
}
