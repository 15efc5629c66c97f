package tools

import (
	"time"

	"github.com/zephbot/zephbot/policy/reason"
)

// remembered is how long after its end a block still doubles the next one.
const remembered = 24 * time.Hour

// Block says that a tool must not run for a while because it failed too often.
type Block struct {
	Tool    string        `json:"tool"`             // "server:*" = all tools of a server
	Session string        `json:"session"`          // the session in which it is blocked; "" = all
	Caller  string        `json:"caller,omitempty"` // the person whose calls it blocks there; "" = everybody's
	Reason  reason.Reason `json:"because,omitzero"` // use Why to read it
	English string        `json:"reason,omitempty"` // what older versions wrote instead of Reason
	Since   time.Time     `json:"since"`
	Until   time.Time     `json:"until"`
	Times   int           `json:"times"` // number of blocks in a row, from 1
}

// Why returns why the tool is blocked, also of a block of an older version.
func (b Block) Why() reason.Reason { return reason.Or(b.Reason, b.English) }

// Forget returns when an ended block no longer affects the length of the next one.
func (b Block) Forget() time.Time { return b.Until.Add(remembered) }
