package document

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"
)

// codePages are what Windows calls them by.
var codePages = map[int]encoding.Encoding{
	437: charmap.CodePage437, 850: charmap.CodePage850, 852: charmap.CodePage852, 866: charmap.CodePage866,
	874: charmap.Windows874, 932: japanese.ShiftJIS, 936: simplifiedchinese.GBK, 949: korean.EUCKR,
	950: traditionalchinese.Big5, 1250: charmap.Windows1250, 1251: charmap.Windows1251, 1252: charmap.Windows1252,
	1253: charmap.Windows1253, 1254: charmap.Windows1254, 1255: charmap.Windows1255, 1256: charmap.Windows1256,
	1257: charmap.Windows1257, 1258: charmap.Windows1258, 10000: charmap.Macintosh, 10007: charmap.MacintoshCyrillic,
}

// fontPages are the code pages of the character sets of fonts (RTF 1.9.1, \fcharset).
var fontPages = map[int]int{
	0: 1252, 77: 10000, 128: 932, 129: 949, 134: 936, 136: 950, 161: 1253, 162: 1254, 163: 1258, 177: 1255, 178: 1256,
	186: 1257, 204: 1251, 222: 874, 238: 1250, 255: 850,
}

// rtf reads a text in the Rich Text Format of Microsoft, version 1.9.1.
type rtf struct {
	r     *strings.Reader
	t     *text
	state rtfState
	outer []rtfState
	fonts map[int]int // code pages
	page  int         // code page of the document
	bytes []byte      // of characters that are not decoded yet
	units []uint16    // of UTF-16
	cells []string    // of the row that is read
	grid  grid
	notes []string

	author string // of the comment that follows
}

// rtfState is what a group inherits and gives back.
type rtfState struct {
	skip  bool   // it is nothing that is read
	into  *text  // where its text goes
	page  int    // code page of the font
	after int    // how many bytes follow a character of Unicode, for who cannot read it
	mark  string // what its text is: hidden, inserted, deleted
	inRow bool
	kind  string  // of the group, by the word that it began with
	font  int     // that is used or being defined
	field *string // the address to which the field around it leads
}

// rtfAside are groups whose text is not in the text.
var rtfAside = []string{
	"fonttbl", "colortbl", "stylesheet", "info", "pict", "object", "objdata", "themedata", "colorschememapping",
	"latentstyles", "datastore", "listtable", "listoverridetable", "revtbl", "rsidtbl", "generator", "xmlnstbl", "filetbl",
	"datafield", "atnid", "atnref", "atndate", "shprslt", "bkmkstart", "bkmkend", "nonshppict", "sp", "sn", "sv", "mmathPr", "private", "xe", "tc",
	"pntext", "footnotesep", "ftnsep", "ftnsepc", "aftnsep", "aftnsepc", "ftncn", "aftncn", "do", "panose", "falt", "pgdsctbl",
}

// readRTF reads the text, with its tables, notes and links.
func readRTF(t *text, r io.ReaderAt, size int64) error {
	if size > maxUnpacked {
		return fmt.Errorf("%w: more than %d bytes", ErrTooLarge, maxUnpacked)
	}
	raw, err := io.ReadAll(io.NewSectionReader(r, 0, size))
	if err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if !strings.HasPrefix(string(raw[:min(len(raw), 5)]), `{\rtf`) {
		return fmt.Errorf("%w: it is no RTF", ErrDamaged)
	}
	d := &rtf{r: strings.NewReader(string(raw)), t: t, fonts: map[int]int{}, page: 1252, grid: grid{t: t}}
	d.state = rtfState{into: t, page: 1252, after: 1}
	err = d.read()
	if err == nil || errors.Is(err, errFull) {
		err = errors.Join(d.flush(), d.endTable(), err)
	}
	for i, note := range d.notes {
		err = errors.Join(err, t.add(fmt.Sprintf("\n[^%d]: %s", i+1, strings.TrimSpace(note))))
	}
	return err
}

func (d *rtf) read() error {
	for {
		c, err := d.r.ReadByte()
		if errors.Is(err, io.EOF) {
			return nil
		}
		switch c {
		case '{':
			err = d.flush()
			if len(d.outer) >= maxDepth {
				return fmt.Errorf("%w: groups %d deep", ErrTooLarge, maxDepth)
			}
			d.outer = append(d.outer, d.state)
			d.state.kind = ""
		case '}':
			err = d.endGroup()
		case '\\':
			err = d.control()
		case '\r', '\n':
		default:
			err = d.char(c)
		}
		if err != nil {
			return err
		}
	}
}

