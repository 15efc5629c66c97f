package access

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/texts"
)

// seenBucket holds what people whom the configuration or an admin admits call themselves: the key is that of a person.
// The Bot API tells it with each message only.
const seenBucket = "person_seen"

// titleBucket holds what groups that are admitted are called: the key is the chat's.
const titleBucket = "group_title"

// seenPerson is what a person was called when they last wrote, their @name and the language of their client.
type seenPerson struct {
	Name     string `json:"name"`
	Language string `json:"language,omitempty"`
	Username string `json:"username,omitempty"`
}

// noteName stores what a person is called now, if that has changed. People whom only a list for everybody admits are not
// noted: there may be any number of them. Names are nice to have, so that a store in trouble keeps nobody from talking.
func (g *Guard) noteName(ctx context.Context, msg *bot.Message) {
	now := seenPerson{Name: msg.Name, Language: msg.Language, Username: msg.Username}
	if msg.Message == "" || msg.Name == "" || g.seenPerson(msg.Person) == now || !g.isNamed(msg.Person) {
		return // a message of ours, such as a task that is due, has the name of its time
	}
	value, err := json.Marshal(now)
	if err != nil {
		return
	}
	fact := bot.Fact{Bucket: seenBucket, Key: personKey(msg.Place, msg.Person), Value: string(value)}
	if _, err := g.store.Apply(ctx, &bot.Change{Facts: []bot.Fact{fact}}); err != nil {
		return
	}
	g.seenLock.Lock()
	defer g.seenLock.Unlock()
	next := map[string]seenPerson{}
	if known := g.seen.Load(); known != nil {
		maps.Copy(next, *known)
	}
	next[msg.Person] = now
	g.seen.Store(&next)
}

// isNamed reports whether the configuration names a person by id, or an admin has admitted them.
func (g *Guard) isNamed(id string) bool {
	_, admitted := g.rememberedEntry(id)
	return admitted || slices.Contains(g.opts.Admins, id) || slices.Contains(g.opts.Approvers, id) ||
		slices.Contains(g.opts.Users, id)
}

// seenPerson returns what is remembered of how a person calls themselves.
func (g *Guard) seenPerson(id string) seenPerson {
	if known := g.seen.Load(); known != nil {
		return (*known)[id]
	}
	return seenPerson{}
}

// LanguageOf returns the language of a person's client when they last wrote; "" = it is not known.
func (g *Guard) LanguageOf(id string) string { return g.seenPerson(id).Language }

// languageOf returns what a person reads who is told something: what they have chosen since they wrote, or that.
func (g *Guard) languageOf(id string) string {
	return g.words.Read(g.opts.Private(id), g.LanguageOf(id))
}

// nameOf returns what a person is called, as remembered; "" = nobody knows.
func (g *Guard) nameOf(id string) string {
	if name := g.seenPerson(id).Name; name != "" {
		return name
	}
	e, _ := g.rememberedEntry(id)
	return e.Name
}

// followNames reads again what people are called.
func (g *Guard) followNames(ctx context.Context) error {
	place := bot.Place{Channel: g.opts.Channel, Bot: g.opts.Bot}
	facts, err := g.store.FactsOf(ctx, seenBucket, personKey(place, ""), g.now())
	if err != nil {
		return fmt.Errorf("read what people are called: %w", err)
	}
	seen := make(map[string]seenPerson, len(facts))
	for _, f := range facts {
		var p seenPerson
		if err := json.Unmarshal([]byte(f.Value), &p); err != nil {
			return fmt.Errorf("what people are called, %s: %w", f.Key, err)
		}
		seen[strings.TrimPrefix(f.Key, personKey(place, ""))] = p
	}
	titles, err := g.readTitles(ctx, place)
	if err != nil {
		return err
	}
	g.seenLock.Lock()
	defer g.seenLock.Unlock()
	g.seen.Store(&seen)
	g.titles.Store(&titles)
	return nil
}

// readTitles reads what groups are called: when they were admitted, or since.
func (g *Guard) readTitles(ctx context.Context, place bot.Place) (map[string]string, error) {
	titles := map[string]string{}
	admitted, err := g.groupEntries(ctx, place)
	if err != nil {
		return nil, err
	}
	for _, e := range admitted {
		titles[e.ID] = e.Name
	}
	prefix := groupPlace(place, "").ChatKey()
	facts, err := g.store.FactsOf(ctx, titleBucket, prefix, g.now())
	if err != nil {
		return nil, fmt.Errorf("read what groups are called: %w", err)
	}
	for _, f := range facts {
		titles[strings.TrimPrefix(f.Key, prefix)] = f.Value
	}
	return titles, nil
}

