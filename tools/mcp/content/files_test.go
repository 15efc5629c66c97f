package content_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/mcp/content"
)

func TestFiles(t *testing.T) {
	t.Parallel()
	data := []byte{1, 2, 3}
	raw := content.Raw{Parts: []content.Part{
		{Kind: content.Image, MIME: "image/png", Data: data},
		{Kind: content.Link, URI: "https://x.example/y"},
		{Kind: content.Resource, MIME: "application/pdf", URI: "file:///srv/../etc/Report 1.pdf", Data: data},
		{Kind: content.Audio, MIME: "audio/wav; rate=8000", Name: "../../ding", Data: data},
		{Kind: content.Resource, MIME: "nonsense", Name: "…", Data: data},
		{Kind: content.Image, MIME: "image/gif", Omitted: true},
	}}
	want := []tools.File{
		{Name: "image-1.png", MIME: "image/png", Data: data},
		{Name: "Report_1.pdf", MIME: "application/pdf", Data: data},
		{Name: "ding.wav", MIME: "audio/wav; rate=8000", Data: data},
		{Name: "resource-5.bin", MIME: "nonsense", Data: data},
	}
	if diff := cmp.Diff(want, raw.Files()); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	many := content.Raw{}
	for range 30 {
		many.Parts = append(many.Parts, raw.Parts[0])
	}
	if n := len(many.Files()); n != 10 {
		t.Errorf("%d files", n)
	}
}
