package command_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/policy/command"
)

// uses writes a Use as letters.
func uses(u command.Use) string {
	var b strings.Builder
	for i, letter := range "rwkdmc" {
		if u&(1<<i) != 0 {
			b.WriteRune(letter)
		}
	}
	return b.String()
}

// described returns what Files found, in one line: each path as use:path, ? for one that may be one, ~ for a piece of
// code,
// * for a pattern.
func described(s command.Script) string {
	f := s.Files()
	var list []string
	for _, one := range f.List {
		mark := ""
		if one.Pattern {
			mark += "*"
		}
		switch {
		case one.Within:
			mark += "~"
		case !one.Sure:
			mark += "?"
		}
		list = append(list, uses(one.Use)+mark+":"+one.Path)
	}
	for _, b := range f.Bases[1:] {
		list = append(list, "in:"+b)
	}
	for name, value := range map[string]string{"unknown": f.Unknown.String(), "deep": f.Deep, "objects": f.Objects} {
		if value != "" {
			list = append(list, name+"("+value+")")
		}
	}
	return strings.Join(list, " ")
}

func TestFiles(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                              "",
		"echo secret; ls x; test -f y":  "",
		"cat a b":                       "r:a r:b",
		"./run.sh":                      "r:./run.sh deep(run.sh)",
		"cat $HOME/a":                   "r?:~/a deep(cat)",
		"cat ~/a ~bob/b":                "r:~/a unknown(a word is not known before it runs)",
		"cat < $HOME/a":                 "r:~/a",
		"cat < ~/a":                     "r:~/a",
		"cat < ~bob/a":                  "unknown(a word is not known before it runs)",
		"HOME=/etc; cat < $HOME/a":      "unknown(a word is not known before it runs)",
		"cat < ${PWD}/a":                "r:./a",
		"cat '~/a'":                     "r:./~/a",
		"cat a*":                        "r*:a*",
		"cat 0<&3 2>&1 >/dev/null":      "",
		"sort <> a":                     "rw:a",
		"cat <<< a":                     "",
		"grep x a; grep -r x d":         "r:a r:d deep(grep)",
		"rg x":                          "deep(rg)",
		"date -r a":                     "",
		"sort --frob=a -fb x":           "r?:a r?:b r:x",
		"tool a=b:c @d":                 "r?:a=b:c r?:a r?:b r?:c r?:@d r?:d deep(tool)",
		"tool p=~/x":                    "r?:p r?:~/x deep(tool) unknown(a word is not known before it runs)",
		"tool 'open(\"a b\")'":          "r?:open(\"a b\") r~:open r~:a r~:b deep(tool)",
		"timeout 5 cat a":               "r?:5 r?:cat r?:a r:a",
		"cd d; cat a":                   "r:a in:d",
		"cd d; cd e; cat a":             "r:a in:d in:d/e in:e",
		"cd d; cat a; cd d":             "r:a in:d",
		"cd; cat a":                     "r:a in:~",
		"cd -P /x; cat a":               "r:a in:/x",
		"cd -; cat a":                   "r:a unknown(it goes back to a directory)",
		"cd $x; cat a":                  "r:a unknown(it goes to a directory that is not known before it runs)",
		"cd d*; cat a":                  "r:a unknown(it goes to a directory that is not known before it runs)",
		"make -C d -Ce --directory=f x": "r?:-C in:d in:e in:f",
		"cd a; cd b; cd c; cd d; cat f": "many",
		"tee a b":                       "w:a w:b",
		"mkdir a; rm -f b; rmdir c":     "k:a d:b d:c",
		"mv a b":                        "rdm:a wm:b/a wm:b deep(mv)",
		"cp -- -a b":                    "rc:-a wc:b/-a wc:b deep(cp)",
		"cp -r d/ e":                    "rc:d/ wc:e/d wc:e deep(cp)",
		"cp --parents d/f e":            "rc:d/f wc:e/f wc:e/d/f wc:e",
		"cp --archive d e":              "rc:d wc:e/d wc:e deep(cp)",
		"cp -t d a":                     "rc:a wc:d/a wc:d",
		"cp -td a":                      "rc:a wc:d/a wc:d",
		"cp --target-directory=d a":     "rc:a wc:d/a wc:d",
		"ln a":                          "rwc:a deep(ln)",
		"cp":                            "",
		"dd if=a of=b bs=1":             "r:a w:b",
		"sed -n 1p a":                   "r:a",
		"sed -f p a":                    "r?:p r?:a deep(sed)",
		"sed -i s/x/y/ a":               "rw?:s/x/y/ rw?:a",
		"git":                           "",
		"git status":                    "",
		"git -C d -c x=y log a":         "r?:a in:d",
		"git log -p":                    "objects(git log)",
		"git diff --stat":               "",
		"git show HEAD:a":               "r?:HEAD:a r?:HEAD r?:a objects(git show)",
		"git blame a":                   "r?:a objects(git blame)",
		"git commit -m 'b c'":           "r?:b c r~:b r~:c",
		"git add -p; git show x":        "r?:x objects(git add)",
		"find . -exec cat {} +":         "deep(cat) unknown(a word is not known before it runs)",
		"cat 'a":                        "r:a unknown(the text cannot be parsed)",
		"$cmd a":                        "r?:a deep($cmd) unknown(its words are not known before it runs)",
		"xargs cat a":                   "r?:cat r?:a deep(cat) unknown(its words are not known before it runs)",
	} {
		got := described(command.Parse(text))
		switch {
		case want == "many":
			if !strings.Contains(got, "in:a/b/c") {
				t.Errorf("%s: %s", text, got)
			}
		case strings.HasPrefix(text, "make -C"):
			if !strings.Contains(got, "in:d") || !strings.Contains(got, "in:e") || !strings.Contains(got, "in:f") {
				t.Errorf("%s: %s", text, got)
			}
		case strings.Join(sortedFields(got), " ") != strings.Join(sortedFields(want), " "):
			t.Errorf("%s:\n got %s\nwant %s", text, got, want)
		}
	}
}

