package apptest

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"
	"unicode/utf16"

	"github.com/pelletier/go-toml/v2"
	"golang.org/x/tools/txtar"

	"github.com/zephbot/zephbot/bot/telegram/telegramtest"
	"github.com/zephbot/zephbot/bot/texts/languages"
)

// PlayElsewhere plays a scenario with people whose clients all have another language, and returns what the bot has said
// of its own accord: every text, caption, label and answer to a press that it sent, without what is formatted as code
// and without lines of the scenario itself, such as answers of the model. What the lines of the chat expect is said in
// another language, so they are only waited for; a scenario that cannot go on ends early.
func PlayElsewhere(t *testing.T, archive *txtar.Archive, language string) []string {
	t.Helper()
	s := &scene{language: language}
	s.open(t, archive)
	defer s.close()
	if !strings.Contains(s.extra, "language =") {
		s.extra += "\n[telegram]\nlanguage = \"" + language + "\"\n"
	}
	s.start()
	for _, line := range s.chat() {
		if err := s.act(line); err != nil {
			break
		}
	}
	if p := s.fake.Problems(); len(p) > 0 {
		t.Errorf("misuse of the fake: %v", p)
	}
	return s.own()
}

// Patience in another language: of a line that does something, and of one that only looks.
const (
	actPatience  = 3 * time.Second
	lookPatience = 300 * time.Millisecond
)

// patience limits one wait.
func (s *scene) patience() time.Duration {
	switch {
	case s.language == "":
		return patience
	case s.looking:
		return lookPatience
	default:
		return actPatience
	}
}

// looks are the verbs of lines that only look at what was said.
var looks = regexp.MustCompile(
	`^(to|looks|attached|buttons|card|draft|growing|silent)@|^(toast|never|no|audit|log|file|hit|until)\b`,
)

// act plays a line as far as it does something.
func (s *scene) act(line string) error {
	if m := botLine.FindStringSubmatch(line); m != nil {
		return s.hear(s.chats[m[1]], m[3])
	}
	if looks.MatchString(line) {
		s.looking = true
		_ = s.do(line) // it waits for what must come before the next line, and may have nothing to find
		s.looking = false
		return nil
	}
	return s.do(line)
}

// grown is how long a text stays as it is that no longer grows.
const grown = 200 * time.Millisecond

// hear waits for the next message of the bot: the expected one, or one in its own words.
func (s *scene) hear(chat int64, want string) error {
	var m telegramtest.Shown
	var since time.Time
	said := ""
	err := s.wait(func() (bool, error) {
		var ok bool
		if m, ok = s.next(chat); !ok {
			return false, nil
		}
		if ok, err := matches(m.Text, want); ok || err != nil {
			return ok, err
		}
		if m.Text != said {
			said, since = m.Text, time.Now()
		}
		return time.Since(since) >= grown, nil
	})
	if err == nil {
		s.look(chat, m.MessageID)
	}
	return err
}

// own returns what the bot said of its own accord, line by line.
func (s *scene) own() []string {
	var script strings.Builder
	for _, text := range s.parts {
		script.WriteString(letters(plain(text)) + " ")
	}
	scripted := script.String()
	var list []string
	for _, call := range s.fake.Calls() {
		for _, text := range spoken(call) {
			for i, line := range text.lines {
				if strings.TrimSpace(line) != "" && !strings.Contains(scripted, letters(line)) {
					list = append(list, ours(text.prose[i], scripted))
				}
			}
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// ours returns a line without words of the scenario that follow a colon.
func ours(line, scripted string) string {
	for i := range line {
		if rest, ok := strings.CutPrefix(line[i:], ": "); ok && strings.Contains(scripted, letters(rest)) {
			return line[:i]
		}
	}
	return line
}

// letters are the words of a text without everything that formatting adds or takes away.
func letters(text string) string {
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r)
	}), " ")
}

// utterance is a text that people read, by lines: all of it, and without what is code.
type utterance struct{ lines, prose []string }

// spoken returns the texts of a call that people read.
func spoken(call telegramtest.Call) []utterance {
	var list []utterance
	for _, name := range []string{"text", "caption"} {
		if text := call.Params[name]; text != "" {
			prose := uncoded(text, call.Params[strings.TrimPrefix(name+"_entities", "text_")])
			list = append(list, utterance{lines: strings.Split(text, "\n"), prose: strings.Split(prose, "\n")})
		}
	}
	var markup struct {
		Rows [][]struct {
			Text string `json:"text"`
		} `json:"inline_keyboard"`
	}
	if json.Unmarshal([]byte(call.Params["reply_markup"]), &markup) == nil {
		for _, row := range markup.Rows {
			for _, b := range row {
				list = append(list, utterance{lines: []string{b.Text}, prose: []string{b.Text}})
			}
		}
	}
	return list
}

// uncoded removes what is code from a text.
func uncoded(text, entities string) string {
	var list []struct {
		Type           string
		Offset, Length int
	}
	if json.Unmarshal([]byte(entities), &list) != nil {
		return text
	}
	units := utf16.Encode([]rune(text))
	for _, e := range list {
		if e.Type != "pre" && e.Type != "code" || e.Offset+e.Length > len(units) {
			continue
		}
		for i := range units[e.Offset : e.Offset+e.Length] {
			if units[e.Offset+i] != '\n' {
				units[e.Offset+i] = '·'
			}
		}
	}
	return string(utf16.Decode(units))
}

// sentences returns, by name, what the sentences of a language can become.
var sentences = func() func(language string) map[string]*regexp.Regexp {
	read := map[string]func() map[string]*regexp.Regexp{}
	for _, tag := range languages.Tags() {
		read[tag] = sync.OnceValue(func() map[string]*regexp.Regexp {
			content, list := map[string]any{}, map[string]*regexp.Regexp{}
			data, err := fs.ReadFile(languages.Files, tag+".toml")
			if err == nil && toml.Unmarshal(data, &content) == nil {
				flatten("", content, list)
			}
			return list
		})
	}
	return func(language string) map[string]*regexp.Regexp { return read[language]() }
}()

func flatten(at string, part any, list map[string]*regexp.Regexp) {
	switch part := part.(type) {
	case string:
		list[at] = pattern(part)
	case map[string]any:
		for name, inner := range part {
			flatten(at+"."+name, inner, list)
		}
	}
}

// blank is what a sentence leaves open.
var blank = regexp.MustCompile(`%(\[\d+\])?[a-z]`)

// pattern matches what a sentence can become; one that is nothing but what it leaves open matches nothing.
func pattern(sentence string) *regexp.Regexp {
	parts := blank.Split(sentence, -1)
	if strings.TrimSpace(strings.Join(parts, "")) == "" {
		return regexp.MustCompile(`^$`)
	}
	for i := range parts {
		parts[i] = regexp.QuoteMeta(parts[i])
	}
	return regexp.MustCompile(fmt.Sprintf(`(?s)^(?:\d+\. )?%s$`, strings.Join(parts, ".+")))
}

// translated reports whether a label of a button says what an English one does.
func (s *scene) translated(label, english string) bool {
	theirs := sentences(s.language)
	for name, ours := range sentences(languages.Standard) {
		if their, ok := theirs[name]; ok && ours.MatchString(english) && their.MatchString(label) {
			return true
		}
	}
	return false
}
