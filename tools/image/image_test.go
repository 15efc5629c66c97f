package image_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/zephbot/zephbot/policy/act"
	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/image"
	"github.com/zephbot/zephbot/tools/toolstest"
)

const png = "\x89PNG\r\n\x1a\n and dots"

// studio is the tool in a workspace, with a provider that makes the same picture of everything.
type studio struct {
	tools.Tool
	dir    string
	wishes []image.Wish
	kept   string
	last   string // the newest picture of the conversation; "" = none
	limit  int64
	err    error
	usd    float64
	known  bool
	full   bool
}

func open(t *testing.T) *studio {
	t.Helper()
	s := &studio{dir: filepath.Join(t.TempDir(), "work"), limit: 1 << 20, usd: 0.063, known: true}
	tool, err := image.New(image.Options{
		AskAbove: 0.1,
		Price:    func(*image.Wish) (float64, bool) { return s.usd, s.known },
		Make: func(_ context.Context, w *image.Wish) (image.Made, error) {
			s.wishes = append(s.wishes, *w)
			return image.Made{Data: []byte(png), Type: "image/png", USD: 0.0421}, s.err
		},
		Last: func(context.Context, tools.Origin) (io.ReadCloser, bool, error) {
			return io.NopCloser(strings.NewReader(s.last)), s.last != "", nil
		},
		Dir: func(tools.Origin) (string, error) { return s.dir, nil },
		Admit: func(context.Context, string, int64) error {
			if s.full {
				return errors.New("the disk is full")
			}
			return nil
		},
		Limit: func(tools.Origin) int64 { return s.limit },
		Keep: func(_ context.Context, _ string, content io.Reader) (string, int64, error) {
			data, err := io.ReadAll(content)
			s.kept = string(data)
			return "hash", int64(len(data)), err
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Tool = tool
	return s
}

func (s *studio) call(t *testing.T, args string) (*tools.Result, error) {
	t.Helper()
	return s.Run(t.Context(), &tools.Call{Args: json.RawMessage(args), Origin: tools.Origin{Session: "s"}})
}

func TestSays(t *testing.T) {
	t.Parallel()
	toolstest.CheckSays(t, image.Says(), map[string]toolstest.Said{image.Name: {Act: act.Makes}})
}

// TestMakes: a picture is stored under a name of its own, which can be undone, sent without text, and its price is told.
func TestMakes(t *testing.T) {
	t.Parallel()
	s := open(t)
	for _, name := range []string{"picture-a-red-fox-in.png", "picture-a-red-fox-in-2.png"} {
		const wanted = `{"prompt":"A red fox, in snow!","shape":"portrait"}`
		changes, err := s.Changes(t.Context(), &tools.Call{Args: json.RawMessage(wanted), Origin: tools.Origin{Session: "s"}})
		if err != nil || len(changes.Files) != 1 || !slices.Contains(changes.Files[0].Paths, filepath.Join(changes.Files[0].Root, name)) {
			t.Errorf("it changes %+v, %v", changes, err)
		}
		result, err := s.call(t, wanted)
		if err != nil || !strings.Contains(result.Text, name) || !strings.Contains(result.Text, "0.042 USD") {
			t.Fatalf("%+v, %v", result, err)
		}
		if f := result.Files; len(f) != 1 || f[0].Hash != "hash" || f[0].Name != name || f[0].Caption != "" || s.kept != png {
			t.Errorf("sent %+v", f)
		}
		if data, err := os.ReadFile(filepath.Join(s.dir, name)); err != nil || string(data) != png {
			t.Errorf("stored %q, %v", data, err)
		}
	}
	if w := s.wishes[0]; w.Shape != image.Portrait || w.Edit != nil {
		t.Errorf("wished %+v", w)
	}
	s.limit, s.full = 0, true
	result, err := s.call(t, `{"prompt":"Ö"}`)
	if err != nil || len(result.Files) != 0 || !strings.Contains(result.Text, "shows no pictures") || !strings.Contains(result.Text, "not stored") {
		t.Errorf("%+v, %v", result, err)
	}
}

// TestEdits: the picture to be changed is the newest one of the conversation or a file of the workspace, and nothing else.
func TestEdits(t *testing.T) {
	t.Parallel()
	s := open(t)
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	outside := filepath.Join(filepath.Dir(s.dir), "secret.png")
	for name, content := range map[string]string{filepath.Join(s.dir, "a.png"): png, filepath.Join(s.dir, "a.txt"): "text", outside: png} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(outside, filepath.Join(s.dir, "link.png")); err != nil {
		t.Fatal(err)
	}
	s.last = "\xff\xd8\xff\xe0 a photo"
	for edit, kind := range map[string]string{"sent": "image/jpeg", "a.png": "image/png"} {
		if _, err := s.call(t, `{"prompt":"blue","edit":"`+edit+`"}`); err != nil || s.wishes[len(s.wishes)-1].EditType != kind {
			t.Errorf("%s: %v", edit, err)
		}
	}
	n := len(s.wishes)
	for _, edit := range []string{"b.png", "a.txt", "link.png", "../secret.png", outside, "."} {
		call := &tools.Call{Args: json.RawMessage(`{"prompt":"blue","edit":"` + edit + `"}`)}
		if err := s.Check(t.Context(), call); err == nil {
			t.Errorf("%s is taken", edit)
		}
		if _, err := s.Run(t.Context(), call); err == nil {
			t.Errorf("%s is changed", edit)
		}
	}
	s.last = ""
	if _, err := s.call(t, `{"prompt":"blue","edit":"sent"}`); err == nil || len(s.wishes) != n {
		t.Errorf("nothing was sent: %v, %d wishes", err, len(s.wishes)-n)
	}
}

// TestCostly: what a picture may cost is on the card, and one above the limit, or without a price, is for a person.
func TestCostly(t *testing.T) {
	t.Parallel()
	s := open(t)
	for name, row := range map[string]struct {
		usd    float64
		known  bool
		costly bool
		note   string
	}{
		"cheap":   {0.063, true, false, "costs up to 0.063 USD"},
		"dear":    {0.1671, true, true, "costs up to 0.17 USD"},
		"unknown": {0, false, true, "nobody knows what it costs"},
		"free":    {0, true, false, "costs up to 0 USD"},
	} {
		s.usd, s.known = row.usd, row.known
		subject, err := s.Describe(t.Context(), &tools.Call{Args: json.RawMessage(`{"prompt":"a","edit":"sent"}`)})
		if err != nil || subject.Costly != row.costly || !strings.Contains(subject.Note.String(), row.note) || !strings.Contains(subject.Note.String(), "changes a picture") {
			t.Errorf("%s: %+v, %v", name, subject, err)
		}
	}
	for _, args := range []string{`{"prompt":" "}`, `{"prompt":"` + strings.Repeat("x", 4001) + `"}`} {
		if _, err := s.Describe(t.Context(), &tools.Call{Args: json.RawMessage(args)}); err == nil {
			t.Errorf("%.20s is taken", args)
		}
	}
}

// TestFails: what the provider says is the call's error, and leaves no file.
func TestFails(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.err = tools.Errorf(tools.PermanentFailure, "refused")
	if _, err := s.call(t, `{"prompt":"a"}`); !errors.Is(err, s.err) {
		t.Errorf("%v", err)
	}
	if list, err := os.ReadDir(s.dir); err != nil || len(list) != 0 || bytes.Contains([]byte(s.kept), []byte("PNG")) {
		t.Errorf("left %v, %v", list, err)
	}
}
