package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/rulebook"
	"github.com/zephbot/zephbot/bot/telegram"
	"github.com/zephbot/zephbot/tools/workspace"

	"github.com/zephbot/zephbot/cmd/internal/config"
	"github.com/zephbot/zephbot/cmd/internal/layout"
	"github.com/zephbot/zephbot/cmd/internal/ruleset"
	"github.com/zephbot/zephbot/policy"
	reasons "github.com/zephbot/zephbot/policy/reason"
	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/file"
	"github.com/zephbot/zephbot/tools/overflow"
	"github.com/zephbot/zephbot/tools/shell"
	"github.com/zephbot/zephbot/tools/shell/sandbox"
	"github.com/zephbot/zephbot/tools/shell/toolchain"
)

// kit is the built-in tools and what they share.
type kit struct {
	registry  *tools.Registry
	runner    *shell.Runner
	workspace func(tools.Origin) (string, error) // where the commands of a conversation run
	commands  workspace.Places
	files     workspace.Places
	denied    []string // for every tool and child
	disk      *workspace.Guard
	confined  bool           // the kernel limits what a command can reach
	reading   bool           // the kernel can keep a command from changing anything
	level     reasons.Reason // for people
}

func (k *kit) close() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	// The helper that holds a process kills its group if it does not end in time.
	_ = k.runner.Shutdown(ctx)
}

// tools builds the built-in tools.
func (c *Core) tools() (*kit, error) {
	k := &kit{denied: c.obeyed()}
	var err error
	if k.commands, err = c.places("tools.shell.allowed_paths", c.cfg.Tools.Shell.AllowedPaths); err != nil {
		return nil, err
	}
	if k.files, err = c.places("tools.file.allowed_paths", c.cfg.Tools.File.AllowedPaths); err != nil {
		return nil, err
	}
	k.workspace = k.commands.Dir
	k.disk = workspace.NewGuard(workspace.GuardOptions{
		Root:     c.workspaceRoot(),
		MaxBytes: c.cfg.Workspaces.MaxBytes,
		Reserve:  c.cfg.Workspaces.ReserveBytes,
		Own:      c.dir,
		Now:      c.now,
		Beside:   func(ws string) string { return k.runner.PreviewsOf(ws) },
	})
	return k, c.buildTools(k)
}

// fileOptions are the options of the file tools.
func (c *Core) fileOptions(k *kit) file.Options {
	return file.Options{
		Workspace: k.files.Dir, AllowedPaths: k.files.Dirs(), DeniedPaths: k.denied, Rules: c.globs, Outlet: c.outlet(),
		Disk: k.disk, Now: c.now,
	}
}

// outlet is where send_file leaves contents. Only Telegram delivers files. The tools are built before the database is
// open and run after that.
func (c *Core) outlet() *file.Outlet {
	return &file.Outlet{
		Limit: func(o tools.Origin) int64 {
			if place, _, _ := bot.CutChat(o.Chat); o.Channel != telegram.Name || c.passing || !place.Ordinary() {
				return 0
			}
			return c.cfg.Telegram.MaxUploadBytes
		},
		Output: func(ctx context.Context, session, id string) (string, bool, error) {
			item, err := c.stores.Overflow.Load(ctx, session, id, c.now())
			if errors.Is(err, overflow.ErrNotFound) {
				return "", false, nil
			}
			return item.Text, err == nil, err
		},
		Keep: func(ctx context.Context, session string, content io.Reader) (string, int64, error) {
			ref, err := c.stores.Blobs.Put(ctx, session, content)
			return ref.Hash, ref.Size, err
		},
	}
}

