package file_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/policy/pathrule"
	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/file"
)

// outlet keeps what is sent, at most 32 bytes a file.
type outlet struct {
	limit int64
	kept  []string
	half  func() // runs when some of a content has been read
}

func (o *outlet) keep(_ context.Context, _ string, content io.Reader) (string, int64, error) {
	head := make([]byte, 2)
	n, err := io.ReadFull(content, head)
	if err != nil {
		return "", 0, err
	}
	if o.half != nil {
		o.half()
	}
	rest, err := io.ReadAll(content)
	if err != nil {
		return "", 0, err
	}
	text := string(head[:n]) + string(rest)
	o.kept = append(o.kept, text)
	return "hash of " + text, int64(len(text)), nil
}

func sending(t *testing.T) (*box, *outlet) {
	t.Helper()
	out := &outlet{limit: 32}
	b := newBox(t, func(_ *box, o *file.Options) {
		o.Outlet = &file.Outlet{Limit: func(tools.Origin) int64 { return out.limit }, Keep: out.keep}
	})
	return b, out
}

// TestAttackSendElsewhere: a call cannot say where a file goes.
func TestAttackSendElsewhere(t *testing.T) {
	t.Parallel()
	b, _ := sending(t)
	var schema struct {
		Properties map[string]any
	}
	if err := json.Unmarshal(b.tools["send_file"].Definition.Schema, &schema); err != nil {
		t.Fatal(err)
	}
	names := slices.Sorted(maps.Keys(schema.Properties))
	if want := []string{"caption", "output", "path", "paths"}; !slices.Equal(names, want) {
		t.Errorf("a call says %q, want %q", names, want)
	}
}

func TestSendFile(t *testing.T) {
	t.Parallel()
	b, out := sending(t)
	png := "\x89PNG\x0D\x0A\x1A\x0A"
	for name, content := range map[string]string{
		"d/a.txt": "hello", "a.png": png, "a.jpg": "\xFF\xD8\xFF\xE0", "a.webp": "RIFF0000WEBPVP", "s.mp3": "ID3", "s.M4A": "sound", "odd.jpg": "no picture",
	} {
		b.put(name, content)
	}
	b.link("d/a.txt", "link.txt")
	for path, want := range map[string]tools.File{
		"d/a.txt":  {Name: "a.txt", MIME: "text/plain", Hash: "hash of hello", Size: 5, Caption: "see 😀"},
		"link.txt": {Name: "a.txt", MIME: "text/plain", Hash: "hash of hello", Size: 5, Caption: "see 😀"},
		"a.png":    {Name: "a.png", MIME: "image/png", Hash: "hash of " + png, Size: 8, Caption: "see 😀"},
		"a.jpg":    {Name: "a.jpg", MIME: "image/jpeg", Hash: "hash of \xFF\xD8\xFF\xE0", Size: 4, Caption: "see 😀"},
		"a.webp":   {Name: "a.webp", MIME: "image/webp", Hash: "hash of RIFF0000WEBPVP", Size: 14, Caption: "see 😀"},
		"s.mp3":    {Name: "s.mp3", MIME: "audio/mpeg", Hash: "hash of ID3", Size: 3, Caption: "see 😀"},
		"s.M4A":    {Name: "s.M4A", MIME: "audio/mp4", Hash: "hash of sound", Size: 5, Caption: "see 😀"},
		"odd.jpg":  {Name: "odd.jpg", MIME: "text/plain", Hash: "hash of no picture", Size: 10, Caption: "see 😀"},
	} {
		in := args{"path": path, "caption": "see 😀"}
		res, err := b.tools["send_file"].Run(t.Context(), b.call("send_file", in))
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if diff := cmp.Diff([]tools.File{want}, res.Files); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
	}
	s := b.describe("send_file", args{"path": "d/a.txt", "caption": "see"})
	if s.Show != "d/a.txt" || !strings.HasSuffix(s.Note.String(), `with the caption "see"`) {
		t.Errorf("%+v", s)
	}
	out.limit, out.kept = 0, nil
	if got := b.run("send_file", args{"path": "d/a.txt"}); !strings.Contains(got, b.path("d/a.txt")) || len(out.kept) > 0 {
		t.Errorf("without files in the channel: %q, kept %q", got, out.kept)
	}
}

