package receipt

import (
	"slices"
	"strings"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/render"
	"github.com/zephbot/zephbot/bot/story"
)

const (
	// outputLength is up to which length output is shown in a message, in UTF-16 units; a file has what is longer.
	outputLength = 3000
	// outputBytes is how much of the output of a turn a file has.
	outputBytes = 1 << 20
	// argsLength is how much is shown of what a tool was called with.
	argsLength = 200
	outputName = "output.txt"
)

// output is what a call has printed.
type output struct{ call, text string }

// outputs lists what the calls of a turn have printed, in their order, as far as the journal has it. Credentials were
// removed from what they printed before it was stored; what a model called them with may have some.
func (d *Receipts) outputs(a *about) []output {
	shown := map[string]string{}
	var list []output
	for i := range a.entries {
		e := &a.entries[i]
		for j := range e.Uses {
			shown[e.Uses[j].Call] = story.ArgsInWords(e.Uses[j].Args)
		}
		text := e.Text
		if d.deps.Plain != nil {
			text = d.deps.Plain(text)
		}
		text = strings.TrimRight(text, "\n")
		if e.Kind != journal.ResultEntry || !e.Ran || strings.TrimSpace(text) == "" {
			continue
		}
		call := e.Tool
		if args := shown[e.Call]; args != "" {
			call += " · " + args
		}
		if d.deps.Redact != nil {
			call, text = d.deps.Redact(call), d.deps.Redact(text)
		}
		list = append(list, output{call, text})
	}
	return list
}

// outputMessage shows what the calls of a turn have printed: as quotes that are opened by a tap, or as a file.
func (d *Receipts) outputMessage(msg *bot.Message, list []output) bot.Content {
	visible := d.deps.Words.Visible(msg.Language)
	content := bot.Content{Language: msg.Language}
	for _, o := range list {
		call, _ := visible.Line(o.call)
		text, _ := visible.Text(o.text)
		if content.Text != "" {
			content.Text += "\n"
		}
		content.Text += render.Cut(call, argsLength) + "\n"
		content.Entities = append(content.Entities, render.Entity{
			Type: "expandable_blockquote", Offset: render.Length(content.Text), Length: render.Length(text),
		})
		content.Text += text
	}
	if render.Length(content.Text) > outputLength {
		return d.outputFile(msg, list)
	}
	quotes := content.Entities
	for _, e := range render.Inert(content.Text) { // a quote is before what is in it
		for len(quotes) > 0 && quotes[0].Offset <= e.Offset {
			quotes = quotes[1:]
		}
		content.Entities = slices.Insert(content.Entities, len(content.Entities)-len(quotes), e)
	}
	return content
}

// outputFile is the file with what the calls of a turn have printed, byte for byte, as much of it as is sensible.
func (d *Receipts) outputFile(msg *bot.Message, list []output) bot.Content {
	var b strings.Builder
	for _, o := range list {
		b.WriteString("# " + strings.ReplaceAll(o.call, "\n", "\n# ") + "\n" + o.text + "\n\n")
	}
	data := b.String()
	if len(data) > outputBytes {
		data = strings.ToValidUTF8(data[:outputBytes], "") + "\n…\n"
	}
	return bot.Content{
		Language: msg.Language, Text: d.deps.Words.OutputFile(msg.Language),
		File: &bot.File{Name: outputName, Type: "text/plain", Data: []byte(data), Document: true},
	}
}
