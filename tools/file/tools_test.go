package file_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/policy/reason"
	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/file"
)

func TestRead(t *testing.T) {
	t.Parallel()
	b := newBox(t, func(_ *box, o *file.Options) { o.MaxRead = 6000 })
	long := strings.Repeat("ä", 3000)
	for name, content := range map[string]string{
		"plain": "a\nb\n", "open end": "a\nb", "crlf": "a\r\nb\r\n", "bom": "\xef\xbb\xbfa\n", "empty": "", "blank": "\n\n", "long": long + "\nb\n", "many": strings.Repeat(strings.Repeat("x", 90)+"\n", 200),
		"png": "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", "nul": "abc\x00def", "utf16": "\xff\xfea\x00b\x00", "utf16 bare": "a\x00b\x00c\x00d\x00e\x00f\x00", "utf32": "\xff\xfe\x00\x00a\x00\x00\x00",
		"latin": "caf\xe9 au lait\n", "late": strings.Repeat("ok\n", 10000) + "\xff\xfe bad\n", "pdf": "%PDF-1.4\xff\xff", "control": "\x01\x02\xff\x03",
		"cut rune": strings.Repeat("a", 16<<10-1) + "ä",
	} {
		b.put(name, content)
	}
	for _, tc := range []struct {
		in   args
		want string
	}{
		{args{"path": "plain"}, "   1\ta\n   2\tb"},
		{args{"path": "open end"}, "   1\ta\n   2\tb"},
		{args{"path": "crlf"}, "   1\ta\n   2\tb"},
		{args{"path": "bom"}, "   1\ta"},
		{args{"path": "empty"}, "(empty file)"},
		{args{"path": "blank"}, "   1\t\n   2\t"},
		{args{"path": "plain", "offset": 1}, "   2\tb"},
		{args{"path": "plain", "limit": 1}, "   1\ta\n[more lines follow: go on with offset 1]"},
		{args{"path": "plain", "limit": 2}, "   1\ta\n   2\tb"},
		{args{"path": "plain", "offset": 2}, "[the file has 2 lines: nothing at offset 2]"},
		{args{"path": "long"}, "   1\t" + strings.Repeat("ä", 1000) + " … [line cut: 6001 bytes in all]\n   2\tb"},
		{args{"path": "png"}, "binary file, 16 bytes, looks like image/png"},
		{args{"path": "nul"}, "binary file, 7 bytes"},
		{args{"path": "pdf"}, "binary file, 10 bytes, looks like application/pdf"},
		{args{"path": "control"}, "binary file, 4 bytes"},
		{args{"path": "utf16"}, "[read as UTF-16LE]\n   1\tab"},
		{args{"path": "late", "offset": 9999}, "10000\tok\n10001\t[not UTF-8: 6 bytes]"},
	} {
		if diff := cmp.Diff(tc.want, b.run("read", tc.in)); diff != "" {
			t.Errorf("%v (-want +got):\n%s", tc.in, diff)
		}
	}
	for name, want := range map[string]string{
		"utf16 bare": "[not UTF-8, read as UTF-16LE, judging by its bytes]\n   1\tabcdef", "utf32": "[read as UTF-32LE]\n   1\ta",
		"latin": "[not UTF-8, read as windows-1252: letters beyond ASCII may be wrong]\n   1\tcafé au lait",
	} {
		if got := b.run("read", args{"path": name}); !strings.Contains(got, want) {
			t.Errorf("%s: %q", name, got)
		}
	}
	if got := b.run("read", args{"path": "many"}); !strings.HasSuffix(got, "\n[more lines follow: go on with offset 62]") || len(got) > 6100 {
		t.Errorf("%d bytes end with %q", len(got), got[len(got)-60:])
	}
	if got := b.run("read", args{"path": "cut rune"}); !strings.HasPrefix(got, "   1\taaa") {
		t.Errorf("got %q", got[:40])
	}
	b.refuse("read", args{"path": "plaine"}, tools.PermanentFailure, `Did you mean "plain"?`)
	b.refuse("read", args{"path": "."}, tools.PermanentFailure, "is a directory")
	b.refuse("read", args{"path": "plain/x"}, tools.PermanentFailure, `"plain" is not a directory`)
	b.refuse("read", args{"path": "plain", "offset": -1}, tools.InvalidParameters, "offset")
}

