package layout

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/facts"
	"github.com/zephbot/zephbot/persistence"
	"github.com/zephbot/zephbot/tools/audit"
)

// MarkBucket holds the positions of audit logs in a database.
const MarkBucket = "audit"

// markWithin limits reading and writing the position of a log.
const markWithin = 10 * time.Second

// Marks stores the position of an audit log as a fact. It implements audit.Anchor.
type Marks struct {
	facts facts.Bucket
	key   string
}

// NewMarks returns what stores the position of the log at path in a bucket of the database of a state directory.
func NewMarks(bucket facts.Bucket, dir, path string) Marks { return Marks{bucket, markKey(dir, path)} }

// Load implements audit.Anchor.
func (m Marks) Load() (audit.Mark, bool, error) {
	ctx, cancel := context.WithTimeout(context.Background(), markWithin)
	defer cancel()
	return readMark(ctx, m.facts.Store, m.key, m.facts.Now())
}

// Save implements audit.Anchor.
func (m Marks) Save(mark audit.Mark) error {
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

func readMark(
	ctx context.Context, facts bot.Facts, key string, now time.Time,
) (mark audit.Mark, known bool, err error) {
	value, err := facts.Fact(ctx, MarkBucket, key, now)
	if err != nil || value == "" {
		return mark, false, err
	}
	if err := json.Unmarshal([]byte(value), &mark); err != nil {
		return mark, false, fmt.Errorf("cannot decode the mark of the audit log: %w", err)
	}
	return mark, true, nil
}

// MarkOf reads the position of the service's log for the command line, whether or not the service runs. It reads the
// database at log.URL, then the one next to the log, and then the one in each of log.Dirs; the mark is nil if none of
// them knows the log.
func MarkOf(ctx context.Context, log Log) (*audit.Mark, error) {
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
