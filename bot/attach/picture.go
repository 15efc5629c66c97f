package attach

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"image"
	_ "image/gif"  // its size is read
	_ "image/jpeg" // its size is read
	_ "image/png"  // its size is read
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/zephbot/zephbot/agent/blob"
	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/turn"
)

// maxPixels is how many pixels a picture may have. Vendors scale what is larger down to some 2 million, and unpacking
// more than this costs them, and everybody who opens the file, gigabytes.
const maxPixels = 50_000_000

// pictureHead is how much of a picture is looked at to find its size; cameras write long notes before it.
const pictureHead = 256 << 10

// pictureTypes are those that all models take that see.
var pictureTypes = []string{"image/jpeg", "image/png", "image/webp", "image/gif"}

// picture keeps a picture for the model, which is not asked to look at what it does not take.
func (w *work) picture(ctx context.Context, a *bot.Attachment) error {
	if !w.deps.Accepts().Image {
		w.nameWithReason(a, turn.Trouble{Problem: turn.FileUnseen})
		return nil
	}
	part := namedFile(a)
	err := w.fetchFile(ctx, a.ID, func(ctx context.Context, content io.Reader) error {
		kept, err := w.keepPicture(ctx, content)
		part.Hash, part.Size, part.Type = kept.Hash, kept.Size, kept.kind
		return err
	})
	if err != nil {
		return err
	}
	w.addPart(part)
	return nil
}

// kept is a picture in the store of contents.
type kept struct {
	blob.Ref
	kind string // media type, by what it is
}

// keepPicture puts a picture into the store of contents, having looked at its head only.
func (w *work) keepPicture(ctx context.Context, content io.Reader) (kept, error) {
	head := bufio.NewReaderSize(content, pictureHead)
	begin, err := head.Peek(pictureHead)
	if err != nil && !errors.Is(err, io.EOF) {
		return kept{}, err
	}
	kind, _, _ := strings.Cut(http.DetectContentType(begin), ";")
	if !slices.Contains(pictureTypes, kind) {
		return kept{}, becauseOf(turn.FileNoPicture, errors.New("its content is "+kind))
	}
	// what has no size that can be read, such as WebP, is left to the vendor
	if c, _, err := image.DecodeConfig(bytes.NewReader(begin)); err == nil &&
		int64(c.Width)*int64(c.Height) > maxPixels {
		return kept{}, &trouble{
			Trouble: turn.Trouble{
				Problem: turn.FileTooManyDots,
				Size:    int64(c.Width) * int64(c.Height) / 1e6,
				Limit:   maxPixels / 1e6,
			},
			err: errors.New("too many pixels"),
		}
	}
	ref, err := w.deps.Blobs.Put(ctx, string(w.sent.Session), head)
	return kept{ref, kind}, err
}

// showVideo shows a video by one of its pictures, and names it.
func (w *work) showVideo(ctx context.Context, a *bot.Attachment) error {
	w.addPart(namedFile(a))
	if a.Still == "" || !w.deps.Accepts().Image {
		return nil
	}
	still := llm.Part{Kind: llm.ImagePart, Label: "still of the " + a.Kind, Name: a.Name}
	err := w.fetchFile(ctx, a.Still, func(ctx context.Context, content io.Reader) error {
		kept, err := w.keepPicture(ctx, content)
		still.Hash, still.Size, still.Type = kept.Hash, kept.Size, kept.kind
		return err
	})
	if err != nil { // the film is named: a missing still takes nothing from it
		if ctx.Err() != nil {
			return err
		}
		w.deps.Log.Info().Err(err).Str("turn", w.sent.Turn).Msg("the still of a video cannot be read")
		return nil
	}
	w.addPart(still)
	return nil
}