// A file with holes is larger than memory; only what is asked for is read.
func TestReadSparse(t *testing.T) {
	t.Parallel()
	b := newBox(t, nil)
	b.put("sparse", "first line\n")
	if err := os.Truncate(b.path("sparse"), 64<<30); err != nil {
		t.Skip("no sparse files:", err)
	}
	if got := b.run("read", args{"path": "sparse"}); got != fmt.Sprintf("binary file, %d bytes", 64<<30) {
		t.Errorf("got %q", got)
	}
	b.refuse("edit", args{"path": "sparse", "old_string": "first", "new_string": "x"}, tools.PermanentFailure, "can be edited")
	b.refuse("copy_path", args{"source": "sparse", "destination": "copy"}, tools.PermanentFailure, "at most")
	if got := b.run("grep", args{"pattern": "first"}); got != "No matches for first" {
		t.Errorf("got %q", got)
	}
}

func TestWrite(t *testing.T) {
	t.Parallel()
	b := newBox(t, func(_ *box, o *file.Options) { o.MaxWrite = 100 })
	if got := b.run("write", args{"path": "a/b/c.txt", "content": "one\n"}); got != "Wrote 4 bytes to a/b/c.txt" || b.content("a/b/c.txt") != "one\n" {
		t.Errorf("got %q", got)
	}
	if err := os.Chmod(b.path("a/b/c.txt"), 0o755); err != nil {
		t.Fatal(err)
	}
	s := b.describe("write", args{"path": "a/b/c.txt", "content": "two"})
	want := tools.Subject{
		Inputs: []string{b.path("a/b/c.txt")}, Paths: []string{b.path("a/b/c.txt")}, Show: "a/b/c.txt\ntwo",
		Note: reason.Notes(reason.New(reason.InWorkspace), reason.New(reason.ReplacesBytes, "4")),
	}
	if diff := cmp.Diff(want, s); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := b.run("write", args{"path": "a/b/c.txt", "content": "two"}); got != "Replaced the content: 3 bytes to a/b/c.txt" {
		t.Errorf("got %q", got)
	}
	if info, err := os.Stat(b.path("a/b/c.txt")); err != nil || info.Mode().Perm() != 0o755 || b.content("a/b/c.txt") != "two" {
		t.Errorf("%v, %v", info, err)
	}
	b.refuse("write", args{"path": "a", "content": ""}, tools.PermanentFailure, "is a directory")
	b.refuse("write", args{"path": ".", "content": ""}, tools.PermanentFailure, "is a directory")
	b.refuse("write", args{"path": "a/b/c.txt/d", "content": ""}, tools.PermanentFailure, "not a directory")
	b.refuse("write", args{"path": "big", "content": strings.Repeat("x", 101)}, tools.InvalidParameters, "at most 100")
	b.put("locked", "x")
	if err := os.Chmod(b.path("locked"), 0o444); err != nil {
		t.Fatal(err)
	}
	b.refuse("write", args{"path": "locked", "content": "y"}, tools.PermanentFailure, "read-only")
	list, err := os.ReadDir(b.path("a/b"))
	if err != nil || len(list) != 1 {
		t.Errorf("left behind: %v, %v", list, err)
	}
}

