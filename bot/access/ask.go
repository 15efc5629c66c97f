package access

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/render"
	"github.com/zephbot/zephbot/bot/turn"
)

// strangerBucket holds who or what admins were told of: the key is that of a person, the value a stranger. It is kept
// for as long as a button to admit them makes sense. toldBucket holds, by bot, a name of the last
// time: each is computed from it, so that of two at once, in any process, the second is computed again.
const (
	strangerBucket = "stranger"
	strangerFor    = 30 * 24 * time.Hour
	toldBucket     = "stranger_told"
)

// Limits of what admins are told of those who are not admitted: so many a day, and each of them once in that time.
const (
	MostStrangers = 20
	strangerOnce  = 24 * time.Hour
)

// The buttons below what admins are told: PREFIX:VERB:ID, of a person or of a group.
const (
	pressAdmit   = "a"
	pressDecline = "d"
	pressBlock   = "b"
	pressGroup   = "g" // admits a group, below messages of earlier versions
)

// invitationFor is how long a group that was just joined is not told that it is not admitted while there are links for
// groups: whoever adds the bot by one sends its code right after.
const invitationFor = 10 * time.Second

// greetingFor is how long a card waits for an admin who was not greeted: if their first words are on the way, they are
// greeted before they are asked.
const greetingFor = 2 * time.Second

// stranger is somebody, or a group, that admins were told of.
type stranger struct {
	Name     string    `json:"name,omitempty"`
	Username string    `json:"username,omitempty"`
	Language string    `json:"language,omitempty"`
	At       time.Time `json:"at"`
	Declined bool      `json:"declined,omitempty"` // admins are not asked again while it is kept
	// The admin who declined last, by caller id and name, and when.
	DeclinedBy   string    `json:"declined_by,omitempty"`
	DeclinedName string    `json:"declined_name,omitempty"`
	DeclinedAt   time.Time `json:"declined_at,omitzero"`
	// Where a person has asked, if only in a group, and by which message: there they hear what is decided.
	Where   *bot.Place `json:"where,omitempty"`
	Message string     `json:"message,omitempty"`
	said    string     // for the admins
	Title   string     `json:"title,omitempty"` // of the group in which a person asks
	Asker   asker      `json:"asker,omitzero"`  // of a group
	Waits   bool       `json:"waits,omitempty"` // they asked when there was no admin
	Cards   []string   `json:"cards,omitempty"` // keys of the rows that ask admins and await an answer
	raw     string     // as it is stored
}

// asker is who wants the bot in a group.
type asker struct {
	ID     string `json:"by,omitempty"`
	Name   string `json:"by_name,omitempty"`
	Joined bool   `json:"joined,omitempty"` // they have just added the bot
}

// fact returns a stranger as it is stored.
func (s *stranger) fact(place bot.Place, id string) (bot.Fact, error) {
	value, err := json.Marshal(s)
	if err != nil {
		return bot.Fact{}, fmt.Errorf("stranger: %w", err)
	}
	return bot.Fact{
		Bucket: strangerBucket, Key: personKey(place, id), Value: string(value), Expires: s.At.Add(strangerFor),
		Was: &s.raw,
	}, nil
}

// refuseStranger refuses a person who is not admitted. In private, and where they want something in a group, they are told
// so, and the admins may admit them.
func (g *Guard) refuseStranger(ctx context.Context, msg *bot.Message) (turn.Verdict, error) {
	v := turn.Verdict{Reason: "person not in telegram.allowed_users"}
	var err error
	switch {
	case msg.Kind == bot.Press:
		v.Reply = g.words.StrangerRefused(msg.Language)
	case !msg.Place.Group, wantsInGroup(msg):
		err = g.askForStranger(ctx, msg, &v)
	}
	return v, err
}

// wantsInGroup reports whether a message in a group is meant for this bot and no other: a command without a name may be
// one of another bot.
func wantsInGroup(msg *bot.Message) bool {
	word, _, _ := strings.Cut(msg.Text, " ")
	return msg.Kind == bot.Text && msg.Addressed && msg.Place.Ordinary() &&
		(msg.Command == "" || strings.Contains(word, "@"))
}

