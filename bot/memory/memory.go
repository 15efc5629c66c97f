// Package memory keeps what the agent remembers between conversations: a person's own memories, which only their
// private chat sees, and those of a group, which everybody in it shares. The scope of every read and write comes from
// where a call or a message comes from, never from what a model or a button says.
//
// A memory is a fact in the bucket `memory`, whose key begins with its scope, so that those of a group follow it when
// it gets a new id, and a scope is read without any other. One revision per scope orders the changes of all processes.
package memory

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/facts"
	"github.com/zephbot/zephbot/bot/moves"
	"github.com/zephbot/zephbot/tools"
)

const (
	// bucket holds the memories. A key is the scope and the id.
	bucket = "memory"
	// scopes holds, by scope, a revision that every change of its memories replaces. It exists while there are any.
	scopes = "memory_scope"
	// changes holds the scopes in which something was remembered lately, for other processes.
	changes    = "memory_change"
	changesFor = 10 * time.Minute
)

// Memory is a text that is remembered.
type Memory struct {
	ID string `json:"-"`
	// what it is about: a later one about the same replaces it; "" = nothing in particular
	Key  string    `json:"key,omitempty"`
	Text string    `json:"text"`
	By   string    `json:"by"`             // caller who had it remembered, or last changed it
	Name string    `json:"name,omitempty"` // of that person, as they called themselves: untrusted
	At   time.Time `json:"at"`             // when

	fact string // key of its fact: that of a group can begin with a former id of it for a moment
}

// Scope is whose memories they are. The zero value is nobody's.
type Scope struct {
	key    string // a caller, or a chat (Place.ChatKey)
	shared bool
}

// Personal returns the scope of a person's own memories.
func Personal(caller string) Scope { return Scope{key: caller} }

// OfChat returns the scope of a group's memories.
func OfChat(chat string) Scope { return Scope{key: chat, shared: true} }

// Shared reports whether everybody in a chat has part in it.
func (s Scope) Shared() bool { return s.shared }

// String returns the caller or the chat.
func (s Scope) String() string { return s.key }

// scopeOfPlace returns the scope of a place: a person's own if nobody else reads there, that of the group if the bot is
// in it. Elsewhere, as a guest or for a business account, strangers read, and nothing is remembered.
func scopeOfPlace(private bool, caller, chat string) (Scope, bool) {
	if caller == "" || strings.Contains(caller, "/") { // a key would begin like that of another caller
		return Scope{}, false
	}
	if private {
		return Personal(caller), true
	}
	place, rest, ok := bot.CutChat(chat)
	if !ok || rest != "" || place.Chat == "" || place.Surface != bot.SurfaceBot {
		return Scope{}, false
	}
	return OfChat(chat), true
}

// ScopeOfCall returns the scope of a tool call; false if nothing is remembered where it comes from.
func ScopeOfCall(o tools.Origin) (Scope, bool) { return scopeOfPlace(o.Private, o.Caller, o.Chat) }

// scopeOf returns the scope of a message; false if nothing is remembered where it was written.
func scopeOf(msg *bot.Message) (Scope, bool) {
	private := !msg.Place.Group && msg.Place.Ordinary() && !msg.FromBot
	if !msg.Place.Ordinary() {
		return Scope{}, false
	}
	if private {
		return scopeOfPlace(true, msg.Caller, "")
	}
	return scopeOfPlace(false, msg.Caller, msg.Place.ChatKey())
}

// Limits bound what is remembered.
type Limits struct {
	Entries int // of one scope
	Bytes   int // of one text
	Results int // of a search, unless the model asks for more
}