// endGroup gives back what was before the group.
func (d *rtf) endGroup() error {
	if err := d.flush(); err != nil {
		return err
	}
	ended := d.state
	if len(d.outer) == 0 {
		_, err := d.r.Seek(0, io.SeekEnd) // what follows is no text
		return err
	}
	d.state = d.outer[len(d.outer)-1]
	d.outer = d.outer[:len(d.outer)-1]
	switch ended.kind {
	case "fldinst":
		if d.state.field != nil {
			*d.state.field = linkOf(ended.into.String())
		}
	case "fldrslt":
		shown := ended.into.String()
		if d.state.field != nil && *d.state.field != "" {
			shown = markdownLink(shown, *d.state.field)
		}
		return d.add(shown)
	case "footnote":
		d.notes = append(d.notes, ended.into.String())
		return d.add(fmt.Sprintf("[^%d]", len(d.notes)))
	case "annotation":
		return d.add(remark("comment", d.author, ended.into.String()))
	case "atnauthor":
		d.author = ended.into.String()
	case "header", "footer":
		if s := strings.TrimSpace(ended.into.String()); s != "" {
			return d.add(remark(ended.kind, "", s) + "\n")
		}
	case "shptxt":
		if s := strings.TrimSpace(ended.into.String()); s != "" {
			return d.add(remark("text box", "", s))
		}
	}
	return nil
}

// add writes text where the group wants it.
func (d *rtf) add(s string) error {
	if d.state.skip || s == "" {
		return nil
	}
	if d.state.mark != "" && strings.TrimSpace(s) != "" {
		s = remark(d.state.mark, "", s)
	}
	if d.state.into == d.t && !d.state.inRow {
		if err := d.endTable(); err != nil {
			return err
		}
	}
	if d.state.into == d.t && d.state.inRow {
		n := len(d.cells)
		if n == 0 {
			d.cells, n = []string{""}, 1
		}
		if len(d.cells[n-1]) < MaxText {
			d.cells[n-1] += s
		}
		return nil
	}
	return d.state.into.add(s)
}

// endTable ends the table that is being read, if any.
func (d *rtf) endTable() error {
	var err error
	if strings.TrimSpace(strings.Join(d.cells, "")) != "" {
		err = d.grid.add(d.cells)
	}
	d.cells, d.grid.rows = nil, 0
	return err
}

// char is a byte of a character in the code page of the font.
func (d *rtf) char(c byte) error {
	if err := d.flushUnits(); err != nil {
		return err
	}
	if !d.state.skip {
		d.bytes = append(d.bytes, c)
	}
	return nil
}

// flush decodes what was read.
func (d *rtf) flush() error {
	if err := d.flushUnits(); err != nil || len(d.bytes) == 0 {
		return err
	}
	page := codePages[d.state.page]
	if page == nil {
		page = charmap.Windows1252
	}
	s, _ := page.NewDecoder().Bytes(d.bytes) // what it cannot decode is marked
	d.bytes = d.bytes[:0]
	return d.add(string(s))
}

func (d *rtf) flushUnits() error {
	if len(d.units) == 0 {
		return nil
	}
	s := string(utf16.Decode(d.units))
	d.units = d.units[:0]
	return d.add(s)
}

// control reads a control word or a control symbol.
func (d *rtf) control() error {
	c, err := d.r.ReadByte()
	if err != nil {
		return nil // the file ends here
	}
	if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' {
		word := []byte{c}
		var number []byte
		for {
			c, err = d.r.ReadByte()
			if err != nil {
				break
			}
			switch {
			case len(number) == 0 && (c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z') && len(word) < 64:
				word = append(word, c)
				continue
			case c >= '0' && c <= '9' && len(number) < 11, c == '-' && len(number) == 0:
				number = append(number, c)
				continue
			case c != ' ':
				_ = d.r.UnreadByte() // it was just read
			}
			break
		}
		n, numbered := 1, len(number) > 0
		if numbered {
			n, _ = strconv.Atoi(string(number)) // 0 for what is no number
		}
		return d.word(string(word), n, numbered)
	}
	switch c {
	case '\'':
		var hex [2]byte
		if _, err := io.ReadFull(d.r, hex[:]); err != nil {
			return nil // the file ends here
		}
		if b, err := strconv.ParseUint(string(hex[:]), 16, 8); err == nil {
			return d.char(byte(b))
		}
		return nil
	case '*':
		d.state.skip = true // unless we know what follows
		return nil
	case '~':
		return d.special("\u00a0")
	case '_':
		return d.special("-")
	case '-': // a place to break a word
		return nil
	case '\\', '{', '}':
		return d.char(c)
	case '\r', '\n':
		return d.special("\n")
	}
	return nil
}

