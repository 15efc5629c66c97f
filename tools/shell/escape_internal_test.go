package shell

import "testing"

func TestWithoutEscapes(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"plain é":                                  "plain é",
		"\x1b[31mred\x1b[0m end":                   "red end",
		"\x1b[38;5;1;4mx\x1b[K":                    "x",
		"\x1b]0;title\x07text":                     "text",
		"\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\": "link",
		"\x1b(Bx":                                  "x",
		"\x1b7x\x1b8":                              "x",
		"a\x1b]never ended":                        "a",
		"a\x1b[12":                                 "a",
		"a\x1b":                                    "a",
		"a\x1b(":                                   "a",
	} {
		if got := withoutEscapes(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
