package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/facts"
	"github.com/zephbot/zephbot/bot/memory"
	"github.com/zephbot/zephbot/bot/privacy"
	"github.com/zephbot/zephbot/bot/terminal"
	"github.com/zephbot/zephbot/tools"
)

// uploadLimit is how large a file is that a bot may send, in bytes (Bot API, sendDocument).
const uploadLimit = 50 << 20

// exportLimit is how much is read for an export that a bot sends, in bytes: what compresses better is not worth the time.
const exportLimit = 10 * uploadLimit

// personal are the places of personal data besides the tables of the database.
func (c *Core) personal() []privacy.Place {
	list := []privacy.Place{codePlace{c}, previewPlace{c}, workspacePlace{c.dirs().Root}, undoPlace{c}, cachePlace{c}, auditPlace{c}}
	if c.memory != nil {
		list = append(list, memoryPlace{c})
	}
	return list
}

// office returns what erases people. limited reports whether a limit applies to somebody.
func (c *Core) office(
	limited func(caller string) bool, wake func(bot.SessionKey), forget func(), settle func(context.Context),
) *privacy.Office {
	return privacy.NewOffice(privacy.Deps{
		Forget: forget,
		Tables: c.stores.Tables, Store: c.stores.Bot, Places: c.personal(), Settle: settle, Wake: wake, Limited: limited, Zone: c.zone(),
		Postgres: c.database() == "PostgreSQL", After: c.opts.Erased, Now: c.now, Log: c.log.With().Str("component", "privacy").Logger(),
	})
}

// exporter returns what writes exports from the open store.
func (c *Core) exporter() *privacy.Exporter {
	return &privacy.Exporter{
		Tables: c.stores.Tables, Files: c.stores.Blobs, Places: c.personal(), Clean: c.redactor.String, Readme: c.words().ExportReadme, Now: c.now,
		Most: exportLimit,
	}
}

// private returns what answers /export and /forget, and does what they and the command line ask for.
func (s *service) private() *privacy.Handler {
	c := s.core
	office := c.office(s.meter.Limited, func(session bot.SessionKey) { s.dispatcher.Wake(session) }, func() { s.dispatcher.Forget() }, c.records.Settle)
	return privacy.NewHandler(privacy.HandlerDeps{
		Office: office, Export: c.exporter(), Blobs: c.stores.Blobs, Limit: uploadLimit, Words: c.words(), Owner: c.owner, Audited: auditPlace{c}.Own,
		Lock: facts.Lock{Store: c.stores.Bot, Keeper: c.keeper(), Owner: c.owner, Now: c.now},
		Send: func(place bot.Place) { s.outbox.Wake(place) },
		Temp: func() (*privacy.TempFile, error) { return tempIn(c.dir) }, Log: c.log.With().Str("component", "privacy").Logger(),
	})
}

// tempIn creates a file in a directory that only this account reads, and that has no name any more where that is possible.
func tempIn(dir string) (*privacy.TempFile, error) {
	f, err := os.CreateTemp(dir, "export-*.tmp")
	if err != nil {
		return nil, err
	}
	gone := os.Remove(f.Name()) == nil
	return &privacy.TempFile{ReadWriteSeeker: f, Close: func() error {
		err := f.Close()
		if !gone {
			err = errors.Join(err, os.Remove(f.Name()))
		}
		return err
	}}, nil
}

// memoryPlace are a person's own memories, with their vectors.
type memoryPlace struct{ core *Core }

// Name implements privacy.Place.
func (memoryPlace) Name() string { return "memory" }

// Erase implements privacy.Place.
func (p memoryPlace) Erase(ctx context.Context, of *privacy.Order) (int, error) {
	n, err := p.core.memory.DeleteOf(ctx, memory.Personal(of.Caller()), tools.Origin{Channel: of.Channel})
	if p.core.meanings != nil { // also those that were left over
		err = errors.Join(err, p.core.meanings.Forget(ctx, of.Caller()), p.core.stores.ScrubVectors(ctx))
	}
	return n, err
}

// Export implements privacy.Place: memories are among the settings.
func (memoryPlace) Export(context.Context, *privacy.Order, *privacy.Archive) error { return nil }

// workspacePlace are the directories of conversations.
type workspacePlace struct{ root string }

// Name implements privacy.Place.
func (workspacePlace) Name() string { return "workspaces" }

// own lists the directories of a person's own conversations: those that their lanes name, and those whose name is that of
// a conversation of theirs. The terminal works where the person is, and has none.
func (p workspacePlace) own(of *privacy.Order) ([]string, error) {
	if of.Channel == terminal.Name {
		return nil, nil
	}
	named := map[string]bool{}
	for _, c := range of.Sessions {
		named[bot.WorkspaceID(c.Workspace)] = true
	}
	entries, err := os.ReadDir(p.root)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list the workspaces: %w", err)
	}
	var list []string
	for _, e := range entries {
		session := bot.SessionKey(strings.ReplaceAll(e.Name(), "_", "/"))
		if e.IsDir() && (named[e.Name()] || session.Valid() && of.Owns(session)) {
			list = append(list, filepath.Join(p.root, e.Name()))
		}
	}
	return list, nil
}

