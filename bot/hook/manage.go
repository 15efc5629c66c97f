package hook

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/bot/turn"
)

const (
	// mostHooks is how many hooks can be made in chats.
	mostHooks = 100
	// recordTool is what the audit log calls a change of a hook; the verb follows.
	recordTool = "hooks_"
)

// stored is a hook that was made in a chat. Its secret is not stored: it is derived from the key of this service, the
// name and Salt.
type stored struct {
	key string // of its fact: the conversation and the name
	raw string // of its fact, as it was read; "" = it is new

	Owner  owner     `json:"owner"`
	Place  bot.Place `json:"place"`
	Title  string    `json:"title,omitempty"` // of the group
	Prompt string    `json:"prompt"`
	Salt   string    `json:"salt"`
	Made   time.Time `json:"made"`
	Paused bool      `json:"paused,omitempty"`
	Left   string    `json:"left,omitempty"` // the chat that the bot was removed from, if it is off for that
}

// readStored decodes the hooks of a bucket, by name. The conversation is that of the key: a group may have got a new
// id. One that cannot be read was written by another version, and is left to that.
func readStored(list []bot.Fact) map[string]*stored {
	byName := map[string]*stored{}
	for i := range list {
		k := &stored{key: list[i].Key, raw: list[i].Value}
		if json.Unmarshal([]byte(k.raw), k) == nil && k.session().Valid() {
			if k.Place.Chat = k.session().Chat(); k.Left != k.Place.Chat {
				k.Left = "" // the group has a new id: nobody removed the bot
			}
			byName[k.name()] = k
		}
	}
	return byName
}

func (k *stored) session() bot.SessionKey {
	return bot.SessionKey(k.key[:max(0, strings.LastIndexByte(k.key, '/'))])
}

func (k *stored) name() string { return k.key[strings.LastIndexByte(k.key, '/')+1:] }

// isOff reports whether its calls begin nothing.
func (k *stored) isOff() bool { return k.Paused || k.Left != "" }

// fact returns the fact with which a Change replaces what was read.
func (k *stored) fact() (bot.Fact, error) {
	raw, err := json.Marshal(k)
	if err != nil {
		return bot.Fact{}, fmt.Errorf("hook: %w", err)
	}
	return bot.Fact{Bucket: bucket, Key: k.key, Value: string(raw), Was: new(k.raw)}, nil
}

// secretOf returns the secret of a hook that was made in a chat. It is one that Standard Webhooks can read too.
func (h *Hooks) secretOf(k *stored) string {
	sum := hmacOf(h.deps.Key, []byte(k.name()), []byte{0}, []byte(k.Salt))
	return secretPrefix + base64.StdEncoding.EncodeToString(sum)
}

// hookOf returns a hook that was made in a chat as a call finds it.
func (h *Hooks) hookOf(k *stored) *hook {
	prompt, err := ParsePrompt(k.Prompt)
	if err != nil { // another version has taken it
		prompt = Prompt{words: k.Prompt, gaps: []string{wholeBody}}
	}
	return &hook{
		name: k.name(), secret: h.secretOf(k), prompt: prompt, owner: k.Owner, place: k.Place, title: k.Title,
		off:    k.isOff(),
		stored: &bot.Fact{Bucket: bucket, Key: k.key, Value: k.raw, Was: new(k.raw)},
	}
}

// Command answers /hooks: it lists the hooks of a person or group, makes, pauses and removes them.
func (h *Hooks) Command(ctx context.Context, call *turn.Call) (turn.Effect, error) {
	// The revision first: what is read after it is at least that.
	revision, err := h.deps.Store.Fact(ctx, revisions, "", h.deps.Now())
	if err == nil {
		err = h.made.Follow(ctx)
	}
	if err != nil {
		return turn.Effect{}, err
	}
	msg, w := call.Message, h.deps.Words.At(call.Message.Place)
	verb, rest, _ := strings.Cut(strings.TrimSpace(msg.Args), " ")
	name, prompt, _ := strings.Cut(strings.TrimSpace(rest), " ")
	verb, name, prompt = strings.ToLower(verb), strings.ToLower(name), strings.TrimSpace(prompt)
	if verb == "" && rest == "" {
		return h.list(ctx, call)
	}
	if verb == "add" && name != "" {
		return h.add(call, name, prompt, revision)
	}
	if name == "" || prompt != "" || !slices.Contains([]string{"remove", "pause", "resume", "secret", "test"}, verb) {
		return call.ReplyText(w.HookHelp(msg.Language)), nil
	}
	if slices.ContainsFunc(h.opts.Config, func(c Config) bool { return c.Name == name }) && verb != "test" {
		return call.ReplyText(w.HookOfConfig(msg.Language, name)), nil
	}
	k := h.made.Value()[name]
	own := k != nil && k.Owner.Caller == msg.Caller
	switch {
	case verb == "test":
		return h.test(call, name)
	case k == nil || !own && !call.Admin:
		return call.ReplyText(w.HookGone(msg.Language, name)), nil
	case !own && (verb == "secret" || verb == "resume"):
		return call.ReplyText(w.HookNotYours(msg.Language, k.ownerName())), nil
	}
	changed := new(*k)
	var text string
	switch verb {
	case "remove":
		return h.store(call, changed, "remove", call.ReplyText(w.HookRemoved(msg.Language, name)))
	case "pause":
		changed.Paused, text = true, w.HookPaused(msg.Language, name)
	case "resume":
		changed.Paused, changed.Left, text = false, "", w.HookResumed(msg.Language, name)
	default:
		changed.Salt = rand.Text()
		return h.store(call, changed, verb, h.tell(call, changed, w.HookRenewed(msg.Language, name)))
	}
	return h.store(call, changed, verb, call.ReplyText(text))
}

