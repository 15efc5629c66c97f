package bot

import (
	"strings"
	"time"
)

// Arrival is an accepted update, as it was received.
type Arrival struct {
	Seq      int64 // assigned by the store: the order of acceptance
	Channel  string
	Bot      string
	ID       string     // unique with Channel and Bot for at least 7 days
	Source   Source     // where it came from; "" = the channel, for what was stored before there were sources
	Session  SessionKey // its lane; "" for arrivals that belong to none (presses, unknown kinds)
	Express  bool       // acts on a running turn: it does not wait in the lane
	Raw      []byte     // the update, byte for byte
	At       time.Time
	Attempts int
	Problem  string // why it is a dead letter
}

// TurnID returns the id of the turn that an arrival of a channel and bot begins. It is the same after every restart.
func TurnID(channel, botID, arrival string) string {
	return strings.Join([]string{channel, botID, arrival}, "-")
}

// Ticket is an arrival that waits in a session, without its content.
type Ticket struct {
	Seq     int64
	Session SessionKey
	At      time.Time
}

// LaneState is what a session is doing.
type LaneState string

// States of a lane. A parked lane waits for a person, a waiting one for NotBefore; both keep their turn.
const (
	Idle    LaneState = "idle"
	Running LaneState = "running"
	Parked  LaneState = "parked"
	Waiting LaneState = "waiting"
)

// Lane is the right to work on one session, and the state of the session's work.
type Lane struct {
	Session SessionKey
	Place   Place
	// Id of the directory of its files, which does not change when its chat gets a new id; "" = not claimed since there
	// are such ids.
	Workspace string
	State     LaneState
	Fence     int64     // grows with every claim
	Owner     string    // process that holds it; "" = nobody
	Until     time.Time // end of the lease
	Turn      string    // turn in progress; "" = none
	Arrival   int64     // Seq of the arrival that began the turn
	Since     time.Time // when the turn began or was parked
	NotBefore time.Time // Waiting: when to retry
	Failing   time.Time // first failure of the model in this turn; zero = none
	Stop      string    // turn that somebody asked to stop; "" = none
	Last      int64     // number of the last journal entry
	Live      int64     // outbox row of the placeholder of this turn; 0 = none
	Notice    string    // turn during which "I will get to this" was said
	Caller    string    // of the turn in progress
}

// WorkspaceID returns the id of the directory of the session's files. For a lane without one, it is derived from its
// key.
func (l *Lane) WorkspaceID() string {
	if l.Workspace != "" {
		return l.Workspace
	}
	return WorkspaceID(string(l.Session))
}

// Lease is what a worker holds. It is valid until the lane is given back or somebody else claims it: the fence decides,
// not the clock, so that a worker whose lease has expired unnoticed continues as long as nobody took over.
type Lease struct {
	Session SessionKey
	Fence   int64
}

// Claim takes a free lane (nobody holds it, or the lease ended at or before Now). Fence is the fence as read before; if
// there was another claim since, the error is ErrLost. The state is not changed; Place is kept if Place.Channel is
// empty.
type Claim struct {
	Session SessionKey
	Place   Place
	// Workspace is set on a lane that has none.
	Workspace string
	Fence     int64
	Owner     string
	Now       time.Time
	Until     time.Time
	// Arrival makes the claim depend on an arrival that still waits: if it does not, the error is ErrConflict. 0 = no
	// condition.
	Arrival int64
	// Arrives says that the Change stores the one arrival that begins the turn, which becomes Lane.Arrival. The error
	// is ErrConflict if the arrival is known already, or if another arrival of the session waits and so comes first.
	Arrives bool
}

// LaneUpdate sets the fields that are not nil. Release is applied last.
type LaneUpdate struct {
	Session SessionKey
	// For a lane that the update creates: without a place, neither Lanes nor Counts find it before its first Claim.
	Place     *Place
	State     *LaneState
	Turn      *string
	Arrival   *int64
	Since     *time.Time
	NotBefore *time.Time
	Failing   *time.Time
	Stop      *string
	Live      *int64
	Notice    *string
	Caller    *string
	Until     *time.Time // extends the lease
	Release   bool       // gives the lease back
}