// shell builds the tool that runs commands, and its runner, which others use too.
func (c *Core) shell(k *kit) ([]tools.Tool, error) {
	s := c.cfg.Tools.Shell
	background := s.MaxBackgroundRuns
	if background == 0 {
		background = -1 // none; the runner's own zero means its default
	}
	bash, runner, err := shell.New(shell.Options{
		Timeout:               time.Duration(s.Timeout) * time.Second,
		Workspace:             k.workspace,
		AllowedPaths:          k.commands.Dirs(),
		DeniedPaths:           k.denied,
		Unreadable:            rulebook.Unreadable(c.policy, environment),
		Tidy:                  c.opts.Mode == layout.Chat || c.opts.Mode == layout.ACP,
		Toolchains:            Toolchains(c.cfg, c.opts.Mode),
		Readable:              c.readable(),
		Disk:                  k.disk,
		Reader:                c.reader,
		Network:               reach(s.AllowNetwork),
		Limits:                limits(s.Limits),
		MaxOutput:             s.Limits.OutputBytes,
		EnvBlocklist:          s.EnvBlocklist,
		Transactional:         s.Transactional,
		AutoRollback:          s.AutoRollback,
		AutoRollbackExitCodes: s.AutoRollbackExitCodes,
		SnapshotRequired:      s.SnapshotRequired,
		TransactionScope:      s.TransactionScope,
		MaxSnapshotBytes:      s.MaxSnapshotBytes,
		Ledger:                c.ledger(),
		MaxBackgroundRuns:     background,
		BackgroundTimeout:     time.Duration(s.BackgroundTimeoutSecs) * time.Second,
		PreviewDir:            c.previewDir(),
		Unasked:               ruleset.Unasked(&s) != policy.UnaskedNothing,
		Sandbox:               s.Sandbox,
		Helper:                sandbox.Self,
		Redact:                c.redactor.String,
		Shape:                 c.shapeBackground,
		Now:                   c.now,
		Log:                   c.log.With().Str("component", "shell").Logger(),
	})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", config.ErrInvalid, err)
	}
	k.runner = runner
	if s.Sandbox == shell.SandboxOff {
		k.level = reasons.New(reasons.NoSandbox)
		return []tools.Tool{bash}, nil
	}
	probe, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	level := runner.Level(probe)
	k.confined, k.reading, k.level = level.Full(), level.Reading(), level.Describe()
	return []tools.Tool{bash}, nil
}

// Toolchains returns what is installed below the home directory and commands of a mode may use. Where people work on
// their own machine, in the terminal and editors, that is what is found, unless the configuration says otherwise.
func Toolchains(cfg *config.Config, mode string) toolchain.Set {
	home, list := cfg.Path("~"), cfg.Tools.Shell.Toolchains
	if len(list) == 0 && (mode == layout.Chat || mode == layout.ACP) {
		list = config.Names{config.ToolchainsAuto}
	}
	switch {
	case len(list) == 0 || list[0] == config.ToolchainsNone:
		return toolchain.Set{}
	case list[0] == config.ToolchainsAuto:
		return toolchain.Find(home, os.Environ())
	}
	var dirs []string
	for _, p := range list {
		dirs = append(dirs, cfg.Path(p))
	}
	return toolchain.Of(dirs, home)
}

// ledger returns where background runs are recorded, if there is a database.
func (c *Core) ledger() shell.Ledger {
	if c.passing {
		return nil
	}
	return ledger{c}
}

// ledger passes background runs to the news. The runner of commands is built at the same time as the database, but runs
// nothing before that is open.
type ledger struct{ core *Core }

// Begun implements shell.Ledger.
func (l ledger) Begun(ctx context.Context, run shell.BackgroundRun) error {
	return l.core.news.Begun(ctx, run)
}

// Ended implements shell.Ledger.
func (l ledger) Ended(ctx context.Context, done shell.Completion) error {
	return l.core.news.Ended(ctx, done)
}

// reach converts the network setting of commands.
func reach(r config.Reach) sandbox.Network {
	switch r {
	case config.ReachAll:
		return sandbox.NetworkAll
	case config.ReachInternet:
		return sandbox.NetworkInternet
	default:
		return sandbox.NetworkOff
	}
}

// limits converts the resource limits of commands.
func limits(l config.ShellLimits) sandbox.Limits {
	memory := l.MemoryBytes
	if memory == 0 {
		memory = sandbox.MachineMemory() / 2
	}
	return sandbox.Limits{
		Procs:    l.Processes,
		Memory:   max(memory, 0),
		FileSize: l.FileBytes,
		Files:    l.OpenFiles,
		CPU:      time.Duration(l.CPUSeconds) * time.Second,
	}
}
