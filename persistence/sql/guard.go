package sql

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/zephbot/zephbot/persistence/reading"
	"github.com/zephbot/zephbot/policy/reason"
)

// markSuffix is added to the name of the database for the file with its high-water mark.
const markSuffix = "-mark"

// markFormat is the content of that file: the id of the database, and a number that every commit to it increases: the
// sum of the numbers given to arrivals, questions and outbox rows, and of the commits that gave none. The width is
// fixed, so that one write replaces it completely.
const markFormat = "%s %020d\n"

const (
	nameDatabase = `INSERT INTO meta (name, value) VALUES ('id', ?) ON CONFLICT (name) DO NOTHING`
	nameQuery    = `SELECT value FROM meta WHERE name = 'id'`
	countCommit  = `INSERT INTO meta (name, value) VALUES ('commits', ?) ON CONFLICT (name) DO UPDATE
		SET value = excluded.value`
)

// guard detects that the database lost commits: its write-ahead log was removed, or a file was emptied or replaced,
// while the service is running or stopped. SQLite itself accepts whatever it finds.
//
// Each commit increases a counter in the database, and then in a file next to it. The file is not flushed: after a
// power failure it may be behind the database, which is harmless, and it is never ahead of it. Only the writer
// goroutine uses a guard.
type guard struct {
	path  string
	id    string
	count int64
	mark  *os.File
	seen  map[string]os.FileInfo // the files of the database as last seen, by suffix
	lost  *Unavailable           // set once something is lost: nothing is stored from then on
}

// openMark compares the database with its mark. A mark that is ahead means that Changes are lost, and is an error.
func (g *guard) openMark(ctx context.Context, q *queries) error {
	if err := g.readID(ctx, q); err != nil {
		return err
	}
	known, count, err := readMark(g.path + markSuffix)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return &Unavailable{
			Path: g.path + markSuffix, Op: "read",
			Reason: reason.Plain("the high-water mark cannot be read; check the file"), Err: err,
		}
	case known != g.id:
		return g.missingError("it is not the database that was here before")
	case count > g.count:
		return g.missingError(fmt.Sprintf("up to %d commits are missing", count-g.count))
	}
	if g.mark, err = os.OpenFile(g.path+markSuffix, os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return &Unavailable{
			Path:   g.path + markSuffix,
			Op:     "open",
			Reason: reason.Plain("the high-water mark cannot be written; check the directory and its permissions"),
			Err:    err,
		}
	}
	g.storeMark()
	return nil
}

// readID reads, or assigns, the database's id and count.
func (g *guard) readID(ctx context.Context, q *queries) error {
	if err := q.execOne(ctx, nameDatabase, rand.Text()); err != nil {
		return fmt.Errorf("name the database: %w", err)
	}
	if _, err := q.queryOne(ctx, func(scan reading.Scan) error { return scan(&g.id) }, nameQuery); err != nil {
		return fmt.Errorf("read the name of the database: %w", err)
	}
	return g.recountCommits(ctx, q)
}

// recountCommits reads the number of commits from the database.
func (g *guard) recountCommits(ctx context.Context, q *queries) error {
	n, err := readNumbers(ctx, q)
	g.count = n.sumOfNumbers()
	return err
}

func (g *guard) missingError(what string) *Unavailable {
	return &Unavailable{
		Path: g.path,
		Op:   "open",
		Reason: reason.Plain(what + ": its file or the one ending in -wal was removed, " +
			"emptied or replaced. Put the files back, or restore a backup; to continue with what is there, " +
			"knowing that messages may be lost, remove the file ending in " + markSuffix),
	}
}

// checkFiles checks the files of the database before a commit. It costs three system calls.
func (g *guard) checkFiles() error {
	for _, suffix := range []string{"", "-wal", "-shm"} {
		before := g.seen[suffix]
		now, err := os.Stat(g.path + suffix)
		var what string
		switch {
		case err == nil && (before == nil || os.SameFile(before, now) && now.Size() >= before.Size()):
			g.seen[suffix] = now
			continue
		case err == nil && os.SameFile(before, now):
			what = "was truncated"
		case err == nil:
			what = "was replaced"
		case before == nil && errors.Is(err, fs.ErrNotExist): // not created yet
			continue
		case errors.Is(err, fs.ErrNotExist):
			what = "was removed"
		default:
			return &Unavailable{
				Path: g.path + suffix, Op: "look at",
				Reason: reason.Plain("the file cannot be read; check the directory and its permissions"), Err: err,
			}
		}
		g.lost = &Unavailable{
			Path: g.path + suffix, Op: "write",
			Reason: reason.Plain("the file " + what + " while the service was using it; nothing is stored any more. " +
				"Stop what did it and restart the service: it reports then whether something is lost"),
		}
		return g.lost
	}
	return nil
}

// forgetFiles resets the guard for a new connection: SQLite may have removed and recreated
// the files next to the database.
func (g *guard) forgetFiles() {
	delete(g.seen, "-wal")
	delete(g.seen, "-shm")
}

// countCommit counts the running commit within its transaction. A commit that gave out a number is counted by that.
func (g *guard) countCommit(ctx context.Context, q *queries, n *numbers) error {
	if n.sumOfNumbers() > g.count {
		return nil
	}
	n.commits++
	if err := q.execOne(ctx, countCommit, fmt.Sprint(n.commits)); err != nil {
		return fmt.Errorf("count the commit: %w", err)
	}
	return nil
}

// markDurable records that the commit is durable.
func (g *guard) markDurable(count int64) {
	g.count = count
	g.storeMark()
}

// storeMark writes the mark. If that fails, the mark is merely out of date, until a later write succeeds.
func (g *guard) storeMark() { _, _ = g.mark.WriteAt(fmt.Appendf(nil, markFormat, g.id, g.count), 0) }

func (g *guard) closeMark() error {
	if g.mark == nil {
		return nil
	}
	return g.mark.Close()
}

func readMark(path string) (id string, count int64, err error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return "", 0, err
	}
	if len(raw) == 0 { // the process ended between creating and writing it
		return "", 0, fs.ErrNotExist
	}
	if _, err := fmt.Fscanf(strings.NewReader(string(raw)), markFormat, &id, &count); err != nil {
		return "", 0, fmt.Errorf("%q is not a mark: %w", raw[:min(len(raw), 64)], err)
	}
	return id, count, nil
}
