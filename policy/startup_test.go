package policy_test

import (
	"os"
	"strings"
	"testing"

	"github.com/zephbot/zephbot/policy"
)

// allowFiles allows every file tool everything.
func allowFiles() policy.Options {
	o := policy.Options{Permissions: map[string][]policy.Permission{}}
	for _, tool := range []string{"read", "write", "edit", "create_directory", "move_path", "copy_path", "delete_path"} {
		o.Permissions[tool] = []policy.Permission{{Pattern: "*", Action: policy.Allow}}
	}
	return o
}

// TestAttackStartupFiles: what a later command obeys is never written without asking, whatever the rules allow.
func TestAttackStartupFiles(t *testing.T) {
	t.Parallel()
	s := newSet(t, allowFiles())
	for name := range strings.FieldsSeq(`.gitconfig .config/git/config .config/git/hooks/pre-commit .bashrc .bash_profile .profile .zshrc .npmrc .yarnrc .cargo/config.toml
		.pip/pip.conf .config/pip/pip.conf .ssh/config .ssh/authorized_keys .netrc .inputrc .vimrc .vim/plugin/x.vim .gdbinit .pythonrc .envrc .curlrc .wgetrc
		.docker/config.json .m2/settings.xml .gradle/init.d/x.gradle .local/bin/ls .config/fish/config.fish .gnupg/gpg.conf .git/config .git/hooks/pre-commit
		.git/info/attributes .gitmodules repo/.git/hooks/post-checkout repo/.git/modules/sub/config sub/dir/.envrc .BashRC .GIT/HOOKS/pre-commit .config/go/env
		.local/lib/python3.12/site-packages/x.pth`) {
		for _, tool := range []string{"write", "edit", "create_directory"} {
			got := s.Decide(policy.Request{Tool: tool, Inputs: []string{"/ws/" + name}, InsidePaths: []string{"/ws"}})
			if got.Effect != policy.Ask || !strings.Contains(got.Reason.String(), "obeyed") || !strings.Contains(got.Reason.String(), "`"+name+"`") {
				t.Errorf("%s %s: %+v", tool, name, got)
			}
		}
		for _, tool := range []string{"move_path", "copy_path"} {
			if got := s.Decide(policy.Request{Tool: tool, Inputs: []string{"/ws/harmless", "/ws/" + name}}); got.Effect != policy.Ask {
				t.Errorf("%s to %s: %+v", tool, name, got)
			}
			if got := s.Decide(policy.Request{Tool: tool, Inputs: []string{"/ws/" + name, "/ws/harmless"}}); got.Effect != policy.Allow {
				t.Errorf("%s from %s: %+v", tool, name, got)
			}
		}
	}
}

// TestAttackStartupDirectories: a directory moved into place brings its files along.
func TestAttackStartupDirectories(t *testing.T) {
	t.Parallel()
	s := newSet(t, allowFiles())
	for _, name := range []string{".git", ".git/hooks", ".config", ".ssh", ".cargo", ".local", ".gradle", "repo/.git"} {
		if got := s.Decide(policy.Request{Tool: "move_path", Inputs: []string{"/ws/x", "/ws/" + name}}); got.Effect != policy.Ask {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestStartupLeavesTheRest(t *testing.T) {
	t.Parallel()
	s := newSet(t, allowFiles())
	for _, name := range []string{
		"main.go", ".gitignore", ".gitattributes", ".github/workflows/ci.yml", "package.json", "pyproject.toml", "Makefile", "go.mod", ".editorconfig", ".env.example",
		"config/git.md", "bin/tool", "docs/.bashrc.md", "hooks/pre-commit", "local/bin/x", "ssh/config", ".config/app/settings.json", "profile", "x.bashrc",
	} {
		for _, tool := range []string{"write", "edit", "move_path", "copy_path", "create_directory"} {
			if got := s.Decide(policy.Request{Tool: tool, Inputs: []string{"/ws/" + name}}); got.Effect != policy.Allow {
				t.Errorf("%s %s: %+v", tool, name, got)
			}
		}
	}
	for _, tool := range []string{"read", "delete_path"} {
		if got := s.Decide(policy.Request{Tool: tool, Inputs: []string{"/ws/.bashrc"}}); got.Effect != policy.Allow {
			t.Errorf("%s: %+v", tool, got)
		}
	}
	if got := s.Decide(policy.Request{Tool: "create_directory", Inputs: []string{"/ws/.config"}}); got.Effect != policy.Allow {
		t.Errorf("an empty directory: %+v", got)
	}
}

// TestStartupIsNeverAlways: no standing approval covers such a file, so none is offered. At the level full, nobody is
// asked.
func TestStartupIsNeverAlways(t *testing.T) {
	t.Parallel()
	s := newSet(t, policy.Options{})
	r := policy.Request{Tool: "write", Inputs: []string{"/ws/.bashrc"}, Grants: []policy.Grant{{Tool: "write", Kind: policy.GrantPath, Dir: "/ws"}, {Tool: "write", Kind: policy.GrantExact, Input: "/ws/.bashrc"}}}
	if got := s.Decide(r); got.Effect != policy.Ask {
		t.Errorf("granted: %+v", got)
	}
	if offer := s.Offers(policy.Request{Tool: "write", Inputs: []string{"/ws/.bashrc"}}); offer != nil {
		t.Errorf("offered: %v", offer)
	}
	o := allowFiles()
	o.Level = policy.Full
	if got := newSet(t, o).Decide(r); got.Effect != policy.Allow {
		t.Errorf("autonomy full: %+v", got)
	}
}

// TestStartupTable: the table has no mistakes, and one is told with file and line.
func TestStartupTable(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("startup.txt")
	if err != nil {
		t.Fatal(err)
	}
	if files, err := policy.ReadStartup(string(text)); err != nil || files < 100 {
		t.Errorf("%d files: %v", files, err)
	}
	for _, row := range []string{"git .gitconfig", "git:", "git: .gitConfig"} {
		_, err := policy.ReadStartup("# a\n\nssh: .ssh/\n" + row + "\n")
		if want := "startup.txt:4: a row is a program, a colon and names in lower case"; err == nil || err.Error() != want {
			t.Errorf("%q: %v", row, err)
		}
	}
}
