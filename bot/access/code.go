package access

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/turn"
)

// The buckets of the first admin's code: its hash by the process that has shown it, who has used it, and wrong tries.
// greetedBucket holds when an admin was greeted as such.
const (
	greetedBucket = "admin_greeted"
	codeBucket    = "first_admin"
	usedBucket    = "first_admin_used"
	tryBucket     = "first_admin_try"
)

// codeLength is the length of a code, in letters and digits of base32. They have 80 bits: too many to guess, few enough
// to type, and far below the 64 characters that a link can bring (Bot API, deep linking).
const codeLength = 16

// How often a person may try a code within an hour, and for how long it is remembered who has used one.
const (
	codeTries = 5
	tryFor    = time.Hour
	usedFor   = 24 * time.Hour
	// greetedFor is how long it is remembered that an admin was greeted.
	greetedFor = 90 * 24 * time.Hour
)

// codeForm is the form of every code: those of setup, of the start of the service and of invitations. Whoever types one
// need not mind capitals.
var codeForm = regexp.MustCompile(`^[A-Za-z2-7]{16}$`)

// NewCode returns a code with 80 random bits, for a link (Link) or to be typed.
func NewCode() string { return rand.Text()[:codeLength] }

// IsCode reports whether a word has the form of a code.
func IsCode(word string) bool { return codeForm.MatchString(word) }

// Link returns the link by which a person sends a code to the bot of a username.
func Link(username, code string) string { return "https://t.me/" + username + "?start=" + code }

// GroupLink returns the link by which a person adds the bot to a group and sends a code there.
func GroupLink(username, code string) string {
	return "https://t.me/" + username + "?startgroup=" + code
}

// Redeems reports whether a text is the command that redeems a code, as a link to the bot or a person writes it.
func Redeems(text, code string) bool {
	word, rest, _ := strings.Cut(strings.TrimSpace(text), " ")
	if name, _, _ := strings.Cut(word, "@"); !strings.EqualFold(name, "/start") {
		return false
	}
	if code == "" {
		return false
	}
	return subtle.ConstantTimeCompare([]byte(CodeHash(strings.TrimSpace(rest))), []byte(CodeHash(code))) == 1
}

// Offer makes the code with which somebody becomes the first admin; "" when there is an admin. The code is
// stored as a hash only, and lasts until it is used or the process owner ends or starts again. shown is the
// CodeHash of a code that somebody was shown before the process began, and that is valid as well; "" = there is none.
func (g *Guard) Offer(ctx context.Context, owner, shown string) (code string, err error) {
	place := bot.Place{Channel: g.opts.Channel, Bot: g.opts.Bot}
	admins, err := g.allAdmins(ctx, place)
	if err != nil {
		return "", err
	}
	codes, err := g.store.FactsOf(ctx, codeBucket, personKey(place, ""), g.now())
	if err != nil {
		return "", fmt.Errorf("read codes: %w", err)
	}
	lives, err := g.livingProcesses(ctx)
	if err != nil {
		return "", err
	}
	var change bot.Change
	for _, f := range codes {
		if by := f.Key[strings.LastIndexByte(f.Key, '/')+1:]; len(admins) > 0 || by == owner || !lives(by) {
			change.Facts = append(change.Facts, bot.Fact{Bucket: f.Bucket, Key: f.Key})
		}
	}
	if len(admins) == 0 {
		code = NewCode()
		change.Facts = append(change.Facts, bot.Fact{
			Bucket: codeBucket,
			Key:    personKey(place, owner),
			Value:  CodeHash(code),
		})
		if shown != "" {
			change.Facts = append(change.Facts, bot.Fact{
				Bucket: codeBucket,
				Key:    personKey(place, "shown/"+owner),
				Value:  shown,
			})
		}
	}
	if len(change.Facts) == 0 {
		return code, nil
	}
	if _, err := g.store.Apply(ctx, &change); err != nil {
		return "", fmt.Errorf("store the code of the first admin: %w", err)
	}
	return code, nil
}

// livingProcesses returns which processes run now.
func (g *Guard) livingProcesses(ctx context.Context) (func(owner string) bool, error) {
	if g.opts.Living == nil {
		return func(string) bool { return true }, nil
	}
	lives, err := g.opts.Living(ctx)
	if err != nil {
		return nil, fmt.Errorf("read which processes run: %w", err)
	}
	return lives, nil
}

