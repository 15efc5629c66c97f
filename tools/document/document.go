// Package document reads the text of documents that people send: PDF, DOCX, XLSX, HTML and texts in other encodings.
// Such files are made by strangers, and the libraries that read them were not made for hostile ones. So they are read
// in a process of their own (Main), which has no secrets, an end and a bound of memory; what it dies of costs the
// service nothing.
package document

import (
	"bytes"
	"errors"
	"net/http"
	"path"
	"slices"
	"strings"

	"github.com/zephbot/zephbot/tools/charset"
)

// Kind is how the text of a file is found.
type Kind string

// The kinds of files.
const (
	Plain   Kind = "plain"   // it is a text in UTF-8: nothing has to be read out of it
	Encoded Kind = "encoded" // a text in another encoding
	HTML    Kind = "html"
	PDF     Kind = "pdf"
	DOCX    Kind = "docx"
	XLSX    Kind = "xlsx"
	Other   Kind = "other" // it has no text that anybody here can read
)

// HeadSize is how many bytes of a file KindOf wants to see.
const HeadSize = 8 << 10

// Why a document has no text. errors.Is works on them.
var (
	ErrDamaged  = errors.New("the document is damaged")
	ErrLocked   = errors.New("the document needs a password")
	ErrTooLarge = errors.New("the document unpacks to more than can be read")
)

// MaxText is how many bytes of text are taken out of a document at most.
const MaxText = 2 << 20

// KindOf says what a file is by its first bytes, and by its name where those leave it open: what its sender says of it
// counts only then.
func KindOf(name, mediaType string, head []byte) Kind {
	ext := strings.ToLower(path.Ext(name))
	promised := map[string]Kind{".pdf": PDF, ".docx": DOCX, ".xlsx": XLSX}[ext]
	switch {
	case bytes.Contains(head[:min(len(head), 1024)], []byte("%PDF-")): // some have a few bytes before
		return PDF
	case bytes.HasPrefix(head, []byte("PK\x03\x04")):
		return archive(ext, mediaType)
	case promised != "": // its name promises what it is not
		return promised
	}
	encoding, text := charset.Detect(head, len(head) < HeadSize)
	switch {
	case text && !encoding.IsUTF8() && (encoding.Marked() || textual(ext, mediaType)):
		return Encoded
	case !text || !encoding.IsUTF8() || bytes.IndexByte(head, 0) >= 0:
		return Other
	case slices.Contains([]string{".html", ".htm", ".xhtml"}, ext),
		strings.HasPrefix(http.DetectContentType(head), "text/html"):
		return HTML
	default:
		return Plain
	}
}

// archive is the kind of a ZIP archive.
func archive(ext, mediaType string) Kind {
	switch {
	case ext == ".docx" || strings.HasSuffix(mediaType, "wordprocessingml.document"):
		return DOCX
	case ext == ".xlsx" || strings.HasSuffix(mediaType, "spreadsheetml.sheet"):
		return XLSX
	default:
		return Other
	}
}

// textual says whether a file calls itself a text.
func textual(ext, mediaType string) bool {
	return strings.HasPrefix(mediaType, "text/") ||
		slices.Contains([]string{".txt", ".csv", ".tsv", ".md", ".log", ".ini", ".srt", ".tex"}, ext)
}
