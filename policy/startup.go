package policy

import (
	"path"
	"strings"

	"github.com/zephbot/zephbot/policy/act"
	"github.com/zephbot/zephbot/policy/reason"
)

// startup is a file or directory that a program executes or obeys when it starts: writing it determines what the next
// command runs. The home directory of commands is the session's working directory, so the file tools can reach such
// files.
type startup struct {
	// name is the path from a home directory or from the top of a repository, in lower case. With a final "/" it is a
	// directory with everything below it.
	name string
	// runs says which program obeys it.
	runs string
}

// startupFiles returns the table. It does not contain project files that run only when somebody builds the project
// (Makefile, package.json, pyproject.toml), because these are what people work on.
func startupFiles() []startup {
	var list []startup
	add := func(runs, names string) {
		for name := range strings.FieldsSeq(names) {
			list = append(list, startup{name: name, runs: runs})
		}
	}
	add("git",
		".gitconfig .config/git/ .gitmodules .git/config .git/config.worktree .git/hooks/ .git/info/attributes .git/modules/ .git/worktrees/")
	add("Mercurial", ".hgrc .config/hg/ .hg/hgrc")
	add("every shell",
		".profile .bashrc .bash_profile .bash_login .bash_logout .bash_aliases .bash_completion .inputrc "+
			".zshrc .zshenv .zprofile .zlogin .zlogout .kshrc .cshrc .tcshrc .login .config/fish/ .pam_environment .config/environment.d/")
	add("direnv", ".envrc .direnvrc .config/direnv/")
	add("whoever starts a program by its name", ".local/bin/ .cargo/bin/")
	add("npm and its relatives",
		".npmrc .yarnrc .yarnrc.yml .pnpmfile.cjs .npm-init.js .config/yarn/ .config/pnpm/ .bunfig.toml")
	add("Python",
		".pythonrc .pythonrc.py .pydistutils.cfg .pypirc .pip/ .config/pip/ .config/uv/ .local/lib/ usercustomize.py sitecustomize.py .ipython/ .jupyter/ .condarc")
	add("Cargo", ".cargo/config .cargo/config.toml .cargo/env .cargo/credentials.toml")
	add("Go", ".config/go/env")
	add("Java build tools",
		".m2/ .mvn/ .gradle/init.d/ .gradle/init.gradle .gradle/init.gradle.kts .gradle/gradle.properties .sbt/ .mavenrc")
	add("Ruby, PHP or R", ".gemrc .irbrc .pryrc .bundle/config .composer/ .config/composer/ .rprofile .renviron")
	add("ssh", ".ssh/")
	add("programs that go to the network",
		".netrc .curlrc .config/curlrc .wgetrc .aws/ .kube/ .docker/ .config/gh/ .config/gcloud/ .config/containers/ .terraformrc .ansible.cfg .ansible/")
	add("GnuPG", ".gnupg/")
	add("the editor",
		".vimrc .gvimrc .exrc .viminfo .vim/ .config/nvim/ .config/vim/ .nanorc .config/nano/ .emacs .emacs.el .emacs.d/ .config/emacs/ .lesskey .config/lesskey")
	add("the debugger", ".gdbinit .config/gdb/ .gdbearlyinit .lldbinit")
	add("the database client", ".psqlrc .my.cnf .mylogin.cnf .sqliterc .config/sqlite3/")
	add("the terminal",
		".screenrc .tmux.conf .config/tmux/ .mailcap .xinitrc .xprofile .xsession .xsessionrc .config/autostart/ .config/systemd/")
	return list
}

// startups is the table, indexed by the end of the path.
type startups struct {
	files map[string]string // last component → name of its entry, see find
	all   []startup
}

func newStartups() startups {
	s := startups{files: map[string]string{}, all: startupFiles()}
	for _, e := range s.all {
		for part := range strings.SplitSeq(strings.TrimSuffix(e.name, "/"), "/") {
			s.files[part] = e.runs
		}
	}
	return s
}

// find returns which program obeys a file at p; "" for none. With carries, a directory above such a file counts too,
// because moving or copying a directory brings its files along.
func (s *startups) find(p string, carries bool) string {
	folded := "/" + strings.Trim(foldText(path.Clean(p)), "/")
	known := false
	for part := range strings.SplitSeq(folded[1:], "/") {
		if _, known = s.files[part]; known {
			break
		}
	}
	if !known {
		return ""
	}
	for _, e := range s.all {
		name, dir := strings.CutSuffix(e.name, "/")
		name = "/" + name
		switch {
		case strings.HasSuffix(folded, name), dir && strings.Contains(folded, name+"/"):
			return e.runs
		case carries && above(folded, name):
			return e.runs
		}
	}
	return ""
}

// above reports whether p ends in a directory that leads to the entry: /w/.git leads to /.git/hooks.
func above(p, entry string) bool {
	for i := 1; i < len(entry); i++ {
		if entry[i] == '/' && strings.HasSuffix(p, entry[:i]) {
			return true
		}
	}
	return false
}

// startup asks if an allowed call would write something that a later command obeys.
func (s *Set) startup(c *call) (answer, bool) {
	targets := c.inputs
	carries := false
	switch c.act {
	case act.WritesFile, act.MakesDirectory:
	case act.MovesPath, act.CopiesPath:
		carries = true
		if len(targets) > 1 { // the first is the source
			targets = targets[1:]
		}
	default:
		return answer{}, false
	}
	for _, target := range targets {
		if a, found := s.obeyed(target, carries); found {
			return a, true
		}
	}
	return answer{}, false
}

// obeyed returns the question about one file.
func (s *Set) obeyed(target string, carries bool) (answer, bool) {
	runs := s.startups.find(target, carries)
	if runs == "" {
		return answer{}, false
	}
	return answer{
		effect: Ask,
		rule:   "built-in: a file that programs obey when they start",
		code:   reason.StartupFile,
		about:  &target,
		detail: runs,
	}, true
}
