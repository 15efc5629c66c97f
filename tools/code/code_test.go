package code_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/code"
	"github.com/zephbot/zephbot/tools/code/watch"
	"github.com/zephbot/zephbot/tools/file"
)

const (
	goFile = `package web

// AuthMiddleware lets only people pass who are signed in.
func AuthMiddleware(next Handler) Handler {
	return nil
}

type Server struct{}

// Close ends it.
func (s *Server) Close() error { return nil }

func use() { AuthMiddleware(nil) }
`
	pyFile = "class RateLimiter:\n    def allow(self):\n        return True\n"
)

func TestQuestionsInWords(t *testing.T) {
	t.Parallel()
	b := setup(t, file.Options{}, nil)
	b.put(b.ws("ann", "web/auth.go"), goFile)
	b.put(b.ws("ann", "limit.py"), pyFile)
	for question, want := range map[string]string{
		"find the authentication middleware":       "[1] web/auth.go:4-6",
		"where are requests limited to a rate?":    "[1] limit.py:1-3",
		"how does the server get closed":           "[1] web/auth.go:11-11",
		"What does AuthMiddleware do":              "[1] web/auth.go:4-6\n    func AuthMiddleware(next Handler) Handler {\n    source: structural\n    score: 0.9",
		"nothing of this is there: zebra crossing": "No code matches found",
	} {
		b.has(b.find("ann", args{"query": question}), want)
	}
}

// TestWhatIsAround: of declarations that fit alike, the one whose file or package is about the question is first, words
// that say little do not outweigh others, and code for tests stands behind.
func TestWhatIsAround(t *testing.T) {
	t.Parallel()
	b := setup(t, file.Options{}, nil)
	const opens = "\n\n// Open opens the %s.\nfunc Open() error { return nil }\n"
	for path, text := range map[string]string{
		"a/zoo/open.go":        "package zoo" + fmt.Sprintf(opens, "store"),
		"b/vault/doc.go":       "// Package vault keeps documents of customers, encrypted.\npackage vault\n",
		"b/vault/open.go":      "package vault" + fmt.Sprintf(opens, "store"),
		"a/mail/send.go":       "package mail\n\n// Sending retries a letter.\nfunc Sending() {}\n",
		"a/one/without.go":     "package one\n\nfunc without() { list() }\n",
		"a/lettertest/fake.go": "package lettertest\n\n// Postmark stamps a parcel.\nfunc Postmark() {}\n",
		"z/post/parcel.go":     "package post\n\n// Postmark stamps a parcel.\nfunc Postmark() {}\n",
	} {
		b.put(b.ws("ann", path), text)
	}
	for question, want := range map[string]string{
		"open the store of encrypted customers": "[1] b/vault/open.go:4-4",
		"send a letter without asking":          "[1] a/mail/send.go:4-4",
		"stamp a parcel":                        "[1] z/post/parcel.go:4-4",
	} {
		b.has(b.find("ann", args{"query": question}), want)
	}
}

// TestCommonNames: a name that many symbols have does not stand before what the rest of a question says, and a question
// of which a symbol has one common word only is answered.
func TestCommonNames(t *testing.T) {
	t.Parallel()
	b := setup(t, file.Options{}, nil)
	text := "package shapes\n"
	for _, shape := range []string{"Circle", "Square", "Line", "Point", "Polygon"} {
		text += "\ntype " + shape + " struct{}\n\nfunc (" + shape + ") toText() string { return \"\" }\n"
	}
	b.put(b.ws("ann", "shapes.go"), text)
	b.put(b.ws("ann", "write.go"), "package shapes\n\n// Describe says how each drawn figure prints itself.\nfunc Describe() {}\n")
	b.has(b.find("ann", args{"query": "which function describes how a drawn figure prints by toText"}), "[1] write.go:4-4")
	b.has(b.find("ann", args{"query": "toText"}), "[1] shapes.go:5-5")
	b.has(b.find("ann", args{"query": "solar panels whose voltage inverters measured each morning"}), "[1] write.go:4-4")
}

