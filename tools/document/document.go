// Package document reads documents that people send: PDF, Office, OpenDocument, books, mails and others, and
// what is in archives. Such files are made by strangers, and the libraries that read them were not made for hostile ones.
// So they are read in a process of their own (Main), which has no secrets, an end and a bound of memory; what it dies of
// costs the service nothing.
package document

import (
	"bytes"
	"errors"
	"net/http"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/zephbot/zephbot/tools/charset"
)

// Kind is how the text of a file is found.
type Kind string

// The kinds of files.
const (
	Plain    Kind = "plain"   // it is a text in UTF-8: nothing has to be read out of it
	Encoded  Kind = "encoded" // a text in another encoding
	HTML     Kind = "html"
	PDF      Kind = "pdf"
	Zip      Kind = "zip" // Office, OpenDocument and books are such archives, too
	Old      Kind = "ole" // Office until 2003, and encrypted
	RTF      Kind = "rtf"
	Mail     Kind = "mail"
	Notebook Kind = "notebook" // of Jupyter
	Packed   Kind = "packed"   // one file, or an archive of tar
	Tar      Kind = "tar"
	Broken   Kind = "broken" // it is not what its name says
	Other    Kind = "other"  // it has no text that anybody here can read
)

// HeadSize is how many bytes of a file KindOf wants to see.
const HeadSize = 8 << 10

// Why a document has no text. errors.Is works on them.
var (
	ErrDamaged  = errors.New("the document is damaged")
	ErrLocked   = errors.New("the document needs a password")
	ErrTooLarge = errors.New("the document unpacks to more than can be read")
	ErrUnknown  = errors.New("the document has a format that is not read")
)

// MaxText is how many bytes of text are taken out of a document at most.
const MaxText = 2 << 20

// magic are the beginnings of files that say what they are.
var magic = []struct {
	begin string
	kind  Kind
}{
	{"PK\x03\x04", Zip},
	{"PK\x05\x06", Zip}, // an empty one
	{"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", Old},
	{`{\rtf`, RTF},
	{"\x1f\x8b\x08", Packed},
	{"BZh", Packed},
}

// promises are the kinds of files that are no texts, by the ends of their names.
var promises = []string{
	".pdf", ".docx", ".docm", ".dotx", ".xlsx", ".xlsm", ".xltx", ".pptx", ".pptm", ".ppsx", ".odt", ".ods", ".odp", ".ott",
	".epub", ".xls", ".doc", ".zip", ".tar", ".tgz", ".gz", ".bz2", ".rtf",
}

// mailHead is how a mail begins.
var mailHead = regexp.MustCompile(
	`(?i)^(From .*\r?\n)?(Return-Path|Delivered-To|Received|From|To|Subject|Date|MIME-Version|Message-ID|X-[\w-]+|DKIM-Signature|` +
		`Content-Type|Authentication-Results|ARC-[\w-]+): ?.*\r?\n([ \t].*\r?\n)*[\w-]+: ?`,
)

// KindOf says what a file is by its first bytes, and by its name where those leave it open: what its sender says of it
// counts only then.
func KindOf(name, mediaType string, head []byte) Kind {
	ext := strings.ToLower(path.Ext(name))
	begin := bytes.TrimPrefix(head, []byte("\xef\xbb\xbf"))
	for _, m := range magic {
		if bytes.HasPrefix(begin, []byte(m.begin)) {
			return m.kind
		}
	}
	if bytes.Contains(head[:min(len(head), 1024)], []byte("%PDF-")) { // some have a few bytes before
		return PDF
	}
	if isTar(head) {
		return Tar
	}
	encoding, text := charset.Detect(head, len(head) < HeadSize)
	text = text && (encoding.Marked() || !encoding.IsUTF8() || bytes.IndexByte(head, 0) < 0)
	switch {
	case len(head) == 0 && slices.Contains(promises, ext):
		return Broken
	case text && (ext == ".eml" || mediaType == "message/rfc822") && mailHead.Match(begin):
		return Mail
	case text && encoding.IsUTF8() && (ext == ".ipynb" || bytes.Contains(begin, []byte(`"nbformat"`))) &&
		bytes.HasPrefix(bytes.TrimSpace(begin), []byte("{")):
		return Notebook
	case text && encoding.IsUTF8() && (slices.Contains([]string{".html", ".htm", ".xhtml"}, ext) ||
		strings.HasPrefix(http.DetectContentType(head), "text/html")):
		return HTML
	case text && !encoding.IsUTF8() && (encoding.Marked() || isTextByName(ext, mediaType)):
		return Encoded
	case slices.Contains(promises, ext) && ext != ".doc" && ext != ".xls", // some programs call texts so
		slices.Contains(promises, ext) && !text:
		return Broken
	case !text, !encoding.IsUTF8():
		return Other
	default:
		return Plain
	}
}

// isTextByName says whether a file calls itself a text.
func isTextByName(ext, mediaType string) bool {
	return strings.HasPrefix(mediaType, "text/") ||
		slices.Contains([]string{".txt", ".csv", ".tsv", ".md", ".log", ".ini", ".srt", ".tex"}, ext)
}
