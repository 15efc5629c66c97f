package transcript

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/bot/render"
	"github.com/zephbot/zephbot/bot/visible"
)

// call is a call of a tool and what came of it.
type call struct {
	id     string
	tool   string
	args   []string // what it was called with, a text for each argument
	result *journal.Entry
}

// callsOf returns the calls that a model asks for. What shows a plan is none that anybody misses.
func callsOf(e *journal.Entry) (list []call) {
	for i := range e.Uses {
		if u := &e.Uses[i]; !u.Plans {
			list = append(list, call{id: u.Call, tool: u.Name, args: argsOf(u.Args)})
		}
	}
	return list
}

func addResult(calls []call, e *journal.Entry) {
	for i := range calls {
		if calls[i].id == e.Call {
			calls[i].result = e
		}
	}
}

// argsOf returns the arguments of a call as people read them: a text as it is, anything else with its name.
func argsOf(raw json.RawMessage) []string {
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil {
		return []string{string(raw)}
	}
	var list []string
	for _, name := range slices.Sorted(maps.Keys(members)) {
		var text string
		if json.Unmarshal(members[name], &text) != nil {
			text = name + " = " + string(members[name])
		}
		if text != "" {
			list = append(list, text)
		}
	}
	return list
}

// calls writes what tools did, folded.
func (w *writer) calls(list []call) {
	if len(list) == 0 {
		return
	}
	w.raw("<details><summary>")
	w.text(w.Words.TranscriptSteps(w.page.Language, len(list)))
	w.raw("</summary>")
	for i := range list {
		w.call(&list[i])
	}
	w.raw("</details>")
}

func (w *writer) call(c *call) {
	w.raw("<details><summary")
	if c.result == nil || c.result.Failed {
		w.raw(` class="failed"`)
	}
	args := w.Redact(strings.Join(c.args, "\n"))
	first, _, _ := strings.Cut(args, "\n")
	w.raw("><bdi>")
	w.text(render.Cut(visible.Controls(c.tool+" · "+first), maxLine))
	w.raw("</bdi>")
	switch {
	case c.result == nil:
		w.text(" · " + w.words.Open)
	case c.result.Failed:
		w.text(" · " + w.words.Failed)
	}
	w.raw("</summary>")
	w.block(args, maxArgs)
	if c.result != nil {
		w.block(strings.TrimRight(w.Redact(w.Plain(c.result.Text)), "\n"), maxOutput)
	}
	w.raw("</details>")
}

// block writes a text of a machine. What would change the direction of its surroundings is shown as signs.
func (w *writer) block(text string, most int) {
	if text == "" {
		return
	}
	w.raw("<pre>")
	w.text(visible.Controls(render.Cut(text, most)))
	w.raw("</pre>")
}