// askForStranger adds to the refusal of a person that admins are asked to admit them, and keeps what they have written
// until then. Whoever is blocked is not answered, and a group hears only that admins are asked.
func (g *Guard) askForStranger(ctx context.Context, msg *bot.Message, v *turn.Verdict) error {
	e, known, err := g.personEntry(ctx, msg.Place, msg.Person)
	if err != nil {
		return err
	}
	e.ID = msg.Person
	if known && e.Role == Blocked {
		v.Reason = "blocked by an admin"
		return nil
	}
	v.Once = "stranger/" + msg.Caller
	s := stranger{Name: msg.Name, Username: msg.Username, Language: msg.Language}
	if msg.Command == "" {
		s.said = msg.Text
	}
	if msg.Place.Group {
		v.Once = "stranger/" + msg.Place.ChatKey() + "/" + msg.Caller
		s.Where, s.Message, s.Title = &msg.Place, msg.Message, msg.Title
	}
	var asked asking
	if v.Change, asked, err = g.tellAdmins(ctx, msg.Place, msg.Person, s); err != nil {
		return err
	}
	switch {
	case msg.Place.Group && asked != adminsAsked:
	case asked == nobodyToAsk:
		if err := g.keepUnasked(ctx, msg, &v.Change); err != nil {
			return err
		}
		return g.answerBeforeAdmin(ctx, msg, v)
	case asked == notAsked:
		v.Reply = g.words.StrangerRefused(msg.Language)
	default:
		v.Reply = g.words.StrangerAsked(msg.Language, g.adminNames())
		said, err := g.keepSaid(ctx, msg)
		if err != nil {
			return err
		}
		if said != nil && !known { // refused once they are admitted: nobody would look at it then
			v.Change.Facts = append(v.Change.Facts, *said, absentEntry(msg.Place, Entry{ID: e.ID}))
		}
	}
	return nil
}

// keepUnasked adds to a Change what a person has written about whom the first admin is asked.
func (g *Guard) keepUnasked(ctx context.Context, msg *bot.Message, change *bot.Change) error {
	if len(change.Facts) == 0 { // not noted by this message
		s, err := g.strangerOf(ctx, msg.Place, msg.Person)
		if err != nil || s == nil || !s.Waits {
			return err
		}
	}
	said, err := g.keepSaid(ctx, msg)
	if err == nil && said != nil {
		change.Facts = append(change.Facts, *said, absentEntry(msg.Place, Entry{ID: msg.Person}))
	}
	return err
}

// answerBeforeAdmin adds to the refusal of a person where there is no admin how they become one, or are put on the list.
func (g *Guard) answerBeforeAdmin(ctx context.Context, msg *bot.Message, v *turn.Verdict) error {
	codes, err := g.validCodes(ctx, msg.Place)
	if err != nil || len(codes) == 0 {
		v.Reply = g.words.Stranger(msg.Language, msg.Person)
		return err
	}
	tries, err := g.store.FactsOf(ctx, tryBucket, personKey(msg.Place, msg.Person)+"/", g.now())
	if err != nil {
		return fmt.Errorf("read who has tried codes: %w", err)
	}
	if v.Reply = g.words.StrangerCode(msg.Language, msg.Person); len(tries) >= codeTries {
		v.Reply, v.Once = g.words.CodeTooOften(msg.Language), g.lockedOnce(msg)
	}
	return nil
}

// asking is whether admins are asked about a stranger.
type asking int

const (
	notAsked    asking = iota // they have declined, or were told of too many today
	nobodyToAsk               // there is no admin
	adminsAsked               // now, or within strangerOnce
)

