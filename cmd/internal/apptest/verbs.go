package apptest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/bot/telegram/telegramtest"
)

// verb plays a line that begins with a verb.
func (s *scene) verb(words []string, line string) error {
	rest := strings.TrimSpace(strings.TrimPrefix(line, words[0]))
	if words[0] == "repress" && len(words) == 2 {
		person, chat, _ := strings.Cut(words[1], "@")
		return s.pressAt(person, s.chats[chat], s.button.message, s.button.data)
	}
	if name, chat, ok := strings.Cut(words[0], "@"); ok {
		return s.looked(name, s.chats[strings.TrimSuffix(chat, ":")], rest)
	}
	switch words[0] {
	case "audit", "log":
		return s.written(words[0], rest)
	case "never":
		return s.never(rest)
	case "no":
		return s.notWritten(words, rest)
	case "model":
		return s.modelLine(words, line)
	default:
		return s.command(words, rest)
	}
}

// command does something to the service, the model or the fake.
func (s *scene) command(words []string, rest string) error {
	switch words[0] {
	case "idle":
		return s.idle()
	case "spoken":
		return s.produced("input", rest)
	case "drawn":
		return s.produced("prompt", rest)
	case "media":
		return s.turnMedia(words[1:])
	case "previews":
		return s.previews(rest)
	case "release":
		s.model.Release(rest)
		return nil
	case "restart", "stopping", "down", "start":
		return s.service(words)
	case "to":
		return s.direct(rest)
	case "call":
		return s.callHook(words[1:], rest)
	case "again":
		return s.fake.Redeliver(s.said)
	case "raw":
		id, err := s.fake.RawUpdate([]byte(rest))
		s.said = id
		return err
	case "fault":
		return s.fault(words[1:])
	case "faults":
		s.fake.ClearFaults()
		return nil
	case "hit":
		return s.wait(func() (bool, error) { return len(s.fake.Faults()) == 0, nil })
	case "clock":
		return s.setClock(words[1])
	case "skill":
		name, text, _ := strings.Cut(rest, ": ")
		return s.skill(skillsDir+name, strings.ReplaceAll(text, `\n`, "\n"))
	case "web":
		return s.web.line(words)
	case "module":
		return s.module(words)
	default:
		return s.happens(words)
	}
}

// happens plays what people and Telegram do apart from writing.
func (s *scene) happens(words []string) error {
	if len(words) < 2 || slices.Contains([]string{"connect", "enter", "exit", "untopic"}, words[0]) && len(words) < 3 {
		return errors.New("not a line of a scenario")
	}
	chat := s.chats[words[1]]
	var err error
	switch words[0] {
	case "stop":
		return s.stopDraft(words[1])
	case "migrate":
		s.chats[words[1]], err = s.fake.Migrate(chat)
		if _, ok := s.first[chat]; !ok {
			s.first[chat] = chat
		}
		s.first[s.chats[words[1]]] = s.first[chat]
	case "block":
		_, err = s.fake.Block(chat)
	case "privacy":
		s.fake.ReadAll()
	case "presses":
		s.fake.HidePressed()
	case "unblock":
		_, err = s.fake.Unblock(chat)
	case "join":
		_, err = s.fake.Join(map[bool]int64{true: ann, false: dora}[words[len(words)-1] == "ann"], chat)
	case "enter":
		return s.fake.Enter(people()[words[2]].ID, chat)
	case "exit":
		return s.fake.Exit(people()[words[2]].ID, chat)
	case "leave":
		_, err = s.fake.Leave(ann, chat)
	case "untopic":
		return s.fake.DeleteTopic(chat, number(words[2]))
	case "connect":
		_, err = s.fake.Connect(chat, shop, words[2] != "off", words[2] == "on")
	case "rename", "named", "speaks":
		return s.changes(words)
	default:
		return errors.New("not a line of a scenario")
	}
	return err
}

