package difftest

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// canaries are programs that no rule allows. Each says that it ran.
const canaries = "canary python3 rm make touch tee evil"

// planted are allowed names that are also programs in the working directory: a script that changes where programs are
// looked for runs those.
const planted = "cat sort"

// prelude is read by every bash (BASH_ENV). What bash cannot find is a command that no rule allows, since all allowed
// ones are there; rules match letters in either case, so HEAD is allowed where head is. kill is taken away, so that no
// made-up script can reach another process.
const prelude = `enable -n kill
ulimit -f 4000; ulimit -v 2000000; ulimit -u 4000
command_not_found_handle() { case " %[2]s " in *" ${1,,} "*) return 127;; esac; printf 'not found: %%s\n' "$*" >>%[1]s; return 127; }
`

// driver runs each of its arguments in a subshell of its own, as bash -c and sh -c would. Descriptor 9 stays open as
// long as one of their processes lives.
const driver = `for _s in "$@"; do ( set -- 'a[$(canary)]'; ulimit -S -t 1; eval "$_s" ) <f >/dev/null 2>&1; done`

// values are what the variables of the made-up scripts hold: what would run if bash calculated it, read it as code or
// took it for an option.
var values = []string{"x=a[$(canary)]", "y=canary", "a=x", "i=-v a[$(canary)]", "f=$(canary)", "b=x;canary", "c=($(canary))"}

// shell runs scripts in a scratch directory. As root it runs them as a user that owns nothing else.
type shell struct {
	tb         testing.TB
	work, hits string
	env        []string
	user       *syscall.Credential
}

// newShell builds the scratch directory.
func newShell(tb testing.TB) *shell {
	tb.Helper()
	if _, err := exec.LookPath("bash"); err != nil {
		if os.Getenv("ZEPH_CI") != "" {
			tb.Fatal("there is no bash")
		}
		tb.Skip("there is no bash")
	}
	dir, err := os.MkdirTemp("", "difftest") //nolint:usetesting // TempDir is closed to the scripts' user
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = os.RemoveAll(dir) })
	s := &shell{tb: tb, work: filepath.Join(dir, "work"), hits: filepath.Join(dir, "hits")}
	bin := filepath.Join(dir, "bin")
	for _, d := range []string{dir, bin, s.work, filepath.Join(dir, "tmp")} {
		s.must(os.MkdirAll(d, 0o755)) //nolint:gosec // the scripts' user must enter it
		s.must(os.Chmod(d, 0o755))    //nolint:gosec // as above, whatever the umask
	}
	start := fmt.Sprintf(prelude, s.hits, builtins+" "+strings.Join(standIns(), " "))
	for _, name := range standIns() {
		s.program(bin, name, "exit 0")
		if !strings.Contains(planted, name) {
			start += name + "() { return 0; }\n" // a function is quicker
		}
	}
	for name := range strings.FieldsSeq(canaries) {
		s.program(bin, name, "echo \"ran: "+name+"\" >>"+s.hits)
	}
	for name := range strings.FieldsSeq("bash sh env timeout nice") {
		if path, err := exec.LookPath(name); err == nil {
			s.must(os.Symlink(path, filepath.Join(bin, name)))
		}
	}
	s.write(filepath.Join(dir, "prelude"), start, 0o644)
	s.env = append(slices.Clone(values), "PATH="+bin, "HOME="+s.work, "TMPDIR="+filepath.Join(dir, "tmp"), "LANG=C.UTF-8", "BASH_ENV="+filepath.Join(dir, "prelude"))
	if os.Geteuid() == 0 {
		id := uint32(61000 + os.Getpid()%4000) //nolint:gosec // small
		s.user = &syscall.Credential{Uid: id, Gid: id}
		for _, d := range []string{s.work, filepath.Join(dir, "tmp")} {
			s.must(os.Chown(d, int(id), int(id)))
		}
	}
	s.reset()
	return s
}

func (s *shell) must(err error) {
	s.tb.Helper()
	if err != nil {
		s.tb.Fatal(err)
	}
}

func (s *shell) write(path, text string, mode os.FileMode) {
	s.tb.Helper()
	s.must(os.WriteFile(path, []byte(text), mode))
	s.must(os.Chmod(path, mode))
}

