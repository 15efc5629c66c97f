package sql

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/zephbot/zephbot/bot"
)

// maxGroup bounds the Changes of one transaction, so that with a full queue the first caller does not wait for all of
// it.
const maxGroup = 256

// job is a Change (or a piece of maintenance) in the writer's queue.
type job struct {
	change *bot.Change                                            // nil for maintenance
	run    func(ctx context.Context, q *queries, sure bool) error // errGuess: run again, with sure
	// instead of run, between two transactions; nil = none
	outside func(ctx context.Context, q *queries) error
	applied *bot.Applied
	err     error
	taken   bool          // guarded by Store.mu
	done    chan struct{} // closed when applied and err are final
}

// Apply implements bot.Writer. It gives up with ctx while the Change waits for the writer; after that, the commit
// decides. In addition to the errors of bot.Change there are *Unavailable (nothing was changed) and ErrClosed.
func (s *Store) Apply(ctx context.Context, change *bot.Change) (*bot.Applied, error) {
	if err := change.Validate(); err != nil {
		return nil, err
	}
	made, err := prepareChange(change)
	if err != nil {
		return nil, err
	}
	j := &job{change: change, done: make(chan struct{})}
	j.run = func(ctx context.Context, q *queries, sure bool) (err error) {
		t := &step{prepared: made, q: q, memory: s.memory, world: s.world, now: s.options.Now(), sure: sure}
		j.applied, err = t.runStep(ctx)
		return err
	}
	if err := s.submitJob(ctx, j); err != nil {
		return nil, err
	}
	return j.applied, nil
}

// runMaintenance runs a piece of maintenance on the writer, as part of a group.
func (s *Store) runMaintenance(ctx context.Context, run func(context.Context, *queries) error) error {
	return s.submitJob(ctx, &job{
		run: func(ctx context.Context, q *queries, _ bool) error {
			s.memory.forgetAccounts()
			return run(ctx, q)
		},
		done: make(chan struct{}),
	})
}

func (s *Store) submitJob(ctx context.Context, j *job) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("apply change: %w", err)
	}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return ErrClosed
	}
	s.queue = append(s.queue, j)
	s.wake.Signal()
	s.mu.Unlock()
	select {
	case <-j.done:
	case <-ctx.Done():
		if s.withdrawJob(j) {
			return fmt.Errorf("apply change: %w", ctx.Err())
		}
		<-j.done // the writer has it and always answers
	}
	return j.err
}

// withdrawJob removes a job from the queue. It returns false if the writer has it already.
func (s *Store) withdrawJob(j *job) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if j.taken {
		return false
	}
	for i := range s.queue {
		if s.queue[i] == j {
			s.queue = append(s.queue[:i], s.queue[i+1:]...)
			break
		}
	}
	return true
}

// takeJobs waits for jobs and returns those in the queue, without waiting for more. It returns nil if the store is
// closed and the queue is empty.
func (s *Store) takeJobs() []*job {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.queue) == 0 {
		if s.closed {
			return nil
		}
		s.wake.Wait()
	}
	n := min(len(s.queue), maxGroup)
	group := make([]*job, n)
	copy(group, s.queue)
	s.queue = append(s.queue[:0], s.queue[n:]...)
	for _, j := range group {
		j.taken = true
	}
	return group
}

// runWriter is the writer goroutine.
func (s *Store) runWriter(ctx context.Context) {
	for {
		group := s.takeJobs()
		if group == nil {
			return
		}
		if group = s.runBetween(ctx, group); len(group) == 0 {
			continue
		}
		err := s.commitGroup(ctx, group)
		s.noteHealth(err)
		if err != nil {
			s.disconnectWriter()
			s.options.Log.Error().Err(err).Int("changes", len(group)).Msg("changes were not stored")
			for _, j := range group {
				j.applied, j.err = nil, err
			}
		}
		for _, j := range group {
			close(j.done)
		}
	}
}

