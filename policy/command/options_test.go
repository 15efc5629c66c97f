package command_test

import (
	_ "embed"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/zephbot/zephbot/policy/command"
)

// beyond holds commands, one a line, that do more than a rule "PROGRAM *" means; within holds ordinary ones.
var (
	//go:embed testdata/beyond.txt
	beyond string
	//go:embed testdata/within.txt
	within string
)

// departures returns the departures of all commands of a text that are not questions anyway.
func departures(text string) (list []command.Departure) {
	s := command.Parse(text)
	for i := range s.Commands {
		list = append(list, s.Commands[i].Departures...)
	}
	return list
}

// TestAttackOptions: a command that runs others, writes elsewhere or works elsewhere departs from the plain use of its
// program, is uncertain, or is judged as a separate command.
func TestAttackOptions(t *testing.T) {
	t.Parallel()
	count := 0
	for line := range strings.Lines(beyond) {
		text := strings.TrimSuffix(line, "\n")
		s := command.Parse(text)
		if count++; s.Certain() && len(departures(text)) == 0 && len(s.Commands) == 1 {
			t.Errorf("%q departs in nothing", text)
		}
		for _, d := range departures(text) {
			if d.Option == "" || !strings.HasPrefix(d.Why, "of ") {
				t.Errorf("%q: the departure %q has no words: %q", text, d.Option, d.Why)
			}
		}
	}
	if count < 450 {
		t.Errorf("the list has %d commands, want at least 450", count)
	}
}

func TestPlainUseDoesNotDepart(t *testing.T) {
	t.Parallel()
	for line := range strings.Lines(within) {
		text := strings.TrimSuffix(line, "\n")
		if list := departures(text); len(list) > 0 {
			t.Errorf("%q departs: %v", text, list)
		}
	}
}

// TestTables: every embedded table can be read, and what is wrong with one is named.
func TestTables(t *testing.T) {
	t.Parallel()
	if err := command.ReadTables(command.Tables); err != nil {
		t.Error(err)
	}
	for text, want := range map[string]string{
		"":                                      "tables/x.txt: the first row is not the programs",
		"@ -a\n":                                "tables/x.txt: the first row is not the programs",
		"  -a\nprograms: x\n":                   "tables/x.txt:1: the first line continues nothing",
		"programs: x\n":                         "tables/x.txt: the row @ is missing",
		"programs: x\n@ sub\nlog -p\n":          "tables/x.txt:3: no colon",
		"programs: x\n@ -a word -b\n":           `tables/x.txt:2: "word" stands behind an option`,
		"programs: x\n@ strange -a\n":           `tables/x.txt:2: "strange" is not known`,
		"programs: x\n@ first=0 -a\n":           `tables/x.txt:2: "first=0" is not known`,
		"programs: x\n@ -a |does -b\n":          "tables/x.txt:2: |does is no effect",
		"programs: x\n@ -a $b\n":                "tables/x.txt:2: $b is not defined",
		"programs: x\n$b: -b\n$b: -c\n@ -a\n":   "tables/x.txt:3: $b is defined twice",
		"programs: x\n@ sub\na, b: -p\nb: -q\n": `tables/x.txt:4: "b" has two rows`,
		"programs: x x\n@ -a\n":                 "tables/x.txt:1: x has two tables",
		"programs: x\n@ sub\na: ask\n":          "tables/x.txt:3: ask without a reason",
	} {
		err := command.ReadTables(fstest.MapFS{"tables/x.txt": {Data: []byte(text)}})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// TestEveryTableIsTried: each program with a table is in both lists, so that no table is unused.
func TestEveryTableIsTried(t *testing.T) {
	t.Parallel()
	tried := map[string]int{}
	for i, list := range [2]string{beyond, within} {
		for line := range strings.Lines(list) {
			for _, c := range command.Parse(strings.TrimSuffix(line, "\n")).Commands {
				tried[command.TableOf(c.Name)] |= i + 1
			}
		}
	}
	for _, name := range command.Tabled() {
		if tried[name] != 3 {
			t.Errorf("the table of %s is not tried both ways", name)
		}
	}
}

func TestDepartureInWords(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"git diff --output=x":           "--output of git diff writes a file",
		"git log -p --out x":            "--out of git log writes a file",
		"git -C x status":               "-C of git leads out of this directory",
		"git clone -u ./evil x y":       "-u of git clone starts another program",
		"git bundle create x HEAD":      "create of git bundle create writes a file where it is told",
		"git evil":                      "evil of git evil is no command of git that is known here; it may be an alias",
		"git log --surprise":            "--surprise of git log is not known to be harmless",
		"git add --pathspec-from-fil=x": "--pathspec-from-fil of git add reads a file that it obeys",
		"tar cf a.tar *":                "* of tar may become an option; write -- or ./ before it",
		"sort -uo x y":                  "-o of sort writes a file",
	} {
		list := departures(text)
		if len(list) == 0 || list[0].Option+" "+list[0].Why != want {
			t.Errorf("%q: %v, want %q", text, list, want)
		}
	}
}
