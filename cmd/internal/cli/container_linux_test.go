package cli_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/zephbot/zephbot/bot/telegram/telegramtest"
	"github.com/zephbot/zephbot/cmd/internal/deploytest"
	"github.com/zephbot/zephbot/cmd/internal/doctest"
)

// containerUser is the user of the image.
const containerUser = "10001"

// container is the image, played without a container engine: its last stage is built into a directory out of what this
// machine has in place of Debian, and the program starts in it with the options of `docker run`.
type container struct {
	*testing.T
	image    deploytest.Stage
	fake     *telegramtest.Server
	port     string
	cmd      *exec.Cmd
	said     *heard
	env      []string
	confined []string // what gives a process the rights of one of the container
	done     chan struct{}
}

// buildContainer makes the root of a container and becomes its first process. ROOT is an empty directory, PROGRAM is
// what the build stage made, SETUP are the RUN lines, TMP and VOLUME the options of the mounts, "" = as the image has
// /data, which is what an engine makes of a new volume.
const buildContainer = `set -eu
mount -t tmpfs -o mode=755 root "$ROOT"
cd "$ROOT"
for dir in bin sbin lib lib32 lib64 usr; do
	if [ -L "/$dir" ]; then cp -a "/$dir" .; elif [ -d "/$dir" ]; then mkdir "$dir"; mount --bind "/$dir" "$dir"; fi
done
mkdir proc dev tmp var
cp -a /etc etc
mount --rbind /proc proc
mount --rbind /dev dev
mount -t tmpfs -o mode=755 bin usr/local/bin
cp "$PROGRAM" usr/local/bin/zephbot
chroot . /bin/sh -euc "$SETUP"
mount -t tmpfs -o "${VOLUME:-$(stat -c 'uid=%u,gid=%g,mode=%a' data)}" data data
mount -t tmpfs -o "nosuid,nodev,noexec,$TMP" tmp tmp
for dir in bin sbin lib lib32 lib64 usr usr/local/bin; do
	if mountpoint -q "$dir"; then mount -o remount,bind,ro "$dir"; fi
done
mount -o remount,ro root .
exec chroot . /usr/bin/env -i -C /data "$@"
`

// debian are the words of RUN lines that need Debian's archive; this machine has those packages.
var debian = regexp.MustCompile(`^(apt-get|rm -rf /var/lib/apt)`)

// startContainer starts a stage of the Dockerfile. volume are options of the mount at /data.
func startContainer(t *testing.T, stage, volume string) *container {
	t.Helper()
	if os.Geteuid() != 0 || exec.CommandContext(t.Context(), "unshare", "--mount", "true").Run() != nil {
		t.Skip("only root can play a container")
	}
	if _, err := os.Stat("/usr/bin/tini"); err != nil && os.Getenv("ZEPH_CI") == "" {
		t.Skip("there is no tini")
	}
	c := &container{T: t, fake: telegramtest.New(telegramtest.Options{}), port: freePort(t), said: newHeard(), done: make(chan struct{})}
	c.image = stageOf(t, stage)
	api, err := c.fake.Start()
	if err != nil {
		t.Fatal(err)
	}
	c.fake.AddUser(telegramtest.User{ID: 1001, FirstName: "Ann", Language: "en"})
	c.fake.AddPrivate(1001)
	vars := c.image.Env()
	maps.Copy(vars, map[string]string{
		"ZEPH_TELEGRAM_TOKEN": c.fake.Token(), "ZEPH_TELEGRAM_API_URL": api, "ZEPH_TELEGRAM_ALLOWED_USERS": "1001", "ZEPH_LLM_PROVIDERS_MAIN_TYPE": "offline",
		// The network is the one of this machine, on which other tests run.
		"ZEPH_METRICS_LISTEN": ":" + c.port, asZephbot: "1", "PATH": "/usr/local/bin:/usr/bin:/bin",
	})
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		c.env = append(c.env, name+"="+vars[name])
	}
	user, options := c.image.Last("USER"), dockerOptions(t)
	if user == containerUser+":"+containerUser {
		c.confined = []string{
			"/usr/bin/setpriv", "--reuid=" + containerUser, "--regid=" + containerUser, "--clear-groups", "--bounding-set=-all", "--inh-caps=-all",
			"--no-new-privs", "--",
		}
	} else if user != "root" {
		t.Fatalf("USER %s", user)
	}
	var setup []string
	for _, i := range c.image.All {
		if i.Name != "RUN" {
			continue
		}
		for part := range strings.SplitSeq(i.Args, " && ") {
			if !debian.MatchString(part) {
				setup = append(setup, part)
			}
		}
	}
	c.cmd = exec.CommandContext(context.WithoutCancel(t.Context()), "unshare", slices.Concat(
		[]string{"--mount", "--propagation", "private", "/bin/sh", "-c", buildContainer, "build"}, c.env, c.confined, words(t, &c.image, "ENTRYPOINT"), words(t, &c.image, "CMD"))...)
	c.cmd.Env = append(os.Environ(), "ROOT="+t.TempDir(), "PROGRAM="+ownFile(t), "SETUP="+strings.Join(setup, "\n"), "VOLUME="+volume, "TMP="+options["--tmpfs"])
	c.cmd.Stdout, c.cmd.Stderr = c.said, c.said
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		_ = c.cmd.Wait() // the exit code says it
		close(c.done)
	})
	t.Cleanup(func() {
		if program := c.program(); program != 0 { // the test has failed
			_ = syscall.Kill(program, syscall.SIGKILL)
		}
		_ = c.cmd.Process.Kill()
		wg.Wait()
		c.fake.Close()
	})
	return c
}

