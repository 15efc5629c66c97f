package prompt

import (
	"strconv"
	"strings"

	"github.com/zephbot/zephbot/agent/llm"
)

// Said returns what a person said, with a line about attachments that cannot be read: parts without content. Parts with
// content are sent to the model as they are.
func Said(text string, parts []llm.Part) string {
	line := attached(parts)
	if line == "" || text == "" {
		return text + line
	}
	return text + "\n" + line
}

// attached describes the parts without content.
func attached(parts []llm.Part) string {
	var things []string
	for i := range parts {
		p := &parts[i]
		if p.Hash != "" {
			continue
		}
		t := "a " + p.Label
		if p.Name != "" {
			t += " named " + strconv.Quote(p.Name)
		}
		if p.Size > 0 {
			t += ", " + Bytes(p.Size)
		}
		if p.Text != "" {
			t += ": " + p.Text
		}
		things = append(things, t)
	}
	switch len(things) {
	case 0:
		return ""
	case 1:
		return "[attached: " + things[0] + "; I cannot open it]"
	default:
		return "[attached: " + strings.Join(things, "; ") + "; I cannot open them]"
	}
}

// Bytes formats a size for people.
func Bytes(n int64) string {
	switch {
	case n < 1000:
		return strconv.FormatInt(n, 10) + " B"
	case n < 999_950: // above, it would round to 1000.0 kB
		return strconv.FormatFloat(float64(n)/1000, 'f', 1, 64) + " kB"
	default:
		return strconv.FormatFloat(float64(n)/1e6, 'f', 1, 64) + " MB"
	}
}
