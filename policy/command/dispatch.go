package command

import (
	"strings"

	"github.com/zephbot/zephbot/policy/reason"
)

// handler handles what a command runs besides itself.
type handler func(f *finder, name string, words []word, at place)

// command records one command and follows what it runs.
func (f *finder) command(words []word, at place) {
	cmd := f.plain(words)
	cmd.Depth, cmd.Via, cmd.Sets = at.depth, at.via, at.sets
	if f.out.Commands == nil { // most commands end with one of these bytes
		text := f.out.Text
		f.out.Commands = make([]Command, 0, min(64, 1+strings.Count(text, ";")+strings.Count(text, "|")+
			strings.Count(text, "&")/2+strings.Count(text, "\n")))
	}
	f.out.Commands = append(f.out.Commands, cmd)
	index := len(f.out.Commands)
	first := words[0]
	d := f.out.Commands[index-1].judge()
	f.out.Commands[index-1].Departures = d.found
	if first.mark != 0 && first.mark != MarkTilde {
		f.indirect(reason.New(reason.NameExpands, clip(first.text)))
		f.lastTake = index
		return
	}
	name := strings.ToLower(cmd.Name)
	if fetches(name) {
		f.lastDownload = index
	}
	switch handle := builtinHandler(name); {
	case shell(name):
		f.shell(name, words, at)
	case handle != nil:
		handle(f, name, words, at)
	case is("interpreters", name), is("interpreters", unversioned(name)):
		f.interpreter(name, words, at)
	}
	if d.table != nil {
		f.follow(d, words, at)
	}
}

// plain returns the Command for words.
func (f *finder) plain(words []word) Command {
	text := f.written
	f.written = ""
	dynamic, marked := false, false
	for _, w := range words {
		dynamic = dynamic || w.added || w.dynamic()
		marked = marked || w.mark != 0
	}
	list := make([]string, 0, len(words))
	for _, w := range words {
		if !w.added {
			list = append(list, w.text)
		}
	}
	if !spells(text, list) {
		text = strings.Join(list, " ")
	}
	cmd := Command{Name: baseName(list[0]), Words: list, Dynamic: dynamic, Text: text}
	if marked {
		cmd.Marks = make([]Mark, len(list))
		for i := range list {
			cmd.Marks[i] = words[i].mark
		}
	}
	return cmd
}

// spells reports whether a text consists of the words separated by one blank, as most commands do.
func spells(text string, words []string) bool {
	for i, w := range words {
		if i > 0 {
			if text == "" || text[0] != ' ' {
				return false
			}
			text = text[1:]
		}
		rest, ok := strings.CutPrefix(text, w)
		if !ok {
			return false
		}
		text = rest
	}
	return text == ""
}

// baseName returns the part of a path after the last slash.
func baseName(path string) string {
	return path[strings.LastIndexByte(path, '/')+1:]
}

// clip shortens a text in a reason for a person.
func clip(text string) string {
	const most = 40
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

// builtinHandler returns the handler of a builtin.
func builtinHandler(name string) handler {
	switch name {
	case "eval":
		return (*finder).eval
	case "trap":
		return (*finder).trap
	case "source", ".":
		return (*finder).source
	case "alias", "hash", "enable", "bind", "complete", "compgen", "fc", "history", "shopt", "jobs":
		return (*finder).changesShell
	case "declare", "typeset", "local", "export", "readonly", "nameref":
		return (*finder).declares
	case "set":
		return (*finder).sets
	case "read", "mapfile", "readarray", "getopts", "printf", "unset", "let", "test", "[", "wait":
		return (*finder).fillsVariable
	}
	return nil
}
