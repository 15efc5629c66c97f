package scan

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// Skeleton returns what a name looks like: equal for names that a reader may take for each other. It is in lower case,
// without blanks, signs, marks and invisible characters, with look-alike letters replaced. It is for comparing only.
func Skeleton(name string) string {
	f := fold(norm.NFKD.String(name), false)
	plain := strings.Map(func(r rune) rune {
		r = unicode.ToLower(r)
		switch {
		case r == 'i' || r == '1' || r == '|':
			return 'l'
		case r == '0':
			return 'o'
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			return -1
		}
		return r
	}, f.text)
	return strings.ReplaceAll(plain, "rn", "m")
}
