package access

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/render"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/bot/turn"
)

// Verbs of the buttons of /people: "p1:r:ID:PAGE" removes, "p1:n:PAGE" shows another page.
const (
	pressRemove = "r"
	pressPage   = "n"
)

// Prefix begins the data of the buttons.
const Prefix = "p1"

// Press implements turn.Presser. Whoever has a client of their own can send anything: an admin can do by it what
// they can do by a command, and anybody else nothing.
func (d *Admissions) Press(ctx context.Context, call *turn.Call) (turn.Effect, error) {
	g, w, msg := d.guard, d.guard.words, call.Message
	parts := strings.Split(msg.Data, ":")[1:]
	admins, err := g.allAdmins(ctx, msg.Place)
	if err != nil {
		return turn.Effect{}, err
	}
	if msg.Caller == "" || !slices.Contains(admins, msg.Person) {
		return toastReply(msg, w.AdminsOnly(msg.Language, g.Admins()), true), nil
	}
	verbs := []string{pressAdmit, pressDecline, pressBlock, pressGroup}
	if len(parts) == 2 && slices.Contains(verbs, parts[0]) && isTelegramID(parts[1]) {
		return d.decideStranger(ctx, msg, parts[0], parts[1])
	}
	if len(parts) == 2 && parts[0] == pressRevoke && len(parts[1]) == shortHash {
		return d.revokeInvitation(ctx, msg, parts[1])
	}
	id, page, ok := listChoice(parts)
	switch {
	case !ok:
		return toastReply(msg, w.UnknownQuestion(msg.Language), true), nil
	case id != "":
		return d.pressRemoved(ctx, msg, id, page)
	}
	e := toastReply(msg, "", false)
	content, err := d.listPage(ctx, msg, page, "")
	e.Change.Send = append(e.Change.Send, redrawMessage(msg, content)...)
	return e, err
}

// listChoice reads a button of the list: whom to remove, "" = nobody, and which page to show.
func listChoice(parts []string) (id string, page int, ok bool) {
	switch {
	case len(parts) == 2 && parts[0] == pressPage:
	case len(parts) == 3 && parts[0] == pressRemove && isTelegramID(parts[1]):
		id = parts[1]
	default:
		return "", 0, false
	}
	page, err := strconv.Atoi(parts[len(parts)-1])
	return id, page, err == nil && page >= 0
}

func toastReply(msg *bot.Message, text string, alert bool) turn.Effect {
	return turn.Effect{Change: bot.Change{Send: []bot.Row{{
		Place: msg.Place, Purpose: bot.Toast, Query: msg.Query, Alert: alert, Content: bot.Content{Text: text},
	}}}}
}

// redrawMessage puts content into the message of a button.
func redrawMessage(msg *bot.Message, content bot.Content) []bot.Row {
	if msg.Message == "" {
		return nil
	}
	return []bot.Row{{Place: msg.Place, Purpose: bot.Record, Edit: msg.Message, Content: content}}
}

// decideStranger admits, declines or blocks a stranger or a group; the card becomes the record of it.
func (d *Admissions) decideStranger(ctx context.Context, msg *bot.Message, verb, id string) (turn.Effect, error) {
	var out done
	var err error
	switch admits := verb == pressAdmit || verb == pressGroup; {
	case admits && isGroupID(id):
		out, err = d.admitGroup(ctx, msg, id)
	case admits:
		out, err = d.admitPerson(ctx, msg, id, User)
	case isGroupID(id):
		out, err = d.refuseGroup(ctx, msg, id, verb == pressBlock)
	default:
		out, err = d.refusePerson(ctx, msg, id, verb == pressBlock)
	}
	if err != nil {
		return turn.Effect{}, err
	}
	toast := ""
	if out.changed {
		toast = d.guard.words.Noted(msg.Language, 0)
	}
	e := toastReply(msg, toast, false)
	content := bot.Content{Text: out.text, Entities: render.Inert(out.text), Language: msg.Language}
	e.Change.Send = append(append(e.Change.Send, redrawMessage(msg, content)...), out.effect.Change.Send...)
	e.Change.Facts, e.Change.Arrive = out.effect.Change.Facts, out.effect.Change.Arrive
	e.Wake, e.Then = out.effect.Wake, out.effect.Then
	return e, nil
}

