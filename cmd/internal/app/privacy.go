package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/facts"
	"github.com/zephbot/zephbot/bot/memory"
	"github.com/zephbot/zephbot/bot/privacy"
	"github.com/zephbot/zephbot/bot/quota"
	"github.com/zephbot/zephbot/bot/terminal"
	"github.com/zephbot/zephbot/bot/transcript"
	"github.com/zephbot/zephbot/cmd/internal/config"
	"github.com/zephbot/zephbot/persistence"
	"github.com/zephbot/zephbot/persistence/sql"
	"github.com/zephbot/zephbot/policy/redact"
	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/chain"
)

// uploadLimit is how large a file is that a bot may send, in bytes (Bot API, sendDocument).
const uploadLimit = 50 << 20

// exportLimit is how much is read for an export that a bot sends, in bytes: what
// compresses better is not worth the time.
const exportLimit = 10 * uploadLimit

// personal are the places of personal data besides the tables of the database.
func (c *Core) personal() []privacy.Place {
	list := []privacy.Place{codePlace{c}, previewPlace{c}, c.workspaces(), undoPlace{c}, cachePlace{c}, auditPlace{c}}
	if c.memory != nil {
		list = append(list, memoryPlace{c})
	}
	return list
}

// workspaces are the directories of conversations. At the terminal, a conversation works where the person is.
func (c *Core) workspaces() privacy.Workspaces {
	return privacy.Workspaces{Root: c.workspaceRoot(), Own: []string{terminal.Name}}
}

// office returns what erases people. limited reports whether a limit applies to somebody.
func (c *Core) office(
	limited func(caller string) bool, wake func(bot.SessionKey), forget func(), settle func(context.Context),
) *privacy.Office {
	return privacy.NewOffice(privacy.Deps{
		Forget:   forget,
		Tables:   c.stores.Tables,
		Store:    c.stores.Bot,
		Places:   c.personal(),
		Buckets:  Buckets(),
		Settle:   settle,
		Wake:     wake,
		Limited:  limited,
		Zone:     c.zone(),
		Postgres: c.database() == "PostgreSQL",
		After:    c.opts.Erased,
		Now:      c.now,
		Log:      c.log.With().Str("component", "privacy").Logger(),
	})
}

// exporter returns what writes exports from the open store.
func (c *Core) exporter() *privacy.Exporter {
	return &privacy.Exporter{
		Tables:  c.stores.Tables,
		Files:   c.stores.Blobs,
		Places:  c.personal(),
		Buckets: Buckets(),
		Clean:   c.redactor.String,
		Readme:  c.words().ExportReadme,
		Now:     c.now,
		Most:    exportLimit,
	}
}

// ErrServing means that a service works on the data: it can be asked to erase a person, and nobody else can do it.
var ErrServing = errors.New("a service works on the data")

// eraseMode is the mode of a process that erases a person while no service runs.
const eraseMode = "user erase"

// Erase erases a person while no service runs, and returns the receipt: first what a service was asked for and did not
// finish.
func Erase(ctx context.Context, opts Options, job *privacy.Job) (*privacy.Receipt, error) {
	opts.Mode = eraseMode
	c, err := OpenCore(ctx, opts)
	if err != nil {
		if errors.Is(err, sql.ErrLocked) ||
			opts.Home == "" && opts.Config.Database.URL != "" && !errors.Is(err, config.ErrInvalid) {
			err = errors.Join(ErrServing, err)
		}
		return nil, err
	}
	living, err := c.stores.Living(ctx)
	if err == nil && len(living) > 1 {
		err = ErrServing
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	r, err := c.erase(ctx, job)
	return r, errors.Join(err, c.Close())
}

func (c *Core) erase(ctx context.Context, job *privacy.Job) (*privacy.Receipt, error) {
	meter := quota.New(c.meterOptions(), c.redis, c.stores.Bot, c.words(), c.now, c.metrics.Denied)
	if err := meter.Follow(ctx, c.stores.Bot); err != nil {
		return nil, err
	}
	c.records.Settle(ctx)
	office := c.office(meter.Limited, nil, nil, nil)
	begun, err := office.Begun(ctx, job.Person)
	if err != nil {
		return nil, err
	}
	if begun != nil {
		job = begun
	}
	fact, err := job.Fact()
	if err == nil {
		err = c.bucket(privacy.JobBucket).Apply(ctx, fact)
	}
	if err != nil {
		return nil, err
	}
	return office.Erase(ctx, job)
}

// NewExporter returns what writes exports from a database that is only read, beside a service.
func NewExporter(opts Options, store persistence.Reader) (*privacy.Exporter, error) {
	redactor, err := redact.NewWith(redact.Options{Secrets: opts.Config.Credentials()})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", config.ErrInvalid, err)
	}
	c := newCore(opts)
	return &privacy.Exporter{
		Tables: store, Files: store, Places: []privacy.Place{c.workspaces(), auditPlace{c}},
		Clean: redactor.String, Readme: c.words().ExportReadme, Now: opts.Now,
	}, nil
}

// private returns what answers /export and /forget, and does what they and the command line ask for.
func (s *service) private() *privacy.Handler {
	c := s.core
	office := c.office(s.meter.Limited, func(session bot.SessionKey) {
		s.dispatcher.Wake(session)
	}, func() { s.dispatcher.Forget() }, c.records.Settle)
	return privacy.NewHandler(privacy.HandlerDeps{
		Office: office,
		Export: c.exporter(),
		Rights: s.ch.rights,
		Pages: &transcript.Reader{
			Store: c.stores.Bot, Files: c.stores.Blobs, Redact: c.redactor.String, Plain: chain.StripMarks,
			Receipts: func() transcript.Receipts { return c.receipts(s.ch, c.stores.Bot) }, Words: c.words(), Now: c.now,
		},
		Blobs:   c.stores.Blobs,
		Limit:   uploadLimit,
		Words:   c.words(),
		Owner:   c.owner,
		Audited: auditPlace{c}.Own,
		Lock:    facts.Lock{Store: c.stores.Bot, Keeper: c.keeper(), Owner: c.owner, Now: c.now},
		Send:    func(place bot.Place) { s.outbox.Wake(place) },
		Temp:    func() (*privacy.TempFile, error) { return tempIn(c.dir) },
		Log:     c.log.With().Str("component", "privacy").Logger(),
	})
}

// tempIn creates a file in a directory that only this account reads, and that has no name
// any more where that is possible.
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

// codePlace is the index of the code in workspaces, with its vectors. It is derived from
// the files, so it is not exported.
type codePlace struct{ core *Core }

// Name implements privacy.Place.
func (codePlace) Name() string { return "code" }

// Erase implements privacy.Place. It comes before the directories are gone, whose canonical paths it needs.
func (p codePlace) Erase(ctx context.Context, of *privacy.Order) (int, error) {
	c := p.core
	dirs, err := c.workspaces().Of(of)
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