// special writes a character that has a word of its own.
func (d *rtf) special(s string) error {
	if err := d.flush(); err != nil {
		return err
	}
	return d.add(s)
}

// rtfWords are words that stand for characters.
var rtfWords = map[string]string{
	"par": "\n", "line": "\n", "page": "\n", "sect": "\n", "tab": "\t", "emdash": "—", "endash": "–", "bullet": "•",
	"lquote": "‘", "rquote": "’", "ldblquote": "“", "rdblquote": "”", "emspace": " ", "enspace": " ", "qmspace": " ",
	"nestcell": " ; ", "nestrow": "\n",
}

// word does what a control word says.
func (d *rtf) word(word string, n int, numbered bool) error {
	if word != "u" {
		if err := d.flush(); err != nil {
			return err
		}
	}
	if s, ok := rtfWords[word]; ok {
		return d.add(s)
	}
	switch word {
	case "u":
		return d.unicode(uint16(n))
	case "bin":
		_, err := d.r.Seek(int64(max(min(n, d.r.Len()), 0)), io.SeekCurrent)
		return err
	case "ansicpg":
		d.page, d.state.page = n, n
	case "mac":
		d.page, d.state.page = 10000, 10000
	case "pc":
		d.page, d.state.page = 437, 437
	case "pca":
		d.page, d.state.page = 850, 850
	case "uc":
		d.state.after = max(min(n, 8), 0)
	case "f":
		d.state.font = n
		if page, ok := d.fonts[n]; ok && d.state.kind != "fonttbl" {
			d.state.page = page
		}
	case "fcharset":
		if page, ok := fontPages[n]; ok && n != 0 {
			d.fonts[d.state.font] = page
		} else {
			d.fonts[d.state.font] = d.page
		}
	case "cpg":
		d.fonts[d.state.font] = n
	case "plain":
		d.state.mark, d.state.page = "", d.page
	case "v", "deleted", "revised":
		d.state.mark = map[string]string{"v": "hidden", "deleted": "deleted", "revised": "inserted"}[word]
		if numbered && n == 0 {
			d.state.mark = ""
		}
	case "intbl":
		d.state.inRow = true
	case "pard":
		d.state.inRow = false
	case "cell":
		if d.state.into == d.t {
			d.state.inRow = true
			if len(d.cells) == 0 {
				d.cells = append(d.cells, "")
			}
			if len(d.cells) < maxColumns {
				d.cells = append(d.cells, "")
			}
		}
	case "row":
		if n := len(d.cells); n > 1 && d.state.into == d.t {
			cells := d.cells[:n-1]
			d.cells = nil
			return d.grid.add(cells)
		}
	case "field":
		d.state.kind, d.state.field = word, new(string)
	case "fldinst", "atnauthor":
		d.state.kind = word
		d.state.skip, d.state.into = false, &text{}
	case "fldrslt", "footnote", "annotation", "shptxt":
		d.state.kind = word
		d.state.skip = d.outerSkips()
		d.state.into = &text{}
		d.state.inRow = false
	case "header", "headerl", "headerr", "headerf", "footer", "footerl", "footerr", "footerf":
		d.state.kind = word[:len("header")]
		d.state.into = &text{}
	case "upr", "ud", "shpinst", "shppict":
		d.state.skip = d.outerSkips() || word == "shppict"
	default:
		if slices.Contains(rtfAside, word) {
			d.state.kind, d.state.skip = word, true
		}
	}
	return nil
}

// outerSkips says whether what the group is in is not read.
func (d *rtf) outerSkips() bool { return len(d.outer) > 0 && d.outer[len(d.outer)-1].skip }

// unicode is a unit of UTF-16. What follows says the same for who cannot read it.
func (d *rtf) unicode(unit uint16) error {
	if len(d.bytes) > 0 {
		if err := d.flush(); err != nil {
			return err
		}
	}
	if !d.state.skip {
		d.units = append(d.units, unit)
	}
	for range d.state.after {
		c, err := d.r.ReadByte()
		if err != nil {
			return nil // the file ends here
		}
		switch c {
		case '\\':
			next, err := d.r.ReadByte()
			if err != nil {
				return nil
			}
			if next != '\'' {
				_, err = d.r.Seek(-2, io.SeekCurrent)
				return err
			}
			_, err = d.r.Seek(min(2, int64(d.r.Len())), io.SeekCurrent)
			if err != nil {
				return err
			}
		case '{', '}':
			return d.r.UnreadByte()
		}
	}
	return nil
}
