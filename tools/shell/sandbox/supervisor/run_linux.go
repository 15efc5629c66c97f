package supervisor

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"strconv"
	"syscall"
)

// A helper finishes before main begins: see the package comment. Initialising a variable is the only way to run code at
// that time.
var _ = runHelper(os.Args) //nolint:gochecknoglobals // holds nothing

// runHelper does the work of a helper and exits, if this process is one.
func runHelper(args []string) bool {
	if len(args) < 3 || args[1] != Arg || os.Getenv(Marker) == "" {
		return false
	}
	out := os.NewFile(fdReport, "report")
	for _, fd := range []int{fdPlan, fdControl, fdReport} {
		syscall.CloseOnExec(fd)
	}
	plan, err := readPlan()
	if err == nil && plan.UserSpace {
		err = keepIdentity(plan)
	}
	switch {
	case err != nil:
		writeReport(out, Report{Error: err.Error(), Ended: true})
	case args[2] == ModeProbe:
		probeMachine(plan, out)
	default:
		superviseRun(plan, out)
	}
	os.Exit(0) //nolint:forbidigo // the process is a helper and has nothing else to do
	return true
}

// readPlan reads the file that the helper inherits.
func readPlan() (*Plan, error) {
	var st syscall.Stat_t
	if err := syscall.Fstat(fdPlan, &st); err != nil {
		return nil, wrapError("find the plan", err)
	}
	raw := make([]byte, st.Size)
	if n, err := syscall.Pread(fdPlan, raw, 0); err != nil || n != len(raw) {
		return nil, wrapError("read the plan", errors.Join(err, errCut))
	}
	_ = syscall.Close(fdPlan)
	return DecodePlan(raw)
}

// keepIdentity maps the user and group of the helper to themselves. The helper does this itself, because it can write
// its own files in /proc, while those of a process that is not dumpable cannot be written by others.
func keepIdentity(p *Plan) error {
	one := func(id int) string { return strconv.Itoa(id) + " " + strconv.Itoa(id) + " 1" }
	for _, f := range [][2]string{{"setgroups", "deny"}, {"uid_map", one(p.UID)}, {"gid_map", one(p.GID)}} {
		if err := os.WriteFile("/proc/self/"+f[0], []byte(f[1]), 0); err != nil {
			return wrapError("keep our user", err)
		}
	}
	return nil
}

// writeReport writes a report. If that fails, there is nobody left to tell.
func writeReport(out io.Writer, r Report) { _, _ = out.Write(r.Encode()) }

// probeMachine confines a thread according to the plan and reports what works. The plan grants only /usr.
func probeMachine(p *Plan, out *os.File) {
	r := Report{Ended: true}
	err := error(nil)
	if len(p.Mounts) > 0 {
		if err = newRoot(p.Mounts); err == nil {
			if err := os.Mkdir("/zephbot", 0o700); errors.Is(err, syscall.EROFS) {
				r.Held |= HeldRoot
			}
			if p.PIDSpace && os.Getpid() == 1 {
				r.Held |= HeldPIDs
			}
		}
	}
	if err == nil {
		onOtherThread(func() { err = p.tryConfine(&r) })
	}
	if err != nil {
		r.Error, r.Missing = err.Error(), isLacking(err)
	}
	writeReport(out, r)
}

// tryConfine confines the thread and checks what it can still do.
func (p *Plan) tryConfine(r *Report) error {
	asks, err := confineThread(p)
	if err != nil {
		return err
	}
	if asks >= 0 {
		r.Held |= heldGuard
	}
	if p.ABI > 0 {
		if f, err := os.Open("/"); errors.Is(err, fs.ErrPermission) {
			r.Held |= HeldFiles
		} else if err == nil {
			_ = f.Close()
		}
	}
	if len(p.Filter) > 0 {
		if fd, err := syscall.Socket(syscall.AF_PACKET, syscall.SOCK_RAW|syscall.SOCK_CLOEXEC, 0); errors.Is(err,
			syscall.EPERM) && p.refusesCall() {
			r.Held |= HeldCalls
		} else if err == nil {
			_ = syscall.Close(fd)
		}
	}
	return nil
}

// refusesCall reports whether the filter refuses a call that is otherwise always permitted.
func (p *Plan) refusesCall() bool {
	_, err := systemCall(syscall.SYS_PTRACE, 0) // PTRACE_TRACEME
	return errors.Is(err, syscall.EPERM)
}