func ownFile(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return self
}

func words(t *testing.T, s *deploytest.Stage, instruction string) []string {
	t.Helper()
	list, err := s.Words(instruction)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// stageOf returns a stage of the Dockerfile; "" is the last one.
func stageOf(t *testing.T, name string) deploytest.Stage {
	t.Helper()
	raw, err := os.ReadFile("../../../Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	list, err := deploytest.Stages(string(raw))
	if err != nil {
		t.Fatal(err)
	}
	if name == "" {
		return list[len(list)-1]
	}
	i := slices.IndexFunc(list, func(s deploytest.Stage) bool { return s.Name == name })
	if i < 0 {
		t.Fatalf("no stage %s", name)
	}
	return list[i]
}

// dockerOptions are those with which docs/deployment.md starts the image.
func dockerOptions(t *testing.T) map[string]string {
	t.Helper()
	found, err := doctest.Commands("../../..", "docs/deployment.md", []string{"docker"})
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(found, func(c doctest.Command) bool { return len(c.Args) > 1 && c.Args[0] == "docker" && c.Args[1] == "run" })
	if i < 0 {
		t.Fatal("the page does not start the image")
	}
	options, args := map[string]string{}, found[i].Args[2:]
	for n, arg := range args {
		if strings.HasPrefix(arg, "-") && n+1 < len(args) {
			options[arg] = args[n+1]
		}
	}
	options["--tmpfs"] = strings.TrimPrefix(options["--tmpfs"], "/tmp:")
	for name, want := range map[string]string{
		"--tmpfs": "size=256m,mode=1777", "--cap-drop": "ALL", "--security-opt": "no-new-privileges", "-v": "zephbot:/data",
	} {
		if options[name] != want {
			t.Errorf("%s: %q, want %q", name, options[name], want)
		}
	}
	if _, ok := options["--read-only"]; !ok {
		t.Error("the root file system may be written")
	}
	return options
}

// program returns the process of the program: the child of tini; 0 = there is none.
func (c *container) program() int {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", c.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(raw)))
	if err != nil {
		return 0
	}
	if name, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid)); err != nil || filepath.Base(name) != "zephbot" {
		return 0
	}
	return pid
}

// exec runs a command in the container, as `docker exec` and health checks do, and returns what it prints.
func (c *container) exec(args ...string) (string, error) {
	c.Helper()
	inside := slices.Concat([]string{"--target", strconv.Itoa(c.cmd.Process.Pid), "--mount", "--root", "/usr/bin/env", "-i", "-C", "/data"}, c.env, c.confined, args)
	out, err := exec.CommandContext(c.Context(), "nsenter", inside...).CombinedOutput()
	return string(out), err
}

