//go:build linux

package crashtest_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/telegram/telegramtest"
)

const (
	privateChats = 30
	groups       = 4
	perGroup     = 2 // people of a group who talk to the bot there, each in a conversation of their own
	mostOpen     = 3 // questions that one conversation waits for
	thinking     = 900 * time.Millisecond
	pressAgain   = 8 * time.Second
)

// talker is a person in a chat: one conversation.
type talker struct {
	m            *machine
	index        int
	person, chat int64
	random       *rand.Rand
}

// session is the key of the conversation.
func (p *talker) session() bot.SessionKey {
	place := bot.Place{Channel: channel, Bot: fmt.Sprint(p.m.fake.BotID()), Surface: "bot", Chat: fmt.Sprint(p.chat), Group: p.chat < 0}
	if place.Group {
		return place.SessionKey(fmt.Sprint(p.person))
	}
	return place.SessionKey("")
}

// question is a message that expects an answer.
type question struct {
	n       int
	kind    string
	talker  *talker
	message int
	at      time.Time
	heard   bool // an answer was seen
	excused bool // /stop came while it was open
	lost    bool // its answer was given up, or its own loss was told (TestOutages)
}

// command is a message that is answered at once.
type command struct {
	text   string
	talker *talker
	at     time.Time
	heard  bool
	vague  bool // only an answer followed /stop: the command may still be in progress and stop what is asked next
}

// replies are the replies to commands in a private chat.
var replies = map[string]*regexp.Regexp{
	"/help": regexp.MustCompile(`^Write to me in plain words`),
	"/stop": regexp.MustCompile(`^(?:Stopping|Nothing is running here|\d+ waiting message|\d+ question)`),
	"/new":  regexp.MustCompile(`^A fresh conversation`),
}

// stoppedTurn is the end of a turn that was stopped: it replies to /stop if nothing else was ended.
var stoppedTurn = regexp.MustCompile(`(?:^|\n)Stopped(?: before anything was said)?\.`)

// populate creates people and chats.
func (m *machine) populate() {
	add := func(person, chat int64) {
		index := len(m.talkers)
		m.talkers = append(m.talkers, &talker{m: m, index: index, person: person, chat: chat, random: rand.New(rand.NewPCG(m.seed, uint64(1000+index)))}) //nolint:gosec // small
	}
	for i := range privateChats {
		id := int64(firstPerson + i)
		m.fake.AddUser(telegramtest.User{ID: id, FirstName: fmt.Sprint("P", i), Language: "en"})
		m.fake.AddPrivate(id)
		add(id, id)
	}
	for g := range groups {
		var members []int64
		for i := range perGroup {
			members = append(members, int64(firstPerson+g*perGroup+i))
		}
		chat := int64(firstGroup - g)
		m.fake.AddGroup(telegramtest.Group{ID: chat, Title: fmt.Sprint("G", g), Members: members})
		for _, id := range members {
			add(id, chat)
		}
	}
}

// talk writes until ctx ends: questions of every kind, with occasional commands.
func (p *talker) talk(ctx context.Context) {
	slower, most := time.Duration(1), mostOpen
	if p.chat < 0 { // at most twenty messages a minute may be sent to a group
		slower, most = 15, 1
	}
	if unit, _ := p.poor(); unit != "" { // a refusal names no question
		slower, most = 2, 1
	}
	for ctx.Err() == nil {
		pause(ctx, slower*time.Duration(float64(thinking)*min(p.random.ExpFloat64(), 4)))
		if ctx.Err() != nil {
			return
		}
		open := p.m.open(p)
		switch dice := p.random.IntN(100); {
		case open >= most:
		case p.chat > 0 && dice < 4:
			p.order("/help")
		case p.chat > 0 && dice < 8:
			p.stop(ctx)
		case p.chat > 0 && dice < 10 && open == 0:
			p.order("/new")
		default:
			p.ask()
		}
	}
}

// ask writes a question.
func (p *talker) ask() {
	kinds := []string{askSay, askSay, askSay, askLong, askFree, askFree, askHeld, askHeld, askPair, askTool, askTool}
	q := &question{kind: kinds[p.random.IntN(len(kinds))], talker: p, at: time.Now()}
	p.m.mu.Lock()
	q.n = len(p.m.questions)
	for _, c := range p.m.commands {
		q.excused = q.excused || c.talker == p && c.vague
	}
	p.m.questions = append(p.m.questions, q)
	p.m.mu.Unlock()
	text := fmt.Sprintf("q%dq %s", q.n, q.kind)
	if p.chat < 0 {
		text = "@zephbot " + text
	}
	p.m.mu.Lock()
	defer p.m.mu.Unlock()
	q.message = p.post(text)
}

