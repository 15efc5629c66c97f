package deploytest_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/zephbot/zephbot/cmd/internal/doctest"
)

// programs are those that pages name besides zephbot, whose commands cli checks itself, and what is checked of their
// commands. A program that is not listed may not be in a page.
var programs = map[string]func(d docs, args []string) string{
	"go":           docs.goCommand,
	"docker":       docs.docker,
	"helm":         docs.helm,
	"fly":          docs.fly,
	"bash":         docs.script,
	".ci/run":      docs.script,
	".ci/release":  docs.script,
	"./.ci/run":    docs.script,
	"cp":           docs.files,
	"install":      docs.files,
	"kubectl":      anything,
	"systemctl":    docs.unit,
	"journalctl":   docs.unit,
	"pg_dump":      anything, // TestBackupPostgreSQL runs it, and pg_restore
	"pg_restore":   anything,
	"git":          anything,
	"curl":         anything,
	"age":          anything,
	"tee":          anything,
	"tar":          anything,
	"export":       anything,
	"sha256sum":    anything,
	"mkdir":        anything,
	"openssl":      anything,
	"cd":           anything,
	"cat":          anything,
	"head":         anything,
	"chmod":        anything,
	"crontab":      anything,
	"find":         anything,
	"npm":          anything,
	"promtool":     anything,
	"grafana-cli":  anything,
	"make":         anything, // an example of a command that the bot runs
	"redis-server": anything,
	"zephbot":      anything,
}

func anything(docs, []string) string { return "" }

// docs checks commands against what the repository has.
type docs struct {
	e      evidence
	values string // of the chart
}

func missing(kind string, names ...string) string {
	for _, name := range names {
		if !exists(name) {
			return fmt.Sprintf("there is no %s %s", kind, name)
		}
	}
	return ""
}

// goCommand checks packages and tests.
func (d docs) goCommand(args []string) string {
	for i, arg := range args {
		switch {
		case strings.HasPrefix(arg, "./") && !strings.HasSuffix(arg, "..."):
			if text := missing("package", arg); text != "" {
				return text
			}
		case i > 0 && (args[i-1] == "-run" || args[i-1] == "-bench" || args[i-1] == "-fuzz"):
			for name := range strings.FieldsFuncSeq(arg, func(r rune) bool { return strings.ContainsRune("^$()|/", r) }) {
				if m := aTest.FindStringSubmatch(name); m != nil && !d.begins(m[1]) {
					return "there is no test " + name
				}
			}
		}
	}
	return ""
}

func (d docs) begins(name string) bool {
	for test := range d.e.tests {
		if strings.HasPrefix(test, name) {
			return true
		}
	}
	return false
}

// docker checks the files of a build, and files and profiles of Compose.
func (d docs) docker(args []string) string {
	switch {
	case len(args) > 1 && args[1] == "build":
		return missing("file", "Dockerfile")
	case len(args) < 2 || args[1] != "compose":
		return ""
	}
	all, err := os.ReadFile(filepath.Join(root, "docker-compose.yml"))
	if err != nil {
		return err.Error()
	}
	for i, arg := range args[:len(args)-1] {
		next := args[i+1]
		switch arg {
		case "-f", "--file":
			if text := missing("file", next); text != "" {
				return text
			}
		case "--profile":
			if !strings.Contains(string(all), "profiles: ["+next+"]") {
				return "there is no profile " + next
			}
		case "exec", "run", "logs", "stop", "start", "restart":
			service := args[len(args)-1]
			for _, a := range args[i+1:] {
				if !strings.HasPrefix(a, "-") {
					service = a
					break
				}
			}
			if !strings.Contains(string(all), "\n  "+service+":\n") {
				return "there is no service " + service
			}
		}
	}
	return ""
}

// helm checks the directory of the chart, and the values that are set.
func (d docs) helm(args []string) string {
	for i, arg := range args {
		if strings.HasPrefix(arg, "charts/") {
			if text := missing("chart", arg+"/Chart.yaml"); text != "" {
				return text
			}
		}
		if i == 0 || args[i-1] != "--set" && args[i-1] != "--set-string" {
			continue
		}
		key, _, _ := strings.Cut(arg, "=")
		for name := range strings.SplitSeq(key, ".") {
			if !regexp.MustCompile(`(?m)^ *#? ?` + regexp.QuoteMeta(name) + `:`).MatchString(d.values) {
				return "the chart has no value " + key
			}
		}
	}
	return ""
}

