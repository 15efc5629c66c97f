package charset_test

import (
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/encoding/unicode/utf32"

	"github.com/zephbot/zephbot/tools/charset"
)

const (
	german  = "Grüße aus München, schöne Straße\n"
	russian = "Привет, мир.\nСовещание перенесено на три часа дня.\n"
	chinese = "你好,世界。\n今天的会议改到下午三点。\n"
)

// texts are two lines each, as people send them.
var texts = map[string]struct {
	codec  encoding.Encoding
	text   string
	note   string
	marked bool
}{
	"UTF-8":                {encoding.Nop, german, "", false},
	"UTF-8 with a mark":    {unicode.UTF8BOM, german, "", true},
	"UTF-16LE with a mark": {unicode.UTF16(unicode.LittleEndian, unicode.UseBOM), chinese, "read as UTF-16LE", true},
	"UTF-16BE with a mark": {unicode.UTF16(unicode.BigEndian, unicode.UseBOM), chinese, "read as UTF-16BE", true},
	"UTF-32LE with a mark": {utf32.UTF32(utf32.LittleEndian, utf32.UseBOM), chinese, "read as UTF-32LE", true},
	"UTF-16LE":             {unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM), german, "not UTF-8, read as UTF-16LE, judging by its bytes", false},
	"UTF-16BE":             {unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM), german, "not UTF-8, read as UTF-16BE, judging by its bytes", false},
	"GBK":                  {simplifiedchinese.GBK, chinese, "not UTF-8, read as GBK, judging by its bytes", false},
	"GBK, a table":         {simplifiedchinese.GBK, "姓名,城市,年龄\n张三,北京,31\n李四,上海,28\n", "not UTF-8, read as GBK, judging by its bytes", false},
	"Shift_JIS":            {japanese.ShiftJIS, "こんにちは、世界。\n会議は午後三時に変更されました。\n", "not UTF-8, read as Shift_JIS, judging by its bytes", false},
	"EUC-JP":               {japanese.EUCJP, "こんにちは、世界。\n会議は午後三時に変更されました。\n", "not UTF-8, read as EUC-JP, judging by its bytes", false},
	"EUC-KR":               {korean.EUCKR, "안녕하세요 세계.\n회의는 오후 세 시로 변경되었습니다.\n", "not UTF-8, read as EUC-KR, judging by its bytes", false},
	"Big5":                 {traditionalchinese.Big5, "你好,世界。\n今天的會議改到下午三點。\n", "not UTF-8, read as Big5, judging by its bytes", false},
	"windows-1251":         {charmap.Windows1251, russian, "not UTF-8, read as windows-1251, judging by its bytes", false},
	"KOI8-R":               {charmap.KOI8R, russian, "not UTF-8, read as KOI8-R, judging by its bytes", false},
	"IBM866":               {charmap.CodePage866, russian, "not UTF-8, read as IBM866, judging by its bytes", false},
	"windows-1252":         {charmap.Windows1252, german, "not UTF-8, read as windows-1252: letters beyond ASCII may be wrong", false},
	"windows-1252, short":  {charmap.Windows1252, "Größe: 12 MB\n", "not UTF-8, read as windows-1252: letters beyond ASCII may be wrong", false},
	"windows-1252, French": {charmap.Windows1252, "Le café est à côté de l’école, très près.\n", "not UTF-8, read as windows-1252: letters beyond ASCII may be wrong", false},
}

func TestDetect(t *testing.T) {
	t.Parallel()
	for name, c := range texts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			raw, err := c.codec.NewEncoder().String(c.text)
			if err != nil {
				t.Fatal(err)
			}
			e, ok := charset.Detect([]byte(raw), true)
			if !ok {
				t.Fatal("it is taken for no text")
			}
			if e.Note() != c.note || e.Marked() != c.marked {
				t.Errorf("%q, marked %t", e.Note(), e.Marked())
			}
			if got := e.Decode([]byte(raw)); got != c.text {
				t.Errorf("decoded: %q", got)
			}
			read, err := io.ReadAll(e.Reader(iotest.OneByteReader(strings.NewReader(raw))))
			if err != nil || string(read) != c.text {
				t.Errorf("read: %q, %v", read, err)
			}
			again, err := e.Encode(c.text)
			if err != nil || again != raw {
				t.Errorf("encoded again: %q, %v, want %q", again, err, raw)
			}
		})
	}
}

// TestCutInTheMiddle: the beginning of a text ends anywhere.
func TestCutInTheMiddle(t *testing.T) {
	t.Parallel()
	for name, c := range texts {
		raw, err := c.codec.NewEncoder().String(strings.Repeat(c.text, 20))
		if err != nil {
			t.Fatal(err)
		}
		for cut := len(raw) - 5; cut < len(raw); cut++ {
			e, ok := charset.Detect([]byte(raw[:cut]), false)
			if !ok {
				t.Errorf("%s, cut at %d: no text", name, cut)
			} else if got := e.Decode([]byte(raw)); got != strings.Repeat(c.text, 20) {
				t.Errorf("%s, cut at %d: %.40q, %s", name, cut, got, e.Note())
			}
		}
	}
}

func TestNoText(t *testing.T) {
	t.Parallel()
	for name, raw := range map[string]string{
		"PNG":      "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR",
		"ELF":      "\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00",
		"gzip":     "\x1f\x8b\x08\x08\x9c\x12\x5a\x66\x02\x03\x61\x01\xcb\x48\xcd\xc9\xc9\x07\x04\x05\x06\x11",
		"controls": strings.Repeat("\x01\x02\xff\xfe\x03", 9),
	} {
		if e, ok := charset.Detect([]byte(raw), true); ok {
			t.Errorf("%s is taken for text, %q", name, e.Note())
		}
	}
	for name, raw := range map[string]string{"empty": "", "ASCII": "a\nb\n", "colours": "\x1b[31mred\x1b[0m\n"} {
		if e, ok := charset.Detect([]byte(raw), true); !ok || !e.IsUTF8() {
			t.Errorf("%s: %t, %q", name, ok, e.Note())
		}
	}
}

func TestNoSuchCharacter(t *testing.T) {
	t.Parallel()
	raw, _ := charmap.Windows1251.NewEncoder().String(russian)
	e, _ := charset.Detect([]byte(raw), true)
	if _, err := e.Encode("до → после"); err == nil || err.Error() != `windows-1251 has no '→'` {
		t.Error(err)
	}
}

// FuzzDetect: whatever the bytes are, something is said, and what it decodes to is UTF-8.
func FuzzDetect(f *testing.F) {
	for _, c := range texts {
		raw, err := c.codec.NewEncoder().String(c.text)
		if err != nil {
			f.Fatal(err)
		}
		f.Add([]byte(raw))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		for _, whole := range []bool{true, false} {
			e, ok := charset.Detect(raw, whole)
			if ok && !utf8.ValidString(e.Decode(raw)) {
				t.Errorf("%q: not UTF-8", e.Note())
			}
		}
	})
}

// BenchmarkDetect: a file of 16 KiB in UTF-8 and one whose encoding has to be guessed.
func BenchmarkDetect(b *testing.B) {
	latin, _ := charmap.Windows1252.NewEncoder().String(strings.Repeat(german, 500))
	for name, raw := range map[string]string{"UTF-8": strings.Repeat(german, 500), "guessed": latin} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				charset.Detect([]byte(raw[:16<<10]), false)
			}
		})
	}
}