// add makes a hook in the chat of a command, in the name of who gives it. It is made only if the hooks are still those
// of a revision, so that no two in different chats have one name.
func (h *Hooks) add(call *turn.Call, name, prompt, revision string) (turn.Effect, error) {
	msg, w := call.Message, h.deps.Words.At(call.Message.Place)
	prompt = cmp.Or(prompt, w.HookPrompt(msg.Language))
	made := h.made.Value()
	_, wrong := ParsePrompt(prompt)
	taken := made[name] != nil || slices.ContainsFunc(h.opts.Config, func(c Config) bool { return c.Name == name })
	switch {
	case !call.Admin:
		return call.ReplyText(w.HookAdmins(msg.Language)), nil
	case !msg.Place.Ordinary() || msg.FromBot || msg.Caller == "":
		return call.ReplyText(w.HookHelp(msg.Language)), nil
	case !ValidName(name):
		return call.ReplyText(w.HookName(msg.Language)), nil
	case taken:
		return call.ReplyText(w.HookTaken(msg.Language, name)), nil
	case wrong != nil:
		return call.ReplyText(w.HookPromptWrong(msg.Language, MaxPrompt)), nil
	case len(made) >= mostHooks:
		return call.ReplyText(w.HookFull(msg.Language, mostHooks)), nil
	}
	k := &stored{
		key:   string(h.deps.Engine.Session(msg)) + "/" + name,
		Owner: owner{msg.Caller, msg.Person, msg.Name, msg.Username, cmp.Or(msg.Told, msg.Language)},
		Place: msg.Place, Title: msg.Title, Prompt: prompt, Salt: rand.Text(), Made: h.deps.Now().UTC(),
	}
	e, err := h.store(call, k, "add", h.tell(call, k, w.HookMade(msg.Language, name)))
	if err != nil {
		return e, err
	}
	e.Change.Facts[len(e.Change.Facts)-1].Was = &revision
	return e, nil
}

// tell answers a command with a text, and tells who gave it the secret of a hook: in private.
func (h *Hooks) tell(call *turn.Call, k *stored, text string) turn.Effect {
	msg := call.Message
	address := Path + k.name()
	if h.deps.URL != nil {
		address = strings.TrimSuffix(h.deps.URL(), "/") + address
	}
	secret := bot.Content{Text: h.deps.Words.HookSecret(msg.Language, k.name(), address, h.secretOf(k))}
	if !msg.Place.Group {
		secret.Text = text + "\n\n" + secret.Text
		return call.Reply(secret)
	}
	e := call.ReplyText(text + " " + h.deps.Words.At(msg.Place).HookSent(msg.Language))
	private := call.Reply(secret).Change.Send[0]
	private.Session, private.Place, private.ReplyTo = "", h.deps.Private(msg.Person), ""
	e.Change.Send = append(e.Change.Send, private)
	return e
}

// store adds to the answer to a command that a hook is as it is now, or, of the verb remove, that it is gone. The last
// fact is the revision.
func (h *Hooks) store(call *turn.Call, k *stored, verb string, e turn.Effect) (turn.Effect, error) {
	fact, err := k.fact()
	if err != nil {
		return turn.Effect{}, err
	}
	if verb == "remove" {
		fact.Value = ""
		e.Change.Facts = append(e.Change.Facts, bot.Fact{Bucket: lastBucket, Key: k.key})
	}
	e.Then = func(ctx context.Context, _ *bot.Applied) (turn.Effect, error) {
		return turn.Effect{}, h.made.Follow(ctx)
	}
	e = h.deps.Audit.Record(e, call, recordTool+verb, map[string]string{
		"name": k.name(), "owner": k.Owner.Caller, "prompt": k.Prompt,
	})
	e.Change.Facts = append(e.Change.Facts, fact, h.made.Revised())
	return e, nil
}

