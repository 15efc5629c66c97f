// Package talk keeps a group's talk, where an admin has switched that on: whoever asks the
// bot later need not repeat what was said before. It is bounded by number, bytes and hours, and a turn reads what its
// conversation has not read yet, as foreign text.
package talk

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/agent/prompt"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/facts"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/bot/turn"
)

// Options say how much of the talk of a group or topic is kept.
type Options struct {
	Messages int
	Bytes    int
	For      time.Duration
}

// Deps are the dependencies of a Keeper. All but On and LeavesOut are needed.
type Deps struct {
	Store facts.Store
	// On reports whether the talk of a place is kept; nil = of none. It reads nothing.
	On func(place bot.Place) bool
	// LeavesOut reports whether nothing of what a person says is to be kept; nil = of nobody. It reads nothing.
	LeavesOut func(caller string) bool
	// Follow has On and LeavesOut know what other processes have stored.
	Follow func(ctx context.Context) error
	Redact func(text string) string // removes credentials
	Zone   func() *time.Location    // of the times that models read
	Words  texts.Words
	// Hidden: the channel shows the bot what is meant for it alone, unless it is an admin of the group.
	Hidden bool
	Now    func() time.Time
	Log    zerolog.Logger
}

// Keeper keeps the talk of groups. Safe for concurrent use.
type Keeper struct {
	deps Deps
	opts Options

	mu sync.Mutex
	// since is how much this process has kept in each place since it last looked how much there is: nil = it has not
	// looked yet.
	since map[string]*amount
}

// amount is so much talk.
type amount struct{ messages, bytes int }

// New returns a Keeper.
func New(deps Deps, opts Options) *Keeper {
	if deps.On == nil {
		deps.On = func(bot.Place) bool { return false }
	}
	if deps.LeavesOut == nil {
		deps.LeavesOut = func(string) bool { return false }
	}
	return &Keeper{deps: deps, opts: opts, since: map[string]*amount{}}
}

// said is what a person said, as it is stored.
type said struct {
	Caller string `json:"caller"`
	Name   string `json:"name,omitempty"`
	Text   string `json:"text"`
	At     int64  `json:"at"` // Unix time
}

// mostSaid bounds what is kept of one message, in bytes.
const mostSaid = 1000

// Follow implements dispatch.Talk.
func (k *Keeper) Follow(ctx context.Context) error { return k.deps.Follow(ctx) }

// Wants implements dispatch.Talk. Nothing is kept of people whom nobody knows or who want that, of other bots and of
// commands.
func (k *Keeper) Wants(msg *bot.Message) bool {
	return msg.Place.Group && msg.Place.Ordinary() && msg.Caller != "" && !msg.FromBot && !msg.Unnamed &&
		msg.Command == "" && !strings.HasPrefix(msg.Text, "/") && msg.Message != "" && k.deps.On(msg.Place) &&
		!k.deps.LeavesOut(msg.Caller)
}

// Keep implements dispatch.Talk. An edit replaces what is kept of its message; it adds nothing.
func (k *Keeper) Keep(ctx context.Context, msg *bot.Message) ([]bot.Fact, error) {
	at := msg.At
	if now := k.deps.Now(); at.IsZero() || at.After(now) {
		at = now
	}
	fact := bot.Fact{Bucket: talkBucket, Key: prefixOf(msg.Place) + positionOf(msg), Expires: at.Add(k.opts.For)}
	if !fact.Expires.After(k.deps.Now()) {
		return nil, nil
	}
	if msg.Kind == bot.Edited {
		kept, err := k.deps.Store.Fact(ctx, talkBucket, fact.Key, k.deps.Now())
		if err != nil || kept == "" {
			return nil, err
		}
	}
	s := said{Caller: msg.Caller, Name: msg.Name, Text: k.deps.Redact(textOf(msg)), At: at.Unix()}
	if s.Text == "" {
		return nil, nil
	}
	raw, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("what was said in a group: %w", err)
	}
	fact.Value = string(raw)
	gone, err := k.trim(ctx, msg.Place, len(s.Text))
	return append(gone, fact), err
}

// prefixOf begins the keys of what is said in a place.
func prefixOf(place bot.Place) string { return string(place.SessionKey("")) + "/" }

// positionOf is where a message is among those of its place; it sorts like them. An edit has that of its message.
func positionOf(msg *bot.Message) string {
	const digits = 11 // more than ids and times have
	zeros := strings.Repeat("0", max(0, digits-len(msg.Message)))
	return fmt.Sprintf("%0*d/%s%s", digits, msg.At.Unix(), zeros, msg.Message)
}

