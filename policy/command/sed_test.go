package command_test

import (
	"strings"
	"testing"

	"github.com/zephbot/zephbot/policy/command"
)

// sedShown are scripts that certainly only edit what they print.
func sedShown() []string {
	return []string{
		"p", " p ; p\n", "1p", "$p", "1,5p", "1,$ p", "2, /b/p", "3,+4p", "/a/p", "/a/,/b/s/c/d/", `/a\/b/p`, "s/a/b/", "s/a/b/gpI2", "s|a|b|;s,c,d,g", `s/a\/b/c\&d\//i`, "s//x/", "s/[a-z]*/x/",
		"s/[^a]/x/", "s/[[:space:]x[:alpha:]]/y/", `s/a/[/`, "p\n\n;p", "d", "/^$/d", "$!d", "/a/!d", "2q", "=", "n;d", "N;P;D", "G", "1!G;h;$!d", "x", "p;d",
	}
}

// sedOther are scripts that may do more, or that versions of sed read in different ways.
func sedOther() []string {
	return []string{
		"", ";", "e", "1e id", "p e", "s/a/b/e", "s/a/b/w x", "s/a/b/m", "s/a/b/M", "s/a/b/ge", "w x", "W x", "r x", "R x", "F", "Q", "l", "a x", "i\\\nx", "c x", "y/a/b/", "{p}", ":a", "ba", "# x", "p}", "1", "1,p", "1,",
		"1,+p", ",p", "~2p", "1~2p", `\,a,p`, "/a", `/a\`, "/a\\\n/p", "/a\n/p", "s", "s/", "s/a", "s/a/", "s/a/b", "s/a/b\\", "sxaxbx", "s a b ", "s\\a\\b\\", "s\na\nb\n", "s/a\n/b/", "s/a/b\nc/", "s/a/b\\\nc/", "s/[/b/", "s/[a", "s/[]/]/p;s/w x/b/g",
		"s/[^]/]/p;s/w x/b/g", "s/[a/]/b/", `s/[\n]/b/`, "s/[a\nb]/c/", "s/[[.a.]]/b/", "s/[[=a=]]/b/", "s/[[:a]/b/", "s/[[:A:]]/b/", "s/[[]/b/", "/[/]/p", "p p", "pp", "s/a/b/p p", "p\ne",
	}
}

// TestSedShows: only scripts of a small grammar are known to be harmless.
func TestSedShows(t *testing.T) {
	t.Parallel()
	for _, script := range sedShown() {
		if !command.SedShows(script) {
			t.Errorf("%q does not pass", script)
		}
	}
	for _, script := range sedOther() {
		if command.SedShows(script) {
			t.Errorf("%q passes", script)
		}
	}
}

// FuzzSedShows: the commands of a script that the small grammar accepts end where the next one begins.
func FuzzSedShows(f *testing.F) {
	for _, script := range append(sedShown(), sedOther()...) {
		f.Add(script)
	}
	f.Fuzz(func(t *testing.T, script string) {
		if !command.SedShows(script) {
			return
		}
		if !command.SedShows(script+";p") || !command.SedShows("p\n"+script) || command.SedShows(script+";e") {
			t.Errorf("%q passes by itself, but not beside another command", script)
		}
		if strings.Count(script, "\n") > 0 && !command.SedShows(strings.ReplaceAll(script, "\n", ";")) {
			t.Errorf("%q has a line break inside of a command", script)
		}
	})
}
