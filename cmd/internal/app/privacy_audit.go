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

	"github.com/zephbot/zephbot/bot/privacy"
	"github.com/zephbot/zephbot/tools/audit"
)

// auditPlace are the audit logs: lines of the person are exported, and pseudonymised when the person is erased. They are
// not deleted, because they are the evidence of what was done, and by which rule.
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
		return sharedLogs(c.cfg)
	}
	return []string{auditPath(c.cfg, c.dir)}
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
