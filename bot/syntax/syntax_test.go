package syntax_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/bot/syntax"
)

// sample is a row of testdata/samples.json, which the test of the simulator's page reads as well: both divide alike.
type sample struct {
	Language string      `json:"language"`
	Code     string      `json:"code"`
	Pieces   [][2]string `json:"pieces"` // text and kind of what is not plain
}

func samples(t *testing.T) (list []sample) {
	t.Helper()
	raw, err := os.ReadFile("testdata/samples.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		t.Fatal(err)
	}
	return list
}

// TestSamples: comments, strings, numbers and words of each style are found.
func TestSamples(t *testing.T) {
	t.Parallel()
	for _, s := range samples(t) {
		var got [][2]string
		for _, p := range syntax.Divide(s.Code, s.Language) {
			if p.Kind != syntax.Plain {
				got = append(got, [2]string{p.Text, string(p.Kind)})
			}
		}
		if diff := cmp.Diff(s.Pieces, got); diff != "" {
			t.Errorf("%s %q (-want +got):\n%s", s.Language, s.Code, diff)
		}
	}
}

// TestEveryLanguage: each language of the table can be used under each of its names, and divides nothing but text.
func TestEveryLanguage(t *testing.T) {
	t.Parallel()
	var all struct {
		Languages map[string]any    `json:"languages"`
		Same      map[string]string `json:"same"`
	}
	if err := json.Unmarshal(syntax.Languages, &all); err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for name := range all.Languages {
		names[name] = true
	}
	for name, other := range all.Same {
		if names[name] = true; all.Languages[other] == nil {
			t.Errorf("%s is called %s, which is no language", name, other)
		}
	}
	for name := range names {
		if got := syntax.Divide(`"text" 12`, strings.ToUpper(name)); len(got) < 2 || !syntax.Known(strings.ToUpper(name)) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	for _, name := range []string{"", "brainfuck", "text"} {
		if got := syntax.Divide(`"text" 12`, name); len(got) != 1 || got[0].Kind != syntax.Plain || syntax.Known(name) {
			t.Errorf("%q: %+v", name, got)
		}
	}
}

// FuzzDivide: the pieces together are the code, in every language and however it is cut.
func FuzzDivide(f *testing.F) {
	f.Add("func main() { // \"\n`", "go")
	f.Add("x = '''a\n# b", "python")
	f.Add("+a\n-b\n@@", "diff")
	f.Add("<!-- <a href=\"", "html")
	f.Fuzz(func(t *testing.T, code, language string) {
		var b strings.Builder
		for _, p := range syntax.Divide(code, language) {
			b.WriteString(p.Text)
		}
		if b.String() != code {
			t.Errorf("%s: %q became %q", language, code, b.String())
		}
	})
}

// BenchmarkDivide divides as much code as is ever divided.
func BenchmarkDivide(b *testing.B) {
	code := strings.Repeat("func f(x int) string { return \"text\" + `more` } // 12 words\n", syntax.Longest/60)[:syntax.Longest-100]
	for b.Loop() {
		syntax.Divide(code, "go")
	}
}
