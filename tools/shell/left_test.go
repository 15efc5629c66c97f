package shell_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/tools/shell"
)

// TestTransactionalAlone: without auto_rollback, the changes of a failed command remain, and what differs from the
// snapshot is reported.
func TestTransactionalAlone(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		command string
		want    string
		scope   []string
	}{
		"nothing":    {command: "exit 2", want: "[compared with the snapshot: nothing has changed]"},
		"touched":    {command: "touch a; exit 2", want: "[compared with the snapshot: nothing has changed]"},
		"same again": {command: "printf alpha > a; exit 2", want: "[compared with the snapshot: nothing has changed]"},
		"all":        {command: "echo x > a; echo y > new; mkdir -p n/e; echo z > n/e/w; rm sub/b; exit 2", want: `[compared with the snapshot, not rolled back: 1 changed ("a"), 2 created ("n", "new"), 1 deleted ("sub/b")]`},
		"same size":  {command: "printf ALPHA > a; exit 2", want: `1 changed ("a")]`},
		"mode":       {command: "chmod 600 tool.sh; exit 2", want: `1 changed ("tool.sh")]`},
		"link":       {command: "ln -sf tool.sh link; exit 2", want: `1 changed ("link")]`},
		"killed":     {command: "echo x > a; kill -9 $$", want: `1 changed ("a")]`},
		"scope":      {command: "echo x > a; echo y > sub/b; exit 2", scope: []string{"sub/**"}, want: `1 changed ("sub/b")]`},
		"many":       {command: "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do echo $i > x$i; done; exit 2", want: `12 created ("x1", "x10", "x11", "x12", "x2", "x3", "x4", "x5", "x6", "x7", and 2 more)]`},
		"it worked":  {command: "echo x > a", want: ""},
		"a weak end": {command: "echo x > a; exit 1", want: ""},
		"it reads":   {command: "ls nowhere; cat a", want: ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := setup(t, shell.Options{Transactional: true, TransactionScope: c.scope})
			k.write("a", "alpha")
			k.write("sub/b", "beta")
			k.write("tool.sh", "#!/bin/sh\n")
			if err := os.Symlink("a", filepath.Join(k.dir, "link")); err != nil {
				t.Fatal(err)
			}
			plain := setup(t, shell.Options{})
			plain.write("a", "alpha")
			plain.write("sub/b", "beta")
			plain.write("tool.sh", "#!/bin/sh\n")
			if err := os.Symlink("a", filepath.Join(plain.dir, "link")); err != nil {
				t.Fatal(err)
			}
			res, trail, err := k.call(t.Context(), shell.In{Command: c.command})
			if err != nil {
				t.Fatal(err)
			}
			if told := strings.Contains(res.Text, "[compared"); told != (c.want != "") || !strings.Contains(res.Text, c.want) || trail.RolledBack {
				t.Errorf("rolled back %t: %q, want %q", trail.RolledBack, res.Text, c.want)
			}
			plain.run(c.command)
			if diff := cmp.Diff(contents(t, plain.dir), contents(t, k.dir)); diff != "" {
				t.Errorf("the command did not do what it does elsewhere (-elsewhere +here):\n%s", diff)
			}
		})
	}
}

// TestSnapshotRequiredAlone: what cannot be snapshotted is not run, or is told to go without.
func TestSnapshotRequiredAlone(t *testing.T) {
	t.Parallel()
	for _, required := range []bool{true, false} {
		k := setup(t, shell.Options{Transactional: true, MaxSnapshotBytes: 10, SnapshotRequired: required})
		k.write("a", strings.Repeat("x", 100))
		res, _, err := k.call(t.Context(), shell.In{Command: "echo new > made"})
		_, missing := os.Stat(filepath.Join(k.dir, "made"))
		if required != (err != nil) || required != (missing != nil) {
			t.Errorf("required %t: %v, %v", required, err, missing)
		}
		if !required && !strings.Contains(res.Text, "what this command changes cannot be told") {
			t.Errorf("text %q", res.Text)
		}
	}
}

// contents returns the names and texts of the files below dir.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		raw, err := os.ReadFile(path)
		rel, _ := filepath.Rel(dir, path)
		all[rel] = string(raw)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
