package policy_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/zephbot/zephbot/policy"
)

// What an exact rule covers is the words, where they run, and nothing around them.
func TestAttackGrantWords(t *testing.T) {
	t.Parallel()
	s := newSet(t, policy.Options{Unasked: policy.UnaskedReading, AllowNetwork: true})
	grants := offered(t, s, inWork(s, "git push origin main", nil), policy.OfferExact)
	if got := s.Decide(with(inWork(s, "git push origin main", nil), grants)); got.Effect != policy.Allow {
		t.Fatalf("the command itself: %+v", got)
	}
	for name, text := range map[string]string{
		"prefix environment":        "GIT_SSH_COMMAND=./evil git push origin main",
		"harmless-looking prefix":   "A=1 git push origin main",
		"environment before":        "A=1; git push origin main",
		"exported before":           "export GIT_DIR=/tmp/x; git push origin main",
		"unset before":              "unset HOME; git push origin main",
		"shell option before":       "set -a; git push origin main",
		"alias before":              "alias git=./evil; git push origin main",
		"function before":           "git() { ./evil; }; git push origin main",
		"hash before":               "hash -p ./evil git; git push origin main",
		"path before":               "PATH=. git push origin main",
		"another directory":         "cd sub && git push origin main",
		"another directory, maybe":  "cd sub; git push origin main",
		"pushed directory":          "pushd sub && git push origin main",
		"read variable before":      "read PATH < x; git push origin main",
		"printed variable before":   "printf -v PATH .; git push origin main",
		"mask before":               "umask 0; git push origin main",
		"one quoted word":           `"git push origin main"`,
		"two words in one":          `git "push origin" main`,
		"blank in a word":           `git push "origin " main`,
		"empty word":                `git push "" origin main`,
		"quoted newline":            "git push origin 'main\n'",
		"escaped blank":             `git push\ origin main`,
		"no-break space":            "git push\u00a0origin main",
		"look-alike":                "gіt push origin main",
		"look-alike argument":       "git push оrigin main",
		"invisible letter":          "git push origin\u200b main",
		"full width":                "ｇit push origin main",
		"another case":              "GIT push origin main",
		"by path":                   "./git push origin main",
		"by absolute path":          "/tmp/git push origin main",
		"wrapper env":               "env GIT_SSH=./x git push origin main",
		"wrapper sudo":              "sudo git push origin main",
		"wrapper xargs":             "echo --force | xargs git push origin main",
		"wrapper timeout":           "timeout 5 git push origin main",
		"wrapper command":           "command git push origin main",
		"wrapper exec":              "exec git push origin main",
		"shell":                     "bash -c 'git push origin main'",
		"another word":              "git push origin main --force",
		"option before":             "git -c core.sshCommand=./x push origin main",
		"beside another":            "git push origin main && ./evil",
		"substitution":              "git push origin main$(./evil)",
		"background":                "git push origin main & ./evil",
		"input":                     "git push origin main < x",
		"pipe into it":              "cat x | git push origin main",
		"here-document":             "git push origin main <<E\nx\nE",
		"writes":                    "git push origin main > .bashrc",
		"writes errors":             "git push origin main 2> .bashrc",
		"comment that is none":      "git push origin main #\\\n./evil",
		"braces":                    "git push {origin,evil} main",
		"tilde":                     "git push origin ~",
		"pattern":                   "git push origin mai?",
		"expansion":                 "git push origin $x",
		"dollar quotes":             "git push origin $'main\\x20'",
		"translated quotes":         "git push origin $\"main\"",
		"loop":                      "for i in 1; do git push origin main; done",
		"subshell with a directory": "(cd x && git push origin main)",
		"extended pattern":          "git push origin @(main|x)",
		"process substitution":      "git push origin main <(./evil)",
		"descriptor by name":        "git push origin main {fd}< x",
		"coprocess":                 "coproc git push origin main",
		"arithmetic":                "git push origin main $((x))",
		"both streams piped":        "git push origin main |& tee x",
		"carriage return":           "git push origin main\r",
		"not UTF-8":                 "git push origin main \xff",
		"NUL":                       "git push origin main\x00x",
	} {
		got := s.Decide(with(inWork(s, text, files{"/work/x": "data"}), grants))
		if got.Effect == policy.Allow {
			t.Errorf("%s: %q: %+v", name, text, got)
		}
	}
}

