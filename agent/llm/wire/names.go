package wire

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/zephbot/zephbot/agent/llm"
)

// maxToolName is the longest tool name that the APIs allow.
const maxToolName = 64

// Names translates the tool names of one request for APIs that allow only letters, digits, _ and -, at most 64
// characters, and no digit or - at the beginning (Moonshot). There is one form for all servers, because a history goes
// from one to another. The translation is reversible, without collisions, and depends only on the set of names.
type Names struct {
	encoded map[string]string
	decoded map[string]string
	args    map[string]Args // by tool
}

// Args translates the arguments of a tool's calls, whose names a server may not accept either. Safe for concurrent use.
type Args interface {
	Encode(args json.RawMessage) json.RawMessage
	Decode(args json.RawMessage) json.RawMessage
}

// NamesOf collects all names of a request: those offered and those in its history.
func NamesOf(req *llm.Request) *Names {
	var all []string
	for _, t := range req.Tools {
		all = append(all, t.Name)
	}
	for _, msg := range req.Messages {
		for _, u := range msg.Uses {
			all = append(all, u.Name)
		}
	}
	slices.Sort(all)
	all = slices.Compact(all)

	n := &Names{encoded: map[string]string{}, decoded: map[string]string{}}
	plain := map[string]int{}
	for _, name := range all {
		plain[readableName(name)]++
	}
	for _, name := range all {
		// Names that need no change keep their spelling, whatever the others become.
		if readableName(name) == name && len(name) <= maxToolName {
			n.setName(name, name)
		}
	}
	for _, name := range all {
		if _, done := n.encoded[name]; done {
			continue
		}
		wire := readableName(name)
		if len(wire) > maxToolName || plain[wire] > 1 {
			wire = hashedName(name, 0)
		}
		for try := 1; n.nameTaken(wire); try++ {
			wire = hashedName(name, try)
		}
		n.setName(name, wire)
	}
	return n
}

func (n *Names) setName(name, wire string) {
	n.encoded[name] = wire
	n.decoded[wire] = name
}

func (n *Names) nameTaken(wire string) bool {
	_, ok := n.decoded[wire]
	return ok
}

// Encode returns the wire name of a tool. A name that was not collected is only made valid.
func (n *Names) Encode(name string) string {
	if wire, ok := n.encoded[name]; ok {
		return wire
	}
	return readableName(name)
}

// Decode returns a name that was not offered unchanged: the registry will tell the model that there is no such tool.
func (n *Names) Decode(wire string) string {
	if name, ok := n.decoded[wire]; ok {
		return name
	}
	return wire
}

// Translate sets how the arguments of a tool are translated; without it, they stay as they are. It is called before the
// names are used.
func (n *Names) Translate(tool string, args Args) {
	if n.args == nil {
		n.args = map[string]Args{}
	}
	n.args[tool] = args
}

// EncodeArgs returns the arguments of a tool's call as they are sent. tool is its name, not that on the wire.
func (n *Names) EncodeArgs(tool string, args json.RawMessage) json.RawMessage {
	if t, ok := n.args[tool]; ok {
		return t.Encode(args)
	}
	return args
}

// DecodeArgs returns the arguments that a model gave a tool as the tool knows them. tool is its name, not that on the
// wire.
func (n *Names) DecodeArgs(tool string, args json.RawMessage) json.RawMessage {
	if t, ok := n.args[tool]; ok {
		return t.Decode(args)
	}
	return args
}

// readableName replaces ":" by "__" and every other invalid character by "_", which also
// precedes a digit at the beginning.
func readableName(name string) string {
	if name == "" {
		return "unnamed"
	}
	var b strings.Builder
	if c := name[0]; c == '-' || c >= '0' && c <= '9' {
		b.WriteByte('_')
	}
	for _, r := range name {
		switch {
		case r == ':':
			b.WriteString("__")
		case r == '_' || r == '-' || (r >= '0' && r <= '9') || (r >= 'a' && r <= 'z') || (r >= 'A' && r <= 'Z'):
			b.WriteRune(r)
		default:
			b.WriteByte('_')
		}
	}
	return b.String()
}

// hashedName is the readable name, cut, with eight hexadecimal digits of the hash of the whole name.
func hashedName(name string, try int) string {
	salt := name
	if try > 0 {
		salt += "\x00" + strconv.Itoa(try)
	}
	sum := sha256.Sum256([]byte(salt))
	wire := readableName(name)
	return wire[:min(len(wire), maxToolName-9)] + "_" + hex.EncodeToString(sum[:4])
}
