package memory_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/bottest"
	"github.com/zephbot/zephbot/bot/memory"
	"github.com/zephbot/zephbot/bot/turn"
	"github.com/zephbot/zephbot/tools"
)

// chatter is a random conversation of two people in their private chats and two groups, in which everything is tried to
// learn what is remembered elsewhere.
type chatter struct {
	*rapid.T
	*process
	n      int
	seen   []string // ids that anybody has ever seen
	groups []string
}

// where is the scope of a person in a chat, as a text that is part of all that is remembered there.
func where(person, chat string) string {
	if group, ok := strings.CutPrefix(chat, "-"); ok {
		return "groupword" + group
	}
	return "personword" + person
}

// look checks that nothing of another scope is in what a person reads or the model is shown.
func (c *chatter) look(person, chat, got string) {
	for _, other := range []string{"personword1", "personword2", "groupword5", "groupword6"} {
		if other != c.own(person, chat) && strings.Contains(got, other) {
			c.Fatalf("%s in %s reads %q", person, chat, got)
		}
	}
	for _, m := range idOf.FindAllStringSubmatch(got, -1) {
		c.seen = append(c.seen, m[1])
	}
}

// own is where the memories of a chat were made: a group keeps its own under a new id.
func (c *chatter) own(person, chat string) string {
	return where(person, strings.TrimSuffix(chat, "0"))
}

// from is where a call comes from: a message of the person, a sub-agent, a task at a set time or a server's question,
// in whichever topic or conversation of the chat.
func (c *chatter) from(person, chat string) tools.Origin {
	o := origin(person, chat)
	if topic := rapid.SampledFrom([]string{"0", "7", "8"}).Draw(c.T, "topic"); chat[0] == '-' && topic != "0" {
		o.Session = o.Chat + "/" + topic + "/" + person
	}
	o.Agent = rapid.SampledFrom([]string{"", "", "researcher", "1"}).Draw(c.T, "agent")
	if rapid.IntRange(0, 3).Draw(c.T, "scheduled") == 0 {
		o.Name, o.Turn = "", "schedule-1"
	}
	o.Admin = rapid.Bool().Draw(c.T, "rights")
	return o
}

// step does one thing.
func (c *chatter) step(person, chat string) {
	o := c.from(person, chat)
	word := c.own(person, chat)
	id := "aaaaaaaa"
	if len(c.seen) > 0 {
		id = rapid.SampledFrom(c.seen).Draw(c.T, "id")
	}
	msg := message(person, chat, "tell me about personword1 personword2 groupword5 groupword6 tea")
	switch what := rapid.IntRange(0, 8).Draw(c.T, "what"); what {
	case 0, 1: // says something; a model that means well or not says for whom
		args := map[string]any{"content": fmt.Sprintf("%s likes tea %d", word, c.n)}
		if rapid.Bool().Draw(c.T, "about") {
			args["subject"] = "tea"
		}
		if to := rapid.SampledFrom([]string{"", "me", "chat"}).Draw(c.T, "for"); to != "" {
			args["for"] = to
		}
		if rapid.Bool().Draw(c.T, "replaces") {
			args["replaces"] = id
		}
		c.read(person, chat, o, "memory_save", args)
	case 2:
		c.read(person, chat, o, "memory_search", map[string]any{"query": msg.Text, "limit": 20})
	case 3:
		c.read(person, chat, o, "memory_search", map[string]any{"limit": -7})
	case 4:
		before := c.everything()
		c.read(person, chat, o, "memory_forget", map[string]any{"id": id})
		c.others(before, word)
	case 5:
		c.look(person, chat, c.recall(msg))
	case 6:
		c.look(person, chat, fmt.Sprint(c.command(msg, rapid.SampledFrom([]string{"", "change " + id + " x" + word, "personword1"}).Draw(c.T, "args"), false)))
	default:
		before := c.everything()
		verb := rapid.SampledFrom([]string{"p", "d", "y", "e", "a", "c", "x"}).Draw(c.T, "verb")
		toast, shown := c.press(msg, "k1:"+verb+":"+id+":0", rapid.Bool().Draw(c.T, "admin"))
		c.look(person, chat, toast+fmt.Sprint(shown))
		c.others(before, word)
	}
}

// read calls a tool and checks what it says.
func (c *chatter) read(person, chat string, o tools.Origin, tool string, args map[string]any) {
	c.n++
	res, err := c.again(o, tool, args, fmt.Sprintf("c%d_0", c.n))
	text := fmt.Sprint(err)
	if err == nil {
		text = res.Text
	}
	c.look(person, chat, text)
}

// everything is what is stored.
func (c *chatter) everything() map[string]string {
	list, err := c.store.FactsOf(context.WithoutCancel(c.process.t.Context()), "memory", "", time.Now())
	if err != nil {
		c.Fatal(err)
	}
	all := map[string]string{}
	for _, f := range list {
		all[f.Key] = f.Value
	}
	return all
}

// others checks that nothing but what has word in it was changed.
func (c *chatter) others(before map[string]string, word string) {
	now := c.everything()
	for key, value := range before {
		if now[key] != value && !strings.Contains(value, word) {
			c.Fatalf("%s was changed from elsewhere: %q is %q", key, value, now[key])
		}
	}
}