// placeOf returns the place that is in the key of what was said there.
func placeOf(key string) bot.Place {
	for range 2 { // the message and the time
		key = key[:max(0, strings.LastIndexByte(key, '/'))]
	}
	place, _ := bot.SessionKey(key).Place()
	place.Group = true
	return place
}

// textOf is a message as it is kept: its text, and the kinds of what came with it, whose contents are not.
func textOf(msg *bot.Message) string {
	text := strings.TrimSpace(msg.Text)
	if msg.Forwarded {
		text = "[forwarded] " + prompt.Passed(text)
	}
	var parts []string
	for i := range msg.Files {
		f := &msg.Files[i]
		part := f.Kind
		if f.Name != "" {
			part += fmt.Sprintf(" %q", f.Name)
		}
		parts = append(parts, "["+part+"]")
	}
	if text != "" {
		parts = append(parts, text)
	}
	return shortenSaid(strings.ToValidUTF8(strings.Join(parts, " "), "\uFFFD"))
}

// shortenSaid cuts a text that is too long, between two characters.
func shortenSaid(text string) string {
	if len(text) <= mostSaid {
		return text
	}
	return strings.ToValidUTF8(text[:mostSaid], "") + " …"
}

// slack is the part of the limits by which they may be exceeded before the oldest is dropped: so not every message
// costs a look at all of them.
const slack = 4

// trim returns the facts that drop the oldest of what is kept in a place, where so many bytes are added.
func (k *Keeper) trim(ctx context.Context, place bot.Place, bytes int) ([]bot.Fact, error) {
	prefix := prefixOf(place)
	k.mu.Lock()
	a := k.since[prefix]
	few := a != nil && a.messages < k.opts.Messages/slack && a.bytes+bytes <= k.opts.Bytes/slack
	if few {
		a.messages++
		a.bytes += bytes
	} else {
		k.since[prefix] = &amount{}
	}
	k.mu.Unlock()
	if few {
		return nil, nil
	}
	list, err := k.list(ctx, prefix)
	if err != nil {
		return nil, err
	}
	return deletionsOf(list[:k.dropped(list)]), nil
}

// list reads what is kept under keys that begin with prefix, the oldest first.
func (k *Keeper) list(ctx context.Context, prefix string) ([]bot.Fact, error) {
	list, err := k.deps.Store.FactsOf(ctx, talkBucket, prefix, k.deps.Now())
	if err != nil {
		return nil, fmt.Errorf("read what was said in a group: %w", err)
	}
	slices.SortFunc(list, func(a, b bot.Fact) int { return strings.Compare(a.Key, b.Key) })
	return list, nil
}

// dropped returns how many of a place's facts are more than is kept, from the oldest on.
func (k *Keeper) dropped(list []bot.Fact) int {
	bytes := 0
	for i := range slices.Backward(list) {
		bytes += len(readSaid(&list[i]).Text)
		if len(list)-i > k.opts.Messages || bytes > k.opts.Bytes {
			return i + 1
		}
	}
	return 0
}

func readSaid(f *bot.Fact) (s said) {
	if json.Unmarshal([]byte(f.Value), &s) != nil {
		return said{}
	}
	return s
}

func deletionsOf(list []bot.Fact) []bot.Fact {
	gone := make([]bot.Fact, len(list))
	for i := range list {
		gone[i] = bot.Fact{Bucket: talkBucket, Key: list[i].Key}
	}
	return gone
}

// Since implements dispatch.Talk.
func (k *Keeper) Since(ctx context.Context, msg *bot.Message, session bot.SessionKey) (turn.Talk, error) {
	if !msg.Place.Group || !msg.Place.Ordinary() || !k.deps.On(msg.Place) {
		return turn.Talk{}, nil
	}
	prefix := prefixOf(msg.Place)
	list, err := k.list(ctx, prefix)
	if err != nil || len(list) == 0 {
		return turn.Talk{}, err
	}
	until, err := k.deps.Store.Fact(ctx, readBucket, string(session), k.deps.Now())
	if err != nil {
		return turn.Talk{}, fmt.Errorf("read what a conversation has read of its group: %w", err)
	}
	list = slices.DeleteFunc(list[k.dropped(list):], func(f bot.Fact) bool {
		return strings.TrimPrefix(f.Key, prefix) <= until
	})
	if len(list) == 0 {
		return turn.Talk{}, nil
	}
	var t turn.Talk
	for i := range list {
		if s := readSaid(&list[i]); s.Text != "" && !k.deps.LeavesOut(s.Caller) {
			t.Said = append(t.Said, journal.Remark{
				At: k.timeOf(s.At), Caller: s.Caller, Name: s.Name, Text: s.Text,
			})
		}
	}
	t.Told = []bot.Fact{k.readUntil(session, strings.TrimPrefix(list[len(list)-1].Key, prefix))}
	return t, nil
}

