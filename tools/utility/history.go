package utility

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/zephbot/zephbot/tools"
)

// History is what happened in a turn before a call.
type History struct {
	Calls    int  // without skipped ones
	Repeated bool // the same call was among them
	PutOff   bool // the same call was put off and has not run since
}

// Past is one earlier call of the turn, with its result.
type Past struct {
	Tool string
	Args json.RawMessage // as written by the model, or canonical
	Text string          // of the result
}

// Look returns the History of the earlier calls of the turn, oldest first. If window > 0, it searches the same call
// only among the last window calls.
func Look(past []Past, call *tools.Call, window int) History {
	var h History
	args := canonical(call.Args)
	for i, p := range past {
		ran := !strings.HasPrefix(p.Text, skipped) && !strings.HasPrefix(p.Text, stopped)
		if ran {
			h.Calls++
		}
		if (window > 0 && i < len(past)-window) || p.Tool != call.Tool || !bytes.Equal(canonical(p.Args), args) {
			continue
		}
		switch {
		case ran:
			h.Repeated, h.PutOff = true, false
		case strings.HasPrefix(p.Text, putOff):
			h.PutOff = true
		}
	}
	return h
}

// canonical returns arguments in one form: sorted keys, no white space. Text that is not JSON is returned unchanged.
func canonical(args json.RawMessage) []byte {
	if len(bytes.TrimSpace(args)) == 0 {
		return []byte("{}")
	}
	var v any
	d := json.NewDecoder(bytes.NewReader(args))
	d.UseNumber()
	if d.Decode(&v) != nil {
		return args
	}
	out, err := json.Marshal(v)
	if err != nil {
		return args
	}
	return out
}

// anyTool matches a request for tools in general: "use your tools", "mit einem Werkzeug".
var anyTool = regexp.MustCompile(`(?i)\b(?:use|using|with|call|run|try|invoke|benutze|benutz|verwende|nutze|nimm|mit)\s+` +
	`(?:(?:a|an|any|some|your|the|ein|eine|einem|einen|deine|deinen|die|den|das|irgendein)\s+)?(?:tools?|werkzeuge?n?)\b`)

// verbs match words before a tool's name that make it a request.
var verbs = regexp.MustCompile(`(?i)\b(?:use|using|with|via|call|run|try|invoke|execute|benutze|benutz|verwende|nutze|nimm|mit|per|rufe)\s+` +
	`(?:(?:the|my|your|das|die|den|dem|der)\s+)?(?:(?:tool|werkzeug)\s+)?["'` + "`" + `]?$`)

// nouns match words after a tool's name that make it a request.
var nouns = regexp.MustCompile(`(?i)^["'` + "`" + `]?[\s-]+(?:tool|werkzeug)\b`)

// around is how many bytes next to a name are inspected.
const around = 60

// maxAsk limits how much of a message is inspected.
const maxAsk = 4000

// Explicit reports whether the person asked for this tool, or for tools in general: "use the grep tool", "run bash". A
// word that happens to be a tool's name ("read the file") is not a request.
func Explicit(ask, tool string) bool {
	if len(ask) > maxAsk {
		ask = ask[:maxAsk]
	}
	if anyTool.MatchString(ask) {
		return true
	}
	_, bare, qualified := strings.Cut(tool, ":")
	if explicit(ask, tool) {
		return true
	}
	return qualified && explicit(ask, bare)
}

func explicit(ask, name string) bool {
	if name == "" {
		return false
	}
	lower, name := strings.ToLower(ask), strings.ToLower(name)
	for from := 0; ; {
		i := strings.Index(lower[from:], name)
		if i < 0 {
			return false
		}
		begin, end := from+i, from+i+len(name)
		if word(lower, begin, end) && (verbs.MatchString(lower[max(0, begin-around):begin]) ||
			nouns.MatchString(lower[end:min(len(lower), end+around)])) {
			return true
		}
		from = end
	}
}

// word reports whether text[begin:end] is a word of its own.
func word(text string, begin, end int) bool {
	before, _ := utf8.DecodeLastRuneInString(text[:begin])
	after, _ := utf8.DecodeRuneInString(text[end:])
	return !inWord(before) && !inWord(after)
}

func inWord(r rune) bool {
	return r == '_' || (r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r)))
}