// CodeHash is what is stored of a code. Case does not matter: people type it.
func CodeHash(code string) string {
	sum := sha256.Sum256([]byte(strings.ToUpper(code)))
	return hex.EncodeToString(sum[:])
}

// redeemCode makes the sender of /start CODE the first admin. tried is false when no code is valid: the
// message is one like any other then.
func (g *Guard) redeemCode(ctx context.Context, msg *bot.Message, code string) (v turn.Verdict, tried bool, err error) {
	codes, err := g.validCodes(ctx, msg.Place)
	if err != nil || len(codes) == 0 {
		return turn.Verdict{}, false, err
	}
	left, err := g.takeSlot(ctx, tryBucket, personKey(msg.Place, msg.Person)+"/", codeTries, msg.ID, tryFor)
	if err != nil {
		return turn.Verdict{}, true, err
	}
	if left < 0 {
		return turn.Verdict{
			Reason: "too many wrong codes",
			Reply:  g.words.CodeTooOften(msg.Language),
			Once:   g.lockedOnce(msg),
		}, true, nil
	}
	right := 0
	for _, f := range codes {
		right |= subtle.ConstantTimeCompare([]byte(f.Value), []byte(CodeHash(code)))
	}
	if right == 0 {
		v = turn.Verdict{Reason: "wrong code", Reply: g.words.CodeWrong(msg.Language, left)}
		if left == 0 {
			v.Reply = g.words.CodeTooOften(msg.Language)
		}
		return v, true, nil
	}
	mine, err := g.takeCode(ctx, msg, CodeHash(code))
	if err != nil || !mine {
		return turn.Verdict{Reason: "the code was used", Reply: g.words.CodeWrong(msg.Language, left)}, true, err
	}
	if err = g.storeFirstAdmin(ctx, msg, codes); err != nil {
		return turn.Verdict{}, true, err
	}
	g.noteName(ctx, msg) // the next card is in their language
	return turn.Verdict{OK: true, Admin: true, Allowed: g.toolsOf(Admin)}, true, nil
}

// lockedOnce returns the key by which a person hears once a minute that no code of theirs is taken now.
func (g *Guard) lockedOnce(msg *bot.Message) string {
	return "code/" + msg.Caller + "/" + g.now().UTC().Format("200601021504")
}

// validCodes are those that are valid.
func (g *Guard) validCodes(ctx context.Context, place bot.Place) ([]bot.Fact, error) {
	list, err := g.store.FactsOf(ctx, codeBucket, personKey(place, ""), g.now())
	if err != nil {
		return nil, fmt.Errorf("read codes: %w", err)
	}
	if len(list) == 0 {
		return nil, nil
	}
	lives, err := g.livingProcesses(ctx)
	if err != nil {
		return nil, err
	}
	var valid []bot.Fact
	for _, f := range list {
		if lives(f.Key[strings.LastIndexByte(f.Key, '/')+1:]) {
			valid = append(valid, f)
		}
	}
	return valid, nil
}

// takeCode reports whether the person is the one who uses the code: only one is.
func (g *Guard) takeCode(ctx context.Context, msg *bot.Message, hash string) (bool, error) {
	f := bot.Fact{Bucket: usedBucket, Key: personKey(msg.Place, hash), Value: msg.Person, Expires: g.now().Add(usedFor)}
	applied, err := g.store.Apply(ctx, &bot.Change{FactsIf: []bot.Fact{f}})
	if err != nil || applied.Set[0] {
		return err == nil, err
	}
	by, err := g.store.Fact(ctx, f.Bucket, f.Key, g.now())
	return by == msg.Person, err // their own, when the process died before it could make them admin
}

