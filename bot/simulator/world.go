package simulator

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zephbot/zephbot/bot/telegram/telegramtest"
)

const (
	keepCalls   = 2000
	maxFaults   = 100
	slowSeconds = 3
	waitSeconds = 3 // retry_after of a simulated 429
)

// Kinds of faults on the page.
const (
	fault429       = "429"
	faultCut       = "cut"
	faultDuplicate = "duplicate"
	faultSlow      = "slow"
)

// world is the people, their chats, and what the page remembers in addition.
type world struct {
	fake *telegramtest.Server
	hub  *hub
	now  func() time.Time

	past   atomic.Pointer[time.Time] // clock while the past is replayed
	silent atomic.Bool               // the calls are made by the replay, not by the bot

	mu         sync.Mutex // one action of a person at a time
	nextUpdate int64
	presses    []press
	reacts     map[string]string // reactions of people, by readKey of person, chat and message
	reads      map[string]int    // last message read, by readKey
	duplicates int               // updates that are still to be delivered twice
	again      []int64           // the last updates that were delivered twice
	sums       map[string]string // of the files that are stored, by file id

	callMu sync.Mutex
	calls  []telegramtest.Call
	callN  uint64
}

// press is a pressed button.
type press struct {
	ID       string    `json:"id"`
	User     int64     `json:"user"`
	Chat     int64     `json:"chat"`
	Message  int       `json:"message"`
	Alone    int       `json:"alone,omitempty"` // id of an ephemeral message, instead of Message
	Data     string    `json:"data"`
	At       time.Time `json:"at"`
	Answered bool      `json:"answered,omitempty"`
}

// newWorld creates the fake with its people. first is the id of the first update.
func newWorld(opt telegramtest.Options, h *hub, first int64) *world {
	w := &world{hub: h, now: opt.Now, reads: map[string]int{}, reacts: map[string]string{}, sums: map[string]string{}}
	log := opt.Log
	opt.Log = func(c telegramtest.Call) {
		w.noteCall(c)
		if log != nil && !w.silent.Load() {
			log(c)
		}
	}
	opt.Now = func() time.Time {
		if t := w.past.Load(); t != nil {
			return *t
		}
		return w.now()
	}
	opt.FirstID, w.nextUpdate = first, first
	w.fake = telegramtest.New(opt)
	populateChats(w.fake)
	return w
}

// noteCall keeps a call for the inspector. Polls are omitted unless something is wrong with them:
// there is one every few seconds.
func (w *world) noteCall(c telegramtest.Call) {
	if w.silent.Load() || c.Method == "getUpdates" && c.Fault == "" && c.Error == "" {
		return
	}
	w.callMu.Lock()
	defer w.callMu.Unlock()
	w.callN++
	c.N = w.callN
	if len(w.calls) >= 2*keepCalls {
		w.calls = append(make([]telegramtest.Call, 0, 2*keepCalls), w.calls[len(w.calls)-keepCalls:]...)
	}
	w.calls = append(w.calls, c)
}

func (w *world) keptCalls() []telegramtest.Call {
	w.callMu.Lock()
	defer w.callMu.Unlock()
	return slices.Clone(w.calls[max(0, len(w.calls)-keepCalls):])
}

// recordPush records an update that an action made, and delivers it twice if that was requested. The lock must
// be held. An id of 0 with certain false means that the id is unknown; it is then the next one, if the bot
// requested that kind of update.
func (w *world) recordPush(id int64, certain bool) {
	if id == 0 {
		if certain {
			return
		}
		id = w.nextUpdate
	}
	w.nextUpdate = id + 1
	if w.duplicates == 0 {
		return
	}
	if err := w.fake.Redeliver(id); err == nil {
		w.duplicates--
		w.again = append(w.again[max(0, len(w.again)-maxFaults):], id)
	}
}

// plainError takes the name of the fake off its errors; the page shows them to people.
func plainError(err error) error {
	return errors.New(strings.TrimPrefix(err.Error(), "telegramtest: "))
}

