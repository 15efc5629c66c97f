package code

import (
	"encoding/json"
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

// location is a place that a language server names.
type location struct {
	path      string
	line, end int // line is -1 if only the file is named
	symbol    string
	content   string // of the line, without the white space around it; "" = the server does not say
}

// The forms in which servers write places.
var (
	inBackticks = regexp.MustCompile("^\\s*(\\S+) \\([^()`]* in `([^`]+)`\\)\\s*$") // Name (Function in `/path`)
	locatedIn   = regexp.MustCompile(`(?i)^\s*(?:located in the )?file: (.+)$`)
	onLine      = regexp.MustCompile("(?i)\\bon line (\\d+)(?:, which has content `(.*)`)?")
	pathLine    = regexp.MustCompile(`(?:file://)?((?:/|\./|[\w.-]+/)?[^\s:"'` +
		"`" + `()\[\]]*\.[A-Za-z]\w{0,9})(?:#L|:)(\d+)`)
)

// maxAnswer limits how much of an answer is read, in bytes.
const maxAnswer = 512 << 10

// parseLocations reads the places in an answer of a language server: JSON with the locations of the protocol, or text.
func parseLocations(text string) []location {
	text = text[:min(len(text), maxAnswer)]
	if start := strings.IndexAny(text, "[{"); start >= 0 {
		var value any
		if json.NewDecoder(strings.NewReader(text[start:])).Decode(&value) == nil {
			var out []location
			walkJSON(value, location{line: -1}, 0, &out)
			if len(out) > 0 {
				return out
			}
		}
	}
	var out []location
	pending := ""
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		if len(out) >= maxServerHits {
			break
		}
		if m := locatedIn.FindStringSubmatch(line); m != nil {
			pending = filePath(strings.Trim(m[1], "`\" "))
			continue
		}
		if m := onLine.FindStringSubmatch(line); m != nil && pending != "" {
			out = append(out, location{path: pending, line: parseNumber(m[1]), content: strings.TrimSpace(m[2])})
			pending = ""
			continue
		}
		if m := inBackticks.FindStringSubmatch(line); m != nil {
			out = append(out, location{path: filePath(m[2]), line: -1, symbol: m[1]})
			continue
		}
		for _, m := range pathLine.FindAllStringSubmatch(line, 4) {
			out = append(out, location{path: filePath(m[1]), line: parseNumber(m[2])})
		}
	}
	return out
}

func parseNumber(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 || n > 1<<30 {
		return 0
	}
	return n
}

// filePath returns the path in a URI, or the path itself.
func filePath(s string) string {
	if !strings.HasPrefix(s, "file:") {
		return s
	}
	u, err := url.Parse(s)
	if err != nil {
		return ""
	}
	return u.Path
}

// walkJSON collects the places in a value. What an outer object says holds for the inner ones.
func walkJSON(value any, around location, depth int, out *[]location) {
	if depth > 12 || len(*out) >= maxServerHits {
		return
	}
	switch v := value.(type) {
	case []any:
		for _, item := range v {
			walkJSON(item, around, depth+1, out)
		}
	case map[string]any:
		here := describedBy(v, around)
		if here.path != "" && here.line >= 0 {
			*out = append(*out, here)
			return
		}
		before := len(*out)
		for _, key := range []string{
			"location", "locations", "references", "symbols", "results", "items", "definitions", "content",
			"structuredContent",
		} {
			walkJSON(v[key], here, depth+1, out)
		}
		if len(*out) == before && here.path != "" && here.symbol != "" {
			*out = append(*out, here)
		}
	}
}

// describedBy returns the place that an object describes, in addition to what the objects around it say.
func describedBy(v map[string]any, here location) location {
	for _, key := range []string{"uri", "targetUri", "file", "file_path", "path"} {
		if s, ok := v[key].(string); ok {
			here.path = filePath(s)
		}
	}
	if s, ok := v["name"].(string); ok {
		here.symbol = s
	}
	for _, key := range []string{"range", "targetSelectionRange", "selectionRange"} {
		if r, ok := v[key].(map[string]any); ok {
			here.line, here.end = lineIn(r["start"]), lineIn(r["end"])+1
		}
	}
	if here.line < 0 {
		here.line = lineIn(v)
	}
	return here
}

// lineIn returns the line of a position of the protocol; -1 = it has none.
func lineIn(position any) int {
	p, ok := position.(map[string]any)
	if !ok {
		return -1
	}
	n, ok := p["line"].(float64)
	if !ok {
		return -1
	}
	return int(min(max(n, 0), 1<<30))
}
