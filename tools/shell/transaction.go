package shell

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/zephbot/zephbot/policy/command"
	"github.com/zephbot/zephbot/tools"
)

// maxNamed is the maximum number of names in the note about files that could not be restored.
const maxNamed = 10

// checkScope returns an error for globs that are not valid.
func checkScope(globs []string) error {
	for _, g := range globs {
		if !doublestar.ValidatePattern(g) {
			return fmt.Errorf("transaction_scope: %q is not a valid glob", g)
		}
	}
	return nil
}

// transaction is a run that may be rolled back. Its zero value is a run without a snapshot.
type transaction struct {
	r        *Runner
	snap     *snapshot
	release  func()
	warnings []string
}

// beginTransaction takes the snapshot, unless the command only reads. Transactional runs in one workspace are
// serialised, so that none rolls back, or is blamed for, the changes of another.
func (r *Runner) beginTransaction(ctx context.Context, call *tools.Call, text, ws string) (*transaction, error) {
	tx := &transaction{r: r}
	if !r.opts.Transactional || isReading(call) {
		return tx, nil
	}
	if _, reads := command.ReadsOnly(r.opts.Reader.Read(text).Script); reads {
		return tx, nil
	}
	release, ok := r.locks.acquireLock(ctx.Done(), ws)
	if !ok {
		return nil, tools.AsError(ctx.Err())
	}
	tx.release = release
	snap, err := takeSnapshot(ctx, snapshotOptions{
		root: ws, store: r.opts.SnapshotDir, scope: r.opts.TransactionScope, deny: r.deniedInside(ws),
		maxBytes: r.opts.MaxSnapshotBytes,
	})
	switch {
	case err == nil:
		tx.snap = snap
		return tx, nil
	case ctx.Err() != nil:
		tx.close()
		return nil, tools.AsError(ctx.Err())
	case r.opts.SnapshotRequired:
		tx.close()
		return nil, &tools.Error{
			Category:   tools.PermanentFailure,
			Message:    "the command was not run: " + snapshotReason(err) + ": " + r.lostFeature(),
			Err:        err,
			Suggestion: "Remove what is not needed from the working directory, or tell the user.",
		}
	default:
		r.log.Warn().Err(err).Msg("no snapshot of the workspace")
		tx.warnings = append(tx.warnings, "[warn] "+snapshotReason(err)+": "+r.lostFeature())
		return tx, nil
	}
}

// lostFeature returns which feature is not available without a snapshot.
func (r *Runner) lostFeature() string {
	if r.opts.AutoRollback {
		return "this command cannot be rolled back"
	}
	return "what this command changes cannot be told"
}

// snapshotReason returns the reason for a failed snapshot, in words for the model.
func snapshotReason(err error) string {
	if size, ok := errors.AsType[*sizeError](err); ok {
		return size.Error()
	}
	return "no snapshot of the working directory could be taken"
}

// close discards the snapshot and lets the next run begin.
func (t *transaction) close() {
	if t.snap != nil {
		if err := t.snap.discardCopies(); err != nil {
			t.r.log.Warn().Err(err).Msg("snapshot was not removed")
		}
		t.snap = nil
	}
	if t.release != nil {
		t.release()
		t.release = nil
	}
}

// compareAfter compares the workspace with the snapshot if the run failed, even if the call was cancelled. With
// auto_rollback it rolls the run back; otherwise it reports what the run left behind.
func (t *transaction) compareAfter(call *tools.Call, o *outcome) []string {
	if t.snap == nil || !o.needsRollback(t.r.opts.AutoRollbackExitCodes) {
		return nil
	}
	if o.status.Stuck || o.held {
		t.r.log.Warn().Msg("rollback while a process may still write")
	}
	if !t.r.opts.AutoRollback {
		return []string{t.snap.leftNote()}
	}
	done := t.snap.rollBack()
	if call.Trail != nil {
		call.Trail.RolledBack = true
	}
	lines := []string{fmt.Sprintf("[rolled back: %d restored, %d deleted]", done.restored, done.deleted)}
	if len(done.failed) > 0 {
		named := make([]string, 0, maxNamed)
		for _, f := range done.failed[:min(len(done.failed), maxNamed)] {
			t.r.log.Warn().Err(f.err).Str("file", f.path).Msg("file was not restored")
			named = append(named, fmt.Sprintf("%q", f.path))
		}
		if more := len(done.failed) - len(named); more > 0 {
			named = append(named, fmt.Sprintf("and %d more", more))
		}
		lines = append(lines, "[warn] could not be restored: "+strings.Join(named, ", "))
	}
	return lines
}
