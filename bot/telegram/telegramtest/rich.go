package telegramtest

import (
	"bytes"
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"github.com/go-telegram/bot/models"
)

// The limits of rich messages (Bot API 10.1).
const (
	maxRichChars   = 32768
	maxRichBlocks  = 500 // with nested ones, rows and items
	maxRichLevels  = 16
	maxRichColumns = 20
)

// sendRichMessage sends a message made of blocks. Messages in HTML and Markdown are refused: this server does not parse
// the dialects of rich messages.
func sendRichMessage(s *Server, r *request) (any, *apiError) {
	c, fail := s.readable(r)
	if fail != nil {
		return nil, fail
	}
	if s.noRich {
		return nil, &apiError{code: 404, text: "Not Found"}
	}
	var input struct {
		Blocks []json.RawMessage `json:"blocks"`
		Skip   bool              `json:"skip_entity_detection"`
		RTL    bool              `json:"is_rtl"`
	}
	if err := strictly([]byte(r.text("rich_message")), &input); err != nil {
		return nil, badRequest("can't parse rich message JSON object")
	}
	v := &richReader{}
	v.blocks(input.Blocks, 1)
	switch {
	case v.fail != nil:
		return nil, v.fail
	case strings.TrimSpace(v.text.String()) == "":
		return nil, badRequest("rich message must be non-empty")
	case units(v.text.String()) > maxRichChars:
		return nil, badRequest("rich message is too long")
	case v.count > maxRichBlocks:
		return nil, badRequest("too many blocks in the rich message")
	}
	return s.send(c, r, models.Message{Text: strings.TrimSpace(v.text.String()), RichMessage: &models.RichMessage{}})
}

// strictly decodes JSON without unknown fields.
func strictly(raw []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	return d.Decode(into)
}

// richReader checks blocks and collects their text.
type richReader struct {
	text  strings.Builder
	count int
	fail  *apiError
}

func (v *richReader) refuse(text string) {
	if v.fail == nil {
		v.fail = badRequest(text)
	}
}

func (v *richReader) blocks(list []json.RawMessage, level int) {
	if level > maxRichLevels {
		v.refuse("rich message is nested too deep")
	}
	for _, raw := range list {
		if v.fail != nil {
			return
		}
		v.count++
		v.block(raw, level)
		v.text.WriteByte('\n')
	}
}

// block checks one block: each kind has its own fields, and others are errors.
func (v *richReader) block(raw json.RawMessage, level int) {
	var kind struct {
		Type string `json:"type"`
	}
	if json.Unmarshal(raw, &kind) != nil {
		v.refuse("can't parse rich block")
		return
	}
	switch kind.Type {
	case "paragraph", "heading", "pre", "mathematical_expression", "divider":
		v.simple(raw, kind.Type)
	case "blockquote":
		var b struct {
			Type   string            `json:"type"`
			Blocks []json.RawMessage `json:"blocks"`
		}
		if strictly(raw, &b) != nil || len(b.Blocks) == 0 {
			v.refuse("can't parse rich block blockquote")
		}
		v.blocks(b.Blocks, level+1)
	case "list":
		v.list(raw, level)
	case "table":
		v.table(raw)
	default:
		v.refuse("unsupported rich block type")
	}
}

// simple checks a block without others in it.
func (v *richReader) simple(raw json.RawMessage, kind string) {
	var b struct {
		Type       string          `json:"type"`
		Text       json.RawMessage `json:"text"`
		Size       *int            `json:"size"`
		Language   *string         `json:"language"`
		Expression *string         `json:"expression"`
	}
	err := strictly(raw, &b)
	wants := map[string][4]bool{
		// text, size, language allowed, expression
		"paragraph":               {true},
		"heading":                 {true, true},
		"pre":                     {true, false, true},
		"mathematical_expression": {false, false, false, true},
	}[kind]
	has := [4]bool{b.Text != nil, b.Size != nil, b.Language != nil, b.Expression != nil}
	if err != nil || has[0] != wants[0] || has[1] != wants[1] || has[2] && !wants[2] || has[3] != wants[3] ||
		b.Size != nil && (*b.Size < 1 || *b.Size > 6) || b.Expression != nil && *b.Expression == "" {
		v.refuse("can't parse rich block " + kind)
		return
	}
	if b.Text != nil {
		v.said(b.Text)
	}
	if b.Expression != nil {
		v.text.WriteString(*b.Expression)
	}
}

