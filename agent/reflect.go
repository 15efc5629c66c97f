package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/tools"
)

// maxShownSchema bounds the schema that the model is shown again after a mistake, in bytes.
const maxShownSchema = 2000

// stopAt is the number of steps with mistakes in one turn after which the model is told to stop calling a tool.
const stopAt = 3

// The sentences of a self-reflection (seeds 000 and 003). They follow the error block, which is unchanged.
const (
	reflectOnCall = "\n\nSay in one sentence what was wrong with this call, then make the corrected call."
	reflectOnName = "\n\nSay in one sentence what was wrong with this call, " +
		"then call a tool that you were offered, or answer without it."
	reflectNoMore = "\n\nThis tool has been called wrongly too often in this turn. " +
		"Do not call it again: tell the person what you could not do, and why."
)

// reflectionText returns the text after the error block of a mistake that the model made itself, or "" for any other
// failure, such as a server that is down. failed counts the earlier steps of the turn in which calls of the tool ended
// with such a mistake. It counts steps rather than calls because the model reads the results of a step together and
// could not have corrected itself in between.
func reflectionText(c tools.Category, def tools.Definition, failed int) string {
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
		if schema := compactSchema(def.Schema); schema != "" {
			text += "\nThe schema of its arguments: " + schema
		}
	}
	return text
}

// withoutReflection returns the error block alone. The sentences after it change from step to step even if the mistake
// is the same.
func withoutReflection(e journal.Entry) string {
	if !e.Failed || !tools.Category(e.Category).Quality() {
		return e.Text
	}
	block, _, _ := strings.Cut(e.Text, "\n\n")
	return block
}

// compactSchema writes a schema in one line. If it is too long, it is written without descriptions; if it still is, compact
// returns "", because the model has the schema from the request and half a schema would mislead it.
func compactSchema(schema json.RawMessage) string {
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
	short, err := json.Marshal(withoutDescriptions(tree, false))
	if err != nil || len(short) > maxShownSchema {
		return ""
	}
	return string(short)
}

// withoutDescriptions removes descriptions from a schema. Names of properties are never removed; names reports that the keys of v are
// property names.
func withoutDescriptions(v any, names bool) any {
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
			inner := key == "properties" || key == "patternProperties" || key == "$defs" || key == "definitions"
			out[key] = withoutDescriptions(value, !names && inner)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, value := range v {
			out[i] = withoutDescriptions(value, false)
		}
		return out
	default:
		return v
	}
}

// halfWritten closes the uses that were incomplete when an answer was cut at the token limit. What was written may be
// half a command, so it must not be repaired and run.
func (s *step) halfWritten(ctx context.Context, b *batch) error {
	if b.entry.Reason != journal.ReasonLength {
		return nil
	}
	for _, u := range b.openUses() {
		if b.started[u.Call] || wholeArguments(u, b.entry.Uses) {
			continue
		}
		text := tools.Feedback(&tools.Error{
			Category:   tools.InvalidParameters,
			Message:    "your answer was cut at the token limit before this call was complete, so it was not run",
			Suggestion: "Make the call again, with shorter arguments or in several steps.",
		})
		err := s.appendEntries(ctx, journal.Entry{
			Turn: s.turn.ID, Kind: journal.ResultEntry, At: s.deps.Now(),
			Call: u.Call, Tool: u.Name,
			Text: text, Failed: true, Category: string(tools.InvalidParameters),
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// wholeArguments reports whether the arguments of a use are a complete JSON object. "{}" in the last use counts as incomplete,
// because its arguments may not have started.
func wholeArguments(u journal.Use, uses []journal.Use) bool {
	var object map[string]json.RawMessage
	if json.Unmarshal(u.Args, &object) != nil || object == nil {
		return false
	}
	return len(object) > 0 || u.Call != uses[len(uses)-1].Call
}
