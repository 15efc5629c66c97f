package code_test

import (
	"strings"
	"testing"

	"github.com/zephbot/zephbot/tools/code"
	"github.com/zephbot/zephbot/tools/file"
)

const poolFile = `package pool

import "errors"

// ErrTimeout is what a caller gets.
var ErrTimeout = errors.New("pool: too many are waiting")

// the message "too many are waiting" is explained here

func take(p *Pool) (*Conn, error) {
	select {
	case conn := <-p.idle:
		return conn, nil
	case <-p.clock.after(p.patience):
		return nil, ErrTimeout
	}
}

// discard drops one.
func discard(p *Pool, conn *Conn) { conn.close() }
`

// TestWordsOfBodies: a declaration is found by the words of its lines, and by words that mean the same as its name.
func TestWordsOfBodies(t *testing.T) {
	t.Parallel()
	b := setup(t, file.Options{}, nil)
	b.put(b.ws("ann", "pool.go"), poolFile)
	b.has(b.find("ann", args{"query": "idle patience clock"}), "[1] pool.go:10-17\n    func take(")
	b.has(b.find("ann", args{"query": "where is something removed from it"}), "[1] pool.go:20-20\n    func discard(")
}

// TestQuotes: a text in quotes is searched as it is, and a string of the code comes before a comment.
func TestQuotes(t *testing.T) {
	t.Parallel()
	b := setup(t, file.Options{}, nil)
	b.put(b.ws("ann", "pool.go"), poolFile)
	b.put(b.ws("ann", "notes.txt"), "Too many are waiting, it said\n")
	for _, in := range []args{
		{"query": `where do we say "pool: too many are waiting"?`},
		{"query": "who says “pool: too many are waiting”"},
		{"symbol": `"pool: too many are waiting"`},
		{"query": "pool: too many are waiting"},
	} {
		b.has(b.find("ann", in), "[1] pool.go:6-6\n    var ErrTimeout = errors.New(\"pool: too many are waiting\")\n    source: text search\n    score: 0.9")
	}
	text := b.find("ann", args{"query": `"too many are waiting"`})
	b.has(text, "notes.txt:1-1")
	b.has(text, "pool.go:8-8")
	// A file that was read once and cannot contain the text is not read again; one that has changed is.
	b.lacks(b.find("ann", args{"query": `"quite another text"`}), "text search")
	b.put(b.ws("ann", "notes.txt"), "Quite another text\n")
	b.has(b.find("ann", args{"query": `"quite another text"`}), "[1] notes.txt:1-1")
}

// TestPlacesOfLayers: what several layers have comes first, whatever their scores are; exact names come before.
func TestPlacesOfLayers(t *testing.T) {
	t.Parallel()
	m := &meaning{indexed: make(chan string, 10)}
	b := setup(t, file.Options{}, func(_ *box, o *code.Options) { o.Semantic = m })
	b.put(b.ws("ann", "pool.go"), poolFile)
	m.near = []code.Near{
		{Path: "pool.go", Start: 6, End: 6, Symbol: "ErrTimeout", Score: 0.99},
		{Path: "pool.go", Start: 20, End: 20, Symbol: "discard", Score: 0.2},
	}
	text := b.find("ann", args{"query": "drop one that is idle"})
	first, _, _ := strings.Cut(text, "\n")
	if first != "[1] pool.go:20-20" || strings.Count(text, "pool.go:20-20") != 1 || !strings.Contains(text, "source: vector search\n    score: 0.99") {
		t.Errorf("what both layers have is not the first, or is there twice:\n%s", text)
	}
	b.has(b.find("ann", args{"query": "what is ErrTimeout", "symbol": "take"}), "[1] pool.go:10-17")
}