func (d docs) fly([]string) string { return missing("file", "fly.toml") }

// script checks scripts and steps of .ci.
func (d docs) script(args []string) string {
	name, args := args[0], args[1:]
	if name == "bash" && len(args) > 0 {
		name, args = args[0], args[1:]
	}
	name = strings.TrimPrefix(name, "./")
	if text := missing("script", name); text != "" || name != ".ci/run" {
		return text
	}
	for _, step := range args {
		if step != "day" && !slices.Contains(d.e.steps, step) {
			return "there is no step " + step
		}
	}
	return ""
}

// files checks the files that are copied: those with a name that looks like one of ours.
func (d docs) files(args []string) string {
	for _, arg := range args[1 : len(args)-1] {
		if (strings.HasSuffix(arg, ".service") || strings.HasSuffix(arg, ".example") || strings.HasSuffix(arg, ".yml")) && !exists(arg) {
			return "there is no file " + arg
		}
	}
	return ""
}

func (d docs) unit(args []string) string {
	if !strings.Contains(strings.Join(args, " "), "zephbot") && !slices.Contains(args, "daemon-reload") {
		return "it is about no unit of ours"
	}
	return missing("file", "zephbot.service")
}

// TestCommandsOfOthers checks every command of the documentation that is not ours against the files, tests, services and
// values that it names.
func TestCommandsOfOthers(t *testing.T) {
	t.Parallel()
	values, err := os.ReadFile(filepath.Join(root, "charts", "zephbot", "values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	d := docs{e: evidenceOf(t), values: string(values)}
	var names []string
	for name := range programs {
		names = append(names, name)
	}
	checked := 0
	for _, page := range pagesOf(t) {
		if page == "docs/howto.md" { // TestHowto runs them, on the packages that the page adds
			continue
		}
		found, err := doctest.Commands(root, page, names)
		if err != nil {
			t.Error(err)
		}
		for _, c := range found {
			check, known := programs[c.Args[0]]
			switch {
			case c.Inline:
			case !known:
				t.Errorf("%s: nothing checks commands of %s; see programs in docs_commands_test.go", c.String(), c.Args[0])
			default:
				if checked++; check(d, c.Args) != "" {
					t.Errorf("%s: %s", c.String(), check(d, c.Args))
				}
			}
		}
	}
	if checked < 30 {
		t.Errorf("%d commands were found", checked)
	}
}

func pagesOf(t *testing.T) []string {
	t.Helper()
	pages, err := doctest.Pages(root)
	if err != nil {
		t.Fatal(err)
	}
	return pages
}

var (
	aLink   = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	fenced  = regexp.MustCompile("(?s)```.*?```")
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	noSlug  = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

// TestLinks: every link between pages leads to a file, and to a heading in it.
func TestLinks(t *testing.T) {
	t.Parallel()
	for _, page := range pagesOf(t) {
		raw, err := os.ReadFile(filepath.Join(root, page))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range aLink.FindAllStringSubmatch(fenced.ReplaceAllString(string(raw), ""), -1) {
			path, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(path, "://") || strings.HasPrefix(path, "mailto:") {
				continue
			}
			to := page
			if path != "" {
				to = filepath.Join(filepath.Dir(page), path)
			}
			if !exists(to) {
				t.Errorf("%s: the link %s leads to nothing", page, m[1])
			} else if anchor != "" && !slices.Contains(anchors(t, to), anchor) {
				t.Errorf("%s: the link %s leads to no heading", page, m[1])
			}
		}
	}
}

// anchors are the headings of a page as links name them.
func anchors(t *testing.T, page string) []string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(root, page))
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, m := range heading.FindAllStringSubmatch(string(raw), -1) {
		list = append(list, strings.ReplaceAll(noSlug.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-"))
	}
	return list
}
