package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"time"

	"github.com/zephbot/zephbot/agent/recall"
	"github.com/zephbot/zephbot/cmd/internal/config"
	"github.com/zephbot/zephbot/cmd/internal/layout"
	"github.com/zephbot/zephbot/persistence/sql"
	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/code"
	"github.com/zephbot/zephbot/tools/code/outline"
	"github.com/zephbot/zephbot/tools/code/watch"
	"github.com/zephbot/zephbot/tools/file"
)

// indexing is the code index and what it holds open.
type indexing struct {
	index   *code.Index
	stored  *sql.CodeIndex // nil = the index is not stored
	watcher *watch.Watcher // nil = nothing is watched
	first   []string       // roots that are read at the start

	passages *recall.Code // found by meaning; nil = nothing computes embeddings
}

// openCode builds the code index, and registers the tool that searches it. Without index.enabled it is in memory only,
// and made when it is asked. It is kept for processes that store something.
func (c *Core) openCode(ctx context.Context) error {
	cfg := c.cfg.Index
	sources, err := file.NewSources(file.Options{
		Workspace: c.kit.files.Dir, AllowedPaths: c.kit.files.Dirs(), DeniedPaths: c.kit.denied, Rules: c.globs,
		MaxTime: 10 * time.Minute, MaxEntries: 500_000,
	})
	if err != nil {
		return fmt.Errorf("%w: index: %w", config.ErrInvalid, err)
	}
	o := code.Options{Sources: sources, Now: c.now, Log: c.log.With().Str("component", "code").Logger()}
	for _, name := range cfg.Languages {
		o.Languages = append(o.Languages, outline.Language(name))
	}
	places, err := c.places("index.paths", cfg.Paths)
	if err != nil {
		return err
	}
	if len(cfg.Paths) > 0 {
		o.Places = places.Roots
	}
	if err := c.openServer(&o); err != nil {
		return err
	}
	if cfg.Enabled && c.stores != nil {
		if err := c.keepCode(ctx, &o, places.Dirs()); err != nil {
			return err
		}
	}
	if c.code.index, err = code.New(o); err != nil {
		return err
	}
	tool, err := c.code.index.Tool()
	if err != nil {
		return err
	}
	return c.registry.Add(tool)
}

// openServer tells the index about the language server.
func (c *Core) openServer(o *code.Options) error {
	lsp := c.cfg.Index.LSP
	if lsp.Server == "" {
		return nil
	}
	for key, ask := range map[string]string{
		"symbols": lsp.Symbols, "references": lsp.References, "definition": lsp.Definition, "hover": lsp.Hover,
	} {
		if err := code.Validate(ask); err != nil {
			return fmt.Errorf("%w: index.lsp.%s: %w", config.ErrInvalid, key, err)
		}
	}
	o.Server = languageServer{c, lsp.Server}
	o.Asks = code.Asks{Symbols: lsp.Symbols, References: lsp.References, Definition: lsp.Definition, Hover: lsp.Hover}
	return nil
}

// keepCode opens what an index needs that is kept: its file, and the watch of directories.
func (c *Core) keepCode(ctx context.Context, o *code.Options, configured []string) (err error) {
	if c.code.stored, err = sql.OpenCodeIndex(ctx, filepath.Join(c.dir, layout.CodeIndex)); err != nil {
		return err
	}
	o.Store = c.code.stored
	if err := c.openPassages(o); err != nil {
		return fmt.Errorf("%w: llm.embedding: %w", config.ErrInvalid, err)
	}
	if c.cfg.Index.Watch {
		if c.code.watcher, err = watch.New(c.dir, 0); err != nil {
			c.log.Warn().Err(err).Msg("directories cannot be watched: each search of the code looks for changed files")
		} else {
			o.Watcher = c.code.watcher
		}
	}
	if !c.cfg.Index.AutoIndex {
		return nil
	}
	c.code.first = c.readFirst(configured)
	return nil
}

// readFirst returns the roots that are read at the start: those of index.paths, or at the terminal the directory in
// which it was opened. Elsewhere the directories of conversations are read when they are searched.
func (c *Core) readFirst(configured []string) []string {
	if len(configured) > 0 || c.opts.Mode != layout.Chat {
		return configured
	}
	dir, err := filepath.EvalSymlinks(c.opts.WorkDir)
	if err != nil {
		return nil
	}
	return []string{dir}
}

// closeCode closes what openCode opened.
func (c *Core) closeCode() error {
	var errs []error
	if c.code.watcher != nil {
		errs = append(errs, c.code.watcher.Close())
	}
	if c.code.stored != nil {
		errs = append(errs, c.code.stored.Close())
	}
	return errors.Join(errs...)
}

// indexes keeps the code index up to date until ctx ends. Without index.enabled it is made by the searches alone.
func (c *Core) indexes(ctx context.Context) error {
	if c.code.stored == nil {
		return nil
	}
	return c.code.index.Run(ctx, c.code.first)
}

// languageServer is a language server behind an MCP server.
type languageServer struct {
	core *Core
	id   string
}

// Ask implements code.Server. The call passes the whole chain; a question to a person is a refusal, because nobody has
// asked for this call.
func (l languageServer) Ask(ctx context.Context, by *tools.Call, tool string, args json.RawMessage) (string, error) {
	name := l.id + ":" + tool
	call := &tools.Call{
		ID:         by.ID + "/" + tool + strconv.FormatInt(l.core.now().UnixNano(), 36),
		Batch:      by.Batch,
		Tool:       name,
		Args:       args,
		Origin:     by.Origin,
		Trail:      &tools.Trail{},
		Tools:      by.Tools,
		Suspicious: by.Suspicious,
		Touched:    by.Touched,
	}
	result, err := l.core.chain(nil).Execute(ctx, call)
	switch {
	case err != nil:
		return "", err
	case result.Error:
		return "", fmt.Errorf("%s: %s", name, result.Text)
	}
	return result.Text, nil
}