// test begins the turn of a hook as a call would, in the name of its owner, who asks for it.
func (h *Hooks) test(call *turn.Call, name string) (turn.Effect, error) {
	msg, w := call.Message, h.deps.Words.At(call.Message.Place)
	k := h.find(name)
	switch {
	case k == nil:
		return call.ReplyText(w.HookGone(msg.Language, name)), nil
	case k.owner.Caller != msg.Caller:
		return call.ReplyText(w.HookNotYours(msg.Language, cmp.Or(k.owner.Name, k.owner.Person))), nil
	}
	brought := content{text: testBody, value: map[string]any{"test": true}, event: "test"}
	id := strings.Join([]string{"hook", name, "test", msg.ID}, "-")
	arrival, err := h.arrivalOf(k.message(id, k.prompt.text(name, brought), h.deps.Now()))
	if err != nil {
		return turn.Effect{}, err
	}
	e := call.ReplyText(w.HookTested(msg.Language, name))
	e.Change.Arrive, e.Wake = []bot.Arrival{arrival}, []bot.SessionKey{arrival.Session}
	return e, nil
}

// testBody is what a test brings.
const testBody = `{"test": true}`

// list answers /hooks: in a private chat with the hooks of its person, in a group with those that run there.
func (h *Hooks) list(ctx context.Context, call *turn.Call) (turn.Effect, error) {
	msg := call.Message
	last, err := h.deps.Store.FactsOf(ctx, lastBucket, "", h.deps.Now())
	if err != nil {
		return turn.Effect{}, err
	}
	var list []texts.Hook
	add := func(key string, of owner, shown texts.Hook) {
		inChat := bot.SessionKey(key[:strings.LastIndexByte(key, '/')]).InChat(msg.Place.ChatKey())
		if msg.Place.Group && !inChat || !msg.Place.Group && of.Caller != msg.Caller {
			return
		}
		if i := slices.IndexFunc(last, func(f bot.Fact) bool { return f.Key == key }); i >= 0 {
			shown.Last, _ = time.Parse(time.RFC3339, last[i].Value) // zero if another version wrote it
		}
		shown.Owner = cmp.Or(of.Name, of.Username, of.Person)
		list = append(list, shown)
	}
	for i := range h.opts.Config {
		c := &h.opts.Config[i]
		k := h.find(c.Name)
		session := h.sessionOf(k.message("", "", time.Time{}))
		add(string(session)+"/"+c.Name, k.owner, texts.Hook{Name: c.Name, Config: true})
	}
	for _, k := range h.made.Value() {
		add(k.key, k.Owner, texts.Hook{Name: k.name(), Paused: k.Paused, Left: k.Left != ""})
	}
	slices.SortFunc(list, func(a, b texts.Hook) int { return cmp.Compare(a.Name, b.Name) })
	return call.ReplyText(h.deps.Words.At(msg.Place).HookList(msg.Language, list, msg.Place.Group)), nil
}

func (k *stored) ownerName() string { return cmp.Or(k.Owner.Name, k.Owner.Username, k.Owner.Person) }

// Left is for the dispatcher (dispatch.Runs): the hooks of a chat that the bot was removed from are off, and their
// owners are told.
func (h *Hooks) Left(ctx context.Context, place bot.Place, key string) (turn.Effect, error) {
	if err := h.made.Follow(ctx); err != nil {
		return turn.Effect{}, err
	}
	var e turn.Effect
	owners := map[string][]string{}
	languages := map[string]string{}
	for _, k := range h.made.Value() {
		if !k.session().InChat(place.ChatKey()) || k.isOff() {
			continue
		}
		off := *k
		off.Left = off.Place.Chat
		fact, err := off.fact()
		if err != nil {
			return turn.Effect{}, err
		}
		e.Change.Facts = append(e.Change.Facts, fact)
		if k.Place.Group {
			owners[k.Owner.Person] = append(owners[k.Owner.Person], k.name())
			languages[k.Owner.Person] = h.deps.Language(k.Owner.Caller, k.Owner.Language)
		}
	}
	if len(e.Change.Facts) == 0 {
		return e, nil
	}
	e.Change.Facts = append(e.Change.Facts, h.made.Revised())
	for person, names := range owners {
		slices.Sort(names)
		text := h.deps.Words.HookLeft(languages[person], names)
		e.Change.Send = append(e.Change.Send, bot.Row{
			Place: h.deps.Private(person), Purpose: bot.Reply, Key: "hook/left/" + key + "/" + person,
			Content: bot.Content{Text: text, Language: languages[person]},
		})
	}
	e.Then = func(ctx context.Context, _ *bot.Applied) (turn.Effect, error) {
		return turn.Effect{}, h.made.Follow(ctx)
	}
	return e, nil
}
