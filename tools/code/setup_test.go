package code_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/policy/pathrule"
	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/code"
	"github.com/zephbot/zephbot/tools/file"
)

// box is a data directory with the workspaces of sessions, a directory outside, and an index.
type box struct {
	t     *testing.T
	base  string
	index *code.Index
	tool  tools.Tool
}

type args map[string]any

// setup returns a box. change may change the options before the index is made.
func setup(t *testing.T, files file.Options, change func(b *box, o *code.Options)) *box {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	b := &box{t: t, base: base}
	files.Workspace = func(o tools.Origin) (string, error) { return filepath.Join(base, "data", "workspaces", o.Session), nil }
	files.DeniedPaths = []string{filepath.Join(base, "data")}
	b.put("data/workspaces/ann/.keep", "")
	sources, err := file.NewSources(files)
	if err != nil {
		t.Fatal(err)
	}
	o := code.Options{Sources: sources, Log: zerolog.Nop(), Patience: time.Minute}
	if change != nil {
		change(b, &o)
	}
	if b.index, err = code.New(o); err != nil {
		t.Fatal(err)
	}
	if b.tool, err = b.index.Tool(); err != nil {
		t.Fatal(err)
	}
	return b
}

// ws returns a path in the workspace of a session.
func (b *box) ws(session, name string) string {
	return filepath.Join(b.base, "data", "workspaces", session, name)
}

// put writes a file, named from the base.
func (b *box) put(name, text string) {
	b.t.Helper()
	path := name
	if !filepath.IsAbs(path) {
		path = filepath.Join(b.base, name)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		b.t.Fatal(err)
	}
}

func (b *box) try(session string, in args) (*tools.Result, error) {
	b.t.Helper()
	raw, err := json.Marshal(in)
	if err != nil {
		b.t.Fatal(err)
	}
	call := &tools.Call{ID: "c", Tool: code.ToolName, Args: raw, Origin: tools.Origin{Session: session}, Trail: &tools.Trail{}}
	return b.tool.Run(b.t.Context(), call)
}

// find searches and returns the text of the result.
func (b *box) find(session string, in args) string {
	b.t.Helper()
	result, err := b.try(session, in)
	if err != nil {
		b.t.Fatalf("%v: %v", in, err)
	}
	return result.Text
}

// has checks that a text contains a part.
func (b *box) has(text, part string) {
	b.t.Helper()
	if !strings.Contains(text, part) {
		b.t.Errorf("no %q in:\n%s", part, text)
	}
}

// lacks checks that a text does not contain a part.
func (b *box) lacks(text, part string) {
	b.t.Helper()
	if strings.Contains(text, part) {
		b.t.Errorf("%q in:\n%s", part, text)
	}
}

// memory is a Store that counts.
type memory struct {
	mu    sync.Mutex
	files map[string]map[string]code.Stored
	put   int // outlines that were stored
	fail  error
}

func (m *memory) Load(_ context.Context, root string, see func(code.Stored) error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range m.files[root] {
		if err := see(s); err != nil {
			return err
		}
	}
	return m.fail
}

func (m *memory) Save(_ context.Context, root string, put []code.Stored, gone []string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.files == nil {
		m.files = map[string]map[string]code.Stored{}
	}
	if m.files[root] == nil {
		m.files[root] = map[string]code.Stored{}
	}
	for _, s := range put {
		if s.Outline == nil {
			s.Outline = m.files[root][s.Path].Outline
		} else {
			m.put++
		}
		m.files[root][s.Path] = s
	}
	for _, path := range gone {
		delete(m.files[root], path)
	}
	return m.fail
}

func (m *memory) Roots(context.Context) (roots []string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for root := range m.files {
		roots = append(roots, root)
	}
	return roots, m.fail
}

func (m *memory) Forget(_ context.Context, root string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.files, root)
	return m.fail
}

func globs(t *testing.T, deny ...string) *pathrule.Rules {
	t.Helper()
	rules, err := pathrule.New(deny, nil)
	if err != nil {
		t.Fatal(err)
	}
	return rules
}