// pressRemoved takes somebody off and draws the list again once they are.
func (d *Admissions) pressRemoved(ctx context.Context, msg *bot.Message, id string, page int) (turn.Effect, error) {
	out, err := d.removeEntry(ctx, msg, id)
	if err != nil {
		return turn.Effect{}, err
	}
	if !out.changed {
		return toastReply(msg, out.text, true), nil
	}
	e := out.effect
	e.Change.Send = toastReply(msg, "", false).Change.Send
	then := e.Then
	e.Then = func(ctx context.Context, applied *bot.Applied) (turn.Effect, error) {
		if _, err := then(ctx, applied); err != nil {
			return turn.Effect{}, err
		}
		content, err := d.listPage(ctx, msg, page, out.text)
		return turn.Effect{Change: bot.Change{Send: redrawMessage(msg, content)}}, err
	}
	return e, nil
}

// listPage is a page of who may talk to the bot. note is written below it.
func (d *Admissions) listPage(ctx context.Context, msg *bot.Message, page int, note string) (bot.Content, error) {
	g, w, language := d.guard, d.guard.words.At(msg.Place), msg.Language
	people, err := g.People(ctx, msg.Place)
	if err != nil {
		return bot.Content{}, err
	}
	groups, err := g.groupEntries(ctx, msg.Place)
	if err != nil {
		return bot.Content{}, err
	}
	all := append(people, groups...)
	page = min(page, max(0, len(all)-1)/peoplePage)
	from := page * peoplePage
	part := all[from:min(from+peoplePage, len(all))]
	list := texts.People{From: from + 1, All: len(all), Note: note}
	if page == 0 {
		if list.Configured, err = g.fromFile(ctx); err != nil {
			return bot.Content{}, err
		}
		if err = g.listUndecided(ctx, msg.Place, &list); err != nil {
			return bot.Content{}, err
		}
	}
	content := bot.Content{Language: language}
	for i, e := range part {
		list.Page = append(list.Page, g.displayedPerson(e))
		content.Buttons = append(content.Buttons, []bot.Button{{
			Label: w.RemoveButton(language, from+i+1, g.displayedPerson(e)),
			Data:  Prefix + ":" + pressRemove + ":" + e.ID + ":" + strconv.Itoa(page),
			Style: "danger",
		}})
	}
	newer, older := w.PageButtons(language)
	content.AddPages(newer, older, page, from+peoplePage < len(all), func(n int) string { return Prefix + ":" + pressPage + ":" + strconv.Itoa(n) })
	content.Text = w.People(language, list)
	content.Entities = render.Inert(content.Text)
	return content, nil
}

// listUndecided adds to a list who waits for an answer, the last who asked first, and how many were declined.
func (g *Guard) listUndecided(ctx context.Context, place bot.Place, list *texts.People) error {
	all := personKey(place, "")
	strangers, err := g.listStrangers(ctx, all)
	if err != nil {
		return err
	}
	keys := slices.SortedFunc(maps.Keys(strangers), func(a, b string) int {
		return cmp.Or(strangers[b].At.Compare(strangers[a].At), cmp.Compare(a, b))
	})
	for _, key := range keys {
		id, s := strings.TrimPrefix(key, all), strangers[key]
		if !s.Declined && !s.waits() {
			continue
		}
		decided, err := g.decidedText(ctx, place, id, s.Name)
		switch {
		case err != nil:
			return err
		case decided != nil:
		case s.Declined:
			list.Declined = append(list.Declined, texts.Person{ID: id, Group: isGroupID(id), Name: s.Name})
		case len(list.Waiting) == peoplePage:
			list.MoreWaiting++
		default:
			list.Waiting = append(list.Waiting, texts.Person{ID: id, Group: isGroupID(id), Name: s.Name})
		}
	}
	return nil
}

// fromFile lists whom the configuration admits.
func (g *Guard) fromFile(ctx context.Context) ([]texts.Person, error) {
	pins, err := g.store.FactsOf(ctx, bucket, g.nameKey(""), g.now())
	if err != nil {
		return nil, err
	}
	var list []texts.Person
	seen := map[string]bool{}
	add := func(id string, role Role) {
		if seen[id] {
			return
		}
		seen[id] = true
		p := texts.Person{ID: id, Role: string(role), Name: g.nameOf(id), Shared: g.isShared(id, g.nameOf(id))}
		for _, f := range pins {
			if "@"+strings.TrimPrefix(f.Key, g.nameKey("")) == strings.ToLower(id) {
				p.ID, p.Name = f.Value, id
			}
		}
		list = append(list, p)
	}
	for _, of := range []struct {
		ids  []string
		role Role
	}{{g.opts.Admins, Admin}, {g.opts.Approvers, Approver}, {g.opts.Users, User}} {
		for _, id := range of.ids {
			add(id, of.role)
		}
	}
	for _, id := range g.opts.Chats {
		list = append(list, texts.Person{ID: id, Group: true, Name: g.Titles()[id]})
	}
	return list, nil
}

var _ turn.Presser = (*Admissions)(nil)