func TestSymbols(t *testing.T) {
	t.Parallel()
	b := setup(t, file.Options{}, nil)
	b.put(b.ws("ann", "web/auth.go"), goFile)
	for symbol, want := range map[string]string{
		"Server.Close": "[1] web/auth.go:11-11\n    func (s *Server) Close() error { return nil }\n    source: structural\n    score: 0.98",
		"middleware":   "[1] web/auth.go:4-6",
		"AUTH":         "[1] web/auth.go:4-6",
		"Other.Close":  "No code matches found",
		"return nil":   "source: grep fallback\n    score: 0.45",
	} {
		b.has(b.find("ann", args{"symbol": symbol}), want)
	}
	text := b.find("ann", args{"symbol": "AuthMiddleware", "include_references": true})
	b.has(text, "[2] web/auth.go:13-13\n    func use() { AuthMiddleware(nil) }\n    source: text references")
	b.has(b.find("ann", args{"symbol": "Server", "file_pattern": "*.py"}), "No code matches found")
	b.has(b.find("ann", args{"symbol": "Server", "file_pattern": "web/**"}), "auth.go:8-8")
	result, err := b.try("ann", args{"symbol": "Server", "max_results": 1})
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(result.Raw)
	if want := `{"results":[{"file_path":"web/auth.go","line_start":8,"line_end":8,"snippet":"type Server struct{}","source":"structural","score":0.98,"symbol_name":"Server"}],"locations":["web/auth.go"]}`; err != nil || string(raw) != want {
		t.Errorf("raw %s (%v), want %s", raw, err, want)
	}
}

func TestBadArguments(t *testing.T) {
	t.Parallel()
	b := setup(t, file.Options{}, nil)
	for want, in := range map[string]args{
		"nothing to look for": {"query": " ", "symbol": ""}, "is not a valid pattern": {"query": "a", "file_pattern": "[a"},
		"too long, or has more than": {"query": "a", "file_pattern": strings.Repeat("**/", 20)},
		"at most 1000":               {"query": strings.Repeat("a", 2000)}, "at most 300": {"symbol": strings.Repeat("a", 2000)},
	} {
		_, err := b.try("ann", in)
		if e := tools.AsError(err); err == nil || e.Category != tools.InvalidParameters || !strings.Contains(e.Message, want) {
			t.Errorf("%v: %v, want %q", in, err, want)
		}
	}
}

