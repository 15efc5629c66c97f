package strict_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
)

// TestDockerfile: BuildKit, which is what Docker builds with, takes the file without a warning, and what it copies is
// there.
func TestDockerfile(t *testing.T) {
	t.Parallel()
	f, err := os.Open(root + "/Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	parsed, err := parser.Parse(f)
	if err != nil || len(parsed.Warnings) > 0 {
		t.Fatalf("%v %v", err, parsed)
	}
	stages, _, err := instructions.Parse(parsed.AST, nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	copied, checked := 0, 0
	for i := range stages {
		names = append(names, stages[i].Name)
		for _, command := range stages[i].Commands {
			switch c := command.(type) {
			case *instructions.CopyCommand:
				for _, path := range c.SourcePaths {
					copied++
					switch _, err := os.Stat(filepath.Join(root, path)); {
					case c.From == "" && err != nil:
						t.Errorf("COPY %s: %v", path, err)
					case c.From != "" && (!slices.Contains(names, c.From) || !writes(&stages[slices.Index(names, c.From)], path)):
						t.Errorf("COPY --from=%s %s: it makes no such file", c.From, path)
					}
				}
			case *instructions.HealthCheckCommand:
				checked++
				if !slices.Equal(c.Health.Test, []string{"CMD", "/usr/local/bin/zephbot", "health"}) || c.Health.Retries < 1 || c.Health.Interval <= c.Health.Timeout {
					t.Errorf("%+v", c.Health)
				}
			}
		}
	}
	if copied != 4 || checked != 1 || !slices.Contains(names, "fly") || names[len(names)-1] == "fly" {
		t.Errorf("%d files are copied, %d health checks, stages %q", copied, checked, names)
	}
}

// writes reports whether a line of a stage writes a file.
func writes(s *instructions.Stage, path string) bool {
	return slices.ContainsFunc(s.Commands, func(command instructions.Command) bool {
		run, ok := command.(*instructions.RunCommand)
		return ok && strings.Contains(strings.Join(run.CmdLine, " "), "-o "+path+" ")
	})
}
