package document

import (
	"bufio"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net/mail"
	"net/textproto"
	"strings"

	htmlcharset "golang.org/x/net/html/charset"

	"github.com/zephbot/zephbot/tools/charset"
	"github.com/zephbot/zephbot/tools/web"
)

// message reads a mail (RFC 5322 and 2045 to 2047).
type message struct {
	t     *text
	depth int
	parts int
	files []string
}

// Bounds of a mail.
const (
	maxParts     = 1000
	maxNested    = 16
	maxPartBytes = 8 << 20
)

// readMail reads what a reader sees of a mail: from whom it is, its text, and the names of what is attached.
func readMail(t *text, r io.ReaderAt, size int64) error {
	m := &message{t: t}
	if err := m.read(io.NewSectionReader(r, 0, size)); err != nil {
		return err
	}
	for _, f := range m.files {
		if err := t.add("[attachment: " + f + "]\n"); err != nil {
			return err
		}
	}
	return nil
}

// mailHeads are the headers that a reader sees.
var mailHeads = []string{"From", "To", "Cc", "Date", "Subject"}

func (m *message) read(r io.Reader) error {
	msg, err := mail.ReadMessage(bufio.NewReader(r))
	if err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	for _, name := range mailHeads {
		if v := decodeHead(msg.Header.Get(name)); v != "" {
			if err := m.t.add(name + ": " + v + "\n"); err != nil {
				return err
			}
		}
	}
	if err := m.t.add("\n"); err != nil {
		return err
	}
	shown, err := m.part(textproto.MIMEHeader(msg.Header), msg.Body)
	if err != nil {
		return err
	}
	return m.t.add(shown)
}

// decodeHead decodes the words of a header that are not ASCII.
func decodeHead(v string) string {
	d := mime.WordDecoder{CharsetReader: htmlcharset.NewReaderLabel}
	if decoded, err := d.DecodeHeader(v); err == nil {
		v = decoded
	}
	if e, ok := charset.Detect([]byte(v), true); ok {
		v = e.Decode([]byte(v))
	}
	return strings.Join(strings.Fields(strings.ToValidUTF8(v, "\uFFFD")), " ")
}

// part reads a part of a mail. What is no text is noted as attached.
func (m *message) part(h textproto.MIMEHeader, body io.Reader) (string, error) {
	if m.parts++; m.parts > maxParts || m.depth > maxNested {
		return "", nil
	}
	kind, params, err := mime.ParseMediaType(h.Get("Content-Type"))
	if err != nil || kind == "" {
		kind = "text/plain"
	}
	disposition, more, _ := mime.ParseMediaType(h.Get("Content-Disposition")) // "" if it cannot be read
	name := more["filename"]
	if name == "" {
		name = params["name"]
	}
	m.depth++
	defer func() { m.depth-- }()
	if strings.HasPrefix(kind, "multipart/") && params["boundary"] != "" {
		return m.multi(kind, multipart.NewReader(body, params["boundary"]))
	}
	body = decodeBody(h.Get("Content-Transfer-Encoding"), body)
	if disposition == "attachment" || !strings.HasPrefix(kind, "text/") || kind == "text/calendar" && name != "" {
		n, _ := io.Copy(io.Discard, io.LimitReader(body, maxUnpacked)) // what is broken is as long as what could be read
		if name = decodeHead(name); name == "" {
			name = "without a name"
		}
		m.files = append(m.files, fmt.Sprintf("%s, %s, %d bytes", cleanName(name), kind, n))
		return "", nil
	}
	raw, err := io.ReadAll(io.LimitReader(body, maxPartBytes))
	if err != nil && len(raw) == 0 {
		return "", nil // broken off before its text
	}
	if kind == "text/html" || kind == "application/xhtml+xml" {
		if !strings.Contains(strings.ToLower(string(raw[:min(len(raw), 1024)])), "charset") || params["charset"] != "" {
			raw = []byte(decodeText(raw, params["charset"]))
		}
		page, err := web.Text(strings.NewReader(string(raw)))
		if err != nil {
			return "", nil // it is no text for anybody
		}
		return page + "\n", nil
	}
	s := strings.ReplaceAll(decodeText(raw, params["charset"]), "\r\n", "\n")
	return strings.TrimRight(s, "\n") + "\n", nil
}

// decodeText decodes a text by what it says it is, else by what it looks like.
func decodeText(raw []byte, label string) string {
	if label != "" {
		if r, err := htmlcharset.NewReaderLabel(label, strings.NewReader(string(raw))); err == nil {
			if s, err := io.ReadAll(r); err == nil {
				return strings.ToValidUTF8(string(s), "\uFFFD")
			}
		}
	}
	if e, ok := charset.Detect(raw, true); ok {
		return e.Decode(raw)
	}
	return strings.ToValidUTF8(string(raw), "\uFFFD")
}

// decodeBody undoes how a body was made fit for travelling.
func decodeBody(encoding string, body io.Reader) io.Reader {
	switch strings.ToLower(strings.TrimSpace(encoding)) {
	case "quoted-printable":
		return quotedprintable.NewReader(body)
	case "base64":
		return base64.NewDecoder(base64.StdEncoding, body)
	}
	return body
}

// multi reads the parts of a part. Of texts that say the same, it takes the one that is plain, unless it is empty.
func (m *message) multi(kind string, r *multipart.Reader) (string, error) {
	var shown, plain strings.Builder
	for {
		p, err := r.NextRawPart()
		if err != nil { // also of a mail that was cut off
			break
		}
		media, _, _ := mime.ParseMediaType(p.Header.Get("Content-Type")) // "" if it cannot be read
		if media == "message/rfc822" && m.depth <= maxNested {
			var inner text
			nested := &message{t: &inner, depth: m.depth + 1, parts: m.parts}
			err := nested.read(decodeBody(p.Header.Get("Content-Transfer-Encoding"), p))
			m.parts, m.files = nested.parts, append(m.files, nested.files...)
			if err == nil || errors.Is(err, errFull) {
				shown.WriteString("[forwarded mail]\n" + inner.String())
			}
			continue
		}
		s, err := m.part(p.Header, p)
		if err != nil {
			return "", err
		}
		if kind == "multipart/alternative" && media == "text/plain" {
			plain.WriteString(s)
			continue
		}
		if shown.Len() < MaxText {
			shown.WriteString(s)
		}
	}
	if strings.TrimSpace(plain.String()) != "" && kind == "multipart/alternative" {
		return plain.String(), nil
	}
	return shown.String(), nil
}
