package app

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/zephbot/zephbot/agent/blob"
	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/cost"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/cmd/internal/config"
	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/image"
)

// pictureRoom is how much of a conversation is read to find its newest picture, in bytes.
const pictureRoom = 256 << 10

// imageTools are those that make pictures, if a model does.
func (c *Core) imageTools(k *kit) ([]tools.Tool, error) {
	painter, err := c.models.Painter()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", config.ErrInvalid, err)
	}
	if painter == nil {
		return nil, nil
	}
	outlet := c.outlet()
	tool, err := image.New(image.Options{
		AskAbove: c.cfg.Tools.Image.AskAboveUSD,
		Price:    func(w *image.Wish) (float64, bool) { return painter.Price(pictureRequest(w)) },
		Make: func(ctx context.Context, w *image.Wish) (image.Made, error) {
			picture, usd, err := painter.Paint(ctx, pictureRequest(w))
			if err != nil {
				return image.Made{}, pictureError(ctx, err)
			}
			return image.Made{Data: picture.Data, Type: picture.Type, USD: usd}, nil
		},
		Last: c.newestPicture, Dir: k.files.Dir, Admit: k.disk.Admit, Limit: outlet.Limit, Keep: outlet.Keep,
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", image.Name, err)
	}
	return []tools.Tool{tool}, nil
}

func pictureRequest(w *image.Wish) *llm.PictureRequest {
	return &llm.PictureRequest{Prompt: w.Prompt, Shape: llm.Shape(w.Shape), Edit: w.Edit, EditType: w.EditType}
}

// pictureError says for the model why there is no picture.
func pictureError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return tools.AsError(ctx.Err())
	}
	e := &tools.Error{Category: tools.ServerError, Message: "The provider could not make the picture.", Err: err}
	denied, unpaid := errors.AsType[*cost.Denied](err)
	switch kind := llm.KindOf(err); {
	case unpaid:
		e.Category, e.Message = tools.PolicyBlocked, "The picture was not made, because a quota does not allow it: "+denied.Text
		e.Suggestion = "Tell the person so."
	case errors.Is(err, llm.ErrDeclined):
		e.Category, e.Message = tools.PermanentFailure, "The provider's moderation refuses this picture."
		e.Suggestion = "Tell the person so, and what may be the reason. Do not try the same in other words."
	case llm.MayHaveCost(err):
		e.Message = "It is not known whether the picture was made and paid for: the provider's answer was lost."
		e.Suggestion = "Tell the person so, and ask before you make it again."
	case kind == llm.RateLimited, kind == llm.Unavailable, kind == llm.Timeout:
		e.Message = "The provider is too busy to make the picture."
		e.Suggestion = "Tell the person that it can be tried again later."
	case kind == llm.Invalid:
		e.Category = tools.PermanentFailure
		e.Message = "The provider refused the request for the picture. The operator sees why in the log."
	}
	return e
}

// newestPicture returns the picture that was sent, replied to or made last in a conversation.
func (c *Core) newestPicture(ctx context.Context, o tools.Origin) (io.ReadCloser, bool, error) {
	if c.stores == nil || o.Session == "" {
		return nil, false, nil
	}
	tail, err := c.stores.Bot.Tail(ctx, bot.SessionKey(o.Session), pictureRoom)
	if err != nil {
		return nil, false, fmt.Errorf("read a conversation: %w", err)
	}
	for i := len(tail.Entries) - 1; i >= 0; i-- {
		e := &tail.Entries[i]
		if e.Kind != journal.UserEntry && e.Kind != journal.ResultEntry {
			continue
		}
		for j := len(e.Parts) - 1; j >= 0; j-- {
			p := &e.Parts[j]
			if p.Kind != llm.ImagePart || p.Hash == "" {
				continue
			}
			content, err := c.stores.Blobs.Open(ctx, o.Session, p.Hash)
			if errors.Is(err, blob.ErrNotFound) { // swept
				continue
			}
			return content, err == nil, err
		}
	}
	return nil, false, nil
}
