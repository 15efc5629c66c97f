package wire_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/zephbot/zephbot/agent/llm/wire"
)

// join decodes the sources of several strings and joins them.
func join(t *testing.T, sources ...string) string {
	t.Helper()
	var j wire.Joiner
	text := ""
	for _, source := range sources {
		var f wire.Fragment
		if err := json.Unmarshal([]byte(`"`+source+`"`), &f); err != nil {
			t.Fatalf("%q: %v", source, err)
		}
		text += j.Join(&f)
	}
	return text + j.Rest()
}

func TestJoiner(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		sources []string
		want    string
	}{
		"plain":                       {[]string{"a", "", "b"}, "ab"},
		"escapes":                     {[]string{`a\n\"`, `\u00e4\\`}, "a\n\"ä\\"},
		"pair in one":                 {[]string{`\ud83d\ude00`}, "😀"},
		"pair over two":               {[]string{`a\ud83d`, `\ude00b`}, "a😀b"},
		"pair with nothing between":   {[]string{`a\ud83d`, ``, `\ude00b`}, "a😀b"},
		"upper case":                  {[]string{`\uD83D`, `\uDE00\uD83D`, `\uDE01`}, "😀😁"},
		"escaped backslash":           {[]string{`\\ud83d`, `\\ude00`}, `\ud83d\ude00`},
		"backslash before a pair":     {[]string{`\\\ud83d`, `\ude00`}, `\😀`},
		"first half alone":            {[]string{`a\ud83d`, "b"}, "a\uFFFDb"},
		"first half last":             {[]string{`a\ud83d`}, "a\uFFFD"},
		"second half alone":           {[]string{`\ude00a`}, "\uFFFDa"},
		"bytes over two":              {[]string{"a\xf0\x9f", "\x98\x80b"}, "a😀b"},
		"bytes one by one":            {[]string{"\xf0", "\x9f", "\x98", "\x80", "ä"}, "😀ä"},
		"bytes and an escape":         {[]string{"\\n\xc3", "\xa4\\n"}, "\nä\n"},
		"bytes that are no character": {[]string{"\xf0\x9f", "b"}, "\uFFFD\uFFFDb"},
	} {
		if got := join(t, tt.sources...); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

func TestFragmentOfAnotherType(t *testing.T) {
	t.Parallel()
	for source, raw := range map[string]string{`null`: "", `{"a":1}`: `{"a":1}`, `[1]`: `[1]`, `7`: `7`} {
		var f wire.Fragment
		if err := json.Unmarshal([]byte(source), &f); err != nil || string(f.Raw) != raw || f.Text != "" {
			t.Errorf("%s: %+v, %v", source, f, err)
		}
	}
}

// FuzzJoiner: a text is the same whichever way its source was cut, unless an escape itself was cut.
func FuzzJoiner(f *testing.F) {
	f.Add("a😀ä\n\\ud83d", 3)
	f.Add("\xf0\x9f", 1)
	f.Fuzz(func(t *testing.T, text string, at int) {
		text = strings.ToValidUTF8(text, "?")
		source := strings.ReplaceAll(strings.ReplaceAll(text, `\`, `\\`), `"`, `\"`)
		if strings.ContainsFunc(text, func(r rune) bool { return r < ' ' }) || at < 0 || at > len(source) {
			return
		}
		if strings.HasSuffix(source[:at], `\`) {
			return
		}
		if got := join(t, source[:at], source[at:]); got != text {
			t.Errorf("cut at %d of %q: %q", at, source, got)
		}
	})
}
