package chain

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/zephbot/zephbot/policy/lazyregexp"
	"github.com/zephbot/zephbot/tools"
)

// UtilityHistory is what happened in a turn before a call.
type UtilityHistory struct {
	Calls    int  // without skipped ones
	Repeated bool // the same call was among them
	PutOff   bool // the same call was put off and has not run since
}

// PastCall is one earlier call of the turn, with its result.
type PastCall struct {
	Tool string
	Args json.RawMessage // as written by the model, or canonical
	Text string          // of the result
}

// ReadUtilityHistory returns the History of the earlier calls of the turn, oldest first. If window > 0, it searches the
// same call only among the last window calls.
func ReadUtilityHistory(past []PastCall, call *tools.Call, window int) UtilityHistory {
	var h UtilityHistory
	args := canonicalArgs(call.Args)
	for i, p := range past {
		ran := !strings.HasPrefix(p.Text, utilitySkipped) && !strings.HasPrefix(p.Text, utilityStopped)
		if ran {
			h.Calls++
		}
		if (window > 0 && i < len(past)-window) || p.Tool != call.Tool || !bytes.Equal(canonicalArgs(p.Args), args) {
			continue
		}
		switch {
		case ran:
			h.Repeated, h.PutOff = true, false
		case strings.HasPrefix(p.Text, utilityPutOff):
			h.PutOff = true
		}
	}
	return h
}

// canonicalArgs returns arguments in one form: sorted keys, no white space. Text that is
// not JSON is returned unchanged.
func canonicalArgs(args json.RawMessage) []byte {
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
var anyTool = lazyregexp.New(`(?i)\b(?:use|using|with|call|run|try|invoke|benutze|benutz|verwende|nutze|` +
	`nimm|mit)\s+` +
	`(?:(?:a|an|any|some|your|the|ein|eine|einem|einen|deine|deinen|die|den|das|irgendein)\s+)?(?:tools?|` +
	`werkzeuge?n?)\b`)

// askingVerbs match words before a tool's name that make it a request.
var askingVerbs = lazyregexp.New(`(?i)\b(?:use|using|with|via|call|run|try|invoke|execute|benutze|benutz|` +
	`verwende|nutze|nimm|mit|per|rufe)\s+` +
	`(?:(?:the|my|your|das|die|den|dem|der)\s+)?(?:(?:tool|werkzeug)\s+)?["'` + "`" + `]?$`)

// toolNouns match words after a tool's name that make it a request.
var toolNouns = lazyregexp.New(`(?i)^["'` + "`" + `]?[\s-]+(?:tool|werkzeug)\b`)

// askContext is how many bytes next to a name are inspected.
const askContext = 60

// maxAsk limits how much of a message is inspected.
const maxAsk = 4000

// AsksForTool reports whether the person asked for this tool, or for tools in general: "use the grep tool", "run bash".
// A word that happens to be a tool's name ("read the file") is not a request.
func AsksForTool(ask, tool string) bool {
	if len(ask) > maxAsk {
		ask = ask[:maxAsk]
	}
	if anyTool().MatchString(ask) {
		return true
	}
	_, bare, qualified := strings.Cut(tool, ":")
	if asksForName(ask, tool) {
		return true
	}
	return qualified && asksForName(ask, bare)
}

func asksForName(ask, name string) bool {
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
		if isWord(lower, begin, end) && (askingVerbs().MatchString(lower[max(0, begin-askContext):begin]) ||
			toolNouns().MatchString(lower[end:min(len(lower), end+askContext)])) {
			return true
		}
		from = end
	}
}

// isWord reports whether text[begin:end] is a word of its own.
func isWord(text string, begin, end int) bool {
	before, _ := utf8.DecodeLastRuneInString(text[:begin])
	after, _ := utf8.DecodeRuneInString(text[end:])
	return !inWord(before) && !inWord(after)
}

func inWord(r rune) bool {
	return r == '_' || (r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r)))
}
