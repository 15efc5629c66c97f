package deliver

import (
	"cmp"
	"time"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/render"
)

// form is how much is left of a row that the server refuses permanently: each form omits something more that the server
// may have refused.
type form int

const (
	whole    form = iota
	plainly       // a picture or a sound as a document
	noReply       // answers no message
	unstyled      // without entities
	keyless       // without buttons
	filed         // the text as a document
	sentence      // one sentence that says that something could not be sent
)

// String implements fmt.Stringer.
func (f form) String() string {
	return [...]string{
		"whole", "as a plain document", "without reply", "plain", "without buttons", "as a document", "one sentence",
	}[f]
}

// outgoing is a row that is being sent.
type outgoing struct {
	row      bot.Row
	language string
	form     form
	noTopic  bool      // sent to the chat, not to its topic
	owed     []lost    // the losses that this message reports
	refusal  string    // why it is incomplete
	asked    time.Time // when the last request began
	held     func()    // reserved place in the budget for the next request; nil = wait for one
}

// outgoing prepares a row: in the form that it needed before, and with the report that earlier ones may not have
// arrived.
func (o *Outbox) outgoing(c *chat, it *item, held func()) *outgoing {
	out := &outgoing{row: it.row, language: o.deps.Language(&it.row), held: held}
	if it.noTopic {
		out.leaveTopic()
	}
	for out.form < it.form {
		out.form++
		out.take(out.form, o.deps.Words)
	}
	if p := it.row.Purpose; p == bot.Final || p == bot.Reply {
		o.mu.Lock()
		out.owed = o.lost[c.key]
		o.mu.Unlock()
		if len(out.owed) > 0 && !fits(out.row.Content, o.deps.Words.Lost(out.language, len(out.owed))) {
			out.owed = nil // the next message reports it
		}
	}
	return out
}

// lessen switches to the next form after a refusal. It returns false if there is none left, or the refusal is not due
// to the form.
func (out *outgoing) lessen(words Words, err error) bool {
	outcome := bot.OutcomeOf(err)
	if outcome != bot.Refused && outcome != bot.NoTopic {
		return false
	}
	if outcome == bot.Refused && len(out.row.Content.More) > 0 {
		return false // its files are sent one by one
	}
	out.refusal = problem(err)
	if outcome == bot.NoTopic && out.row.Place.Thread != "" {
		out.leaveTopic()
		return true
	}
	for out.form < sentence {
		out.form++
		if out.take(out.form, words) {
			return true
		}
	}
	return false
}

func (out *outgoing) leaveTopic() {
	out.noTopic = true
	out.row.Place.Thread, out.row.ReplyTo = "", ""
}

// take converts the row to a form; it returns false if that changes nothing.
func (out *outgoing) take(f form, words Words) bool {
	content := &out.row.Content
	if out.row.Place.Guest() && (f == noReply || f == filed) {
		return false // a guest sends text, and only as the answer to a question
	}
	if f != whole {
		content.Rich = nil // it was refused too
	}
	switch f {
	case plainly:
		return plain(content)
	case noReply:
		had := out.row.ReplyTo != ""
		out.row.ReplyTo = ""
		return had
	case unstyled:
		had := len(content.Entities) > 0
		content.Entities = nil
		return had
	case keyless:
		had := len(content.Buttons) > 0
		content.Buttons = nil
		return had
	case filed:
		if content.File != nil || content.Text == "" {
			return false
		}
		content.File = &bot.File{Name: "answer.txt", Data: []byte(content.Text)}
		content.Text = words.AsFile(out.language)
		return true
	case sentence:
		content.File, content.Text = nil, cmp.Or(content.Instead, words.Unsendable(out.language))
		return true
	case whole:
	}
	return false
}

// plain makes a document of a photo or audio; it returns false if there is none.
func plain(content *bot.Content) bool {
	if content.File == nil || content.File.Media() == bot.Plain {
		return false
	}
	file := *content.File
	file.Document, content.File = true, &file
	return true
}

// dressed returns the row as it is sent, with the lines that explain what is special about it.
func (out *outgoing) dressed(words Words) bot.Row {
	row := out.row
	if row.Edit == "" && !row.Doubt.IsZero() && row.Purpose != bot.Question {
		row.Content = marked(row.Content, words.Resent(out.language))
	}
	if out.noTopic {
		row.Content = marked(row.Content, words.NoTopic(out.language))
	}
	if len(out.owed) > 0 {
		row.Content = marked(row.Content, words.Lost(out.language, len(out.owed)))
	}
	return row
}

// lacking returns, for the stored row, why a message is not what it should have been.
func (out *outgoing) lacking() string {
	if out.form == whole && !out.noTopic {
		return ""
	}
	how := out.form.String()
	if out.noTopic {
		how += ", without its topic"
	}
	return "sent " + how + ": " + out.refusal
}

// fits reports whether a line can be added below a content without cutting it.
func fits(content bot.Content, line string) bool {
	return render.Length(content.Text)+render.Length(line)+2 <= room(content)
}
