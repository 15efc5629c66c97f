package access

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/feature"
	"github.com/zephbot/zephbot/bot/render"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/bot/turn"
)

// peoplePage is the maximum number of people admitted in the chat that one message lists.
const peoplePage = 8

// mostLanes limits the lanes that are searched for work of a person who is removed.
const mostLanes = 10000

// Lanes lists at most limit lanes of a bot, by session.
type Lanes interface {
	Lanes(ctx context.Context, channel, bot string, limit int) ([]bot.Lane, error)
}

// Admissions answers /people, /admit and /remove, and the buttons that admins get. It is safe for concurrent use.
type Admissions struct {
	guard    *Guard
	lanes    Lanes
	username string
}

// NewAdmissions returns Admissions over a Guard, of the bot with a username, for links.
func NewAdmissions(guard *Guard, lanes Lanes, username string) *Admissions {
	return &Admissions{guard: guard, lanes: lanes, username: username}
}

// Feature returns the commands about who may talk to the bot; d is nil where nobody is admitted in the chat. follow
// reads what other processes have stored.
func (d *Admissions) Feature(words texts.Words, follow func(ctx context.Context) error) feature.Feature {
	return feature.Feature{
		Name: "access",
		Off:  d == nil,
		Commands: []feature.Command{
			{Name: "people", Audience: feature.Admins, Private: true, Run: d.People, OffText: words.PeopleOff},
			{Name: "admit", Audience: feature.Admins, Run: d.Admit, OffText: words.PeopleOff},
			{Name: "invite", Audience: feature.Admins, Private: true, Run: d.Invite, OffText: words.PeopleOff},
			{Name: "remove", Audience: feature.Admins, Private: true, Run: d.Remove, OffText: words.PeopleOff},
		},
		Buttons: []feature.Button{{Prefix: Prefix, Presser: d}},
		Follow:  follow,
	}
}

// Settle is Settle of the guard.
func (d *Admissions) Settle(ctx context.Context, report func(err error), sent func(place bot.Place)) error {
	return d.guard.Settle(ctx, report, sent)
}

// done is the outcome of an admin's request.
type done struct {
	text    string
	card    *bot.Content // instead of text
	key     string       // of the row with it
	effect  turn.Effect  // without the answer
	changed bool
}

// People answers /people. The caller is an admin. The list names people, so it is not shown in groups.
func (d *Admissions) People(ctx context.Context, call *turn.Call) (turn.Effect, error) {
	msg := call.Message
	if msg.Place.Group {
		return call.Reply(bot.Content{Text: d.guard.words.PeopleInPrivate(msg.Language)}), nil
	}
	content, err := d.listPage(ctx, msg, 0, "")
	if err != nil {
		return turn.Effect{}, err
	}
	return call.Reply(content), nil
}

// Admit answers /admit ID [ROLE], and /admit [ROLE] in reply to a message of somebody. The caller is an admin.
func (d *Admissions) Admit(ctx context.Context, call *turn.Call) (turn.Effect, error) {
	msg, w := call.Message, d.guard.words
	words := strings.Fields(msg.Args)
	role := User
	replied := d.guard.repliedTo(msg)
	if n := len(words) - 1; (n > 0 || n == 0 && replied != "") && Role(strings.ToLower(words[n])).rank() > 0 {
		role, words = Role(strings.ToLower(words[n])), words[:n]
	}
	if len(words) == 0 && replied != "" {
		words = []string{replied}
	}
	if len(words) == 0 || isTelegramID(words[0]) && len(words) > 1 || isNoName(words[0]) {
		return call.Reply(bot.Content{Text: w.AdmitHelp(msg.Language)}), nil
	}
	return d.replyWithEffect(call, func() (done, error) {
		id := strings.Join(words, " ")
		if !isTelegramID(id) { // whoever has taken a name gets no rights by it
			return d.askByNameIn(ctx, msg, id, role)
		}
		if isGroupID(id) {
			return d.admitGroup(ctx, msg, id)
		}
		return d.admitPerson(ctx, msg, id, role)
	})
}

// repliedTo returns the id of the person whose message in this chat a message replies to; "" = it is none's, or the bot's.
func (g *Guard) repliedTo(msg *bot.Message) string {
	if q := msg.Reply; q != nil && !q.Own && !q.Elsewhere {
		return g.idOf(q.Caller)
	}
	return ""
}

