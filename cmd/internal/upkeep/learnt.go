package upkeep

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/zephbot/zephbot/bot/learnt"
	"github.com/zephbot/zephbot/bot/visible"
	"github.com/zephbot/zephbot/cmd/internal/config"
	"github.com/zephbot/zephbot/cmd/internal/layout"
	"github.com/zephbot/zephbot/cmd/internal/providers"
	"github.com/zephbot/zephbot/persistence"
)

// LearntIn reads what is stored in a database of the servers of the configured providers, beside a process that uses
// it. The database is that at url, or the one below dir if url is empty. It changes nothing, and creates nothing: if
// there is no database, errors.Is(err, fs.ErrNotExist) is true.
func LearntIn(
	ctx context.Context, cfg *config.Config, dir, url string, now time.Time,
) (list []learnt.Entry, err error) {
	store, err := persistence.OpenReader(ctx, dir, url)
	if err != nil {
		return nil, fmt.Errorf("open the database: %w", err)
	}
	defer func() { _ = store.Close() }() // it was only read
	stored, err := store.FactsOf(ctx, learnt.Bucket, "", now)
	if err != nil {
		return nil, fmt.Errorf("read what was learnt: %w", err)
	}
	return slices.DeleteFunc(learnt.Entries(stored), func(e learnt.Entry) bool {
		return e.Server != providers.ServerHash(cfg, e.Provider)
	}), nil
}

// printLearntWithin limits how long PrintLearnt waits for a database.
const printLearntWithin = 5 * time.Second

// PrintLearnt writes what the service and the terminal have learnt of the servers of the configured models, as comments
// of TOML: what requests leave out, rename or set, which tools are set aside, how large a window is, and since when. It
// writes nothing if there is nothing. A database that cannot be read is a comment too; the error is that of w.
func PrintLearnt(ctx context.Context, w io.Writer, at layout.Layout, now time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, printLearntWithin)
	defer cancel()
	cfg := at.Config
	var out strings.Builder
	for _, place := range []struct{ by, dir, url string }{
		{"the service", at.Data(), cfg.Database.URL.Reveal()}, {"chat", at.Terminal(), ""},
	} {
		entries, err := LearntIn(ctx, cfg, place.dir, place.url, now)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil: // its text may hold the address of the database
			fmt.Fprintf(
				&out, "\n# What %s has learnt of model servers cannot be read; zephbot doctor says why.\n", place.by,
			)
			continue
		}
		slices.SortFunc(entries, func(a, b learnt.Entry) int {
			return cmp.Or(cmp.Compare(a.Provider, b.Provider), cmp.Compare(a.Model, b.Model))
		})
		for _, e := range entries {
			lessons := learnt.Lessons(e.Learnt)
			if len(lessons) == 0 {
				continue
			}
			fmt.Fprintf(&out, "\n# Learnt by %s of the server of %s, model %s, %s:\n",
				place.by, visible.Name(e.Provider), visible.Name(e.Model), e.Learnt.At.UTC().Format(time.RFC3339))
			for _, lesson := range lessons {
				fmt.Fprintf(&out, "#   %s\n", visible.Name(lesson))
			}
		}
	}
	if _, err := io.WriteString(w, out.String()); err != nil {
		return fmt.Errorf("print what was learnt: %w", err)
	}
	return nil
}
