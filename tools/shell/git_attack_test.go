package shell_test

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zephbot/zephbot/policy/command"
	"github.com/zephbot/zephbot/tools/shell"
	"github.com/zephbot/zephbot/tools/shell/sandbox"
	"github.com/zephbot/zephbot/tools/toolstest"
)

// needGit skips where there is no git, which continuous integration must have.
func needGit(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		if os.Getenv("ZEPH_CI") != "" {
			t.Fatal("git is not installed")
		}
		t.Skip("git is not installed")
	}
}

// hostile is a repository in a workspace in which everything that git may start leaves a canary.
type hostile struct {
	*kit
	evil, canary, outside string
}

// newHostile creates a repository with two commits, a tag, a branch, a changed, a staged and an untracked file.
func newHostile(t *testing.T) *hostile {
	t.Helper()
	needGit(t)
	h := &hostile{kit: setup(t, shell.Options{}), outside: t.TempDir()}
	if err := os.MkdirAll(h.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	h.evil, h.canary = filepath.Join(h.dir, "evil.sh"), filepath.Join(h.dir, "canary")
	h.write("evil.sh", "#!/bin/sh\necho ran \"$0\" \"$@\" >>"+h.canary+"\ncat\n")
	h.git("init -q -b main .")
	h.git("config user.name x")
	h.git("config user.email x@example.org")
	h.write("a.txt", "one\n")
	h.write("b.bin", "two\n")
	h.git("add a.txt b.bin")
	h.git("commit -q -m first")
	h.write("a.txt", "one\ntwo\n")
	h.git("commit -q -a -m second")
	h.git("tag -a v1 -m v1")
	h.git("branch side")
	h.dirty()
	if err := os.Chmod(h.evil, 0o755); err != nil {
		t.Fatal(err)
	}
	return h
}

// dirty leaves changes, so that git has to look at the content of files.
func (h *hostile) dirty() {
	h.write("a.txt", "one\ntwo\nthree\n")
	h.write("b.bin", "2wo\n")
	h.write("new.txt", "new\n")
}

// git runs git as the owner of the repository would, without the machine's configuration.
func (h *hostile) git(words string) { h.gitIn(h.dir, strings.Fields(words)...) }

func (h *hostile) gitIn(dir string, words ...string) {
	h.t.Helper()
	c := exec.CommandContext(h.t.Context(), "git", words...)
	c.Dir = dir
	c.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "HOME="+h.outside, "GIT_ALLOW_PROTOCOL=file")
	if out, err := c.CombinedOutput(); err != nil {
		h.t.Fatalf("git %q: %v\n%s", words, err, out)
	}
}

// set writes settings, NAME=VALUE each, to the repository's own configuration; @ is the program that leaves the canary.
func (h *hostile) set(settings ...string) {
	for _, s := range settings {
		name, value, _ := strings.Cut(s, "=")
		h.gitIn(h.dir, "config", name, strings.ReplaceAll(value, "@", h.evil))
	}
}

// readingScripts returns reading git commands that need no approval: each command of the table, with the options that
// make it read more.
func readingScripts() []string {
	return []string{
		"git status", "git status -s --ignored --show-stash\ngit --no-pager status --porcelain", "git log", "git log -p", "git show --format=%G? HEAD", "git diff", "git diff --cached; git diff --stat HEAD~1",
		"git log --format='%H %G? %GS %GK %s' && git log --stat --graph --all --decorate", "git show HEAD:a.txt && git show v1 && git show --stat side", "git diff --word-diff -- a.txt b.bin",
		"git blame a.txt\ngit annotate -L 1,1 b.bin", "git ls-files -m\ngit ls-files -dmos", "git describe --tags --always --dirty", "git branch -a -v -v\ngit tag -l\ngit remote -v\ngit shortlog -sn HEAD",
		"git rev-parse --show-toplevel\ngit rev-list --all\ngit cat-file -p HEAD:a.txt\ngit ls-tree HEAD\ngit merge-base HEAD side", "cd sub && git status && git diff && git log -p",
		"git log --oneline | head -5", "git --literal-pathspecs diff a.txt",
	}
}

