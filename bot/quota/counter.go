package quota

import (
	"context"
	"time"

	"github.com/zephbot/zephbot/bot"
)

// Take asks for N of one counter.
type Take struct {
	Key    string // names scope, unit and window
	N      int64
	Limit  int64     // 0 = counted, never refused
	Expire time.Time // when the counter may go; zero = when the call says
}

// Hold is how long what a Reserve sets aside is kept, by the clock of the caller.
type Hold struct {
	Now, Until time.Time
}

// Room is what a Reserve found.
type Room struct {
	Counts []int64 // what is counted, without what is set aside
	Denied int     // index of the first counter without room; -1 = all was set aside
	Full   bool    // denied: the counter has no room either when nobody has anything set aside
}

// Counter counts. All methods are atomic over all keys and safe for concurrent use by many processes.
type Counter interface { //nolint:interfacebloat // what is atomic over the same keys belongs together
	// Take adds to all keys, or to none when one would pass its limit: then denied is its index, else -1. A repeated id
	// changes nothing and answers as the first time. counts are the values after, or the present ones when denied. Keys
	// and ids live until expire.
	Take(ctx context.Context, id string, takes []Take, expire time.Time) (counts []int64, denied int, err error)
	// Return takes back what the id took; unknown ids change nothing.
	Return(ctx context.Context, id string, takes []Take) error
	// Reserve sets N of each counter that has a limit aside under the id, or of none when one would pass its limit:
	// what is counted, what others have set aside and N together are held against it. An id that has something set
	// aside gets the new amount instead. Until Settle, or the end of the hold, nobody else gets it; it is counted by
	// Settle alone. A counter without a limit is only read.
	Reserve(ctx context.Context, id string, takes []Take, hold Hold, expire time.Time) (Room, error)
	// Settle gives back what the id has set aside of these counters, as much as is left of it, and adds N to each.
	// Under the same name it does so once; counts are the values after.
	Settle(ctx context.Context, id, name string, takes []Take, expire time.Time) (counts []int64, err error)
	// Read gives the present values.
	Read(ctx context.Context, keys []string) ([]int64, error)
	// Restore sets a counter to at least n.
	Restore(ctx context.Context, key string, n int64, expire time.Time) error
	// Renewals counts how often the counters may have become older ones, as those of a replica that took over are. It
	// asks nobody.
	Renewals() int64
}

// Mirror is the durable copy of what was charged.
type Mirror interface {
	// Apply stores charges by themselves. One that is stored already changes nothing.
	Apply(ctx context.Context, change *bot.Change) (*bot.Applied, error)
	// Used adds up the charges of a scope on some days.
	Used(ctx context.Context, scope, unit string, days ...string) (int64, error)
}
