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

// commonDir holds, where several processes share, what is in data_dir otherwise and has to be seen by all of them, or
// to outlive a machine. It is on the volume of the workspaces, in a directory that is nobody's workspace.
func commonDir(cfg *config.Config) string {
	return filepath.Join(cfg.Path(cfg.Workspaces.Dir), ".zephbot")
}

// tokenDir holds the tokens of signed-in MCP servers, for the service and the command line.
func tokenDir(cfg *config.Config) string {
	if cfg.Workspaces.Shared && cfg.Workspaces.Dir != "" {
		return filepath.Join(commonDir(cfg), "mcp-tokens")
	}
	return filepath.Join(cfg.Path(cfg.DataDir), "mcp-tokens")
}

// sharedAudit is what the names of the logs of processes that share begin with, and end with.
func sharedAudit(cfg *config.Config) (stem, ext string) {
	path := filepath.Join(commonDir(cfg), "audit", auditName)
	if cfg.Audit.Destination != "" {
		path = cfg.Path(cfg.Audit.Destination)
	}
	ext = filepath.Ext(path)
	return strings.TrimSuffix(path, ext) + "-", ext
}

// writerID ends the name of a writer; ten digits are no date, with which the names of rotated files end.
var writerID = regexp.MustCompile(`-[0-9a-f]{10}$`)

// writers names the log of this process, and one for when another process has that. The same machine with the same
// directory of state goes on with its chain.
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

// auditFiles are the names that the log of this process may have, the first that is free.
func (c *Core) auditFiles() []string {
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
	found, _ := filepath.Glob(stem + "*" + ext) // a name that is no pattern has none
	found = slices.DeleteFunc(found, func(path string) bool { return !writerID.MatchString(strings.TrimSuffix(path, ext)) })
	slices.Sort(found)
	return found
}