// askByNameIn is askByName anywhere: what it finds is for the admin alone, and a group is told where it is.
func (d *Admissions) askByNameIn(ctx context.Context, msg *bot.Message, name string, role Role) (done, error) {
	g := d.guard
	out, err := d.askByName(ctx, msg, name, role)
	if err != nil || !msg.Place.Group || out.text == g.words.NameUnknown(msg.Language, name, nil) ||
		g.opts.Private == nil {
		return out, err
	}
	content := bot.Content{Text: out.text, Entities: render.Inert(out.text), Language: msg.Language}
	if out.card != nil {
		content = *out.card
	}
	to := g.opts.Private(msg.Person)
	out.effect.Change.Send = append(out.effect.Change.Send, bot.Row{
		Session: to.SessionKey(""), Place: to, Purpose: bot.Reply, Key: out.key, Content: content,
	})
	out.card, out.key, out.text = nil, "", g.words.ByNameHere(msg.Language)
	return out, nil
}

// askByName answers /admit NAME. Anybody can take a name, so that it gives no rights: of somebody who is not admitted the
// admin gets the card again, of others what they are, or the ids.
func (d *Admissions) askByName(ctx context.Context, msg *bot.Message, name string, role Role) (done, error) {
	g, w := d.guard, d.guard.words.At(msg.Place)
	all := personKey(msg.Place, "")
	list, err := g.listStrangers(ctx, all)
	if err != nil {
		return done{}, err
	}
	found, err := d.knownAs(ctx, msg, name, list)
	if err != nil {
		return done{}, err
	}
	for key, s := range list {
		if goesBy(s.Name, s.Username, name) {
			found[strings.TrimPrefix(key, all)] = s.Name
		}
	}
	unclear := done{text: w.NameUnknown(msg.Language, name, idsWithNames(found, name))}
	if len(found) != 1 {
		return unclear, nil
	}
	id := slices.Collect(maps.Keys(found))[0]
	configured, key, err := g.configuredRole(ctx, id)
	if err != nil {
		return done{}, err
	}
	read, admitted := g.personEntry, role
	if isGroupID(id) {
		read, admitted = g.groupEntry, ""
	}
	e, known, err := read(ctx, msg.Place, id)
	s, asked := list[all+id]
	switch {
	case err != nil:
		return done{}, err
	case configured.rank() >= role.rank():
		return done{text: w.PersonConfigured(msg.Language, g.configuredPerson(id, configured), key)}, nil
	case known && e.Role != Blocked && e.Role.rank() >= admitted.rank():
		return done{text: w.AdmittedAlready(msg.Language, g.displayedPerson(e))}, nil
	case known || configured != "" || !asked || g.opts.Private == nil || isGroupID(id) && containsID(g.opts.Chats, id):
		return unclear, nil
	}
	card := g.cardAgain(msg, id, &s)
	out := done{card: &card, key: "asks/" + msg.ID + "/" + id}
	s.noteCard(out.key)
	f, err := s.fact(msg.Place, id)
	out.effect.Change.Facts = []bot.Fact{f}
	return out, err
}

// goesBy reports whether what an admin has typed means somebody of a name and a @name: the name, its first word or the
// @name.
func goesBy(name, username, typed string) bool {
	at, isUsername := strings.CutPrefix(typed, "@")
	if username != "" && strings.EqualFold(username, at) || isUsername {
		return username != "" && strings.EqualFold(username, at)
	}
	first, _, _ := strings.Cut(strings.TrimSpace(name), " ")
	return hasName(name, typed) || first != "" && strings.EqualFold(first, typed)
}

// idsWithNames lists those who were found by a name: their ids, and their names where these are others.
func idsWithNames(found map[string]string, name string) []string {
	var list []string
	for _, id := range slices.Sorted(maps.Keys(found)) {
		if hasName(found[id], name) {
			list = append(list, id)
		} else {
			list = append(list, texts.Exactly(found[id], id))
		}
	}
	return list
}

// hasName reports whether a name is the one that somebody has typed.
func hasName(name, typed string) bool {
	return strings.EqualFold(strings.Join(strings.Fields(name), " "), typed)
}

