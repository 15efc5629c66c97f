package sandbox_test

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zephbot/zephbot/tools/shell/sandbox"
)

// everydayRepository makes the repository of the everyday list.
func everydayRepository(t *testing.T) string {
	t.Helper()
	script, err := filepath.Abs(filepath.Join("testdata", "everyday.sh"))
	must(t, err)
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	cmd := exec.CommandContext(t.Context(), "bash", "--noprofile", "--norc", script)
	cmd.Dir, cmd.Env = dir, []string{"PATH=" + searchPath(), "HOME=" + dir, "LANG=C.UTF-8"}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return dir
}

// programs are the words of a command that stand where a program does.
var programs = regexp.MustCompile(`(?:^|[|;(]|&&|\bdo|-exec|xargs(?: -[0n1]+)?) *([a-z][a-z0-9]*)`)

// installed reports whether the programs of a command are there, and work outside.
func installed(command string) bool {
	for _, found := range programs.FindAllStringSubmatch(command, -1) {
		cmd := exec.Command("bash", "-c", "type "+found[1]) //nolint:noctx // a builtin
		cmd.Env = []string{"PATH=" + searchPath()}
		if cmd.Run() != nil {
			return false
		}
	}
	return true
}

// confinedOutput runs a command as spec says and returns its output and exit code.
func confinedOutput(t *testing.T, spec sandbox.Spec, command string) (string, int) {
	t.Helper()
	read, write, err := os.Pipe()
	must(t, err)
	spec.Argv = []string{"/bin/bash", "--noprofile", "--norc", "-c", command}
	p, err := sandbox.Start(t.Context(), spec, write, write)
	_ = write.Close()
	must(t, err)
	var out bytes.Buffer
	var reader sync.WaitGroup
	reader.Go(func() { _, _ = io.Copy(&out, read) }) // until the last process is gone
	<-p.Done()
	reader.Wait()
	_ = read.Close()
	if s := p.Status(); s.Err != nil || s.Signal != "" {
		t.Fatalf("%q: %s", command, s.Why())
	}
	return out.String(), p.Status().Code
}

// TestEverydayReadingWorks: what people do all day to look at things works in the reading profile: the exit code is 0,
// and the output is what it is outside.
func TestEverydayReadingWorks(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile(filepath.Join("..", "..", "..", "policy", "testdata", "everyday_reading.tsv"))
	must(t, err)
	dir := everydayRepository(t)
	env := []string{
		"PATH=" + searchPath(), "HOME=/nonexistent", "LANG=C.UTF-8", "TERM=dumb", "GIT_OPTIONAL_LOCKS=0",
		"PAGER=cat", "GIT_PAGER=cat",
	}
	type row struct {
		command, output string
		same            bool
	}
	var rows []row
	absent := 0
	for line := range strings.Lines(strings.TrimPrefix(string(raw), "decision\toutput\tcommand\n")) {
		cols := strings.SplitN(strings.TrimSuffix(line, "\n"), "\t", 3)
		if !installed(cols[2]) {
			absent++
			continue
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		cmd := exec.CommandContext(ctx, "/bin/bash", "--noprofile", "--norc", "-c", cols[2])
		cmd.Dir, cmd.Env = dir, env
		out, err := cmd.CombinedOutput()
		cancel()
		if err != nil {
			t.Errorf("outside, %q: %v\n%s", cols[2], err, out)
			continue
		}
		if cols[1] == "outside" {
			continue
		}
		rows = append(rows, row{cols[2], string(out), cols[1] == "same"})
	}
	list := readingLevels(t)
	for i, l := range list {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			w := &world{tb: t, work: dir, allowed: dir}
			for j, r := range rows {
				if i > 0 && j%len(list) != i { // all of them at the first level, a part at each of the others
					continue
				}
				spec := l.profile(w)
				spec.Env = env
				out, code := confinedOutput(t, spec, r.command)
				if code != 0 || r.same && out != r.output {
					t.Errorf("%q: exit code %d and\n%s\nwant 0 and\n%s", r.command, code, out, r.output)
				}
			}
		})
	}
	t.Logf("%d commands, %d whose programs are not installed", len(rows), absent)
}
