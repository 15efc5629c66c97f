package telegram_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/render"
	"github.com/zephbot/zephbot/bot/telegram"
)

// parted says which part of an answer it is.
type parted struct{}

func (parted) Beginning(_ string, size int64) string   { return fmt.Sprintf("beginning of %d", size) }
func (parted) WholeAnswer(_ string, size int64) string { return fmt.Sprintf("all %d", size) }
func (parted) NoRest(language string) string           { return "no rest, " + language }

// An answer is at most so many messages, whatever it consists of: the first one says that it is only the beginning, the
// last one is a file that has all of it, word for word.
func TestLongAnswersAreFewMessages(t *testing.T) {
	t.Parallel()
	paragraphs, code := strings.Repeat("A sentence of it, with **bold** words. 🙂\n\n", 5000), "```go\n"+strings.Repeat("fmt.Println(1)\n", 14000)+"```"
	group := bot.Place{Channel: telegram.Name, Bot: "1", Surface: bot.SurfaceBot, Chat: "-5", Group: true, Thread: "7"}
	guest := place("11")
	guest.Surface = bot.SurfaceGuest
	for name, test := range map[string]struct {
		text string
		to   bot.Place
		most int
		want int // 0 = as many as it takes
		cut  bool
	}{
		"short":                      {"hi", place("11"), 6, 1, false},
		"as many as may be":          {strings.Repeat("x", 6*render.MaxLength), place("11"), 6, 6, false},
		"one letter more":            {strings.Repeat("x", 6*render.MaxLength+1), place("11"), 6, 6, true},
		"paragraphs, 200 KB":         {paragraphs, place("11"), 6, 6, true},
		"code, 200 KB, in a topic":   {code, group, 6, 6, true},
		"one line, 200 KB":           {strings.Repeat("x", 200<<10), place("11"), 6, 6, true},
		"links":                      {strings.Repeat("[a](https://example.org/"+strings.Repeat("b", 200)+") ", 1000), place("11"), 6, 6, true},
		"the least":                  {paragraphs, place("11"), 2, 2, true},
		"a guest sends one anyway":   {paragraphs, guest, 6, 0, false},
		"any number":                 {paragraphs, place("11"), 0, 0, false},
		"nothing":                    {" \n", place("11"), 6, 0, false},
		"nothing to see, but long":   {strings.Repeat(" \n\n", 90000), place("11"), 6, 0, false},
		"begins with a list of code": {"- a\n\n      b\n" + paragraphs, place("11"), 3, 3, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t, 0)
			c := newClient(t, telegram.Options{Token: w.Token(), APIURL: w.url, MaxParts: test.most, Words: parted{}})
			list := c.Compose(test.text, test.to, "de")
			if test.want > 0 && len(list) != test.want {
				t.Fatalf("%d messages, want %d", len(list), test.want)
			}
			for i := range list {
				if n := render.Length(list[i].Text); n > render.MaxLength {
					t.Errorf("message %d has %d units", i, n)
				}
			}
			if !test.cut {
				for i := range list {
					if list[i].File != nil || strings.Contains(list[i].Text, "beginning of") {
						t.Errorf("message %d of a whole answer: %.40q, file %v", i, list[i].Text, list[i].File)
					}
				}
				return
			}
			last, size := list[len(list)-1], len(test.text)
			if !strings.HasPrefix(list[0].Text, fmt.Sprint("beginning of ", size)) {
				t.Errorf("the first message says %.60q", list[0].Text)
			}
			if last.File == nil || string(last.File.Data) != test.text || last.Text != fmt.Sprint("all ", size) || last.Instead != "no rest, de" {
				t.Errorf("the last message says %q, instead %q, file %t", last.Text, last.Instead, last.File != nil)
			}
			for i := range list[:len(list)-1] {
				if list[i].File != nil || list[i].Instead != "" {
					t.Errorf("message %d has a file", i)
				}
			}
		})
	}
}

// TestLongRepliesAreFewMessages: what is formatted already, such as the reply to a command, is divided as answers are. No
// word is lost, entities go on behind a cut, and the buttons are below the last text.
func TestLongRepliesAreFewMessages(t *testing.T) {
	t.Parallel()
	line := "a line of 🙂 with code.example.org in it\n"
	guest := place("11")
	guest.Surface = bot.SurfaceGuest
	for name, test := range map[string]struct {
		text string
		to   bot.Place
		want int
		file bool
	}{
		"fits":          {strings.Repeat("x", render.MaxLength), place("11"), 1, false},
		"a letter more": {strings.Repeat("x", render.MaxLength+1), place("11"), 2, false},
		"lines":         {strings.Repeat(line, 300), place("11"), 4, false},
		"200 KB":        {strings.Repeat(line, 5000), place("11"), 6, true},
		"a guest":       {strings.Repeat(line, 5000), guest, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t, 0)
			c := newClient(t, telegram.Options{Token: w.Token(), APIURL: w.url, MaxParts: 6, Words: parted{}})
			buttons := [][]bot.Button{{{Label: "more", Data: "m"}}}
			content := bot.Content{Text: test.text, Entities: render.Inert(test.text), Buttons: buttons, Language: "de", Only: "11", Quote: "/tools"}
			list := c.Divide(content, test.to, "de")
			if len(list) != test.want {
				t.Fatalf("%d messages, want %d", len(list), test.want)
			}
			if len(list) == 1 {
				if diff := cmp.Diff(content, list[0]); diff != "" {
					t.Error(diff)
				}
				return
			}
			last, all := len(list)-1, ""
			if test.file {
				if f := list[last].File; f == nil || string(f.Data) != test.text || !strings.HasPrefix(list[0].Text, "beginning of ") {
					t.Errorf("%.40q … %+v", list[0].Text, list[last])
				}
				last--
			}
			for i := range list {
				part := &list[i]
				all += part.Text + "\n"
				if n := render.Length(part.Text); n > render.MaxLength || part.Language != "de" || part.Only != "11" || (part.Quote != "") != (i == 0) || (part.Buttons != nil) != (i == last) {
					t.Errorf("part %d: %d units, %+v", i, n, part.Buttons)
				}
				for _, e := range part.Entities {
					if e.Type != "code" || e.Offset+e.Length > render.Length(part.Text) {
						t.Errorf("part %d: %+v", i, e)
					}
				}
			}
			if got := strings.Fields(all); !test.file && strings.Join(got, "") != strings.Join(strings.Fields(test.text), "") {
				t.Errorf("%d words of %d", len(got), len(strings.Fields(test.text)))
			}
		})
	}
}
