package scan_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/zephbot/zephbot/policy/scan"
)

// TestTables: the tables have no mistakes, and each mistake that they could have is told with file and line.
func TestTables(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"rules.txt", "orders.txt", "vocabulary.txt", "conditions.txt"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := scan.ReadTable(file, string(text)); err != nil {
			t.Error(err)
		}
	}
	for _, rule := range scan.Conditioned() {
		if !slices.Contains(scan.Names(), rule) {
			t.Errorf("conditions.txt: there is no rule %s", rule)
		}
	}
	const concepts = "anchor drop: x\nconcept past: y\n"
	for _, c := range []struct{ file, text, want string }{
		{"rules.txt", "# a\n\nname\n", "rules.txt:3: a rule begins with its name and its category"},
		{"rules.txt", "  = x\n", "rules.txt:1: this belongs to no rule"},
		{"rules.txt", "a b\n  x\n", "rules.txt:1: the phrases are missing, or what it matches"},
		{"rules.txt", "# a\na b\n  = x\n", "rules.txt:2: the phrases are missing, or what it matches"},
		{"rules.txt", "a b\n  x\n  hand x\n  = x\n", "rules.txt:3: no function finds a"},
		{"orders.txt", "drop\n", "orders.txt:1: a colon and a blank are missing"},
		{"orders.txt", concepts + "anchor past: x\n", "orders.txt:3: a concept has one name, which is new, and there are at most 61"},
		{"orders.txt", concepts + "$set: drop|late\n", `orders.txt:3: "late" is no concept`},
		{"orders.txt", concepts + "a b 90: drop late\n", `orders.txt:3: "late" is no concept`},
		{"orders.txt", concepts + "a b 90: drop past, not late\n", `orders.txt:3: "late" is no concept`},
		{"orders.txt", concepts + "a b 90: drop past, near\n", `orders.txt:3: "near" is neither far nor not`},
		{"orders.txt", concepts + "a: drop past\n", "orders.txt:3: an order begins with its name, its category and perhaps a span"},
		{"orders.txt", concepts + "a b x: drop past\n", `orders.txt:3: strconv.Atoi: parsing "x": invalid syntax`},
		{"orders.txt", concepts + "a b: drop <x past\n", `orders.txt:3: strconv.Atoi: parsing "x": invalid syntax`},
		{"vocabulary.txt", "drop ignore\n", "vocabulary.txt:1: a colon and a blank are missing"},
		{"vocabulary.txt", "late: ignore\n", `vocabulary.txt:1: "late" is no concept of orders.txt`},
		{"conditions.txt", "a\n", "conditions.txt:1: a colon and a blank are missing"},
		{"conditions.txt", "a near: x\n", `conditions.txt:1: "near" is neither only, not, nor in`},
		{"conditions.txt", "\na only: (\n", "conditions.txt:2: error parsing regexp: missing closing ): `(?i)(`"},
	} {
		if err := scan.ReadTable(c.file, c.text); err == nil || err.Error() != c.want {
			t.Errorf("%q: %v, want %s", c.text, err, c.want)
		}
	}
	if err := scan.ReadTable("orders.txt", strings.Repeat("concept a: b\n", 2)); err == nil {
		t.Error("a concept is defined twice")
	}
}
