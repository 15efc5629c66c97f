package offline

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"path"
	"strconv"
	"strings"
	"unicode/utf8"
)

// openMark matches the line that begins text from outside, and the sentences to the model below it.
var openMark = lazyExpression(`<external-data id="([0-9a-f]+)"[^<>\n]*>\n?` +
	`(?:\[(?:What stands between these|Warning: \d+ passage|\d+ invisible character)[^\n]*\]\n)*`)

// withoutMarks removes the marks around text from outside, which are for models. A mark without its end stays.
func withoutMarks(text string) string {
	var b strings.Builder
	for {
		at := openMark().FindStringSubmatchIndex(text)
		if at == nil {
			break
		}
		inside, after, closed := strings.Cut(text[at[1]:], `</external-data id="`+text[at[2]:at[3]]+`">`)
		if !closed {
			b.WriteString(text[:at[1]])
			text = text[at[1]:]
			continue
		}
		b.WriteString(text[:at[0]] + strings.TrimSuffix(inside, "\n"))
		text = after
	}
	b.WriteString(text)
	return b.String()
}

// sentDocument is a document that came with a message.
type sentDocument struct {
	name, text string // text = "": it cannot be read, or is stored beside
	whole      bool
}

// documentRE matches the line above a document: of a message, or of a file that somebody names at a terminal.
var documentRE = lazyExpression(
	`(?m)^\[(?:(?:the person sent|the message replied to has) an? [^,\n]+, stored in the working directory as|` +
		`attached: the file) ("(?:[^"\\\n]|\\.)*")[^\n]*\](?: It begins \(read on with the file tools\):)?$`)

// inputRE matches what a single message at a terminal has below it.
var inputRE = lazyExpression(`(?s)\n\nWhat was on standard input, which is data and not part of my message` +
	`( \(only its beginning\))?:\n` + "`{3,}\n(.*)\n`{3,}" + `\s*$`)

// attachedRE matches the line about what the program could not open.
var attachedRE = lazyExpression(`(?m)^\s*\[attached: ([^\n]*)\]$`)

// takeDocuments separates what a person wrote from the documents that came along.
func takeDocuments(text string) (said string, documents []sentDocument) {
	if m := inputRE().FindStringSubmatchIndex(text); m != nil {
		return text[:m[0]], []sentDocument{{name: "standard input", text: text[m[4]:m[5]], whole: m[2] < 0}}
	}
	places := documentRE().FindAllStringSubmatchIndex(text, -1)
	if places == nil {
		return text, nil
	}
	said = text[:places[0][0]]
	for i, at := range places {
		end := len(text)
		if i+1 < len(places) {
			end = places[i+1][0]
		}
		name, err := strconv.Unquote(text[at[2]:at[3]])
		if err != nil {
			name = strings.Trim(text[at[2]:at[3]], `"`)
		}
		d := sentDocument{name: name}
		head, body := text[at[0]:at[1]], strings.TrimLeft(text[at[1]:end], "\n ")
		if named := strings.HasPrefix(head, "[attached: the file"); named && strings.HasPrefix(body, "<external-data ") {
			d.whole, d.text = strings.HasSuffix(head, "]"), withoutMarks(strings.TrimSpace(body))
			said = strings.ReplaceAll(said, "@"+name, name)
		}
		if rest, ok := strings.CutPrefix(body, "The whole text:"); ok {
			d.whole, d.text = true, withoutMarks(strings.TrimSpace(rest))
		} else if rest, ok := strings.CutPrefix(body, "It begins (read on with the file tools):"); ok {
			d.text = withoutMarks(strings.TrimSpace(rest))
		}
		documents = append(documents, d)
	}
	if said = strings.TrimSpace(said); len(documents) == 1 && said == documents[0].name {
		said = "" // nothing but the file is named
	}
	return said, documents
}

// describeDocument says what is in a document.
func describeDocument(t *tongue, d sentDocument) string {
	name := inlineCode(d.name)
	switch {
	case d.text == "":
		return t.say("I stored %s with the files of this chat, but found no text in it.", name)
	case isTable(d.name):
		return countTable(t, d.name, d.text, d.whole)
	}
	title := "%s has %s and %s. It says:"
	if !d.whole {
		title = "%s has more than %s and %s. It says:"
	}
	title = t.say(title, name, t.count(countLines(d.text), "line"), t.count(len(strings.Fields(d.text)), "word"))
	return titledBlock(t, title, "", languageOf(d.name), d.text)
}

func isTable(name string) bool {
	return strings.EqualFold(path.Ext(name), ".csv") || strings.EqualFold(path.Ext(name), ".tsv")
}

// column is what is known of a column of a table.
type column struct {
	name           string
	filled, number int
	sum, low, high float64
	values         map[string]bool
}

// maxValues is how many different values of a column are counted.
const maxValues = 1000