// A quoted star is a file of that name; an unquoted one is every file.
func TestAttackGrantPatterns(t *testing.T) {
	t.Parallel()
	s := newSet(t, policy.Options{})
	for granted, called := range map[string]string{
		"rm '*'": "rm *", `rm \*`: "rm *", "rm '{a,b}'": "rm {a,b}", "rm '~'": "rm ~", "rm [a-z]": `rm [a\-z]`, "rm '[a]'": "rm [a]", "rm 'x?'": "rm x?",
		"rm a'*'*": "rm a**", "rm 'a b'": "rm a b", `rm "\$x"`: "rm $x", "rm 'x'\\''y'": "rm xy",
	} {
		grants := offered(t, s, inWork(s, granted, nil), policy.OfferExact)
		if got := s.Decide(with(inWork(s, granted, nil), grants)); got.Effect != policy.Allow {
			t.Errorf("%q itself: %+v", granted, got)
		}
		for text, grant := range map[string][]policy.Grant{called: grants} {
			if got := s.Decide(with(inWork(s, text, nil), grant)); got.Effect == policy.Allow {
				t.Errorf("%q is covered by a rule for %q", text, granted)
			}
		}
	}
}

// A rule about a script covers what the script held when it was allowed.
func TestAttackGrantChangedScript(t *testing.T) {
	t.Parallel()
	s := newSet(t, policy.Options{Unasked: policy.UnaskedReading})
	before := files{
		"/work/x.sh": "good", "/work/tools/x.py": "good", "/work/Makefile": "good", "/work/package.json": "good", "/work/sub/x.sh": "good", "/work/data": "good",
		"/work/hook.js": "good", "/work/x.js": "good", "/work/x.mk": "good", "/work/x.go": "good", "/work/x.awk": "good", "/work/req.txt": "good",
	}
	for text, change := range map[string]struct{ file, content, name string }{
		"./x.sh":                            {"/work/x.sh", "evil", "./x.sh"},
		"bash x.sh":                         {"/work/x.sh", "evil", "x.sh"},
		"bash ./x.sh arg":                   {"/work/x.sh", "", "./x.sh"},
		"/work/x.sh":                        {"/work/x.sh", "->/work/sub/x.sh", "/work/x.sh"},
		"timeout 5 bash x.sh":               {"/work/x.sh", "evil", "x.sh"},
		"nice ./x.sh":                       {"/work/x.sh", "evil", "./x.sh"},
		"python3 tools/x.py":                {"/work/tools/x.py", "evil", "tools/x.py"},
		"cd sub && ./x.sh":                  {"/work/sub/x.sh", "evil", "sub/./x.sh"},
		"cd sub && bash x.sh && ./x.sh":     {"/work/sub/x.sh", "evil", "sub/x.sh"},
		"make all":                          {"/work/Makefile", "evil", "Makefile"},
		"make -j 4":                         {"/work/GNUmakefile", "evil", "GNUmakefile"},
		"make -fx.mk":                       {"/work/x.mk", "evil", "x.mk"},
		"make --file=x.mk":                  {"/work/x.mk", "evil", "x.mk"},
		"make -f x.mk":                      {"/work/x.mk", "evil", "x.mk"},
		"npm run build":                     {"/work/package.json", "evil", "package.json"},
		"node x.js a":                       {"/work/x.js", "evil", "x.js"},
		"someprogram -r./hook.js x":         {"/work/hook.js", "evil", "./hook.js"},
		"someprogram --require=./hook.js x": {"/work/hook.js", "evil", "./hook.js"},
		"go run x.go":                       {"/work/x.go", "evil", "x.go"},
		"someprogram x.js":                  {"/work/x.js", "evil", "x.js"},
		"cat data | someprogram":            {"/work/data", "evil", "data"},
		"someprogram < data":                {"/work/data", "evil", "data"},
		"cat < data | someprogram":          {"/work/data", "evil", "data"},
		"pip install -r req.txt":            {"/work/req.txt", "evil", "req.txt"},
		"pytest":                            {"/work/conftest.py", "evil", "conftest.py"},
		"someprogram missing":               {"/work/missing", "evil", "missing"},
	} {
		call := inWork(s, text, before)
		grants := offered(t, s, call, policy.OfferExact)
		if got := s.Decide(with(call, grants)); got.Effect != policy.Allow {
			t.Errorf("%q, unchanged: %+v", text, got)
		}
		after := files{}
		maps.Copy(after, before)
		after[change.file] = change.content
		if change.content == "" {
			delete(after, change.file)
		}
		got := s.Decide(with(inWork(s, text, after), grants))
		if got.Effect != policy.Ask || !strings.Contains(strings.Join(got.Changed, " "), change.name) {
			t.Errorf("%q after %s changed: %+v", text, change.file, got)
		}
	}
}