// program is a stand-in.
func (s *shell) program(bin, name, body string) {
	s.write(filepath.Join(bin, name), "#!/bin/sh\n"+body+"\n", 0o755)
}

// reset makes the working directory and the list of findings as they were: names that would do harm if a shell read
// them as code among them.
func (s *shell) reset() {
	s.tb.Helper()
	entries, err := os.ReadDir(s.work)
	s.must(err)
	for _, e := range entries {
		s.must(os.RemoveAll(filepath.Join(s.work, e.Name())))
	}
	for _, name := range []string{"f", "g.txt", "-v", "$(canary)", ";canary", "a[$(canary)]"} {
		s.write(filepath.Join(s.work, name), "a[$(canary)]\n", 0o666)
	}
	for name := range strings.FieldsSeq(planted) {
		s.program(s.work, name, "echo \"ran the planted "+name+"\" >>"+s.hits)
	}
	s.must(os.Mkdir(filepath.Join(s.work, "d"), 0o755)) //nolint:gosec // as the work directory
	s.write(s.hits, "", 0o666)
}

// state is everything that a script may have changed.
func (s *shell) state() string {
	s.tb.Helper()
	found, err := os.ReadFile(s.hits)
	s.must(err)
	var b strings.Builder
	b.Write(found)
	s.must(filepath.WalkDir(s.work, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err == nil {
			fmt.Fprintf(&b, "%s %v %d %d\n", strings.TrimPrefix(path, s.work), info.Mode(), info.Size(), info.ModTime().UnixNano())
		}
		return err
	}))
	return b.String()
}

// run gives a shell its arguments and says what changed, "" for nothing. It waits for every process of the scripts.
func (s *shell) run(name string, args ...string) string {
	s.tb.Helper()
	before := s.state()
	read, write, err := os.Pipe()
	s.must(err)
	defer func() { _ = read.Close() }()
	cmd := exec.CommandContext(context.Background(), filepath.Join(filepath.Dir(s.work), "bin", name), args...)
	cmd.Dir, cmd.Env = s.work, s.env
	// Descriptors 3 to 8 are the scripts' own.
	cmd.ExtraFiles = []*os.File{nil, nil, nil, nil, nil, nil, write}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: s.user}
	s.must(cmd.Start())
	_ = write.Close()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = read.Read(make([]byte, 1)) // until the last process is gone
	}()
	select {
	case <-ended:
	case <-time.After(60 * time.Second):
	}
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	_ = cmd.Wait() // how the scripts end says nothing
	after := s.state()
	if after == before {
		return ""
	}
	s.reset()
	return difference(before, after)
}

// difference lists the lines of after that are not in before.
func difference(before, after string) string {
	var b strings.Builder
	for line := range strings.Lines(after) {
		if !strings.Contains("\n"+before, "\n"+line) {
			b.WriteString(line)
		}
	}
	if b.Len() == 0 {
		return "something is gone"
	}
	return b.String()
}

// finding is a script that did what no rule allows.
type finding struct{ script, shell, did string }

func (f finding) String() string {
	return fmt.Sprintf("%s ran %s\n%s", f.shell, strconv.Quote(f.script), f.did)
}

// batch runs scripts, all in one process of the shell, and looks for the culprits one by one when something changed.
func (s *shell) batch(name string, scripts []string) []finding {
	s.tb.Helper()
	if s.run(name, append([]string{"-c", driver, name}, scripts...)...) == "" {
		return nil
	}
	var out []finding
	for _, script := range scripts {
		if did := s.alone(name, script); did != "" {
			out = append(out, finding{script: script, shell: name, did: did})
		}
	}
	if out == nil {
		out = []finding{{script: strings.Join(scripts, "\n----\n"), shell: name, did: "together, and none of them alone"}}
	}
	return out
}

// alone runs one script as the bash tool does.
func (s *shell) alone(name, script string) string {
	s.tb.Helper()
	return s.run(name, "-c", "ulimit -t 2; exec <f >/dev/null 2>&1; exec "+name+` -c "$1" x 'a[$(canary)]'`, name, script)
}