// refuseGroup refuses whatever comes from a group that is not admitted. When the bot joins it, and when somebody in it wants
// something, the group is told so, and the admins may admit it. A group that is blocked is not answered.
func (g *Guard) refuseGroup(ctx context.Context, msg *bot.Message) (turn.Verdict, error) {
	v := turn.Verdict{Reason: "group not in telegram.allowed_chats"}
	joined := msg.Kind == bot.Member
	wants := msg.Kind == bot.Text && msg.Addressed && msg.Place.Ordinary() && !msg.FromBot
	if !joined && !wants {
		return v, nil
	}
	e, known, err := g.groupEntry(ctx, msg.Place, msg.Place.Chat)
	if err != nil {
		return v, err
	}
	if known && e.Role == Blocked {
		v.Reason = "blocked by an admin"
		return v, nil
	}
	if joined {
		if v.Wait, err = g.awaitsInvitation(ctx, msg.Place); err != nil {
			return v, err
		}
	}
	v.Once = "unlisted/" + msg.Place.ChatKey()
	s := stranger{
		Name: msg.Title, Language: msg.Language, Asker: asker{ID: msg.Person, Name: g.calledSender(msg), Joined: joined},
	}
	var asked asking
	if v.Change, asked, err = g.tellAdmins(ctx, msg.Place, msg.Place.Chat, s); err != nil {
		return v, err
	}
	switch asked {
	case nobodyToAsk:
		if v.Reply, err = g.answerUnclaimed(ctx, msg); err != nil {
			return v, err
		}
	case notAsked:
		v.Reply = g.words.GroupRefused(msg.Language)
	case adminsAsked:
		v.Once = "asked/" + msg.Place.ChatKey() // heard also by a group that was told before that there is no admin
		v.Reply = g.words.GroupAsked(msg.Language, g.adminNames())
		if msg.Name != "" && slices.Contains(g.Operators(), msg.Person) {
			v.Reply = g.words.GroupAskedYou(msg.Language, g.calledSender(msg))
		}
	}
	gone, err := g.isGoneInvitation(ctx, msg)
	if err != nil {
		return v, err
	}
	if gone {
		v.Once, v.Reply = "", g.words.InvitationGone(msg.Language)+" "+v.Reply
	}
	if asked == adminsAsked && wants && msg.Caller != "" {
		if err = g.keepForGroup(ctx, msg, &v.Change); err != nil {
			return v, err
		}
	}
	// refused once the group is admitted: nobody may read then that it is not
	v.Change.Facts = append(v.Change.Facts, absentEntry(msg.Place, Entry{ID: msg.Place.Chat, Group: true}))
	return v, nil
}

// answerUnclaimed tells a group that there is no admin to ask. Its id is of use only where nobody can become one by a code.
func (g *Guard) answerUnclaimed(ctx context.Context, msg *bot.Message) (string, error) {
	codes, err := g.validCodes(ctx, msg.Place)
	if err != nil || len(codes) == 0 {
		return g.words.Unlisted(msg.Language, msg.Place.Chat), err
	}
	return g.words.Unclaimed(msg.Language), nil
}

// keepForGroup adds to a Change what somebody wants in a group that is not admitted yet: once it is, they are answered, or
// admins are asked about them. Of those who are not on the list only so much is kept.
func (g *Guard) keepForGroup(ctx context.Context, msg *bot.Message, change *bot.Change) error {
	role, err := g.roleOf(ctx, msg)
	if err != nil {
		return err
	}
	if role == "" {
		kept, err := g.store.FactsOf(ctx, saidBucket, personKey(msg.Place, ""), g.now())
		if err != nil {
			return fmt.Errorf("read what strangers have written: %w", err)
		}
		if len(kept) >= MostStrangers*mostSaid {
			return nil
		}
	}
	said, err := g.keepSaid(ctx, msg)
	if err == nil && said != nil {
		change.Facts = append(change.Facts, *said)
	}
	return err
}

// isGoneInvitation reports whether a message has the code of a link that is valid no more.
func (g *Guard) isGoneInvitation(ctx context.Context, msg *bot.Message) (bool, error) {
	code := strings.TrimSpace(msg.Args)
	if msg.Command != "start" || !IsCode(code) {
		return false, nil
	}
	i, err := g.readInvitation(ctx, msg.Place, CodeHash(code))
	if err != nil || i != nil { // one for a person
		return false, err
	}
	codes, err := g.validCodes(ctx, msg.Place) // one of them is not tried in a group
	return len(codes) == 0, err
}

