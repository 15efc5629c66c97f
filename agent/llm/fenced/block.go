package fenced

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/zephbot/zephbot/agent/llm"
)

// The info strings that make a block a call, and their tools.
const (
	bashTag    = "bash"
	scrapeTag  = "scrape"
	toolTag    = "tool"
	bashTool   = "bash"
	scrapeTool = "web_scrape"
)

// nameField finds the name in a tool block that cannot be parsed.
var nameField = regexp.MustCompile(`"(?:name|tool_id)"\s*:\s*("(?:[^"\\]|\\.)*")`)

// parseBlock converts a block to uses without ids; at least one.
func parseBlock(tag, body string) []llm.ToolUse {
	switch tag {
	case bashTag:
		return []llm.ToolUse{{Name: bashTool, Args: encodeLine(map[string]string{"command": body})}}
	case scrapeTag:
		return []llm.ToolUse{{Name: scrapeTool, Args: scrapeArgs(body)}}
	default:
		uses, err := readCalls(body)
		if err != nil {
			return []llm.ToolUse{malformedUse(body)}
		}
		return uses
	}
}

// malformedUse is the use for a block that cannot be parsed. The chain rejects its arguments, or its name
// if that cannot be read either.
func malformedUse(body string) llm.ToolUse {
	u := llm.ToolUse{Name: toolTag, Args: rawArgs(body)}
	if found := nameField.FindStringSubmatch(body); found != nil {
		var name string
		if json.Unmarshal([]byte(found[1]), &name) == nil && name != "" {
			u.Name = name
		}
	}
	return u
}

// rawArgs returns arguments as the model wrote them. Empty arguments become an empty object.
func rawArgs(text string) json.RawMessage {
	if strings.TrimSpace(text) == "" {
		return json.RawMessage("{}")
	}
	return json.RawMessage(text)
}

// scrapeArgs reads a scrape block: an object, or lines with a key and a value. Anything else is passed on unchanged.
func scrapeArgs(body string) json.RawMessage {
	if json.Valid([]byte(body)) {
		return rawArgs(body)
	}
	args := map[string]any{}
	for line := range strings.Lines(body) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		key, value, ok := cutLine(line)
		if _, twice := args[key]; !ok || twice {
			return rawArgs(body)
		}
		args[key] = value
		if n, err := strconv.Atoi(value); err == nil && key == "limit" {
			args[key] = n
		}
	}
	return encodeLine(args)
}

// cutLine splits "url: https://…", "url = …" and "url …".
func cutLine(line string) (key, value string, ok bool) {
	for _, key := range []string{"url", "select", "extract", "limit"} {
		rest, found := strings.CutPrefix(line, key)
		if !found || rest == "" || !strings.ContainsAny(rest[:1], ":= \t") {
			continue
		}
		rest = strings.TrimSpace(rest)
		if strings.HasPrefix(rest, ":") || strings.HasPrefix(rest, "=") {
			rest = strings.TrimSpace(rest[1:])
		}
		return key, rest, true
	}
	return "", "", false
}

// readCalls reads a tool block: objects one after another, or in arrays.
func readCalls(body string) ([]llm.ToolUse, error) {
	var uses []llm.ToolUse
	dec := json.NewDecoder(strings.NewReader(body))
	for {
		var value json.RawMessage
		err := dec.Decode(&value)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("read tool block: %w", err)
		}
		list := []json.RawMessage{value}
		if value[0] == '[' {
			if err := json.Unmarshal(value, &list); err != nil {
				return nil, fmt.Errorf("read list of calls: %w", err)
			}
		}
		for _, object := range list {
			u, err := readCall(object)
			if err != nil {
				return nil, err
			}
			uses = append(uses, u)
		}
	}
	if len(uses) == 0 {
		return nil, errors.New("no call in the tool block")
	}
	return uses, nil
}

// readCall reads {"name": …, "arguments": {…}}. Some models write "parameters", as in the catalog, or "tool_id" and
// "params" (seed 002), and some write the arguments as a string of JSON, as OpenAI's API does. If the object has other
// fields, the object itself is passed on as the arguments, so that nothing is lost silently.
func readCall(object json.RawMessage) (llm.ToolUse, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(object, &fields); err != nil {
		return llm.ToolUse{}, fmt.Errorf("read call: %w", err)
	}
	var u llm.ToolUse
	name, _ := firstField(fields, "name", "tool_id")
	if err := json.Unmarshal(name, &u.Name); err != nil || u.Name == "" {
		return llm.ToolUse{}, errors.New("the call has no name")
	}
	args, given := firstField(fields, "arguments", "parameters", "params")
	known := 1
	if given {
		known++
	}
	var text string
	switch {
	case len(fields) != known:
		u.Args = object
	case len(args) == 0 || string(args) == "null":
		u.Args = json.RawMessage("{}")
	case json.Unmarshal(args, &text) == nil:
		u.Args = rawArgs(text)
	default:
		u.Args = args
	}
	return u, nil
}

