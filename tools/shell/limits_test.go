package shell_test

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/zephbot/zephbot/tools/shell"
	"github.com/zephbot/zephbot/tools/shell/sandbox"
)

// TestAttackResources: a command that exhausts the machine is ended, and the model is told the limit, its value and its
// key.
func TestAttackResources(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has a supervisor")
	}
	limits := sandbox.Limits{Procs: 40, Memory: 256 << 20, FileSize: 1 << 20, Files: 64}
	for _, tc := range []struct {
		name, text string
		limits     sandbox.Limits
		output     int64
		want       []string
	}{
		{"processes", `for i in $(seq 80); do sleep 600 & done; wait`, limits, 0, []string{"more than 40 processes", "tools.shell.limits.processes"}},
		{"fork bomb", `b() { b | b & }; b; wait; sleep 600`, limits, 0, []string{"more than 40 processes"}},
		{"memory of many", `for i in 1 2 3 4; do perl -e '$x = "x" x (100 << 20); sleep 600' & done; wait`, limits, 0, []string{"more than 256 MiB of memory", "tools.shell.limits.memory_bytes"}},
		{"shared memory", `perl -e '$a = syscall(9, 0, 400 << 20, 3, 0x21, -1, 0); open $z, "</dev/zero"; syscall(0, fileno($z), $a, 400 << 20); sleep 600' & wait`, limits, 0, []string{"more than 256 MiB of memory"}},
		{"file", `head -c 3000000 /dev/zero > big`, limits, 0, []string{"larger than 1 MiB", "tools.shell.limits.file_bytes"}},
		{"output", `yes`, limits, 1 << 20, []string{"printed more than 1 MiB", "tools.shell.limits.output_bytes"}},
		{"open files", `for i in $(seq 100); do eval "exec {f}<>/dev/null" || exit 1; done`, limits, 0, []string{"64 files open", "tools.shell.limits.open_files"}},
		{"processor", `while :; do :; done`, sandbox.Limits{CPU: 1e9}, 0, []string{"processor time", "tools.shell.limits.cpu_seconds"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if tc.name == "shared memory" && runtime.GOARCH != "amd64" {
				t.Skip("the numbers of the calls are those of amd64")
			}
			k := setup(t, shell.Options{Helper: sandbox.Self, Limits: tc.limits, MaxOutput: tc.output})
			res := k.run(tc.text)
			for _, part := range tc.want {
				if !strings.Contains(res.Text, part) {
					t.Errorf("the model hears %q, want %q in it", res.Text[max(0, len(res.Text)-600):], part)
				}
			}
		})
	}
}

// TestAttackScore: a command is the first that the kernel ends when memory runs out.
func TestAttackScore(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has the score")
	}
	k := setup(t, shell.Options{Helper: sandbox.Self, Sandbox: shell.SandboxOff})
	if res := k.run(`cat /proc/self/oom_score_adj`); !strings.HasPrefix(res.Text, "1000") {
		t.Errorf("score %q, want 1000", res.Text)
	}
}

// TestAttackPriority: the supervisor is served before the processes it counts. Otherwise a fork bomb takes every process
// of the machine before the supervisor comes to its turn.
func TestAttackPriority(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has a supervisor")
	}
	ours, err := syscall.Getpriority(syscall.PRIO_PROCESS, 0)
	if err != nil {
		t.Fatal(err)
	}
	ours = 20 - ours // the system call returns it this way
	supervisor := ours
	if os.Getuid() == 0 {
		supervisor = -20
	}
	command := min(ours+10, 19)
	const field = `sed 's/.*) //' "/proc/$PPID/stat" | cut -d ' ' -f 17`
	for _, tc := range []struct{ sandbox, text, want string }{
		{shell.SandboxOff, `echo "$(nice)" "$(` + field + `)"`, fmt.Sprintf("%d %d", command, supervisor)},
		{shell.SandboxAuto, `nice`, strconv.Itoa(command)}, // which hides the supervisor
	} {
		k := setup(t, shell.Options{Helper: sandbox.Self, Sandbox: tc.sandbox})
		if res := k.run(tc.text); res.Text != tc.want {
			t.Errorf("sandbox %s: niceness %q, want %q", tc.sandbox, res.Text, tc.want)
		}
	}
}