// TestWhatMayNotBeRead: a search finds only what grep of the same conversation finds, although others have indexed more.
func TestWhatMayNotBeRead(t *testing.T) {
	t.Parallel()
	allowed, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	b := setup(t, file.Options{AllowedPaths: []string{allowed}, Rules: globs(t, "*/private/*", "*.key.go")}, nil)
	secret := func(name string) string { return "package x\n\nfunc Secret" + name + "() {}\n" }
	b.put("outside/a.go", secret("Outside"))
	b.put("data/config.go", secret("Data"))
	b.put(b.ws("ben", "b.go"), secret("Ben"))
	b.put(b.ws("ben", "c.go"), secret("Ben"))
	b.put(b.ws("ann", "mine.go"), "package x\n\nfunc SecretMine() {}\n")
	b.put(b.ws("ann", "private/p.go"), secret("Private"))
	b.put(b.ws("ann", "a.key.go"), secret("Key"))
	b.put(b.ws("ann", ".env.go"), secret("Hidden"))
	b.put(b.ws("ann", ".gitignore"), "ignored.go\n")
	b.put(b.ws("ann", "ignored.go"), secret("Ignored"))
	b.put(b.ws("ann", "node_modules/m.js"), "function SecretModule() {}\n")
	b.put(filepath.Join(allowed, "shared.go"), "package x\n\nfunc SecretShared() {}\n")
	for link, to := range map[string]string{"out": "outside", "ben": "data/workspaces/ben", "file.go": "outside/a.go", "data": "data"} {
		if err := os.Symlink(filepath.Join(b.base, to), b.ws("ann", link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Link(b.ws("ben", "c.go"), b.ws("ann", "linked.go")); err != nil {
		t.Fatal(err)
	}
	b.has(b.find("ben", args{"symbol": "Secret"}), "SecretBen")
	for _, in := range []args{{"symbol": "Secret", "max_results": 50}, {"query": "secret", "max_results": 50}, {"query": "x", "symbol": "func", "max_results": 50}} {
		text := b.find("ann", in)
		for _, no := range []string{"Outside", "Data", "Ben", "Private", "Key", "Hidden", "Ignored", "Module"} {
			b.lacks(text, "Secret"+no)
		}
		b.has(text, "SecretMine")
		b.has(text, filepath.Join(allowed, "shared.go"))
	}
	// What becomes forbidden after it was indexed is not shown from memory.
	if err := os.Remove(b.ws("ann", "mine.go")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(b.base, "outside", "a.go"), b.ws("ann", "mine.go")); err != nil {
		t.Fatal(err)
	}
	b.lacks(b.find("ann", args{"symbol": "SecretMine"}), "mine.go")
}

// TestPlaces: [index] paths narrow what is searched, and never widen it.
func TestPlaces(t *testing.T) {
	t.Parallel()
	b := setup(t, file.Options{}, func(b *box, o *code.Options) {
		o.Places = func(tools.Origin) ([]string, error) {
			return []string{b.ws("ann", "sub"), filepath.Join(b.base, "outside")}, nil
		}
	})
	b.put("outside/a.go", "package x\n\nfunc FindMe() {}\n")
	b.put(b.ws("ann", "top.go"), "package x\n\nfunc FindMe() {}\n")
	b.put(b.ws("ann", "sub/in.go"), "package x\n\nfunc FindMe() {}\n")
	text := b.find("ann", args{"symbol": "FindMe"})
	b.has(text, "[1] sub/in.go:3-3")
	b.lacks(text, "[2]")
	if _, err := b.try("ben", args{"symbol": "FindMe"}); err == nil || tools.AsError(err).Category != tools.PolicyBlocked {
		t.Errorf("another conversation: %v", err)
	}
}

// TestIncremental: a file is parsed again only if its content has changed, also after a restart.
func TestIncremental(t *testing.T) {
	t.Parallel()
	store := &memory{}
	keep := func(_ *box, o *code.Options) {
		o.Store = store
		o.Now = func() time.Time { return time.Now().Add(time.Hour) } // no file is written "just now"
	}
	b := setup(t, file.Options{}, keep)
	parsed := func(want int) {
		t.Helper()
		if store.put != want {
			t.Errorf("%d outlines were stored, want %d", store.put, want)
		}
	}
	b.put(b.ws("ann", "a.go"), goFile)
	b.put(b.ws("ann", "b.py"), pyFile)
	b.has(b.find("ann", args{"symbol": "RateLimiter"}), "b.py:1-3")
	parsed(2)
	past := time.Now().Add(-time.Hour)
	if err := os.Chtimes(b.ws("ann", "a.go"), past, past); err != nil {
		t.Fatal(err)
	}
	b.find("ann", args{"symbol": "RateLimiter"})
	parsed(2)
	b.put(b.ws("ann", "b.py"), "\n\n"+pyFile)
	b.has(b.find("ann", args{"symbol": "RateLimiter"}), "b.py:3-5")
	parsed(3)
	if err := os.Remove(b.ws("ann", "b.py")); err != nil {
		t.Fatal(err)
	}
	b.has(b.find("ann", args{"symbol": "RateLimiter"}), "No code matches found")
	again, err := code.New(code.Options{Sources: b.index.Sources, Store: store, Log: b.index.Log, Now: b.index.Now})
	if err != nil {
		t.Fatal(err)
	}
	if b.tool, err = again.Tool(); err != nil {
		t.Fatal(err)
	}
	b.has(b.find("ann", args{"symbol": "AuthMiddleware"}), "a.go:4-6")
	parsed(3)
	store.fail = errors.New("disk full")
	b.put(b.ws("ann", "c.py"), pyFile)
	b.has(b.find("ann", args{"symbol": "RateLimiter"}), "c.py:1-3")
}

// TestWatched: a change is found without a walk of the files, and a directory that is gone is forgotten.
func TestWatched(t *testing.T) {
	t.Parallel()
	store := &memory{}
	b := setup(t, file.Options{}, func(b *box, o *code.Options) {
		w, err := watch.New(t.TempDir(), 0)
		if err != nil {
			t.Skipf("no watching here: %v", err)
		}
		t.Cleanup(func() { _ = w.Close() })
		o.Watcher, o.Store = w, store
	})
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		if err := b.index.Run(ctx, nil); err != nil {
			t.Error(err)
		}
	})
	defer running.Wait()
	defer cancel()
	b.put(b.ws("ann", "a.go"), goFile)
	b.has(b.find("ann", args{"symbol": "AuthMiddleware"}), "a.go:4-6")
	b.find("ann", args{"symbol": "AuthMiddleware"})
	for i, name := range []string{"b.py", "new/deep/c.py", "new/d.py"} {
		b.put(b.ws("ann", name), strings.Repeat("\n", i)+pyFile)
		b.has(b.find("ann", args{"symbol": "RateLimiter", "file_pattern": "*.py"}), name)
	}
	b.put(b.ws("ann", "b.py"), "class Renamed: pass\n")
	b.has(b.find("ann", args{"symbol": "Renamed"}), "b.py:1-1")
	b.lacks(b.find("ann", args{"symbol": "RateLimiter"}), " b.py")
}

// watched starts a box whose directories are watched, at most limit of them (0 = many), and what looks at the log.
func watched(t *testing.T, limit int) (*box, *lines) {
	t.Helper()
	log := &lines{}
	b := setup(t, file.Options{}, func(_ *box, o *code.Options) {
		w, err := watch.New(t.TempDir(), limit)
		if err != nil {
			t.Skipf("no watching here: %v", err)
		}
		t.Cleanup(func() { _ = w.Close() })
		o.Watcher, o.Log = w, zerolog.New(log)
	})
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = b.index.Run(ctx, nil) })
	t.Cleanup(running.Wait)
	t.Cleanup(cancel)
	return b, log
}