// Deps are the dependencies of a Store. Required are Store, Moves, Now and Limits.
type Deps struct {
	Store    facts.Store
	Moves    *moves.Map
	Shared   bool // other processes use the same store
	Limits   Limits
	Journal  Journal                   // of the conversations that are searched too; nil = only memories are
	Semantic Semantic                  // nil = memories are found by their words only
	Secret   func(text string) bool    // reports whether a text contains a credential; nil = none does
	Flagged  func(text string) bool    // reports whether a text tries to give instructions; nil = none does
	Record   func(Event) []bot.Fact    // audit lines, stored with what they are about; nil = none
	Recorded func(ctx context.Context) // writes them once they are stored; may be nil
	Zone     *time.Location            // of the dates that the model reads; nil = UTC
	Now      func() time.Time
	Log      zerolog.Logger
}

// Event is a change of memories, for the audit log. It does not contain their texts.
type Event struct {
	What   string // replaced, deleted, edited
	IDs    []string
	By     string // id of the memory that replaced them; "" = none did
	Scope  Scope
	Origin tools.Origin
}

// Store knows what is remembered. It remembers which scopes have memories at all, so that a turn without any reads
// nothing. Safe for concurrent use; it starts no goroutines.
type Store struct {
	deps  Deps
	cache cache

	mu     sync.Mutex
	loaded bool
	looked time.Time      // when changes of other processes were last read
	may    map[string]int // scopes that may have memories, with the number of the newest note
	n      int
}

// New returns a Store. It knows of no memories before the first Follow.
func New(deps Deps) *Store {
	if deps.Zone == nil {
		deps.Zone = time.UTC
	}
	return &Store{deps: deps, may: map[string]int{}}
}

// idOf makes the id of what a call or a message has remembered. It is the same if the call runs again.
func idOf(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:5]))
}

// scopeKeys lists the keys under which a scope may have facts: a group that got a new id a moment ago has some under
// the former one if a call of its turn was under way. The first is the present one.
func (s *Store) scopeKeys(scope Scope) []string {
	if !scope.shared {
		return []string{scope.key}
	}
	names := s.deps.Moves.Names(s.deps.Moves.Current(bot.SessionKey(scope.key + "/0/0")))
	list := make([]string, len(names))
	for i, name := range names {
		list[i] = name.ChatKey()
	}
	return list
}

// listMemories reads the memories of a scope, newest first.
func (s *Store) listMemories(ctx context.Context, scope Scope) ([]Memory, error) {
	var all []Memory
	for _, name := range s.scopeKeys(scope) {
		found, err := s.deps.Store.FactsOf(ctx, bucket, name+"/", s.deps.Now())
		if err != nil {
			return nil, fmt.Errorf("read what is remembered: %w", err)
		}
		for i := range found {
			m := Memory{fact: found[i].Key, ID: strings.TrimPrefix(found[i].Key, name+"/")}
			if err := json.Unmarshal([]byte(found[i].Value), &m); err != nil {
				s.deps.Log.Error().Err(err).Str("memory", m.fact).Msg("memory not readable")
				continue
			}
			all = append(all, m)
		}
	}
	slices.SortStableFunc(all, func(a, b Memory) int {
		return cmp.Or(b.At.Compare(a.At), strings.Compare(a.ID, b.ID))
	})
	return all, nil
}

// draft is a Change of a scope's memories, computed from what the store has.
type draft struct {
	scope Scope
	key   string // under which new facts are stored
	list  []Memory
	was   string // revision
	facts []bot.Fact
	left  int // how many there will be
	event []Event
}

// draftScope reads a scope for a Change. The revision is read first: a Change of another
// process in between refuses this one.
func (s *Store) draftScope(ctx context.Context, scope Scope) (*draft, error) {
	d := &draft{scope: scope, key: s.scopeKeys(scope)[0]}
	var err error
	if d.was, err = s.deps.Store.Fact(ctx, scopes, d.key, s.deps.Now()); err != nil {
		return nil, fmt.Errorf("read what is remembered: %w", err)
	}
	if d.list, err = s.listMemories(ctx, scope); err != nil {
		return nil, err
	}
	d.left = len(d.list)
	return d, nil
}

