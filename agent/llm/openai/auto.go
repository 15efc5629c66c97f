package openai

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"sync/atomic"

	goopenai "github.com/sashabaranov/go-openai"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/media"
)

// responsesOnly matches models that reject tools on chat completions while they reason, with or without a vendor prefix
// ("openai/").
var responsesOnly = regexp.MustCompile(`^(?:.*/)?gpt-6`)

// auto begins with chat completions and switches to the Responses API if the SDK or the server says that this model
// requires it. Once that has worked, the process keeps using it.
type auto struct {
	provider      *Provider
	first, second wire
	changed       atomic.Bool
}

func (w *auto) chat(
	ctx context.Context, x *exchange, req *llm.Request, contents *media.Contents, emit func(string),
) (*llm.Response, error) {
	if w.changed.Load() {
		return w.second.chat(ctx, x, req, contents, emit)
	}
	res, err := w.first.chat(ctx, x, req, contents, emit)
	if err == nil || !needsResponses(x, err) {
		return res, err
	}
	x.again()
	res, err = w.second.chat(ctx, x, req, contents, emit)
	// The text of a refusal may quote what a person wrote, so it is not sufficient for a permanent switch.
	if err == nil && !w.changed.Swap(true) {
		w.provider.o.Log.Info().Str("provider", w.provider.o.Name).Str("model", w.provider.o.Model).
			Msg("model needs the responses api")
	}
	return res, err
}

// needsResponses recognises the SDK's refusal, before anything was sent, and OpenAI's: "… not supported in the
// v1/chat/completions endpoint … use v1/responses".
func needsResponses(x *exchange, err error) bool {
	if errors.Is(err, goopenai.ErrReasoningToolsRequireResponses) {
		return true
	}
	c, ok := x.rejected(err)
	return ok && strings.Contains(strings.ToLower(c.Message), "v1/responses")
}
