package apptest

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf16"

	"github.com/zephbot/zephbot/bot/telegram/telegramtest"
)

// looked plays a line about what is visible in a chat.
func (s *scene) looked(what string, chat int64, want string) error {
	switch what {
	case "silent":
		return s.silent(chat)
	case "draft":
		return s.draft(chat, want)
	case "alone":
		return s.alone(chat, want)
	case "growing":
		return s.growing(chat, want)
	case "sign":
		return s.signed(chat, want)
	case "to", "looks", "attached", "buttons", "quotes":
	default:
		return errors.New("not a line of a scenario")
	}
	var problem error
	err := s.wait(func() (bool, error) {
		m, ok := s.fake.Message(chat, s.last[chat])
		if !ok {
			return false, errors.New("no bot line stands before this one")
		}
		switch what {
		case "to":
			if m.ReplyTo != number(want) {
				return false, fmt.Errorf("it answers message %d", m.ReplyTo)
			}
			return true, nil
		case "quotes":
			if m.Quote != want {
				return false, fmt.Errorf("it quotes %q", m.Quote)
			}
			return true, nil
		case "looks":
			return true, formatted(m, want)
		case "attached":
			return true, s.carries(m, want)
		default:
			problem = labelled(m, want)
			return problem == nil, nil
		}
	})
	return errors.Join(err, problem)
}

// alone waits for the newest message that one person alone sees in a chat.
func (s *scene) alone(chat int64, want string) error {
	person, want, _ := strings.Cut(want, " ")
	return s.wait(func() (bool, error) {
		list := s.fake.Alone(chat, s.chats[person])
		if len(list) == 0 {
			return false, nil
		}
		return matches(list[len(list)-1], want)
	})
}

// labelled compares the buttons of a message with "[A] [B]", or "none".
func labelled(m telegramtest.Shown, want string) error {
	var labels []string
	for _, row := range m.Keyboard {
		for _, b := range row {
			labels = append(labels, "["+b.Text+"]")
		}
	}
	got := strings.Join(labels, " ")
	if got == "" {
		got = "none"
	}
	if got != want {
		return fmt.Errorf("its buttons are %s", got)
	}
	return nil
}

// formatted checks for an entity by type and the text that it covers.
func formatted(m telegramtest.Shown, want string) error {
	kind, text, _ := strings.Cut(want, " ")
	units := utf16.Encode([]rune(m.Text))
	var have []string
	for _, e := range m.Entities {
		under := string(utf16.Decode(units[e.Offset : e.Offset+e.Length]))
		if string(e.Type) == kind && (text == "" || under == plain(text)) {
			return nil
		}
		have = append(have, string(e.Type)+" "+under)
	}
	if want == "plain" && len(have) == 0 {
		return nil
	}
	return fmt.Errorf("its formatting is %q", have)
}

// carries checks the file of a message.
func (s *scene) carries(m telegramtest.Shown, want string) error {
	name, text, _ := strings.Cut(want, " ")
	if m.Attachment == nil || m.Attachment.Name != name && m.Attachment.Kind != name {
		return fmt.Errorf("its attachment is %+v", m.Attachment)
	}
	data, ok := s.fake.FileData(m.Attachment.FileID)
	if !ok {
		return errors.New("its file is not there")
	}
	if ok, err := matches(string(data), text); err != nil || !ok {
		return errors.Join(err, fmt.Errorf("the file holds %q", data))
	}
	return nil
}

func (s *scene) draft(chat int64, want string) error {
	return s.wait(func() (bool, error) {
		d, ok := s.fake.Draft(chat)
		if !ok {
			return false, nil
		}
		return matches(d.Text, want)
	})
}

// growing waits for the message that says that an answer is being written.
func (s *scene) growing(chat int64, want string) error {
	return s.wait(func() (bool, error) {
		for _, m := range s.bots(chat) {
			if ok, err := matches(m.Text, want); strings.HasPrefix(m.Text, working) && (ok || err != nil) {
				return ok, err
			}
		}
		return false, nil
	})
}

