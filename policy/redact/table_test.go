package redact_test

import (
	"testing"

	"github.com/zephbot/zephbot/policy/redact"
)

// TestCredentials: the table has no mistakes, and each mistake that it could have is told with file and line.
func TestCredentials(t *testing.T) {
	t.Parallel()
	if rows, err := redact.ReadRules(redact.Table()); err != nil || rows < 150 {
		t.Fatalf("%d rows: %v", rows, err)
	}
	const fine = "# tokens\n\nnpm mixed: npm_\n  npm_[a-z]{8,}\n"
	for table, want := range map[string]string{
		fine + "npm npm_\n":                  "credentials.txt:5: a row is: name and properties, a colon, a blank, keywords",
		fine + "npm: \n":                     "credentials.txt:5: a row is: name and properties, a colon, a blank, keywords",
		fine + "aws: AKIA\n":                 "credentials.txt:5: keywords are in lower case",
		fine + "aws mixd: akia\n":            "credentials.txt:5: \"mixd\" is no property",
		fine + "aws back=x: akia\n":          "credentials.txt:5: \"back=x\" is no property",
		fine + "  x\n":                       "credentials.txt:5: this expression belongs to no row",
		"  x\n" + fine:                       "credentials.txt:1: this expression belongs to no row",
		fine + "token secret: token\n  x\n":  "credentials.txt:6: this expression belongs to no row",
		fine + "aws: akia\ngcp: aiza\n  A\n": "credentials.txt:5: no expression",
	} {
		if _, err := redact.ReadRules(table); err == nil || err.Error() != want {
			t.Errorf("%q: %v", table, err)
		}
	}
}
