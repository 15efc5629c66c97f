package shell_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/shell"
	"github.com/zephbot/zephbot/tools/shell/sandbox"
	"github.com/zephbot/zephbot/tools/toolstest"
)

// TestReadingCommand: a reading command for which reading is too little says what it wanted, if it failed; if it did
// not, the model is told. Nothing is left behind either way.
func TestReadingCommand(t *testing.T) {
	t.Parallel()
	k := setup(t, shell.Options{Helper: sandbox.Self})
	if !k.r.Level(t.Context()).Reading() {
		t.Skip("the kernel cannot keep a command from changing anything")
	}
	if err := os.MkdirAll(k.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(k.dir, "a.txt"), []byte("x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]struct{ walled, note string }{
		"cat a.txt":                                    {},
		"cat missing.txt":                              {}, // it failed by itself
		"echo y >out":                                  {walled: "wanted to write `out`"},
		"mkdir d && touch d/x":                         {walled: "wanted to create `d`"},
		"rm a.txt; mv a.txt b; exit 1":                 {walled: "wanted to delete `a.txt`"},
		"chmod 700 a.txt":                              {walled: "wanted to change the properties of `a.txt`"},
		"exec 3<>/dev/tcp/127.0.0.1/1":                 {walled: "wanted to reach the network"},
		"head -c 80000000 /dev/zero >$TMPDIR/big":      {walled: "needed more than a command gets that nobody was asked about"},
		"touch out 2>/dev/null; ls":                    {note: "wanted to write `out`, which was refused"},
		"cp a.txt b.txt 2>&1 | tail -n 1":              {note: "wanted to write `b.txt`"},
		"echo 1 >$TMPDIR/x; cat $TMPDIR/x; cat <<<'y'": {},
	} {
		c := toolstest.Call(shell.Name, args(t, shell.In{Command: text}))
		c.Trail.Reading = true
		got, err := k.tool.Run(t.Context(), c)
		walled, is := errors.AsType[*tools.Walled](err)
		switch {
		case is != (want.walled != "") || is && !strings.Contains(walled.Error(), want.walled):
			t.Errorf("%q: %v, want %q", text, err, want.walled)
		case !is && err != nil:
			t.Errorf("%q: %v", text, err)
		case !is && strings.Contains(got.Text, "[note]") != (want.note != "") || !is && !strings.Contains(got.Text, want.note):
			t.Errorf("%q: %q, want %q", text, got.Text, want.note)
		}
	}
	if entries, err := os.ReadDir(k.dir); err != nil || len(entries) != 1 {
		t.Errorf("%v, %v", entries, err)
	}
}