func (v *richReader) list(raw json.RawMessage, level int) {
	var b struct {
		Type  string `json:"type"`
		Items []struct {
			Blocks  []json.RawMessage `json:"blocks"`
			Box     bool              `json:"has_checkbox"`
			Checked bool              `json:"is_checked"`
			Value   *int              `json:"value"`
			Type    string            `json:"type"`
		} `json:"items"`
	}
	if strictly(raw, &b) != nil || len(b.Items) == 0 {
		v.refuse("can't parse rich block list")
		return
	}
	for _, item := range b.Items {
		v.count++
		if len(item.Blocks) == 0 || item.Checked && !item.Box ||
			!slices.Contains([]string{"", "a", "A", "i", "I", "1"}, item.Type) {
			v.refuse("can't parse rich block list item")
		}
		v.blocks(item.Blocks, level+1)
	}
}

func (v *richReader) table(raw json.RawMessage) {
	var b struct {
		Type  string `json:"type"`
		Cells [][]struct {
			Text   json.RawMessage `json:"text"`
			Header bool            `json:"is_header"`
			Align  string          `json:"align"`
			Valign string          `json:"valign"`
		} `json:"cells"`
		Bordered bool `json:"is_bordered"`
	}
	if strictly(raw, &b) != nil || len(b.Cells) == 0 {
		v.refuse("can't parse rich block table")
		return
	}
	for _, row := range b.Cells {
		v.count++
		if len(row) == 0 || len(row) > maxRichColumns || len(row) != len(b.Cells[0]) {
			v.refuse("wrong number of table columns")
		}
		for _, cell := range row {
			if !slices.Contains([]string{"left", "center", "right"}, cell.Align) ||
				!slices.Contains([]string{"top", "middle", "bottom"}, cell.Valign) {
				v.refuse("can't parse rich table cell")
			}
			if cell.Text != nil {
				v.said(cell.Text)
			}
			v.text.WriteString(" | ")
		}
		v.text.WriteByte('\n')
	}
}

// richSpan is a formatted text.
type richSpan struct {
	Type       string          `json:"type"`
	Text       json.RawMessage `json:"text"`
	URL        string          `json:"url"`
	Expression string          `json:"expression"`
}

// said reads a RichText: a string, a list, or a formatted text.
func (v *richReader) said(raw json.RawMessage) {
	var text string
	var list []json.RawMessage
	var span richSpan
	switch {
	case json.Unmarshal(raw, &text) == nil:
		v.text.WriteString(text)
	case json.Unmarshal(raw, &list) == nil:
		for _, e := range list {
			v.said(e)
		}
	case strictly(raw, &span) != nil:
		v.refuse("can't parse rich text")
	default:
		v.span(&span)
	}
}

// span reads a formatted text: each kind has its own fields.
func (v *richReader) span(s *richSpan) {
	has := [3]bool{s.Text != nil, s.URL != "", s.Expression != ""}
	wants, known := map[string][3]bool{
		"bold":                    {true},
		"italic":                  {true},
		"underline":               {true},
		"strikethrough":           {true},
		"spoiler":                 {true},
		"code":                    {true},
		"url":                     {true, true},
		"mathematical_expression": {false, false, true},
	}[s.Type]
	switch {
	case !known || has != wants || s.URL != "" && !address(s.URL):
		v.refuse("can't parse rich text entity")
	case s.Text != nil:
		v.said(s.Text)
	default:
		v.text.WriteString(s.Expression)
	}
}

func address(raw string) bool {
	u, err := url.Parse(raw)
	return err == nil && u.Scheme != ""
}

// NoRich makes the server one of before Bot API 10.1, which does not know rich messages.
func (s *Server) NoRich() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.noRich = true
}