// looks runs every reading git command as the bot does, and wants no canary.
func (h *hostile) looks() {
	h.t.Helper()
	if err := os.MkdirAll(filepath.Join(h.dir, "sub"), 0o755); err != nil {
		h.t.Fatal(err)
	}
	for _, text := range readingScripts() {
		if _, ok := command.ReadsOnly(command.Parse(text)); !ok {
			h.t.Fatalf("%q is no reading command", text)
		}
		h.run(text)
		if ran, err := os.ReadFile(h.canary); err == nil {
			h.t.Errorf("%q ran a program: %s", text, ran)
			if err := os.Remove(h.canary); err != nil {
				h.t.Fatal(err)
			}
		}
	}
}

// TestAttackRepository: whatever the content of a repository, git commands that run without a question start nothing.
func TestAttackRepository(t *testing.T) {
	t.Parallel()
	for name, prepare := range hostileRepositories() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHostile(t)
			prepare(h)
			h.looks()
		})
	}
}

// hostileRepositories returns the ways in which a repository may name programs.
func hostileRepositories() map[string]func(*hostile) {
	return map[string]func(*hostile){
		"fsmonitor": func(h *hostile) { h.set("core.fsmonitor=@", "core.untrackedCache=true") },
		"hooks": func(h *hostile) {
			for _, hook := range []string{"post-index-change", "post-checkout", "pre-commit", "fsmonitor-watchman", "reference-transaction", "pre-auto-gc"} {
				h.link(".git/hooks/" + hook)
			}
		},
		"hooks elsewhere": func(h *hostile) { h.link("h/post-index-change"); h.set("core.hooksPath=" + filepath.Join(h.dir, "h")) },
		"external diff":   func(h *hostile) { h.set("diff.external=@") },
		"diff driver": func(h *hostile) {
			h.set("diff.x.command=@", "diff.y.textconv=@", "diff.y.cachetextconv=true", "diff.z z.textconv=@")
			h.write(".gitattributes", "*.txt diff=x\n*.bin diff=y\n")
		},
		"diff driver in info/attributes": func(h *hostile) {
			h.set("diff.x.command=@", "diff.y.textconv=@")
			h.write(".git/info/attributes", "*.txt diff=x\n*.bin diff=y\n")
		},
		"attributes file": func(h *hostile) {
			h.set("diff.x.command=@", "filter.x.clean=@", "core.attributesFile="+filepath.Join(h.dir, "attr"))
			h.write("attr", "*.txt diff=x filter=x\n")
		},
		"filters": func(h *hostile) {
			h.write(".gitattributes", "*.txt filter=x\n*.bin filter=y.y\n")
			h.set("filter.x.clean=@", "filter.x.smudge=@", "filter.x.required=true", "filter.y.y.process=@", "filter.y.y.clean=@")
			h.dirty()
		},
		"filter with a strange name": func(h *hostile) {
			h.write(".gitattributes", "*.txt filter=$(evil)\n*.bin filter=Q\n")
			h.set("filter.$(evil).clean=@")
			h.write("inc", "[filter \"Q\"]\n\tprocess = "+h.evil+"\n")
			h.set("include.path=" + filepath.Join(h.dir, "inc"))
			h.dirty()
		},
		"includes": func(h *hostile) {
			h.write("inc", "[core]\n\tfsmonitor = "+h.evil+"\n[filter \"x\"]\n\tclean = "+h.evil+"\n[diff]\n\texternal = "+h.evil+"\n")
			h.write(".gitattributes", "*.txt filter=x\n")
			h.set("include.path=../inc", "includeIf.onbranch:main.path=../inc")
			h.dirty()
		},
		"configuration of a worktree": func(h *hostile) {
			h.set("extensions.worktreeConfig=true")
			h.write(".git/config.worktree", "[core]\n\tfsmonitor = "+h.evil+"\n[filter \"x\"]\n\tclean = "+h.evil+"\n")
			h.write(".gitattributes", "*.txt filter=x\n")
			h.dirty()
		},
		"configuration at home": func(h *hostile) {
			h.write(".gitconfig", "[core]\n\tfsmonitor = "+h.evil+"\n\tpager = "+h.evil+"\n[filter \"x\"]\n\tclean = "+h.evil+"\n[diff]\n\texternal = "+h.evil+"\n")
			h.write(".config/git/config", "[core]\n\tfsmonitor = "+h.evil+"\n")
			h.write(".config/git/attributes", "*.txt filter=x\n")
			h.dirty()
		},
		"pagers": func(h *hostile) {
			h.set("core.pager=@", "pager.log=@", "pager.status=@", "pager.diff=@", "pager.branch=@", "core.editor=@")
		},
		"aliases": func(h *hostile) {
			h.set("alias.status=!@", "alias.log=!@", "alias.whatchanged=!@", "alias.annotate=!@")
		},
		"signatures": (*hostile).signed,
		"bare repository in a directory": func(h *hostile) {
			h.gitIn(h.dir, "init", "-q", "--bare", "sub")
			h.gitIn(filepath.Join(h.dir, "sub"), "config", "core.fsmonitor", h.evil)
			h.gitIn(filepath.Join(h.dir, "sub"), "config", "core.bare", "false")
			h.gitIn(filepath.Join(h.dir, "sub"), "config", "core.worktree", h.dir)
		},
		"git file that points elsewhere": func(h *hostile) {
			h.set("core.fsmonitor=@", "core.bare=false", "diff.external=@")
			h.write("sub/.git", "gitdir: ../.git\n")
		},
		"working tree elsewhere": func(h *hostile) { h.set("core.worktree="+h.outside, "core.fsmonitor=@") },
		"submodule":              (*hostile).submodule,
		"objects fetched late":   (*hostile).promisor,
		"commands of a remote": func(h *hostile) {
			h.set("remote.x.url=ext::"+h.evil, "remote.x.uploadpack=@", "core.sshCommand=@", "credential.helper=!@", "core.askPass=@", "core.gitProxy=@", "core.alternateRefsCommand=@")
		},
	}
}