// Remove answers /remove ID. The caller is an admin.
func (d *Admissions) Remove(ctx context.Context, call *turn.Call) (turn.Effect, error) {
	msg := call.Message
	who := strings.Join(strings.Fields(msg.Args), " ")
	if who == "" || isNoName(who) {
		return call.Reply(bot.Content{Text: d.guard.words.RemoveHelp(msg.Language)}), nil
	}
	return d.replyWithEffect(call, func() (done, error) {
		if isTelegramID(who) {
			return d.removeEntry(ctx, msg, who)
		}
		list, err := d.guard.listStrangers(ctx, personKey(msg.Place, ""))
		if err != nil {
			return done{}, err
		}
		found, err := d.knownAs(ctx, msg, who, list)
		if err != nil {
			return done{}, err
		}
		if len(found) == 1 {
			return d.removeEntry(ctx, msg, slices.Collect(maps.Keys(found))[0])
		}
		for key, s := range list {
			if id := strings.TrimPrefix(key, personKey(msg.Place, "")); len(found) == 0 && goesBy(s.Name, s.Username, who) {
				return done{text: d.guard.words.NotAdmitted(msg.Language, texts.Exactly(s.Name, id))}, nil
			}
		}
		return done{text: d.guard.words.NameUnknown(msg.Language, who, idsWithNames(found, who))}, nil
	})
}

// knownAs returns whom of those who are admitted or blocked a name means: their names by id. list is what admins were told
// of strangers, which has the @names of those who have not written since.
func (d *Admissions) knownAs(
	ctx context.Context, msg *bot.Message, name string, list map[string]stranger,
) (map[string]string, error) {
	g := d.guard
	names := g.Names()
	for _, read := range []func(context.Context, bot.Place) ([]Entry, error){g.People, g.groupEntries} {
		entries, err := read(ctx, msg.Place)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			names[e.ID] = cmp.Or(names[e.ID], e.Name)
		}
	}
	found := map[string]string{}
	for id, called := range names {
		username := cmp.Or(g.seenPerson(id).Username, list[personKey(msg.Place, id)].Username)
		if goesBy(called, username, name) {
			found[id] = called
		}
	}
	return found, nil
}

// replyWithEffect returns the Effect of a command with its reply.
func (d *Admissions) replyWithEffect(call *turn.Call, work func() (done, error)) (turn.Effect, error) {
	out, err := work()
	if err != nil {
		return turn.Effect{}, err
	}
	content := bot.Content{Text: out.text, Entities: render.Inert(out.text)}
	if out.card != nil {
		content = *out.card
	}
	e := call.Reply(content)
	if out.key != "" {
		e.Change.Send[0].Key = out.key
	}
	e.Change.Send = append(e.Change.Send, out.effect.Change.Send...)
	e.Change.Facts = out.effect.Change.Facts
	e.Change.Lanes = out.effect.Change.Lanes
	e.Change.Arrive = out.effect.Change.Arrive
	e.Stop, e.Wake = out.effect.Stop, out.effect.Wake
	e.Then = out.effect.Then
	return e, nil
}

// isTelegramID reports whether a word is the id of a person or group: Telegram's ids have at most 52 bits.
func isTelegramID(word string) bool {
	n, err := strconv.ParseInt(word, 10, 64)
	return err == nil && n != 0 && n < 1<<52 && n > -1<<52 && strconv.FormatInt(n, 10) == word
}

// isGroupID reports whether an id is that of a group.
func isGroupID(id string) bool { return strings.HasPrefix(id, "-") }

// isNoName reports whether a word is meant as an id, and is none.
func isNoName(word string) bool {
	return strings.ContainsAny(word[:1], "-0123456789") && !isTelegramID(word)
}

