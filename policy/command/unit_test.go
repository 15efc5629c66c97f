package command_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/policy/command"
)

func TestUnits(t *testing.T) {
	t.Parallel()
	words := func(list ...string) []command.Unit {
		var units []command.Unit
		for _, one := range list {
			units = append(units, command.Unit{Words: strings.Split(one, "|")})
		}
		return units
	}
	in := func(dir string, units []command.Unit) []command.Unit {
		for i := range units {
			units[i].Dir = dir
		}
		return units
	}
	for text, want := range map[string][]command.Unit{
		"git  push\torigin":       words("git|push|origin"),
		`g"it" 'push' \o"rigin"`:  words("git|push|origin"),
		`echo "a b" 'it'\''s' ""`: words(`echo|'a b'|'it'\''s'|''`),
		`echo $'a\x20b'`:          words(`echo|'a b'`),
		"echo ü \\ü":              words(`echo|'ü'|'ü'`),
		`echo "a\"b\$c"`:          words(`echo|'a"b$c'`),
		"rm *.go '*' a\\*b":       words(`rm|*.go|'*'|'a*b'`),
		`rm [a-z]\-'x y'*`:        words(`rm|[a-z]\-'x y'*`),
		"rm ~/x a~ b:~ c=~":       words("rm|~/x|'a~'|b:~|c=~"),
		"rm {a,b}":                words("rm|{a,b}"),
		"a\\\nb":                  words("ab"),
		"a; b && c || d":          words("a", "b", "c", "d"),
		"a\nb":                    words("a", "b"),
		"! a":                     words("a"),
		"cd x && a && b":          in("x", words("a", "b")),
		`cd "x y" && a`:           in("x y", words("a")),
		"cd /x && a | b":          in("/x", []command.Unit{{Words: []string{"a"}}, {Words: []string{"b"}, Feed: [][]string{{"a"}}, Fed: []string{"a"}}}),
		"a | b 1 | c": {
			{Words: []string{"a"}},
			{Words: []string{"b", "1"}, Feed: [][]string{{"a"}}, Fed: []string{"a"}},
			{Words: []string{"c"}, Feed: [][]string{{"a"}, {"b", "1"}}, Fed: []string{"a", "b 1"}},
		},
		"a < x | b <y 2>&1 >/dev/null": {
			{Words: []string{"a"}, Stdin: []string{"x"}},
			{Words: []string{"b"}, Feed: [][]string{{"a"}}, Fed: []string{"a < x"}, Stdin: []string{"y", "x"}},
		},
		"<x a": {{Words: []string{"a"}, Stdin: []string{"x"}}},
		"a 2>&- 3<&0 &>/dev/null &>>/dev/null >>/dev/null": words("a"),
	} {
		got, ok := command.Units(text)
		for i := range got {
			got[i].Text = ""
		}
		if diff := cmp.Diff(want, got); !ok || diff != "" {
			t.Errorf("%q: %t (-want +got)\n%s", text, ok, diff)
		}
	}
	got, _ := command.Units("a; 2>&1 b x </y  ; c")
	if len(got) != 3 || got[1].Text != "2>&1 b x </y" {
		t.Errorf("source text: %+v", got)
	}
}