// runBetween runs the jobs of a group that run outside transactions, and returns the others.
func (s *Store) runBetween(ctx context.Context, group []*job) []*job {
	return slices.DeleteFunc(group, func(j *job) bool {
		if j.outside == nil {
			return false
		}
		if s.write == nil {
			j.err = s.reconnectWriter(ctx)
		}
		if j.err == nil {
			j.err = j.outside(ctx, s.write)
		}
		close(j.done)
		return true
	})
}

// noteHealth records the result of Healthy.
func (s *Store) noteHealth(err error) {
	var failed *Unavailable
	if errors.As(err, &failed) || err == nil {
		s.failing.Store(failed)
	}
}

// commitGroup runs a group in one transaction. A fault of one Change is that Change's own error, and only that Change
// is undone; an error of commit concerns the whole group.
func (s *Store) commitGroup(ctx context.Context, group []*job) error {
	if s.guard.lost != nil {
		return s.guard.lost
	}
	if s.write == nil {
		if err := s.reconnectWriter(ctx); err != nil {
			return s.dialect.wrapError("open", err)
		}
	}
	if err := s.guard.checkFiles(); err != nil {
		s.rescueLog(ctx)
		return err
	}
	if err := s.beginTx(ctx); err != nil {
		return s.dialect.wrapError("write", err)
	}
	changes, kept, err := s.runTogether(ctx, group)
	if errors.Is(err, errUndo) {
		changes, kept, err = s.runAgain(ctx, group)
	}
	if err != nil {
		return s.rollbackGroup(ctx, s.dialect.wrapError("write", err))
	}
	if kept == 0 {
		if s.direct.wrote {
			s.memory.dropAll()
		}
		if err := s.write.execOne(ctx, "ROLLBACK"); err != nil {
			return s.dialect.wrapError("write", fmt.Errorf("undo change: %w", err))
		}
		return nil
	}
	return s.finishTx(ctx, changes)
}

func (s *Store) beginTx(ctx context.Context) error {
	if err := s.write.execOne(ctx, s.dialect.begin); err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	if err := s.checkMemory(ctx); err != nil {
		return err
	}
	s.guard.count = s.memory.numbers.sumOfNumbers()
	return nil
}

// checkMemory makes sure that the memory matches the database.
func (s *Store) checkMemory(ctx context.Context) error {
	version, err := s.direct.dataVersion()
	if err != nil {
		return err
	}
	return s.memory.beginTx(ctx, s.write, version)
}

// errUndo means that a Change was refused after it had written.
var errUndo = errors.New("a change must be undone")

// runTogether runs the jobs of a group one after the other and returns how many were not refused. Most refusals come
// before a Change has written anything, and most groups have none, so there are no savepoints; errUndo means that one
// is needed.
func (s *Store) runTogether(ctx context.Context, group []*job) (changes []*bot.Change, kept int, err error) {
	for _, j := range group {
		s.direct.wrote = false
		j.err = j.run(ctx, s.write, false)
		if errors.Is(j.err, errGuess) && !s.direct.wrote {
			j.err = j.run(ctx, s.write, true)
		}
		switch {
		case j.err != nil && s.dialect.isFatal(j.err):
			return nil, 0, j.err
		case j.err != nil && s.direct.wrote && (len(group) > 1 || errors.Is(j.err, errGuess)):
			return nil, 0, errUndo
		case j.err != nil:
			j.applied = nil
			continue
		}
		kept++
		if j.change != nil {
			changes = append(changes, j.change)
		}
	}
	return changes, kept, nil
}

// runAgain rolls a group back and runs its jobs once more, each with a savepoint.
func (s *Store) runAgain(ctx context.Context, group []*job) (changes []*bot.Change, kept int, err error) {
	s.memory.dropAll()
	if err := s.write.execOne(ctx, "ROLLBACK"); err != nil {
		return nil, 0, fmt.Errorf("undo group: %w", err)
	}
	if err := s.beginTx(ctx); err != nil {
		return nil, 0, err
	}
	for _, j := range group {
		if err := s.runPart(ctx, j); err != nil {
			return nil, 0, err
		}
		if j.err != nil {
			continue
		}
		kept++
		if j.change != nil {
			changes = append(changes, j.change)
		}
	}
	return changes, kept, nil
}

