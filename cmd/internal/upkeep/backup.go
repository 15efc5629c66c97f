package upkeep

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/zephbot/zephbot/cmd/internal/app"
	"github.com/zephbot/zephbot/cmd/internal/config"
	"github.com/zephbot/zephbot/cmd/internal/layout"
	"github.com/zephbot/zephbot/persistence"
	"github.com/zephbot/zephbot/persistence/archive"
	"github.com/zephbot/zephbot/tools/audit"
)

const (
	// backupLock is the lock file of backups and restores in data_dir: one at a time.
	backupLock = "backup.lock"
	// backupScratch begins the name of the directory in data_dir with the copy of the database.
	backupScratch = "backup-scratch"
)

// BackupOptions say what a backup is to contain.
type BackupOptions struct {
	Workspaces bool        // the files of conversations
	Exclude    fs.FileInfo // the file that the backup is written to, which may be in a workspace; nil = none
}

// estate is where the parts of a service's state are, with one configuration.
type estate struct {
	data       string
	tokens     string
	workspaces string
	logs       []layout.Log
	auditDir   string // "" = the audit has no files
	postgres   bool
}

func estateOf(opts app.Options) estate {
	at := opts.Layout()
	e := estate{
		data: at.Data(), tokens: at.Tokens(), workspaces: at.Workspaces(), auditDir: at.LogDir(),
		postgres: opts.Config.Database.URL.Reveal() != "",
	}
	for _, log := range at.Logs() {
		if log.Mode == layout.Serve {
			e.logs = append(e.logs, log)
		}
	}
	return e
}

// without says in words what a backup with these options lacks.
func (e estate) without(o BackupOptions) []string {
	list := []string{
		"the configuration and the environment of the service: keep them yourself, they contain secrets",
		"vectors and the index of code: they are computed again",
		"copies of files for Undo, previews of commands that wait for a decision, and the directories of MCP " +
			"programs (data_dir/mcp)",
		"the state of the terminal and of the simulator",
	}
	if e.postgres {
		list = append([]string{"the database, which is PostgreSQL: run pg_dump first (docs/postgresql.md)"}, list...)
	}
	if !o.Workspaces {
		list = append([]string{"workspaces: files of conversations (--no-workspaces)"}, list...)
	}
	if e.auditDir == "" {
		list = append([]string{"the audit log, which goes to stdout"}, list...)
	}
	return list
}

// Backup writes the state of the service to out, while the service may be running. The copy of the database is made
// first, so that every file which it refers to is read later. What is written is complete only if the error is nil.
func Backup(ctx context.Context, opts app.Options, out io.Writer, o BackupOptions) (archive.Manifest, error) {
	e := estateOf(opts)
	if _, err := os.Stat(e.data); errors.Is(err, fs.ErrNotExist) {
		return archive.Manifest{}, fmt.Errorf(
			"%w: %s (data_dir) does not exist; there is nothing to back up", config.ErrInvalid, e.data,
		)
	} else if err != nil {
		return archive.Manifest{}, fmt.Errorf("%w: data_dir: %w; there is nothing to back up", config.ErrInvalid, err)
	}
	unlock, err := persistence.Lock(e.data, backupLock, "backup")
	if err != nil {
		return archive.Manifest{}, err
	}
	defer unlock()
	scratch, err := makeScratch(e.data)
	if err != nil {
		return archive.Manifest{}, err
	}
	defer func() { _ = os.RemoveAll(scratch) }() // the next backup removes what is left
	head := archive.Header{
		Version: opts.Version, Created: time.Now().UTC(), Database: archive.PostgreSQL, Without: e.without(o),
		Parts: []archive.Part{archive.Tokens},
	}
	var database persistence.Copy
	if !e.postgres {
		database, err = persistence.Snapshot(ctx, e.data, filepath.Join(scratch, persistence.FileName))
		if errors.Is(err, fs.ErrNotExist) {
			return archive.Manifest{}, fmt.Errorf(
				"%w: %s has no database yet; there is nothing to back up", config.ErrInvalid, e.data,
			)
		}
		if err != nil {
			return archive.Manifest{}, err
		}
		head.Database, head.Schema, head.Parts = archive.SQLite, database.Schema, append(head.Parts, archive.State)
	}
	if e.auditDir != "" {
		head.Parts = append(head.Parts, archive.Audit)
	}
	if o.Workspaces {
		head.Parts = append(head.Parts, archive.Workspaces)
	}
	w, err := archive.NewWriter(out, head)
	if err != nil {
		return archive.Manifest{}, err
	}
	if err := errors.Join(e.writeState(w, scratch, database), e.writeAudit(ctx, w)); err != nil {
		return archive.Manifest{}, err
	}
	if err := e.writeTrees(ctx, w, o); err != nil {
		return archive.Manifest{}, err
	}
	return w.Close()
}