// link makes a hook.
func (h *hostile) link(path string) {
	path = filepath.Join(h.dir, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		h.t.Fatal(err)
	}
	if err := os.Symlink(h.evil, path); err != nil {
		h.t.Fatal(err)
	}
}

// signed makes a commit and a tag that seem to be signed, and programs that would look at the signature.
func (h *hostile) signed() {
	h.set("gpg.program=@", "gpg.openpgp.program=@", "gpg.ssh.program=@", "gpg.x509.program=@", "gpg.ssh.defaultKeyCommand=@", "log.showSignature=true", "format.pretty=%H %G?")
	const script = `tree=$(git rev-parse HEAD^{tree})
printf 'tree %s\nauthor x <x> 1 +0000\ncommitter x <x> 1 +0000\ngpgsig -----BEGIN PGP SIGNATURE-----\n \n aaaa\n -----END PGP SIGNATURE-----\n\nsigned\n' "$tree" | git hash-object -t commit -w --stdin >id
git update-ref refs/heads/main "$(cat id)"`
	c := exec.CommandContext(h.t.Context(), "sh", "-c", script)
	c.Dir = h.dir
	c.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
	if out, err := c.CombinedOutput(); err != nil {
		h.t.Fatalf("%v\n%s", err, out)
	}
}

// submodule adds a nested repository with its own settings, which status and diff inspect.
func (h *hostile) submodule() {
	sub := filepath.Join(h.dir, "sub")
	if err := os.MkdirAll(sub, 0o755); err != nil {
		h.t.Fatal(err)
	}
	h.gitIn(sub, "init", "-q", "-b", "main", ".")
	h.gitIn(sub, "config", "user.name", "x")
	h.gitIn(sub, "config", "user.email", "x@example.org")
	h.write("sub/s.txt", "one\n")
	h.gitIn(sub, "add", "s.txt")
	h.gitIn(sub, "commit", "-q", "-m", "sub")
	h.write(".gitmodules", "[submodule \"s s\"]\n\tpath = sub\n\turl = ./sub\n\tignore = none\n")
	h.git("add .gitmodules")
	h.git("add sub")
	h.git("commit -q -m submodule")
	h.set("diff.submodule=diff", "status.submoduleSummary=true", "submodule.recurse=true", "diff.ignoreSubmodules=none", "submodule.s s.ignore=none")
	for _, s := range []string{"core.fsmonitor", "filter.only-here.clean", "diff.external"} {
		h.gitIn(sub, "config", s, h.evil)
	}
	h.write("sub/.gitattributes", "*.txt filter=only-here\n")
	h.write("sub/s.txt", "two\n")
}