// awaitsInvitation returns how long it is left open whether a group is admitted that the bot has just joined.
func (g *Guard) awaitsInvitation(ctx context.Context, place bot.Place) (time.Duration, error) {
	list, err := g.listInvitations(ctx, place)
	if err == nil && slices.ContainsFunc(list, func(i invitation) bool { return i.Group }) {
		return invitationFor, nil
	}
	return 0, err
}

// tellAdmins has the admins told of a person or group that is not admitted: who it is and their first words, once in
// strangerOnce, and of no more than MostStrangers in that time. The Change is refused with ErrConflict if they were told
// of somebody else meanwhile.
func (g *Guard) tellAdmins(
	ctx context.Context, place bot.Place, id string, s stranger,
) (bot.Change, asking, error) {
	if g.opts.Private == nil {
		return bot.Change{}, nobodyToAsk, nil
	}
	now := g.now()
	key, all := personKey(place, id), personKey(place, "")
	this, err := g.nextTold(ctx, place) // before the lists that are computed with
	if err != nil {
		return bot.Change{}, notAsked, err
	}
	admins, err := g.allAdmins(ctx, place)
	if err != nil || len(admins) == 0 {
		return g.noteWaiting(ctx, place, id, s, this), nobodyToAsk, err
	}
	if slices.ContainsFunc(admins, func(admin string) bool { return g.nameOf(admin) == "" }) {
		// One who has just written to another process: the card is in their language, and the stranger is told whom
		// it asks.
		if err := g.Follow(ctx); err != nil {
			return bot.Change{}, notAsked, err
		}
	}
	before, err := g.listStrangers(ctx, key)
	if err != nil {
		return bot.Change{}, notAsked, err
	}
	switch last, is := before[key]; {
	case last.Waits: // nobody was asked yet
	case is && last.Declined:
		return bot.Change{}, notAsked, nil
	case is && now.Sub(last.At) < strangerOnce && last.Where != nil && s.Where == nil:
		last.Where, last.Message = nil, "" // they write in private now, and hear there what is decided
		f, err := last.fact(place, id)
		return bot.Change{Facts: []bot.Fact{f}}, adminsAsked, err
	case is && now.Sub(last.At) < strangerOnce:
		return bot.Change{}, adminsAsked, nil
	}
	if before, err = g.listStrangers(ctx, all); err != nil {
		return bot.Change{}, notAsked, err
	}
	today := 0
	for _, other := range before {
		if now.Sub(other.At) < strangerOnce && !other.Waits {
			today++
		}
	}
	if today >= MostStrangers {
		return bot.Change{}, notAsked, nil
	}
	s.At, s.Cards, s.raw = now.UTC(), before[key].Cards, before[key].raw
	change := bot.Change{Facts: []bot.Fact{this}}
	for _, admin := range admins {
		row := g.askingRow(&s, id, admin, g.languageOf(admin), this.Value)
		greeted, err := g.store.Fact(ctx, greetedBucket, personKey(place, admin), now)
		if err != nil {
			return bot.Change{}, notAsked, fmt.Errorf("read when an admin was greeted: %w", err)
		}
		if greeted == "" {
			row.NotBefore = now.Add(greetingFor)
		}
		change.Send = append(change.Send, row)
	}
	asks, err := s.fact(place, id)
	change.Facts = append(change.Facts, asks)
	return change, adminsAsked, err
}

// nextTold returns the fact that goes with a Change that is computed from whom admins were told of. It is read before
// that, so that the Change is refused with ErrConflict if another one comes in between.
func (g *Guard) nextTold(ctx context.Context, place bot.Place) (bot.Fact, error) {
	f := bot.Fact{
		Bucket: toldBucket, Key: personKey(place, ""), Value: rand.Text(), Expires: g.now().Add(strangerFor),
	}
	was, err := g.store.Fact(ctx, f.Bucket, f.Key, g.now())
	if err != nil {
		return f, fmt.Errorf("read of whom admins were told last: %w", err)
	}
	f.Was = &was
	return f, nil
}

