// Package hook lets other programs begin turns: POST /hooks/NAME of a monitoring system or a forge, signed with the
// secret of the hook, begins a turn in the name of the hook's owner. The words of the turn are the hook's own; what the
// caller sends is foreign text. A call is stored as an arrival before it is accepted, and its identity with it, so that
// the same call begins one turn however often it is sent, and whichever process it reaches.
package hook

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/clock"
	"github.com/zephbot/zephbot/bot/facts"
	"github.com/zephbot/zephbot/bot/feature"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/bot/turn"
)

// Path is what the path of every hook begins with; its name follows.
const Path = "/hooks/"

// nameForm is what a name may be.
var nameForm = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,31}$`)

// ValidName reports whether a hook may have a name.
func ValidName(name string) bool { return nameForm.MatchString(name) }

// tryAgain is when the hooks are read again after the store has failed.
const tryAgain = 5 * time.Second

// Store is what Hooks need of a store (bot.Store).
type Store interface {
	bot.Writer
	bot.Facts
	Tickets(ctx context.Context, scope string) ([]bot.Ticket, error)
}

// Engine runs turns (dispatch.Dispatcher).
type Engine interface {
	// Session returns the conversation that a message belongs to.
	Session(msg *bot.Message) bot.SessionKey
	// Wake asks it to look at a session.
	Wake(session bot.SessionKey)
}

// Outbox delivers rows. Wake announces new ones.
type Outbox interface {
	Wake(place bot.Place)
}

// Deps are the dependencies of Hooks. All but Gone, Operators, Observe, Names, FollowNames and Audit are required.
type Deps struct {
	Channel, Bot string
	Store        Store
	Engine       Engine
	Outbox       Outbox
	Guard        interface {
		Admit(ctx context.Context, msg *bot.Message) (turn.Verdict, error)
	}
	// Gone reports whether a person has left a group; nil = nobody does.
	Gone      func(ctx context.Context, place bot.Place, person string) (bool, error)
	Words     texts.Words
	Operators func() []bot.Place // where admins are told of hooks whose owner may not use the bot; nil = nowhere
	// Current returns the key that a session has now: its group may have got a new id.
	Current func(session bot.SessionKey) bot.SessionKey
	// Language returns the language of a person whose client told this one.
	Language func(caller, told string) string
	// Names returns what people are called, by caller id; nil = none are known. FollowNames has it know what other processes
	// have stored; nil = there are none.
	Names       func() map[string]string
	FollowNames func(ctx context.Context) error
	// Private returns the chat with a person alone: only there a secret is told.
	Private func(person string) bot.Place
	// URL returns what leads to the address at which hooks are called, as their callers see it.
	URL     func() string
	Key     []byte // of this service, from which the secrets of hooks that were made in chats are derived
	Audit   turn.Audit
	Observe func(result string) // counts what became of a call; nil = nothing does
	Now     func() time.Time    // of the store: the processes that share it agree on it
	Log     zerolog.Logger
}

// Config is a hook of the configuration.
type Config struct {
	Name, Secret string
	Prompt       Prompt
	When         []Condition // all of them; none = each call begins a turn
	Owner        string      // id of the person in whose name it runs
	Place        bot.Place
}

// Options configure Hooks. Zero values mean the documented default.
type Options struct {
	MaxBody   int64 // bytes of a call; default 256 KiB
	PerMinute int   // calls of one hook that a process accepts a minute; default 30
	Config    []Config
}

// Hooks accepts calls. Make it with New; it accepts them while Run runs. Safe for concurrent use.
type Hooks struct {
	deps  Deps
	opts  Options
	decoy string        // the secret of hooks that do not exist: checking it takes as long
	slots chan struct{} // one for each call whose body is read
	made  *facts.Followed[map[string]*stored]

	mu      sync.Mutex
	serving bool
	paces   map[string]pace // by name of a hook that exists
}

// New returns Hooks.
func New(deps Deps, opts Options) *Hooks {
	if opts.MaxBody <= 0 {
		opts.MaxBody = 256 << 10
	}
	if opts.PerMinute <= 0 {
		opts.PerMinute = 30
	}
	return &Hooks{
		deps: deps, opts: opts, decoy: rand.Text(), slots: make(chan struct{}, mostAtOnce), paces: map[string]pace{},
		made: facts.NewFollowed(deps.Store, bucket, revisions, deps.Now, readStored),
	}
}

// Feature returns /hooks and what accepts calls; h is nil where no hook can be called.
func (h *Hooks) Feature(words texts.Words) feature.Feature {
	return feature.Feature{
		Name:     "hooks",
		Off:      h == nil,
		Commands: []feature.Command{{Name: "hooks", Run: h.Command, OffText: words.HookOff}},
		Buttons:  []feature.Button{{Prefix: Prefix, Presser: h}},
		Run:      h.Run,
		Follow:   h.Follow,
		Moved:    func() { h.made.Forget() },
	}
}

// Follow reads the hooks that another process has stored.
func (h *Hooks) Follow(ctx context.Context) error { return h.made.Follow(ctx) }

// Run accepts calls until ctx ends, once it knows which hooks there are.
func (h *Hooks) Run(ctx context.Context) error {
	for err := h.Follow(ctx); err != nil && ctx.Err() == nil; err = h.Follow(ctx) {
		h.deps.Log.Error().Err(err).Msg("the hooks are not read; tried again in a moment")
		clock.Until(ctx, time.Now, time.Now().Add(tryAgain), 0, nil)
	}
	h.setServing(true)
	defer h.setServing(false)
	<-ctx.Done()
	return nil
}

func (h *Hooks) setServing(on bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.serving = on
}

// hook is a hook, as a call finds it.
type hook struct {
	name, secret string
	prompt       Prompt
	when         []Condition
	owner        owner
	place        bot.Place
	title        string // of the group
	off          bool   // its calls begin nothing
	// stored is the fact of a hook that was made in a chat as it was read: a Change with it is refused if the hook has
	// been changed since, in whichever process. nil = it is of the configuration.
	stored *bot.Fact
}

// owner is in whose name a hook's turns run.
type owner struct {
	Caller   string `json:"caller"`
	Person   string `json:"person"`
	Name     string `json:"name,omitempty"`
	Username string `json:"username,omitempty"`
	Language string `json:"language,omitempty"`
}

// find returns the hook of a name; nil = there is none.
func (h *Hooks) find(name string) *hook {
	i := slices.IndexFunc(h.opts.Config, func(c Config) bool { return c.Name == name })
	if i < 0 {
		if k := h.made.Value()[name]; k != nil {
			return h.hookOf(k)
		}
		return nil
	}
	c := &h.opts.Config[i]
	of := owner{Caller: h.deps.Channel + ":" + c.Owner, Person: c.Owner}
	if h.deps.Names != nil {
		of.Name = h.deps.Names()[of.Caller]
	}
	return &hook{name: c.Name, secret: c.Secret, prompt: c.Prompt, when: c.When, place: c.Place, owner: of}
}

// withName returns a hook with what its owner is called. Another process may have learnt that a moment ago.
func (h *Hooks) withName(ctx context.Context, k *hook) (*hook, error) {
	if k.owner.Name != "" || k.stored != nil || h.deps.FollowNames == nil {
		return k, nil
	}
	if err := h.deps.FollowNames(ctx); err != nil {
		return nil, fmt.Errorf("read what the owner of a hook is called: %w", err)
	}
	return h.find(k.name), nil
}

// message is what the turn of a call works on: the words of the hook and what the call brought, as a message of the
// hook's owner.
func (k *hook) message(id, text string, now time.Time) *bot.Message {
	return &bot.Message{
		ID: id, Kind: bot.Text, Place: k.place, Caller: k.owner.Caller, Person: k.owner.Person, Name: k.owner.Name,
		Username: k.owner.Username, Language: k.owner.Language, Title: k.title, Text: text, Hook: k.name,
		Addressed: true, At: now,
	}
}

// Ended is for the dispatcher, which follows the turns that calls begin (dispatch.Runs).
func (h *Hooks) Ended(*bot.Arrival, bot.SessionKey, string) []bot.Fact { return nil }

// Settle is for the dispatcher, which follows the turns that calls begin (dispatch.Runs).
func (h *Hooks) Settle() {}

// Heading is for the dispatcher, which follows the turns that calls begin (dispatch.Runs).
func (h *Hooks) Heading(arrival string) string { return "hook/" + arrival }

var _ http.Handler = (*Hooks)(nil)
