package document

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// cellFormat is how a cell shows a number: what a format of Excel says, as far as a reader without its looks needs it
// (ECMA-376, part 1, section 18.8.31). The zero value is the format General.
type cellFormat struct {
	kind          formatKind
	decimals      int // of a number
	before, after string
	date, clock   bool // what of a time is shown
	seconds       bool
}

type formatKind int

const (
	general formatKind = iota
	fixed
	percent
	scientific
	moment  // a date, a time of day or both
	elapsed // a length of time
	asText
)

// builtinFormats are those without a code in the file (ECMA-376, part 1, section 18.8.30). What depends on the country of
// the reader is a date all the same.
var builtinFormats = map[int]string{
	1: "0", 2: "0.00", 3: "#,##0", 4: "#,##0.00", 9: "0%", 10: "0.00%", 11: "0.00E+00",
	14: "yyyy-mm-dd", 15: "d-mmm-yy", 16: "d-mmm", 17: "mmm-yy", 18: "h:mm AM/PM", 19: "h:mm:ss AM/PM", 20: "h:mm",
	21: "h:mm:ss", 22: "yyyy-mm-dd h:mm", 27: "yyyy-mm-dd", 28: "yyyy-mm-dd", 29: "yyyy-mm-dd", 30: "yyyy-mm-dd",
	31: "yyyy-mm-dd", 32: "h:mm", 33: "h:mm:ss", 34: "h:mm", 35: "h:mm:ss", 36: "yyyy-mm-dd",
	37: "#,##0", 38: "#,##0", 39: "#,##0.00", 40: "#,##0.00", 41: "#,##0", 42: "#,##0", 43: "#,##0.00", 44: "#,##0.00",
	45: "mm:ss", 46: "[h]:mm:ss", 47: "mm:ss.0", 48: "0.0E+0", 49: "@", 50: "yyyy-mm-dd", 51: "yyyy-mm-dd",
	52: "yyyy-mm-dd", 53: "yyyy-mm-dd", 54: "yyyy-mm-dd", 55: "yyyy-mm-dd", 56: "yyyy-mm-dd", 57: "yyyy-mm-dd",
	58: "yyyy-mm-dd",
}

// parseFormat reads the code of a format: of its parts for numbers above, below and at zero, the first.
func parseFormat(code string) cellFormat {
	var f cellFormat
	var literal strings.Builder
	digits, point := false, false
	settle := func() { // what was literal so far stands before or behind the number
		if digits {
			f.after += literal.String()
		} else {
			f.before += literal.String()
		}
		literal.Reset()
	}
	raise := func(kind formatKind) { f.kind = max(f.kind, kind) }
	if strings.EqualFold(code, "General") {
		return f
	}
	for i := 0; i < len(code) && code[i] != ';'; i++ {
		switch c := code[i]; c {
		case '"':
			end := strings.IndexByte(code[i+1:], '"')
			if end < 0 {
				end = len(code) - i - 1
			}
			literal.WriteString(code[i+1 : i+1+end])
			i += end + 1
		case '\\', '!':
			if i+1 < len(code) {
				literal.WriteByte(code[i+1])
				i++
			}
		case '_', '*': // a gap as wide as what follows
			i++
		case '[':
			end := strings.IndexByte(code[i:], ']')
			if end < 0 {
				end = len(code) - i - 1
			}
			in := code[i+1 : i+max(end, 1)]
			switch {
			case strings.HasPrefix(in, "$"):
				symbol, _, _ := strings.Cut(in[1:], "-")
				literal.WriteString(symbol)
			case strings.Trim(strings.ToLower(in), "h") == "", strings.Trim(strings.ToLower(in), "m") == "",
				strings.Trim(strings.ToLower(in), "s") == "":
				raise(elapsed)
			}
			i += end
		case '0', '#', '?':
			settle()
			if digits = true; point {
				f.decimals++
			}
			raise(fixed)
		case '.':
			point = digits || point
		case '%':
			raise(percent)
		case 'E', 'e':
			if i+1 < len(code) && (code[i+1] == '+' || code[i+1] == '-') {
				raise(scientific)
				settle()
				return f
			}
			raise(moment) // years of an era
			f.date = true
		case 'y', 'Y', 'd', 'D', 'g', 'G', 'b', 'B':
			if strings.HasPrefix(strings.ToLower(code[i:]), "general") {
				return cellFormat{before: f.before + literal.String()}
			}
			raise(moment)
			f.date = true
		case 'h', 'H':
			raise(moment)
			f.clock = true
		case 's', 'S':
			raise(moment)
			f.clock, f.seconds = true, true
		case 'm', 'M':
			raise(moment)
			if !f.clock && !strings.Contains(strings.ToLower(code[i:]), "s") { // else these are minutes
				f.date = true
			} else if !f.clock && strings.ContainsAny(code[:i], "yYdD") {
				f.date = true
			}
		case '@':
			raise(asText)
		case ',', '/', ':', ' ', '+', '(', ')', '-':
			if c == ' ' || c == '+' {
				literal.WriteByte(c)
			}
		case 'A', 'a': // AM/PM
			if rest := strings.ToUpper(code[i:]); strings.HasPrefix(rest, "AM/PM") {
				i += 4
			} else if strings.HasPrefix(rest, "A/P") {
				i += 2
			} else {
				raise(moment)
				f.date = true
			}
		default:
			literal.WriteByte(c)
		}
	}
	settle()
	if !f.date && !f.clock && f.kind == moment {
		f.date = true
	}
	return f
}