// makeScratch makes an empty directory in data_dir, and removes those of backups that were killed.
func makeScratch(data string) (string, error) {
	old, err := filepath.Glob(filepath.Join(data, backupScratch+"*"))
	for _, dir := range old {
		err = errors.Join(err, os.RemoveAll(dir))
	}
	if err != nil {
		return "", fmt.Errorf("remove what an earlier backup left: %w", err)
	}
	return os.MkdirTemp(data, backupScratch)
}

func (e estate) writeState(w *archive.Writer, scratch string, database persistence.Copy) (err error) {
	if e.postgres {
		return nil
	}
	if database.Mark != nil {
		if err := w.Bytes(archive.State, persistence.MarkName, database.Mark); err != nil {
			return err
		}
	}
	f, err := os.Open(filepath.Join(scratch, persistence.FileName))
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // read only
	info, err := f.Stat()
	if err != nil {
		return err
	}
	return w.File(archive.State, persistence.FileName, f, info.Size())
}

// writeAudit adds the audit logs, each up to the end of a line.
func (e estate) writeAudit(ctx context.Context, w *archive.Writer) error {
	for _, log := range e.logs {
		if !log.Exists() {
			continue
		}
		if err := writeChain(ctx, w, log.Path); err != nil {
			return err
		}
	}
	return nil
}

// writeChain adds the files of a log. They are all opened before the first one is read: the service may rotate the log
// or delete its oldest file meanwhile.
func writeChain(ctx context.Context, w *archive.Writer, path string) error {
	names, files, err := openChain(ctx, path)
	defer func() {
		for _, f := range files {
			_ = f.Close() // read only
		}
	}()
	if err != nil {
		return err
	}
	for i, f := range files {
		size, err := audit.WholeLines(f)
		if err == nil {
			err = w.File(archive.Audit, filepath.Base(names[i]), f, size)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", names[i], err)
		}
	}
	return nil
}

// A log that is being rotated or rewritten is looked at again after chainPause, chainTries times.
const (
	chainTries = 100
	chainPause = 100 * time.Millisecond
)

// openChain opens the files of a log as they were together at one moment.
func openChain(ctx context.Context, path string) (names []string, files []*os.File, err error) {
	ticker := time.NewTicker(chainPause)
	defer ticker.Stop()
	for range chainTries {
		var whole bool
		if names, files, whole, err = openTogether(path); whole && err == nil {
			return names, files, nil
		}
		for _, f := range files {
			_ = f.Close() // read only
		}
		select {
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		case <-ticker.C:
		}
	}
	if err == nil {
		err = errors.New("it is being rotated or rewritten; try again")
	}
	return nil, nil, fmt.Errorf("%s: %w", path, err)
}

// openTogether opens the files of a log; whole is false if they changed meanwhile.
func openTogether(path string) (names []string, files []*os.File, whole bool, err error) {
	if audit.Erasing(path) {
		return nil, nil, false, nil
	}
	if names, err = audit.Files(path); err != nil {
		return nil, nil, false, err
	}
	for _, name := range names {
		f, err := os.Open(name)
		if err != nil {
			return names, files, false, err
		}
		files = append(files, f)
	}
	again, err := audit.Files(path)
	return names, files, slices.Equal(names, again) && !audit.Erasing(path), err
}

// writeTrees adds the tokens of MCP servers and the workspaces.
func (e estate) writeTrees(ctx context.Context, w *archive.Writer, o BackupOptions) error {
	own := func(name string, info fs.FileInfo) bool {
		return archive.Own(name) || o.Exclude != nil && os.SameFile(o.Exclude, info)
	}
	if err := w.Tree(ctx, archive.Tokens, e.tokens, own); err != nil {
		return fmt.Errorf("%s: %w", e.tokens, err)
	}
	if !o.Workspaces {
		return nil
	}
	// What several processes share besides workspaces has parts of its own.
	skip := func(name string, info fs.FileInfo) bool {
		return own(name, info) || name == layout.Common
	}
	if err := w.Tree(ctx, archive.Workspaces, e.workspaces, skip); err != nil {
		return fmt.Errorf("%s: %w", e.workspaces, err)
	}
	return nil
}

// filesIn lists the files below a directory whose names match one of the patterns.
func filesIn(dir string, patterns ...string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var names []string
	for _, entry := range entries {
		if slices.ContainsFunc(patterns, func(p string) bool {
			ok, _ := filepath.Match(p, entry.Name()) // the patterns are ours
			return ok
		}) {
			names = append(names, entry.Name())
		}
	}
	return names, err
}