// changes gives a person another username, name or language.
func (s *scene) changes(words []string) error {
	if len(words) < 3 {
		return errors.New("rename PERSON USERNAME, named PERSON NAME, speaks PERSON LANGUAGE")
	}
	u := people()[words[1]]
	switch words[0] {
	case "rename":
		u.Username = words[2]
	case "named":
		u.FirstName = strings.Join(words[2:], " ")
	default:
		u.Language = words[2]
	}
	if s.language != "" {
		u.Language = s.language
	}
	s.fake.AddUser(u)
	return nil
}

// setClock moves the service's clock forward.
func (s *scene) setClock(word string) error {
	if word == "day" {
		now := s.clock.now().UTC()
		s.clock.add(now.Truncate(24 * time.Hour).Add(24*time.Hour + time.Minute).Sub(now))
		return nil
	}
	d, err := time.ParseDuration(strings.TrimPrefix(word, "+"))
	s.clock.add(d)
	return err
}

func (s *scene) fault(words []string) error {
	if len(words) < 2 {
		return errors.New("fault METHOD KIND [COUNT [RETRY-AFTER, DELAY or DESCRIPTION]]")
	}
	f := telegramtest.Fault{Method: words[0], Kind: words[1], Count: 1}
	if len(words) > 2 {
		f.Count = number(words[2])
	}
	if len(words) > 3 {
		switch d, err := time.ParseDuration(words[3]); {
		case err == nil:
			f.Delay = d
		case number(words[3]) > 0:
			f.RetryAfter = number(words[3])
		default:
			f.Description = strings.Join(words[3:], " ")
		}
	}
	s.fake.AddFault(f)
	return nil
}

// modelLine is about what the model was asked.
func (s *scene) modelLine(words []string, line string) error {
	not := len(words) > 1 && words[1] == "not"
	if not {
		words = slices.Delete(slices.Clone(words), 1, 2)
	}
	switch {
	case len(words) == 3 && words[1] == "asked":
		err := s.wait(func() (bool, error) { return len(s.model.Requests()) >= number(words[2]), nil })
		if n := len(s.model.Requests()); err == nil && n != number(words[2]) {
			err = fmt.Errorf("it was asked %d times", n)
		}
		return err
	case len(words) > 2 && words[1] == "offered":
		_, want, _ := strings.Cut(line, " "+words[2])
		return s.offered(words[2], strings.TrimSpace(want), not)
	case len(words) > 2 && words[1] == "saw":
		_, want, _ := strings.Cut(line, "saw ")
		want = strings.TrimSpace(want)
		if not {
			ok, err := s.saw(want)
			if ok {
				err = errors.Join(err, errors.New("it saw this"))
			}
			return err
		}
		return s.wait(func() (bool, error) { return s.saw(want) })
	default:
		return errors.New("model asked N, model offered TOOL, or model saw /regexp/")
	}
}

// offered checks for a tool in the newest request, and its form there; want = "" accepts any form.
func (s *scene) offered(tool, want string, not bool) error {
	list := s.model.Requests()
	if len(list) == 0 {
		return errors.New("it was not asked yet")
	}
	i := slices.IndexFunc(list[len(list)-1].Tools, func(t llm.Tool) bool { return t.Name == tool })
	has := i >= 0
	if has && want != "" {
		shown := list[len(list)-1].Tools[i]
		var err error
		if has, err = matches(shown.Description+"\n"+string(shown.Schema), want); err != nil {
			return err
		}
	}
	if has == not {
		return fmt.Errorf("offered: %t", has)
	}
	return nil
}

func (s *scene) saw(want string) (bool, error) {
	for _, r := range s.model.Requests() {
		text := []string{r.System}
		for _, m := range r.Messages {
			said := string(m.Role) + ": " + m.Text
			if m.Result != nil {
				said += m.Result.Text
			}
			text = append(text, said)
		}
		if ok, err := matches(strings.Join(text, "\n"), want); ok || err != nil {
			return ok, err
		}
	}
	return false, nil
}
