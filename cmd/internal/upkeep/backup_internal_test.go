package upkeep

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// TestChainThatIsRewritten: a backup waits while lines of the audit log are being erased.
func TestChainThatIsRewritten(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	for _, name := range []string{path, path + ".erase"} {
		if err := os.WriteFile(name, []byte("{}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := openChain(ended, path); !errors.Is(err, context.Canceled) {
		t.Errorf("while it is rewritten: %v", err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := os.Remove(path + ".erase"); err != nil {
			t.Error(err)
		}
	})
	names, files, err := openChain(t.Context(), path)
	wg.Wait()
	if err != nil || len(names) != 1 || len(files) != 1 || names[0] != path {
		t.Fatalf("%v, %v", names, err)
	}
	if err := files[0].Close(); err != nil {
		t.Error(err)
	}
}
