// Package sign shows on messages what has become of them, where the channel has reactions: 👀 on one that
// waits behind a running turn, until its answer is there, 👌 on those that were
// taken into the turn of another one, and 😴 on those in a group that a used-up quota leaves without an answer.
package sign

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/bot"
)

// The signs; a channel may know only some (Bot API ReactionTypeEmoji).
const (
	Seen  = "👀"
	Taken = "👌"
	Spent = "😴"
)

// Bucket holds the signs of waiting messages as facts, by session and number of the arrival. A fact is stored before
// its sign is shown and deleted after the sign was removed, so that no sign outlives its process.
const Bucket = "sign"

const (
	// After is how long a message waits before it gets a sign: most are taken sooner.
	After = 500 * time.Millisecond
	// again is when a session with signs is looked at if nobody reports that its turn has ended.
	again = 2 * time.Second
	// others is how often the signs that other processes left are looked for.
	others = time.Minute
	// most limits the signs of one session, and at once the messages of a turn that are marked as taken.
	most = 10
	// lookAhead is how many waiting arrivals of a session are read.
	lookAhead = 64
	// mute is how long a chat is left alone that takes no reactions.
	mute = time.Hour
	// keep is how long a fact is kept: longer than any message waits.
	keep = 7 * 24 * time.Hour
	// tries limits the attempts to remove a sign.
	tries = 10
	// mostCrowd limits the signs that are about to be shown because many are asking; batch is how
	// many of them are stored together.
	mostCrowd, batch = 1024, 32
	// slots limits the sessions that are looked at at once.
	slots = 8
	// requestTime limits one request to the channel, commitTime one write to the store.
	requestTime = 10 * time.Second
	commitTime  = 10 * time.Second
)

// Store is what Reactions needs of a store.
type Store interface {
	bot.Writer
	Lane(ctx context.Context, session bot.SessionKey) (bot.Lane, error)
	Next(ctx context.Context, session bot.SessionKey, limit int) ([]bot.Arrival, error)
	bot.Facts
}

// Deps are the dependencies of Reactions. All are required but Pacer.
type Deps struct {
	Store    Store
	Reactor  bot.Reactor
	Decoders map[bot.Source]bot.Decoder
	// Pacer says which chats have to be left alone, and learns it; nil = none. Signs use nothing of its budgets.
	Pacer interface {
		Frozen(place bot.Place) bool
		Freeze(place bot.Place, wait time.Duration)
	}
	Now func() time.Time
	Log zerolog.Logger
}

// Reactions shows signs. Waits, Ended and Merged may be called at any time, from several goroutines, and never
// block; without Run nothing is shown.
type Reactions struct {
	deps Deps

	mu       sync.Mutex
	sessions map[bot.SessionKey]*session
	muted    map[string]time.Time // chats that take no reactions, by key, and until when
	crowd    []crowded            // to be shown
	crowding bool                 // some of them are being stored

	wake  chan struct{}
	slots chan struct{}
	wg    sync.WaitGroup
}

// session is what is known of one session. Guarded by Reactions.mu; while busy is set, marks belongs to the round.
type session struct {
	due   time.Time
	busy  bool
	crowd bool // it waits because many are asking, so it is not looked at often
	taken []settled
	marks map[int64]*mark
}

// settled is a message that waits no more, and its sign.
type settled struct {
	place         bot.Place
	message, sign string
}

// crowded is a message that waits because many are asking.
type crowded struct {
	session bot.SessionKey
	arrival int64
	mark    *mark
}

// mark is the sign of a waiting message.
type mark struct {
	Place   bot.Place `json:"place"`
	Message string    `json:"message"`

	tries int
	next  time.Time // when to try again to remove it
}

// New returns Reactions.
func New(deps Deps) *Reactions {
	return &Reactions{
		deps: deps, sessions: map[bot.SessionKey]*session{}, muted: map[string]time.Time{},
		wake: make(chan struct{}, 1), slots: make(chan struct{}, slots),
	}
}

// Waits reports that a message may wait behind a turn of the session.
func (d *Reactions) Waits(key bot.SessionKey) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.sessionOf(key)
	if due := d.deps.Now().Add(After); s.due.IsZero() || due.Before(s.due) {
		s.due = due
	}
	d.nudge()
}