// TestSendFiles: several files are one result in the order given, each once, with one caption.
func TestSendFiles(t *testing.T) {
	t.Parallel()
	b, out := sending(t)
	for _, name := range []string{"a.txt", "b.txt", "c.txt"} {
		b.put(name, name)
	}
	in := args{"path": "b.txt", "paths": []string{"a.txt", "./b.txt", "c.txt"}, "caption": "all"}
	res, err := b.tools["send_file"].Run(t.Context(), b.call("send_file", in))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range res.Files {
		got = append(got, f.Name+" "+f.Hash+" "+f.Caption)
	}
	want := []string{"b.txt hash of b.txt all", "a.txt hash of a.txt ", "c.txt hash of c.txt "}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	s := b.describe("send_file", in)
	if diff := cmp.Diff([]string{b.path("b.txt"), b.path("a.txt"), b.path("c.txt")}, s.Paths); diff != "" || s.Show != "b.txt, a.txt, c.txt" {
		t.Errorf("%q %s", s.Show, diff)
	}
	out.kept = nil
	many := make([]string, 11)
	for i := range many {
		many[i] = string(rune('d'+i)) + ".txt"
		b.put(many[i], many[i])
	}
	b.run("send_file", args{"paths": many[:10]})
	out.kept = nil
	b.refuse("send_file", args{"paths": many}, tools.InvalidParameters, "at most 10")
	b.refuse("send_file", args{}, tools.InvalidParameters, "no file is named")
	b.refuse("send_file", args{"paths": []string{"a.txt", "../two/other.txt"}}, tools.PolicyBlocked, "off limits")
	b.refuse("send_file", args{"paths": []string{"a.txt", "c.txt"}, "caption": strings.Repeat("😀", 513)}, tools.InvalidParameters, "1026 characters")
	if len(out.kept) > 0 {
		t.Errorf("kept %q of what was refused", out.kept)
	}
}

// TestSendFileRefuses: what cannot be sent is refused with one sentence, before anything is stored.
func TestSendFileRefuses(t *testing.T) {
	t.Parallel()
	b, out := sending(t)
	b.put("big", strings.Repeat("x", 33))
	b.put("empty", "")
	b.put("fine", strings.Repeat("x", 32))
	b.put(b.shared+"/a.txt", "shared")
	b.link(b.outside+"/secret.txt", "out")
	b.link(b.shared+"/a.txt", "other")
	b.mkdir("d")
	for _, c := range []struct {
		in       args
		category tools.Category
		holds    string
	}{
		{args{"path": "d"}, tools.PermanentFailure, "is a directory"},
		{args{"path": "none"}, tools.PermanentFailure, "does not exist"},
		{args{"path": "empty"}, tools.PermanentFailure, "is empty"},
		{args{"path": "big"}, tools.PermanentFailure, "at most 32"},
		{args{"path": "out"}, tools.PolicyBlocked, "off limits"},
		{args{"path": "other"}, tools.PolicyBlocked, "outside the working directory"},
		{args{"path": b.shared + "/a.txt"}, tools.PolicyBlocked, "outside the working directory"},
		{args{"path": "../two/other.txt"}, tools.PolicyBlocked, "off limits"},
		{args{"path": "fine", "caption": strings.Repeat("😀", 513)}, tools.InvalidParameters, "1026 characters"},
	} {
		b.refuse("send_file", c.in, c.category, c.holds)
		check := b.tools["send_file"].Check(t.Context(), b.call("send_file", c.in))
		if e, ok := errors.AsType[*tools.Error](check); !ok || e.Category != c.category {
			t.Errorf("%v: the check says %v", c.in, check)
		}
	}
	for name, change := range map[string]func(){
		"grows":   func() { b.put("fine", strings.Repeat("x", 40)) },
		"shrinks": func() { b.put("fine", "xxx") },
		"rewritten": func() {
			b.put("fine", strings.Repeat("y", 32))
			if err := os.Chtimes(b.path("fine"), time.Unix(1, 0), time.Unix(1, 0)); err != nil {
				t.Error(err)
			}
		},
	} {
		b.put("fine", strings.Repeat("x", 32))
		out.half = change
		b.refuse("send_file", args{"path": "fine"}, tools.PermanentFailure, "changed while it was read")
		if len(out.kept) > 0 {
			t.Errorf("%s: kept %q", name, out.kept)
		}
	}
	out.half = nil
	b.put("fine", strings.Repeat("x", 32))
	b.run("send_file", args{"path": "fine", "caption": strings.Repeat("😀", 512)})
}