// healthy runs the health check of the image.
func (c *container) healthy() (string, error) { return c.exec(words(c.T, &c.image, "HEALTHCHECK")...) }

// awaitHealth waits until the health check succeeds.
func (c *container) awaitHealth() {
	c.Helper()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(patience)
	for last := "there is no program"; ; {
		if c.program() != 0 {
			out, err := c.healthy()
			if err == nil {
				return
			}
			last = out
		}
		select {
		case <-tick.C:
		case <-c.done:
			c.Fatalf("it ended: %s", c.said)
		case <-limit:
			c.Fatalf("never healthy: %s; it said: %s", last, c.said)
		}
	}
}

// unprivileged: the program is nobody, can become nobody else, and has no capability.
func (c *container) unprivileged() {
	c.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.program()))
	if err != nil {
		c.Fatal(err)
	}
	for _, want := range []string{
		`Uid:(\t10001){4}`, `Gid:(\t10001){4}`, `CapInh:\t0+`, `CapPrm:\t0+`, `CapEff:\t0+`, `CapBnd:\t0+`, `CapAmb:\t0+`, `NoNewPrivs:\t1`, `Groups:\t *`,
	} {
		if !regexp.MustCompile(`(?m)^` + want + `$`).Match(status) {
			c.Errorf("no %s in:\n%s", want, status)
		}
	}
}

// answers: a person who writes is answered. The answer has a button for its receipt, as a tool ran for it.
func (c *container) answers() {
	c.Helper()
	c.fake.Say(1001, 1001, telegramtest.Message{Text: "what files are here?"})
	ctx, cancel := context.WithTimeout(c.Context(), patience)
	defer cancel()
	if err := c.fake.WaitFor(ctx, func() bool {
		return slices.ContainsFunc(c.fake.Chat(1001), func(m telegramtest.Shown) bool {
			return m.FromBot && len(m.Keyboard) > 0
		})
	}); err != nil {
		c.Fatalf("no answer: %v: %+v; it said: %s", err, c.fake.Chat(1001), c.said)
	}
}

// stop ends it as an engine does.
func (c *container) stop() {
	c.Helper()
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		c.Fatal(err)
	}
	select {
	case <-c.done:
	case <-time.After(patience):
		c.Fatalf("it does not end: %s", c.said)
	}
	if code := c.cmd.ProcessState.ExitCode(); code != 0 {
		c.Errorf("exit code %d: %s", code, c.said)
	}
}

// TestContainerAsDocumented plays the image as docs/deployment.md starts it: a user without rights, a read-only root
// file system, a health check that fails when it should.
func TestContainerAsDocumented(t *testing.T) {
	t.Parallel()
	c := startContainer(t, "", "")
	c.awaitHealth()
	c.unprivileged()
	c.answers()
	for path, writable := range map[string]bool{"/x": false, "/etc/x": false, "/usr/local/bin/x": false, "/usr/x": false, "/data/x": true, "/tmp/x": true} {
		if out, err := c.exec("/usr/bin/touch", path); (err == nil) != writable || !writable && !strings.Contains(out, "Read-only file system") {
			t.Errorf("%s: %v %s", path, err, out)
		}
	}
	if out, err := c.exec("/usr/local/bin/zephbot", "backup", "/data/b.tar.gz"); err != nil {
		t.Errorf("a backup: %v %s", err, out)
	}
	if out, err := c.exec("/usr/local/bin/zephbot", "health", "--ready"); err != nil || out != "ready\n" {
		t.Errorf("--ready: %v %s", err, out)
	}
	program := c.program()
	if err := syscall.Kill(program, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if out, err := c.healthy(); err == nil {
		t.Errorf("a program that does nothing is healthy: %s", out)
	}
	if err := syscall.Kill(program, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	c.awaitHealth()
	c.stop()
}

// TestFlyAsDocumented: a new volume of Fly.io belongs to root, and the program writes to it all the same, as its own
// user.
func TestFlyAsDocumented(t *testing.T) {
	t.Parallel()
	c := startContainer(t, "fly", "uid=0,gid=0,mode=755")
	c.awaitHealth()
	c.unprivileged()
	c.answers()
	c.stop()
}