func sortedFields(s string) []string {
	list := strings.Split(s, " ")
	for i := range list { // few: insertion keeps it plain
		for j := i; j > 0 && list[j] < list[j-1]; j-- {
			list[j], list[j-1] = list[j-1], list[j]
		}
	}
	return list
}

// TestFilesAreBounded: a long list of words or directories is not known rather than cut.
func TestFilesAreBounded(t *testing.T) {
	t.Parallel()
	var words, dirs strings.Builder
	for i := range 300 {
		fmt.Fprintf(&words, " f%d", i)
		fmt.Fprintf(&dirs, "cd /d%d; ", i)
	}
	for text, want := range map[string]string{"cat" + words.String(): "it names too many files", dirs.String() + "cat a": "it goes to too many directories"} {
		f := command.Parse(text).Files()
		if diff := cmp.Diff(want, f.Unknown.String()); diff != "" {
			t.Errorf("unknown (-want +got):\n%s", diff)
		}
		if len(f.List) > 256 || len(f.Bases) > 8 {
			t.Errorf("%d files, %d directories", len(f.List), len(f.Bases))
		}
	}
	var empty command.Script
	empty.Commands = []command.Command{{Name: "x"}}
	if f := empty.Files(); len(f.List) != 0 {
		t.Errorf("%v", f)
	}
}

// FuzzFiles: no text makes it fail or grow.
func FuzzFiles(f *testing.F) {
	f.Add("cd a && cp -t b c; git -C x show HEAD:y < $HOME/z")
	f.Add("cat ~ ~+ '' \"\" {a,b} $(x) >& 3")
	f.Fuzz(func(t *testing.T, text string) {
		got := command.Parse(text).Files()
		if len(got.List) > 256 || len(got.Bases) > 9 || got.Bases[0] != "" {
			t.Errorf("%d files, bases %q", len(got.List), got.Bases)
		}
	})
}