// countTable counts rows and columns of a CSV, adds up the columns of numbers, and counts the values of the others. The
// first row names the columns.
func countTable(t *tongue, name, text string, whole bool) string {
	r := csv.NewReader(strings.NewReader(text))
	r.FieldsPerRecord, r.LazyQuotes, r.Comma = -1, true, separatorOf(text)
	head, err := r.Read()
	if err != nil {
		return t.say("%s is empty.", inlineCode(name))
	}
	columns := make([]column, len(head))
	for i, title := range head {
		columns[i] = column{name: title, values: map[string]bool{}}
	}
	rows := 0
	for {
		row, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return t.say("I counted %s of %s and stopped there: %s.",
				t.count(rows, "row"), inlineCode(name), err)
		}
		rows++
		for i, value := range row[:min(len(row), len(columns))] {
			columns[i].add(strings.TrimSpace(value))
		}
	}
	title := "%s has %s in %s below the header line:"
	if !whole {
		title = "The beginning of %s has %s in %s below the header line:"
	}
	var b strings.Builder
	b.WriteString(t.say(title, inlineCode(name), t.count(rows, "row"), t.count(len(columns), "column")))
	for i := range columns {
		b.WriteString("\n- " + columns[i].describe(t))
	}
	return b.String()
}

func separatorOf(text string) rune {
	line, _, _ := strings.Cut(text, "\n")
	best, most := ',', 0
	for _, r := range ",;\t" {
		if n := strings.Count(line, string(r)); n > most {
			best, most = r, n
		}
	}
	return best
}

func (c *column) add(value string) {
	if value == "" {
		return
	}
	c.filled++
	if len(c.values) < maxValues {
		c.values[value] = true
	}
	n, err := strconv.ParseFloat(value, 64)
	if err != nil || math.IsNaN(n) || math.IsInf(n, 0) {
		return
	}
	if c.number == 0 {
		c.low, c.high = n, n
	}
	c.number++
	c.sum, c.low, c.high = c.sum+n, min(c.low, n), max(c.high, n)
}

func (c *column) describe(t *tongue) string {
	name := inlineCode(c.name)
	switch {
	case c.filled == 0:
		return t.say("%s: empty", name)
	case c.number == c.filled:
		return t.say("%s: sum %s, from %s to %s", name, shortNumber(c.sum), shortNumber(c.low), shortNumber(c.high))
	case len(c.values) == maxValues:
		return t.say("%s: %d different values or more", name, maxValues)
	default:
		return fmt.Sprintf("%s: %s", name, t.count(len(c.values), "different value"))
	}
}

// shortNumber formats a number with at most two decimals.
func shortNumber(n float64) string {
	s := strconv.FormatFloat(n, 'f', 2, 64)
	return strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
}

func countLines(text string) int { return strings.Count(strings.TrimRight(text, "\n"), "\n") + 1 }

// numberedRE matches the number in front of a line of the tool read.
var numberedRE = lazyExpression(`(?m)^ *\d+\t`)

// languageOf is the name under which code of a file is highlighted; "" = none is known.
func languageOf(name string) string {
	kinds := map[string]string{
		".go": "go", ".py": "python", ".js": "javascript", ".ts": "typescript", ".json": "json", ".sh": "bash",
		".toml": "toml", ".yaml": "yaml", ".yml": "yaml", ".html": "html", ".css": "css", ".sql": "sql", ".rs": "rust",
	}
	return kinds[strings.ToLower(path.Ext(name))]
}

// temporaryFolder is where commands have their temporary files; nobody put it there.
const temporaryFolder = ".tmp"

// describeListing says what is in a folder, as a person would.
func describeListing(t *tongue, folder, text string) string {
	where := t.say("here")
	if folder != "." {
		where = t.say("in %s", inlineCode(folder))
	}
	var folders, files, rest []string
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		label, name, labelled := strings.Cut(line, "]")
		switch name = strings.TrimSpace(name); {
		case line == "" || strings.HasPrefix(line, "Empty directory") || name == temporaryFolder:
		case labelled && label == "[dir":
			folders = append(folders, inlineCode(name+"/"))
		case labelled && (label == "[file" || label == "[symlink" || label == "[other"):
			files = append(files, inlineCode(name))
		default:
			rest = append(rest, line)
		}
	}
	var counts []string
	if len(files) > 0 {
		counts = append(counts, t.count(len(files), "file"))
	}
	if len(folders) > 0 {
		counts = append(counts, t.count(len(folders), "folder"))
	}
	switch {
	case len(counts) == 0 && len(rest) > 0:
		return titledBlock(t, t.say("This is %s:", where), "", "", text)
	case len(counts) == 0:
		return t.say("There is nothing %s yet.", where)
	}
	title := "There are %s %s:"
	if len(files) == 1 || len(files) == 0 && len(folders) == 1 {
		title = "There is %s %s:"
	}
	return t.say(title, strings.Join(counts, t.say(" and ")), where) + "\n- " + strings.Join(append(append(files, folders...), rest...), "\n- ")
}

// shortLine returns the beginning of a text on one line.
func shortLine(text string, most int) string {
	line := strings.Join(strings.Fields(text), " ")
	if utf8.RuneCountInString(line) <= most {
		return line
	}
	return string([]rune(line)[:most]) + "…"
}
