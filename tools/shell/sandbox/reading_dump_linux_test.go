package sandbox_test

import (
	"fmt"
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"
)

// TestAttackReadingDump: a reading command that crashes starts no program of the machine, which a limit of 0 would allow.
func TestAttackReadingDump(t *testing.T) {
	needLandlock(t)
	for _, name := range []string{"prlimit", "perl"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("no %s on this machine", name)
		}
	}
	text := "ulimit -S -c 0; prlimit --core=0 true; perl -e 'my $none = pack q(q2), 0, 0; syscall(%d, %d, $none); syscall(%d, 0, %d, $none, 0); " +
		"exec qw(prlimit --core --noheadings --raw -o SOFT,HARD)' 2>/dev/null"
	text = "{ " + fmt.Sprintf(text, unix.SYS_SETRLIMIT, unix.RLIMIT_CORE, unix.SYS_PRLIMIT64, unix.RLIMIT_CORE) + "; } 2>/dev/null; ulimit -n 20; ulimit -n"
	eachReadingLevel(t, func(t *testing.T, helper string) {
		if got := run(t, reading(t, helper), text); got.out != "1 1\n20\n" {
			t.Errorf("limits %q (%s), want 1 1 and 20", got.out, got.status.Why())
		}
	})
}
