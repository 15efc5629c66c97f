package layout

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
)

// Modes that write an audit log.
const (
	Serve    = "serve"
	Simulate = "simulate"
	Chat     = "chat"
	ACP      = "acp"   // a log for each directory in which editors have sessions
	Tools    = "tools" // and all other commands that run tools without a conversation
)

// Modes lists them.
func Modes() []string { return []string{Serve, Simulate, Chat, ACP, Tools} }

// stdout is the audit.destination that is no file.
const stdout = "stdout"

// auditName is the log's file name in the state directory, if the configuration sets none; toolsAudit is how the names
// of the logs of the command line begin.
const (
	auditName  = "audit.jsonl"
	toolsAudit = "audit-cli"
)

// Log is an audit log that a mode writes.
type Log struct {
	Mode string
	Path string
	Dirs []string // whose databases may know the position of the log
	// of the database that is used instead of the one in the first of Dirs; "" = none. It may contain a password
	URL string
}

// Exists reports whether the log has been written.
func (l Log) Exists() bool {
	info, err := os.Stat(l.Path)
	return err == nil && info.Mode().IsRegular()
}

// Logs lists the logs that each mode writes with this configuration, whether or not they exist. If audit.destination is
// set, the modes that hold conversations share one log. With stdout they have no file.
func (l Layout) Logs() []Log {
	data, term, sim, url := l.Data(), l.Terminal(), l.Simulator(), l.Config.Database.URL.Reveal()
	var list []Log
	switch l.Config.Audit.Destination {
	case stdout:
	case "":
		if !l.Shared() {
			list = []Log{{Serve, filepath.Join(data, auditName), []string{data}, url}}
		}
		list = append(list,
			Log{Simulate, filepath.Join(sim, auditName), []string{sim}, ""},
			Log{Chat, filepath.Join(term, auditName), []string{term}, ""})
	default:
		list = []Log{{Serve, l.Config.Path(l.Config.Audit.Destination), []string{data, sim, term}, url}}
	}
	if l.Shared() && l.Config.Audit.Destination != stdout {
		for _, path := range l.SharedLogs() {
			list = append(list, Log{Serve, path, []string{data}, url})
		}
	}
	for _, path := range globbed(l.editors(), "*", auditName) {
		list = append(list, Log{ACP, path, []string{filepath.Dir(path)}, ""})
	}
	for _, path := range append([]string{
		filepath.Join(term, toolsAudit+".jsonl"),
	}, globbed(term, toolsAudit+"-*.jsonl")...) {
		list = append(list, Log{Tools, path, []string{term}, ""})
	}
	return list
}

// globbed lists the files of a pattern in order. A directory whose name is no valid pattern has none.
func globbed(pattern ...string) []string {
	found, _ := filepath.Glob(filepath.Join(pattern...))
	slices.Sort(found)
	return found
}

// ToolsLogs returns the possible names of the log of one command line in a state directory, in order of preference:
// while another call runs, this one writes a file of its own.
func ToolsLogs(dir string) []string {
	return []string{
		filepath.Join(dir, toolsAudit+".jsonl"),
		filepath.Join(dir, toolsAudit+"-"+uuid.NewString()[:8]+".jsonl"),
	}
}

// StateLog returns the log in a state directory, whatever audit.destination says.
func StateLog(dir string) string { return filepath.Join(dir, auditName) }

// OneLog returns the log of a process that shares with no other; dir is its state directory.
func (l Layout) OneLog(dir string) string {
	if l.Config.Audit.Destination == "" {
		return StateLog(dir)
	}
	return l.Config.Path(l.Config.Audit.Destination)
}

// LogDir returns the directory of the service's audit logs; "" = the audit has no files.
func (l Layout) LogDir() string {
	switch {
	case l.Config.Audit.Destination == stdout:
		return ""
	case l.Shared():
		stem, _ := l.sharedLog()
		return filepath.Dir(stem)
	default:
		return filepath.Dir(l.OneLog(l.Data()))
	}
}

// sharedLog returns what the log names of processes that share begin and end with.
func (l Layout) sharedLog() (stem, ext string) {
	path := filepath.Join(l.Common(), "audit", auditName)
	if l.Config.Audit.Destination != "" {
		path = l.Config.Path(l.Config.Audit.Destination)
	}
	ext = filepath.Ext(path)
	return strings.TrimSuffix(path, ext) + "-", ext
}

// writerID matches the end of a writer's name; ten digits are no date, with which the names of rotated files end.
var writerID = regexp.MustCompile(`-[0-9a-f]{10}$`)

// WriterLogs returns the possible names of the log of a process that shares, in order of preference: the second is for
// when another process uses the first. The same machine with the same state directory continues its chain.
func (l Layout) WriterLogs(dir string) []string {
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
	stem, ext := l.sharedLog()
	return []string{
		fmt.Sprintf("%s%s-%s%s", stem, host, hex.EncodeToString(sum[:5]), ext),
		fmt.Sprintf("%s%s-%s%s", stem, host, strings.ReplaceAll(uuid.NewString(), "-", "")[:10], ext),
	}
}

// SharedLogs lists the logs of all processes that share, or have shared.
func (l Layout) SharedLogs() []string {
	stem, ext := l.sharedLog()
	return slices.DeleteFunc(globbed(stem+"*"+ext), func(path string) bool {
		return !writerID.MatchString(strings.TrimSuffix(path, ext))
	})
}
