package document

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf16"

	"github.com/richardlehane/mscfb"
	"golang.org/x/text/encoding/charmap"
)

// readOLE reads a file of old versions of Office, which is a file system of its own (MS-CFB). Newer ones are in such a
// file if they are encrypted.
func readOLE(t *text, r io.ReaderAt, size int64) error {
	files, err := mscfb.New(io.NewSectionReader(r, 0, size))
	if err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	streams := map[string]*mscfb.File{}
	for _, f := range files.File[:min(len(files.File), maxEntries)] {
		if _, ok := streams[f.Name]; !ok { // what is embedded comes later
			streams[f.Name] = f
		}
	}
	switch {
	case streams["EncryptedPackage"] != nil:
		return ErrLocked
	case streams["Workbook"] != nil, streams["Book"] != nil:
		raw, err := readStream(cmp.Or(streams["Workbook"], streams["Book"]))
		if err != nil {
			return err
		}
		return readXLS(t, raw)
	case streams["WordDocument"] != nil:
		return readDOC(t, streams)
	}
	return ErrUnknown
}

// readStream reads a file of the file system. What is cut off may be enough.
func readStream(f *mscfb.File) ([]byte, error) {
	if f == nil {
		return nil, nil
	}
	if f.Size > maxUnpacked {
		return nil, fmt.Errorf("%w: more than %d bytes", ErrTooLarge, maxUnpacked)
	}
	raw, err := io.ReadAll(io.LimitReader(f, maxUnpacked))
	if err != nil && len(raw) == 0 {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return raw, nil
}

// Records of a workbook (MS-XLS, section 2.3).
const (
	recEOF        = 0x000a
	recDateMode   = 0x0022
	recFilePass   = 0x002f
	recContinue   = 0x003c
	recCodePage   = 0x0042
	recBoundSheet = 0x0085
	recMulRK      = 0x00bd
	recXF         = 0x00e0
	recSST        = 0x00fc
	recLabelSST   = 0x00fd
	recNumber     = 0x0203
	recLabel      = 0x0204
	recRString    = 0x00d6
	recBoolErr    = 0x0205
	recString     = 0x0207
	recRow        = 0x0208
	recRK         = 0x027e
	recFormat     = 0x041e
	recFormula    = 0x0006
	recMerged     = 0x00e5
	recLink       = 0x01b8
	recNote       = 0x001c
	recObj        = 0x005d
	recText       = 0x01b6
	recBOF        = 0x0809
)

// xls reads a workbook of Excel 5 to 2003.
type xls struct {
	t       *text
	raw     []byte
	old     bool // Excel 5 and 95: texts are bytes of a code page
	page    int
	since   int
	shared  []string
	codes   map[int]string // of formats
	formats []cellFormat   // by style
	styles  []int          // ids of formats
}

// record is one of a workbook, with those that continue it.
type record struct {
	kind int
	data []byte
	ends []int // where in data a record ended and the next one went on
	next int   // where in the workbook the next one begins
}

// recordAt reads the record at a place of the workbook.
func (w *xls) recordAt(at int) (r record, ok bool) {
	if at < 0 || at+4 > len(w.raw) {
		return r, false
	}
	r.kind = int(binary.LittleEndian.Uint16(w.raw[at:]))
	size := int(binary.LittleEndian.Uint16(w.raw[at+2:]))
	if at+4+size > len(w.raw) {
		return r, false
	}
	r.data = w.raw[at+4 : at+4+size : at+4+size]
	r.next = at + 4 + size
	for r.kind == recSST && r.next+4 <= len(w.raw) && int(binary.LittleEndian.Uint16(w.raw[r.next:])) == recContinue {
		size := int(binary.LittleEndian.Uint16(w.raw[r.next+2:]))
		if r.next+4+size > len(w.raw) {
			break
		}
		r.ends = append(r.ends, len(r.data))
		r.data = append(r.data, w.raw[r.next+4:r.next+4+size]...)
		r.next += 4 + size
	}
	return r, true
}

// u16 and u32 are numbers in a record; 0 where it is too short.
func (r *record) u16(at int) int {
	if at < 0 || at+2 > len(r.data) {
		return 0
	}
	return int(binary.LittleEndian.Uint16(r.data[at:]))
}

func (r *record) u32(at int) uint32 {
	if at < 0 || at+4 > len(r.data) {
		return 0
	}
	return binary.LittleEndian.Uint32(r.data[at:])
}

func (r *record) u8(at int) int {
	if at < 0 || at >= len(r.data) {
		return 0
	}
	return int(r.data[at])
}

func (r *record) float(at int) float64 {
	return math.Float64frombits(uint64(r.u32(at)) | uint64(r.u32(at+4))<<32)
}

// readXLS reads the sheets of a workbook.
func readXLS(t *text, raw []byte) error {
	w := &xls{t: t, raw: raw, since: 1900, page: 1252, codes: map[int]string{}}
	type boundSheet struct {
		name   string
		at     int
		hidden bool
	}
	var sheets []boundSheet
	begin, ok := w.recordAt(0)
	if !ok || begin.kind&0xff != recBOF&0xff {
		return fmt.Errorf("%w: it does not begin as a workbook", ErrDamaged)
	}
	w.old = begin.kind != recBOF || begin.u16(0) < 0x0600
	if begin.kind != recBOF || begin.u16(0) < 0x0500 { // Excel 2 to 4
		return ErrUnknown
	}
	for at := begin.next; ; {
		r, ok := w.recordAt(at)
		if !ok || r.kind == recEOF {
			break
		}
		at = r.next
		switch r.kind {
		case recFilePass:
			return ErrLocked
		case recDateMode:
			if r.u16(0) == 1 {
				w.since = 1904
			}
		case recCodePage:
			w.page = r.u16(0)
		case recSST:
			w.readShared(&r)
		case recFormat:
			code := w.string(&r, 2, !w.old)
			w.codes[r.u16(0)] = code
		case recXF:
			w.styles = append(w.styles, r.u16(2))
		case recBoundSheet:
			if kind := r.u8(5); kind == 0 { // else it is a chart or a program
				name, _ := w.shortString(&r, 6)
				sheets = append(sheets, boundSheet{name, int(r.u32(0)), r.u8(4)&3 != 0})
			}
		}
	}
	for _, id := range w.styles {
		code, ok := w.codes[id]
		if !ok {
			code = builtinFormats[id]
		}
		w.formats = append(w.formats, parseFormat(code))
	}
	if len(sheets) == 0 {
		return fmt.Errorf("%w: a workbook without sheets", ErrDamaged)
	}
	for i, s := range sheets {
		if i == maxPages {
			return errFull
		}
		if err := w.readSheet(s.name, s.at, s.hidden); err != nil {
			return err
		}
	}
	return nil
}

// readShared reads the texts that cells refer to. One goes on in the next record with a byte that says anew whether its
// characters have one byte or two.
func (w *xls) readShared(r *record) {
	count, at := int(r.u32(4)), 8
	for range min(count, len(r.data)/3) {
		s, next := w.longString(r, at)
		if next <= at {
			return
		}
		w.shared = append(w.shared, s)
		at = next
	}
}

// longString reads a text with its looks, which are passed over. next: where the next one begins; 0 = nowhere.
func (w *xls) longString(r *record, at int) (s string, next int) {
	if at+3 > len(r.data) {
		return "", 0
	}
	count, flags := r.u16(at), r.u8(at+2)
	at += 3
	runs, extra := 0, 0
	if flags&8 != 0 {
		runs = r.u16(at)
		at += 2
	}
	if flags&4 != 0 {
		extra = int(r.u32(at))
		at += 4
	}
	units := make([]uint16, 0, min(count, len(r.data)))
	wide := flags&1 != 0
	for len(units) < count {
		end := len(r.data)
		for _, e := range r.ends {
			if e > at {
				end = e
				break
			}
			if e == at && len(units) > 0 {
				wide = r.u8(at)&1 != 0
				at++
			}
		}
		if at >= len(r.data) {
			return string(utf16.Decode(units)), 0
		}
		for ; len(units) < count && at < end; at++ {
			if !wide {
				units = append(units, uint16(r.data[at]))
				continue
			}
			units = append(units, uint16(r.u16(at)))
			at++
		}
		if len(units) == count {
			break
		}
		if at >= len(r.data) {
			return string(utf16.Decode(units)), 0
		}
		wide = r.u8(at)&1 != 0 // the next record begins with what its characters are
		at++
	}
	if extra < 0 || extra > len(r.data) {
		return string(utf16.Decode(units)), 0
	}
	return string(utf16.Decode(units)), at + 4*runs + extra
}

// string reads a text with its length in two bytes. unicode: with a byte that says how wide its characters are.
func (w *xls) string(r *record, at int, unicode bool) string {
	if unicode {
		s, _ := w.longString(r, at)
		return s
	}
	n := r.u16(at)
	if w.old && r.kind == recFormat {
		n, at = r.u8(at), at-1
	}
	at += 2
	end := min(at+n, len(r.data))
	if at > end {
		return ""
	}
	return w.decode(r.data[at:end])
}

// shortString reads a text with its length in one byte.
func (w *xls) shortString(r *record, at int) (s string, next int) {
	n := r.u8(at)
	if w.old {
		end := min(at+1+n, len(r.data))
		return w.decode(r.data[min(at+1, end):end]), end
	}
	wide := r.u8(at+1)&1 != 0
	units := make([]uint16, 0, n)
	for i := range n {
		if wide {
			units = append(units, uint16(r.u16(at+2+2*i)))
		} else {
			units = append(units, uint16(r.u8(at+2+i)))
		}
	}
	return string(utf16.Decode(units)), at + 2 + n
}

func (w *xls) decode(raw []byte) string {
	page := codePages[w.page]
	if page == nil {
		page = charmap.Windows1252
	}
	s, _ := page.NewDecoder().Bytes(raw) // what it cannot decode is marked
	return string(s)
}

// xlsSheet is a sheet that is being read. Its cells need not come in order, and remarks come behind them.
type xlsSheet struct {
	*xls
	rows   map[int][]string
	last   int
	size   int
	hidden map[int]bool
	merged []string
	wait   *[2]int // the cell of a formula whose text comes next
	object int     // whose text comes next
	said   map[int]string
}

// put keeps what a cell shows.
func (s *xlsSheet) put(row, column int, shown string) error {
	if column >= maxColumns || shown == "" {
		return nil
	}
	cells := s.rows[row]
	for len(cells) <= column {
		cells = append(cells, "")
		s.size += 16
	}
	cells[column] = strings.TrimSpace(cells[column] + " " + shown)
	s.rows[row], s.last = cells, max(s.last, row)
	if s.size += len(shown); s.size > maxUnpacked {
		return fmt.Errorf("%w: a sheet of more than %d bytes", ErrTooLarge, maxUnpacked)
	}
	return nil
}

func (w *xls) readSheet(name string, at int, hidden bool) error {
	s := &xlsSheet{xls: w, rows: map[int][]string{}, hidden: map[int]bool{}, said: map[int]string{}}
	r, ok := w.recordAt(at)
	if !ok || r.kind != recBOF {
		return fmt.Errorf("%w: the sheet %s is missing", ErrDamaged, name)
	}
	for depth := 1; depth > 0; {
		if r, ok = w.recordAt(r.next); !ok {
			break
		}
		switch r.kind {
		case recBOF: // a chart in it
			depth++
		case recEOF:
			depth--
		default:
			if depth > 1 {
				continue
			}
			if err := s.read(&r); err != nil {
				return err
			}
		}
	}
	out := &sheet{t: w.t}
	if err := out.begin(name, hidden); err != nil {
		return err
	}
	for row := 0; row <= s.last; row++ {
		if cells := s.rows[row]; cells != nil {
			if err := out.row(row, cells, s.hidden[row]); err != nil {
				return err
			}
		}
	}
	if len(s.merged) > 0 {
		return w.t.add("[merged cells: " + strings.Join(s.merged, ", ") + "]\n")
	}
	return nil
}

// read reads a record of a sheet.
func (s *xlsSheet) read(r *record) error {
	row, column := r.u16(0), r.u16(2)
	switch r.kind {
	case recLabelSST:
		if n := int(r.u32(6)); n >= 0 && n < len(s.shared) {
			return s.put(row, column, s.shared[n])
		}
	case recLabel, recRString:
		shown := s.string(r, 6, !s.old)
		return s.put(row, column, shown)
	case recNumber:
		return s.put(row, column, s.number(r.u16(4), r.float(6)))
	case recRK:
		return s.put(row, column, s.number(r.u16(4), rkNumber(r.u32(6))))
	case recMulRK:
		for i := 4; i+6 <= len(r.data)-2; i += 6 {
			if err := s.put(row, column+(i-4)/6, s.number(r.u16(i), rkNumber(r.u32(i+2)))); err != nil {
				return err
			}
		}
	case recBoolErr:
		if r.u8(7) != 0 {
			return s.put(row, column, xlsErrors[r.u8(6)])
		}
		return s.put(row, column, strings.ToUpper(strconv.FormatBool(r.u8(6) != 0)))
	case recFormula, 0x0206, 0x0406: // Excel 5 used the ones of older versions, too
		if r.u16(12) != 0xffff {
			return s.put(row, column, s.number(r.u16(4), r.float(6)))
		}
		switch r.u8(6) {
		case 0:
			s.wait = &[2]int{row, column}
		case 1:
			return s.put(row, column, strings.ToUpper(strconv.FormatBool(r.u8(8) != 0)))
		case 2:
			return s.put(row, column, xlsErrors[r.u8(8)])
		}
	case recString:
		if s.wait != nil {
			cell := *s.wait
			s.wait = nil
			shown := s.string(r, 0, !s.old)
			return s.put(cell[0], cell[1], shown)
		}
	case recRow:
		if r.u16(12)&0x20 != 0 {
			s.hidden[row] = true
		}
	case recMerged:
		for i := range min(r.u16(0), (len(r.data)-2)/8) {
			at := 2 + 8*i
			if len(s.merged) < maxMerged {
				s.merged = append(s.merged, cellRef(r.u16(at+4), r.u16(at))+":"+cellRef(r.u16(at+6), r.u16(at+2)))
			}
		}
	case recLink:
		if target := linkTarget(r.data); target != "" {
			return s.put(r.u16(0), r.u16(4), "("+target+")")
		}
	case recObj:
		s.object = r.u16(6)
	case recText:
		if next, ok := s.recordAt(r.next); ok && next.kind == recContinue && !s.old {
			n := r.u16(10)
			units := make([]uint16, 0, n)
			for i := range n {
				if next.u8(0)&1 != 0 {
					units = append(units, uint16(next.u16(1+2*i)))
				} else {
					units = append(units, uint16(next.u8(1+i)))
				}
			}
			s.said[s.object] = string(utf16.Decode(units))
		}
	case recNote:
		who := ""
		if !s.old {
			author := *r
			if n := author.u16(8); n < len(r.data) {
				author.data = append([]byte{}, r.data...)
				who, _ = s.longString(&author, 8)
			}
		}
		if said := s.said[r.u16(6)]; said != "" {
			return s.put(row, column, remark("comment", who, strings.TrimPrefix(said, who+":\n")))
		}
	}
	return nil
}

// number shows a number of a cell in a style.
func (s *xlsSheet) number(style int, n float64) string {
	value := strconv.FormatFloat(n, 'g', -1, 64)
	if style < len(s.formats) {
		return s.formats[style].show(value, s.since)
	}
	return cellFormat{}.show(value, s.since)
}

// rkNumber is a number in four bytes (MS-XLS, section 2.5.218).
func rkNumber(raw uint32) float64 {
	n := math.Float64frombits(uint64(raw&^3) << 32)
	if raw&2 != 0 {
		n = float64(int32(raw) >> 2)
	}
	if raw&1 != 0 {
		n /= 100
	}
	return n
}

var xlsErrors = map[int]string{
	0x00: "#NULL!", 0x07: "#DIV/0!", 0x0f: "#VALUE!", 0x17: "#REF!", 0x1d: "#NAME?", 0x24: "#NUM!", 0x2a: "#N/A",
}

// linkTarget finds the address in a link (MS-OSHARED, section 2.3.7): behind the id of such addresses.
func linkTarget(raw []byte) string {
	const id = "\xe0\xc9\xea\x79\xf9\xba\xce\x11\x8c\x82\x00\xaa\x00\x4b\xa9\x0b"
	_, rest, ok := strings.Cut(string(raw), id)
	if !ok || len(rest) < 4 {
		return ""
	}
	size := int(binary.LittleEndian.Uint32([]byte(rest)))
	var units []uint16
	for i := 4; i+1 < len(rest) && i < 4+size; i += 2 {
		u := uint16(rest[i]) | uint16(rest[i+1])<<8
		if u == 0 {
			break
		}
		units = append(units, u)
	}
	return string(utf16.Decode(units))
}
