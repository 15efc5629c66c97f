package approval

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/render"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/tools"
)

// Limits of what a card shows itself, in UTF-16 units and lines. A longer command goes out whole as a file: what is approved is always what was shown.
const (
	cardLength = 2800
	cardLines  = 40
	headLines  = 8
	noteLength = 300 // of each sentence around the command
)

// card is the question as a person sees it, with a file in front when the command is too long for it.
func (b *Broker) card(a *bot.Approval) (bot.Content, *bot.File, error) {
	info, err := read(a)
	if err != nil {
		return bot.Content{}, nil, err
	}
	q, w, lang := info.Question, b.deps.Words, info.Language
	c := texts.Card{
		Tool: render.Cut(q.Tool, noteLength), Note: render.Cut(q.Note, noteLength), Reason: render.Cut(q.Reason, noteLength),
		Suspicious: render.Cut(q.Suspicious, noteLength), Steps: info.Steps, USD: info.USD,
		Expires: a.Expires, Short: a.Short, Needed: a.Needed, Votes: len(a.Votes),
	}
	show := shown(q)
	var file *bot.File
	if lines := strings.Count(show, "\n") + 1; lines > cardLines || render.Length(show) > cardLength {
		sum := sha256.Sum256([]byte(show))
		c.FileLines, c.FileHash = lines, hex.EncodeToString(sum[:8])
		file = &bot.File{Name: fileName(q.Tool), Data: []byte(show)}
		show = first(show)
	}
	content := framed(w.CardHead(lang, c), show, w.CardFoot(lang, c))
	once, session, deny := w.Buttons(lang)
	data := func(choice string) string { return "a1:" + a.ID + ":" + choice }
	last := []bot.Button{{Label: deny, Data: data("n"), Style: "danger"}}
	if info.Admin && len(q.Always) > 0 {
		last = append([]bot.Button{{Label: w.AlwaysButton(lang), Data: data(showRule)}}, last...)
	}
	content.Buttons = [][]bot.Button{{{Label: once, Data: data("y"), Style: "success"}, {Label: session, Data: data("s")}}, last}
	return content, file, nil
}

// shown is what is approved, as a person reads it.
func shown(q tools.Question) string {
	if show := strings.TrimRight(q.Show, "\n"); show != "" {
		return show
	}
	return q.Args
}

// record is what the card becomes: the same command, and who decided what, when. No buttons. A question that cannot be read any more can still be ended.
func (b *Broker) record(a *bot.Approval) bot.Content {
	info, err := read(a)
	decision := b.deps.Words.Decided(info.Language, *a)
	if err != nil {
		return bot.Content{Text: a.Tool + "\n" + decision}
	}
	show := shown(info.Question)
	if strings.Count(show, "\n") >= cardLines || render.Length(show) > cardLength {
		show = first(show)
	}
	return framed(render.Cut(info.Question.Tool, noteLength), show, decision)
}

// framed sets text in code between a head and a foot.
func framed(head, code, foot string) bot.Content {
	if code == "" {
		return bot.Content{Text: head + "\n" + foot}
	}
	text := head + "\n" + code + "\n" + foot
	return bot.Content{
		Text:     text,
		Entities: []render.Entity{{Type: "pre", Offset: render.Length(head) + 1, Length: render.Length(code)}},
	}
}

// first is the beginning of a long text, with a sign that more follows.
func first(text string) string {
	lines := strings.SplitN(text, "\n", headLines+1)
	if len(lines) > headLines {
		lines = append(lines[:headLines], "…")
	}
	return render.Cut(strings.Join(lines, "\n"), cardLength/2)
}

func fileName(tool string) string {
	if tool == "bash" {
		return "command.sh.txt"
	}
	return "call.txt"
}
