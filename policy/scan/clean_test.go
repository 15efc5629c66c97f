package scan_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/zephbot/zephbot/policy/scan"
	"github.com/zephbot/zephbot/policy/source"
)

// cleanFiles is how many files of foreign repositories TestCleanFiles looks at, of each place. SCAN_ALL=1 looks at all.
const cleanFiles = 1000

// TestCleanFiles: a flag makes everything ask until /new, so texts of foreign repositories, and what commands print about
// them, must raise none. It samples what every machine has that builds this: the standard library of Go with its tools and
// tests, and the modules that this one needs.
func TestCleanFiles(t *testing.T) {
	t.Parallel()
	// Not all of the module cache: what else is there depends on the machine.
	places := map[string][]string{"Go": {"env", "GOROOT"}, "modules": {"list", "-m", "-f", "{{if not .Main}}{{.Dir}}{{end}}", "all"}}
	const least = cleanFiles
	for name, command := range places {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, err := exec.CommandContext(t.Context(), "go", command...).Output()
			if err != nil {
				t.Fatal(err)
			}
			var paths []string
			for root := range strings.Lines(string(out)) {
				if root = strings.TrimSpace(root); root != "" { // a module that nothing needs is not here
					paths = append(paths, texts(t, root)...)
				}
			}
			if len(paths) < least {
				t.Skipf("only %d files are here", len(paths))
			}
			step := len(paths) / least
			if os.Getenv("SCAN_ALL") != "" {
				step = 1
			}
			seen := 0
			var listing strings.Builder
			for i := 0; i < len(paths); i += step {
				raw, err := os.ReadFile(paths[i])
				if err != nil || !utf8.Valid(raw) || bytes.IndexByte(raw, 0) >= 0 {
					continue
				}
				seen++
				fmt.Fprintf(&listing, "-rw-r--r-- 1 ann staff %8d Jan  2 15:04 %s\n", len(raw), paths[i])
				clean(t, source.File(paths[i]), paths[i], string(raw))
			}
			clean(t, source.Names, "the listing", listing.String())
			t.Logf("%d files", seen)
			if seen < least/2 {
				t.Errorf("only %d files could be read", seen)
			}
		})
	}
}

// texts lists the files below a directory that may be text, in the order of their names.
func texts(t *testing.T, root string) (paths []string) {
	t.Helper()
	const most = 256 << 10
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // what cannot be read is not looked at
		}
		if d.IsDir() && (d.Name() == ".git" || strings.Contains(path, "zephbot")) {
			return filepath.SkipDir
		}
		if info, err := d.Info(); err == nil && d.Type().IsRegular() && info.Size() > 0 && info.Size() < most {
			paths = append(paths, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

func clean(t *testing.T, from source.Source, what, text string) {
	t.Helper()
	for _, m := range scan.From(from, text) {
		t.Errorf("%s: %s: %.200q", what, m.Rule, text[max(0, m.Start-40):min(len(text), m.End+40)])
	}
}

// TestCleanOutputs: so must what commands print, and texts that speak about models, prompts and rules without giving
// orders. The texts are our own words, made after what was found in foreign repositories.
func TestCleanOutputs(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("testdata/clean.txt")
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Split(strings.TrimSpace(string(raw)), "\n----\n")
	for i, text := range all {
		clean(t, source.Command, fmt.Sprintf("text %d", i+1), text)
	}
	if len(all) < 30 {
		t.Errorf("only %d texts", len(all))
	}
}

// TestAttackCorpusInFiles pins how many of the texts of TestAttackCorpus are flagged in a file or an output, where the
// conditions are stricter: alone, and at the end of an ordinary source file.
func TestAttackCorpusInFiles(t *testing.T) {
	t.Parallel()
	code := strings.Repeat("// Copy copies from src to dst until either EOF is reached or an error occurs.\nfunc Copy(dst Writer, src Reader) (written int64, err error) {\n\treturn copyBuffer(dst, src, nil)\n}\n\n", 20)
	for name, want := range map[string][2]int{
		"hostile-tuning": {141, 142}, "hostile-held": {126, 129}, "innocent-tuning": {0, 0}, "innocent-held": {1, 2},
	} {
		var got [2]int
		list := corpus(t, name)
		for _, text := range list {
			for i, within := range []string{text, code + text + "\n\n" + code} {
				if len(scan.From(source.File("a.go"), within)) > 0 {
					got[i]++
				}
			}
		}
		t.Logf("%s: %d alone, %d within a file, of %d", name, got[0], got[1], len(list))
		if got != want {
			t.Errorf("%s: %v texts are flagged, pinned are %v", name, got, want)
		}
	}
}
