package apptest

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zephbot/zephbot/bot/telegram/telegramtest"
	"github.com/zephbot/zephbot/persistence"
)

var (
	saysLine = regexp.MustCompile(
		`^(ann|ben|cy|dora|anon|channel)(?:@([a-z]+)(?:/(\d+))?)?(?: re (\d+)(?: "(.*?)")?)?: (.*)$`,
	)
	sendsLine    = regexp.MustCompile(`^(ann|ben|cy|dora)(?:@([a-z]+)(?:/(\d+))?)?(?: re (\d+))? sends (\w+): ?(.*)$`)
	nameOf       = regexp.MustCompile(`\$(\d)@([a-z]+)`)
	orSend       = regexp.MustCompile(`/approve ([a-z]+)`)
	forwardsLine = regexp.MustCompile(`^(ann|ben|cy|dora)(?:@([a-z]+))? forwards: (.*)$`)
	editsLine    = regexp.MustCompile(`^(ann|ben|cy|dora)(?:@([a-z]+))? edits (\d+): (.*)$`)
	untilLine    = regexp.MustCompile(`^until audit (/.+/) (ann|ben|cy|dora): (.+)$`)
	botLine      = regexp.MustCompile(`^bot@([a-z]+)(?:/(\d+))?: (.*)$`)
	cardLine     = regexp.MustCompile(`^card@([a-z]+): (.*)$`)
	pressLine    = regexp.MustCompile(`^press ([a-z+]+)@([a-z]+)(?: (\d+))? "(.*)"$`)
	forgeLine    = regexp.MustCompile(`^forge (ann|ben|cy|dora)@([a-z]+) (\d+) (.*)$`)
	toastLine    = regexp.MustCompile(`^toast (ann|ben|cy|dora): (.*)$`)
	fileLine     = regexp.MustCompile(
		`^(file|put|stray|no file) (ann|ben|cy|dora)(?:@([a-z]+))? ((?:\S| \()+?)(?:: (.*))?$`,
	)
)

// names replaces the names of questions: $2@ben is the second one of that chat.
func (s *scene) names(line string) string {
	return nameOf.ReplaceAllStringFunc(line, func(word string) string {
		m := nameOf.FindStringSubmatch(word)
		var found []string
		for _, shown := range s.bots(s.chats[m[2]]) {
			if name := orSend.FindStringSubmatch(shown.Text); name != nil {
				found = append(found, name[1])
			}
		}
		if n := number(m[1]); n >= 1 && n <= len(found) {
			return found[n-1]
		}
		return word
	})
}

var (
	linkOf   = regexp.MustCompile(`\$link@([a-z]+)`)
	linkCode = regexp.MustCompile(`https://t\.me/zephbot\?start(?:group)?=([A-Za-z0-9_-]{1,64})(?:\n|$)`)
)

// linked fills in the payloads of links: $link@ann is that of the newest link in her chat.
func (s *scene) linked(line string) string {
	return linkOf.ReplaceAllStringFunc(line, func(word string) string {
		payload := word
		for _, shown := range s.bots(s.chats[linkOf.FindStringSubmatch(word)[1]]) {
			if m := linkCode.FindStringSubmatch(shown.Text); m != nil {
				payload = m[1]
			}
		}
		return payload
	})
}

// adminCode is what the newest start says of the code of the first admin.
var adminCode = regexp.MustCompile(`/start ([A-Z2-7]{16})`)

// coded fills in the code of the first admin: $code is that of the newest start.
func (s *scene) coded(line string) (string, error) {
	if !strings.Contains(line, "$code") {
		return line, nil
	}
	var found [][]string
	err := s.wait(func() (bool, error) {
		found = adminCode.FindAllStringSubmatch(s.log.String(), -1)
		return len(found) > 0, nil
	})
	if err != nil {
		return "", errors.New("no start has shown a code")
	}
	return strings.ReplaceAll(line, "$code", found[len(found)-1][1]), nil
}

