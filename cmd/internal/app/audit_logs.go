package app

import (
	"os"
	"path/filepath"
	"slices"
)

// Modes that write an audit log.
const (
	AuditServe    = "serve"
	AuditSimulate = "simulate"
	AuditChat     = "chat"
	AuditACP      = "acp"   // a log for each directory in which editors have sessions
	AuditTools    = "tools" // and all other commands that run tools without a conversation
)

// AuditModes lists them.
func AuditModes() []string {
	return []string{AuditServe, AuditSimulate, AuditChat, AuditACP, AuditTools}
}

// AuditLog is a log that a mode writes.
type AuditLog struct {
	Mode string
	Path string
	Dirs []string // whose databases may know the position of the log
	// of the database that is used instead of the one in the first of Dirs; "" = none. It may contain a password
	URL string
}

// AuditLogs lists the logs that each mode writes with this configuration, whether or not they exist. If
// audit.destination is set, the modes that hold conversations share one log. With stdout they have no file.
func AuditLogs(opts Options) []AuditLog {
	cfg := opts.Config
	data, terminal := cfg.Path(cfg.DataDir), terminalHome(opts)
	simulate, url := filepath.Join(data, simulateName), cfg.Database.URL.Reveal()
	var list []AuditLog
	switch cfg.Audit.Destination {
	case "stdout":
	case "":
		list = []AuditLog{
			{AuditServe, filepath.Join(data, auditName), []string{data}, url},
			{AuditSimulate, filepath.Join(simulate, auditName), []string{simulate}, ""},
			{AuditChat, filepath.Join(terminal, auditName), []string{terminal}, ""},
		}
	default:
		list = []AuditLog{{AuditServe, cfg.Path(cfg.Audit.Destination), []string{data, simulate, terminal}, url}}
	}
	if cfg.Workspaces.Shared && cfg.Workspaces.Dir != "" && cfg.Audit.Destination != "stdout" {
		list = slices.DeleteFunc(list, func(l AuditLog) bool { return l.Mode == AuditServe && cfg.Audit.Destination == "" })
		for _, path := range sharedLogs(cfg) {
			list = append(list, AuditLog{AuditServe, path, []string{data}, url})
		}
	}
	tools := []string{filepath.Join(terminal, "audit-cli.jsonl")}
	// a directory whose name is no valid pattern has none
	editors, _ := filepath.Glob(filepath.Join(acpRoot(opts), "*", auditName))
	slices.Sort(editors)
	for _, path := range editors {
		list = append(list, AuditLog{AuditACP, path, []string{filepath.Dir(path)}, ""})
	}
	more, _ := filepath.Glob(filepath.Join(terminal, "audit-cli-*.jsonl"))
	slices.Sort(more)
	for _, path := range append(tools, more...) {
		list = append(list, AuditLog{AuditTools, path, []string{terminal}, ""})
	}
	return list
}

// Exists reports whether the log has been written.
func (l AuditLog) Exists() bool {
	info, err := os.Stat(l.Path)
	return err == nil && info.Mode().IsRegular()
}
