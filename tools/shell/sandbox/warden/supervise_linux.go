package warden

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

// supervisor is the parent of a command and of everything that the command detaches.
type supervisor struct {
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

// supervise executes the plan and reports how the command ended. Remaining goroutines end with the helper.
func supervise(p *Plan, out *os.File) {
	s := &supervisor{plan: p, self: os.Getpid(), exits: make(chan exit), stop: make(chan struct{}), round: killEvery, saw: &witness{}}
	if err := s.start(out); err != nil {
		say(out, Report{Error: err.Error(), Missing: lacking(err), Ended: true})
		return
	}
	say(out, Report{PID: s.main})
	letGo()
	_ = prctl(prSetDumpable, 0) // the command must not read our memory
	var wg sync.WaitGroup
	wg.Go(s.reap)
	wg.Go(s.listen)
	s.watch()
	s.end.Ended, s.end.Tried, s.end.Attempts = true, s.tried.flags.Load(), s.saw.list()
	say(out, s.end)
}

// start confines a thread, lets it start the command, and lets it end, so that no thread of the helper is in the
// confined domain.
func (s *supervisor) start(out *os.File) error {
	if err := prctl(prSetSubreaper, 1); err != nil {
		return fail("adopt orphans", err)
	}
	if err := s.tried.openLayer(s.plan.Guard); err != nil {
		return err
	}
	if len(s.plan.Mounts) > 0 {
		if err := newRoot(s.plan.Mounts); err != nil {
			return err
		}
	}
	before := expendable()
	defer func() { keepAlive(before) }()
	say(out, Report{Starting: true})
	nice := goFirst()
	var err error
	onOtherThread(func() {
		yield(nice)
		err = s.spawn()
	})
	if err != nil {
		return err
	}
	if err := harden(s.main, s.plan.Rlimits); err != nil {
		s.killAll()
		return err
	}
	return nil
}

// expendable makes this process, and the processes it starts from now on, the first that the kernel kills when memory
// runs out. It returns the previous value.
func expendable() []byte {
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

// spawn starts the command on the calling thread, which drops its rights first. The command inherits what is left.
func (s *supervisor) spawn() error {
	if err := noDumps(); err != nil {
		return err
	}
	if s.plan.Confine {
		asks, err := confine(s.plan)
		if err != nil {
			return err
		}
		switch { // both run until the helper ends
		case asks < 0:
		case s.plan.Guard != nil:
			go answer(asks, s.plan.Guard, &s.tried)
		default:
			go s.saw.watch(asks, s.plan.Watched)
		}
	}
	back, err := lower(s.plan.Rlimits)
	if err != nil {
		return err
	}
	s.main, err = syscall.ForkExec(s.plan.Argv[0], s.plan.Argv, &syscall.ProcAttr{ //nolint:gosec // running commands is its purpose
		Dir: s.plan.Dir, Env: s.plan.Env, Files: []uintptr{0, 1, 2},
		Sys: &syscall.SysProcAttr{Setsid: true}, // so that a command that signals its own group does not signal us
	})
	back()
	if err != nil {
		return fail("start "+s.plan.Argv[0], err)
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

// reap waits for children until none is left, which means that nothing of the run is left.
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

// listen waits for the request to stop: a byte, or the end of the program that started us.
func (s *supervisor) listen() {
	defer close(s.stop)
	for {
		if _, err := syscall.Read(fdControl, make([]byte, 1)); !errors.Is(err, syscall.EINTR) {
			return
		}
	}
}

// watch ends the run: when its command ends or after the linger time, on request, or at a limit.
func (s *supervisor) watch() {
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
			s.terminate()
		case <-s.linger:
			s.end.Left = len(s.members())
			s.terminate()
		case <-guard:
			s.weigh()
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

// weigh ends the run when it exceeds a limit.
func (s *supervisor) weigh() {
	if s.end.Hit != 0 {
		return
	}
	pids := s.members()
	switch {
	case s.plan.Procs > 0 && len(pids) > s.plan.Procs:
		s.end.Hit = HitProcs
	case s.plan.Memory > 0 && over(s.plan.Memory, pids, len(s.plan.Mounts) > 0):
		s.end.Hit = HitMemory
	default:
		return
	}
	s.killAll()
}

func (s *supervisor) mainEnded(ws syscall.WaitStatus) {
	if ws.Signaled() {
		s.end.Signal = int(ws.Signal())
	} else {
		s.end.Code = ws.ExitStatus()
	}
	s.linger = time.After(s.plan.Linger)
}

// terminate asks all processes to end, and kills them after the grace period.
func (s *supervisor) terminate() {
	s.linger = nil
	if s.grace != nil || s.kill != nil {
		return
	}
	if s.plan.PIDSpace {
		_ = syscall.Kill(-1, syscall.SIGTERM) // all processes except this one
	} else {
		for _, pid := range s.members() {
			_ = syscall.Kill(pid, syscall.SIGTERM)
		}
	}
	s.grace = time.After(s.plan.Grace)
}

// killAll kills all processes.
func (s *supervisor) killAll() {
	s.linger, s.grace = nil, nil
	if s.plan.PIDSpace {
		_ = syscall.Kill(-1, syscall.SIGKILL) // atomically: no process can fork meanwhile
	} else {
		s.hunt()
	}
	if s.stuck == nil {
		s.stuck = time.After(stuckAfter)
	}
	s.kill = time.After(s.round)
	s.round = min(2*s.round, 100*time.Millisecond)
}

// hunt kills what is below us. It stops processes first, so that they do not fork while others die.
func (s *supervisor) hunt() {
	stopped := map[int]bool{}
	for range stopRounds {
		fresh := false
		for _, pid := range s.members() {
			if !stopped[pid] {
				stopped[pid], fresh = true, true
				_ = syscall.Kill(pid, syscall.SIGSTOP)
			}
		}
		if !fresh {
			break
		}
	}
	for _, pid := range s.members() {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}