// promisor makes a repository that lacks an object which git would fetch by the program of a remote.
func (h *hostile) promisor() {
	h.set("core.repositoryFormatVersion=1", "extensions.partialClone=x", "remote.x.promisor=true", "remote.x.url=ext::"+h.evil, "remote.x.uploadpack=@", "protocol.ext.allow=always", "protocol.allow=always")
	objects, err := filepath.Glob(filepath.Join(h.dir, ".git/objects/??/*"))
	if err != nil || len(objects) == 0 {
		h.t.Fatalf("no objects: %v", err)
	}
	for _, path := range objects[1:] { // what is left is enough for git to know that something is missing
		name := filepath.Base(filepath.Dir(path)) + filepath.Base(path)
		c := exec.CommandContext(h.t.Context(), "git", "cat-file", "-t", name)
		c.Dir = h.dir
		if out, err := c.Output(); err == nil && strings.TrimSpace(string(out)) == "blob" {
			if err := os.Remove(path); err != nil {
				h.t.Fatal(err)
			}
		}
	}
}

// TestReadingGitShowsWhatGitShows: in a harmless repository, the replacement of git prints the same as git.
func TestReadingGitShowsWhatGitShows(t *testing.T) {
	t.Parallel()
	h := newHostile(t)
	for text, want := range map[string]string{
		"git status --short":                    " M a.txt",
		"git diff --stat":                       "2 files changed",
		"git log --format=%s":                   "second\nfirst",
		"git log -1 --format=%an && git log -1": "second",
		"git show HEAD:a.txt":                   "one\ntwo",
		"git diff | grep three":                 "+three",
		"git -P branch":                         "* main",
		"git rev-parse --show-toplevel":         h.dir,
		"type cat; git status":                  "new.txt",
		"git log nowhere":                       "exit code 128",
		"mkdir d && cd d && git status":         "../new.txt",
		"git status; env | grep -c GIT_CONFIG":  "new.txt",
	} {
		if got := h.run(text); !strings.Contains(got.Text, want) {
			t.Errorf("%q: %q, want %q", text, got.Text, want)
		}
	}
	if res, _, err := h.call(t.Context(), shell.In{Command: "git status; nowhere a"}); err == nil || res == nil || !strings.Contains(res.Text, "line 1: nowhere") {
		t.Errorf("an error names another line: %v, %+v", err, res)
	}
}

// TestGitInReadingProfile: where a command can only read, git looks at a repository without what this names, too.
func TestGitInReadingProfile(t *testing.T) {
	t.Parallel()
	needGit(t)
	k := setup(t, shell.Options{Helper: sandbox.Self})
	if !k.r.Level(t.Context()).Reading() {
		t.Skip("the kernel cannot keep a command from changing anything")
	}
	h := newHostile(t)
	h.set("diff.external=@", "core.fsmonitor=@", "diff.y.textconv=@", "filter.x.clean=@", "filter.x.required=true")
	h.write(".gitattributes", "*.bin diff=y\na.txt filter=x\n")
	h.dirty()
	if err := os.MkdirAll(filepath.Dir(k.dir), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(h.dir, k.dir); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"git status --short": " M a.txt", "git diff": "+three", "git -C . log --format=%s": "second\nfirst", "git show HEAD:a.txt | tail -n 1": "two", "git status -v": "new.txt",
		"git branch -a": "* main", "bash -c 'git diff --stat'": "2 files changed", "git grep -n three": "a.txt:3:three", "git log -p | grep -c '^+two'": "2",
	} {
		c := toolstest.Call(shell.Name, args(t, shell.In{Command: text}))
		c.Trail.Reading = true
		if got, err := k.tool.Run(t.Context(), c); err != nil || !strings.Contains(got.Text, want) || strings.Contains(got.Text, "fatal") {
			t.Errorf("%q: %+v, %v, want %q", text, got, err, want)
		}
	}
}