// noteTitle stores what a group is called now that the configuration names or an admin has admitted, if that has changed.
func (g *Guard) noteTitle(ctx context.Context, msg *bot.Message) {
	known := g.titleOf(msg.Place.Chat)
	if !msg.Place.Group || !msg.Place.Ordinary() || msg.Title == "" || known == msg.Title ||
		known == "" && !slices.Contains(g.opts.Chats, msg.Place.Chat) {
		return
	}
	fact := bot.Fact{
		Bucket: titleBucket, Key: groupPlace(msg.Place, msg.Place.Chat).ChatKey(), Value: msg.Title,
	}
	if _, err := g.store.Apply(ctx, &bot.Change{Facts: []bot.Fact{fact}}); err != nil {
		return
	}
	g.seenLock.Lock()
	defer g.seenLock.Unlock()
	next := map[string]string{}
	if known := g.titles.Load(); known != nil {
		maps.Copy(next, *known)
	}
	next[msg.Place.Chat] = msg.Title
	g.titles.Store(&next)
}

// titleOf returns what a group is called, as remembered; "" = nobody knows.
func (g *Guard) titleOf(id string) string {
	if known := g.titles.Load(); known != nil {
		return (*known)[id]
	}
	return ""
}

// Titles returns what groups are called, by id, as remembered; with the id where several have one title.
func (g *Guard) Titles() map[string]string {
	called := map[string]string{}
	known := g.titles.Load()
	if known == nil {
		return called
	}
	for id, title := range *known {
		if title != "" {
			called[id] = g.calledGroup(id)
		}
	}
	return called
}

// calledGroup returns a group's title for sentences, with the id where another one has it, or where it ends like one; the
// id if nobody knows the title.
func (g *Guard) calledGroup(id string) string {
	title := g.titleOf(id)
	if title == "" {
		return id
	}
	for other, same := range *g.titles.Load() {
		if other != id && texts.SameName(same, title) {
			return texts.Exactly(title, id)
		}
	}
	if texts.EndsLikeID(title) {
		return texts.Exactly(title, id)
	}
	return texts.Named(title)
}

// Names returns what the people are called whom the configuration names or an admin has admitted, by id, as remembered.
func (g *Guard) Names() map[string]string {
	names := map[string]string{}
	if known := g.known.Load(); known != nil {
		for id, e := range *known {
			names[id] = e.Name
		}
	}
	if seen := g.seen.Load(); seen != nil {
		for id, p := range *seen {
			names[id] = cmp.Or(p.Name, names[id])
		}
	}
	return names
}

// adminNames returns the names of admins as far as they are known, for sentences.
func (g *Guard) adminNames() []string {
	var names []string
	for _, id := range g.Operators() {
		if name := g.nameOf(id); name != "" {
			names = append(names, g.calledPerson(id, name))
		}
	}
	return names
}

// isShared reports whether a name does not tell who a person is: somebody else who is known has the same one, as people
// read it, or it ends like an id.
func (g *Guard) isShared(id, name string) bool {
	if texts.EndsLikeID(name) {
		return true
	}
	for other, called := range g.Names() {
		if other != id && texts.SameName(called, name) {
			return true
		}
	}
	return false
}

// calledPerson returns a name of a person for sentences, with the id where it does not tell who they are.
func (g *Guard) calledPerson(id, name string) string {
	if g.isShared(id, name) {
		return texts.Exactly(name, id)
	}
	return texts.Named(name)
}

// calledSender returns what others are told of who wrote a message; "" = nobody knows.
func (g *Guard) calledSender(msg *bot.Message) string {
	if msg.Name == "" {
		return ""
	}
	return g.calledPerson(msg.Person, msg.Name)
}

// Called returns what the people are called whom the configuration names or an admin has admitted, by id, as remembered;
// with the id where several have one name.
func (g *Guard) Called() map[string]string {
	names := g.Names()
	for id, name := range names {
		if name != "" {
			names[id] = g.calledPerson(id, name)
		}
	}
	return names
}

// configuredPerson is a person of the configuration, for display.
func (g *Guard) configuredPerson(id string, role Role) texts.Person {
	name := g.nameOf(id)
	return texts.Person{ID: id, Role: string(role), Name: name, Shared: g.isShared(id, name)}
}
