package web

import (
	"bytes"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/html"
	"golang.org/x/net/html/charset"

	"github.com/zephbot/zephbot/tools"
	textcharset "github.com/zephbot/zephbot/tools/charset"
)

// mediaType returns the type of a page: the declared one, or else the detected one.
func (p *page) mediaType() string {
	if t, _, err := mime.ParseMediaType(p.header); err == nil && t != "" {
		return t
	}
	t, _, err := mime.ParseMediaType(http.DetectContentType(p.body))
	if err != nil {
		return "application/octet-stream"
	}
	return t
}

func isHTML(mediaType string) bool {
	return mediaType == "text/html" || mediaType == "application/xhtml+xml"
}

// isText reports whether a model can read a type as it is.
func isText(mediaType string) bool {
	if strings.HasPrefix(mediaType, "text/") {
		return true
	}
	rest, ok := strings.CutPrefix(mediaType, "application/")
	if !ok {
		return false
	}
	if strings.HasSuffix(rest, "+json") || strings.HasSuffix(rest, "+xml") || strings.HasSuffix(rest, "+yaml") {
		return true
	}
	switch rest {
	case "json", "xml", "javascript", "ecmascript", "yaml", "x-yaml", "toml", "x-ndjson", "jsonlines", "json-seq",
		"graphql", "sql", "x-sh", "x-www-form-urlencoded":
		return true
	}
	return false
}

// xmlEncoding matches the encoding in an XML declaration, which the HTML rules ignore.
var xmlEncoding = regexp.MustCompile(`^\s*<\?xml[^>]*?\sencoding\s*=\s*["']([A-Za-z0-9._:-]+)["']`)

// text decodes the body to UTF-8. The character set comes from the byte order mark, the header, the document, or a
// guess, in this order. Invalid bytes become U+FFFD.
func (p *page) text() (string, error) {
	body := p.body
	enc, name, certain := charset.DetermineEncoding(body, p.header)
	if !certain && name == "windows-1252" { // the guess of last resort, made from only the first kilobyte
		if m := xmlEncoding.FindSubmatch(body[:min(len(body), 1024)]); m != nil {
			if declared, _ := charset.Lookup(string(m[1])); declared != nil {
				enc = declared
			}
		} else if guessed, ok := textcharset.Detect(body, !p.truncated); ok {
			return strings.TrimSuffix(guessed.Decode(body), cutCharacter(p.truncated)), nil
		}
	}
	decoded, err := enc.NewDecoder().Bytes(body)
	if err != nil {
		return "", failed(err, "The text of the page cannot be decoded.", "Use another page.")
	}
	s := strings.ToValidUTF8(string(decoded), "\uFFFD")
	s = strings.TrimPrefix(s, "\uFEFF")
	return strings.TrimSuffix(s, cutCharacter(p.truncated)), nil
}

// cutCharacter is what an incomplete character at the cut of a page becomes.
func cutCharacter(truncated bool) string {
	if truncated {
		return "\uFFFD"
	}
	return ""
}

// parse parses the page as HTML.
func (p *page) parse() (*html.Node, error) {
	text, err := p.text()
	if err != nil {
		return nil, err
	}
	doc, err := html.Parse(strings.NewReader(text))
	if err != nil { // HTML has no syntax errors; only the nesting is limited
		return nil, failed(err, "The page is nested too deeply to be read.", "Use another page.")
	}
	return doc, nil
}

// read is the fetch tool: it returns the page as text.
func (c *client) read(p *page) (*tools.Result, error) {
	mediaType := p.mediaType()
	if len(bytes.TrimSpace(p.body)) == 0 {
		return &tools.Result{Text: fmt.Sprintf("The page is empty (status %d).", p.status)}, nil
	}
	res := &tools.Result{}
	switch {
	case isHTML(mediaType):
		doc, err := p.parse()
		if err != nil {
			return nil, err
		}
		if res.Text, err = markdown(doc, p.url); err != nil {
			return nil, err
		}
		if res.Text == "" {
			res.Text = "The page has no readable text. It may be one that only a browser with scripts can show."
			return res, nil
		}
		res.MIME = "text/markdown"
	case isText(mediaType):
		text, err := p.text()
		if err != nil {
			return nil, err
		}
		if strings.ContainsRune(text, 0) {
			return nil, unreadable("binary data", errors.New("NUL in "+mediaType))
		}
		res.Text = text
		if mediaType != "text/plain" {
			res.MIME = mediaType
		}
	default:
		return nil, unreadable(mediaType, nil)
	}
	res.Text, res.Truncated = cut(res.Text, c.o.MaxBody)
	if res.Truncated || p.truncated {
		res.Text += fmt.Sprintf("\n\n[cut: the page is longer than %d bytes; this is its beginning]", c.o.MaxBody)
	}
	return res, nil
}

// unreadable returns the error for content that is not text. The type is foreign text: it is shown only if it looks
// like a type.
func unreadable(mediaType string, err error) *tools.Error {
	if len(mediaType) > 100 || strings.ContainsFunc(mediaType,
		func(r rune) bool { return r > unicode.MaxASCII || !unicode.IsPrint(r) }) {
		mediaType = "an unknown type"
	}
	return failed(err, "The address leads to "+mediaType+", not to a page of text.",
		"Only HTML, JSON, XML and plain text can be read. Use another page.")
}

// cut limits a text, in bytes, at a character.
func cut(s string, limit int) (string, bool) {
	if len(s) <= limit {
		return s, false
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit], true
}
