package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/zephbot/zephbot/cmd/internal/config"
	"github.com/zephbot/zephbot/cmd/internal/upkeep"
	"github.com/zephbot/zephbot/persistence/archive"
)

// stream is the file name for stdin or stdout.
const stream = "-"

// backupFlags are the flags of `backup`.
type backupFlags struct{ noWorkspaces, verify, force, asJSON bool }

func (c *command) backupCommand() *cobra.Command {
	var flags backupFlags
	cmd := &cobra.Command{
		Use:   "backup FILE",
		Short: "Write the state of the service to one file, also while it runs",
		Args:  cobra.ExactArgs(1),
		Long: "Writes the database, the audit logs, the tokens of MCP servers and the workspaces to FILE, a " +
			".tar.gz with a " +
			"manifest of its contents;\nFILE - is stdout. The service can be running. The file contains " +
			"everything that " +
			"people wrote and credentials: only you can read it,\nand it is not encrypted. FILE appears when it " +
			"is complete.\n" +
			"With PostgreSQL the database is not in it: run pg_dump first.",
		Example: "  zephbot backup zephbot-2026-11-27.tar.gz\n  zephbot backup --verify zephbot-2026-11-27.tar.gz",
		RunE: func(cmd *cobra.Command, args []string) error {
			if flags.verify {
				return c.verifyBackup(cmd.Context(), args[0], flags.asJSON)
			}
			cfg, err := c.load()
			if err != nil {
				return err
			}
			return c.backup(cmd.Context(), cfg, args[0], flags)
		},
	}
	cmd.Flags().BoolVar(&flags.noWorkspaces, "no-workspaces", false, "leave out the files of conversations")
	cmd.Flags().BoolVar(&flags.verify, "verify", false, "only check FILE against its manifest; nothing is written")
	cmd.Flags().BoolVar(&flags.force, "force", false, "replace FILE if it exists")
	cmd.Flags().BoolVar(&flags.asJSON, "json", false, "print JSON")
	return cmd
}

func (c *command) backup(ctx context.Context, cfg *config.Config, name string, flags backupFlags) error {
	options := upkeep.BackupOptions{Workspaces: !flags.noWorkspaces}
	if name == stream {
		if flags.asJSON {
			return usageError{errors.New("the backup goes to stdout; leave out --json")}
		}
		manifest, err := upkeep.Backup(ctx, c.options(cfg), c.env.Out, options)
		if err != nil {
			return err
		}
		return c.printBackup(c.env.Err, "stdout", &manifest)
	}
	path := c.path(name)
	var manifest archive.Manifest
	err := archive.Create(path, flags.force, func(out io.Writer) (err error) {
		if f, ok := out.(*os.File); ok {
			options.Exclude, _ = f.Stat() // nil if it cannot be read
		}
		manifest, err = upkeep.Backup(ctx, c.options(cfg), out, options)
		return err
	})
	if err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	if flags.asJSON {
		return c.printJSON(summed(path, &manifest))
	}
	return c.printBackup(c.env.Out, path, &manifest)
}

// path returns the absolute path of a file that was named on the command line.
func (c *command) path(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(c.env.WorkDir, name)
}