// findMemory returns a memory of the scope by its id.
func (d *draft) findMemory(id string) (Memory, bool) {
	i := slices.IndexFunc(d.list, func(m Memory) bool { return m.ID == id })
	if i < 0 {
		return Memory{}, false
	}
	return d.list[i], true
}

// putMemory stores a memory, in place of one with its id if there is one.
func (d *draft) putMemory(m Memory) {
	if _, ok := d.findMemory(m.ID); !ok {
		d.left++
	}
	raw, _ := json.Marshal(m) // strings and a time can always be marshalled
	d.facts = append(d.facts, bot.Fact{Bucket: bucket, Key: cmp.Or(m.fact, d.key+"/"+m.ID), Value: string(raw)})
}

// dropMemory deletes a memory.
func (d *draft) dropMemory(m *Memory) {
	d.left--
	d.facts = append(d.facts, bot.Fact{Bucket: bucket, Key: m.fact})
}

// changeOf returns the Change; empty if there is nothing to do.
func (s *Store) changeOf(d *draft) bot.Change {
	if len(d.facts) == 0 {
		return bot.Change{}
	}
	revision := bot.Fact{Bucket: scopes, Key: d.key, Value: rand.Text(), Was: &d.was}
	if d.left == 0 {
		revision.Value = ""
	}
	list := append(slices.Clip(d.facts), revision)
	if s.deps.Shared {
		list = append(list, bot.Fact{
			Bucket: changes, Key: rand.Text(), Value: d.key, Expires: s.deps.Now().Add(changesFor),
		})
	}
	for i := range d.event {
		d.event[i].Scope = d.scope
		if s.deps.Record != nil {
			list = append(list, s.deps.Record(d.event[i])...)
		}
	}
	return bot.Change{Facts: list}
}

// attempts limits how often a Change is computed again because another one came first.
const attempts = 16

// applyDraft makes a Change of a scope: work is called with what the store has, again if another Change came first.
func (s *Store) applyDraft(ctx context.Context, scope Scope, work func(*draft) error) error {
	for n := 1; ; n++ {
		d, err := s.draftScope(ctx, scope)
		if err != nil {
			return err
		}
		if err := work(d); err != nil {
			return err
		}
		change := s.changeOf(d)
		if len(change.Facts) == 0 {
			return nil
		}
		_, err = s.deps.Store.Apply(ctx, &change)
		switch {
		case err == nil:
			s.followStored(ctx, d)
			return nil
		case !errors.Is(err, bot.ErrConflict) || n == attempts:
			return fmt.Errorf("store what is remembered: %w", err)
		}
	}
}

// followStored follows a Change that was stored.
func (s *Store) followStored(ctx context.Context, d *draft) {
	s.noteScope(d.key)
	if d.left == 0 && s.deps.Semantic != nil {
		if err := s.deps.Semantic.Forget(ctx, d.scope.key); err != nil {
			s.deps.Log.Warn().Err(err).Msg("vectors of deleted memories not deleted; the next search does")
		}
	}
	if len(d.event) > 0 && s.deps.Recorded != nil {
		s.deps.Recorded(ctx)
	}
}

// DeleteOf deletes all memories of a scope, and returns how many there were.
func (s *Store) DeleteOf(ctx context.Context, scope Scope, by tools.Origin) (int, error) {
	n := 0
	err := s.applyDraft(ctx, scope, func(d *draft) error {
		n = d.clearMemories(by)
		return nil
	})
	return n, err
}

// clearMemories deletes all.
func (d *draft) clearMemories(by tools.Origin) int {
	if len(d.list) == 0 {
		return 0
	}
	e := Event{What: Deleted, Origin: by}
	for i := range d.list {
		d.dropMemory(&d.list[i])
		e.IDs = append(e.IDs, d.list[i].ID)
	}
	d.event = append(d.event, e)
	return len(d.list)
}

// What happened to memories.
const (
	Replaced = "replaced"
	Deleted  = "deleted"
	Edited   = "edited"
)