// storeFirstAdmin stores the first admin and ends all codes.
func (g *Guard) storeFirstAdmin(ctx context.Context, msg *bot.Message, codes []bot.Fact) error {
	e := Entry{ID: msg.Person, Role: Admin, Name: msg.Name, At: g.now().UTC()}
	f, err := e.fact(msg.Place)
	if err != nil {
		return err
	}
	change := bot.Change{Facts: []bot.Fact{f}}
	for _, code := range codes {
		change.Facts = append(change.Facts, bot.Fact{Bucket: code.Bucket, Key: code.Key})
	}
	change.Facts = append(change.Facts, g.auditLine(Event{
		Verb:  "admit",
		Entry: e,
		By:    msg.Caller,
		Place: msg.Place,
		ID:    msg.ID,
	})...)
	for range redeemTries { // somebody may ask at the same moment
		whole := change
		told, unread := g.nextTold(ctx, msg.Place)
		if unread != nil {
			return unread
		}
		whole.Facts = append(slices.Clone(change.Facts), told) // whoever reads that nobody is admin is looked at again
		if _, err = g.store.Apply(ctx, &whole); !errors.Is(err, bot.ErrConflict) {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("store the first admin: %w", err)
	}
	if g.opts.Record != nil {
		g.opts.Record(ctx)
	}
	return g.Follow(ctx)
}

// auditLine is what the record says of an event.
func (g *Guard) auditLine(e Event) []bot.Fact {
	if g.opts.Line == nil {
		return nil
	}
	return g.opts.Line(e)
}

// Welcome answers /start of a person who has followed a link with a code that made them what they are, or that they do not
// need, and of an admin who is new; ok is false if it is none of these. An admin of the configuration has followed the
// link of setup, which has stored nothing. An admin is greeted once for all that they wrote before.
func (g *Guard) Welcome(ctx context.Context, call *turn.Call) (e turn.Effect, ok bool, err error) {
	msg := call.Message
	code := strings.TrimSpace(msg.Args)
	welcome := func(text string) (turn.Effect, bool, error) {
		return call.ReplyText(g.words.Start(msg.Language, msg.Name) + "\n\n" + text), true, nil
	}
	used, err := g.invitedBy(ctx, msg, code)
	switch {
	case err != nil:
		return e, false, err
	case used == usedForGroup:
		return welcome(g.greetGroup(msg.Language, msg.Place))
	case used != "":
		return welcome(g.words.InvitedPerson(msg.Language))
	case msg.Place.Group:
		return e, false, nil
	}
	i, err := g.readInvitation(ctx, msg.Place, CodeHash(code))
	switch {
	case err != nil:
		return e, false, err
	case i != nil && i.Group:
		return welcome(g.words.InvitationForGroup(msg.Language))
	case i != nil:
		return welcome(g.words.InvitationUnneeded(msg.Language))
	case !call.Admin && IsCode(code):
		return welcome(g.words.InvitationGone(msg.Language))
	case !call.Admin:
		return e, false, nil
	}
	return g.welcomeAdmin(ctx, call, code)
}

// welcomeAdmin greets an admin who is new, or who follows the link of setup, and asks them whatever they were not asked
// because they had not written to the bot yet.
func (g *Guard) welcomeAdmin(ctx context.Context, call *turn.Call, code string) (e turn.Effect, ok bool, err error) {
	msg := call.Message
	greeted := bot.Fact{Bucket: greetedBucket, Key: personKey(msg.Place, msg.Person), Expires: g.now().Add(greetedFor)}
	was, err := g.store.Fact(ctx, greeted.Bucket, greeted.Key, g.now())
	if err != nil {
		return e, false, fmt.Errorf("read when an admin was greeted: %w", err)
	}
	if before, unreadable := time.Parse(time.RFC3339, was); unreadable == nil && !msg.At.IsZero() && !msg.At.After(before) {
		return e, true, nil // the greeting was the answer to this too
	}
	if was != "" && !IsCode(code) {
		return e, false, nil
	}
	greeted.Value, greeted.Was = g.now().UTC().Format(time.RFC3339), &was
	e = call.ReplyText(g.words.Start(msg.Language, msg.Name) + "\n\n" + g.words.StartAdmin(msg.Language))
	e.Change.Facts = append(e.Change.Facts, greeted)
	if err = g.askMissed(ctx, msg, &e.Change); err != nil {
		return e, true, err
	}
	names, language := []string{g.calledSender(msg)}, func(admin string) string {
		if admin == msg.Person {
			return msg.Language
		}
		return g.languageOf(admin)
	}
	admins, err := g.allAdmins(ctx, msg.Place)
	if err != nil {
		return e, true, err
	}
	return e, true, g.askWaiting(ctx, msg.Place, admins, names, language, &e.Change)
}