// timeOf is when something was said, as models read it: the day too, if it was not today.
func (k *Keeper) timeOf(at int64) string {
	when, now := time.Unix(at, 0).In(k.deps.Zone()), k.deps.Now().In(k.deps.Zone())
	if when.Format(time.DateOnly) != now.Format(time.DateOnly) {
		return when.Format("Mon 15:04")
	}
	return when.Format("15:04")
}

func (k *Keeper) readUntil(session bot.SessionKey, position string) bot.Fact {
	return bot.Fact{
		Bucket: readBucket, Key: string(session), Value: position, Expires: k.deps.Now().Add(k.opts.For),
	}
}

// Began returns the facts that go with a conversation that begins anew: it reads nothing that was said before. If it
// was cleared, what its people have said is no longer kept either: all of it where they share the conversation.
func (k *Keeper) Began(ctx context.Context, call *turn.Call, cleared bool) ([]bot.Fact, error) {
	msg := call.Message
	if !msg.Place.Group || !msg.Place.Ordinary() || !k.deps.On(msg.Place) {
		return nil, nil
	}
	began := []bot.Fact{k.readUntil(call.Session, positionOf(msg))}
	if !cleared {
		return began, nil
	}
	list, err := k.list(ctx, prefixOf(msg.Place))
	if err != nil {
		return nil, err
	}
	if call.Session.Person() != "" {
		list = slices.DeleteFunc(list, func(f bot.Fact) bool { return readSaid(&f).Caller != msg.Caller })
	}
	return append(began, deletionsOf(list)...), nil
}

// Switch returns what goes with switching on or off that the talk of a place is kept: everything that is kept is
// erased, and the group is told who has done it.
func (k *Keeper) Switch(ctx context.Context, call *turn.Call, on bool) ([]bot.Fact, bot.Row, error) {
	msg := call.Message
	list, err := k.list(ctx, prefixOf(msg.Place))
	if err != nil {
		return nil, bot.Row{}, err
	}
	w, language := k.deps.Words.At(msg.Place), msg.Language
	if w.Language != "" {
		language = w.Language // that of the group
	}
	text := w.TalkOff(language, msg.Signature())
	if on {
		text = w.TalkOn(language, msg.Signature(), texts.Kept{
			Messages: k.opts.Messages, For: k.opts.For, Hidden: k.deps.Hidden,
		})
	}
	row := bot.Row{
		Session: call.Session, Place: msg.Place, Purpose: bot.Notice,
		Content: bot.Content{Text: text, Language: language},
	}
	return deletionsOf(list), row, nil
}

// Erased implements preference.Context.
func (k *Keeper) Erased(ctx context.Context, caller string) ([]bot.Fact, error) {
	list, err := k.list(ctx, "")
	if err != nil {
		return nil, err
	}
	list = slices.DeleteFunc(list, func(f bot.Fact) bool { return readSaid(&f).Caller != caller })
	return deletionsOf(list), nil
}

// sweepEach is how often it is looked for what is kept and should not be.
const sweepEach = 10 * time.Minute

// Run erases, until ctx ends, what is more than is kept, and what another process has kept in the moment in which that
// was switched off, for the place or by who said it. What is too old is deleted by the store.
func (k *Keeper) Run(ctx context.Context) error {
	ticker := time.NewTicker(sweepEach)
	defer ticker.Stop()
	for {
		if err := k.Sweep(ctx); err != nil && ctx.Err() == nil {
			k.deps.Log.Warn().Err(err).Msg("what was said in groups is not swept; tried again")
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// Sweep is one look of Run.
func (k *Keeper) Sweep(ctx context.Context) error {
	list, err := k.list(ctx, "")
	if err != nil || len(list) == 0 {
		return err
	}
	if err := k.deps.Follow(ctx); err != nil { // after the list: what was switched on since has nothing in it
		return err
	}
	places := map[bot.Place][]bot.Fact{}
	for _, f := range list {
		place := placeOf(f.Key)
		places[place] = append(places[place], f)
	}
	var gone []bot.Fact
	for place, of := range places {
		if k.deps.On(place) {
			more := k.dropped(of)
			of = slices.Concat(of[:more], slices.DeleteFunc(of[more:], func(f bot.Fact) bool {
				return !k.deps.LeavesOut(readSaid(&f).Caller)
			}))
		}
		gone = append(gone, deletionsOf(of)...)
	}
	if len(gone) == 0 {
		return nil
	}
	if _, err := k.deps.Store.Apply(ctx, &bot.Change{Facts: gone}); err != nil {
		return fmt.Errorf("erase what was said in groups: %w", err)
	}
	return nil
}
