package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/zephbot/zephbot/bot/record"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/facts"
	"github.com/zephbot/zephbot/cmd/internal/config"
	"github.com/zephbot/zephbot/persistence"
	"github.com/zephbot/zephbot/tools/audit"
)

// auditName is the log's file name in the state directory, if the configuration sets none.
const auditName = "audit.jsonl"

// markBucket holds the position of the audit log, by markKey; markWithin limits reading and writing it.
const (
	markBucket = "audit"
	markWithin = 10 * time.Second
)

func (c *Core) openAudit() error {
	a := c.cfg.Audit
	if !a.Enabled {
		return nil
	}
	opts := audit.Options{
		Redactor: c.redactor, Now: c.now, ID: c.owner, Required: a.Required, Log: c.log.With().Str("component", "audit").Logger(),
		Rotation: c.rotation(),
	}
	if a.Destination == "stdout" {
		if opts.Writer = os.Stdout; c.opts.Mode == AuditACP { // which belongs to the protocol
			opts.Writer = os.Stderr
		}
		log, err := audit.New(opts)
		c.audit = log
		return err
	}
	var errs []error
	for _, path := range c.auditFiles() {
		opts.Path = path
		opts.Anchor = marks{facts: c.bucket(markBucket), key: markKey(c.dir, path)}
		log, err := audit.New(opts)
		if err == nil {
			c.audit, c.auditFile = log, path
			return nil
		}
		errs = append(errs, fmt.Errorf("audit log: %w", err))
	}
	return errs[0]
}

// rotation says when audit logs continue in a new file. With a retention, files have to end every day, because only whole
// files are removed.
func (c *Core) rotation() audit.Rotation {
	return audit.Rotation{MaxBytes: c.cfg.Audit.MaxBytes, Daily: c.cfg.Audit.Rotate == "day" || c.cfg.Retention.Audit > 0}
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
			log.Info().Str("file", path).Int("files", done.Files).Str("until", done.Until).Msg("old audit lines removed")
		}
	}
	done, err := c.audit.Prune(ctx, before)
	report(c.auditFile, done)
	for _, other := range AuditLogs(c.opts) {
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
		Store: c.stores.Bot, Keeper: c.keeper(), Owner: c.owner, Lives: c.living.Lives, Eldest: c.living.Eldest, Now: c.now, Log: c.log,
	}
	if c.audit != nil {
		deps.Audit = c.audit
	}
	c.records = record.New(deps)
}

// auditPath returns the path of the audit log; dir is the state directory.
func auditPath(cfg *config.Config, dir string) string {
	if cfg.Audit.Destination == "" {
		return filepath.Join(dir, auditName)
	}
	return cfg.Path(cfg.Audit.Destination)
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

// marks stores the mark of an audit log as a fact. It implements audit.Anchor.
type marks struct {
	facts facts.Bucket
	key   string
}

// Load implements audit.Anchor.
func (m marks) Load() (audit.Mark, bool, error) {
	ctx, cancel := context.WithTimeout(context.Background(), markWithin)
	defer cancel()
	return readMark(ctx, m.facts.Store, m.key, m.facts.Now())
}

// Save implements audit.Anchor.
func (m marks) Save(mark audit.Mark) error {
	value, err := json.Marshal(mark)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), markWithin)
	defer cancel()
	return m.facts.Save(ctx, m.key, string(value))
}

// markKey returns the key of a log in the database of dir: a directory that is moved as a whole keeps its mark.
func markKey(dir, path string) string {
	if within, err := filepath.Rel(dir, path); err == nil && filepath.IsLocal(within) {
		return filepath.ToSlash(within)
	}
	return path
}

func readMark(ctx context.Context, facts bot.Facts, key string, now time.Time) (mark audit.Mark, known bool, err error) {
	value, err := facts.Fact(ctx, markBucket, key, now)
	if err != nil || value == "" {
		return mark, false, err
	}
	if err := json.Unmarshal([]byte(value), &mark); err != nil {
		return mark, false, fmt.Errorf("cannot decode the mark of the audit log: %w", err)
	}
	return mark, true, nil
}

// AuditMark reads the position of the service's log for the command line, whether or not the service runs. It reads the
// database at log.URL, then the one next to the log, and then the one in each of log.Dirs; the mark is nil if none of
// them knows the log.
func AuditMark(ctx context.Context, log AuditLog) (*audit.Mark, error) {
	path, err := filepath.Abs(log.Path)
	if err != nil {
		return nil, fmt.Errorf("mark of the audit log: %w", err)
	}
	type place struct{ dir, url string }
	var places []place
	if log.URL != "" && len(log.Dirs) > 0 {
		places = append(places, place{log.Dirs[0], log.URL})
	}
	for _, dir := range append([]string{filepath.Dir(path)}, log.Dirs...) {
		places = append(places, place{dir, ""})
	}
	for _, p := range places {
		mark, known, err := markIn(ctx, p.dir, p.url, path)
		if err != nil {
			return nil, fmt.Errorf("mark of the audit log: %w", err)
		}
		if known {
			return &mark, nil
		}
	}
	return nil, nil
}

func markIn(ctx context.Context, dir, url, path string) (mark audit.Mark, known bool, err error) {
	store, err := persistence.OpenReader(ctx, dir, url)
	if errors.Is(err, fs.ErrNotExist) {
		return mark, false, nil
	}
	if err != nil {
		return mark, false, err
	}
	mark, known, err = readMark(ctx, store, markKey(dir, path), time.Now())
	return mark, known, errors.Join(err, store.Close())
}
