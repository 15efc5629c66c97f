package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/tools"
)

// maxShownSchema bounds the schema that a model is shown once more, in bytes.
const maxShownSchema = 2000

// stopAt is how many steps of a turn a tool may be called wrongly in before the model is told to leave it.
const stopAt = 3

// The sentences of a self-reflection (seeds 000 and 003). The block of the error stands before them, unchanged.
const (
	reflectOnCall = "\n\nSay in one sentence what was wrong with this call, then make the corrected call."
	reflectOnName = "\n\nSay in one sentence what was wrong with this call, then call a tool that you were offered, or answer without it."
	reflectNoMore = "\n\nThis tool has been called wrongly too often in this turn. Do not call it again: tell the person what you could not do, and why."
)

// reflection is what follows on the block of a mistake that the model made itself; "" after every other failure: there
// is nothing to learn from a server that is away. failed counts the earlier steps of the turn in which calls of the
// tool ended with such a mistake: steps, not calls, because the model reads the results of a step together and could
// not have known better in between.
func reflection(c tools.Category, def tools.Definition, failed int) string {
	switch {
	case !c.Quality():
		return ""
	case failed+1 >= stopAt:
		return reflectNoMore
	case c == tools.ToolNotFound:
		return reflectOnName
	}
	text := reflectOnCall
	if failed > 0 {
		if schema := compact(def.Schema); schema != "" {
			text += "\nThe schema of its arguments: " + schema
		}
	}
	return text
}

// withoutReflection is the block alone: the sentences that follow on it change from step to step although the mistake
// is the same.
func withoutReflection(e journal.Entry) string {
	if !e.Failed || !tools.Category(e.Category).Quality() {
		return e.Text
	}
	block, _, _ := strings.Cut(e.Text, "\n\n")
	return block
}

// compact writes a schema in one line; one that is too long without its descriptions, and if that does not help, not at
// all: the model has it from the request, and half a schema would mislead it.
func compact(schema json.RawMessage) string {
	var line bytes.Buffer
	if len(schema) == 0 || json.Compact(&line, schema) != nil {
		return ""
	}
	if line.Len() <= maxShownSchema {
		return line.String()
	}
	var tree any
	d := json.NewDecoder(&line)
	d.UseNumber()
	if d.Decode(&tree) != nil {
		return ""
	}
	short, err := json.Marshal(bare(tree, false))
	if err != nil || len(short) > maxShownSchema {
		return ""
	}
	return string(short)
}

// bare takes what explains out of a schema. Names of properties are kept whatever they are: names says that the keys of
// v are such.
func bare(v any, names bool) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, value := range v {
			switch key {
			case "description", "title", "examples", "$comment", "$schema", "$id":
				if !names {
					continue
				}
			}
			out[key] = bare(value, !names && (key == "properties" || key == "$defs" || key == "definitions" || key == "patternProperties"))
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, value := range v {
			out[i] = bare(value, false)
		}
		return out
	default:
		return v
	}
}

// halfWritten closes the uses of an answer that was cut at the token limit and that were not whole by then: what stands
// there may be half a command, and no mending may complete it.
func (s *step) halfWritten(ctx context.Context, b *batch) error {
	if b.entry.Reason != journal.ReasonLength {
		return nil
	}
	for _, u := range b.open() {
		if b.started[u.Call] || whole(u, b.entry.Uses) {
			continue
		}
		text := tools.Feedback(&tools.Error{
			Category:   tools.InvalidParameters,
			Message:    "your answer was cut at the token limit before this call was complete, so it was not run",
			Suggestion: "Make the call again, with shorter arguments or in several steps.",
		})
		err := s.append(ctx, journal.Entry{
			Turn: s.turn.ID, Kind: journal.ResultEntry, At: s.deps.Now(), Call: u.Call, Tool: u.Name, Text: text, Failed: true, Category: string(tools.InvalidParameters),
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// whole says whether the arguments of a use are a JSON object that was written to its end. Those of the last one may
// not have begun: "{}" stands for none too.
func whole(u journal.Use, uses []journal.Use) bool {
	var object map[string]json.RawMessage
	if json.Unmarshal(u.Args, &object) != nil || object == nil {
		return false
	}
	return len(object) > 0 || u.Call != uses[len(uses)-1].Call
}