// The same content behind another link is a different file, and so is the same name in another directory.
func TestAttackGrantSwappedLink(t *testing.T) {
	t.Parallel()
	s := newSet(t, policy.Options{})
	before := files{"/work/run": "->/work/a", "/work/a": "same", "/work/b": "same"}
	after := files{"/work/run": "->/work/b", "/work/a": "same", "/work/b": "same"}
	grants := offered(t, s, inWork(s, "./run", before), policy.OfferExact)
	if got := s.Decide(with(inWork(s, "./run", after), grants)); got.Effect != policy.Ask || len(got.Changed) != 1 {
		t.Errorf("swapped link: %+v", got)
	}
	r := inWork(s, "./run", before)
	for i := range r.Scripts {
		if r.Scripts[i].Name == "." {
			r.Scripts[i].Path = "/elsewhere"
		}
	}
	if got := s.Decide(with(r, grants)); got.Effect != policy.Ask {
		t.Errorf("another working directory: %+v", got)
	}
}

// A file whose content is not known is never covered, and neither is a command whose files are not known.
func TestAttackGrantUnreadable(t *testing.T) {
	t.Parallel()
	s := newSet(t, policy.Options{})
	if got := s.Offers(inWork(s, "./run", files{"/work/run": "large"})); got != nil {
		t.Errorf("a file that is too large: %+v", got)
	}
	grants := offered(t, s, inWork(s, "./run", files{"/work/run": "x"}), policy.OfferExact)
	r := inWork(s, "./run", files{"/work/run": "x"})
	r.Scripts = nil
	if got := s.Decide(with(r, grants)); got.Effect != policy.Ask {
		t.Errorf("nobody looked: %+v", got)
	}
	for _, text := range []string{
		"make -C sub", "env -C sub ./run", "sudo -D sub ./run", "chroot /x ./run", "npm --prefix sub run x", "bash -c 'cd sub && ./run'", "cd ../x && ./run",
		"cd - && ./run", "cd && ./run", "someprogram " + strings.Repeat("a ", 100) + manyWords(),
	} {
		if got := s.Offers(inWork(s, text, files{"/work/run": "x", "/work/sub/run": "x"})); len(got) > 0 {
			t.Errorf("%.40q: %+v", text, got)
		}
	}
}

// manyWords are more names than are looked at.
func manyWords() string {
	var b strings.Builder
	for i := range 100 {
		b.WriteString("w" + strings.Repeat("x", i) + " ")
	}
	return b.String()
}