// TestOlderGit: a git without safe.bareRepository reads where the kernel keeps it from doing more, and changes things
// under a rule; reading under a rule it says what it needs.
func TestOlderGit(t *testing.T) {
	t.Parallel()
	needGit(t)
	git, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	place := t.TempDir()
	script := "#!/bin/sh\n[ \"$1\" != version ] || { echo git version 2.34.1; exit 0; }\nexec " + git + " \"$@\"\n"
	if err := os.WriteFile(filepath.Join(place, "git"), []byte(script), 0o755); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	k := setup(t, shell.Options{Helper: sandbox.Self, ReadPaths: []string{place}, Environ: func() []string {
		return []string{"PATH=" + place + ":/usr/bin:/bin"}
	}})
	h := newHostile(t)
	if err := os.MkdirAll(filepath.Dir(k.dir), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(h.dir, k.dir); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		text, want string
		reading    bool
	}{
		{"git log --format=%s", "second", true}, {"git log --format=%s", "2.38 can", false}, {"git add -A && echo added", "added", false},
	} {
		if c.reading && !k.r.Level(t.Context()).Reading() {
			continue
		}
		call := toolstest.Call(shell.Name, args(t, shell.In{Command: c.text}))
		call.Trail.Reading = c.reading
		if got, err := k.tool.Run(t.Context(), call); err != nil || !strings.Contains(got.Text, c.want) {
			t.Errorf("%q, reading %v: %+v, %v, want %q", c.text, c.reading, got, err, c.want)
		}
	}
}

// changingScripts returns git commands that change something, as a rule or a standing approval lets them run, directly and
// below what starts them in its own way.
func changingScripts() []string {
	return []string{
		"git add -A; git commit -q -a -m third", "git commit -q -a -S -m signed", "git commit -q -a --allow-empty --trailer x=y -m t", "sh -c 'git add -A && git commit -q -m x'",
		"git stash; git stash list -p; git stash show -p; git stash pop", "git checkout -q -- a.txt b.bin; git checkout -q side; git checkout -q main", "git status -v; git status -vv; git -p status",
		"git merge -q --no-edit side; git merge --abort", "git checkout -q -b other HEAD~1; echo x >>a.txt; git commit -q -a -m x; git merge --no-edit main; git rebase main; git rebase --abort; git checkout -q -f main",
		"git rebase -q HEAD~1; git cherry-pick side; git revert --no-edit HEAD; git reset -q --hard", "git fetch -q . main; git fetch --all; git pull -q . side; git push -q . HEAD:refs/heads/x; git ls-remote .; git remote update",
		"env A=1 git add a.txt b.bin; timeout 60 git diff; echo a.txt | xargs git diff; find . -maxdepth 1 -name a.txt -exec git add {} ';'", "git archive --format=x HEAD; git archive --format=tar.gz HEAD >/dev/null; git archive HEAD >/dev/null",
		"git format-patch -q -1; git am 0001-*; git apply 0001-*; git range-diff HEAD~1 HEAD HEAD; git show --submodule=diff; git diff --submodule=diff", "git submodule update --init; git submodule status; git submodule summary; git submodule sync",
		"printf '#!/bin/sh\ngit add -A\ngit diff\ngit commit -q -m script\n' >s.sh; chmod +x s.sh; ./s.sh", "cd sub && git add -A; git commit -q -m x; cd ..; git -C sub status -v; git --git-dir=.git --work-tree=. status -v",
		"git gc -q --auto; git worktree add -q ../ws/tree side; git clone -q . copy; cd copy && git status && git commit -q --allow-empty -m x", "git blame a.txt; git grep one; git log -p --all -G.; git describe --dirty; git add -p </dev/null; git config --list",
	}
}

