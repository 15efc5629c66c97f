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

// maxNamed is how many files that could not be restored are named to the model.
const maxNamed = 10

// checkScope refuses globs that cannot be read.
func checkScope(globs []string) error {
	for _, g := range globs {
		if !doublestar.ValidatePattern(g) {
			return fmt.Errorf("transaction_scope: %q is not a valid glob", g)
		}
	}
	return nil
}

// transaction is a run that may be taken back. Its zero value is one that may not.
type transaction struct {
	r        *Runner
	snap     *snapshot
	release  func()
	warnings []string
}

// begin takes the snapshot, unless the command only reads. Transactional runs in one workspace come one after the
// other, so that none takes back, or is told to have changed, what another did.
func (r *Runner) begin(ctx context.Context, text, ws string) (*transaction, error) {
	tx := &transaction{r: r}
	if !r.opts.Transactional {
		return tx, nil
	}
	if _, reads := command.ReadsOnly(r.opts.Reader.Read(text).Script); reads {
		return tx, nil
	}
	release, ok := r.locks.acquire(ctx.Done(), ws)
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
			Category: tools.PermanentFailure, Message: "the command was not run: " + why(err) + ": " + r.lost(),
			Err:        err,
			Suggestion: "Remove what is not needed from the working directory, or tell the user.",
		}
	default:
		r.log.Warn().Err(err).Msg("no snapshot of the workspace")
		tx.warnings = append(tx.warnings, "[warn] "+why(err)+": "+r.lost())
		return tx, nil
	}
}

// lost says what does not work without a snapshot.
func (r *Runner) lost() string {
	if r.opts.AutoRollback {
		return "this command cannot be rolled back"
	}
	return "what this command changes cannot be told"
}

// why says a failed snapshot in words for the model.
func why(err error) string {
	if size, ok := errors.AsType[*sizeError](err); ok {
		return size.Error()
	}
	return "no snapshot of the working directory could be taken"
}

// close throws the snapshot away and lets the next run begin.
func (t *transaction) close() {
	if t.snap != nil {
		if err := t.snap.discard(); err != nil {
			t.r.log.Warn().Err(err).Msg("snapshot was not removed")
		}
		t.snap = nil
	}
	if t.release != nil {
		t.release()
		t.release = nil
	}
}

// settle compares with the snapshot when the run failed, whatever became of the call meanwhile: with auto_rollback it
// takes the run back, else it tells what the run has left behind.
func (t *transaction) settle(call *tools.Call, o *outcome) []string {
	if t.snap == nil || !o.failed(t.r.opts.AutoRollbackExitCodes) {
		return nil
	}
	if o.status.Stuck || o.held {
		t.r.log.Warn().Msg("rollback while a process may still write")
	}
	if !t.r.opts.AutoRollback {
		return []string{t.snap.left()}
	}
	done := t.snap.rollback()
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
