package upkeep

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/zephbot/zephbot/cmd/internal/app"
	"github.com/zephbot/zephbot/cmd/internal/config"
	"github.com/zephbot/zephbot/cmd/internal/lastend"
	"github.com/zephbot/zephbot/cmd/internal/layout"
	"github.com/zephbot/zephbot/persistence"
	"github.com/zephbot/zephbot/persistence/archive"
	"github.com/zephbot/zephbot/tools/audit"
)

// Restored is what Restore did.
type Restored struct {
	archive.Manifest
	Replaced []string // files and directories that were moved aside
	Name     string   // of the directories that they are in now, next to where they were
}

// Restore replaces the state of the service by a backup that it reads from in, completely or not at all: a process that
// is killed meanwhile has changed nothing, or is completed by the next start. The service must not be running; see
// persistence.Lock for the error if it is. Without force, a state that would be replaced
// is an error. Nothing is deleted.
func Restore(ctx context.Context, opts app.Options, in io.Reader, force bool) (Restored, error) {
	e := estateOf(opts)
	unlock, err := lockForRestore(e.data)
	if err != nil {
		return Restored{}, err
	}
	defer unlock()
	if done, err := archive.Finish(e.data); err != nil {
		return Restored{}, err
	} else if done {
		opts.Log.Warn().Str("data_dir", e.data).Msg("completed a restore that was interrupted")
	}
	places, err := e.places()
	if err != nil {
		return Restored{}, err
	}
	now := time.Now()
	staged, err := archive.Stage(ctx, in, archive.Options{
		Home: e.data, Places: places, At: now, Check: func(h archive.Header) error { return e.acceptBackup(h) },
	})
	if err != nil {
		return Restored{}, err
	}
	out, err := e.exchange(ctx, staged, now, force)
	if err != nil {
		staged.Discard()
	}
	return out, err
}

// lockForRestore locks data_dir against the service, and against backups.
func lockForRestore(data string) (release func(), err error) {
	service, err := persistence.Lock(data, "lock", "restore")
	if err != nil {
		return nil, err
	}
	backups, err := persistence.Lock(data, backupLock, "restore")
	if err != nil {
		service()
		return nil, err
	}
	return func() {
		backups()
		service()
	}, nil
}

// exchange puts a staged backup in place.
func (e estate) exchange(ctx context.Context, staged *archive.Staged, now time.Time, force bool) (Restored, error) {
	if staged.Has(archive.State) {
		if _, err := persistence.ReadCopy(ctx, staged.Path(archive.State, persistence.FileName)); err != nil {
			return Restored{}, fmt.Errorf("the database in the backup: %w", err)
		}
		note, err := json.Marshal(archive.Note{Created: staged.Created, Restored: now.UTC()})
		if err == nil {
			err = staged.Put(archive.State, archive.NoteName, note)
		}
		if err != nil {
			return Restored{}, err
		}
	}
	replaced, err := staged.Occupied()
	if err != nil {
		return Restored{}, err
	}
	if len(replaced) > 0 && !force {
		return Restored{}, fmt.Errorf(
			"%w: there is a state already: %s; --force moves it aside and deletes nothing",
			config.ErrInvalid, shortList(replaced),
		)
	}
	if err := ctx.Err(); err != nil {
		return Restored{}, err
	}
	return Restored{Manifest: staged.Manifest, Replaced: replaced, Name: staged.Replaced()}, staged.Commit()
}

// shortList lists a few names, and says how many there are beside them.
func shortList(names []string) string {
	const most = 3
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

// acceptBackup refuses backups that do not fit the configuration or the program.
func (e estate) acceptBackup(h archive.Header) error {
	switch {
	case h.Database == archive.SQLite && e.postgres:
		return fmt.Errorf("%w: the backup contains an SQLite database, and database.url names a PostgreSQL; "+
			"restore it with a configuration without database.url", config.ErrInvalid)
	case h.Database != archive.SQLite && !e.postgres:
		return fmt.Errorf(
			"%w: the backup was made with PostgreSQL and contains no database; "+
				"set database.url, restore the dump with pg_restore, then run this again (docs/postgresql.md)",
			config.ErrInvalid,
		)
	case h.Has(archive.Audit) && e.auditDir == "":
		return fmt.Errorf(
			"%w: the backup contains audit logs, and audit.destination is stdout; set it to a file", config.ErrInvalid,
		)
	}
	known, err := persistence.KnownSchema()
	if err != nil {
		return err
	}
	if h.Schema > known {
		return fmt.Errorf("the backup was made by a newer version of the program (%s: schema %d, this one knows %d); "+
			"restore it with that version",
			h.Version, h.Schema, known)
	}
	return nil
}

// places lists where each part belongs, and what is there now.
func (e estate) places() ([]archive.Place, error) {
	state, err := filesIn(e.data, append(persistence.DatabaseFiles(), layout.CodeIndex, layout.CodeIndex+
		"-*", layout.Undo, layout.Previews, archive.NoteName, lastend.File)...)
	if err != nil {
		return nil, err
	}
	workspaces, err := filesIn(e.workspaces, "*")
	if err != nil {
		return nil, err
	}
	tokens, err := filesIn(e.tokens, "*")
	if err != nil {
		return nil, err
	}
	list := []archive.Place{
		{Part: archive.State, Dir: e.data, Old: state},
		{Part: archive.Tokens, Dir: e.tokens, Old: tokens},
		{Part: archive.Workspaces, Dir: e.workspaces, Old: withoutCommon(workspaces)},
	}
	if e.auditDir == "" {
		return list, nil
	}
	logs := archive.Place{Part: archive.Audit, Dir: e.auditDir}
	for _, log := range e.logs {
		if !log.Exists() {
			continue
		}
		files, err := audit.Files(log.Path)
		if err != nil {
			return nil, err
		}
		for _, name := range files {
			logs.Old = append(logs.Old, filepath.Base(name))
		}
	}
	return append(list, logs), nil
}

// withoutCommon removes what several processes share besides workspaces.
func withoutCommon(names []string) []string {
	var list []string
	for _, name := range names {
		if name != layout.Common {
			list = append(list, name)
		}
	}
	return list
}