// TestSendFileObeysDenyRead: what may not be read may not be sent, under any of its names.
func TestSendFileObeysDenyRead(t *testing.T) {
	t.Parallel()
	out := &outlet{limit: 32}
	o := newBox(t, func(o *box, options *file.Options) {
		rules, err := pathrule.New([]string{o.top + "/**/*.key"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		options.Rules = rules
		options.Outlet = &file.Outlet{Limit: func(tools.Origin) int64 { return out.limit }, Keep: out.keep}
	})
	o.put("a.key", "SECRET")
	o.link("a.key", "a.txt")
	if err := os.Link(o.path("a.key"), o.path("b.txt")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a.key", "a.txt", "b.txt"} {
		o.refuse("send_file", args{"path": name}, tools.PolicyBlocked, "may not be read")
	}
	if len(out.kept) > 0 {
		t.Errorf("kept %q", out.kept)
	}
}

// TestSendOutput: a long output that was put aside goes out whole as a text file, in its own conversation only.
func TestSendOutput(t *testing.T) {
	t.Parallel()
	out := &outlet{limit: 32}
	b := newBox(t, func(_ *box, o *file.Options) {
		o.Outlet = &file.Outlet{
			Limit: func(tools.Origin) int64 { return out.limit }, Keep: out.keep,
			Output: func(_ context.Context, _, id string) (string, bool, error) {
				texts := map[string]string{"a1": "a long text", "b2": strings.Repeat("x", 33), "c3": ""}
				if id == "broken" {
					return "", false, errors.New("the disk is away")
				}
				text, ok := texts[id]
				return text, ok, nil
			},
		}
	})
	res, err := b.tools["send_file"].Run(t.Context(), b.call("send_file", args{"output": " overflow:A1", "caption": "all of it"}))
	if err != nil {
		t.Fatal(err)
	}
	want := []tools.File{{Name: "output.txt", MIME: "text/plain", Hash: "hash of a long text", Size: 11, Caption: "all of it"}}
	if diff := cmp.Diff(want, res.Files); diff != "" || !strings.Contains(res.Text, "11 bytes") {
		t.Errorf("%q (-want +got):\n%s", res.Text, diff)
	}
	s := b.describe("send_file", args{"output": "a1"})
	if s.Show != "overflow:a1" || len(s.Paths) > 0 || !slices.Equal(s.Inputs, []string{"overflow:a1"}) {
		t.Errorf("%+v", s)
	}
	out.kept = nil
	b.refuse("send_file", args{"output": "none"}, tools.PermanentFailure, "not found in this conversation")
	b.refuse("send_file", args{"output": "b2"}, tools.PermanentFailure, "at most 32")
	b.refuse("send_file", args{"output": "a1", "path": "a.txt"}, tools.InvalidParameters, "either files or an output")
	b.refuse("send_file", args{"output": "a1", "caption": strings.Repeat("😀", 513)}, tools.InvalidParameters, "1026 characters")
	if _, err := b.tools["send_file"].Run(t.Context(), b.call("send_file", args{"output": "broken"})); err == nil {
		t.Error("sent what could not be read")
	}
	if len(out.kept) > 0 {
		t.Errorf("kept %q", out.kept)
	}
	out.limit = 0
	if got := b.run("send_file", args{"output": "a1"}); !strings.Contains(got, "shows no files") || len(out.kept) > 0 {
		t.Errorf("without files in the channel: %q", got)
	}
}