// post writes a message. It is called with mu held, so that messages are in the order of their numbers.
func (p *talker) post(text string) int {
	said, err := p.m.fake.Post(p.person, p.chat, telegramtest.Message{Text: text})
	if err != nil || said.UpdateID == 0 {
		p.m.wrong = append(p.m.wrong, fmt.Sprintf("%q in chat %d: %v", text, p.chat, err))
		return 0
	}
	p.m.newest = max(p.m.newest, said.UpdateID)
	p.m.updates++
	return said.MessageID
}

// order writes a command.
func (p *talker) order(text string) *command {
	p.m.mu.Lock()
	defer p.m.mu.Unlock()
	c := &command{text: text, talker: p, at: time.Now()}
	p.m.commands = append(p.m.commands, c)
	p.post(text)
	return c
}

// stop sends /stop, whose exact effect nobody can predict, and waits for the reply before anything else is written.
func (p *talker) stop(ctx context.Context) {
	p.m.mu.Lock()
	for _, q := range p.m.questions {
		if q.talker == p && !q.heard {
			q.excused = true
		}
	}
	for _, c := range p.m.commands {
		if c.talker == p && c.text == "/new" {
			c.heard = true // if it still waits, it is dropped too
		}
	}
	p.m.mu.Unlock()
	c := p.order("/stop")
	for ctx.Err() == nil && !p.m.done(c) && time.Since(c.at) < time.Minute {
		pause(ctx, 100*time.Millisecond)
	}
}

func (m *machine) done(c *command) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return c.heard
}

// open counts the questions that a conversation waits for.
func (m *machine) open(p *talker) (n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, q := range m.questions {
		if q.talker == p && !q.heard && !q.excused {
			n++
		}
	}
	return n
}

// saw examines each finished call of the bot: which faults it met, and what people see as a result.
func (m *machine) saw(c telegramtest.Call) {
	m.pace.called()
	if c.Fault != "" {
		m.hit(faultTelegram + c.Fault)
	} else if c.Status == 429 {
		m.mu.Lock()
		m.unasked++
		m.mu.Unlock()
	}
	if !c.Executed || c.Params["text"] == "" || !strings.HasPrefix(c.Method, "sendMessage") && !strings.HasPrefix(c.Method, "editMessageText") || strings.Contains(c.Method, "Draft") {
		return
	}
	text := c.Params["text"]
	if strings.Contains(c.Params["reply_markup"], approve) {
		m.held(c.Chat, c.Message, text)
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if strings.Contains(text, gaveUp) {
		m.lose(&c)
	}
	if m.refused(c.Chat, text) {
		return
	}
	if found := answered.FindStringSubmatch(text); found != nil {
		if n, err := strconv.Atoi(found[1]); err == nil && n < len(m.questions) {
			m.questions[n].heard = true
			for _, cmd := range m.commands {
				if cmd.text == "/stop" && cmd.talker == m.questions[n].talker && m.questions[n].excused {
					cmd.heard, cmd.vague = true, cmd.vague || !cmd.heard
				}
			}
		}
	}
	for _, cmd := range m.commands {
		if cmd.talker.chat == c.Chat && (!cmd.heard || cmd.vague) && (replies[cmd.text].MatchString(text) || cmd.text == "/stop" && stoppedTurn.MatchString(text) || strings.HasPrefix(text, late)) {
			cmd.heard, cmd.vague = true, false
			break
		}
	}
}

// late is the reply to a command that waited too long.
const late = "I was away for too long"

// cardOf finds the question that a card is about.
var cardOf = regexp.MustCompile(`\bq([0-9]+)q-[ab]\b`)

// held makes the person who asked decide about a card, after a while and until it takes effect.
func (m *machine) held(chat int64, message int, text string) {
	found := cardOf.FindStringSubmatch(text)
	if found == nil {
		return
	}
	n, err := strconv.Atoi(found[1])
	m.mu.Lock()
	if err != nil || n >= len(m.questions) {
		m.mu.Unlock()
		return
	}
	q := m.questions[n]
	m.mu.Unlock()
	random := rand.New(rand.NewPCG(m.seed, uint64(n))) //nolint:gosec // small
	label := approve
	if random.IntN(4) == 0 {
		label = "Deny"
	}
	first := 50*time.Millisecond + time.Duration(random.Int64N(int64(2*time.Second)))
	m.pressing.Go(func() {
		for length := first; ; length = pressAgain {
			wait(m.t.Context(), length, m.over)
			select {
			case <-m.over:
				return
			default:
			}
			if _, err := m.fake.PressButton(q.talker.person, chat, message, label); err != nil {
				return // the button no longer exists
			}
			m.mu.Lock()
			m.presses++
			m.updates++
			m.newest++
			over := q.heard
			m.mu.Unlock()
			if over {
				return
			}
		}
	})
}