// admitPerson assigns a role to a person.
func (d *Admissions) admitPerson(ctx context.Context, msg *bot.Message, id string, role Role) (done, error) {
	g, w, language := d.guard, d.guard.words.At(msg.Place), msg.Language
	configured, key, err := g.configuredRole(ctx, id)
	if err != nil {
		return done{}, err
	}
	if configured.rank() >= role.rank() {
		return done{text: w.PersonConfigured(language, g.configuredPerson(id, configured), key)}, nil
	}
	before, known, err := g.personEntry(ctx, msg.Place, id)
	if err != nil {
		return done{}, err
	}
	if before.Role == Blocked { // they are admitted like a stranger
		known = false
	}
	if known && before.Role == role {
		return done{text: w.AdmittedAlready(language, g.displayedPerson(before))}, nil
	}
	fewer, err := d.fewerAdmins(ctx, msg, id, before.Role)
	if errors.Is(err, errLastAdmin) {
		return done{text: w.LastAdmin(language)}, nil
	}
	if err != nil {
		return done{}, err
	}
	s, err := d.guard.strangerOf(ctx, msg.Place, id)
	if err != nil {
		return done{}, err
	}
	e := Entry{ID: id, Role: role, Name: cmp.Or(before.Name, g.nameOf(id)), By: msg.Caller, ByName: msg.Signature(), At: g.now().UTC()}
	if e.Name == "" && id == g.repliedTo(msg) {
		e.Name = msg.Reply.Author
	}
	if s != nil {
		e.Name = s.Name
	}
	out, err := d.storeEntry(msg, "admit", e, before.raw)
	if fewer != nil {
		out.effect.Change.Facts = append(out.effect.Change.Facts, *fewer)
	}
	if err != nil {
		return done{}, err
	}
	if out.effect.Wake, err = g.releaseSaid(ctx, msg.Place, id, false, &out.effect.Change); err != nil {
		return done{}, err
	}
	out.text = w.Admitted(language, g.displayedPerson(e))
	if err = g.endCards(ctx, msg, e, s, &out.effect.Change); err != nil {
		return done{}, err
	}
	if s != nil && !known && g.opts.Private != nil { // a bot cannot begin a chat
		row, err := d.rowFor(ctx, s, id)
		row.Content.Text = w.YouAreAdmitted(s.Language, len(out.effect.Change.Arrive) > 0)
		out.effect.Change.Send = append(out.effect.Change.Send, row)
		return out, err
	}
	return out, nil
}

// rowFor returns the row by which a person hears what is decided about them, where they have asked.
func (d *Admissions) rowFor(ctx context.Context, s *stranger, id string) (bot.Row, error) {
	row := bot.Row{Place: d.guard.opts.Private(id), Purpose: bot.Reply, Content: bot.Content{Language: s.Language}}
	if s.Where != nil {
		row.Place, row.ReplyTo = *s.Where, s.Message
		if err := d.guard.followMove(ctx, &row.Place, &row.ReplyTo); err != nil {
			return row, err
		}
	}
	row.Session = row.Place.SessionKey("")
	return row, nil
}

// refusePerson declines what a stranger asks for, or blocks them. What they have written is not kept any longer.
func (d *Admissions) refusePerson(ctx context.Context, msg *bot.Message, id string, block bool) (done, error) {
	g, w, language := d.guard, d.guard.words.At(msg.Place), msg.Language
	configured, key, err := g.configuredRole(ctx, id)
	if err != nil {
		return done{}, err
	}
	if configured != "" {
		return done{text: w.PersonConfigured(language, g.configuredPerson(id, configured), key)}, nil
	}
	before, known, err := g.personEntry(ctx, msg.Place, id)
	if err != nil {
		return done{}, err
	}
	before.ID = id
	out, err := d.refuseStranger(ctx, msg, before, known, block)
	if err != nil || !out.changed {
		return out, err
	}
	_, err = g.releaseSaid(ctx, msg.Place, id, true, &out.effect.Change)
	return out, err
}

