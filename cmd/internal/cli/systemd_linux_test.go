package cli_test

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// strangerID is a user and group that own nothing here, as that of a unit with DynamicUser.
const strangerID = 61337

// TestSystemdAsDocumented does what docs/deployment.md says, below a directory of its own: root makes the files, and the
// unit's user, who owns nothing but its state, starts the program with them. systemd itself does not run everywhere.
func TestSystemdAsDocumented(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can become the user of the unit")
	}
	root, err := os.MkdirTemp("", "zephbot-systemd-") //nolint:usetesting // others have to enter it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(root) })
	if err := os.Chmod(root, 0o755); err != nil { //nolint:gosec // others have to enter it
		t.Fatal(err)
	}
	for dir := root; dir != "/"; dir = filepath.Dir(dir) {
		if info, err := os.Stat(dir); err != nil || info.Mode()&0o001 == 0 {
			t.Skipf("others cannot enter %s", dir)
		}
	}
	inside := func(text string) string {
		return regexp.MustCompile(`/(etc|usr/local/bin|var/lib)/`).ReplaceAllString(text, root+"$0")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	bin, state := filepath.Join(root, "usr/local/bin"), filepath.Join(root, "var/lib/zephbot")
	for _, dir := range []string{bin, filepath.Join(root, "etc/systemd/system"), state} {
		if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // as they are on a machine
			t.Fatal(err)
		}
	}
	for from, to := range map[string]string{self: "zephbot", "../../../zephbot.service": "zephbot.service"} {
		copyFile(t, from, filepath.Join(root, to))
	}
	page, err := os.ReadFile("../../../docs/deployment.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "## systemd\n\n```sh\n")
	steps, _, _ := strings.Cut(rest, "```")
	steps = regexp.MustCompile(`(?m)^(systemctl|journalctl).*\n`).ReplaceAllString(steps, "")
	environment := append(os.Environ(), asZephbot+"=1", "PATH="+bin+":"+os.Getenv("PATH"))
	cmd := exec.CommandContext(t.Context(), "sh", "-eux", "-c", inside(steps)) //nolint:gosec // of the page
	cmd.Dir, cmd.Env = root, environment
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	unit, err := os.ReadFile(filepath.Join(root, "etc/systemd/system/zephbot.service"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(state, strangerID, strangerID); err != nil {
		t.Fatal(err)
	}
	starts := regexp.MustCompile(`(?m)^ExecStart(Pre)?=(.*)$`).FindAllStringSubmatch(string(unit), -1)
	if len(starts) != 2 {
		t.Fatalf("the unit starts %q", starts)
	}
	for _, start := range starts {
		words := strings.Fields(inside(start[2]))
		cmd := exec.CommandContext(t.Context(), words[0], words[1:]...) //nolint:gosec // of the unit
		cmd.Dir = state
		cmd.Env = append(environment, "ZEPH_DATA_DIR="+state, "HOME="+state)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: strangerID, Gid: strangerID}}
		out, err := cmd.CombinedOutput()
		// The configuration to begin with has no token: serve says so, and that is all that is wrong.
		if missing := strings.Contains(string(out), "telegram.token"); start[1] == "" && (err == nil || !missing) || start[1] != "" && err != nil && !missing {
			t.Errorf("%s: %v\n%s", start[2], err, out)
		}
		if strings.Contains(string(out), "permission denied") {
			t.Errorf("%s:\n%s", start[2], out)
		}
	}
}

// copyFile copies a file that everybody may run.
func copyFile(t *testing.T, from, to string) {
	t.Helper()
	in, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close() }()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o755) //nolint:gosec // it is a program
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(out, in); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestInitInAShell: what goes to a file when the output of config init does is the configuration and nothing else.
func TestInitInAShell(t *testing.T) {
	t.Parallel()
	w := here(t)
	if code := w.run(t, "config", "init"); code != 0 || w.out.Len() != 0 || !strings.Contains(w.err.String(), "written: ") {
		t.Errorf("exit code %d, out %q, err %q", code, w.out.String(), w.err.String())
	}
	if code := w.run(t, "config", "init", "-"); code != 0 || !strings.Contains(w.out.String(), "[telegram]") || strings.Contains(w.out.String(), "written") || w.err.Len() != 0 {
		t.Errorf("exit code %d, err %q, out begins %.80q", code, w.err.String(), w.out.String())
	}
}