func (w *world) threadOf(chat int64, message int) int {
	m, _ := w.fake.Message(chat, message)
	return threadOf(m.Thread)
}

// threadOf returns the number of a topic on the page: General, which messages omit, is 0.
func threadOf(id int) int {
	if id == generalTopic {
		return 0
	}
	return id
}

func (w *world) editMessage(me, chat int64, message int, text string) error {
	if strings.TrimSpace(text) == "" {
		return errors.New("an edited message needs some text")
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	id, err := w.fake.EditText(me, chat, message, text)
	if err != nil {
		return plainError(err)
	}
	w.recordPush(id, true)
	return nil
}

// removeMessage deletes a person's own message, or anybody's in a private chat.
func (w *world) removeMessage(me, chat int64, message int) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	m, ok := w.fake.Message(chat, message)
	if !ok || !inChat(me, chat) || (m.From != me && chat != me) {
		return fmt.Errorf("message %d of chat %d is not yours to delete", message, chat)
	}
	if err := w.fake.DeleteMessage(chat, message); err != nil {
		return plainError(err)
	}
	return nil
}

// maxEmoji is the longest reaction in bytes: an emoji can be several characters that are joined.
const maxEmoji = 32

// reactTo sets or takes back a person's reaction to a message, and tells the bot if it asked for such updates.
func (w *world) reactTo(in reaction) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if m, ok := w.fake.Message(in.Chat, in.Message); !ok || m.Deleted || !inChat(in.Me, in.Chat) || len(in.Emoji) > maxEmoji {
		return fmt.Errorf("nobody can react to message %d of chat %d", in.Message, in.Chat)
	}
	var emoji []string
	if in.Emoji != "" {
		emoji = []string{in.Emoji}
	}
	id, err := w.fake.React(in.Me, in.Chat, in.Message, emoji...)
	if err != nil {
		return plainError(err)
	}
	key := readKey(in.Me, in.Chat, in.Message)
	if w.reacts[key] = in.Emoji; in.Emoji == "" {
		delete(w.reacts, key)
	}
	w.recordPush(id, true)
	w.hub.bumpVersion()
	return nil
}

// reactionsOf returns the reactions of people to a message.
func (w *world) reactionsOf(chat int64, message int) []ViewReaction {
	w.mu.Lock()
	defer w.mu.Unlock()
	var list []ViewReaction
	for _, p := range People() {
		if emoji := w.reacts[readKey(p.ID, chat, message)]; emoji != "" {
			list = append(list, ViewReaction{ID: p.ID, Name: p.Name, Emoji: emoji})
		}
	}
	return list
}

// pushButton presses a button.
func (w *world) pushButton(in pressRequest) (string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	keyboard := w.keyboardOf(in)
	if in.Row < 0 || in.Row >= len(keyboard) || in.Column < 0 || in.Column >= len(keyboard[in.Row]) {
		return "", errors.New("this button is gone")
	}
	b := keyboard[in.Row][in.Column]
	switch {
	case b.Text != in.Label:
		return "", fmt.Errorf("the button %q has changed to %q", in.Label, b.Text)
	case b.Disabled != nil:
		return "", fmt.Errorf("the button %q is switched off", in.Label)
	case b.CallbackData == "":
		return "", fmt.Errorf("the button %q sends nothing to the bot", in.Label)
	}
	p := press{User: in.Me, Chat: in.Chat, Message: in.Message, Alone: in.Alone, Data: b.CallbackData, At: w.now()}
	if err := w.sendPress(&p); err != nil {
		return "", plainError(err)
	}
	w.presses = append(w.presses, p)
	w.recordPush(0, false)
	return p.ID, nil
}

// keyboardOf returns the buttons of a message, as the person sees it.
func (w *world) keyboardOf(in pressRequest) [][]telegramtest.Button {
	if in.Alone == 0 {
		m, ok := w.fake.Message(in.Chat, in.Message)
		if !ok || m.Deleted {
			return nil
		}
		return m.Keyboard
	}
	for _, m := range w.fake.Ephemeral(in.Chat, in.Me) {
		if m.Ephemeral == in.Alone {
			return m.Keyboard
		}
	}
	return nil
}

