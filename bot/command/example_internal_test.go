package command

import (
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/zephbot/zephbot/bot/texts"
)

// TestExampleCode: an example in which Telegram would see another command or a person is code, in every language.
func TestExampleCode(t *testing.T) {
	t.Parallel()
	for _, language := range (texts.Words{}).Languages() {
		text := (texts.Words{}).Help(language, []string{"new", "timezone"}, []string{"mcp"})
		code := exampleCode(text)
		if len(code) != 1 {
			t.Fatalf("%s: %+v in %q", language, code, text)
		}
		units := utf16.Encode([]rune(text))
		got := string(utf16.Decode(units[code[0].Offset : code[0].Offset+code[0].Length]))
		if !strings.HasPrefix(got, "/mcp add ") || !strings.HasSuffix(got, " /srv") {
			t.Errorf("%s: %q is code", language, got)
		}
	}
}
