package history

import (
	"crypto/sha256"
	"encoding/hex"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/dialect"
)

const (
	maxID   = 40 // the longest id of a call that OpenAI accepts; other vendors create longer ones
	shortID = 9  // the length of an id at Mistral
	// maxOwnID bounds an id that is sent as its server gave it.
	maxOwnID = 256
)

// ownID is the form of ids that a model was trained to count on, as Kimi's functions.NAME:INDEX.
var ownID = regexp.MustCompile(`^functions\.[^\s:]+:\d+$`)

// idFits reports whether the id of a call has the form that the server takes.
func (r *Rules) idFits(u *llm.ToolUse) bool {
	switch r.CallIDs {
	case dialect.CallIDsShort:
		return len(u.ID) == shortID && onlyLetters(u.ID, "")
	case dialect.CallIDsVerbatim:
		if modelsID(u) != "" && modelsID(u) != u.ID {
			return false
		}
		return onlyLetters(u.ID, "_-") && len(u.ID) > 0 && len(u.ID) <= maxID || modelsID(u) != ""
	default:
		return len(u.ID) > 0 && len(u.ID) <= maxID && onlyLetters(u.ID, "_-")
	}
}

// modelsID returns the id of a call as its model counts it; "" = it does not.
func modelsID(u *llm.ToolUse) string {
	for _, id := range [...]string{u.Own, u.ID} {
		if len(id) <= maxOwnID && ownID.MatchString(id) {
			return id
		}
	}
	return ""
}

// onlyLetters reports whether a text has only letters and digits of ASCII, and those of more.
func onlyLetters(text, more string) bool {
	for i := range len(text) {
		c := text[i]
		known := c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		for k := 0; !known && k < len(more); k++ {
			known = c == more[k]
		}
		if !known {
			return false
		}
	}
	return true
}

// names are the ids of the calls of one conversation that have been given.
type names struct{ taken map[string]struct{} }

// pool keeps the maps, so that a conversation which has its form already costs no memory.
var pool = sync.Pool{New: func() any { return &names{taken: map[string]struct{}{}} }}

// mostKept bounds a map that is kept.
const mostKept = 4096

func borrowNames() *names {
	n, ok := pool.Get().(*names)
	if !ok {
		n = &names{taken: map[string]struct{}{}}
	}
	return n
}

func (n *names) reset() { clear(n.taken) }

func (n *names) giveBack() {
	if len(n.taken) <= mostKept {
		n.reset()
		pool.Put(n)
	}
}

// claimID takes an id; false = it is taken.
func (n *names) claimID(id string) bool {
	if _, ok := n.taken[id]; ok {
		return false
	}
	n.taken[id] = struct{}{}
	return true
}

// idOf returns the id of a call in the form that the server takes. It depends on the call's own id and on the ids
// before it, and on nothing else, so that it is the same in later requests and in other processes.
func (n *names) idOf(r *Rules, u *llm.ToolUse) string {
	id := u.ID
	switch {
	case r.CallIDs == dialect.CallIDsVerbatim && modelsID(u) != "":
		id = modelsID(u)
	case !r.idFits(u):
		id = hashedID(r, u.ID, 0)
	}
	counted := modelsID(u) == id
	for try := 1; !n.claimID(id); try++ {
		if counted && r.CallIDs == dialect.CallIDsVerbatim { // count on, in the model's own form
			id = id[:strings.LastIndexByte(id, ':')+1] + strconv.Itoa(len(n.taken)+try)
			continue
		}
		id = hashedID(r, u.ID, try)
	}
	return id
}

// hashedID makes an id of the server's form from any other.
func hashedID(r *Rules, id string, try int) string {
	if try > 0 {
		id += "\x00" + strconv.Itoa(try)
	}
	sum := sha256.Sum256([]byte(id))
	if r.CallIDs == dialect.CallIDsShort {
		// 62 letters and digits; the last nine of a number of 16 bytes are evenly spread.
		text := new(big.Int).SetBytes(sum[:16]).Text(62)
		for len(text) < shortID {
			text = "0" + text
		}
		return text[len(text)-shortID:]
	}
	return "call_" + hex.EncodeToString(sum[:16])
}