func TestUnitsOfNoPlainScript(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", " ", "# only", "a # b", "a\n# b", "A=1 a", "A=1", "a $x", `a "$x"`, "a $(b)", "a `b`", "a <(b)", "a $((1))", "a @(b)", `a $"b"`, "a &", "coproc a", "a |& b",
		"(a)", "{ a; }", "if a; then b; fi", "for i in 1; do a; done", "f() { a; }", "export A=1", "declare x", "let x=1", "[[ a ]]", "time a", "a > x", "a >> x", "a &> x",
		"a <> x", "a << E\nb\nE", "a <<< b", "a {fd}< x", "a < $x", "a < *", "a >&x", "a >& $x", "a <&x-", "cd x", "cd x; a", "cd x || a", "cd x && a || b", "cd x && a; b",
		"cd && a", "cd - && a", "cd '' && a", "cd ../x && a", "cd x/../y && a", "cd ~ && a", "cd $x && a", "cd x > /dev/null && a", "cd -P x && a", "A=1 cd x && a",
		"a && cd x", "a | cd x", "cd x && cd y && a", "! cd x && a", "pushd x && a", "set -e; a", "source x", ". x", "eval a", "exec a", "alias a=b; a", "trap a EXIT",
		"read x", "printf -v x y", "unset x", "command a", "builtin a", "'' a", "*/a b", "{a,b} c", "a [\\\n'\n']", "a\x00", "a \xff", "'", "a 'b", "a | (b)", "(a) | b", "{ a; b; } < x",
		"a && (b)", "cd x && (b)", "cd x | a && b", strings.Repeat("(", 500),
	} {
		if got, ok := command.Units(text); ok || got != nil {
			t.Errorf("%q: %+v", text, got)
		}
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"./x.sh a":                   "./x.sh a?",
		"bash x.sh":                  "x.sh?",
		"python3 - x":                "x?",
		"bash ''":                    "",
		"cat a b":                    "",
		"git push":                   "",
		"go build x.go":              "",
		"go run x.go":                "run? x.go?",
		"make all":                   "GNUmakefile Makefile makefile",
		"make -fx.mk":                "GNUmakefile Makefile makefile x.mk?",
		"make -f x.mk":               "GNUmakefile Makefile makefile x.mk?",
		"make --file=x.mk all":       "GNUmakefile Makefile makefile x.mk?",
		"someprogram --x= --long -x": "",
		"docker ps":                  "",
		"docker compose up":          "Dockerfile compose.yaml compose.yml docker-compose.yaml docker-compose.yml",
		"timeout 5 bash x.sh":        "5? bash? x.sh?",
		"bash x.sh; bash x.sh":       "x.sh?",
		"":                           "",
	} {
		list, ok := command.Parse(text).Names()
		var got []string
		for _, f := range list {
			if f.Optional {
				f.Name += "?"
			}
			got = append(got, f.Name)
		}
		if !ok || strings.Join(got, " ") != want {
			t.Errorf("%q: %t, %v, want %s", text, ok, got, want)
		}
	}
	for _, text := range []string{
		"cd x; a", "bash -c 'cd x; a'", "make -C x", "env --chdir=x a", "sudo -D x a", "npm -w x run y", "npm --prefix x y", "chroot x a", "unshare a",
		"a " + strings.Repeat("x", 3) + many(100),
	} {
		if list, ok := command.Parse(text).Names(); ok {
			t.Errorf("%q: %v", text, list)
		}
	}
	for _, text := range []string{"make -k", "npm -D x", "go -w x", "make a -", "env a -"} {
		if _, ok := command.Parse(text).Names(); !ok {
			t.Errorf("%q: where it runs is known", text)
		}
	}
}

func many(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(" " + strings.Repeat("y", i+1))
	}
	return b.String()
}

// Every program that reads a certain file by itself is listed with that file.
func TestImplicitFiles(t *testing.T) {
	t.Parallel()
	for program, file := range map[string]string{
		"make": "Makefile", "gmake": "GNUmakefile", "npm": "package.json", "yarn": "package.json", "just": "justfile", "task": "Taskfile.yml", "rake": "Rakefile",
		"cargo": "build.rs", "pytest": "conftest.py", "tox": "tox.ini", "nox": "noxfile.py", "invoke": "tasks.py", "mvn": "pom.xml", "gradle": "build.gradle",
		"ant": "build.xml", "cmake": "CMakeLists.txt", "meson": "meson.build", "ninja": "build.ninja", "scons": "SConstruct", "vagrant": "Vagrantfile",
		"pre-commit": ".pre-commit-config.yaml", "docker-compose": "compose.yaml", "docker build": "Dockerfile", "pip install": "setup.py", "composer": "composer.json",
		"bundle": "Gemfile",
	} {
		list, _ := command.Parse(program + " x").Names()
		found := false
		for _, f := range list {
			found = found || f == command.FileName{Name: file}
		}
		if !found {
			t.Errorf("%s: %v, want %s", program, list, file)
		}
	}
}

func TestPrefixWords(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		"": 0, "git push a": 2, "git": 0, "git config a": 0, "git -C x push": 0, "go test ./...": 2, "go run x": 0, "gh pr list": 2, "kubectl get pods": 2, "kubectl exec x": 0,
		"docker ps": 2, "docker run x": 0, "systemctl status x": 2, "systemctl edit x": 0, "mkdir x": 1, "python3 x": 0, "someprogram x": 0, "rm x": 0,
	} {
		if got := command.PrefixWords(strings.Fields(text)); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}
