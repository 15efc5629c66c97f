package app_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// secretDesk has a secret that rules keep from being read, and a repository that knows it; commands and file tools are
// allowed everything else.
func secretDesk(t *testing.T, rules string) *desk {
	t.Helper()
	files := map[string]string{
		"work/secret.txt": "CANARY\n", "work/dir/deep/secret.txt": "CANARY\n", "work/open.txt": "open\n", "work/other/x.txt": "x\n",
		"work/zephbot.toml": "data_dir = \"DIR/data\"\n[[tools.permissions.bash]]\npattern = \"*\"\naction = \"allow\"\n" + rules,
	}
	d := newDesk(t, files)
	if err := os.Symlink("secret.txt", filepath.Join(d.dir, "innocent")); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(filepath.Join(d.dir, "secret.txt"), filepath.Join(d.dir, "hard")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(d.dir, "secret-list"), []byte("secret.txt\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return d
}

// denials are the ways to say that secret.txt may not be read.
func denials() map[string]string {
	return map[string]string{
		"deny_read":          "[tools.file]\ndeny_read = [\"*/secret.txt\"]\n",
		"deny_read relative": "[tools.file]\ndeny_read = [\"secret.txt\"]\n",
		"permission":         "[[tools.permissions.read]]\npattern = \"*/secret.txt\"\naction = \"deny\"\n[[tools.permissions.read]]\npattern = \"*\"\naction = \"allow\"\n",
		"policy":             "[tools.policy]\nenabled = true\ndefault_effect = \"allow\"\n[[tools.policy.rules]]\neffect = \"deny\"\ntool = \"read\"\npaths = [\"secret.txt\", \"dir/*\"]\n",
		"policy for bash":    "[tools.policy]\nenabled = true\ndefault_effect = \"allow\"\n[[tools.policy.rules]]\neffect = \"deny\"\ntool = \"bash\"\npaths = [\"./secret.txt\", \"dir/*\"]\n",
		"authorization":      "[tools.authorization]\nenabled = true\n[[tools.authorization.rules]]\naction = \"deny\"\ntools = [\"*\"]\npaths = [\"DIR/work/secret.txt\", \"DIR/work/dir/*\"]\n",
	}
}

// TestAttackBashReadsDeniedFiles: a file that may not be read is not read through bash, under an allow rule for every
// command and after an approval.
func TestAttackBashReadsDeniedFiles(t *testing.T) {
	t.Parallel()
	for name, rules := range denials() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := secretDesk(t, rules)
			confined := strings.Contains(d.level(), "Landlock")
			for command, want := range map[string]string{
				"cat secret.txt": "deny", "cat ./secret.txt": "deny", "cat dir/../secret.txt": "deny", "cat $HOME/secret.txt": "deny", `cat "${PWD}/secret.txt"`: "deny",
				"cat ~/secret.txt": "deny", "cd dir/deep && cat secret.txt": "deny", "cd dir; cat ../secret.txt": "deny", "cat innocent": "deny", "cat < secret.txt": "deny",
				"cat secret.*": "deny", "cat s?cret.txt": "deny", `cat se''cret.txt`: "deny", `cat $'secret\x2etxt'`: "deny", "echo $(<secret.txt)": "deny",
				"while read l; do echo $l; done < secret.txt": "deny", "source secret.txt": "deny", ". ./secret.txt": "deny", "tac secret.txt": "deny", "base64 secret.txt": "deny",
				"python3 secret.txt": "deny", "cp secret.txt x; cat x": "deny", "cp --parents dir/deep/secret.txt other; cat other/dir/deep/secret.txt": "deny",
				"mv secret.txt x; cat x": "deny", "ln secret.txt y; cat y": "deny", "dd if=secret.txt": "deny", "tar cf - secret.txt": "deny", "awk 1 secret.txt": "deny",
				"git --no-pager blame secret.txt": "deny", "git show HEAD:secret.txt": "deny", "head -n1 -- secret.txt": "deny", "grep '' secret.txt": "deny",
				"timeout 5 cat secret.txt": "deny", "bash -c 'cat secret.txt'": "deny", "env A=1 cat secret.txt": "deny", "diff secret.txt open.txt": "deny",
				"git show HEAD": "ask", "git log -p": "ask", "git grep CAN": "ask", "git diff": "ask", "f=secret.txt; cat $f": "ask", "cat $(cat secret-list)": "ask",
				"xargs cat < secret-list": "ask", `find . -type f -exec cat {} +`: "ask",
				"cat open.txt": "allow", "ls -l secret.txt": "allow", "git status": "allow", "git log --oneline": "allow", "test -f secret.txt": "allow", "echo secret.txt": "allow",
				"cat other/*": "allow",
			} {
				got := d.check("bash", map[string]any{"command": command})
				if got.Effect != want && !(want == "ask" && got.Effect == "deny") {
					t.Errorf("%s: %+v, want %s", command, got, want)
				}
				if strings.Contains(command, "git") {
					continue
				}
				if out := d.call("bash", map[string]any{"command": command}); confined && strings.Contains(out.Text, "CANARY") {
					t.Errorf("%s printed it: %+v", command, out)
				}
			}
		})
	}
}