// firstField returns the value of the first field that exists.
func firstField(fields map[string]json.RawMessage, names ...string) (json.RawMessage, bool) {
	for _, name := range names {
		if value, ok := fields[name]; ok {
			return value, true
		}
	}
	return nil, false
}

// renderUse writes a block that parse reads as u, in the shortest form that preserves name and arguments.
func renderUse(u llm.ToolUse) string {
	args := rawArgs(string(u.Args))
	var compact bytes.Buffer
	if json.Compact(&compact, args) == nil {
		args = unescapeHTML(compact.Bytes())
	}
	named := func(arguments json.RawMessage) string {
		return string(encodeLine(struct {
			Name      string          `json:"name"`
			Arguments json.RawMessage `json:"arguments"`
		}{u.Name, arguments}))
	}
	type form struct{ tag, body string }
	var forms []form
	if u.Name == bashTool {
		var in struct {
			Command string `json:"command"`
		}
		if json.Unmarshal(args, &in) == nil {
			forms = append(forms, form{bashTag, in.Command})
		}
	}
	if u.Name == scrapeTool {
		forms = append(forms, form{scrapeTag, string(args)})
	}
	if json.Valid(args) {
		forms = append(forms, form{toolTag, named(args)})
	}
	forms = append(forms, form{toolTag, string(args)})
	for _, f := range forms {
		if readsAs(f.tag, f.body, u.Name, args) {
			return fenceBlock(f.tag, f.body)
		}
	}
	return fenceBlock(toolTag, named(encodeLine(string(args))))
}

// readsAs reports whether a block is parsed as exactly this call.
func readsAs(tag, body, name string, args []byte) bool {
	if strings.Contains(body, "\r") || !utf8.ValidString(body) {
		return false
	}
	uses := parseBlock(tag, body)
	return len(uses) == 1 && uses[0].Name == name && sameArguments(uses[0].Args, args)
}

// sameArguments compares arguments: as JSON if possible, else byte by byte.
func sameArguments(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	x, errX := decodeValue(a)
	y, errY := decodeValue(b)
	return errX == nil && errY == nil && reflect.DeepEqual(x, y)
}

func decodeValue(data []byte) (any, error) {
	if !json.Valid(data) {
		return nil, errors.New("not JSON")
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber() // large numbers are not rounded
	var v any
	err := dec.Decode(&v)
	return v, err //nolint:wrapcheck // used only to detect an error
}

// unescapeHTML undoes the escaping of <, > and & that Go's encoder writes into stored arguments.
func unescapeHTML(data []byte) []byte {
	out := make([]byte, 0, len(data))
	for i := 0; i < len(data); i++ {
		if data[i] != '\\' || i+1 == len(data) {
			out = append(out, data[i])
			continue
		}
		switch rest := data[i:]; {
		case bytes.HasPrefix(rest, []byte(`\u003c`)):
			out = append(out, '<')
			i += 5
		case bytes.HasPrefix(rest, []byte(`\u003e`)):
			out = append(out, '>')
			i += 5
		case bytes.HasPrefix(rest, []byte(`\u0026`)):
			out = append(out, '&')
			i += 5
		default: // not one of these escapes
			out = append(out, data[i], data[i+1])
			i++
		}
	}
	return out
}

// fenceBlock fences a body with more backticks than it contains in a row.
func fenceBlock(tag, body string) string {
	longest, run := 2, 0
	for i := range len(body) {
		if body[i] != '`' {
			run = 0
			continue
		}
		run++
		longest = max(longest, run)
	}
	marks := strings.Repeat("`", longest+1)
	if body != "" {
		body += "\n"
	}
	return marks + tag + "\n" + body + marks
}

// encodeLine writes JSON on one line, with <, > and & unescaped.
func encodeLine(value any) json.RawMessage {
	text, err := llm.PlainJSON(value)
	if err != nil {
		return json.RawMessage("{}") // unreachable: only strings, numbers and valid JSON are encoded
	}
	return text
}