// refuseStranger declines what a person or group asks for who is not admitted, or blocks them. before is how they are
// stored, and known whether they are.
func (d *Admissions) refuseStranger(
	ctx context.Context, msg *bot.Message, before Entry, known, block bool,
) (done, error) {
	g, w, language := d.guard, d.guard.words.At(msg.Place), msg.Language
	switch {
	case known && before.Role != Blocked: // another admin was quicker
		return done{text: w.AdmittedAlready(language, g.displayedPerson(before))}, nil
	case known:
		return done{text: w.Blocked(language, g.displayedPerson(before))}, nil
	}
	s, err := d.guard.strangerOf(ctx, msg.Place, before.ID)
	if err != nil {
		return done{}, err
	}
	e := Entry{ID: before.ID, Group: before.Group, Role: Blocked, By: msg.Caller, ByName: msg.Signature(), At: g.now().UTC()}
	if s != nil {
		e.Name = s.Name
	}
	if block {
		out, err := d.storeEntry(msg, "block", e, "")
		if e.Group { // refused if another admin admits it meanwhile, which is another fact
			out.effect.Change.Facts = append(out.effect.Change.Facts, absentEntry(msg.Place, Entry{ID: e.ID, Group: true}))
		}
		out.text = w.Blocked(language, g.displayedPerson(e))
		return out, cmp.Or(err, g.endCards(ctx, msg, e, s, &out.effect.Change))
	}
	out := done{changed: true, text: w.Declined(language, g.displayedPerson(e))}
	if s == nil || s.Declined {
		return out, nil
	}
	out.effect.Change.Send, err = g.endedCards(ctx, msg, s, func(w texts.Words, language string) string {
		return w.Declined(language, g.displayedPerson(e))
	})
	if err != nil {
		return done{}, err
	}
	row, err := d.rowFor(ctx, s, e.ID)
	if err != nil {
		return done{}, err
	}
	row.Content.Text = w.YouAreDeclined(s.Language)
	if e.Group {
		row.Place = groupPlace(msg.Place, e.ID)
		row.Session, row.Content.Text = row.Place.SessionKey(""), w.GroupDeclined(s.Language)
	}
	row.Key = fmt.Sprintf("declined/%s/%d", personKey(msg.Place, e.ID), s.At.Unix())
	s.Declined, s.DeclinedBy, s.DeclinedName, s.DeclinedAt = true, e.By, e.ByName, e.At
	f, err := s.fact(msg.Place, e.ID)
	if err != nil {
		return done{}, err
	}
	out.effect.Change.Facts = append(out.effect.Change.Facts, f, absentEntry(msg.Place, Entry{ID: e.ID, Group: e.Group}))
	if e.Group {
		out.effect.Change.Facts = append(out.effect.Change.Facts, absentEntry(msg.Place, e))
	}
	out.effect.Change.Send = append(out.effect.Change.Send, row)
	return out, nil
}

// absentEntry returns the fact by which a Change is refused if an entry exists.
func absentEntry(place bot.Place, e Entry) bot.Fact {
	f, nothing := e.key(place), ""
	f.Was = &nothing
	return f
}

// refuseGroup declines what a group asks for, or blocks it.
func (d *Admissions) refuseGroup(ctx context.Context, msg *bot.Message, id string, block bool) (done, error) {
	g := d.guard
	if containsID(g.opts.Chats, id) {
		return done{text: g.words.GroupConfigured(msg.Language, g.calledGroup(id))}, nil
	}
	before, known, err := g.groupEntry(ctx, msg.Place, id)
	if err != nil {
		return done{}, err
	}
	before.ID, before.Group = id, true
	out, err := d.refuseStranger(ctx, msg, before, known, block)
	if err != nil || !out.changed {
		return out, err
	}
	_, err = g.releaseSaid(ctx, msg.Place, id, true, &out.effect.Change)
	return out, err
}

// admitGroup admits a group, and tells it so.
func (d *Admissions) admitGroup(ctx context.Context, msg *bot.Message, id string) (done, error) {
	g, w, language := d.guard, d.guard.words.At(msg.Place), msg.Language
	if containsID(g.opts.Chats, id) {
		return done{text: w.GroupConfigured(language, g.calledGroup(id))}, nil
	}
	before, known, err := g.groupEntry(ctx, msg.Place, id)
	if err != nil {
		return done{}, err
	}
	if known && before.Role != Blocked { // one that is blocked is admitted like a new one
		return done{text: w.AdmittedAlready(language, g.displayedPerson(before))}, nil
	}
	s, err := d.guard.strangerOf(ctx, msg.Place, id)
	if err != nil {
		return done{}, err
	}
	e := Entry{ID: id, Group: true, Name: before.Name, By: msg.Caller, ByName: msg.Signature(), At: g.now().UTC()}
	if s != nil {
		e.Name = s.Name
	}
	out, err := d.storeEntry(msg, "admit", e, "")
	if err != nil {
		return done{}, err
	}
	f := Entry{ID: id, Group: true, Role: Blocked}.key(msg.Place)
	f.Was = &before.raw
	out.effect.Change.Facts = append(out.effect.Change.Facts, f)
	if out.effect.Wake, err = g.releaseSaid(ctx, msg.Place, id, false, &out.effect.Change); err != nil {
		return done{}, err
	}
	out.text = w.Admitted(language, g.displayedPerson(e))
	if s != nil {
		to := groupPlace(msg.Place, id)
		out.effect.Change.Send = []bot.Row{{
			Session: to.SessionKey(""), Place: to, Purpose: bot.Reply,
			Content: bot.Content{Text: g.greetGroup(s.Language, to), Language: s.Language},
		}}
	}
	return out, g.endCards(ctx, msg, e, s, &out.effect.Change)
}

