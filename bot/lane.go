package bot

import (
	"time"
)

// Arrival is an accepted update, as it came.
type Arrival struct {
	Seq      int64 // given by the store: the order of acceptance
	Channel  string
	Bot      string
	ID       string     // with Channel and Bot unique for ever (≥ 7 days)
	Source   Source     // where it came from; "" = the channel, in what was stored before there were sources
	Session  SessionKey // lane; "" for arrivals that belong to none (presses, unknown kinds)
	Express  bool       // acts on a running turn: does not wait in the lane
	Raw      []byte     // the update, byte by byte
	At       time.Time
	Attempts int
	Problem  string // why it is a dead letter
}

// Ticket is an arrival in its place in a session, without its content.
type Ticket struct {
	Seq     int64
	Session SessionKey
	At      time.Time
}

// LaneState says what a session does.
type LaneState string

// States of a lane. A parked lane waits for a person; a waiting one for NotBefore; both hold their turn.
const (
	Idle    LaneState = "idle"
	Running LaneState = "running"
	Parked  LaneState = "parked"
	Waiting LaneState = "waiting"
)

// Lane is the right to work on one session, and what is known of the session's work.
type Lane struct {
	Session SessionKey
	Place   Place
	// id of the place of its files, which it keeps when its chat gets a new id; "" = it was not claimed since there are
	// ids
	Workspace string
	State     LaneState
	Fence     int64     // grows with every claim
	Owner     string    // process that holds it; "" = nobody
	Until     time.Time // end of the lease
	Turn      string    // turn in progress; "" = none
	Arrival   int64     // Seq of the arrival that began the turn
	Since     time.Time // when the turn began, or was parked
	NotBefore time.Time // Waiting: when to try again
	Failing   time.Time // first failure of the model in this turn; zero = none
	Stop      string    // turn that somebody asked to stop; "" = none
	Last      int64     // number of the last journal entry
	Live      int64     // outbox row of the placeholder of this turn; 0 = none
	Notice    string    // turn during which "I will get to this" was said
	Caller    string    // of the turn in progress
}

// WorkspaceID is the id of the place of the session's files. That of a lane that says none is made of its key.
func (l *Lane) WorkspaceID() string {
	if l.Workspace != "" {
		return l.Workspace
	}
	return WorkspaceID(string(l.Session))
}

// Lease is what a worker holds. It counts until somebody else claims the lane or it is given back: the fence decides,
// not the clock, so a worker whose lease ran out unnoticed goes on as long as nobody took over.
type Lease struct {
	Session SessionKey
	Fence   int64
}

// Claim takes a free lane (nobody holds it, or the lease ended at or before Now). Fence is the fence as read before;
// another claim since → ErrLost. The state stays as it is; Place is kept when Place.Channel is empty.
type Claim struct {
	Session SessionKey
	Place   Place
	// Workspace becomes that of a lane that has none.
	Workspace string
	Fence     int64
	Owner     string
	Now       time.Time
	Until     time.Time
	// Arrival makes the claim depend on an arrival that still waits: ErrConflict when it does not. 0 = on none.
	Arrival int64
	// Arrives says that the Change brings the one arrival with which a turn begins: it becomes Lane.Arrival.
	// ErrConflict when it is known already, or when another arrival of the session waits, whose turn it is then.
	Arrives bool
}

// LaneUpdate sets what is not nil. Release counts last.
type LaneUpdate struct {
	Session SessionKey
	// for a lane that is made by the update: without a place neither Lanes nor Counts find it before its first Claim
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