// A reader sees one whole content or the other, and a cancelled call leaves nothing behind.
func TestWriteIsAtomic(t *testing.T) {
	t.Parallel()
	b := newBox(t, nil)
	one, two := strings.Repeat("1", 50_000), strings.Repeat("2", 50_000)
	b.put("f", one)
	var wg sync.WaitGroup
	for _, content := range []string{one, two} {
		wg.Go(func() {
			for range 6 {
				if _, err := b.try("write", args{"path": "f", "content": content}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 20 {
		if got, err := os.ReadFile(b.path("f")); err != nil || (string(got) != one && string(got) != two) {
			t.Errorf("half a file: %d bytes, %v", len(got), err)
		}
	}
	wg.Wait()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.tools["write"].Run(ctx, b.call("write", args{"path": "f", "content": "three"})); !errors.Is(err, context.Canceled) || tools.AsError(err).Category != tools.Cancelled {
		t.Errorf("got %v", err)
	}
	if list, err := os.ReadDir(b.ws); err != nil || len(list) != 1 {
		t.Errorf("left behind: %v, %v", list, err)
	}
}

func TestEdit(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, content, old, new string
		all                     bool
		want                    string
	}{
		{"once", "a\nb\nc\n", "b", "x", false, "a\nx\nc\n"},
		{"all", "a b a\na", "a", "bb", true, "bb b bb\nbb"},
		{"all, growing", "aaa", "a", "aa", true, "aaaaaa"},
		{"delete", "a\nb\nc\n", "b\n", "", false, "a\nc\n"},
		{"crlf", "a\r\nb\r\nc\r\n", "a\nb", "x\ny\nz", false, "x\r\ny\r\nz\r\nc\r\n"},
		{"crlf given", "a\r\nb\r\n", "a\r\nb", "x\r\ny", false, "x\r\ny\r\n"},
		{"mixed stays", "a\r\nb\nc\n", "b\nc", "x\ny", false, "a\r\nx\ny\n"},
		{"bom stays", "\xef\xbb\xbfa", "a", "b", false, "\xef\xbb\xbfb"},
		{"dollar", "cost", "cost", "$1\\n", false, "$1\\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			b := newBox(t, nil)
			b.put("f", tc.content)
			b.run("edit", args{"path": "f", "old_string": tc.old, "new_string": tc.new, "replace_all": tc.all})
			if got := b.content("f"); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestEditAnswers(t *testing.T) {
	t.Parallel()
	b := newBox(t, nil)
	b.put("f", "1\n2\n3\nfoo  bar\n\tbaz()\n6\n7\nlast x x\n")
	want := "Replaced 1 occurrence in f\n@@ line 4 @@\n 2\n 3\n-foo  bar\n+new\n+line\n \tbaz()\n 6"
	if got := b.run("edit", args{"path": "f", "old_string": "foo  bar", "new_string": "new\nline"}); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	b.put("f", "1\n2\n3\nfoo  bar\n\tbaz()\n6\n7\nlast x x\n")
	b.refuse("edit", args{"path": "f", "old_string": "x", "new_string": "y"}, tools.InvalidParameters, `old_string occurs 2 times in "f", on lines 8, 8`)
	b.refuse("edit", args{"path": "f", "old_string": "foo bar\nbaz()", "new_string": "y"}, tools.PermanentFailure, "lines 4 to 5 differ from it only in white space")
	b.refuse("edit", args{"path": "f", "old_string": "    baz()", "new_string": "y"}, tools.PermanentFailure, "line 5 differs from it only in white space")
	b.refuse("edit", args{"path": "f", "old_string": "quite different", "new_string": "y"}, tools.PermanentFailure, "Read the file again")
	b.refuse("edit", args{"path": "f", "old_string": "", "new_string": "y"}, tools.InvalidParameters, "old_string is empty")
	b.refuse("edit", args{"path": "f", "old_string": "a", "new_string": "a"}, tools.InvalidParameters, "the same")
	b.put("bin", "a\x00b")
	b.refuse("edit", args{"path": "bin", "old_string": "a", "new_string": "b"}, tools.PermanentFailure, `"bin" is not text (binary file, 3 bytes)`)
	s := b.describe("edit", args{"path": "f", "old_string": "foo\nbar", "new_string": "x", "replace_all": true})
	if want := "f\n- foo\n- bar\n+ x\n"; s.Show != want || s.Note.String() != "in the workspace · every occurrence" {
		t.Errorf("got %q, want %q: %s", s.Show, want, s.Note)
	}
	all := b.run("edit", args{"path": "f", "old_string": "x", "new_string": "y", "replace_all": true})
	if want := "Replaced 2 occurrences in f\n@@ line 8 @@\n 6\n 7\n-last x x\n+last y y"; all != want {
		t.Errorf("got\n%s", all)
	}
}

// TestEncodingIsKept: what an edit or a write does not mean to change stays as it is, in bytes.
func TestEncodingIsKept(t *testing.T) {
	t.Parallel()
	b := newBox(t, nil)
	edit := func(old, by string) args { return args{"path": "f", "old_string": old, "new_string": by} }
	write := func(text string) args { return args{"path": "f", "content": text} }
	for _, c := range []struct {
		name, tool string
		in         args
		was, is    string
		says       string
	}{
		{"edit Latin-1", "edit", edit("Größe", "Länge"), "die Gr\xf6\xdfe\n", "die L\xe4nge\n", "[written as windows-1252, as the file was]"},
		{"edit UTF-16", "edit", edit("b", "ü"), "\xff\xfea\x00b\x00", "\xff\xfea\x00\xfc\x00", "[written as UTF-16LE, as the file was]"},
		{"edit after a mark", "edit", edit("a", "b"), "\xef\xbb\xbfa\n", "\xef\xbb\xbfb\n", "Replaced 1 occurrence"},
		{"write over CRLF", "write", write("x\ny\n"), "a\r\nb\r\n", "x\r\ny\r\n", "[its line ends were kept: CRLF]"},
		{"write CRLF over LF", "write", write("x\r\n"), "a\n", "x\r\n", "Replaced the content: 3 bytes to f"},
		{"write LF over both", "write", write("x\ny\n"), "a\r\nb\n", "x\ny\n", "Replaced the content: 4 bytes to f"},
		{"write over a mark", "write", write("x"), "\xef\xbb\xbfa", "\xef\xbb\xbfx", "[its byte order mark was kept]"},
		{"write a mark over a mark", "write", write("\ufeffx"), "\xef\xbb\xbfa", "\xef\xbb\xbfx", "Replaced the content: 4 bytes to f"},
		{"write over UTF-16", "write", write("ü\n"), "\xfe\xff\x00a\x00\r\x00\n", "\xfe\xff\x00\xfc\x00\r\x00\n", "[its line ends were kept: CRLF]\n[its encoding was kept: UTF-16BE]"},
		{"write over Latin-1", "write", write("ü"), "caf\xe9", "\xfc", "[its encoding was kept: windows-1252]"},
		{"write what Latin-1 has not", "write", write("→"), "caf\xe9", "→", "[it is UTF-8 now: windows-1252 has no '→']"},
		{"write over bytes", "write", write("x\n"), "\x00\x01\r\n", "x\n", "Replaced the content: 2 bytes to f"},
		{"write over nothing", "write", write("x\n"), "", "x\n", "Replaced the content: 2 bytes to f"},
	} {
		b.put("f", c.was)
		if got := b.run(c.tool, c.in); !strings.Contains(got, c.says) || c.tool == "write" && !strings.HasSuffix(got, c.says) {
			t.Errorf("%s: %q", c.name, got)
		}
		if got := b.content("f"); got != c.is {
			t.Errorf("%s: %q, want %q", c.name, got, c.is)
		}
	}
	b.put("f", "caf\xe9")
	b.refuse("edit", edit("c", "→"), tools.InvalidParameters, `cannot hold the new text: windows-1252 has no '→'`)
	b.put("f", "\xef\xbb\xbfa\xff")
	b.refuse("edit", edit("a", "b"), tools.PermanentFailure, "would be lost")
	for old, line := range map[string]string{`say "hi"`: "line 1 differs", "it's": "line 2 differs", "a - b": "line 3 differs", "a\u0308b": "line 4 differs"} {
		b.put("f", "say “hi”\nit’s\na – b\näb\n")
		b.refuse("edit", edit(old, "x"), tools.PermanentFailure, line+" from it only in the form of characters")
	}
}

func TestFindPath(t *testing.T) {
	t.Parallel()
	b := newBox(t, nil)
	for _, f := range []string{"a.go", "b.txt", "d/c.go", "d/e/f.go", ".hidden/g.go", "x[1].go"} {
		b.put(f, "")
	}
	b.put(filepath.Join(b.shared, "s.go"), "")
	b.link("d", "l")
	for _, tc := range []struct {
		in   args
		want string
	}{
		{args{"pattern": "*.go"}, "a.go\nx[1].go"},
		{args{"pattern": "**/*.go"}, ".hidden/g.go\na.go\nd/c.go\nd/e/f.go\nx[1].go"},
		{args{"pattern": "d/**"}, "d/c.go\nd/e\nd/e/f.go"},
		{args{"pattern": "*.{go,txt}"}, "a.go\nb.txt\nx[1].go"},
		{args{"pattern": `x\[1\].go`}, "x[1].go"},
		{args{"pattern": `x[1].go`}, "x[1].go"},
		{args{"pattern": `**/x[1].*`}, "x[1].go"},
		{args{"pattern": `[ab].[gt]*`}, "a.go\nb.txt"},
		{args{"pattern": "*", "path": "d"}, "d/c.go\nd/e"},
		{args{"pattern": "e/*", "path": "d/"}, "d/e/f.go"},
		{args{"pattern": "*.go", "path": b.shared}, filepath.Join(b.shared, "s.go")},
		{args{"pattern": b.shared + "/*"}, filepath.Join(b.shared, "s.go")},
		{args{"pattern": "a.go"}, "a.go"},
		{args{"pattern": "zzz*"}, "No files matching zzz*"},
		{args{"pattern": "zzz/*"}, "No files matching zzz/*"},
		{args{"pattern": "**/*.go", "max_results": 2}, ".hidden/g.go\na.go\n[more results: only the first 2 are shown; narrow the pattern or the path]"},
		{args{"pattern": "*.go", "max_results": 2}, "a.go\nx[1].go"},
		{args{"pattern": "l/*"}, "d/c.go\nd/e"},
	} {
		if diff := cmp.Diff(tc.want, b.run("find_path", tc.in)); diff != "" {
			t.Errorf("%v (-want +got):\n%s", tc.in, diff)
		}
	}
	b.refuse("find_path", args{"pattern": "[a"}, tools.InvalidParameters, "not a valid pattern")
	b.refuse("find_path", args{"pattern": ""}, tools.InvalidParameters, "empty")
	b.refuse("find_path", args{"pattern": strings.Repeat("**/", 9)}, tools.InvalidParameters, "too long")
	b.refuse("find_path", args{"pattern": "*", "max_results": 0}, tools.InvalidParameters, "max_results")
	b.refuse("find_path", args{"pattern": "*", "path": "missing"}, tools.PermanentFailure, "does not exist")
}

// The time and the number of files are limited, and the answer says that it is incomplete.
func TestBounds(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	now := time.Unix(0, 0)
	b := newBox(t, func(_ *box, o *file.Options) {
		o.MaxEntries, o.MaxCopy = 20, 10
		o.MaxTime = 10 * time.Second
		o.Now = func() time.Time {
			mu.Lock()
			defer mu.Unlock()
			now = now.Add(time.Second)
			return now
		}
	})
	for i := range 30 {
		b.put(fmt.Sprintf("d%d/f%02d", i/10, i), "x")
	}
	for tool, pattern := range map[string]string{"grep": "zzz", "find_path": "**/zzz"} {
		if got := b.run(tool, args{"pattern": pattern}); !strings.Contains(got, "[the search is not complete, because there are too many files") {
			t.Errorf("%s: %s", tool, got)
		}
	}
	b.mkdir(strings.Repeat("e/", 12))
	if got := b.run("find_path", args{"pattern": "e/**/zzz"}); !strings.Contains(got, "because the time is over") {
		t.Errorf("got %s", got)
	}
	b.put("big", strings.Repeat("x", 11))
	b.refuse("copy_path", args{"source": "big", "destination": "c"}, tools.PermanentFailure, "at most 10 bytes")
	b.mkdir("many")
	for i := range 25 {
		b.put(fmt.Sprintf("many/%d", i), "")
	}
	b.refuse("copy_path", args{"source": "many", "destination": "c"}, tools.PermanentFailure, "20")
	b.refuse("delete_path", args{"path": "many"}, tools.PermanentFailure, "20")
	for i := range 30 {
		b.put(fmt.Sprintf("deep/%d/%d", i%2, i), "")
	}
	for path, want := range map[string]string{"d0": "directory · files: 10", "deep": "directory · entries: at least 21, not everything could be counted"} {
		if s := b.describe("delete_path", args{"path": path}); s.Show != path || s.Note.String() != "in the workspace · "+want {
			t.Errorf("got %q, %q", s.Show, s.Note)
		}
	}
	if b.exists("c") {
		t.Error("half a copy")
	}
}

func TestCreateDirectory(t *testing.T) {
	t.Parallel()
	b := newBox(t, nil)
	b.put("f", "")
	if got := b.run("create_directory", args{"path": "a/b/c"}); got != "Created directory a/b/c" || !b.exists("a/b/c") {
		t.Errorf("got %q", got)
	}
	for _, p := range []string{"a/b", "."} {
		if got := b.run("create_directory", args{"path": p}); got != "The directory exists already: "+p {
			t.Errorf("got %q", got)
		}
	}
	b.refuse("create_directory", args{"path": "f"}, tools.PermanentFailure, "exists already")
	b.refuse("create_directory", args{"path": "f/x"}, tools.PermanentFailure, "not a directory")
}

func TestDelete(t *testing.T) {
	t.Parallel()
	b := newBox(t, nil)
	for i := range 12 {
		b.put(fmt.Sprintf("d/f%d", i), "x")
	}
	b.put("d/sub/x", "")
	b.link("f1", "d/l")
	b.mkdir("empty")
	b.put("f", "abc")
	for path, want := range map[string]string{"d": " · directory · files: 13 · directories: 1 · links and special files: 1", "empty": " · empty directory", "f": " · size: 3 B", "no": ""} {
		if s := b.describe("delete_path", args{"path": path}); s.Show != path || s.Note.String() != "in the workspace"+want {
			t.Errorf("got %q, %q", s.Show, s.Note)
		}
	}
	b.run("delete_path", args{"path": "empty", "recursive": false})
	b.run("delete_path", args{"path": "f"})
	if got := b.run("delete_path", args{"path": "d"}); got != "Deleted d (directory · files: 13 · directories: 1 · links and special files: 1)" {
		t.Errorf("got %q", got)
	}
	b.refuse("delete_path", args{"path": "d"}, tools.PermanentFailure, "does not exist")
	if list, err := os.ReadDir(b.ws); err != nil || len(list) != 0 {
		t.Errorf("%v, %v", list, err)
	}
}

func TestMoveAndCopy(t *testing.T) {
	t.Parallel()
	b := newBox(t, nil)
	b.put("a.txt", "a")
	b.put("d/x/y", "y")
	b.put("old", "old content")
	if err := os.Chmod(b.path("a.txt"), 0o750); err != nil {
		t.Fatal(err)
	}
	s := b.describe("copy_path", args{"source": "a.txt", "destination": "old"})
	want := tools.Subject{
		Inputs: []string{b.path("a.txt"), b.path("old")}, Paths: []string{b.path("a.txt"), b.path("old")},
		Show: "a.txt → old",
		Note: reason.Notes(reason.New(reason.InWorkspace), reason.New(reason.FileSize, "1"), reason.New(reason.ReplacesBytes, "11")),
	}
	if diff := cmp.Diff(want, s); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	b.run("copy_path", args{"source": "a.txt", "destination": "old"})
	b.run("copy_path", args{"source": "a.txt", "destination": filepath.Join(b.shared, "new/deep/a.txt")})
	if info, err := os.Stat(filepath.Join(b.shared, "new/deep/a.txt")); err != nil || info.Mode().Perm() != 0o750 || b.content("old") != "a" || b.content("a.txt") != "a" {
		t.Errorf("%v, %v", info, err)
	}
	b.run("copy_path", args{"source": "d", "destination": "e"})
	b.run("move_path", args{"source": "d", "destination": filepath.Join(b.shared, "moved/d")})
	if b.content("e/x/y") != "y" || b.exists("d") || b.content(filepath.Join(b.shared, "moved/d/x/y")) != "y" {
		t.Error("the tree is not where it should be")
	}
	b.run("move_path", args{"source": "a.txt", "destination": "old"})
	if b.exists("a.txt") || b.content("old") != "a" {
		t.Error("not moved")
	}
	for _, tool := range []string{"move_path", "copy_path"} {
		b.refuse(tool, args{"source": "old", "destination": "e"}, tools.PermanentFailure, `for example "e/old"`)
		b.refuse(tool, args{"source": "e", "destination": "old"}, tools.PermanentFailure, "exists already")
		b.refuse(tool, args{"source": "e", "destination": "e/f"}, tools.InvalidParameters, "lies inside")
		b.refuse(tool, args{"source": "e", "destination": "./e"}, tools.InvalidParameters, "the same")
		b.refuse(tool, args{"source": "olt", "destination": "z"}, tools.PermanentFailure, `Did you mean "old"?`)
		b.refuse(tool, args{"source": "e", "destination": "old/z"}, tools.PermanentFailure, "not a directory")
	}
	b.refuse("move_path", args{"source": b.shared, "destination": "z"}, tools.PolicyBlocked, "cannot be moved")
	b.refuse("copy_path", args{"source": b.shared, "destination": "z"}, tools.PermanentFailure, "not copied as a whole")
}

// From one file system to another a move is a copy, all of it, and then a deletion.
func TestMoveAcrossFileSystems(t *testing.T) {
	t.Parallel()
	other, err := os.MkdirTemp("/dev/shm", "zephbot-test-") //nolint:usetesting // another file system than that of t.TempDir
	if err != nil {
		t.Skip("no second file system:", err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(other) }) // a directory of our own
	b := newBox(t, func(_ *box, o *file.Options) { o.AllowedPaths = append(o.AllowedPaths, other) })
	b.put("d/x/y", "y")
	b.link("x/y", "d/l")
	b.put("f", "f")
	b.run("move_path", args{"source": "d", "destination": other + "/sub/d"})
	b.run("move_path", args{"source": "f", "destination": other + "/f"})
	if b.exists("d") || b.exists("f") || b.content(other+"/sub/d/l") != "y" || b.content(other+"/f") != "f" {
		t.Error("not moved")
	}
	b.put("e/a", "a")
	b.link("/etc/passwd", "e/out")
	b.refuse("move_path", args{"source": "e", "destination": other + "/e"}, tools.PermanentFailure, "not everything can be moved")
	if list, err := os.ReadDir(other); err != nil || len(list) != 2 || !b.exists("e/a") {
		t.Errorf("%v, %v", list, err)
	}
}

func TestCancelled(t *testing.T) {
	t.Parallel()
	b := newBox(t, nil)
	b.put("d/a", "x")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, in := range map[string]args{
		"read": {"path": "d/a"}, "grep": {"pattern": "x"}, "find_path": {"pattern": "**"}, "list_directory": {"path": "d"}, "copy_path": {"source": "d", "destination": "e"}, "delete_path": {"path": "d"},
		"edit": {"path": "d/a", "old_string": "x", "new_string": "y"},
	} {
		if _, err := b.tools[name].Run(ctx, b.call(name, in)); err == nil || tools.AsError(err).Category != tools.Cancelled {
			t.Errorf("%s: %v", name, err)
		}
	}
	err := filepath.WalkDir(b.ws, func(path string, _ fs.DirEntry, err error) error {
		if strings.Contains(path, "zephbot-") && strings.HasSuffix(path, ".tmp") {
			t.Errorf("left behind: %s", path)
		}
		return err
	})
	if err != nil || b.content("d/a") != "x" {
		t.Error(err)
	}
}