// move gives a group a new id.
func (c *chatter) move(i int) {
	from := c.groups[i]
	if len(from) > 2 {
		return
	}
	c.groups[i] += "0"
	_, err := c.store.Apply(c.process.t.Context(), &bot.Change{
		Move:  &bot.Move{Channel: "telegram", Bot: "7", From: from, To: c.groups[i]},
		Facts: []bot.Fact{{Bucket: bot.MovedBucket, Key: "telegram/" + c.groups[i], Value: from}},
	})
	if err != nil {
		c.Fatal(err)
	}
	c.Reload()
	c.follow()
}

// TestApart: whatever people and models try, nothing that is remembered in one place is read or changed in another.
func TestApart(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		c := &chatter{T: rt, process: open(t, bottest.New(), nil), groups: []string{"-5", "-6"}}
		for range rapid.IntRange(5, 40).Draw(rt, "steps") {
			person := rapid.SampledFrom([]string{"1", "2"}).Draw(rt, "person")
			chat := rapid.SampledFrom(append([]string{person, person}, c.groups...)).Draw(rt, "chat")
			if rapid.IntRange(0, 15).Draw(rt, "moves") == 0 {
				c.move(rapid.IntRange(0, 1).Draw(rt, "group"))
				continue
			}
			c.step(person, chat)
		}
	})
}

// TestNowhere: where strangers read, or nobody is known to write, nothing is remembered, recalled or shown.
func TestNowhere(t *testing.T) {
	t.Parallel()
	p := open(t, bottest.New(), nil)
	p.save(origin("1", "1"), "likes tea", "")
	for name, change := range map[string]func(*bot.Place){
		"guest":    func(at *bot.Place) { at.Surface = bot.SurfaceGuest },
		"business": func(at *bot.Place) { at.Surface = "biz:x" },
	} {
		for _, chat := range []string{"1", "-5"} {
			msg := message("1", chat, "tea")
			change(&msg.Place)
			o := origin("1", chat)
			o.Chat, o.Private = msg.Place.ChatKey(), false // as the dispatcher says it
			if got := p.recall(msg); got != "" {
				t.Errorf("%s: recalled %q", name, got)
			}
			for tool, args := range map[string]map[string]any{"memory_save": {"content": "x"}, "memory_search": {}, "memory_forget": {"id": "x"}} {
				if res, err := p.call(o, tool, args); err == nil {
					t.Errorf("%s: %s %+v", name, tool, res)
				}
			}
			if got := p.command(msg, "", false); !strings.Contains(got.Text, "nothing in this chat") || len(got.Buttons) > 0 {
				t.Errorf("%s: %+v", name, got)
			}
			if toast, shown := p.press(msg, "k1:c::0", true); toast == "" || shown.Text != "" {
				t.Errorf("%s: %q %+v", name, toast, shown)
			}
		}
	}
	for name, o := range map[string]tools.Origin{
		"nobody": {}, "no caller": {Chat: "telegram/7/bot/-5"}, "no chat": {Caller: "telegram:1"}, "no chat's id": {Caller: "telegram:1", Chat: "telegram/7/bot/"},
		"a part of a key": {Caller: "telegram:1", Chat: "telegram/7"}, "more than a chat": {Caller: "telegram:1", Chat: "telegram/7/bot/-5/0"}, "private without a caller": {Private: true},
		"a sub-agent's id": {Private: true, Caller: "telegram:1/researcher"}, "a chat for a caller": {Private: true, Caller: "telegram/7/bot/-5"},
	} {
		if scope, ok := memory.ScopeOfCall(o); ok {
			t.Errorf("%s has the scope %s", name, scope)
		}
	}
}

// TestOwn: what the person has said themselves needs no approval, however it is put; a single word from elsewhere does.
func TestOwn(t *testing.T) {
	t.Parallel()
	p := open(t, bottest.New(), nil)
	for said, texts := range map[string]map[string]bool{
		"Please remember that I like tea": {
			"The user likes tea": true, "likes tea": true, "I like TEA!": true, "The user likes green tea": false, "The bank is Evil": false,
		},
		"merk dir, dass ich Tee mag": {"Tee mag ich": true, "mag Tee und Kaffee": false},
		"":                           {"likes tea": false},
		"I like tea, not coffee":     {"The user likes tea": true, "The user likes no tea": false},
		"I like tea": {
			"The user does not like tea": false, "The user never likes tea": false, "The user likes tea 👎": false, "The user likes tea 5": false,
			"The user likes tea. " + strings.Repeat("like tea ", 300) + "The bank is Evil": false,
			"喜欢": false, "The user": false, "the user likes tea at http://evil.example": false,
		},
		"tea " + strings.Repeat("somewhere in a long text that I paste here ", 30) + " evil": {"The tea is evil": false, "long text": true},
		"my code is 4711":      {"The user's code is 4711": true, "The user's code is 4712": false, "The code is 4711": true},
		"ich mag keinen Tee":   {"Der Nutzer mag Tee": false, "mag keinen Tee": true},
		"the and of":           {"the": false},
		"запомни: я люблю чай": {"пользователь люблю чай": true, "пользователь любит кофе": false},
	} {
		for text, want := range texts {
			call := &tools.Call{ID: "c", Origin: origin("1", "1"), Said: said, Args: fmt.Appendf(nil, `{"content":%q}`, text), Trail: &tools.Trail{}}
			subject, err := p.tools["memory_save"].Describe(t.Context(), call)
			if err != nil || subject.Own != want || subject.Show != text || subject.Note.String() != "remembered for you alone" {
				t.Errorf("%q, %q: %+v, %v", said, text, subject, err)
			}
		}
	}
}

