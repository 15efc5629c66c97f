package deploytest_test

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestArchiveLinks: the links of the pages in an archive lead to a file of the archive, or to the site of the repository
// where the file is.
func TestArchiveLinks(t *testing.T) {
	t.Parallel()
	const ref = "v1.2.3"
	sites := []string{"https://github.com/zephbot/zephbot/blob/" + ref + "/", "https://raw.githubusercontent.com/zephbot/zephbot/" + ref + "/"}
	run := func(script string, args ...string) string {
		cmd := exec.CommandContext(t.Context(), "bash", slices.Concat([]string{"-euc", "source .ci/online.sh; " + script, "bash"}, args)...)
		cmd.Dir = root
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return string(out)
	}
	archived := strings.Fields(run(`echo "${archived[@]}"`))
	local := 0
	for _, page := range archived {
		if !strings.HasSuffix(page, ".md") {
			continue
		}
		before := read(t, page)
		after := run(`online "$1" "$2"`, page, ref)
		if strings.Count(before, "\n") != strings.Count(after, "\n") {
			t.Errorf("%s has %d lines, in an archive %d", page, strings.Count(before, "\n"), strings.Count(after, "\n"))
		}
		for _, m := range aLink.FindAllStringSubmatch(after, -1) {
			target, _, _ := strings.Cut(m[1], "#")
			for _, site := range sites {
				if path, ok := strings.CutPrefix(target, site); ok {
					if target = path; !exists(filepath.FromSlash(path)) || strings.HasSuffix(path, ".png") != (site == sites[1]) {
						t.Errorf("%s: the link %s leads to nothing", page, m[1])
					}
					break
				}
			}
			switch {
			case strings.Contains(m[1], "://"):
			case target == "" || slices.Contains(archived, target):
				local++
			default:
				t.Errorf("%s: the link %s leads out of the archive", page, m[1])
			}
		}
	}
	if local < 1 {
		t.Error("no link stays in the archive")
	}
}
