package app

import (
	"context"
	"fmt"

	"github.com/zephbot/zephbot/persistence"
)

// Migrate brings the database of the service up to date, or only looks at it, and says which schema it had. It may be
// run beside services that work on the database, and beside another Migrate.
func Migrate(ctx context.Context, opts Options, look bool) (persistence.Schema, error) {
	url := opts.Config.Database.URL.Reveal()
	if err := persistence.CheckURL(url); err != nil {
		return persistence.Schema{}, fmt.Errorf("%w: database.url: %w", ErrConfig, err)
	}
	dir := opts.Config.Path(opts.Config.DataDir)
	if look {
		return persistence.ReadSchema(ctx, dir, url)
	}
	return persistence.Migrate(ctx, dir, url)
}
