package agent_test

import (
	"context"
	"encoding/json"
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/agent"
	"github.com/zephbot/zephbot/agent/blob"
	"github.com/zephbot/zephbot/agent/blob/blobtest"
	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/tools"
)

// camera returns a tool that makes a picture and a sheet.
func camera() tools.Tool {
	return tools.Tool{
		Definition: tools.Definition{Name: "camera", Description: "Takes a picture.", Schema: json.RawMessage(`{"type":"object"}`), ReadOnly: true},
		Run: func(context.Context, *tools.Call) (*tools.Result, error) {
			return &tools.Result{Text: "[image: image/png, 7 B]", Files: []tools.File{
				{Name: "yard.png", MIME: "image/png", Data: []byte("\x89PNG\r\n\x1a\n")}, {Name: "sheet.pdf", MIME: "application/pdf", Data: []byte("%PDF-1.7")},
			}}, nil
		},
	}
}

// photographed runs a turn in which the camera is used and returns the entry of its result.
func photographed(t *testing.T, blobs blob.Store) (w *world, model interface{ Requests() []llm.Request }, result journal.Entry) {
	t.Helper()
	m := script(t, "on \"look\": call camera {}\nthen say I see.")
	w = newWorld(t, m, "look", camera())
	w.deps.Blobs = blobs
	if out := w.finish(t.Context()); out.Kind != agent.Answered {
		t.Fatalf("outcome %+v", out)
	}
	for _, result = range w.results() {
	}
	return w, m, result
}

func TestFilesOfToolsAreKept(t *testing.T) {
	t.Parallel()
	var files blobtest.Store
	w, _, result := photographed(t, &files)
	want := []llm.Part{
		{Kind: llm.ImagePart, Type: "image/png", Name: "yard.png", Size: 8},
		{Kind: llm.FilePart, Type: "application/pdf", Name: "sheet.pdf", Size: 8},
	}
	if len(result.Parts) != len(want) {
		t.Fatalf("parts %+v", result.Parts)
	}
	for i, data := range []string{"\x89PNG\r\n\x1a\n", "%PDF-1.7"} {
		want[i].Hash = result.Parts[i].Hash
		content, err := files.Open(t.Context(), w.turn.Origin.Session, result.Parts[i].Hash)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(content); err != nil || string(got) != data {
			t.Errorf("part %d has %q (%v)", i, got, err)
		}
	}
	if diff := cmp.Diff(want, result.Parts); diff != "" {
		t.Errorf("parts (-want +got):\n%s", diff)
	}
}

func TestAFileThatCannotBeKeptIsNamed(t *testing.T) {
	t.Parallel()
	for name, store := range map[string]blob.Store{"no store": nil, "no room": &blobtest.Store{Limit: 1}} {
		_, _, result := photographed(t, store)
		want := []llm.Part{
			{Kind: llm.ImagePart, Type: "image/png", Name: "yard.png", Size: 8}, {Kind: llm.FilePart, Type: "application/pdf", Name: "sheet.pdf", Size: 8},
		}
		if diff := cmp.Diff(want, result.Parts); diff != "" || result.Failed {
			t.Errorf("%s: failed %t, parts (-want +got):\n%s", name, result.Failed, diff)
		}
	}
}

func TestAPictureOfAToolReachesTheModel(t *testing.T) {
	t.Parallel()
	for sees, want := range map[string]string{
		"sees image\n": `[image: image/png, 7 B]` + "\n" + `[file "sheet.pdf", "application/pdf", 8 bytes: this model does not take such content]` + "\n" + `[sees image "yard.png", image/png, 8 bytes]`,
		"":             `[image: image/png, 7 B]` + "\n" + `[image "yard.png", "image/png", 8 bytes: this model does not take such content]` + "\n" + `[file "sheet.pdf", "application/pdf", 8 bytes: this model does not take such content]`,
	} {
		m := script(t, sees+"on \"look\": call camera {}\nthen say I see.")
		w := newWorld(t, m, "look", camera())
		w.deps.Blobs = &blobtest.Store{}
		w.finish(t.Context())
		asked := m.Requests()
		last := asked[len(asked)-1].Messages
		if got := last[len(last)-1].Result.Text; got != want {
			t.Errorf("%q: the model reads\n%s\nwant\n%s", sees, got, want)
		}
	}
}

func TestWhatCameAlongIsNamed(t *testing.T) {
	t.Parallel()
	m := script(t, "on \"\": say Seen")
	w := newWorld(t, m, "")
	w.shelf.entries[0].Parts = []llm.Part{{Kind: llm.FilePart, Label: "document", Name: `a"b`, Size: 1_500_000}, {Kind: llm.TextPart, Label: "location", Text: "52.5, 13.4"}}
	w.finish(t.Context())
	if got, want := m.Requests()[0].Messages[0].Text, "[attached: a location: 52.5, 13.4]\n[attached: a document named \"a\\\"b\", 1.5 MB; I cannot open it]"; got != want {
		t.Errorf("the model reads %s, want %s", got, want)
	}
}