// askingRow returns the card that asks an admin about a person or group, and notes it in s. this names the occasion.
func (g *Guard) askingRow(s *stranger, id, admin, language, this string) bot.Row {
	content := g.strangerCard(language, id, *s, "")
	if isGroupID(id) {
		content = g.groupCard(language, id, *s, admin)
	}
	to := g.opts.Private(admin)
	row := bot.Row{
		Session: to.SessionKey(""), Place: to, Purpose: bot.Reply, Content: content,
		Key: fmt.Sprintf("asks/%s/%s/%s", this, id, admin),
	}
	s.noteCard(row.Key)
	return row
}

// strangerCard asks an admin about a person; head "" = they wait for an answer. What the person has chosen, name and words,
// is a quotation, so that it cannot pass for something that the bot says.
func (g *Guard) strangerCard(language, id string, s stranger, head string) bot.Content {
	asks, who, said, foot := g.words.StrangerAsks(language, s.Name, s.Username, s.said, id, s.Title)
	head = cmp.Or(head, asks) + "\n"
	chosen := who
	if said != "" {
		chosen += "\n" + said
	}
	content := bot.Content{Language: language, Text: head + chosen + "\n" + foot}
	quote := render.Entity{Type: "blockquote", Offset: render.Length(head), Length: render.Length(chosen)}
	content.Entities = append([]render.Entity{quote}, render.Inert(content.Text)...)
	slices.SortStableFunc(content.Entities, func(a, b render.Entity) int { return a.Offset - b.Offset })
	content.Buttons = g.strangerButtons(language, id)
	return content
}

// waits reports whether admins were asked, or will be, and have not answered.
func (s *stranger) waits() bool { return !s.Declined && (s.Waits || len(s.Cards) > 0) }

// cardAgain is the card about a person or group for an admin who asks for it: whether they wait, or who declined them.
func (g *Guard) cardAgain(msg *bot.Message, id string, s *stranger) bot.Content {
	w, language := g.words.At(g.opts.Private(msg.Person)), msg.Language
	switch {
	case isGroupID(id):
		return g.groupCard(language, id, *s, msg.Person)
	case s.waits():
		return g.strangerCard(language, id, *s, "")
	case !s.Declined || s.DeclinedAt.IsZero():
		return g.strangerCard(language, id, *s, w.StrangerNotAsking(language))
	case s.DeclinedBy == msg.Caller:
		return g.strangerCard(language, id, *s, w.StrangerDeclined(language, "", s.DeclinedAt))
	}
	by := cmp.Or(s.DeclinedName, g.idOf(s.DeclinedBy))
	return g.strangerCard(language, id, *s, w.StrangerDeclined(language, by, s.DeclinedAt))
}

// strangerButtons decide about a person or group.
func (g *Guard) strangerButtons(language, id string) [][]bot.Button {
	button := func(label, verb, style string) bot.Button {
		return bot.Button{Label: label, Data: Prefix + ":" + verb + ":" + id, Style: style}
	}
	admit, decline, block := g.words.StrangerButtons(language)
	return [][]bot.Button{{
		button(admit, pressAdmit, "success"), button(decline, pressDecline, ""), button(block, pressBlock, "danger"),
	}}
}

// noteWaiting returns the Change that remembers a group, or a person in private, that asked when there was no admin, so that
// the first one hears of it. What cannot be read is not remembered: they ask again.
func (g *Guard) noteWaiting(
	ctx context.Context, place bot.Place, id string, s stranger, this bot.Fact,
) bot.Change {
	list, err := g.listStrangers(ctx, personKey(place, ""))
	if _, is := list[personKey(place, id)]; err != nil || is || s.Where != nil || len(list) >= MostStrangers {
		return bot.Change{}
	}
	s.At, s.Waits = g.now().UTC(), true
	f, err := s.fact(place, id)
	if err != nil {
		return bot.Change{}
	}
	return bot.Change{Facts: []bot.Fact{f, this}}
}