// do plays one line.
func (s *scene) do(line string) error {
	line, err := s.coded(s.linked(s.names(line)))
	if err != nil {
		return err
	}
	if m := saysLine.FindStringSubmatch(line); m != nil {
		return s.say(m[1], m[2], telegramtest.Message{
			Text:    plain(m[6]),
			Thread:  number(m[3]),
			ReplyTo: number(m[4]),
			Quote:   m[5],
		})
	}
	if m := untilLine.FindStringSubmatch(line); m != nil {
		return s.until(m[1], m[2], plain(m[3]))
	}
	if m := sendsLine.FindStringSubmatch(line); m != nil {
		return s.sends(m[1], m[2], m[5], telegramtest.Message{
			Text: plain(m[6]), Thread: number(m[3]), ReplyTo: number(m[4]),
		})
	}
	if m := forwardsLine.FindStringSubmatch(line); m != nil {
		return s.say(m[1], m[2], telegramtest.Message{
			Text:          plain(m[3]),
			ForwardOrigin: telegramtest.Hidden("Somebody"),
		})
	}
	if m := editsLine.FindStringSubmatch(line); m != nil {
		_, err := s.fake.EditText(s.chats[m[1]], s.place(m[1], m[2]), number(m[3]), plain(m[4]))
		return err
	}
	if m := botLine.FindStringSubmatch(line); m != nil {
		return s.expect(s.chats[m[1]], number(m[2]), m[3])
	}
	if m := cardLine.FindStringSubmatch(line); m != nil {
		return s.card(s.chats[m[1]], m[2])
	}
	if m := pressLine.FindStringSubmatch(line); m != nil {
		return s.pressLabel(m[1], s.chats[m[2]], number(m[3]), m[4])
	}
	if m := forgeLine.FindStringSubmatch(line); m != nil {
		return s.pressAt(m[1], s.chats[m[2]], number(m[3]), m[4])
	}
	if m := toastLine.FindStringSubmatch(line); m != nil {
		return s.toast(m[1], m[2])
	}
	if m := fileLine.FindStringSubmatch(line); m != nil {
		return s.file(m[1], m[2], s.place(m[2], m[3]), m[4], plain(m[5]))
	}
	return s.verb(strings.Fields(line), line)
}

func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0
	}
	return n
}

// plain resolves the escapes of a line.
func plain(text string) string { return strings.ReplaceAll(text, `\n`, "\n") }

// place returns a chat by name, by default the person's private chat.
func (s *scene) place(person, chat string) int64 {
	if chat == "" {
		return s.chats[person]
	}
	return s.chats[chat]
}

func (s *scene) say(person, chat string, msg telegramtest.Message) error {
	var said telegramtest.Said
	var err error
	switch {
	case chat == "away":
		said, err = s.fake.GuestSay(s.chats[person], s.chats[chat], msg)
	case chat == "shop":
		s.chats[chat], said, err = s.fake.BusinessSay(shop, dora, person == "ben", msg)
	case person == "anon":
		said.MessageID, said.UpdateID = s.fake.AnonymousSay(s.chats[chat], msg)
	case person == "channel":
		said.MessageID, said.UpdateID = s.fake.ChannelSay(
			s.chats[chat], telegramtest.Group{ID: news, Title: "News"}, msg,
		)
	default:
		said, err = s.fake.Post(s.chats[person], s.place(person, chat), msg)
	}
	if said.UpdateID != 0 {
		s.said = said.UpdateID
	}
	return err
}

// until has a person say something in the private chat repeatedly, until the audit log has a line.
func (s *scene) until(want, person, text string) error {
	chat := s.chats[person]
	for began := time.Now(); time.Since(began) < patience; {
		if err := s.say(person, "", telegramtest.Message{Text: text}); err != nil {
			return err
		}
		if err := s.idle(); err != nil {
			return err
		}
		for _, m := range s.bots(chat) {
			s.look(chat, m.MessageID)
		}
		if ok, err := s.line("audit", want); ok || err != nil {
			return err
		}
	}
	return fmt.Errorf("said in vain; the audit log is\n%s", s.lines("audit"))
}

