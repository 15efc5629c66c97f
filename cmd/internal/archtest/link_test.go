package archtest_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestMethodsArePruned: the linker drops methods that nobody calls only while no reachable code can look one up by a
// name that it learns at run time. A single template (text/template, html/template) is such code: it makes the program
// a third larger, and its resident memory with it.
func TestMethodsArePruned(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("links the program")
	}
	// The flags of the Dockerfile, and the linker's list of what keeps what: "from -> to", each with its marks.
	build := exec.CommandContext(t.Context(), "go", "build", "-tags", "grpcnotrace", "-ldflags", "-s -w -dumpdep", "-o", filepath.Join(t.TempDir(), "zephbot"), "./cmd/zephbot")
	build.Dir = root
	out, err := build.CombinedOutput()
	if err != nil {
		t.Fatalf("build: %v\n%s", err, out[max(0, len(out)-2000):])
	}
	edges := 0
	for line := range strings.Lines(string(out)) {
		from, to, ok := strings.Cut(strings.TrimSpace(line), " -> ")
		if !ok {
			continue
		}
		if edges++; strings.HasSuffix(to, "<ReflectMethod>") {
			t.Errorf("%s looks up methods by name; it is reachable from %s", to, from)
		}
	}
	if edges < 10_000 {
		t.Errorf("the linker listed %d edges, which cannot be all", edges)
	}
}
