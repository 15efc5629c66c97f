package supervisor

import (
	"errors"
	"os"
	"runtime"
	"sync"
	"syscall"
	"time"
)

const (
	guardEvery = 50 * time.Millisecond // between two checks of the processes
	killEvery  = 5 * time.Millisecond  // between two rounds of killing, doubled each time
	stopRounds = 50                    // rounds of stopping processes that keep forking
	stuckAfter = 5 * time.Second       // for killed processes to disappear
)

// run is the parent of a command and of everything that the command detaches.
type run struct {
	plan  *Plan
	self  int
	main  int // process id of the command
	end   Report
	tried tried
	saw   *witness      // notes the watched calls
	exits chan exit     // closed when there is no child left
	stop  chan struct{} // closed when the run has to end
	round time.Duration

	linger, grace, kill, stuck <-chan time.Time // running timers; nil = not running
}

// exit describes the end of a child.
type exit struct {
	pid    int
	status syscall.WaitStatus
}

// superviseRun executes the plan and reports how the command ended. Remaining goroutines end with the helper.
func superviseRun(p *Plan, out *os.File) {
	s := &run{
		plan:  p,
		self:  os.Getpid(),
		exits: make(chan exit),
		stop:  make(chan struct{}),
		round: killEvery,
		saw:   &witness{},
	}
	if err := s.startCommand(out); err != nil {
		writeReport(out, Report{Error: err.Error(), Missing: isLacking(err), Ended: true})
		return
	}
	writeReport(out, Report{PID: s.main})
	letGo()
	_ = prctl(prSetDumpable, 0) // the command must not read our memory
	var wg sync.WaitGroup
	wg.Go(s.reapChildren)
	wg.Go(s.awaitStop)
	s.watchRun()
	s.end.Ended, s.end.Tried, s.end.Attempts = true, s.tried.flags.Load(), s.saw.listAttempts()
	writeReport(out, s.end)
}

// startCommand confines a thread, lets it start the command, and lets it end, so that no thread of the helper is in the
// confined domain.
func (s *run) startCommand(out *os.File) error {
	if err := prctl(prSetSubreaper, 1); err != nil {
		return wrapError("adopt orphans", err)
	}
	if err := s.tried.openLayer(s.plan.Guard); err != nil {
		return err
	}
	if len(s.plan.Mounts) > 0 {
		if err := newRoot(s.plan.Mounts); err != nil {
			return err
		}
	}
	before := makeExpendable()
	defer func() { keepAlive(before) }()
	writeReport(out, Report{Starting: true})
	nice := goFirst()
	var err error
	onOtherThread(func() {
		lowerPriority(nice)
		err = s.spawnConfined()
	})
	if err != nil {
		return err
	}
	if err := hardenLimits(s.main, s.plan.Rlimits); err != nil {
		s.killAll()
		return err
	}
	return nil
}

// makeExpendable makes this process, and the processes it starts from now on, the first that the kernel kills when
// memory runs out. It returns the previous value.
func makeExpendable() []byte {
	before, err := os.ReadFile("/proc/self/oom_score_adj")
	if err == nil {
		_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0)
	}
	return before
}

// keepAlive restores that value for the helper, so that the command dies first, then the helper, and the program that
// started it last.
func keepAlive(before []byte) {
	if len(before) > 0 {
		_ = os.WriteFile("/proc/self/oom_score_adj", before, 0)
	}
}

// onOtherThread runs f on a new thread that ends when f returns.
func onOtherThread(f func()) {
	var wg sync.WaitGroup
	wg.Go(func() {
		runtime.LockOSThread() // without an unlock, the thread ends with the goroutine
		if syscall.Gettid() == os.Getpid() {
			onOtherThread(f)
			runtime.UnlockOSThread()
			return
		}
		f()
	})
	wg.Wait()
}