// TestAttackBashReadsWhatItDoesNotName: a command that reads whole directories is held by the kernel; where that is not
// there, it asks.
func TestAttackBashReadsWhatItDoesNotName(t *testing.T) {
	t.Parallel()
	for name, rules := range denials() {
		for _, sandboxed := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				rules := rules
				if !sandboxed {
					rules = "[tools.shell]\nsandbox = \"off\"\n" + rules
				}
				d := secretDesk(t, rules)
				confined := strings.Contains(d.level(), "Landlock") && sandboxed
				for _, command := range []string{
					"grep -rh '' .", "grep -rh '' dir", "tar cf - . | cat", "tar cf - dir", "cp -r dir copied; cat copied/deep/*", "python3 -c \"print(open('secr'+'et.txt').read())\"",
					"cat hard", "awk 1 /proc/self/cwd/secr*", "sh -c 'cat se*.txt'", "mv dir elsewhere; cat elsewhere/deep/*", "cat /proc/self/root$PWD/secret.txt",
				} {
					got := d.check("bash", map[string]any{"command": command})
					if !confined && got.Effect == "allow" && command != "cat hard" {
						t.Errorf("%s: %+v, want a question", command, got)
					}
					if !confined {
						continue
					}
					if out := d.call("bash", map[string]any{"command": command}); strings.Contains(out.Text, "CANARY") {
						t.Errorf("%s printed it: %+v", command, out)
					}
				}
				if confined {
					if got := d.check("bash", map[string]any{"command": "grep -rh x other"}); got.Effect != "allow" {
						t.Errorf("a search that the kernel holds: %+v", got)
					}
					if got := d.call("bash", map[string]any{"command": "cat open.txt"}); !strings.Contains(got.Text, "open") {
						t.Errorf("what may be read: %+v", got)
					}
				}
			})
		}
	}
}

// TestBashAsksWhereReadAsks: where read wants a person, cat does too.
func TestBashAsksWhereReadAsks(t *testing.T) {
	t.Parallel()
	d := secretDesk(t, "[[tools.permissions.read]]\npattern = \"other/*\"\naction = \"ask\"\n[[tools.permissions.read]]\npattern = \"*.txt\"\naction = \"allow\"\n")
	for command, want := range map[string]string{
		"cat other/x.txt": "ask", "cd other && cat x.txt": "ask", "cat open.txt": "allow", "cat secret-list": "ask", "make": "ask", "ls other": "allow", "cat < other/x.txt": "ask",
	} {
		if got := d.check("bash", map[string]any{"command": command}); got.Effect != want {
			t.Errorf("%s: %+v, want %s", command, got, want)
		}
	}
	for path, want := range map[string]string{"other/x.txt": "ask", "open.txt": "allow", "secret-list": "ask"} {
		if got := d.check("read", map[string]any{"path": path}); got.Effect != want {
			t.Errorf("read %s: %+v, want %s", path, got, want)
		}
	}
}

// TestAttackBashWritesDeniedFiles: deny rules of write, edit, delete_path, move_path and the like hold for the words of
// commands.
func TestAttackBashWritesDeniedFiles(t *testing.T) {
	t.Parallel()
	rule := func(tool, pattern string) string {
		return "[[tools.permissions." + tool + "]]\npattern = \"" + pattern + "\"\naction = \"deny\"\n[[tools.permissions." + tool + "]]\npattern = \"*\"\naction = \"allow\"\n"
	}
	d := secretDesk(t, rule("write", "other/*")+rule("delete_path", "*/open.txt")+rule("create_directory", "made*")+
		"[tools.policy]\nenabled = true\ndefault_effect = \"allow\"\n[[tools.policy.rules]]\neffect = \"deny\"\ntool = \"move_path\"\npaths = [\"dir\", \"dir/*\"]\n")
	for command, want := range map[string]string{
		"echo x > other/x.txt": "deny", "echo x >> other/new": "deny", "cd other; : > x.txt": "deny", "tee other/x.txt": "deny", "cp open.txt other": "deny", "cp open.txt other/y": "deny",
		"cp -t other open.txt": "deny", "mv open.txt other/": "deny", "touch other/z": "deny", "dd of=other/x.txt": "deny", "sed -i s/a/b/ other/x.txt": "deny",
		"truncate -s0 other/x.txt": "deny", "rm open.txt": "deny", "rm -f ./open.txt": "deny", "mv open.txt z": "deny", "mkdir made": "deny", "mkdir -p made/x": "deny", "mv dir gone": "deny",
		"ln open.txt other/l": "deny", "rm other/x.txt": "allow", "mkdir fine": "allow", "cp other/x.txt fine": "allow", "tee fine": "allow",
		"cp open.txt .bashrc": "ask", "tee .git/hooks/pre-commit": "ask", "mv other .git": "ask", "install open.txt .ssh/authorized_keys": "ask", "tee -a ~/.profile": "ask",
	} {
		if got := d.check("bash", map[string]any{"command": command}); got.Effect != want {
			t.Errorf("%s: %+v, want %s", command, got, want)
		}
	}
}

// TestAttackGitObjects: what a repository keeps of a denied file is not shown unasked.
func TestAttackGitObjects(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("no git here")
	}
	d := secretDesk(t, denials()["deny_read"])
	for command, want := range map[string]string{
		"git show HEAD:secret.txt": "deny", "git cat-file -p HEAD:secret.txt": "deny", "git show :secret.txt": "deny", "git -C dir show HEAD:./deep/secret.txt": "deny",
		"git cat-file -p abcdef": "ask", "git archive HEAD": "ask", "git stash show -p": "ask", "git checkout HEAD~1": "ask", "git log -S CANARY -p": "ask", "git diff --stat": "allow",
		"git format-patch -1": "ask", "git add -p": "ask", "git add open.txt": "allow", "git commit -m 'about secret.txt'": "ask", "git commit -m fix": "allow",
	} {
		if got := d.check("bash", map[string]any{"command": command}); got.Effect != want {
			t.Errorf("%s: %+v, want %s", command, got, want)
		}
	}
}
