package terminal

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/facts"
	"github.com/zephbot/zephbot/bot/render"
)

const (
	// ConversationBucket holds the conversations of the terminal, by their name.
	ConversationBucket = "terminal_talk"
	talkFor            = 180 * 24 * time.Hour // after the last message, a conversation is not listed any more
	talkFirst          = 80                   // of the first message, in UTF-16 units
	recallRoom         = 256 << 10            // bytes of a conversation that are read for what was said last
	recallMost         = 2000                 // of a message that is shown again, in UTF-16 units

	// oldTalk is the one conversation that earlier versions had for all directories.
	oldTalk = "main"
	// once begins the names of conversations of one message.
	once = "once-"
)

// Conversation is one of them.
type Conversation struct {
	Name  string    `json:"-"`
	Dir   string    `json:"dir"` // where it began
	First string    `json:"first"`
	Last  time.Time `json:"last"`
}

// Conversations are the conversations of the terminal. For one goroutine at a time.
type Conversations struct {
	facts facts.Bucket
	bot   bot.Store
	dir   string
	known Conversation // the one that is being held
}

// NewConversations returns the conversations that are stored, for a program in the directory dir.
func NewConversations(bucket facts.Bucket, store bot.Store, dir string) *Conversations {
	bucket.For = talkFor
	return &Conversations{facts: bucket, bot: store, dir: dir}
}

// NewName returns the name of a conversation that begins.
func NewName() string {
	raw := make([]byte, 4)
	_, _ = rand.Read(raw) // it has no error
	return hex.EncodeToString(raw)
}

// OnceName returns the name of a conversation of one message.
func OnceName() string { return once + uuid.NewString() }

func talkSession(name string) bot.SessionKey {
	return bot.Place{Channel: Name, Bot: BotID, Surface: "bot", Chat: name}.SessionKey("")
}

// List returns the conversations, the newest first; those of this directory only, or all.
func (t *Conversations) List(ctx context.Context, all bool) ([]Conversation, error) {
	stored, err := t.facts.List(ctx, "")
	if err != nil {
		return nil, fmt.Errorf("read the conversations: %w", err)
	}
	var list []Conversation
	old := true
	for _, f := range stored {
		item := Conversation{Name: f.Key}
		if json.Unmarshal([]byte(f.Value), &item) != nil {
			continue
		}
		old = old && item.Name != oldTalk
		if all || item.Dir == t.dir {
			list = append(list, item)
		}
	}
	if old {
		if said, _, at := t.Last(ctx, oldTalk); said != "" {
			list = append(list, Conversation{Name: oldTalk, First: said, Last: at})
		}
	}
	slices.SortFunc(list, func(a, b Conversation) int {
		return cmp.Or(b.Last.Compare(a.Last), cmp.Compare(a.Name, b.Name))
	})
	return list, nil
}

// Elsewhere returns which sessions this directory must not go on with: those of conversations that began in another one
// or are not listed, like single messages (--once), whose answers nobody waits for any more.
func (t *Conversations) Elsewhere(ctx context.Context) (func(bot.SessionKey) bool, error) {
	list, err := t.List(ctx, true)
	if err != nil {
		return nil, err
	}
	dirs := map[string]string{}
	for _, item := range list {
		dirs[item.Name] = item.Dir
	}
	return func(session bot.SessionKey) bool {
		place, _ := session.Place()
		if dir, known := dirs[place.Chat]; known {
			return dir != "" && dir != t.dir
		}
		return place.Chat != oldTalk
	}, nil
}

// NameError says why a name is not that of one conversation.
type NameError string

// Error implements error.
func (e NameError) Error() string { return string(e) }

// Find returns the conversation whose name begins with some letters. The error is a
// NameError if there is not exactly one.
func (t *Conversations) Find(ctx context.Context, name string) (Conversation, error) {
	list, err := t.List(ctx, true)
	if err != nil {
		return Conversation{}, err
	}
	var found []Conversation
	for _, item := range list {
		if item.Name == name {
			return item, nil
		}
		if strings.HasPrefix(item.Name, name) {
			found = append(found, item)
		}
	}
	switch len(found) {
	case 0:
		return Conversation{}, NameError(fmt.Sprintf(
			"there is no conversation %q; zephbot chat --resume lists those of this directory", name,
		))
	case 1:
		return found[0], nil
	}
	return Conversation{}, NameError(fmt.Sprintf(
		"%d conversations begin with %q; write more of the name", len(found), name,
	))
}

// Note records that something is said in a conversation.
func (t *Conversations) Note(ctx context.Context, name, text string, now time.Time) error {
	if t.known.Name != name {
		t.known = Conversation{Name: name, Dir: t.dir}
		value, err := t.facts.Load(ctx, name)
		if err != nil {
			return err
		}
		if value != "" && json.Unmarshal([]byte(value), &t.known) == nil {
			t.known.Name = name
		}
	}
	t.known.Last = now
	t.known.First = cmp.Or(t.known.First, render.Cut(strings.Join(strings.Fields(text), " "), talkFirst))
	value, err := json.Marshal(t.known)
	if err != nil {
		return err
	}
	return t.facts.Save(ctx, name, string(value))
}

// Last returns what was said last in a conversation, and the answer.
func (t *Conversations) Last(ctx context.Context, name string) (said, answer string, at time.Time) {
	tail, err := t.bot.Tail(ctx, talkSession(name), recallRoom)
	if err != nil {
		return "", "", time.Time{}
	}
	for i := len(tail.Entries) - 1; i >= 0; i-- {
		switch e := &tail.Entries[i]; {
		case e.Begins():
			return said, answer, at
		case answer == "" && (e.Kind == journal.AnswerEntry || e.Kind == journal.EndEntry):
			answer, at = e.Text, e.At
		case e.Kind == journal.UserEntry:
			if at.IsZero() {
				at = e.At
			}
			return render.Cut(e.Text, recallMost), render.Cut(answer, recallMost), at
		}
	}
	return said, answer, at
}

// ErrNoConversation means that nothing can be continued.
var ErrNoConversation = errors.New("there is no conversation of this directory to go on with")

// Choices returns the lines of a list of conversations.
func Choices(list []Conversation, now time.Time, age func(d time.Duration) string) []string {
	lines := make([]string, len(list))
	for i, item := range list {
		lines[i] = fmt.Sprintf("%s · %s · %s", item.Name, age(now.Sub(item.Last)), item.First)
	}
	return lines
}