// open opens a file that was named on the command line, or stdin.
func (c *command) open(name string) (io.Reader, func(), error) {
	if name == stream {
		return c.env.In, func() {}, nil
	}
	f, err := os.Open(c.path(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("%s does not exist", c.path(name))
	}
	if err != nil {
		return nil, nil, err
	}
	return f, func() { _ = f.Close() }, nil // read only
}

func (c *command) verifyBackup(ctx context.Context, name string, asJSON bool) error {
	in, end, err := c.open(name)
	if err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	defer end()
	manifest, err := archive.Verify(ctx, in)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if asJSON {
		return c.printJSON(summed(name, &manifest))
	}
	return c.printBackup(c.env.Out, "ok: "+name, &manifest)
}

// partSum is a part of a backup as printed.
type partSum struct {
	Part  archive.Part `json:"part"`
	Files int          `json:"files"`
	Bytes int64        `json:"bytes"`
}

// backupSummary is what `backup --json` prints.
type backupSummary struct {
	File string `json:"file"`
	archive.Header
	Sums    []partSum `json:"sums"`
	Changed []string  `json:"changed,omitempty"`
}

func summed(file string, m *archive.Manifest) backupSummary {
	s := backupSummary{File: file, Header: m.Header, Changed: m.Changed}
	for _, part := range m.Parts {
		files, size := m.Sums(part)
		s.Sums = append(s.Sums, partSum{part, files, size})
	}
	return s
}

func (c *command) printBackup(out io.Writer, file string, m *archive.Manifest) error {
	s := summed(file, m)
	var text strings.Builder
	_, _ = fmt.Fprintf(
		&text, "%s: backup of %s by zephbot %s, %s",
		file, s.Created.Format("2006-01-02 15:04:05 MST"), s.Version, s.Database,
	)
	if s.Schema > 0 {
		_, _ = fmt.Fprintf(&text, ", schema %d", s.Schema)
	}
	_, _ = fmt.Fprintln(&text)
	for _, p := range s.Sums {
		files := "files"
		if p.Files == 1 {
			files = "file "
		}
		_, _ = fmt.Fprintf(&text, "  %-10s %6d %s %12d bytes\n", p.Part, p.Files, files, p.Bytes)
	}
	for _, w := range s.Without {
		_, _ = fmt.Fprintf(&text, "  not in it: %s\n", w)
	}
	const most = 10
	for i, name := range s.Changed {
		if i == most {
			_, _ = fmt.Fprintf(&text, "  and %d more\n", len(s.Changed)-most)
			break
		}
		_, _ = fmt.Fprintf(&text, "  changed while it was read, or not readable: %s\n", name)
	}
	_, err := io.WriteString(out, text.String())
	return err
}

func (c *command) restoreCommand() *cobra.Command {
	var force, asJSON bool
	cmd := &cobra.Command{
		Use: "restore FILE", Short: "Replace the state of the stopped service by a backup", Args: cobra.ExactArgs(1),
		Long: "Checks the whole backup, then puts it in place as one step; FILE - is stdin. A damaged or newer " +
			"backup changes " +
			"nothing. The service must be\nstopped, all its processes if it has several. A state that is " +
			"there is moved " +
			"aside with --force; nothing is deleted.",
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, err := c.load()
			if err != nil {
				return err
			}
			in, end, err := c.open(args[0])
			if err != nil {
				return fmt.Errorf("restore: %w", err)
			}
			defer end()
			done, err := upkeep.Restore(cmd.Context(), c.options(cfg), in, force)
			switch {
			case errors.Is(err, archive.ErrBegun):
				return fmt.Errorf("restore: %w", err)
			case err != nil:
				return fmt.Errorf("restore: %w; nothing was changed", err)
			}
			return c.printRestored(&done, asJSON)
		},
	}
	cmd.Flags().BoolVar(&force, "force", false, "move aside what is there")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (c *command) printRestored(done *upkeep.Restored, asJSON bool) error {
	if asJSON {
		raw := struct {
			archive.Header
			Replaced []string `json:"replaced"`
			Name     string   `json:"moved_to"`
		}{done.Header, append([]string{}, done.Replaced...), done.Name}
		return json.NewEncoder(c.env.Out).Encode(raw)
	}
	var text strings.Builder
	_, _ = fmt.Fprintf(
		&text, "restored the backup of %s by zephbot %s\n",
		done.Created.Format("2006-01-02 15:04:05 MST"), done.Version,
	)
	for _, path := range done.Replaced {
		_, _ = fmt.Fprintf(&text, "  moved aside: %s -> %s\n", path, filepath.Join(filepath.Dir(path), done.Name))
	}
	_, _ = fmt.Fprintln(&text, "What people wrote since then is not in it. At its next start, the service does what "+
		"waited when the backup was made.")
	_, err := io.WriteString(c.env.Out, text.String())
	return err
}
