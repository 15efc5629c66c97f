package app

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/zephbot/zephbot/cmd/internal/config"
)

// commonName is the directory among the workspaces for what processes share besides them.
const commonName = ".zephbot"

// commonDir returns, if several processes share, the directory for what is otherwise in data_dir but has to be visible
// to all of them, or to outlive a machine. It is on the volume of the workspaces, in a directory that is nobody's
// workspace.
func commonDir(cfg *config.Config) string {
	return filepath.Join(cfg.Path(cfg.Workspaces.Dir), commonName)
}

// tokenDir returns the directory for the tokens of signed-in MCP servers, for the service and the command line.
func tokenDir(cfg *config.Config) string {
	if cfg.Workspaces.Shared && cfg.Workspaces.Dir != "" {
		return filepath.Join(commonDir(cfg), "mcp-tokens")
	}
	return filepath.Join(cfg.Path(cfg.DataDir), "mcp-tokens")
}

// sharedAudit returns what the log names of processes that share begin and end with.
func sharedAudit(cfg *config.Config) (stem, ext string) {
	path := filepath.Join(commonDir(cfg), "audit", auditName)
	if cfg.Audit.Destination != "" {
		path = cfg.Path(cfg.Audit.Destination)
	}
	ext = filepath.Ext(path)
	return strings.TrimSuffix(path, ext) + "-", ext
}

// writerID matches the end of a writer's name; ten digits are no date, with which the names of rotated files end.
var writerID = regexp.MustCompile(`-[0-9a-f]{10}$`)

// writers returns the name of this process's log, and one for when another process uses that. The same machine with the
// same state directory continues its chain.
func writers(dir string) [2]string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	host = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '.' {
			return r
		}
		return '_'
	}, host)
	sum := sha256.Sum256([]byte(host + "\x00" + dir))
	return [2]string{
		fmt.Sprintf("%s-%s", host, hex.EncodeToString(sum[:5])),
		fmt.Sprintf("%s-%s", host, strings.ReplaceAll(uuid.NewString(), "-", "")[:10]),
	}
}

// auditFiles returns the possible names of this process's log, in order of preference.
func (c *Core) auditFiles() []string {
	if c.opts.Mode == AuditACP { // several processes run at the same time, and each log has one writer
		return []string{filepath.Join(c.dir, auditName)}
	}
	if !c.shared() {
		return []string{auditPath(c.cfg, c.dir)}
	}
	stem, ext := sharedAudit(c.cfg)
	var list []string
	for _, name := range writers(c.dir) {
		list = append(list, stem+name+ext)
	}
	return list
}

// sharedLogs lists the logs of all processes that share, or have shared.
func sharedLogs(cfg *config.Config) []string {
	stem, ext := sharedAudit(cfg)
	found, _ := filepath.Glob(stem + "*" + ext) // a name that is no valid pattern has none
	found = slices.DeleteFunc(found, func(path string) bool { return !writerID.MatchString(strings.TrimSuffix(path, ext)) })
	slices.Sort(found)
	return found
}
