package command_test

import (
	"slices"
	"testing"

	"github.com/zephbot/zephbot/policy/command"
)

// TestInert: only programs that can do nothing else, with words that the shell changes to nothing but names of files.
func TestInert(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"ls -la": true, "cat a | head -3 2>/dev/null": true, "cd sub && grep x *.go": true, "": false, "ls >out": false,
		"cat ~/a": false, "cat $x": false, "sed -n 1p a": false, "env ls": false, "/bin/ls": false, "ls; $x": false,
	} {
		s := command.Parse(text)
		if got := s.Inert(); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// TestReadingCorners: words that lead elsewhere are returned, and what the shell may change is not taken for a path.
func TestReadingCorners(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct {
		path string
		ok   bool
	}{
		"git -C a* log": {"", false}, "git -C sub log": {"sub", true}, "grep --file=/etc/x a": {"/etc/x", true}, "rg --ignore-file=../x a": {"../x", true},
	} {
		paths, ok := command.ReadsOnly(command.Parse(text))
		if ok != want.ok || ok && !slices.Contains(paths, want.path) {
			t.Errorf("%q: %v, %v", text, paths, ok)
		}
	}
	for _, text := range []string{"head -n 3 a", "echo a", "awk 1 a", "sed -n 1p a", "printf x", "date +%s", "seq 3", "basename a", "uname -a x", "tr a b"} {
		command.Parse(text).Files() // whatever it knows of them
	}
	if _, found := command.Contains(command.Parse("x"), nil); found {
		t.Error("found no pattern")
	}
}

// TestDeepVariables: variables within variables are followed to a depth, also in braces.
func TestDeepVariables(t *testing.T) {
	t.Parallel()
	for text, bound := range map[string]bool{
		"x=a.sh; bash ${x}": true, `x=a.sh; y="${x}"; bash $y`: true,
		"a=1; b=$a; c=$b; d=$c; e=$d; f=$e; g=$f; h=$g; i=$h; j=$i; k=$j; l=$k; m=$l; n=$m; o=$n; p=$o; q=$p; r=$q; s=$r; bash $s": false,
	} {
		s := command.Parse(text)
		last := s.Commands[len(s.Commands)-1]
		if got := len(last.Values) > 0; got != bound {
			t.Errorf("%q: %v", text, last.Values)
		}
	}
}
