package document

import (
	"encoding/binary"
	"fmt"
	"strings"
	"unicode/utf16"

	"github.com/richardlehane/mscfb"
	"golang.org/x/text/encoding/charmap"
)

// readDOC reads the text of a document of Word 97 to 2003 (MS-DOC): the body, then notes, headers and comments, as they
// follow each other in the file.
func readDOC(t *text, streams map[string]*mscfb.File) error {
	var head, table record
	var err error
	if head.data, err = readStream(streams["WordDocument"]); err != nil {
		return err
	}
	if head.u16(0) != 0xa5ec || head.u16(2) < 0x00c1 { // Word 6 and 95
		return ErrUnknown
	}
	if head.u16(0x0a)&0x0100 != 0 {
		return ErrLocked
	}
	name := "0Table"
	if head.u16(0x0a)&0x0200 != 0 {
		name = "1Table"
	}
	if table.data, err = readStream(streams[name]); err != nil {
		return err
	}
	at, size := int(head.u32(0x01a2)), int(head.u32(0x01a6))
	if size <= 0 || at < 0 || at+size > len(table.data) {
		return fmt.Errorf("%w: the table of its pieces is missing", ErrDamaged)
	}
	clx := record{data: table.data[at : at+size]}
	at = 0
	for clx.u8(at) == 1 { // looks
		at += 3 + clx.u16(at+1)
	}
	if clx.u8(at) != 2 {
		return fmt.Errorf("%w: the table of its pieces is missing", ErrDamaged)
	}
	pieces := record{data: clx.data[min(at+5, len(clx.data)):]}
	n := (len(pieces.data) - 4) / 12
	d := &docText{t: t}
	for i := range max(n, 0) {
		count := int(pieces.u32(4*i+4)) - int(pieces.u32(4*i))
		where := pieces.u32(4*(n+1) + 8*i + 2)
		s, ok := docPiece(head.data, where, count)
		if !ok {
			return fmt.Errorf("%w: a piece is missing", ErrDamaged)
		}
		if err := d.add(s); err != nil {
			return err
		}
	}
	return nil
}

// docPiece is a piece of the text: bytes of windows-1252, or UTF-16.
func docPiece(raw []byte, where uint32, count int) (string, bool) {
	const narrow = 1 << 30
	at, size := int(where&^narrow), 2*count
	if where&narrow != 0 {
		at, size = at/2, count
	}
	if count < 0 || at < 0 || at+size > len(raw) || count > MaxText*2 {
		return "", false
	}
	raw = raw[at : at+size]
	if where&narrow != 0 {
		s, _ := charmap.Windows1252.NewDecoder().Bytes(raw) // every byte is a character
		return string(s), true
	}
	units := make([]uint16, count)
	for i := range units {
		units[i] = binary.LittleEndian.Uint16(raw[2*i:])
	}
	return string(utf16.Decode(units)), true
}

// docText writes the text of a document of Word, in which control characters stand for what it has besides.
type docText struct {
	t       *text
	code    []bool // fields that have begun: what they show has not
	command strings.Builder
	links   []string
	cell    bool // the last character ended a cell
}

func (d *docText) add(s string) error {
	var b strings.Builder
	for _, r := range s {
		hidden := len(d.code) > 0 && d.code[len(d.code)-1]
		ended := d.cell
		d.cell = false
		switch {
		case r == 0x13 && len(d.code) < maxDepth:
			d.code = append(d.code, true)
			d.links = append(d.links, "")
			d.command.Reset()
		case r == 0x14 && len(d.code) > 0:
			d.code[len(d.code)-1] = false
			d.links[len(d.links)-1] = linkOf(d.command.String())
		case r == 0x15 && len(d.code) > 0:
			if target := d.links[len(d.links)-1]; target != "" {
				b.WriteString(" (" + target + ")")
			}
			d.code, d.links = d.code[:len(d.code)-1], d.links[:len(d.links)-1]
		case hidden:
			if d.command.Len() < 4<<10 {
				d.command.WriteRune(r)
			}
		case r == 0x07 && ended: // the row ends
			b.WriteString("\n")
		case r == 0x07:
			b.WriteString(" | ")
			d.cell = true
		case r == '\r', r == 0x0b, r == 0x0c:
			b.WriteByte('\n')
		case r == 0x1e:
			b.WriteByte('-')
		case r == 0x01, r == 0x08:
			b.WriteString("[picture]")
		case r == '\t', r >= ' ' && r != 0x7f:
			b.WriteRune(r)
		}
	}
	return d.t.add(b.String())
}
