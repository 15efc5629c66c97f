package command

import (
	"strings"

	"github.com/zephbot/zephbot/policy/reason"
)

// handler handles what a command runs besides itself.
type handler func(f *finder, name string, words []word, at place)

// recordCommand records one command and follows what it runs.
func (f *finder) recordCommand(words []word, at place) {
	cmd := f.plainCommand(words)
	cmd.Depth, cmd.Via, cmd.Sets = at.depth, at.via, at.sets
	if f.out.Commands == nil { // most commands end with one of these bytes
		text := f.out.Text
		f.out.Commands = make([]Command, 0, min(64, 1+strings.Count(text, ";")+strings.Count(text, "|")+
			strings.Count(text, "&")/2+strings.Count(text, "\n")))
	}
	f.out.Commands = append(f.out.Commands, cmd)
	index := len(f.out.Commands)
	first := words[0]
	d := f.out.Commands[index-1].judgeOptions()
	f.out.Commands[index-1].Departures = d.found
	if first.mark != 0 && first.mark != MarkTilde {
		f.addIndirect(reason.New(reason.NameExpands, clipText(first.text)))
		f.lastTake = index
		return
	}
	name := strings.ToLower(cmd.Name)
	if usesNetwork(name) {
		f.lastDownload = index
	}
	switch handle := builtinHandler(name); {
	case isShell(name):
		f.followShell(name, words, at)
	case handle != nil:
		handle(f, name, words, at)
	case isOfKind("interpreters", name), isOfKind("interpreters", cutVersion(name)):
		f.recordInterpreter(name, words, at)
	}
	if d.table != nil {
		f.followInner(d, words, at)
	}
}

// plainCommand returns the Command for words.
func (f *finder) plainCommand(words []word) Command {
	text := f.written
	f.written = ""
	dynamic, marked := false, false
	for _, w := range words {
		dynamic = dynamic || w.added || w.isDynamic()
		marked = marked || w.mark != 0
	}
	list := make([]string, 0, len(words))
	for _, w := range words {
		if !w.added {
			list = append(list, w.text)
		}
	}
	if !isSpelledBy(text, list) {
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

// isSpelledBy reports whether a text consists of the words separated by one blank, as most commands do.
func isSpelledBy(text string, words []string) bool {
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

// clipText shortens a text in a reason for a person.
func clipText(text string) string {
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
		return (*finder).followEval
	case "trap":
		return (*finder).followTrap
	case "source", ".":
		return (*finder).recordSource
	case "alias", "hash", "enable", "bind", "complete", "compgen", "fc", "history", "shopt", "jobs":
		return (*finder).changesShell
	case "declare", "typeset", "local", "export", "readonly", "nameref":
		return (*finder).followDeclare
	case "set":
		return (*finder).followSet
	case "read", "mapfile", "readarray", "getopts", "printf", "unset", "let", "test", "[", "wait":
		return (*finder).fillsVariable
	}
	return nil
}
