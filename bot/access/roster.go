package access

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/zephbot/zephbot/bot"
)

// Role is what a person may do. Each role includes the rights of the previous ones.
type Role string

// The roles, in ascending order.
const (
	User     Role = "user"     // talks to the bot
	Approver Role = "approver" // also decides what others ask for
	Admin    Role = "admin"    // also admits people, stores standing approvals and manages servers
	// Blocked people were not admitted, and are neither answered nor shown to admins again. It has no rank, so that a
	// version that does not know it gives no rights either.
	Blocked Role = "blocked"
)

// allRoles lists the roles in ascending order.
func allRoles() []Role { return []Role{User, Approver, Admin} }

// rank orders roles. A role unknown to this version has no rights.
func (r Role) rank() int { return slices.Index(allRoles(), r) + 1 }

// higherRole returns the role with more rights.
func higherRole(a, b Role) Role {
	if b.rank() > a.rank() {
		return b
	}
	return a
}

// The buckets of people and groups admitted in the chat. The key of a person is CHANNEL/BOT/ID; that of a group is the
// key of its chat, so that it follows the group to its new id.
const (
	personBucket = "person"
	groupBucket  = "group"
	// blockedBucket has the groups that are not answered. They have a bucket of their own, so that a version that does not
	// know it admits none of them.
	blockedBucket = "group_blocked"
)

// Entry is a person or a group that was admitted in the chat.
type Entry struct {
	ID     string    `json:"-"`
	Group  bool      `json:"-"`
	Role   Role      `json:"role,omitempty"` // of a person; Blocked for a group too
	Name   string    `json:"name,omitempty"` // chosen by its owner, as it was at admission
	By     string    `json:"by,omitempty"`   // caller id of the admin; "" = the startup code
	ByName string    `json:"by_name,omitempty"`
	At     time.Time `json:"at"`
	raw    string    // as it is stored; "" = it is not
}

// Event is a right that was granted or removed in the chat, for the audit log.
type Event struct {
	Verb  string // admit, remove, block
	Entry Entry
	By    string // caller id of the person who did it
	Place bot.Place
	ID    string // of the arrival that did it
}

// personKey returns the key of a person.
func personKey(place bot.Place, id string) string { return place.Channel + "/" + place.Bot + "/" + id }

// groupPlace returns the chat of a group, without the topic of a message.
func groupPlace(place bot.Place, id string) bot.Place {
	return bot.Place{Channel: place.Channel, Bot: place.Bot, Surface: bot.SurfaceBot, Chat: id, Group: true}
}

// fact returns an entry as it is stored.
func (e Entry) fact(place bot.Place) (bot.Fact, error) {
	value, err := json.Marshal(e)
	if err != nil {
		return bot.Fact{}, fmt.Errorf("who is admitted: %w", err)
	}
	f := e.key(place)
	f.Value = string(value)
	return f, nil
}

// key returns the fact of an entry without a value, which deletes it.
func (e Entry) key(place bot.Place) bot.Fact {
	switch {
	case e.Group && e.Role == Blocked:
		return bot.Fact{Bucket: blockedBucket, Key: groupPlace(place, e.ID).ChatKey()}
	case e.Group:
		return bot.Fact{Bucket: groupBucket, Key: groupPlace(place, e.ID).ChatKey()}
	}
	return bot.Fact{Bucket: personBucket, Key: personKey(place, e.ID)}
}

func parseEntry(key, value string, group bool) (Entry, error) {
	e := Entry{Group: group, ID: key[strings.LastIndexByte(key, '/')+1:], raw: value}
	if err := json.Unmarshal([]byte(value), &e); err != nil {
		return e, fmt.Errorf("who is admitted, %s: %w", key, err)
	}
	return e, nil
}

// personEntry returns what was granted to a person in the chat; ok is false if nothing was.
func (g *Guard) personEntry(ctx context.Context, place bot.Place, id string) (e Entry, ok bool, err error) {
	return g.readEntry(ctx, Entry{ID: id}.key(place), false)
}

// groupEntry returns how a group was admitted or blocked in the chat; ok is false if it was not.
func (g *Guard) groupEntry(ctx context.Context, place bot.Place, id string) (e Entry, ok bool, err error) {
	for _, role := range []Role{"", Blocked} {
		e, ok, err = g.readEntry(ctx, Entry{ID: id, Group: true, Role: role}.key(place), true)
		if ok || err != nil {
			break
		}
	}
	return e, ok, err
}

// isAdmittedGroup reports whether a group was admitted in the chat.
func (g *Guard) isAdmittedGroup(ctx context.Context, place bot.Place, id string) (bool, error) {
	_, ok, err := g.readEntry(ctx, Entry{ID: id, Group: true}.key(place), true)
	return ok, err
}

