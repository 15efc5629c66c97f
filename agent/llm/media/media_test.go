package media_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/media"
)

const png = "\x89PNG\r\n\x1a\n"

var sees = &media.Rules{Accepts: llm.Accepts{Image: true}, Types: []string{"image/png"}, Image: 100, Other: 100, Total: 150}

// picture returns a part whose content is under the given key of a map.
func picture(hash string, size int64) llm.Part {
	return llm.Part{Kind: llm.ImagePart, Hash: hash, Type: "image/png", Name: hash + ".png", Size: size}
}

// asking returns a request with one message per part.
func asking(contents map[string]string, parts ...llm.Part) *llm.Request {
	req := &llm.Request{Open: func(_ context.Context, hash string) (io.ReadCloser, error) {
		data, ok := contents[hash]
		if !ok {
			return nil, errors.New("swept")
		}
		if data == "breaks" {
			return io.NopCloser(iotest.ErrReader(errors.New("the disk is away"))), nil
		}
		return io.NopCloser(strings.NewReader(data)), nil
	}}
	for _, p := range parts {
		req.Messages = append(req.Messages, llm.Message{Role: llm.User, Parts: []llm.Part{p}})
	}
	return req
}

func TestRead(t *testing.T) {
	t.Parallel()
	large := png + strings.Repeat("x", 60)
	contents := map[string]string{
		"a": png, "b": "breaks", "text": "<html>", "liar": png + strings.Repeat("x", 200), "old": large, "new": large, "newer": large,
	}
	for name, test := range map[string]struct {
		parts []llm.Part
		lines []string // "" = sent
	}{
		"a picture":             {[]llm.Part{picture("a", 8)}, []string{""}},
		"twice":                 {[]llm.Part{picture("a", 8), picture("a", 8)}, []string{"", ""}},
		"swept":                 {[]llm.Part{picture("gone", 8)}, []string{`[image "gone.png", "image/png", 8 bytes: its content is not kept any more or cannot be read]`}},
		"breaks off":            {[]llm.Part{picture("b", 8)}, []string{`[image "b.png", "image/png", 8 bytes: its content is not kept any more or cannot be read]`}},
		"no picture at all":     {[]llm.Part{picture("text", 6)}, []string{`[image "text.png", "image/png", 6 bytes: its format is not one that this model reads]`}},
		"too large":             {[]llm.Part{picture("a", 101)}, []string{`[image "a.png", "image/png", 101 bytes: it is too large for this model]`}},
		"larger than it says":   {[]llm.Part{picture("liar", 8)}, []string{`[image "liar.png", "image/png", 8 bytes: it is too large for this model]`}},
		"the newest come first": {[]llm.Part{picture("old", 68), picture("new", 68), picture("newer", 68)}, []string{`[image "old.png", "image/png", 68 bytes: newer content fills the request]`, "", ""}},
		"a sound":               {[]llm.Part{{Kind: llm.AudioPart, Hash: "a", Type: "audio/wav"}}, []string{`[audio, "audio/wav": this model does not take such content]`}},
		"only a name":           {[]llm.Part{{Kind: llm.ImagePart, Name: "x\n]y"}}, []string{`[image "x\n]y": only its name is known]`}},
		"a text":                {[]llm.Part{{Kind: llm.TextPart, Text: "said"}}, []string{"said"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			req := asking(contents, test.parts...)
			got, err := media.Read(t.Context(), req, sees)
			if err != nil {
				t.Fatal(err)
			}
			for i, want := range test.lines {
				content, line, ok := got.Of(&test.parts[i])
				if line != want || ok != (want == "") {
					t.Errorf("part %d: line %q, sent %t; want %q", i, line, ok, want)
				}
				if data := sent(t, got, content.Data); ok && (data != contents[test.parts[i].Hash] || content.Type != "image/png") {
					t.Errorf("part %d: %s, %q", i, content.Type, data)
				}
			}
		})
	}
}

func TestARequestOfTextCostsNothing(t *testing.T) { //nolint:paralleltest // it counts allocations
	req := &llm.Request{Messages: []llm.Message{{Role: llm.User, Text: "hello"}, {Role: llm.ToolRole, Result: &llm.ToolResult{Text: "x"}}}}
	if n := testing.AllocsPerRun(100, func() {
		contents, err := media.Read(t.Context(), req, sees)
		if err != nil || contents != nil || contents.Text("hello", nil) != "hello" {
			t.Error(contents, err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestARefusedPictureIsLeftOut(t *testing.T) {
	t.Parallel()
	part := picture("a", 8)
	contents, err := media.Read(t.Context(), asking(map[string]string{"a": png}, part), sees)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, ok := contents.Of(&part); !ok {
		t.Error("the picture is not sent at first")
	}
	contents.Refuse()
	if _, line, ok := contents.Of(&part); ok || !strings.Contains(line, "the model's server refused it") {
		t.Errorf("afterwards: %q, sent %t", line, ok)
	}
	(*media.Contents)(nil).Refuse() // a request without contents
}

func TestTheEndOfAContextIsAnError(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := media.Read(ctx, asking(map[string]string{"a": png}, picture("a", 8)), sees); !errors.Is(err, context.Canceled) {
		t.Errorf("read: %v", err)
	}
}

func TestOfModel(t *testing.T) {
	t.Parallel()
	none, image, both := llm.Accepts{}, llm.Accepts{Image: true}, llm.Accepts{Image: true, File: true}
	for model, want := range map[string]llm.Accepts{
		"gpt-5": both, "openai/gpt-4o-mini": both, "gpt-4.1": both, "o3": both, "o4-mini": both, "GPT-5.2": both, "claude-opus-4-5": both, "anthropic/claude-3-haiku": both,
		"gemini-2.5-pro": image, "llava:13b": image, "qwen2.5-vl:7b": image, "qwen2.5vl": image, "llama3.2-vision": image, "gemma3:4b": image, "pixtral-12b": image,
		"gpt-4": none, "gpt-3.5-turbo": none, "o1-mini": none, "o3-mini": none, "gpt-4o-audio-preview": none, "gemma3:1b": none, "llama3.1": none, "qwen3": none, "deepseek-chat": none,
		"claude-2.1": none, "": none, "something-new": none, "gpt-4-0613": none,
	} {
		if got := media.OfModel(model); got != want {
			t.Errorf("%q: %+v, want %+v", model, got, want)
		}
	}
}

func TestContentIsAnAddress(t *testing.T) {
	t.Parallel()
	if got := (media.Content{Type: "image/png", Data: "QUI="}).URL(); got != "data:image/png;base64,QUI=" {
		t.Error(got)
	}
	if !bytes.Contains([]byte(media.Plain("text", []llm.Part{picture("a", 8)})), []byte("text\n[image \"a.png\"")) {
		t.Error(media.Plain("text", []llm.Part{picture("a", 8)}))
	}
}