// TestAttackRepositoryUnderRule: whatever the content of a repository, git commands that change something start nothing
// of it unless a person has approved exactly this call.
func TestAttackRepositoryUnderRule(t *testing.T) {
	t.Parallel()
	more := map[string]func(*hostile){
		"merge driver": func(h *hostile) {
			h.write(".gitattributes", "*.txt merge=m\n")
			h.set("merge.m.driver=@", "merge.default=m")
		},
		"trailers, archives, filters of patches": func(h *hostile) {
			h.set("trailer.x.command=@", "trailer.x.cmd=@", "tar.x.command=@", "tar.tar.gz.command=@", "interactive.diffFilter=@", "sequence.editor=@", "gc.recentObjectsHook=@", "submodule.x.update=!@", "commit.gpgSign=true", "gpg.program=@", "alias.st=!@")
		},
		"submodules of its own": func(h *hostile) { h.submodule(); h.set("diff.external=@", "diff.y.textconv=@") },
	}
	maps.Copy(more, hostileRepositories())
	for name, prepare := range more {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHostile(t)
			prepare(h)
			if err := os.MkdirAll(filepath.Join(h.dir, "sub"), 0o755); err != nil {
				t.Fatal(err)
			}
			for i, text := range changingScripts() {
				if testing.Short() && (i+len(name))%3 != 0 {
					continue
				}
				h.run(text + "\ntrue")
				if ran, err := os.ReadFile(h.canary); err == nil {
					t.Errorf("%q ran a program: %s", text, ran)
					if err := os.Remove(h.canary); err != nil {
						t.Fatal(err)
					}
				}
			}
		})
	}
}

// TestGitUnderRule: a command under a rule does what git does, and says what is off.
func TestGitUnderRule(t *testing.T) {
	t.Parallel()
	h := newHostile(t)
	h.link(".git/hooks/pre-commit")
	h.set("diff.x.textconv=tr a-z A-Z <")
	h.write(".gitattributes", "a.txt diff=x\n")
	for _, each := range [][2]string{
		{"git add a.txt && git commit -m third", "1 file changed"},
		{"git commit -q --allow-empty -m fourth", "is off: hooks"},
		{"git checkout -q -b new && git branch --show-current", "new"},
		{"git -C . log -1 --format=%s", "fourth"},
		{"git --git-dir=.git --work-tree=. rev-parse --show-toplevel", h.dir},
		{"cd / && git -C " + h.dir + " log -1 --format=%s", "fourth"},
		{"echo more >>a.txt; git -c color.ui=always diff --stat", "1 \x1b[32m+"},
		{"git diff --textconv; git add -- a.txt && git stash -q && git stash show -p", "+more"},
		{"git -c core.hooksPath=.git/hooks commit -q --allow-empty -m hook && cat canary", "ran"},
		{"git tag 'a b'\\''c' 2>&1; git tag \"-m\" 'two  words' t1; git tag -n", "two  words"},
		{"git --version", "git version"},
		{"git nonsense; true", "not a git command"},
		{"git; true", "usage: git"},
	} {
		if got := h.run(each[0]); !strings.Contains(got.Text, each[1]) {
			t.Errorf("%q: %q, want %q", each[0], got.Text, each[1])
		}
	}
}

// TestApprovedGitKeepsItsHooks: a command that changes something was approved, and runs as the repository says.
func TestApprovedGitKeepsItsHooks(t *testing.T) {
	t.Parallel()
	h := newHostile(t)
	h.link(".git/hooks/pre-commit")
	c := toolstest.Call(shell.Name, args(t, shell.In{Command: "git status && git commit -a -m third"}))
	c.Trail.ApprovedBy = "somebody"
	if _, err := h.tool.Run(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(h.canary); err != nil {
		t.Errorf("the hook did not run: %v", err)
	}
}