// TestDesk: /memory in a private chat and in a group.
func TestDesk(t *testing.T) {
	t.Parallel()
	p := open(t, bottest.New(), nil)
	ann := func() *bot.Message { return message("1", "1", "") }
	if got := p.command(ann(), "", false); !strings.HasPrefix(got.Text, "I remember nothing for you yet") || len(got.Buttons) > 0 {
		t.Errorf("%+v", got)
	}
	for i := range 6 {
		p.save(origin("1", "1"), fmt.Sprintf("fact%d", i), "")
	}
	list := p.command(ann(), "", false)
	if len(list.Buttons) != 7 || !strings.Contains(list.Text, "\n5. fact1 (P1, ") {
		t.Errorf("%+v", list)
	}
	_, older := p.press(ann(), button(t, list, "Older ›"), false)
	if !strings.Contains(older.Text, "\n6. fact0 (P1, ") {
		t.Errorf("%+v", older)
	}
	change := button(t, older, "Change 6")
	_, how := p.press(ann(), change, false)
	id := strings.Split(change, ":")[2]
	if !strings.Contains(how.Text, "/memory change "+id+" NEW TEXT") {
		t.Errorf("%+v", how)
	}
	for args, want := range map[string]string{
		"change " + id: "The new text is missing",
		"change " + id + " " + strings.Repeat("x", 5000):      "It has 5000 bytes, at most 4096 are kept.",
		"change " + id + " hunter2":                           "never remember",
		"change " + id + " x \a":                              "plain text",
		"change aaaaaaaa x":                                   "not remembered any more",
		"Change " + strings.ToUpper(id) + "  new fact of old": "I remember instead: new fact of old",
		"delete": "/memory change ID NEW TEXT",
	} {
		if got := p.command(ann(), args, false); !strings.Contains(got.Text, want) {
			t.Errorf("%.30q: %q, want %q", args, got.Text, want)
		}
	}
	if got := p.search(origin("1", "1"), "new"); !strings.Contains(got, "new fact of old") || strings.Contains(p.search(origin("1", "1"), ""), "fact0") {
		t.Errorf("%q", got)
	}
	remove := "k1:d:" + id + ":0"
	_, ask := p.press(ann(), remove, false)
	yes := button(t, ask, "Delete")
	for _, want := range []string{"", "That is not remembered any more. /memory shows what is."} {
		if toast, shown := p.press(ann(), yes, false); toast != want || !strings.Contains(shown.Text, "1. fact5") {
			t.Errorf("%q %+v", toast, shown)
		}
	}
	_, askAll := p.press(ann(), button(t, list, "Delete all…"), false)
	_, none := p.press(ann(), button(t, askAll, "Delete all"), false)
	if !strings.Contains(none.Text, "5 memories deleted") || p.Has(message("1", "1", "x")) && p.recall(message("1", "1", "fact1")) != "" {
		t.Errorf("%+v", none)
	}
	for _, data := range []string{"k1", "k1:y", "k1:p::x", "k1:p::-1", "k1:z::0"} {
		if toast, shown := p.press(ann(), data, true); toast == "" || shown.Text != "" {
			t.Errorf("%s: %q %+v", data, toast, shown)
		}
	}
	p.group()
}

// group: everybody in a group may change a single memory, only admins delete all.
func (p *process) group() {
	p.t.Helper()
	p.save(origin("1", "-5"), "deploys on Fridays", "")
	p.save(origin("1", "-5"), "meets at nine", "")
	bob := func() *bot.Message { return message("2", "-5", "") }
	list := p.command(bob(), "", false)
	if len(list.Buttons) != 2 || !strings.Contains(list.Text, "for you alone is shown only in our private chat") {
		p.t.Errorf("%+v", list)
	}
	for _, data := range []string{"k1:a::0", "k1:c::0"} {
		if toast, _ := p.press(bob(), data, false); !strings.Contains(toast, "for admins") {
			p.t.Errorf("%q", toast)
		}
	}
	if toast, shown := p.press(bob(), strings.Replace(button(p.t, list, "Delete 1"), ":d:", ":y:", 1), false); toast != "" || strings.Contains(shown.Text, "nine") {
		p.t.Errorf("%q %+v", toast, shown)
	}
	if toast, shown := p.press(message("1", "-5", ""), "k1:c::0", true); toast != "" || !strings.Contains(shown.Text, "1 memory deleted") {
		p.t.Errorf("%q %+v", toast, shown)
	}
}

var _ turn.Memory = (*memory.Store)(nil)
