package upkeep

import (
	"context"
	"fmt"

	"github.com/zephbot/zephbot/cmd/internal/app"
	"github.com/zephbot/zephbot/cmd/internal/config"
	"github.com/zephbot/zephbot/persistence"
)

// Migrate updates the schema of the service's database, or only inspects it if look is set, and returns which schema it
// had. It may run at the same time as services that use the database, and as another Migrate.
func Migrate(ctx context.Context, opts app.Options, look bool) (persistence.Schema, error) {
	url := opts.Config.Database.URL.Reveal()
	if err := persistence.CheckURL(url); err != nil {
		return persistence.Schema{}, fmt.Errorf("%w: database.url: %w", config.ErrInvalid, err)
	}
	dir := opts.Config.Path(opts.Config.DataDir)
	if look {
		return persistence.ReadSchema(ctx, dir, url)
	}
	return persistence.Migrate(ctx, dir, url)
}