// spawnConfined starts the command on the calling thread, which drops its rights first. The
// command inherits what is left.
func (s *run) spawnConfined() error {
	if err := noDumps(); err != nil {
		return err
	}
	if s.plan.Confine {
		asks, err := confineThread(s.plan)
		if err != nil {
			return err
		}
		switch { // both run until the helper ends
		case asks < 0:
		case s.plan.Guard != nil:
			go answerRequests(asks, s.plan.Guard, &s.tried)
		default:
			go s.saw.watchCalls(asks, s.plan.Watched)
		}
	}
	back, err := lowerLimits(s.plan.Rlimits)
	if err != nil {
		return err
	}
	s.main, err = syscall.ForkExec(s.plan.Argv[0], s.plan.Argv, &syscall.ProcAttr{ //nolint:gosec // running commands is its purpose
		Dir: s.plan.Dir, Env: s.plan.Env, Files: []uintptr{0, 1, 2},
		Sys: &syscall.SysProcAttr{Setsid: true}, // so that a command that signals its own group does not signal us
	})
	back()
	if err != nil {
		return wrapError("start "+s.plan.Argv[0], err)
	}
	return nil
}

// letGo closes our copies of the streams, which now belong to the command. A reader then sees when they end, and
// nothing of ours is written to them.
func letGo() {
	null, err := syscall.Open("/dev/null", syscall.O_RDWR|syscall.O_CLOEXEC, 0)
	for fd := range 3 {
		if err == nil {
			_ = syscall.Dup3(null, fd, 0)
		} else {
			_ = syscall.Close(fd)
		}
	}
	if err == nil {
		_ = syscall.Close(null)
	}
}

// reapChildren waits for children until none is left, which means that nothing of the run is left.
func (s *run) reapChildren() {
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

// awaitStop waits for the request to stop: a byte, or the end of the program that started us.
func (s *run) awaitStop() {
	defer close(s.stop)
	for {
		if _, err := syscall.Read(fdControl, make([]byte, 1)); !errors.Is(err, syscall.EINTR) {
			return
		}
	}
}

// watchRun ends the run: when its command ends or after the linger time, on request, or at a limit.
func (s *run) watchRun() {
	var guard <-chan time.Time
	if s.plan.Procs > 0 || s.plan.Memory > 0 {
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
			s.terminateRun()
		case <-s.linger:
			s.end.Left = len(s.listMembers())
			s.terminateRun()
		case <-guard:
			s.weighRun()
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

// weighRun ends the run when it exceeds a limit.
func (s *run) weighRun() {
	if s.end.Hit != 0 {
		return
	}
	pids := s.listMembers()
	switch {
	case s.plan.Procs > 0 && len(pids) > s.plan.Procs:
		s.end.Hit = HitProcs
	case s.plan.Memory > 0 && exceedsMemory(s.plan.Memory, pids, len(s.plan.Mounts) > 0):
		s.end.Hit = HitMemory
	default:
		return
	}
	s.killAll()
}

func (s *run) mainEnded(ws syscall.WaitStatus) {
	if ws.Signaled() {
		s.end.Signal = int(ws.Signal())
	} else {
		s.end.Code = ws.ExitStatus()
	}
	s.linger = time.After(s.plan.Linger)
}

// terminateRun asks all processes to end, and kills them after the grace period.
func (s *run) terminateRun() {
	s.linger = nil
	if s.grace != nil || s.kill != nil {
		return
	}
	if s.plan.PIDSpace {
		_ = syscall.Kill(-1, syscall.SIGTERM) // all processes except this one
	} else {
		for _, pid := range s.listMembers() {
			_ = syscall.Kill(pid, syscall.SIGTERM)
		}
	}
	s.grace = time.After(s.plan.Grace)
}

// killAll kills all processes.
func (s *run) killAll() {
	s.linger, s.grace = nil, nil
	if s.plan.PIDSpace {
		_ = syscall.Kill(-1, syscall.SIGKILL) // atomically: no process can fork meanwhile
	} else {
		s.huntProcesses()
	}
	if s.stuck == nil {
		s.stuck = time.After(stuckAfter)
	}
	s.kill = time.After(s.round)
	s.round = min(2*s.round, 100*time.Millisecond)
}

// huntProcesses kills what is below us. It stops processes first, so that they do not fork while others die.
func (s *run) huntProcesses() {
	stopped := map[int]bool{}
	for range stopRounds {
		fresh := false
		for _, pid := range s.listMembers() {
			if !stopped[pid] {
				stopped[pid], fresh = true, true
				_ = syscall.Kill(pid, syscall.SIGSTOP)
			}
		}
		if !fresh {
			break
		}
	}
	for _, pid := range s.listMembers() {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}
