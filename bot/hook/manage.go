package hook

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/zephbot/zephbot/bot"
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
	When   []string  `json:"when,omitempty"` // conditions
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
		prompt = Prompt{source: k.Prompt, words: k.Prompt, gaps: []string{wholeBody}}
	}
	var when []Condition
	for _, text := range k.When {
		c, err := ParseCondition(text)
		if err != nil { // another version has taken it: no call meets it
			c = Condition{name: eventName, value: text}
		}
		when = append(when, c)
	}
	return &hook{
		when: when,
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
		list, err := h.visibleHooks(ctx, call)
		return call.Reply(h.listPage(call, list, 0)), err
	}
	if verb == "add" && name != "" {
		return h.add(call, name, prompt, revision)
	}
	if known := []string{"remove", "pause", "resume", "secret", "test"}; name == "" || prompt != "" ||
		!slices.Contains(known, verb) {
		return call.ReplyText(w.Usage(msg.Language, verb, append(known, "add"), w.HookHelp(msg.Language))), nil
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
		return call.ReplyText(w.HookNotYours(msg.Language, k.Owner.name())), nil
	}
	changed, text := h.changed(k, verb, msg.Language)
	if verb == "secret" {
		return h.store(call, changed, verb, h.tell(call, changed, text))
	}
	return h.store(call, changed, verb, call.ReplyText(text))
}

// changed returns a hook as it is once it is paused, resumed, removed or has a new secret, and the text that says so.
func (h *Hooks) changed(k *stored, verb, language string) (changed *stored, text string) {
	changed = new(*k)
	w, name := h.deps.Words, k.name()
	switch verb {
	case "remove":
		text = w.HookRemoved(language, name)
	case "pause":
		changed.Paused, text = true, w.HookPaused(language, name)
	case "resume":
		changed.Paused, changed.Left, text = false, "", w.HookResumed(language, name)
	case "secret":
		changed.Salt, text = rand.Text(), w.HookRenewed(language, name)
	}
	return changed, text
}

// add makes a hook in the chat of a command, in the name of who gives it. It is made only if the hooks are still those
// of a revision, so that no two in different chats have one name.
func (h *Hooks) add(call *turn.Call, name, prompt, revision string) (turn.Effect, error) {
	msg, w := call.Message, h.deps.Words.At(call.Message.Place)
	when, prompt := cutConditions(prompt)
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
		Place: msg.Place, Title: msg.Title, Prompt: prompt, When: when, Salt: rand.Text(),
		Made: h.deps.Now().UTC(),
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
	msg, secret := call.Message, h.secretText(call, k)
	if !msg.Place.Group {
		return call.ReplyText(text + "\n\n" + secret)
	}
	e := call.ReplyText(text + " " + h.deps.Words.At(msg.Place).HookSent(msg.Language))
	e.Change.Send = append(e.Change.Send, h.inPrivate(call, secret))
	return e
}

// secretText says how a hook is called, and with which secret.
func (h *Hooks) secretText(call *turn.Call, k *stored) string {
	address := Path + k.name()
	if h.deps.URL != nil {
		address = strings.TrimSuffix(h.deps.URL(), "/") + address
	}
	return h.deps.Words.HookSecret(call.Message.Language, k.name(), address, h.secretOf(k), !isReachedFromOutside(address))
}

// isReachedFromOutside reports whether other machines can reach an address: it is not one of this machine or its network.
func isReachedFromOutside(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" || u.Hostname() == "localhost" || strings.HasSuffix(u.Hostname(), ".localhost") {
		return false
	}
	ip, err := netip.ParseAddr(u.Hostname())
	return err != nil || !(ip.IsLoopback() || ip.IsUnspecified() || ip.IsPrivate() || ip.IsLinkLocalUnicast())
}

// inPrivate is a message to who gave a command or pressed a button, for them alone.
func (h *Hooks) inPrivate(call *turn.Call, text string) bot.Row {
	row := call.ReplyText(text).Change.Send[0]
	row.Session, row.Place, row.ReplyTo = "", h.deps.Private(call.Message.Person), ""
	return row
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
		"name": k.name(), "owner": k.Owner.Caller, "prompt": k.Prompt, "when": strings.Join(k.When, " "),
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
		return call.ReplyText(w.HookNotYours(msg.Language, k.owner.name())), nil
	}
	return h.withTest(call, k, call.ReplyText(w.HookTested(msg.Language, name)))
}

// withTest adds to an effect the arrival of a call that tries a hook.
func (h *Hooks) withTest(call *turn.Call, k *hook, e turn.Effect) (turn.Effect, error) {
	brought := content{text: testBody, value: map[string]any{"test": true}, event: "test"}
	id := strings.Join([]string{"hook", k.name, "test", call.Message.ID}, "-")
	arrival, err := h.arrivalOf(k.message(id, k.prompt.text(k.name, brought), h.deps.Now()))
	if err != nil {
		return turn.Effect{}, err
	}
	e.Change.Arrive, e.Wake = []bot.Arrival{arrival}, []bot.SessionKey{arrival.Session}
	return e, nil
}

// testBody is what a test brings.
const testBody = `{"test": true}`

// name is what an owner is called.
func (o *owner) name() string { return cmp.Or(o.Name, o.Username, o.Person) }

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