// Crowded reports that a message waits because many are asking, and not behind a turn of its session: it gets a sign at
// once, until its answer is there. Only what is reported is shown, and the session is not read for it.
func (d *Reactions) Crowded(key bot.SessionKey, arrival int64, place bot.Place, message string) {
	if d.isSilenced(place) || !key.InChat(place.ChatKey()) {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.crowd) < mostCrowd {
		d.crowd = append(d.crowd, crowded{key, arrival, &mark{Place: place, Message: message}})
		d.nudge()
	}
}

// Ended reports that a turn of the session has ended.
func (d *Reactions) Ended(key bot.SessionKey) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s := d.sessions[key]; s != nil && (s.busy || len(s.marks) > 0) {
		s.due = d.deps.Now()
		d.nudge()
	}
}

// Merged reports messages that were taken into the turn of the one before them.
func (d *Reactions) Merged(key bot.SessionKey, messages []bot.Message) {
	if len(messages) == 0 {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.sessionOf(key)
	for i := range messages[:min(len(messages), most)] {
		s.taken = append(s.taken, settled{messages[i].Place, messages[i].Message, Taken})
	}
	s.due = d.deps.Now()
	d.nudge()
}

// Spent reports a message that is not answered because a quota is used up.
func (d *Reactions) Spent(key bot.SessionKey, place bot.Place, message string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.sessionOf(key)
	if len(s.taken) < most {
		s.taken = append(s.taken, settled{place, message, Spent})
	}
	s.due = d.deps.Now()
	d.nudge()
}

// Shown reports whether a message has a sign because it waits, or is about to have one.
func (d *Reactions) Shown(ctx context.Context, key bot.SessionKey, arrival int64) bool {
	value, err := d.deps.Store.Fact(ctx, Bucket, signFact(key, arrival, "").Key, d.deps.Now())
	d.reportError(ctx, err, "sign not read")
	return value != ""
}

// sessionOf returns the state of a session. d.mu must be held.
func (d *Reactions) sessionOf(key bot.SessionKey) *session {
	s := d.sessions[key]
	if s == nil {
		s = &session{marks: map[int64]*mark{}}
		d.sessions[key] = s
	}
	return s
}

func (d *Reactions) nudge() {
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// Run shows and removes signs until ctx ends, and returns when nothing is in flight. What remains
// is removed by the next process.
func (d *Reactions) Run(ctx context.Context) error {
	defer d.wg.Wait()
	timer := time.NewTimer(0)
	defer timer.Stop()
	var looked time.Time
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		case <-d.wake:
		}
		if ctx.Err() != nil {
			return nil
		}
		now := d.deps.Now()
		if looked.IsZero() || now.Sub(looked) >= others {
			d.inheritSigns(ctx)
			looked = now
		}
		timer.Reset(min(d.startRounds(ctx, now), looked.Add(others).Sub(now)))
	}
}

// inheritSigns looks for signs in the store that this process does not know: of one that has ended, or of another one.
func (d *Reactions) inheritSigns(ctx context.Context) {
	list, err := d.deps.Store.FactsOf(ctx, Bucket, "", d.deps.Now())
	if err != nil {
		d.reportError(ctx, err, "signs not read; they are read again")
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, f := range list {
		at := strings.LastIndexByte(f.Key, '/')
		seq, err := strconv.ParseInt(f.Key[at+1:], 10, 64)
		var m mark
		if at < 0 || err != nil || json.Unmarshal([]byte(f.Value), &m) != nil {
			continue
		}
		s := d.sessionOf(bot.SessionKey(f.Key[:at]))
		if !s.busy && s.marks[seq] == nil {
			s.marks[seq] = &m
			s.due = d.deps.Now()
		}
	}
}

// startRounds begins the rounds that are due and returns when the next one is.
func (d *Reactions) startRounds(ctx context.Context, now time.Time) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.startCrowd(ctx)
	wait := others
	for key, s := range d.sessions {
		switch {
		case s.busy:
		case s.due.IsZero():
			delete(d.sessions, key)
		case s.due.After(now):
			wait = min(wait, s.due.Sub(now))
		default:
			s.busy, s.due = true, time.Time{}
			taken := s.taken
			s.taken = nil
			d.wg.Go(func() {
				select {
				case <-ctx.Done():
					return
				case d.slots <- struct{}{}:
				}
				defer func() { <-d.slots }()
				d.runRound(ctx, key, s, taken)
			})
		}
	}
	for chat, until := range d.muted {
		if !until.After(now) {
			delete(d.muted, chat)
		}
	}
	return max(wait, time.Millisecond)
}