// storeEntry returns the Effect that stores an entry, or deletes it, unless another admin changes it meanwhile: was is how
// it was stored; "" = it was not.
func (d *Admissions) storeEntry(msg *bot.Message, verb string, e Entry, was string) (done, error) {
	f, err := e.fact(msg.Place)
	if verb == "remove" {
		f = e.key(msg.Place)
	}
	if err != nil {
		return done{}, err
	}
	f.Was = &was
	out := done{changed: true}
	out.effect.Change.Facts = append([]bot.Fact{f}, d.guard.auditLine(Event{
		Verb:  verb,
		Entry: e,
		By:    msg.Caller,
		Place: msg.Place,
		ID:    msg.ID,
	})...)
	out.effect.Then = func(ctx context.Context, _ *bot.Applied) (turn.Effect, error) {
		err := d.guard.Follow(ctx)
		if d.guard.opts.Record != nil {
			d.guard.opts.Record(ctx)
		}
		return turn.Effect{}, err
	}
	return out, nil
}

// removeEntry removes a person or a group, and ends their running work.
func (d *Admissions) removeEntry(ctx context.Context, msg *bot.Message, id string) (done, error) {
	g, w, language, group := d.guard, d.guard.words, msg.Language, isGroupID(id)
	e, known, err := g.personEntry(ctx, msg.Place, id)
	if group {
		e, known, err = g.groupEntry(ctx, msg.Place, id)
	}
	if err != nil {
		return done{}, err
	}
	role, key, err := g.configuredRole(ctx, id)
	switch {
	case err != nil:
		return done{}, err
	case group && containsID(g.opts.Chats, id):
		return done{text: w.GroupConfigured(language, g.calledGroup(id))}, nil
	case !known && role != "":
		return done{text: w.PersonConfigured(language, g.configuredPerson(id, role), key)}, nil
	case !known:
		return done{text: w.NotAdmitted(language, id)}, nil
	}
	fewer, err := d.fewerAdmins(ctx, msg, id, e.Role)
	if errors.Is(err, errLastAdmin) {
		return done{text: w.LastAdmin(language)}, nil
	}
	if err != nil {
		return done{}, err
	}
	if !group {
		e.Name = cmp.Or(e.Name, g.nameOf(id))
	}
	out, err := d.storeEntry(msg, "remove", e, e.raw)
	if err != nil {
		return done{}, err
	}
	if fewer != nil {
		out.effect.Change.Facts = append(out.effect.Change.Facts, *fewer)
	}
	if !group {
		out.effect.Change.Facts = append(out.effect.Change.Facts, bot.Fact{
			Bucket: seenBucket,
			Key:    personKey(msg.Place, id),
		})
	}
	out.text = w.Removed(language, g.displayedPerson(e), role == "")
	if role != "" { // the configured role remains
		out.text += " " + w.PersonConfigured(language, g.configuredPerson(id, role), key)
		return out, nil
	}
	return out, d.endWork(ctx, msg.Place, e, &out.effect)
}

// endWork stops the running turns of a person or group. Waiting ones are refused when they are resumed.
func (d *Admissions) endWork(ctx context.Context, place bot.Place, e Entry, effect *turn.Effect) error {
	lanes, err := d.lanes.Lanes(ctx, place.Channel, place.Bot, mostLanes)
	if err != nil {
		return err
	}
	for i := range lanes {
		lane := &lanes[i]
		theirs := lane.Caller == place.Channel+":"+e.ID
		if e.Group {
			theirs = lane.Session.Chat() == e.ID
		}
		if lane.Turn == "" || !theirs {
			continue
		}
		effect.Change.Lanes = append(effect.Change.Lanes, bot.LaneUpdate{Session: lane.Session, Stop: &lane.Turn})
		effect.Stop = append(effect.Stop, lane.Session)
	}
	return nil
}

// displayedPerson converts an entry for display.
func (g *Guard) displayedPerson(e Entry) texts.Person {
	return texts.Person{
		ID:     e.ID,
		Group:  e.Group,
		Name:   e.Name,
		Shared: g.isShared(e.ID, e.Name),
		Role:   string(e.Role),
		By:     e.ByName,
		ByCode: e.By == "",
		At:     e.At,
	}
}
