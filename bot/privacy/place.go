package privacy

import (
	"context"
	"time"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/texts"
)

// Order is what a Place is told: whom it is about, and which conversations are theirs.
type Order struct {
	Subject
	ID       string // of the job; it does not name the person
	At       time.Time
	Sessions []Conversation
	// Alone: no other process works on the data, such as from the command line while no service runs.
	Alone bool
}

// Conversation is one of the person's own.
type Conversation struct {
	Session   bot.SessionKey `json:"session"`
	Workspace string         `json:"workspace"`       // id of the directory of its files
	Began     []int64        `json:"began,omitempty"` // numbers of the entries with which it was begun again
}

// Place is somewhere that personal data is stored, besides the tables of the database. Safe for concurrent use.
type Place interface {
	// Name says what is there: one of the names of places in bot/texts.
	Name() string
	// Erase removes the person, and returns how many things went. It is repeated after a crash, and then removes the
	// rest.
	Erase(ctx context.Context, of *Order) (int, error)
	// Export writes what is there about the person.
	Export(ctx context.Context, of *Order, to *Archive) error
}

// Why is why something stays that names the person.
type Why string

// The reasons for which something stays.
const (
	StaysJob        Why = Why(bot.StaysJob)        // this job, until the receipt was delivered
	StaysReceipt    Why = "receipt"                // the receipt, until it was delivered
	StaysSums       Why = Why(bot.StaysSums)       // what was spent this month, while a limit applies
	StaysLimit      Why = Why(bot.StaysLimit)      // a limit that an admin has set
	StaysConfigured Why = Why(bot.StaysConfigured) // the configuration names the person
	StaysBriefly    Why = Why(bot.StaysBriefly)    // it is deleted by itself within a day
	StaysLater      Why = "later"                  // it was said after the request
	StaysOthers     Why = "others"                 // it was said by others, or to others
)

// Why something is out of reach. They are part of every receipt.
const (
	BeyondChannel  Why = "channel"  // messages at Telegram, and on the devices of people
	BeyondShared   Why = "shared"   // answers and files in conversations that others share
	BeyondPseudo   Why = "pseudo"   // sums and lines of the audit log, under a pseudonym
	BeyondBackups  Why = "backups"  // backups, and logs of the system
	BeyondPostgres Why = "postgres" // pages that PostgreSQL has not used again yet
)

// Count is how much there is, or was, of something.
type Count struct {
	What string `json:"what"` // a table or a Place
	N    int    `json:"n"`
}

// Stay is what names the person and stays.
type Stay struct {
	What string `json:"what"`
	N    int    `json:"n"`
	Why  Why    `json:"why"`
}

// Receipt says what became of a person's data. It does not name them.
type Receipt struct {
	ID        string    `json:"id"`
	Pseudonym string    `json:"pseudonym,omitempty"`
	Begun     time.Time `json:"begun"`
	Ended     time.Time `json:"ended,omitzero"` // zero = nothing was erased: it was only looked
	Gone      []Count   `json:"gone"`
	Stays     []Stay    `json:"stays"`
	Beyond    []Why     `json:"beyond"`
	Problems  []string  `json:"problems,omitempty"` // places that could not be erased
}

// Empty reports whether nothing was stored.
func (r *Receipt) Empty() bool { return len(r.Gone) == 0 && len(r.Stays) == 0 }

// Words returns the receipt for the sentences about it.
func (r *Receipt) Words() texts.Erased {
	e := texts.Erased{Problems: r.Problems, Pseudonym: r.Pseudonym}
	for _, c := range r.Gone {
		e.Gone = append(e.Gone, texts.ErasedCount{What: c.What, N: c.N})
	}
	for _, s := range r.Stays {
		e.Stays = append(e.Stays, texts.ErasedCount{What: s.What, N: s.N, Why: string(s.Why)})
	}
	for _, why := range r.Beyond {
		e.Beyond = append(e.Beyond, string(why))
	}
	return e
}
