package dispatch

import (
	"strings"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/bot"
)

// album is some files of one result that are shown together; often there is only one.
type album struct {
	first int // index of the first one in the result
	parts []llm.Part
	bytes int64
}

// albums groups the files of a result. Only what a channel shows alike goes together: pictures, sounds, or documents, in
// the order of the result and within the limits of an album.
func albums(parts []llm.Part) []album {
	var list []album
	for i := range parts {
		p := &parts[i]
		if n := len(list) - 1; n >= 0 && list[n].takes(p) {
			list[n].parts, list[n].bytes = append(list[n].parts, *p), list[n].bytes+p.Size
			continue
		}
		list = append(list, album{first: i, parts: []llm.Part{*p}, bytes: p.Size})
	}
	return list
}

// takes reports whether a file can be added to an album.
func (a *album) takes(p *llm.Part) bool {
	last, next := outgoing(&a.parts[0]), outgoing(p)
	return last.Hash != "" && next.Hash != "" && last.Media() == next.Media() && p.Outgoing == a.parts[0].Outgoing &&
		len(a.parts) < bot.MaxAlbum && a.bytes+p.Size <= bot.MaxAlbumBytes
}

func outgoing(p *llm.Part) bot.File {
	return bot.File{Name: p.Name, Type: p.Type, Hash: p.Hash, Size: p.Size}
}

// made shows files that a tool has made or sends, or says that one could not be kept. What is sent comes with its
// caption only.
func (w *work) made(e *journal.Entry, a album) bot.Content {
	first := &a.parts[0]
	if first.Hash == "" {
		return bot.Content{Text: w.d.parts.Words.NotKept(w.msg.Language, e.Tool, first.Name)}
	}
	names := make([]string, len(a.parts))
	var captions []string
	var content bot.Content
	for i := range a.parts {
		f := outgoing(&a.parts[i])
		if names[i] = f.Name; i == 0 {
			content.File = &f
		} else {
			content.More = append(content.More, f)
		}
		if text := a.parts[i].Text; text != "" {
			captions = append(captions, text)
		}
	}
	content.Text = strings.Join(captions, "\n")
	if content.Text == "" && !first.Outgoing {
		content.Text = e.Tool + " · " + strings.Join(names, ", ")
	}
	return content
}
