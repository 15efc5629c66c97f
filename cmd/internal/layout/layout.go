// Package layout says where each mode of the program keeps its state: directories, audit logs, and the places of
// the logs that the databases know.
package layout

import (
	"crypto/sha256"
	"encoding/hex"
	"path/filepath"
	"strconv"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/cmd/internal/config"
	"github.com/zephbot/zephbot/persistence/redis"
)

// Names of what is kept in a state directory besides the database.
const (
	CodeIndex = "code-index.db" // the index of code
	Undo      = "undo"          // what calls have changed; on the volume that processes share, if they do
	Previews  = "previews"      // what commands would do; on that volume too
)

// Common is the directory among the workspaces for what processes share besides them.
const Common = ".zephbot"

// Directories of the modes, below data_dir or the person's state directory.
const (
	simulator = "simulate"
	terminal  = "terminal"
	editors   = "acp"
)

// Layout is where the parts of the state are with one configuration.
type Layout struct {
	Config *config.Config
	State  string // directory for the state of the person's programs; "" = data_dir
}

// Data returns data_dir, the state directory of the service.
func (l Layout) Data() string { return l.Config.Path(l.Config.DataDir) }

// Simulator returns the state directory of the simulator and of the service that it runs.
func (l Layout) Simulator() string { return filepath.Join(l.Data(), simulator) }

// Terminal returns the state directory of the terminal: below data_dir if that is set, else in the person's state
// directory. The default data_dir is in the working directory: a conversation would end where the next directory
// begins, and somebody who prepares a directory for others could put one with approvals into it.
func (l Layout) Terminal() string {
	if l.State == "" || l.Config.Origin("data_dir") != (config.Origin{}) {
		return filepath.Join(l.Data(), terminal)
	}
	return filepath.Join(l.State, terminal)
}

// Editor returns the n-th state directory, from 1, of the sessions that editors open in a directory.
func (l Layout) Editor(workDir string, n int) string {
	sum := sha256.Sum256([]byte(workDir))
	name := bot.WorkspaceID(filepath.Base(workDir))
	if len(name) > 40 {
		name = name[:40]
	}
	name += "-" + hex.EncodeToString(sum[:6])
	if n > 1 {
		name += "-" + strconv.Itoa(n)
	}
	return filepath.Join(l.editors(), name)
}

// editors is the directory of the states of all directories in which editors have sessions, beside the terminal's.
func (l Layout) editors() string { return filepath.Join(filepath.Dir(l.Terminal()), editors) }

// Workspaces returns the directory of the service's workspaces.
func (l Layout) Workspaces() string {
	if dir := l.Config.Workspaces.Dir; dir != "" {
		return l.Config.Path(dir)
	}
	return filepath.Join(l.Data(), "workspaces")
}

// Shared reports whether several processes share a volume.
func (l Layout) Shared() bool { return l.Config.Workspaces.Shared && l.Config.Workspaces.Dir != "" }

// Common returns, if several processes share, the directory for what is otherwise in data_dir but has to be visible to
// all of them, or to outlive a machine. It is on the volume of the workspaces, in a
// directory that is nobody's workspace.
func (l Layout) Common() string {
	return filepath.Join(l.Config.Path(l.Config.Workspaces.Dir), Common)
}

// Tokens returns the directory for the tokens of signed-in MCP servers, for the service and the command line.
func (l Layout) Tokens() string {
	if l.Shared() {
		return filepath.Join(l.Common(), "mcp-tokens")
	}
	return filepath.Join(l.Data(), "mcp-tokens")
}

// Redis returns how the Redis server is reached.
func (l Layout) Redis(log zerolog.Logger) redis.Options {
	r := l.Config.Redis
	o := redis.Options{URL: r.URL.Reveal(), Log: log}
	for _, file := range []struct {
		to   *string
		from string
	}{{&o.CAFile, r.CAFile}, {&o.CertFile, r.CertFile}, {&o.KeyFile, r.KeyFile}} {
		if file.from != "" {
			*file.to = l.Config.Path(file.from)
		}
	}
	return o
}