// sendPress sends a press to the bot and sets its id.
func (w *world) sendPress(p *press) (err error) {
	if p.Alone != 0 {
		p.ID, err = w.fake.PressAlone(p.User, p.Chat, p.Alone, p.Data)
		return err
	}
	p.ID, err = w.fake.Press(p.User, p.Chat, p.Message, p.Data)
	return err
}

func (w *world) stopDraft(me, chat int64, draft int) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	id, err := w.fake.Stop(me, chat, draft)
	if err != nil {
		return plainError(err)
	}
	w.recordPush(id, true)
	return nil
}

// startTopic opens a topic. The id of the resulting update is unknown.
func (w *world) startTopic(me, chat int64, name string) (int, error) {
	name = strings.TrimSpace(name)
	if n := len([]rune(name)); n == 0 || n > 128 {
		return 0, errors.New("a topic needs a name of 1 to 128 characters")
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	id, err := w.fake.StartTopic(me, chat, name)
	if err != nil {
		return 0, plainError(err)
	}
	w.recordPush(0, false)
	return id, nil
}

func (w *world) markRead(me, chat int64, topic, message int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	key := readKey(me, chat, threadOf(topic))
	if message <= w.reads[key] {
		return
	}
	w.reads[key] = message
	w.hub.bumpVersion()
}

func readKey(me, chat int64, topic int) string {
	return strconv.FormatInt(me, 10) + "/" + strconv.FormatInt(chat, 10) + "/" + strconv.Itoa(topic)
}

func isKnown(me int64) bool {
	return slices.ContainsFunc(People(), func(p Person) bool { return p.ID == me })
}

// attachedFile returns the attachment with this file in a chat that the person is in; nil if there is none.
func (w *world) attachedFile(me int64, file string) *telegramtest.Attachment {
	for _, chat := range append(groupIDs(), me) {
		if !isKnown(me) || !inChat(me, chat) {
			continue
		}
		for _, m := range append(w.fake.Chat(chat), w.fake.Ephemeral(chat, me)...) {
			if m.Attachment != nil && m.Attachment.FileID == file && !m.Deleted {
				return m.Attachment
			}
		}
	}
	return nil
}

// inChat reports whether the person sees the chat.
func inChat(me, chat int64) bool {
	return isKnown(me) && chat == me || slices.Contains(groupIDs(), chat) && slices.Contains(membersOf(chat), me)
}

// armFault makes the next count calls or updates fail.
func (w *world) armFault(kind string, count int) error {
	if count < 1 || count > maxFaults {
		return fmt.Errorf("%d faults: want 1 to %d", count, maxFaults)
	}
	f := telegramtest.Fault{Kind: kind, Count: count}
	switch kind {
	case fault429:
		f.Method, f.RetryAfter = "*Message*", waitSeconds
	case faultCut:
		f.Method = "sendMessage" // the one call that cannot be repeated
	case faultSlow:
		f.Method, f.Delay = "*Message*", slowSeconds*time.Second
	case faultDuplicate:
		w.mu.Lock()
		w.duplicates = min(w.duplicates+count, maxFaults)
		w.mu.Unlock()
		w.hub.bumpVersion()
		return nil
	default:
		return fmt.Errorf("unknown fault %q: want 429, cut, duplicate or slow", kind)
	}
	w.fake.AddFault(f)
	return nil
}

func (w *world) disarmFaults() {
	w.mu.Lock()
	w.duplicates = 0
	w.mu.Unlock()
	w.fake.ClearFaults()
	w.hub.bumpVersion()
}

// armedFaults counts the faults that still wait for their call, by kind.
func (w *world) armedFaults() map[string]int {
	out := map[string]int{fault429: 0, faultCut: 0, faultSlow: 0}
	for _, f := range w.fake.Faults() {
		out[f.Kind] += f.Count
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	out[faultDuplicate] = w.duplicates
	return out
}
