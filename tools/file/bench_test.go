package file_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/file"
)

// seconds measures one run.
func seconds(run func()) float64 {
	start := time.Now()
	run()
	return time.Since(start).Seconds()
}

type grepCase struct {
	name, dir, pattern string
	fold, expr         bool
}

func grepCases() []grepCase {
	return []grepCase{
		{"literal", "net", "unlikely literal", false, false},
		{"literal-src", ".", "unlikely literal", false, false},
		{"fold", "net", "unlikely literal", true, false},
		{"fold-src", ".", "unlikely literal", true, false},
		{"prefix", "net", `nothingLike[A-Z][a-z]+\(`, false, true},
		{"alternatives", "net", `(no such thing|nor this one)`, false, true},
		{"class", "net", `[A-Z]{3}[0-9]{4}xq`, false, true},
		{"bare", "net", `[qx][0-9][jz][0-9]`, false, true},
	}
}

// BenchmarkGrep searches Go's own net packages and reports how much longer that takes than grep -r over the same files:
// metric x-of-grep. The patterns match nothing or little, so that both read everything.
func BenchmarkGrep(b *testing.B) {
	grep, err := exec.LookPath("grep")
	if err != nil {
		b.Skip("grep is not here")
	}
	root, err := filepath.EvalSymlinks(filepath.Join(runtime.GOROOT(), "src")) //nolint:staticcheck // the tree beside the compiler is what is wanted
	if err != nil {
		b.Skip("no source tree")
	}
	for _, c := range grepCases() {
		b.Run(c.name, func(b *testing.B) {
			dir := filepath.Join(root, c.dir)
			list, err := file.New(file.Options{Workspace: func(tools.Origin) (string, error) { return dir, nil }})
			if err != nil {
				b.Fatal(err)
			}
			box := &box{t: b, tools: map[string]tools.Tool{}}
			for _, t := range list {
				box.tools[t.Definition.Name] = t
			}
			call := box.call("grep", args{"pattern": c.pattern, "case_sensitive": !c.fold})
			flags := []string{"-r", "-I", "-n"}
			if c.fold {
				flags = append(flags, "-i")
			}
			if c.expr {
				flags = append(flags, "-E")
			}
			flags = append(flags, "--", c.pattern, dir)
			var ours, theirs float64
			for b.Loop() {
				ours += seconds(func() {
					if _, err := box.tools["grep"].Run(b.Context(), call); err != nil {
						b.Fatal(err)
					}
				})
				theirs += seconds(func() {
					cmd := exec.CommandContext(b.Context(), grep, flags...)
					cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8")
					var exit *exec.ExitError
					if err := cmd.Run(); err != nil && (!errors.As(err, &exit) || exit.ExitCode() > 1) {
						b.Fatal(err)
					}
				})
			}
			b.ReportMetric(ours/theirs, "x-of-grep")
			b.ReportMetric(ours*1000/float64(b.N), "ours-ms/op")
		})
	}
}