// look records that a message of the bot was checked.
func (s *scene) look(chat int64, message int) {
	if s.seen[chat] == nil {
		s.seen[chat] = map[int]bool{}
	}
	s.seen[chat][message], s.last[chat] = true, message
}

// matches compares a text with an expectation: /regexp/ or the text itself.
func matches(got, want string) (bool, error) {
	if len(want) > 1 && strings.HasPrefix(want, "/") && strings.HasSuffix(want, "/") {
		re, err := regexp.Compile("(?s)" + want[1:len(want)-1])
		if err != nil {
			return false, err
		}
		return re.MatchString(got), nil
	}
	return got == plain(want), nil
}

// wait waits until check returns true. It checks again whenever the fake changes, and at intervals, because state
// outside the fake changes too.
func (s *scene) wait(check func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(context.Background(), s.patience())
	defer cancel()
	pause := 5 * time.Millisecond
	timer := time.NewTimer(pause)
	defer timer.Stop()
	for {
		version := s.fake.Version()
		done, err := check()
		if done || err != nil {
			return err
		}
		if err := s.fallen(); err != nil {
			return err
		}
		select {
		case <-s.fake.Changed(version):
		case <-timer.C: // checking costs the machine time that the service needs, so it becomes less frequent
			pause = min(2*pause, 150*time.Millisecond)
			timer.Reset(pause)
		case <-ctx.Done():
			return errors.New("waited in vain")
		}
	}
}

// bots returns the bot's messages in a chat.
func (s *scene) bots(chat int64) []telegramtest.Shown {
	var list []telegramtest.Shown
	for _, m := range s.fake.Chat(chat) {
		if m.FromBot && !m.Deleted {
			list = append(list, m)
		}
	}
	return list
}

// working begins a message that only says that an answer is being written. It appears if a machine is slow, and becomes
// the answer.
const working = "⏳"

// next returns the oldest message of the bot that was not checked yet.
func (s *scene) next(chat int64) (telegramtest.Shown, bool) {
	for _, m := range s.bots(chat) {
		if !s.seen[chat][m.MessageID] && !strings.HasPrefix(m.Text, working) {
			return m, true
		}
	}
	return telegramtest.Shown{}, false
}

// expect waits for the next message of the bot to be the expected one; it may grow into it.
func (s *scene) expect(chat int64, thread int, want string) error {
	var m telegramtest.Shown
	err := s.wait(func() (bool, error) {
		var ok bool
		if m, ok = s.next(chat); !ok {
			return false, nil
		}
		ok, err := matches(m.Text, want)
		return ok && m.Thread == thread, err
	})
	if err != nil {
		return fmt.Errorf("%w; it says %q in thread %d", err, m.Text, m.Thread)
	}
	s.look(chat, m.MessageID)
	return nil
}

// card waits for an edited message of the bot that matches.
func (s *scene) card(chat int64, want string) error {
	return s.wait(func() (bool, error) {
		for _, m := range s.bots(chat) {
			if !m.Edited {
				continue
			}
			if ok, err := matches(m.Text, want); ok || err != nil {
				return ok, err
			}
		}
		return false, nil
	})
}

// pressLabel presses the newest button with a label, once it exists; several people joined by + press it at the same
// moment.
func (s *scene) pressLabel(people string, chat int64, wanted int, label string) error {
	err := s.wait(func() (bool, error) {
		for _, m := range slices.Backward(s.bots(chat)) {
			if wanted != 0 && m.MessageID != wanted {
				continue
			}
			for _, row := range m.Keyboard {
				for _, b := range row {
					if b.Text == label || s.language != "" && s.translated(b.Text, label) {
						s.button.message, s.button.data = m.MessageID, b.CallbackData
						return true, nil
					}
				}
			}
		}
		return false, nil
	})
	for person := range strings.SplitSeq(people, "+") {
		if err == nil {
			err = s.pressAt(person, chat, s.button.message, s.button.data)
		}
	}
	return err
}

