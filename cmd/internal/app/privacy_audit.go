package app

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/zephbot/zephbot/bot/privacy"
	"github.com/zephbot/zephbot/cmd/internal/layout"
	"github.com/zephbot/zephbot/tools/audit"
)

// auditPlace are the audit logs: lines of the person are exported, and pseudonymised when the person is erased. They
// are not deleted, because they are the evidence of what was done, and by which rule.
type auditPlace struct{ core *Core }

// Name implements privacy.Place.
func (auditPlace) Name() string { return "audit" }

// logs lists the logs of this mode, and of the other processes that share the database.
func (p auditPlace) logs() []string {
	c := p.core
	if !c.cfg.Audit.Enabled || c.cfg.Audit.Destination == "stdout" {
		return nil
	}
	if c.shared() && c.opts.Home == "" {
		return c.opts.Layout().SharedLogs()
	}
	return []string{c.opts.Layout().OneLog(c.dir)}
}

// Export implements privacy.Place.
func (p auditPlace) Export(ctx context.Context, of *privacy.Order, to *privacy.Archive) error {
	lines := to.Lines("audit.jsonl")
	for _, log := range p.logs() {
		if _, err := os.Stat(log); errors.Is(err, os.ErrNotExist) {
			continue
		}
		files, err := audit.Files(log)
		if err != nil {
			return err
		}
		for _, name := range files {
			if err := exportLines(ctx, name, of, lines); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	return nil
}

// exportLines writes the lines about calls of the person, and those that they approved.
func exportLines(ctx context.Context, name string, of *privacy.Order, to *privacy.Lines) error {
	f, err := os.Open(name)
	if errors.Is(err, os.ErrNotExist) {
		return nil // it was too old, and deleted meanwhile
	}
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // read only
	in := bufio.NewReader(f)
	for ctx.Err() == nil {
		line, err := in.ReadBytes('\n')
		if bytes.Contains(line, []byte(of.Caller())) {
			var by struct {
				Caller   string `json:"caller_id"`
				Approved string `json:"approved_by"`
			}
			if json.Unmarshal(line, &by) == nil && (by.Caller == of.Caller() || by.Approved == of.Caller()) {
				if err := to.Add(json.RawMessage(line)); err != nil {
					return err
				}
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return ctx.Err()
}

// shortID is the length of an id up to which it is too likely to be just any number in an argument.
const shortID = 6

// personIn returns the person for the log.
func personIn(of *privacy.Order) audit.Person {
	p := audit.Person{
		IDs: []string{of.Caller()}, Pseudonym: of.Pseudonym, Content: true, Receipt: of.ID,
		Session: func(key string) string {
			key = strings.ReplaceAll("/"+key+"/", "/"+of.Person.ID+"/", "/"+of.Pseudonym+"/")
			return strings.Trim(key, "/")
		},
	}
	if len(of.Person.ID) > shortID {
		p.IDs = append(p.IDs, of.Person.ID)
	}
	return p
}

// Own pseudonymises a person in the log that this process writes: no other process can.
func (p auditPlace) Own(ctx context.Context, of *privacy.Order) (int, error) {
	if p.core.audit == nil {
		return 0, nil
	}
	done, err := p.core.audit.Pseudonymise(ctx, personIn(of))
	if err == nil && done.Left > 0 {
		err = fmt.Errorf(
			"%d lines of the audit log name the person, and cannot be rewritten: they are no valid lines", done.Left,
		)
	}
	return done.Lines, err
}

// others is how long other processes have to pseudonymise a person in their logs.
const (
	others     = time.Minute
	othersLook = 200 * time.Millisecond // between two looks
)

// Erase implements privacy.Place: it sees to this process's log and those of processes that are gone. Those that run
// see to their own (privacy.Handler), which it waits for.
func (p auditPlace) Erase(ctx context.Context, of *privacy.Order) (int, error) {
	c := p.core
	n, err := p.Own(ctx, of)
	errs := []error{err}
	held := false
	for _, path := range p.logs() {
		if path == c.auditFile {
			continue
		}
		done, err := audit.Pseudonymise(ctx, audit.Options{
			Path:     path,
			Anchor:   layout.NewMarks(c.bucket(layout.MarkBucket), c.dir, path),
			Redactor: c.redactor,
			Now:      c.now,
			Log:      c.log,
		}, personIn(of))
		if n += done.Lines; errors.Is(err, audit.ErrHeld) {
			held = true
			continue
		}
		errs = append(errs, err)
	}
	if held {
		errs = append(errs, p.wait(ctx, of))
	}
	return n, errors.Join(errs...)
}

// wait waits until the other processes have seen to their logs.
func (p auditPlace) wait(ctx context.Context, of *privacy.Order) error {
	c := p.core
	ctx, cancel := context.WithTimeout(ctx, others)
	defer cancel()
	ticker := time.NewTicker(othersLook)
	defer ticker.Stop()
	for {
		living, err := c.stores.Living(ctx)
		if err != nil {
			return err
		}
		left := 0
		for _, owner := range living {
			done, err := c.stores.Bot.Fact(ctx, privacy.AuditedBucket, of.ID+"/"+owner, c.now())
			if err != nil {
				return err
			}
			if owner != c.owner && done == "" {
				left++
			}
		}
		if left == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d processes have not pseudonymised their audit logs", left)
		case <-ticker.C:
		}
	}
}
