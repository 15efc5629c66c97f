package document

import (
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"
)

// colours are what programs write to a terminal besides text.
var colours = regexp.MustCompile("\x1b\\[[0-9;?]*[A-Za-z]")

// lines is a text in a notebook: one string, or one a line.
type lines string

// UnmarshalJSON implements json.Unmarshaler.
func (l *lines) UnmarshalJSON(raw []byte) error {
	var one string
	if err := json.Unmarshal(raw, &one); err == nil {
		*l = lines(one)
		return nil
	}
	var many []string
	if err := json.Unmarshal(raw, &many); err == nil {
		*l = lines(strings.Join(many, ""))
	}
	return nil // what is no text is of no interest
}

// notebook is a file of Jupyter (nbformat 4; in 3, cells are in work sheets).
type notebook struct {
	Cells      []notebookCell `json:"cells"`
	Worksheets []struct {
		Cells []notebookCell `json:"cells"`
	} `json:"worksheets"`
	Metadata struct {
		Language struct {
			Name string `json:"name"`
		} `json:"language_info"`
	} `json:"metadata"`
}

type notebookCell struct {
	Type    string           `json:"cell_type"`
	Source  lines            `json:"source"`
	Input   lines            `json:"input"`
	Outputs []notebookOutput `json:"outputs"`
}

type notebookOutput struct {
	Type      string                     `json:"output_type"`
	Text      lines                      `json:"text"`
	Data      map[string]json.RawMessage `json:"data"`
	Name      string                     `json:"ename"`
	Value     string                     `json:"evalue"`
	Traceback []string                   `json:"traceback"`
}

// maxNotebook is how many bytes of a notebook are read; pictures in it may be large.
const maxNotebook = 64 << 20

// readNotebook reads the cells of a notebook with what they print.
func readNotebook(t *text, r io.ReaderAt, size int64) error {
	if size > maxNotebook {
		return fmt.Errorf("%w: more than %d bytes", ErrTooLarge, maxNotebook)
	}
	var n notebook
	if err := json.NewDecoder(io.NewSectionReader(r, 0, size)).Decode(&n); err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	cells := n.Cells
	for _, w := range n.Worksheets {
		cells = append(cells, w.Cells...)
	}
	for i, c := range cells {
		if err := t.add(fmt.Sprintf("[cell %d, %s]\n", i+1, strings.ToValidUTF8(c.Type, ""))); err != nil {
			return err
		}
		source := strings.TrimRight(string(c.Source+c.Input), "\n")
		if c.Type == "code" {
			source = "```" + n.Metadata.Language.Name + "\n" + source + "\n```"
		}
		if err := t.add(source + "\n"); err != nil {
			return err
		}
		for _, o := range c.Outputs {
			if s := strings.TrimRight(o.shown(), "\n"); s != "" {
				if err := t.add("[output]\n" + s + "\n"); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// displayed is the best text of what an output displays.
func (o *notebookOutput) displayed() string {
	for _, kind := range []string{"text/markdown", "text/plain"} {
		var l lines
		if raw, ok := o.Data[kind]; ok && l.UnmarshalJSON(raw) == nil && l != "" {
			return string(l)
		}
	}
	return ""
}

// shown is what an output shows a reader.
func (o *notebookOutput) shown() string {
	if o.Name != "" || o.Type == "error" || o.Type == "pyerr" {
		if len(o.Traceback) > 0 {
			return colours.ReplaceAllString(strings.Join(o.Traceback, "\n"), "")
		}
		return o.Name + ": " + o.Value
	}
	s := colours.ReplaceAllString(string(o.Text), "") + colours.ReplaceAllString(o.displayed(), "")
	for kind := range o.Data {
		if strings.HasPrefix(kind, "image/") {
			return strings.TrimSpace(s + "\n[picture]")
		}
	}
	return s
}
