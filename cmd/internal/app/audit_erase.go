package app

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/zephbot/zephbot/tools/audit"
)

// EraseAudit removes a person from the audit logs of every mode, see audit.Log.Pseudonymise. own is the log that this
// process writes, at ownPath, which is rewritten beside its running calls; nil and "" = none, for the command line. A log
// that another running process holds is not touched, and the error says which (errors.Is audit.ErrHeld); the others are
// done nevertheless. What went to stdout is not ours to change.
func EraseAudit(ctx context.Context, opts Options, person audit.Person, own *audit.Log, ownPath string) (audit.Erased, error) {
	done, err := own.Pseudonymise(ctx, person)
	others, more := eraseLogs(ctx, opts, person, ownPath)
	return sum(done, others), errors.Join(err, more)
}

func eraseLogs(ctx context.Context, opts Options, person audit.Person, except string) (done audit.Erased, err error) {
	seen := map[string]bool{filepath.Clean(except): true}
	for _, log := range AuditLogs(opts) {
		path := filepath.Clean(log.Path)
		if seen[path] || !log.Exists() {
			continue
		}
		seen[path] = true
		// Without an anchor: the next start finds the position that its database remembers in the rotated file.
		one, failed := audit.Pseudonymise(ctx, audit.Options{Path: log.Path, ID: "erase"}, person)
		if failed != nil {
			err = errors.Join(err, fmt.Errorf("%s log: %w", log.Mode, failed))
		}
		done = sum(done, one)
	}
	return done, err
}

func sum(a, b audit.Erased) audit.Erased {
	return audit.Erased{Lines: a.Lines + b.Lines, Files: a.Files + b.Files, Left: a.Left + b.Left}
}