// lines is a log. Safe for concurrent use.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) count(part string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), part)
}

// TestWatchedDirectories: a search sees directories that were moved, deleted or ignored a moment ago.
func TestWatchedDirectories(t *testing.T) {
	t.Parallel()
	b, log := watched(t, 0)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	find := func() string { t.Helper(); return b.find("ann", args{"symbol": "RateLimiter"}) }
	b.put(b.ws("ann", "old/deep/limit.py"), pyFile)
	b.put(b.ws("ann", "kept.py"), "class Kept: pass\n")
	b.has(find(), "[1] old/deep/limit.py:1-3")
	must(os.Rename(b.ws("ann", "old"), b.ws("ann", "new")))
	b.has(find(), "[1] new/deep/limit.py:1-3")
	b.lacks(find(), "old/")
	b.put(b.ws("ann", "new/deep/limit.py"), "\n"+pyFile)
	b.has(find(), "[1] new/deep/limit.py:2-4")
	b.put(b.ws("ann", ".gitignore"), "new/\n")
	b.has(find(), "No code matches found")
	b.put(b.ws("ann", "new/deep/limit.py"), "\n\n"+pyFile) // while nobody watches it
	b.put(b.ws("ann", ".gitignore"), "\n")
	b.has(find(), "[1] new/deep/limit.py:3-5")
	must(os.RemoveAll(b.ws("ann", "new")))
	b.has(find(), "No code matches found")
	b.put(b.ws("ann", "new/deep/limit.py"), pyFile)
	b.has(find(), "[1] new/deep/limit.py:1-3")
	b.has(b.find("ann", args{"symbol": "Kept"}), "kept.py:1-1")
	if n := log.count("warn"); n > 0 {
		t.Errorf("%d warnings", n)
	}
}

// TestTooManyDirectories: what cannot be watched is looked at by each search, and the log says so once.
func TestTooManyDirectories(t *testing.T) {
	t.Parallel()
	b, log := watched(t, 2)
	b.put(b.ws("ann", "a/b/c/limit.py"), pyFile)
	b.put(b.ws("ben", "limit.py"), pyFile)
	for i := range 3 {
		b.put(b.ws("ann", "a/b/c/limit.py"), strings.Repeat("\n", i)+pyFile)
		b.has(b.find("ann", args{"symbol": "RateLimiter"}), fmt.Sprintf("[1] a/b/c/limit.py:%d-%d", i+1, i+3))
	}
	b.has(b.find("ben", args{"symbol": "RateLimiter"}), "[1] limit.py:1-3")
	b.put(b.ws("ben", "limit.py"), "\n"+pyFile)
	b.has(b.find("ben", args{"symbol": "RateLimiter"}), "[1] limit.py:2-4")
	if n := log.count("not all directories can be watched"); n != 1 {
		t.Errorf("the log says %d times that not everything is watched", n)
	}
}

// server answers as gopls does, with lines from 0.
type server struct {
	b     *box
	asked []string
	err   error
}