func (s *scene) pressAt(person string, chat int64, message int, data string) error {
	id, err := s.fake.Press(s.chats[person], chat, message, data)
	s.press[person] = id
	return err
}

func (s *scene) toast(person, want string) error {
	return s.wait(func() (bool, error) {
		answer, ok := s.fake.CallbackAnswered(s.press[person])
		if !ok {
			return false, nil
		}
		ok, err := matches(answer.Text, want)
		if err == nil && !ok {
			err = fmt.Errorf("it says %q", answer.Text)
		}
		return ok, err
	})
}

func (s *scene) stopDraft(person string) error {
	return s.wait(func() (bool, error) {
		draft, ok := s.fake.Draft(s.chats[person])
		if !ok {
			return false, nil
		}
		_, err := s.fake.Stop(s.chats[person], s.chats[person], draft.ID)
		return err == nil, err
	})
}

// dump shows what happened, for a scenario that failed.
func (s *scene) dump() string {
	var b strings.Builder
	names := make([]string, 0, len(s.chats))
	for n := range s.chats {
		names = append(names, n)
	}
	slices.Sort(names)
	for _, n := range names {
		for i, m := range s.fake.Chat(s.chats[n]) {
			if i == 0 {
				fmt.Fprintf(&b, "--- chat %s\n", n)
			}
			fmt.Fprintf(&b, "  %3d %s: %.600s", m.MessageID, m.Name, m.Text)
			for _, row := range m.Keyboard {
				for _, k := range row {
					fmt.Fprintf(&b, " [%s]", k.Text)
				}
			}
			b.WriteByte('\n')
		}
	}
	b.WriteString("--- calls\n")
	for _, c := range s.fake.Calls() {
		if c.Method == "getUpdates" {
			fmt.Fprintf(&b, "  %3d getUpdates: %d %s, %d updates\n", c.N, c.Status, c.Error, c.Returned)
		} else {
			fmt.Fprintf(
				&b, "  %3d %s chat %d message %d: %d %s %s\n",
				c.N, c.Method, c.Chat, c.Message, c.Status, c.Fault, c.Error,
			)
		}
	}
	requests := s.model.Requests()
	fmt.Fprintf(&b, "--- model: asked %d times\n", len(requests))
	if len(requests) > 0 {
		for _, m := range requests[len(requests)-1].Messages {
			said := m.Text
			if m.Result != nil {
				said += m.Result.Text
			}
			fmt.Fprintf(&b, "  %s: %.600s\n", m.Role, said)
		}
	}
	if s.server != nil {
		b.WriteString(Refusals(s.server))
	}
	b.WriteString(s.stuck())
	fmt.Fprintf(&b, "--- log\n%s", s.log.String())
	return b.String()
}

// sceneLabel is the label of all goroutines of a scene's services (runtime/pprof).
const sceneLabel = "scene"

// stuck says how far what waits has come, and where the service's goroutines are.
func (s *scene) stuck() string {
	var b strings.Builder
	fmt.Fprintf(&b, "--- unfetched updates: %d\n", s.fake.PendingUpdates())
	ctx, id := context.Background(), strconv.FormatInt(s.fake.BotID(), 10)
	if db, err := persistence.OpenReader(ctx, filepath.Join(s.dir, s.processes[0].name), s.databaseURL); err != nil {
		fmt.Fprintf(&b, "--- database: %v\n", err)
	} else {
		counts, err := db.Counts(ctx, "telegram", id)
		fmt.Fprintf(&b, "--- database: %+v %v\n", counts, errors.Join(err, db.Close()))
	}
	var all strings.Builder
	_ = pprof.Lookup("goroutine").WriteTo(&all, 1) // a Builder cannot fail
	b.WriteString("--- goroutines\n")
	label := fmt.Sprintf("%q:%q", sceneLabel, s.t.Name())
	for stack := range strings.SplitSeq(all.String(), "\n\n") {
		if strings.Contains(stack, label) {
			b.WriteString(stack + "\n")
		}
	}
	return b.String()
}