// finishTx commits the transaction that holds changes.
func (s *Store) finishTx(ctx context.Context, changes []*bot.Change) error {
	if hook := s.options.Hooks.BeforeCommit; hook != nil && len(changes) > 0 {
		hook(changes)
	}
	began := time.Now()
	if err := s.memory.flushLanes(ctx, s.write); err != nil {
		return s.rollbackGroup(ctx, s.dialect.wrapError("write", err))
	}
	if err := s.guard.countCommit(ctx, s.write, &s.memory.numbers); err != nil {
		return s.rollbackGroup(ctx, s.dialect.wrapError("write", err))
	}
	err := s.write.execOne(ctx, "COMMIT")
	if err != nil {
		return s.rollbackGroup(ctx, s.dialect.wrapError("commit", err))
	}
	if hook := s.options.Hooks.Took; hook != nil && len(changes) > 0 {
		hook(time.Since(began))
	}
	s.guard.markDurable(s.memory.numbers.sumOfNumbers())
	if s.memory.version, err = s.direct.dataVersion(); err != nil {
		s.memory.dropAll() // it will be read again
	}
	if hook := s.options.Hooks.AfterCommit; hook != nil && len(changes) > 0 {
		hook(changes)
	}
	return nil
}

// runPart runs one job within the transaction, and undoes it alone if it is refused. An error of
// part is an error of the group.
func (s *Store) runPart(ctx context.Context, j *job) error {
	if err := s.write.execOne(ctx, "SAVEPOINT part"); err != nil {
		return fmt.Errorf("savepoint: %w", err)
	}
	j.err = j.run(ctx, s.write, true)
	if j.err == nil {
		j.err = s.memory.flushLanes(ctx, s.write)
	}
	if j.err != nil {
		if s.dialect.isFatal(j.err) {
			return j.err
		}
		j.applied = nil
		s.memory.dropAll()
		if err := s.write.execOne(ctx, "ROLLBACK TO SAVEPOINT part"); err != nil {
			return fmt.Errorf("undo change: %w", err)
		}
		if err := s.checkMemory(ctx); err != nil {
			return err
		}
	}
	if err := s.write.execOne(ctx, "RELEASE SAVEPOINT part"); err != nil {
		return fmt.Errorf("release savepoint: %w", err)
	}
	return nil
}

// rollbackGroup gives up the group. SQLite may have rolled back by itself, and a failure of the second rollback is
// harmless, because the connection is dropped next.
func (s *Store) rollbackGroup(ctx context.Context, cause error) error {
	_ = s.write.execOne(ctx, "ROLLBACK")
	return cause
}

// connectWriter opens the writer's connection.
func (s *Store) connectWriter() error {
	conn, err := openDirect(s.dialect.dsn(false))
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	s.direct, s.write = conn, newQueries(conn, s.options.Hooks.Statement)
	s.memory.dropAll()
	return nil
}

// reconnectWriter opens a new connection and checks that it sees what was committed.
func (s *Store) reconnectWriter(ctx context.Context) error {
	if err := s.connectWriter(); err != nil {
		return err
	}
	s.guard.forgetFiles()
	had := s.guard.count
	if err := s.guard.recountCommits(ctx, s.write); err != nil {
		return err
	}
	if s.guard.count < had {
		s.guard.lost = s.guard.missingError(fmt.Sprintf("up to %d commits are missing", had-s.guard.count))
		return s.guard.lost
	}
	return nil
}

// rescueLog writes what only our open files still contain of the write-ahead log to the database, if that is still the
// one at its path. It is attempted whenever damage is found, and its result shows at the next start.
func (s *Store) rescueLog(ctx context.Context) {
	if err := s.write.execOne(ctx, "PRAGMA wal_checkpoint(TRUNCATE)"); err != nil {
		s.options.Log.Error().Err(err).Msg("could not rescue the write-ahead log")
	}
}

// disconnectWriter drops the writer's connection for good, in whatever state it is.
func (s *Store) disconnectWriter() {
	if s.write == nil {
		return
	}
	if err := s.direct.close(); err != nil {
		s.options.Log.Warn().Err(err).Msg("could not close the connection")
	}
	s.direct, s.write = nil, nil
	s.memory.dropAll()
}