// askWaiting adds to a Change that admins are asked about those who asked when there was none, who hear it: names are what
// the admins are called, and language what an admin reads.
func (g *Guard) askWaiting(
	ctx context.Context, place bot.Place, admins, names []string, language func(admin string) string, change *bot.Change,
) error {
	if g.opts.Private == nil {
		return nil
	}
	this, err := g.nextTold(ctx, place)
	if err != nil {
		return err
	}
	all := personKey(place, "")
	list, err := g.listStrangers(ctx, all)
	if err != nil {
		return err
	}
	change.Facts = append(change.Facts, this)
	for _, key := range slices.Sorted(maps.Keys(list)) {
		id, s := strings.TrimPrefix(key, all), list[key]
		if !s.Waits {
			continue
		}
		if slices.Contains(admins, id) { // they have become one
			change.Facts = append(change.Facts, bot.Fact{Bucket: strangerBucket, Key: key, Was: &s.raw})
			if _, err := g.releaseSaid(ctx, place, id, true, change); err != nil {
				return err
			}
			continue
		}
		decided, err := g.decidedText(ctx, place, id, s.Name)
		if err != nil {
			return err
		}
		if decided != nil {
			continue
		}
		to, text := groupPlace(place, id), g.words.GroupAsked(s.Language, names)
		if !isGroupID(id) {
			to, text = g.opts.Private(id), g.words.StrangerAsked(s.Language, names)
			if s.said, err = g.firstSaid(ctx, place, id); err != nil {
				return err
			}
		}
		s.At, s.Waits = g.now().UTC(), false
		for _, admin := range admins {
			change.Send = append(change.Send, g.askingRow(&s, id, admin, language(admin), this.Value))
		}
		f, err := s.fact(place, id)
		if err != nil {
			return err
		}
		change.Facts = append(change.Facts, f)
		change.Send = append(change.Send, bot.Row{
			Session: to.SessionKey(""), Place: to, Purpose: bot.Reply, Key: "asked/" + this.Value + "/" + id,
			Content: bot.Content{Text: text, Language: s.Language},
		})
	}
	return nil
}

// groupCard asks an admin about a group.
func (g *Guard) groupCard(language, id string, s stranger, admin string) bot.Content {
	text := g.words.GroupAsks(language, s.Asker.Name, s.Name, id)
	if s.Asker.ID == admin && s.Name != "" {
		text = g.words.GroupAsksYou(language, s.Name, s.Asker.Joined)
	}
	return bot.Content{
		Text: text, Language: language, Entities: render.Inert(text), Buttons: g.strangerButtons(language, id),
	}
}

// listStrangers lists whom admins were told of, by key.
func (g *Guard) listStrangers(ctx context.Context, prefix string) (map[string]stranger, error) {
	facts, err := g.store.FactsOf(ctx, strangerBucket, prefix, g.now())
	if err != nil {
		return nil, fmt.Errorf("read whom admins were told of: %w", err)
	}
	list := make(map[string]stranger, len(facts))
	for _, f := range facts {
		var s stranger
		if err := json.Unmarshal([]byte(f.Value), &s); err != nil {
			return nil, fmt.Errorf("whom admins were told of, %s: %w", f.Key, err)
		}
		s.raw = f.Value
		list[f.Key] = s
	}
	return list, nil
}

// pinName is what goes with binding a configured name to the person who uses it first: the admins are told.
func (g *Guard) pinName(ctx context.Context, msg *bot.Message, name string) (bot.Change, error) {
	if g.opts.Private == nil {
		return bot.Change{}, nil
	}
	admins, err := g.allAdmins(ctx, msg.Place)
	if err != nil {
		return bot.Change{}, err
	}
	var change bot.Change
	for _, admin := range admins {
		to := g.opts.Private(admin)
		text := g.words.At(to).NamePinned("", name, msg.Name, msg.Person)
		change.Send = append(change.Send, bot.Row{
			Session: to.SessionKey(""),
			Place:   to,
			Purpose: bot.Reply,
			Key:     "pinned/" + g.nameKey(name) + "/" + msg.Person + "/" + admin,
			Content: bot.Content{Text: text, Entities: render.Inert(text)},
		})
	}
	return change, nil
}