// show writes a number that a cell holds. since is the year from which dates count.
func (f cellFormat) show(value string, since int) string {
	value = strings.TrimSpace(value)
	n, err := strconv.ParseFloat(value, 64)
	if err != nil || math.IsNaN(n) || math.IsInf(n, 0) {
		return value
	}
	switch f.kind {
	case moment:
		if s := f.moment(n, since); s != "" {
			return s
		}
		return plainNumber(n)
	case elapsed:
		sign := ""
		if n < 0 {
			sign = "-"
		}
		s := int64(math.Round(math.Abs(n) * 24 * 60 * 60))
		return sign + strconv.FormatInt(s/3600, 10) + time.Unix(s%3600, 0).UTC().Format(":04:05")
	case percent:
		return strconv.FormatFloat(n*100, 'f', min(f.decimals, 10), 64) + "%"
	case scientific:
		return strconv.FormatFloat(n, 'E', min(f.decimals, 15), 64)
	case fixed:
		s := strconv.FormatFloat(math.Abs(n), 'f', min(f.decimals, 15), 64)
		if n < 0 && strings.Trim(s, "0.") != "" {
			s = "-" + s
		}
		return strings.TrimSpace(f.before + s + f.after)
	}
	return strings.TrimSpace(f.before + plainNumber(n) + f.after)
}

// plainNumber is a number without what is below the precision of a sheet.
func plainNumber(n float64) string {
	if n == math.Trunc(n) && math.Abs(n) < 1e15 {
		return strconv.FormatFloat(n, 'f', -1, 64)
	}
	short := strconv.FormatFloat(n, 'g', 15, 64)
	if n, err := strconv.ParseFloat(short, 64); err == nil {
		if abs := math.Abs(n); abs >= 1e-6 && abs < 1e15 {
			return strconv.FormatFloat(n, 'f', -1, 64)
		}
		return strconv.FormatFloat(n, 'G', -1, 64)
	}
	return short
}

// maxDay is the last day that a sheet can show, the end of the year 9999.
const maxDay = 2958466

// moment writes a date, which is a number of days.
func (f cellFormat) moment(days float64, since int) string {
	if days < 0 || days >= maxDay {
		return ""
	}
	first := time.Date(1899, time.December, 30, 0, 0, 0, 0, time.UTC)
	switch {
	case since == 1904:
		first = time.Date(1904, time.January, 1, 0, 0, 0, 0, time.UTC)
	case days < 60: // Excel counts a 29 February 1900
		days++
	}
	day := math.Floor(days)
	second := math.Round((days - day) * 24 * 60 * 60)
	t := first.AddDate(0, 0, int(day)).Add(time.Duration(second) * time.Second)
	layout := "15:04"
	if f.seconds || t.Second() != 0 {
		layout = "15:04:05"
	}
	switch {
	case f.date && f.clock:
		return t.Format("2006-01-02 " + layout)
	case f.date:
		return t.Format("2006-01-02")
	}
	return t.Format(layout)
}
