package sandbox

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	guardEvery = 100 * time.Millisecond // between two counts of the processes
	killEvery  = 20 * time.Millisecond  // between two rounds of killing
	stopRounds = 50                     // rounds of stopping processes that multiply
)

// supervisor is the parent of a command, and of everything the command detaches from itself.
type supervisor struct {
	spec  Spec
	self  int
	main  int // process id of the command
	end   report
	exits chan exit     // closed when no child is left
	stop  chan struct{} // closed when the run has to end
	never chan struct{} // never closed: who waits for it ends with the helper
	wg    sync.WaitGroup

	linger, grace, kill, stuck <-chan time.Time // running timers; nil when not
}

// exit is the end of a child.
type exit struct {
	pid    int
	status syscall.WaitStatus
}

// supervise runs the command of the inherited spec and reports how it ended. Goroutines that are left die with the helper.
func supervise() {
	unix.CloseOnExec(fdControl)
	unix.CloseOnExec(fdReport)
	out := os.NewFile(fdReport, "report")
	// Not ignored: what is ignored stays ignored in the command.
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT)
	s := &supervisor{self: os.Getpid(), exits: make(chan exit), stop: make(chan struct{}), never: make(chan struct{})}
	spec, err := readSpec()
	if err == nil {
		s.spec = spec
		err = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	}
	if err == nil {
		say(out, report{Starting: true})
		started := make(chan error, 1)
		s.wg.Go(func() {
			onOtherThread(func() {
				started <- s.spawn()
				<-s.never // the command dies with the thread that started it, see Pdeathsig
			})
		})
		err = <-started
	}
	if err != nil {
		say(out, report{Error: err.Error(), Unavailable: errors.Is(err, ErrUnavailable), Ended: true})
		return
	}
	say(out, report{PID: s.main})
	letGo()
	s.wg.Go(s.reap)
	s.wg.Go(func() { s.listen(os.NewFile(fdControl, "control")) })
	s.watch(signals)
	s.end.Ended = true
	say(out, s.end)
}

// onOtherThread runs f on a thread that is not the program's first and does not outlive f. The first thread stands for the program when it is
// signalled: while that one keeps its rights, the kernel does not let a confined command signal us.
func onOtherThread(f func()) {
	var wg sync.WaitGroup
	wg.Go(func() {
		runtime.LockOSThread() // without an unlock the thread ends with the goroutine
		if unix.Gettid() == os.Getpid() {
			onOtherThread(f)
			runtime.UnlockOSThread()
			return
		}
		f()
	})
	wg.Wait()
}

// spawn starts the command. The calling thread loses its rights, and the command inherits what is left.
func (s *supervisor) spawn() error {
	limits := resourceLimits(s.spec.Limits)
	hard := append(processLimit(s.spec.Limits), limits...) // counted here, where all of /proc can be read
	if !s.spec.Off {
		if _, err := confine(s.spec); err != nil {
			return err
		}
	}
	back, err := lower(limits)
	if err != nil {
		return err
	}
	s.main, err = syscall.ForkExec(s.spec.Argv[0], s.spec.Argv, &syscall.ProcAttr{ //nolint:gosec // running commands is what this is for
		Dir: s.spec.Dir, Env: s.spec.Env, Files: []uintptr{0, 1, 2},
		// A session of its own, so that a command that signals its group does not signal us; and an end with ours, should it kill us all the same.
		Sys: &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL},
	})
	back()
	if err != nil {
		return fmt.Errorf("start %s: %w", s.spec.Argv[0], err)
	}
	if err := harden(s.main, hard); err != nil {
		_ = syscall.Kill(s.main, syscall.SIGKILL)
		return err
	}
	return nil
}

// letGo gives up the streams, which are the command's from now on: a reader sees the end without us, and nothing of ours gets into it.
func letGo() {
	null, err := unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	_ = unix.Dup3(null, 0, 0)
	_ = unix.Dup3(null, 1, 0)
	_ = unix.Dup3(null, 2, 0)
	_ = unix.Close(null)
}

// reap takes in every child that ends, until there is none left: then nothing of the run is left.
func (s *supervisor) reap() {
	defer close(s.exits)
	for {
		var ws syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &ws, 0, nil)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil {
			return // no child
		}
		s.exits <- exit{pid: pid, status: ws}
	}
}

// listen waits for the word to stop: a byte, or the end of the program that started us.
func (s *supervisor) listen(control *os.File) {
	defer close(s.stop)
	_, _ = control.Read(make([]byte, 1))
}

// watch sees to it that the run ends: by itself, by the word to stop, by too many processes, or by outliving its command.
func (s *supervisor) watch(signals <-chan os.Signal) {
	var guard <-chan time.Time
	if s.spec.Limits.Procs > 0 {
		tick := time.NewTicker(guardEvery)
		defer tick.Stop()
		guard = tick.C
	}
	stop := s.stop
	for {
		select {
		case e, ok := <-s.exits:
			if !ok {
				return
			}
			if e.pid == s.main {
				s.mainEnded(e.status)
			}
		case <-stop:
			stop = nil
			s.terminate()
		case <-signals:
			s.terminate()
		case <-s.linger:
			s.end.Left = len(descendants(s.self))
			s.terminate()
		case <-guard:
			if len(descendants(s.self)) > s.spec.Limits.Procs && !s.end.TooMany {
				s.end.TooMany = true
				s.killAll()
			}
		case <-s.grace:
			s.killAll()
		case <-s.kill:
			s.killAll()
		case <-s.stuck:
			s.end.Stuck = true
			return
		}
	}
}

func (s *supervisor) mainEnded(ws syscall.WaitStatus) {
	if ws.Signaled() {
		s.end.Signal = ws.Signal().String()
	} else {
		s.end.Code = ws.ExitStatus()
	}
	s.linger = time.After(s.spec.Linger)
}

// terminate asks everything to end, and does not ask after the grace.
func (s *supervisor) terminate() {
	s.linger = nil
	if s.grace != nil || s.kill != nil {
		return
	}
	for _, pid := range descendants(s.self) {
		_ = syscall.Kill(pid, syscall.SIGTERM)
	}
	s.grace = time.After(s.spec.Grace)
}

// killAll ends everything. Processes are stopped first, so that none is born while the others die.
func (s *supervisor) killAll() {
	s.linger, s.grace = nil, nil
	stopped := map[int]bool{}
	for range stopRounds {
		fresh := false
		for _, pid := range descendants(s.self) {
			if !stopped[pid] {
				stopped[pid], fresh = true, true
				_ = syscall.Kill(pid, syscall.SIGSTOP)
			}
		}
		if !fresh {
			break
		}
	}
	for _, pid := range descendants(s.self) {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	if s.stuck == nil {
		s.stuck = time.After(stuckAfter)
	}
	s.kill = time.After(killEvery)
}
