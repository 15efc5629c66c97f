package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/zephbot/zephbot/bot/visible"
	"github.com/zephbot/zephbot/tools/audit"
)

// auditTable prints lines as a table: who did what when, with which result, and who or what allowed it.
type auditTable struct {
	out    io.Writer
	zone   *time.Location
	colour bool
	all    bool // also lines that say nothing about who did what: started, continue
	begun  bool
}

// Widths of the columns, in characters. The last one is as wide as it has to be.
const (
	whoWidth    = 20
	toolWidth   = 18
	whatWidth   = 52
	resultWidth = 10
)

// Colours of results.
const (
	red    = "\x1b[31m"
	yellow = "\x1b[33m"
	dim    = "\x1b[2m"
	plain  = "\x1b[0m"
)

// head prints the names of the columns.
func (t *auditTable) head() error {
	if t.begun {
		return nil
	}
	t.begun = true
	return t.row("", "TIME", "WHO", "TOOL", "WHAT", "RESULT", "ALLOWED OR REFUSED BY")
}

// line prints a line of the log.
func (t *auditTable) line(l *audit.Line) error {
	if !t.all && l.Broken == "" && (l.Kind == "started" || l.Kind == "continue") {
		return nil
	}
	if err := t.head(); err != nil {
		return err
	}
	if l.Broken != "" {
		text := fmt.Sprintf("%s:%d: %s: %s", l.File, l.Number, l.Broken, shortened(string(l.Raw), 2*whatWidth))
		_, err := fmt.Fprintln(t.out, t.paint(red, oneLine(text)))
		return err
	}
	what, result, colour := cells(l)
	return t.row(colour, l.Time.In(t.zone).Format("2006-01-02 15:04:05"), l.Caller, l.Tool, what, result, allowed(l))
}

func (t *auditTable) row(colour, at, who, tool, what, result, by string) error {
	text := fmt.Sprintf(
		"%-19s  %s  %s  %s  %s  %s",
		at,
		cell(who, whoWidth),
		cell(tool, toolWidth),
		cell(what, whatWidth),
		t.paint(colour, cell(result, resultWidth)),
		oneLine(by),
	)
	_, err := fmt.Fprintln(t.out, strings.TrimRight(text, " "))
	return err
}

func (t *auditTable) paint(colour, text string) string {
	if !t.colour || colour == "" {
		return text
	}
	return colour + text + plain
}

// cells returns what a line is about, and how it ended.
func cells(l *audit.Line) (what, result, colour string) {
	switch l.Kind {
	case "":
		return short(l.Args), l.Result, colourOf(l.Result)
	case "started":
		return short(l.Args), "started", dim
	case "egress":
		if l.Request.Blocked != "" {
			return l.Request.Method + " " + l.Request.URL, "blocked", red
		}
		return l.Request.Method + " " + l.Request.URL, strconv.Itoa(l.Request.Status), dim
	case "damage":
		return l.Reason, l.Kind, red
	default:
		return l.Reason, l.Kind, dim
	}
}

func colourOf(result string) string {
	switch result {
	case "success":
		return ""
	case "cancelled", "rollback":
		return yellow
	default:
		return red
	}
}

// allowed returns which rule decided and who approved; without either, why the call did not succeed.
func allowed(l *audit.Line) string {
	text := l.Rule
	if l.ApprovedBy != "" {
		text = strings.TrimPrefix(text+"; approved by "+l.ApprovedBy, "; ")
	}
	if l.Layer != "" {
		text += "; layer " + l.Layer[:min(12, len(l.Layer))] + " applied"
	}
	if text == "" && l.Kind == "" && l.Result != "success" {
		text = l.Reason
	}
	if l.Request.Blocked != "" {
		text = l.Request.Blocked
	}
	return text
}

// short returns the part of arguments that says most: the command, the path, the address; otherwise all of them.
func short(args json.RawMessage) string {
	var fields map[string]json.RawMessage
	if json.Unmarshal(args, &fields) == nil {
		for _, key := range []string{"command", "file_path", "path", "source", "url", "uri", "query", "text"} {
			var text string
			if raw, ok := fields[key]; ok && json.Unmarshal(raw, &text) == nil && text != "" {
				return text
			}
		}
		if len(fields) == 0 {
			return ""
		}
	}
	var text string
	if json.Unmarshal(args, &text) == nil {
		return text
	}
	var b bytes.Buffer
	if json.Compact(&b, args) != nil {
		return string(args)
	}
	return b.String()
}

// cell returns a text in a column.
func cell(text string, width int) string {
	text = shortened(oneLine(text), width)
	return text + strings.Repeat(" ", max(0, width-utf8.RuneCountInString(text)))
}

// oneLine returns a text of others as a terminal may get it, without line breaks.
func oneLine(text string) string {
	return visible.Controls(strings.NewReplacer("\r\n", "⏎", "\n", "⏎", "\t", " ").Replace(text))
}

func shortened(text string, width int) string {
	n := 0
	for i := range text {
		if n == width-1 && utf8.RuneCountInString(text[i:]) > 1 {
			return text[:i] + "…"
		}
		n++
	}
	return text
}