func (s *server) Ask(_ context.Context, _ *tools.Call, tool string, args json.RawMessage) (string, error) {
	s.asked = append(s.asked, tool+" "+string(args))
	path := s.b.ws("ann", "web/auth.go")
	switch tool {
	case "go_search":
		return "Top symbol matches:\n\tweb.AuthMiddleware (Function in `" + path + "`)\n\tweb.Stolen (Function in `" + s.b.ws("ben", "b.go") + "`)\n", s.err
	case "go_symbol_references":
		return "The object has 3 references. Their locations are listed below\nReference 0\nLocated in the file: " + path +
			"\nThe reference is located on line 3, which has content `func AuthMiddleware(next Handler) Handler {`\n\nReference 1\nLocated in the file: " + path +
			"\nThe reference is located on line 12, which has content `func use() { AuthMiddleware(nil) }`\n\nReference 2\nLocated in the file: /etc/passwd\nThe reference is located on line 0, which has content `root`\n", s.err
	}
	return `{"contents": "func AuthMiddleware(next Handler) Handler"}`, s.err
}

func TestLanguageServer(t *testing.T) {
	t.Parallel()
	asked := &server{}
	b := setup(t, file.Options{}, func(b *box, o *code.Options) {
		o.Server = asked
		o.Asks = code.Asks{
			Symbols: `go_search {"query": "$symbol"}`, References: `go_symbol_references {"file": "$file", "symbol": "$symbol"}`,
			Hover: `hover {"file": "$file", "line": "$line", "character": "$column"}`,
		}
	})
	asked.b = b
	b.put(b.ws("ann", "web/auth.go"), goFile)
	b.put(b.ws("ben", "b.go"), "package x\n\nfunc Stolen() {}\n")
	text := b.find("ann", args{"symbol": "AuthMiddleware", "include_references": true})
	b.has(text, "[1] web/auth.go:4-6\n    func AuthMiddleware(next Handler) Handler {\n    hover: {\"contents\": \"func AuthMiddleware(next Handler) Handler\"}\n    source: structural")
	b.has(text, "web/auth.go:13-13\n    func use() { AuthMiddleware(nil) }\n    source: LSP references\n    score: 0.90")
	b.lacks(text, "Stolen")
	b.lacks(text, "passwd")
	b.lacks(text, "auth.go:3-3") // lines are counted from 0, although line 3 has the name too
	b.find("ann", args{"symbol": "Server.Close", "include_references": true})
	if want := `go_symbol_references {"file":"` + b.ws("ann", "web/auth.go") + `","symbol":"Server.Close"}`; asked.asked[len(asked.asked)-1] != want {
		t.Errorf("asked %q, want %s at the end", asked.asked, want)
	}
	if want := `hover {"character":6,"file":"` + b.ws("ann", "web/auth.go") + `","line":4}`; asked.asked[1] != want {
		t.Errorf("asked %q, want %s", asked.asked, want)
	}
	asked.err = errors.New("gone")
	b.has(b.find("ann", args{"symbol": "AuthMiddleware"}), "source: structural")
}

// meaning finds one passage.
type meaning struct {
	near    []code.Near
	indexed chan string
	err     error
}

func (m *meaning) Near(context.Context, string, string, int) ([]code.Near, error) {
	return m.near, m.err
}
func (m *meaning) Forget(context.Context, string) error { return nil }
func (m *meaning) Indexed(root string)                  { m.indexed <- root }

func TestMeaning(t *testing.T) {
	t.Parallel()
	m := &meaning{indexed: make(chan string, 10)}
	b := setup(t, file.Options{}, func(_ *box, o *code.Options) { o.Semantic = m })
	b.put(b.ws("ann", "web/auth.go"), goFile)
	m.near = []code.Near{{Path: "web/auth.go", Start: 11, End: 11, Symbol: "Server.Close", Score: 0.8}, {Path: "../ben/b.go", Start: 1, End: 1, Score: 1}, {Path: "gone.go", Start: 1, End: 1}}
	text := b.find("ann", args{"query": "shut everything down"})
	b.has(text, "[1] web/auth.go:11-11\n    func (s *Server) Close() error { return nil }\n    source: vector search\n    score: 0.80")
	b.lacks(text, "[2]")
	root := <-m.indexed
	var symbols []string
	for p, err := range b.index.Passages(t.Context(), root) {
		if err != nil || !strings.Contains(p.Text, "\nweb/auth.go\n") || p.Start < 1 || p.End < p.Start {
			t.Errorf("passage %+v (%v)", p, err)
		}
		symbols = append(symbols, p.Symbol)
	}
	if len(symbols) == 0 || symbols[0] != "AuthMiddleware" {
		t.Errorf("passages of %q", symbols)
	}
	m.err = errors.New("down")
	b.has(b.find("ann", args{"query": "shut everything down"}), "[the search by meaning is not available at the moment]")
}