// signed waits for the bot's reaction on a message: "2 👀", or "2 none".
func (s *scene) signed(chat int64, want string) error {
	message, emoji, _ := strings.Cut(want, " ")
	have := ""
	err := s.wait(func() (bool, error) {
		m, ok := s.fake.Message(chat, number(message))
		if !ok {
			return false, errors.New("there is no such message")
		}
		have = strings.Join(m.Reactions, " ")
		return have == strings.TrimSpace(strings.TrimSuffix(emoji, "none")), nil
	})
	if err != nil {
		err = fmt.Errorf("%w; its reaction is %q", err, have)
	}
	return err
}

// lines returns the audit log or the service's log.
func (s *scene) lines(which string) string {
	if which == "log" {
		return s.log.String()
	}
	files := []string{filepath.Join(s.dir, "data", "audit.jsonl")}
	if s.pair != nil { // one log per process; an invalid pattern finds nothing
		files, _ = filepath.Glob(filepath.Join(s.files(), ".zephbot", "audit", "*.jsonl"))
	}
	var all strings.Builder
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err == nil { // otherwise it does not exist yet
			all.Write(raw)
		}
	}
	return all.String()
}

func (s *scene) line(which, want string) (bool, error) {
	for line := range strings.Lines(s.lines(which)) {
		if ok, err := matches(strings.TrimSpace(line), want); ok || err != nil {
			return ok, err
		}
	}
	return false, nil
}

// written waits for a line of a log.
func (s *scene) written(which, want string) error {
	err := s.wait(func() (bool, error) { return s.line(which, want) })
	if err != nil && which == "audit" {
		err = fmt.Errorf("%w; the audit log is\n%s", err, s.lines(which))
	}
	return err
}

// notWritten checks that no line of a log matches, once the service is idle.
func (s *scene) notWritten(words []string, rest string) error {
	if len(words) < 3 || (words[1] != "audit" && words[1] != "log") {
		return errors.New("no audit /regexp/, no log /regexp/, or no file PERSON NAME")
	}
	if err := s.idle(); err != nil {
		return err
	}
	ok, err := s.line(words[1], strings.TrimSpace(strings.TrimPrefix(rest, words[1])))
	if ok {
		err = errors.Join(err, errors.New("there is such a line"))
	}
	return err
}

// never checks that a text is in nothing that leaves the service: chats, drafts, logs and the calls to Telegram.
func (s *scene) never(want string) error {
	texts := map[string]string{"audit log": s.lines("audit"), "log": s.lines("log")}
	for name, chat := range s.chats {
		for _, m := range s.bots(chat) {
			texts["chat "+name] += m.Text + "\n"
		}
	}
	for _, c := range s.fake.Calls() {
		for _, v := range c.Params {
			texts["calls"] += v + "\n"
		}
	}
	for where, text := range texts {
		if ok, err := matches(text, want); ok || err != nil {
			return errors.Join(err, fmt.Errorf("it stands in the %s", where))
		}
	}
	return nil
}

// doubled returns the first line of a JSON log that has a field twice, which readers of logs resolve differently; "" =
// none.
func doubled(log string) string {
	for line := range strings.Lines(log) {
		if twice(line) {
			return line
		}
	}
	return ""
}

// twice reports whether a JSON object has a field twice.
func twice(object string) bool {
	d := json.NewDecoder(strings.NewReader(object))
	if first, err := d.Token(); err != nil || first != json.Delim('{') {
		return false
	}
	seen := map[string]bool{}
	for d.More() {
		key, err := d.Token()
		name, ok := key.(string)
		if err != nil || !ok {
			return false
		}
		if seen[name] {
			return true
		}
		seen[name] = true
		var value json.RawMessage
		if d.Decode(&value) != nil {
			return false
		}
	}
	return false
}
