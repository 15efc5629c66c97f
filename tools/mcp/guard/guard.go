// Package guard decides what an MCP server is allowed: which program may be started and with which environment, which
// tools are offered, which of their texts a model may read, how often they may be called, and what a failure means. It
// is pure: it has no connections, no goroutines and no clock.
package guard

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/zephbot/zephbot/policy/reason"
	"github.com/zephbot/zephbot/tools"
)

// Trust says how far a server is trusted (seed 001). The zero value is not a valid level: use ParseTrust.
type Trust string

// Levels of trust, from the highest to the lowest.
const (
	Trusted   Trust = "trusted"
	Untrusted Trust = "untrusted" // the default
	Sandboxed Trust = "sandboxed"
)

// ParseTrust parses a level; "" is Untrusted.
func ParseTrust(s string) (Trust, error) {
	switch t := Trust(s); t {
	case "":
		return Untrusted, nil
	case Trusted, Untrusted, Sandboxed:
		return t, nil
	default:
		return "", fmt.Errorf("trust level %q: want %s, %s or %s", s, Trusted, Untrusted, Sandboxed)
	}
}

// Stricter returns the more restricted of two levels. An unknown level counts as Sandboxed.
func Stricter(a, b Trust) Trust {
	if a.rank() >= b.rank() {
		return a.known()
	}
	return b.known()
}

func (t Trust) rank() int {
	switch t {
	case Trusted:
		return 0
	case Untrusted:
		return 1
	default:
		return 2
	}
}

func (t Trust) known() Trust {
	if t.rank() == 2 {
		return Sandboxed
	}
	return t
}

// Command returns an error unless a program may be started as a server: its bare name must be in the list exactly. The
// list is mcp.allowed_commands; an empty list permits nothing.
func Command(name string, allowed []string) error {
	permitted := reason.New(reason.ProgramsNone)
	if len(allowed) > 0 {
		permitted = reason.New(reason.ProgramsListed, strings.Join(allowed, ", "))
	}
	refuse := func(code reason.Code, args ...string) error {
		return &reason.Error{Reason: reason.New(code, args...).With(permitted)}
	}
	switch {
	case name == "":
		return refuse(reason.ProgramUnnamed)
	case strings.ContainsAny(name, `/\`):
		return refuse(reason.ProgramPath, shown(name))
	case !slices.Contains(allowed, name):
		return refuse(reason.ProgramUnlisted, shown(name))
	}
	return nil
}

// shown returns a foreign word for an error: quoted and shortened.
func shown(s string) string { return fmt.Sprintf("%q", cut(s, 80)) }

// Annotations are a server's own statements about a tool. Nil means that the server states nothing.
type Annotations struct {
	Title       string `json:"title,omitempty"`
	ReadOnly    *bool  `json:"read_only,omitempty"`
	Destructive *bool  `json:"destructive,omitempty"`
	Idempotent  *bool  `json:"idempotent,omitempty"`
	OpenWorld   *bool  `json:"open_world,omitempty"`
}

// Apply copies the annotations into a definition, which must already have its name. Only a trusted server is believed
// when it states that a tool only reads or destroys nothing. That a tool destroys is believed of any server, and a name
// such as delete_file overrides the annotations. By the protocol's default, a tool that is not read-only may destroy;
// this default is used only for servers that annotate the tool at all. A statement that a tool only reads goes into
// Reads in any case, for a person to act on.
func (a Annotations) Apply(def *tools.Definition, trust Trust) {
	def.Trusted = trust == Trusted
	readOnly := a.ReadOnly != nil && *a.ReadOnly
	destroys := a.Destructive != nil && *a.Destructive
	if readOnly && namesDestruction(def.Name) {
		destroys = true
	}
	def.Reads = readOnly && !destroys
	def.ReadOnly = def.Reads && def.Trusted
	switch {
	case destroys:
		def.Destructive = true
	case a.Destructive != nil:
		def.Destructive = false
	default:
		def.Destructive = a.ReadOnly != nil && !readOnly
	}
}

// destroying lists verbs that the name of a read-only tool does not contain.
var destroying = []string{
	"delete", "remove", "drop", "destroy", "erase", "purge", "wipe", "truncate", "kill",
	"uninstall", "overwrite", "revoke", "terminate",
}

// namesDestruction reports whether a tool's name begins or ends with such a verb. list_deleted does not.
func namesDestruction(qualified string) bool {
	_, name, ok := strings.Cut(qualified, ":")
	if !ok {
		name = qualified
	}
	words := wordsOf(name)
	if len(words) == 0 {
		return false
	}
	return slices.Contains(destroying, strings.ToLower(words[0])) ||
		slices.Contains(destroying, strings.ToLower(words[len(words)-1]))
}

// Note returns what the annotations say to a person who is asked; none when the server states nothing.
func (a Annotations) Note(trust Trust) reason.Reason {
	var says []reason.Reason
	add := func(hint *bool, yes, no reason.Code) {
		switch {
		case hint == nil:
		case *hint && yes != "":
			says = append(says, reason.New(yes))
		case !*hint && no != "":
			says = append(says, reason.New(no))
		}
	}
	add(a.ReadOnly, reason.HintReads, reason.HintChanges)
	if a.ReadOnly == nil || !*a.ReadOnly || a.Destructive != nil && *a.Destructive {
		add(a.Destructive, reason.HintDestroys, reason.HintDestroysNothing)
		add(a.Idempotent, reason.HintRepeatable, "")
	}
	add(a.OpenWorld, reason.HintOpen, reason.HintClosed)
	switch {
	case len(says) == 0:
		return reason.Reason{}
	case trust == Trusted:
		return reason.New(reason.ServerSays).With(says...)
	default:
		return reason.New(reason.ServerSaysDoubtful).With(says...)
	}
}

// Limits of names.
const (
	maxName     = 128 // of a tool, as the protocol recommends (2025-11-25)
	maxServerID = 128
)

var serverRule = regexp.MustCompile(`^[A-Za-z0-9_.-]+$`)

// ServerID returns an error unless an id is valid as the name of a server. It becomes the part before the colon in the
// names of its tools.
func ServerID(id string) error {
	switch {
	case id == "":
		return reason.Err(reason.ServerUnnamed)
	case len(id) > maxServerID:
		return reason.Err(reason.ServerNameLong, shown(id), strconv.Itoa(len(id)), strconv.Itoa(maxServerID))
	case !serverRule.MatchString(id):
		return reason.Err(reason.ServerNameForm, shown(id))
	}
	return nil
}

// Qualified returns the name under which the whole bot knows a tool: "server:tool".
func Qualified(server, tool string) string { return server + ":" + tool }

// Split splits a qualified name. ok is false for the name of a built-in tool.
func Split(qualified string) (server, tool string, ok bool) {
	server, tool, ok = strings.Cut(qualified, ":")
	if !ok || server == "" || tool == "" {
		return "", "", false
	}
	return server, tool, true
}
