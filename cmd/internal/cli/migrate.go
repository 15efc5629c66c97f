package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/zephbot/zephbot/cmd/internal/upkeep"
	"github.com/zephbot/zephbot/persistence"
	"github.com/zephbot/zephbot/persistence/keeping"
)

// migrated is what `migrate --json` prints.
type migrated struct {
	Database string         `json:"database"`
	Found    int64          `json:"found"`   // the schema that it had
	Known    int64          `json:"known"`   // the schema of this program
	Applied  []keeping.Step `json:"applied"` // by this run
	Pending  []keeping.Step `json:"pending"` // still
}

func (c *command) migrateCommand() *cobra.Command {
	var look, asJSON bool
	cmd := &cobra.Command{
		Use: "migrate", Short: "Bring the database of the service up to date, or show what that would do (--dry-run)",
		Args: cobra.NoArgs,
		Long: "Brings the database of the service up to date: the one of database.url, or SQLite in data_dir. " +
			"`serve` does so at its start; this does it beforehand.\n" +
			"It may be run while services work on the database, those of the version before too: migrations only " +
			"add. A database of a newer version is refused.",
		Example: "  zephbot migrate --dry-run",
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := c.load()
			if err != nil {
				return err
			}
			schema, err := upkeep.Migrate(cmd.Context(), c.options(cfg), look)
			if err != nil {
				return err
			}
			return c.printSchema(&schema, look, asJSON)
		},
	}
	cmd.Flags().BoolVar(&look, "dry-run", false, "only show which migrations are missing")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (c *command) printSchema(s *persistence.Schema, look, asJSON bool) error {
	steps := append([]keeping.Step{}, s.Steps...)
	if asJSON {
		out := migrated{Database: s.Place, Found: s.Found, Known: s.Known, Applied: steps, Pending: []keeping.Step{}}
		if look {
			out.Applied, out.Pending = out.Pending, out.Applied
		}
		return c.printJSON(out)
	}
	did := "applied"
	if look {
		did = "to apply:"
	}
	var text strings.Builder
	for _, step := range steps {
		_, _ = fmt.Fprintf(&text, "%s %d %s\n", did, step.Version, step.Name)
	}
	if look && len(steps) > 0 {
		_, _ = fmt.Fprintf(
			&text,
			"%s: schema %d, this version makes it %d; zephbot migrate or the next start of the service does so\n",
			s.Place, s.Found, s.Known,
		)
	} else {
		_, _ = fmt.Fprintf(&text, "%s: schema %d, up to date\n", s.Place, s.Known)
	}
	_, err := fmt.Fprint(c.env.Out, text.String())
	return err
}
