package outline_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"golang.org/x/tools/txtar"

	"github.com/zephbot/zephbot/tools/code/outline"
)

// sound checks what holds for every outline.
func sound(t *testing.T, lang outline.Language, src []byte) {
	t.Helper()
	out := outline.Parse(lang, src)
	last := strings.Count(string(src), "\n") + 1
	if len(out.Symbols) > outline.MaxSymbols {
		t.Fatalf("%s: %d symbols", lang, len(out.Symbols))
	}
	for _, s := range out.Symbols {
		if s.Name == "" || len(s.Name) > outline.MaxName || len(s.Doc) > outline.MaxDoc || len(s.Container) > outline.MaxName || s.Kind == "" {
			t.Fatalf("%s: %+v", lang, s)
		}
		if s.Start < 1 || s.Line < s.Start || s.End < s.Line || s.End > last {
			t.Fatalf("%s: lines of %+v in a file of %d", lang, s, last)
		}
		if !utf8.ValidString(s.Name + s.Container + s.Doc) {
			t.Fatalf("%s: not UTF-8: %+v", lang, s)
		}
	}
}

// fuzz runs a target for one language, with the sources in testdata and with prefixes of them.
func fuzz(f *testing.F, langs ...outline.Language) {
	f.Helper()
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for _, part := range archive.Files {
			f.Add(part.Data)
			f.Add(part.Data[:len(part.Data)/2])
		}
	}
	for _, s := range hostile {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		for _, lang := range langs {
			sound(t, lang, src)
		}
	})
}

// hostile are beginnings that are never finished, and what scanners are confused by.
var hostile = []string{
	"{", "}", "(", ")", "[", "<", "/*", "/* /*", "\"", "'", "`", "`${", "`${`${", "#if 0\n", "#define X \\\n", "R\"x(", "r#\"", "\"\"\"", "'''", "<<EOF\n",
	"=begin\n", "a::", "\\", "\xff", "\x00", "\ufeff", "@", "@a(", "#[a", "template<", "- ", "- - - a: ", "---\n", "# ", "= ", "===\n", "func (", "fn f<", "class A{", "impl ",
	"const (", "x = {", "a: {", "/[", "if (", "=>", "operator", "operator(", "typedef struct {", "~", "private: ", "<<", "def ", "[[", "\r", "\t", "é", "𝕏",
}

func FuzzGo(f *testing.F)     { fuzz(f, outline.Go) }
func FuzzRust(f *testing.F)   { fuzz(f, outline.Rust) }
func FuzzScript(f *testing.F) { fuzz(f, outline.JavaScript, outline.TypeScript) }
func FuzzJava(f *testing.F)   { fuzz(f, outline.Java) }
func FuzzC(f *testing.F)      { fuzz(f, outline.C, outline.CPP) }
func FuzzPython(f *testing.F) { fuzz(f, outline.Python) }
func FuzzRuby(f *testing.F)   { fuzz(f, outline.Ruby) }
func FuzzBash(f *testing.F)   { fuzz(f, outline.Bash) }
func FuzzKeys(f *testing.F)   { fuzz(f, outline.TOML, outline.JSON, outline.YAML) }
func FuzzMarkdown(f *testing.F) {
	fuzz(f, outline.Markdown)
}

// TestHostile repeats each beginning up to the size of the largest file that is read: no scanner may need more than
// linear time, or keep more than its limits allow.
func TestHostile(t *testing.T) {
	t.Parallel()
	size := 128 << 10
	if os.Getenv("ZEPH_SLOW") != "" {
		size = outline.MaxBytes + 10
	}
	var before, after runtime.MemStats
	for _, lang := range outline.Languages() {
		for _, s := range hostile {
			src := []byte(strings.Repeat(s, size/len(s)+1))
			runtime.ReadMemStats(&before)
			began := time.Now()
			sound(t, lang, src)
			if took := time.Since(began); took > 20*time.Second {
				t.Errorf("%s: %q takes %v", lang, s, took)
			}
			runtime.ReadMemStats(&after)
			if used := after.TotalAlloc - before.TotalAlloc; used > 256<<20 {
				t.Errorf("%s: %q allocates %d MB", lang, s, used>>20)
			}
		}
	}
}