// Erase implements privacy.Place.
func (p workspacePlace) Erase(_ context.Context, of *privacy.Order) (n int, err error) {
	dirs, err := p.own(of)
	if err != nil || len(dirs) == 0 {
		return 0, err
	}
	root, err := os.OpenRoot(p.root)
	if err != nil {
		return 0, fmt.Errorf("open the workspaces: %w", err)
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	for _, dir := range dirs {
		gone := removeLocked(root, filepath.Base(dir))
		if err = errors.Join(err, gone); gone == nil {
			n++
		}
	}
	return n, err
}

// removeLocked deletes a directory, also if directories in it are read-only, as those of Go's module cache are.
func removeLocked(root *os.Root, dir string) error {
	if err := root.RemoveAll(dir); err == nil {
		return nil
	}
	unlock(root, dir)
	return root.RemoveAll(dir)
}

// unlock makes the directories of a tree writable for this account. What fails here fails again when they are deleted.
func unlock(root *os.Root, dir string) {
	info, err := root.Lstat(dir)
	if err != nil || !info.IsDir() {
		return
	}
	if info.Mode().Perm()&0o700 != 0o700 {
		_ = root.Chmod(dir, info.Mode().Perm()|0o700)
	}
	f, err := root.Open(dir)
	if err != nil {
		return
	}
	entries, _ := f.ReadDir(-1)
	_ = f.Close() // read only
	for _, e := range entries {
		if e.IsDir() {
			unlock(root, filepath.Join(dir, e.Name()))
		}
	}
}

// Export implements privacy.Place.
func (p workspacePlace) Export(_ context.Context, of *privacy.Order, to *privacy.Archive) error {
	dirs, err := p.own(of)
	if err != nil {
		return err
	}
	for i, dir := range dirs {
		if err := to.Dir("workspaces/"+strconv.Itoa(i+1), dir); err != nil {
			return err
		}
	}
	return nil
}

// undoPlace are copies of files as they were before calls changed them.
type undoPlace struct{ core *Core }

// Name implements privacy.Place.
func (undoPlace) Name() string { return "undo" }

// Erase implements privacy.Place.
func (p undoPlace) Erase(ctx context.Context, of *privacy.Order) (int, error) {
	n := 0
	var errs []error
	for _, c := range of.Sessions {
		had, err := p.core.undo.Forget(ctx, p.core.undoOf(c.Workspace, c.Session))
		if errs = append(errs, err); had {
			n++
		}
	}
	return n, errors.Join(errs...)
}

// Export implements privacy.Place: what the files were earlier is kept for days, to put it back.
func (undoPlace) Export(context.Context, *privacy.Order, *privacy.Archive) error { return nil }

// codePlace is the index of the code in workspaces, with its vectors. It is derived from the files, so it is not exported.
type codePlace struct{ core *Core }

// Name implements privacy.Place.
func (codePlace) Name() string { return "code" }

// Erase implements privacy.Place. It comes before the directories are gone, whose canonical paths it needs.
func (p codePlace) Erase(ctx context.Context, of *privacy.Order) (int, error) {
	c := p.core
	dirs, err := workspacePlace{c.dirs().Root}.own(of)
	errs := []error{err}
	for _, dir := range dirs {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			errs = append(errs, c.code.index.Forget(ctx, real))
		}
	}
	if c.code.stored != nil {
		errs = append(errs, c.code.stored.Scrub(ctx))
	}
	return 0, errors.Join(append(errs, c.stores.ScrubVectors(ctx))...)
}

// Export implements privacy.Place.
func (codePlace) Export(context.Context, *privacy.Order, *privacy.Archive) error { return nil }

// cachePlace are remembered results of tools.
type cachePlace struct{ core *Core }

// Name implements privacy.Place.
func (cachePlace) Name() string { return "cache" }

// Erase implements privacy.Place. Counters stay: they are the sums that limits are about, and expire with them.
func (p cachePlace) Erase(ctx context.Context, of *privacy.Order) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	var errs []error
	for _, c := range of.Sessions {
		for _, began := range append([]int64{0}, c.Began...) {
			errs = append(errs, p.core.redis.Cache().Drop(ctx, conversationOf(string(c.Session), began)))
		}
	}
	return 0, errors.Join(errs...)
}

// Export implements privacy.Place.
func (cachePlace) Export(context.Context, *privacy.Order, *privacy.Archive) error { return nil }
