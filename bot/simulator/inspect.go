package simulator

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/zephbot/zephbot/bot/telegram/telegramtest"
)

const maxInspected = 200 // calls behind one message

// Inspection is what the inspector shows for a selected message.
type Inspection struct {
	Message int                 `json:"message"`
	Person  int64               `json:"person"` // who asked the question
	Turn    *StoryTurn          `json:"turn,omitempty"`
	Calls   []telegramtest.Call `json:"calls"`
	Problem string              `json:"problem,omitempty"` // why there is no story
}

// inspectMessage collects the story behind a message.
func (w *world) inspectMessage(ctx context.Context, from Inspector, me, chat int64, message int) (*Inspection, error) {
	messages := w.fake.Chat(chat)
	at := slices.IndexFunc(messages, func(m telegramtest.Shown) bool { return m.MessageID == message })
	if at < 0 || !inChat(me, chat) {
		return nil, fmt.Errorf("chat %d shows no message %d", chat, message)
	}
	asked := questionIndex(messages, at)
	out := &Inspection{Message: message, Person: me, Calls: []telegramtest.Call{}}
	since, until, text := messages[at].Date, time.Time{}, ""
	if asked >= 0 {
		text = messages[asked].Text
		out.Person, since = messages[asked].From, messages[asked].Date
		until = nextQuestion(messages, asked)
	}
	out.Calls = w.callsBehind(chat, message, since, until)
	if from == nil {
		out.Problem = "The simulator runs without access to the bot's memory."
		return out, nil
	}
	topic := ""
	if t := threadOf(messages[at].Thread); t != 0 {
		topic = strconv.Itoa(t)
	}
	story, err := from.Story(ctx, strconv.FormatInt(chat, 10), topic, strconv.FormatInt(out.Person, 10))
	if err != nil {
		out.Problem = "The bot's memory cannot be read: " + err.Error()
		return out, nil
	}
	out.Turn = turnOf(story, message, text, since, until)
	return out, nil
}

// questionIndex returns the index of the person's message that the message at index at answers: itself, the one it
// replies to, or the last one before it.
func questionIndex(messages []telegramtest.Shown, at int) int {
	m := &messages[at]
	if !m.FromBot {
		return at
	}
	if m.ReplyTo != 0 {
		to := slices.IndexFunc(messages, func(o telegramtest.Shown) bool { return o.MessageID == m.ReplyTo })
		if to >= 0 && !messages[to].FromBot {
			return to
		}
	}
	for i := at - 1; i >= 0; i-- {
		o := &messages[i]
		if !o.FromBot && o.Service == "" && threadOf(o.Thread) == threadOf(m.Thread) {
			return i
		}
	}
	return -1
}

// nextQuestion returns when the same person wrote again in the same place; zero if they have not.
func nextQuestion(messages []telegramtest.Shown, asked int) time.Time {
	q := &messages[asked]
	for i := asked + 1; i < len(messages); i++ {
		o := &messages[i]
		if o.From == q.From && o.Service == "" && threadOf(o.Thread) == threadOf(q.Thread) {
			return o.Date
		}
	}
	return time.Time{}
}

// callsBehind returns the Bot API calls that belong to the message: those about it, and those in its chat between the
// question and the next one.
func (w *world) callsBehind(chat int64, message int, since, until time.Time) []telegramtest.Call {
	pressed := map[string]press{}
	w.mu.Lock()
	for _, p := range w.presses {
		pressed[p.ID] = p
	}
	w.mu.Unlock()
	out := []telegramtest.Call{}
	for _, c := range w.keptCalls() {
		p, isAnswer := pressed[c.Params["callback_query_id"]]
		about := c.Chat == chat && c.Message == message || isAnswer && p.Chat == chat && p.Message == message
		within := (c.Chat == chat || isAnswer && p.Chat == chat) && !c.At.Before(since) &&
			(until.IsZero() || c.At.Before(until))
		if about || within {
			out = append(out, c)
		}
	}
	return out[max(0, len(out)-maxInspected):]
}

// turnOf returns the turn behind a message: the one that names it, else the first one since the question that has the
// question's words, else the last one that began between the question and the next one. Turns know the second in which
// they began, questions the second in which they were sent.
func turnOf(story Story, message int, text string, since, until time.Time) *StoryTurn {
	since = since.Truncate(time.Second)
	var worded, timed *StoryTurn
	for i := range story.Turns {
		t := &story.Turns[i]
		switch {
		case slices.Contains(t.Messages, message):
			return t
		case t.Began.Before(since):
		case worded == nil && text != "" && t.Text == text:
			worded = t
		case until.IsZero() || t.Began.Before(until):
			timed = t
		}
	}
	if worded != nil {
		return worded
	}
	return timed
}