func (g *Guard) readEntry(ctx context.Context, f bot.Fact, group bool) (e Entry, ok bool, err error) {
	value, err := g.store.Fact(ctx, f.Bucket, f.Key, g.now())
	if err != nil {
		return e, false, fmt.Errorf("read who is admitted: %w", err)
	}
	if value == "" {
		return e, false, nil
	}
	e, err = parseEntry(f.Key, value, group)
	return e, err == nil, err
}

// People lists the people who were admitted in the chat, by name.
func (g *Guard) People(ctx context.Context, place bot.Place) ([]Entry, error) {
	return g.readEntries(ctx, personBucket, personKey(place, ""), false)
}

// groupEntries lists the groups that were admitted or blocked in the chat, by name.
func (g *Guard) groupEntries(ctx context.Context, place bot.Place) ([]Entry, error) {
	var all []Entry
	for _, bucket := range []string{groupBucket, blockedBucket} {
		list, err := g.readEntries(ctx, bucket, groupPlace(place, "").ChatKey(), true)
		if err != nil {
			return nil, err
		}
		all = append(all, list...)
	}
	slices.SortFunc(all, compareEntries)
	return all, nil
}

func (g *Guard) readEntries(ctx context.Context, bucket, prefix string, group bool) ([]Entry, error) {
	facts, err := g.store.FactsOf(ctx, bucket, prefix, g.now())
	if err != nil {
		return nil, fmt.Errorf("read who is admitted: %w", err)
	}
	list := make([]Entry, 0, len(facts))
	for _, f := range facts {
		e, err := parseEntry(f.Key, f.Value, group)
		if err != nil {
			return nil, err
		}
		list = append(list, e)
	}
	slices.SortFunc(list, compareEntries)
	return list, nil
}

// compareEntries orders entries by name.
func compareEntries(a, b Entry) int {
	return cmp.Or(cmp.Compare(strings.ToLower(a.Name), strings.ToLower(b.Name)), cmp.Compare(a.ID, b.ID))
}

// Follow reads again who was admitted in the chat. The cached entries only save queries about people whom the
// configuration admits, and provide the names of admins for messages; every right that depends on them is looked up.
func (g *Guard) Follow(ctx context.Context) error {
	list, err := g.People(ctx, bot.Place{Channel: g.opts.Channel, Bot: g.opts.Bot})
	if err != nil {
		return err
	}
	known := make(map[string]Entry, len(list))
	for _, e := range list {
		known[e.ID] = e
	}
	g.known.Store(&known)
	return g.followNames(ctx)
}

// rememberedEntry returns what Follow has read about a person.
func (g *Guard) rememberedEntry(id string) (Entry, bool) {
	known := g.known.Load()
	if known == nil {
		return Entry{}, false
	}
	e, ok := (*known)[id]
	return e, ok
}

// allAdmins returns the ids of all admins, those of the configuration first.
func (g *Guard) allAdmins(ctx context.Context, place bot.Place) ([]string, error) {
	list, err := g.People(ctx, place)
	if err != nil {
		return nil, err
	}
	ids := slices.Clone(g.opts.Admins)
	for _, e := range list {
		if e.Role == Admin && !slices.Contains(ids, e.ID) {
			ids = append(ids, e.ID)
		}
	}
	return ids, nil
}

// Operators returns the ids of the admins as cached by this process, for messages while the store is unavailable.
func (g *Guard) Operators() []string {
	ids := slices.Clone(g.opts.Admins)
	if known := g.known.Load(); known != nil {
		for _, id := range slices.Sorted(maps.Keys(*known)) {
			if (*known)[id].Role == Admin && !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
	}
	return ids
}

// configuredRole returns the role that the configuration gives a person, and the key that does so; "" = no entry by
// name or id. A list that admits everybody names nobody.
func (g *Guard) configuredRole(ctx context.Context, id string) (role Role, key string, err error) {
	switch {
	case slices.Contains(g.opts.Admins, id):
		return Admin, "telegram.admins", nil
	case slices.Contains(g.opts.Approvers, id):
		role, key = Approver, "telegram.approvers"
	case slices.Contains(g.opts.Users, id) && !strings.HasPrefix(id, "@") && id != Everyone:
		role, key = User, "telegram.allowed_users"
	}
	if role != "" {
		return role, key, nil
	}
	if pinned, err := g.ownsListedName(ctx, id); err != nil || !pinned {
		return "", "", err
	}
	return User, "telegram.allowed_users", nil
}
