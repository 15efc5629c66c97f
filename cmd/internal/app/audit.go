package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/record"
	"github.com/zephbot/zephbot/bot/turn"
	"github.com/zephbot/zephbot/cmd/internal/layout"
	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/audit"
)

func (c *Core) openAudit() error {
	a := c.cfg.Audit
	if !a.Enabled {
		return nil
	}
	opts := audit.Options{
		Redactor: c.redactor,
		Now:      c.now,
		ID:       c.owner,
		Required: a.Required,
		Log:      c.log.With().Str("component", "audit").Logger(),
		Rotation: c.rotation(),
	}
	if a.Destination == "stdout" {
		if opts.Writer = os.Stdout; c.opts.Mode == layout.ACP { // which belongs to the protocol
			opts.Writer = os.Stderr
		}
		log, err := audit.New(opts)
		c.audit = log
		return err
	}
	var errs []error
	for _, path := range c.auditFiles() {
		opts.Path = path
		opts.Anchor = layout.NewMarks(c.bucket(layout.MarkBucket), c.dir, path)
		log, err := audit.New(opts)
		if err == nil {
			c.audit, c.auditFile = log, path
			return nil
		}
		errs = append(errs, fmt.Errorf("audit log: %w", err))
	}
	return errs[0]
}

// auditFiles returns the possible names of this process's log, in order of preference.
func (c *Core) auditFiles() []string {
	switch {
	case c.opts.Mode == layout.ACP: // several processes run at the same time, and each log has one writer
		return []string{layout.StateLog(c.dir)}
	case !c.shared():
		return []string{c.opts.Layout().OneLog(c.dir)}
	default:
		return c.opts.Layout().WriterLogs(c.dir)
	}
}

// rotation says when audit logs continue in a new file. With a retention, files have to end every day,
// because only whole files are removed.
func (c *Core) rotation() audit.Rotation {
	return audit.Rotation{
		MaxBytes: c.cfg.Audit.MaxBytes,
		Daily:    c.cfg.Audit.Rotate == "day" || c.cfg.Retention.Audit > 0,
	}
}

// pruneAudit removes old files of the audit logs (retention.audit): of this process's own, and of those that nobody
// writes. Other processes that run remove their own.
func (c *Core) pruneAudit(ctx context.Context) error {
	if c.cfg.Retention.Audit == 0 || !c.cfg.Audit.Enabled {
		return nil
	}
	before := c.now().AddDate(0, 0, -c.cfg.Retention.Audit)
	log := c.log.With().Str("component", "audit").Logger()
	report := func(path string, done audit.Pruned) {
		if done.Files > 0 {
			log.Info().Str("file", path).Int("files", done.Files).
				Str("until", done.Until).Msg("old audit lines removed")
		}
	}
	done, err := c.audit.Prune(ctx, before)
	report(c.auditFile, done)
	for _, other := range c.opts.Layout().Logs() {
		if filepath.Clean(other.Path) == filepath.Clean(c.auditFile) || !other.Exists() {
			continue
		}
		done, failed := audit.Prune(ctx, audit.Options{Path: other.Path, ID: c.owner, Now: c.now, Log: log}, before)
		if failed != nil && !errors.Is(failed, audit.ErrHeld) {
			err = errors.Join(err, failed)
		}
		report(other.Path, done)
	}
	return err
}

// openRecords builds what puts on record what people do without a tool.
func (c *Core) openRecords() {
	deps := record.Deps{
		Store:  c.stores.Bot,
		Keeper: c.keeper(),
		Owner:  c.owner,
		Lives:  c.living.Lives,
		Eldest: c.living.Eldest,
		Now:    c.now,
		Log:    c.log,
	}
	if c.audit != nil {
		deps.Audit = c.audit
	}
	c.records = record.New(deps)
}

// commandAudit writes what people do by commands and buttons.
func (c *Core) commandAudit() turn.Audit {
	return turn.Audit{Line: c.commandLine, Recorded: func(ctx context.Context) { c.records.Settle(ctx) }}
}

// commandLine is a line about what somebody has done by a command or a button.
func (c *Core) commandLine(call *turn.Call, what string, args any) []bot.Fact {
	raw, err := json.Marshal(args)
	if err != nil {
		c.log.Error().Err(err).Str("command", what).Msg("command not recorded")
		return nil
	}
	msg := call.Message
	return c.records.Due(&tools.Call{
		ID: msg.ID, Tool: what, Args: raw, Trail: &tools.Trail{ApprovedBy: msg.Caller},
		Origin: tools.Origin{
			Channel: msg.Place.Channel,
			Session: string(call.Session),
			Chat:    msg.Place.ChatKey(),
			Caller:  msg.Caller,
			Admin:   call.Admin,
		},
	}, nil)
}

// auditTo returns where the audit is written, for the startup messages.
func (c *Core) auditTo() string {
	switch {
	case !c.cfg.Audit.Enabled:
		return "off (audit.enabled)"
	case c.cfg.Audit.Destination == "stdout":
		return c.cfg.Audit.Destination
	default:
		return c.auditFile
	}
}
