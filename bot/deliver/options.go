package deliver

import (
	"context"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/bot"
)

// Store is the part of bot.Store that the outbox needs.
type Store interface {
	bot.Writer
	Due(ctx context.Context, channel, bot string, now time.Time, limit int) ([]bot.Row, error)
	Rows(ctx context.Context, session bot.SessionKey, limit int) ([]bot.Row, error)
	Row(ctx context.Context, id int64) (bot.Row, error)
	Doubtful
}

// Doubtful lists rows of which it is unknown whether they arrived.
type Doubtful interface {
	Stranded(ctx context.Context, channel, bot string) ([]bot.Row, error)
	Lost(ctx context.Context, channel, bot string) ([]bot.Row, error)
}

// Words are the sentences that the outbox adds.
type Words interface {
	// Resent is the line below an answer that is sent again because it is unknown whether the first one arrived.
	Resent(language string) string
	// Lost is the line below a message that says that n earlier ones may not have arrived.
	Lost(language string, n int) string
	// NoTopic is the line below a message that could not be sent to its topic.
	NoTopic(language string) string
	// AsFile is the caption of an answer that the server refuses as a text.
	AsFile(language string) string
	// Unsendable says that the server refused a message in every form.
	Unsendable(language string) string
}

// Deps are the dependencies of an Outbox.
type Deps struct {
	Store  Store
	Sender bot.Sender
	Pacer  bot.Pacer
	Words  Words
	Now    func() time.Time // default time.Now
	Log    zerolog.Logger
	// Probe makes a request that changes nothing (Bot API getMe), and returns nil if it was answered. What may have
	// arrived is repeated only after that. nil = it is repeated without.
	Probe func(ctx context.Context) error
	// Again adds to a Change what is sent in place of a question that may not have arrived, once its
	// repetitions are used up: rows, and which questions they are the cards of. It adds nothing if the
	// question is over. nil = it never does.
	Again func(ctx context.Context, row *bot.Row, change *bot.Change) error
	// Language returns the IETF tag of the reader of a row; nil = the default language.
	Language func(row *bot.Row) string
	// Observe receives the outcome of each attempt: "sent", an outcome of bot.SendError, "panic", "replaced",
	// "expired", and when the request began (zero = there was none). May be nil; it must not block.
	Observe func(row bot.Row, outcome string, asked time.Time)
}

// Options configure an Outbox. Zero values mean the documented default.
type Options struct {
	Channel, Bot string
	Shared       bool          // other processes also deliver rows of this bot, and may leave theirs to this one
	Chats        int           // concurrent requests, each to another chat; default 32
	Poll         time.Duration // how often the store is checked for rows that were not announced; default 1 s
	Backoff      time.Duration // delay after the first failure, doubled each time; default 1 s
	MaxBackoff   time.Duration // default 1 min
	Request      time.Duration // time limit of one request, besides the bytes of its file; default 30 s
	Grace        time.Duration // how long a request in flight may continue after the end of Run's context; default 10 s
	Commit       time.Duration // time limit of one write to the store; default 10 s
	ToastAge     time.Duration // an older reply to a press is dropped; default 2 min
	MaxDoubt     time.Duration // longest delay before something is repeated whose outcome is unknown; default 5 min
	Repeats      int           // how often a new message is repeated whose outcome is unknown; default 3
	GiveUp       time.Duration // how long an edit is repeated whose outcome is unknown; default 1 h
}

func (o Options) withDefaults() Options {
	dur := func(v *time.Duration, d time.Duration) {
		if *v <= 0 {
			*v = d
		}
	}
	if o.Chats <= 0 {
		o.Chats = 32
	}
	if o.Repeats <= 0 {
		o.Repeats = 3
	}
	dur(&o.Poll, time.Second)
	dur(&o.Backoff, time.Second)
	dur(&o.MaxBackoff, time.Minute)
	dur(&o.Request, 30*time.Second)
	dur(&o.Grace, 10*time.Second)
	dur(&o.Commit, 10*time.Second)
	dur(&o.ToastAge, 2*time.Minute)
	dur(&o.MaxDoubt, 5*time.Minute)
	dur(&o.GiveUp, time.Hour)
	return o
}