// A rule of one conversation, person, server or definition is none of another.
func TestAttackGrantOfAnother(t *testing.T) {
	t.Parallel()
	s := newSet(t, policy.Options{})
	call := policy.Request{Tool: "srv:read", Inputs: []string{`{}`}, Session: "s", Caller: "ann", Server: "addr", Definition: "def", ReadOnly: true}
	whole := policy.Grant{Tool: "srv:read", Kind: policy.GrantTool, Session: "s", Caller: "ann", Server: "addr", Definition: "def"}
	exact := policy.Grant{Tool: "srv:read", Kind: policy.GrantExact, Input: `{}`, Server: "addr", Definition: "def"}
	for _, g := range []policy.Grant{whole, exact} {
		if got := s.Decide(with(call, []policy.Grant{g})); got.Effect != policy.Allow {
			t.Errorf("%s itself: %+v", g.Kind, got)
		}
		for name, change := range map[string]func(*policy.Request){
			"other server":     func(r *policy.Request) { r.Server = "other" },
			"no server":        func(r *policy.Request) { r.Server = "" },
			"other definition": func(r *policy.Request) { r.Definition = "other" },
			"no definition":    func(r *policy.Request) { r.Definition = "" },
			"other tool":       func(r *policy.Request) { r.Tool = "srv:write" },
			"flagged content":  func(r *policy.Request) { r.Suspicious = "a page" },
		} {
			r := call
			change(&r)
			if got := s.Decide(with(r, []policy.Grant{g})); got.Effect == policy.Allow {
				t.Errorf("%s, %s: %+v", g.Kind, name, got)
			}
		}
	}
	for name, change := range map[string]func(*policy.Request){
		"other caller":  func(r *policy.Request) { r.Caller = "ben" },
		"other session": func(r *policy.Request) { r.Session = "t" },
	} {
		r := call
		change(&r)
		if got := s.Decide(with(r, []policy.Grant{whole})); got.Effect == policy.Allow {
			t.Errorf("%s: %+v", name, got)
		}
	}
	r := call
	r.Inputs = []string{`{}`, "/etc/x"}
	if got := s.Decide(with(r, []policy.Grant{exact})); got.Effect != policy.Allow {
		t.Errorf("the path is in the arguments: %+v", got)
	}
	r.Inputs = []string{`{"a":1}`, `{}`}
	if got := s.Decide(with(r, []policy.Grant{exact})); got.Effect == policy.Allow {
		t.Errorf("other arguments: %+v", got)
	}
	for name, g := range map[string]policy.Grant{
		"bound to nothing": {Tool: "srv:read", Kind: policy.GrantTool},
		"a built-in tool":  {Tool: "write", Kind: policy.GrantTool, Session: "s", Caller: "ann"},
		"bash":             {Tool: "bash", Kind: policy.GrantTool, Session: "s", Caller: "ann", Dir: "/work", Words: []string{"rm"}},
		"another's name":   {Tool: "x:bash", Kind: policy.GrantExact, Words: []string{"rm"}, Dir: "/work"},
		"bash by input":    {Tool: "bash", Kind: policy.GrantExact, Input: "rm", Dir: "/work"},
	} {
		r := inWork(s, "rm", nil)
		if name == "a built-in tool" || name == "bound to nothing" {
			r = policy.Request{Tool: g.Tool, Inputs: []string{"/work/x"}, Session: "s", Caller: "ann"}
		}
		if got := s.Decide(with(r, []policy.Grant{g})); got.Effect == policy.Allow {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// A rule for a prefix is offered where the other words are data. What turns an allow into an ask applies to it too.
func TestAttackGrantPrefix(t *testing.T) {
	t.Parallel()
	s := newSet(t, policy.Options{Unasked: policy.UnaskedReading, AllowNetwork: true})
	disk := files{"/work/x.sh": "x"}
	for _, text := range []string{
		"bash x.sh", "sh -c ls", "python3 x.py", "python3 -c 1", "node x.js", "perl -e 1", "ruby x.rb", "env ls", "sudo ls", "xargs rm", "find . -delete", "ssh host ls",
		"curl https://x", "wget https://x", "make all", "make -f x.mk", "npm run x", "npx x", "docker run x", "docker exec x ls", "kubectl exec x -- ls", "go run x.go",
		"go generate", "git -c a=b push", "git config x y", "git submodule update", "git bisect run x", "rm -rf x", "dd if=a of=b", "chmod 777 x", "awk 1 x", "sed s/a/b/ x",
		"tar xf x", "rsync a b", "vim x", "./x.sh a", "timeout 5 git push", "nice git push", "someprogram a", "crontab x", "at now", "tee x", "ln -s a b", "mkfs x", "pip install x",
	} {
		for _, o := range s.Offers(inWork(s, text, disk)) {
			if o.Kind == policy.OfferPrefix {
				t.Errorf("%q: a prefix is offered: %+v", text, o.Grants)
			}
		}
	}
	push := offered(t, s, inWork(s, "git push origin", disk), policy.OfferPrefix)
	mkdir := offered(t, s, inWork(s, "mkdir a", disk), policy.OfferPrefix)
	for _, text := range []string{"git push", "git push origin main", "git push -u origin 'a b'", "mkdir -p a/b c", "git push && mkdir x", "git push src/*.go"} {
		if got := s.Decide(with(inWork(s, text, disk), push, mkdir)); got.Effect != policy.Allow {
			t.Logf("%q: %+v", text, got)
		}
	}
	if got := s.Decide(with(inWork(s, "git push origin main", disk), push)); got.Effect != policy.Allow {
		t.Errorf("git push origin main: %+v", got)
	}
	for _, text := range []string{
		"git pushx", "git", "git fetch", "git -c core.sshCommand=./x push", "git push; ./x.sh", "git push --exec=./x.sh origin", "git push --receive-pack=./x.sh origin",
		"git push *", "git push {--exec=./x.sh,origin}", "git push $x", "git push > x", "git push < x", "cat x | git push", "A=1 git push", "cd sub && git push", "sudo git push",
		"git push $(./x.sh)", "git push --ex=./x.sh origin", "git push '--exec=./x y' origin", "git push --rec ./x.sh origin", "git 'push '", "mkdir [a]", "mkdir ?",
	} {
		if got := s.Decide(with(inWork(s, text, disk), push, mkdir)); got.Effect == policy.Allow {
			t.Errorf("%q: %+v", text, got)
		}
	}
	for name, g := range map[string]policy.Grant{
		"shorter than offered": {Tool: "bash", Kind: policy.GrantPrefix, Words: []string{"git"}, Dir: "/work"},
		"an interpreter":       {Tool: "bash", Kind: policy.GrantPrefix, Words: []string{"python3"}, Dir: "/work"},
		"no words":             {Tool: "bash", Kind: policy.GrantPrefix, Dir: "/work"},
		"no directory":         {Tool: "bash", Kind: policy.GrantPrefix, Words: []string{"git", "push"}},
		"no kind":              {Tool: "bash", Words: []string{"git", "push"}, Dir: "/work"},
	} {
		for _, text := range []string{"git push", "python3 x.py"} {
			if got := s.Decide(with(inWork(s, text, disk), []policy.Grant{g})); got.Effect == policy.Allow {
				t.Errorf("%s, %q: %+v", name, text, got)
			}
		}
	}
}
