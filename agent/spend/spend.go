// Package spend has each call of a model paid: it passes the budget of the one it is made for, and embeddings,
// transcriptions, speech and pictures do too. Features other than the turn itself (the judge, summaries, corrections, the
// choice of tools, servers that ask the model) get a Model, an Embedder, a Transcriber, a Voice or a Painter of this
// package and never the provider below it, so none can forget to pay. The payer comes with the context. A call that nobody pays for is refused.
package spend

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"time"
	"unicode/utf8"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/cost"
	"github.com/zephbot/zephbot/agent/window"
)

// costHold is an amount that is set aside.
type costHold struct {
	payer cost.Payer
	key   string
}

// holdAmount sets an amount aside for the payer of a context.
func holdAmount(ctx context.Context, purpose string, most cost.Amount) (costHold, error) {
	p, ok := cost.PayerOf(ctx)
	if !ok {
		return costHold{}, fmt.Errorf("%w (%s)", cost.ErrNobody, purpose)
	}
	h := costHold{payer: p, key: purpose + "/" + rand.Text()}
	if err := p.Reserve(ctx, h.key, most); err != nil {
		h.settleHold(ctx, cost.Amount{}) // an attempt that was interrupted may have set it aside
		if errors.Is(err, context.DeadlineExceeded) {
			err = errors.Join(cost.ErrBusy, err)
		}
		return costHold{}, fmt.Errorf("reserve: %w", err)
	}
	return h, nil
}

// settleHold runs even if the call was cancelled: money that was spent is counted. An error is only logged, because the
// answer exists and is paid for.
func (h costHold) settleHold(ctx context.Context, used cost.Amount) {
	kept, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
	defer cancel()
	if err := h.payer.Settle(kept, h.key, used); err != nil {
		zerolog.Ctx(ctx).Error().Err(err).Str("key", h.key).Msg("call of a model not settled")
	}
}

const settleTime = 5 * time.Second

// Model is a language model whose calls are paid for by the payer of their context.
type Model struct {
	purpose  string
	provider llm.Provider
}

// NewModel returns a model for a purpose, which names its calls in charges and logs.
func NewModel(purpose string, provider llm.Provider) *Model {
	return &Model{purpose: purpose, provider: provider}
}

// Chat asks the model. The most that the answer may cost is set aside before, and what it has cost is settled after,
// also if it failed after it had begun. A call of which nobody knows how it has ended, and that had brought no text
// yet, has cost what was set aside: it may have been read, and thought about. Errors are a *cost.Denied,
// cost.ErrNobody, or those of llm.Provider.
func (m *Model) Chat(ctx context.Context, req *llm.Request) (*llm.Response, error) {
	input := window.Fixed(req) + window.Messages(req.Messages)
	most := cost.Amount{
		Tokens:   llm.Usage{Input: input, Output: req.MaxTokens},
		USD:      cost.UnknownUSD,
		Unpriced: llm.UnpricedFor(m.provider, req.Prefer),
	}
	h, err := holdAmount(ctx, m.purpose, most)
	if err != nil {
		return nil, err
	}
	sized := *req
	sized.Size = cmp.Or(req.Size, input)
	written := 0
	resp, err := m.provider.Chat(ctx, &sized, func(text string) { written += window.Tokens(text) })
	switch {
	case err != nil && written > 0: // vendors charge for what they have written
		h.settleHold(ctx, cost.Amount{Tokens: llm.Usage{Input: input, Output: written}, USD: cost.UnknownUSD})
	case llm.MayHaveCost(err):
		h.settleHold(ctx, cost.Amount{Tokens: most.Tokens, USD: cost.ReservedUSD})
	case err != nil:
		h.settleHold(ctx, cost.Amount{})
	case resp.Stop == llm.StopLength && resp.Usage.Total() == 0: // abandoned before it reported its usage
		h.settleHold(ctx, cost.Amount{
			Tokens: llm.Usage{Input: input, Output: window.Tokens(resp.Text)},
			USD:    cost.UnknownUSD,
		})
	default:
		h.settleHold(ctx, cost.Amount{Tokens: resp.Usage, USD: resp.USD})
	}
	return resp, err //nolint:wrapcheck // the provider's own error
}

// Embedder computes embeddings that are paid for. Their tokens do not count as tokens of a quota, because they cost a
// fraction of those of an answer; their price does.
type Embedder struct {
	embedder llm.Embedder
	cost     Cost
	observe  func(usd float64)
}

// Cost is what something costs that is not paid by a model's input and output.
type Cost struct {
	// USD of a million tokens of texts that are embedded, a minute of a recording, a million characters that are spoken,
	// or a picture; 0 = nothing.
	USD float64
	// Unpriced names the model if nobody knows its price, which is not 0 then; "" = it is known.
	Unpriced string
}

// isFree reports whether nobody has to pay.
func (c Cost) isFree() bool { return c.USD <= 0 && c.Unpriced == "" }

// NewEmbedder returns an embedder at a price of a million tokens. observe is told what each call has cost; may be nil.
func NewEmbedder(embedder llm.Embedder, cost Cost, observe func(usd float64)) *Embedder {
	return &Embedder{embedder: embedder, cost: cost, observe: observe}
}

// Embed implements llm.Embedder. A failed call may have computed a part of its texts, so it is counted as a whole.
func (e *Embedder) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	tokens := 0
	for _, text := range texts {
		tokens += window.Tokens(text)
	}
	price, most := e.cost, float64(tokens)*e.cost.USD/1e6
	if tokens == 0 {
		price = Cost{}
	}
	call := func() ([][]float32, float64, error) {
		vectors, err := e.embedder.Embed(ctx, texts)
		if err != nil && !mayHaveCost(err) {
			return vectors, 0, err //nolint:wrapcheck // the provider's own error
		}
		return vectors, most, err //nolint:wrapcheck // the provider's own error
	}
	vectors, _, err := payFor(ctx, "embed", price, most, e.observe, call)
	return vectors, err
}

// payFor makes a call that has a price, unless that is nothing. The most USD that it may cost are set aside before, and a
// call of which nobody knows how it has ended has cost them. observe is told what it has cost; may be nil.
func payFor[T any](
	ctx context.Context, purpose string, price Cost, most float64, observe func(usd float64),
	call func() (T, float64, error),
) (made T, usd float64, err error) {
	if price.isFree() {
		made, _, err = call()
		return made, 0, err
	}
	h, err := holdAmount(ctx, purpose, cost.Amount{USD: most, Unpriced: price.Unpriced})
	if err != nil {
		return made, 0, err
	}
	made, usd, err = call()
	if llm.MayHaveCost(err) {
		usd = most
	}
	h.settleHold(ctx, cost.Amount{USD: usd})
	if observe != nil && usd > 0 {
		observe(usd)
	}
	return made, usd, err
}

// mayHaveCost reports whether a call that failed may have cost something: not if the vendor refused it.
func mayHaveCost(err error) bool {
	switch llm.KindOf(err) {
	case llm.Invalid, llm.Unauthorized, llm.NoCredit, llm.UnknownModel,
		llm.Region, llm.WrongAddress, llm.RateLimited, llm.TooLong:
		return false
	default:
		return true
	}
}

// Listener is a provider that writes down speech. It returns what that cost, also with an error.
type Listener interface {
	Transcribe(
		ctx context.Context, name string, recording io.Reader, size int64, length time.Duration,
	) (text string, usd float64, err error)
}

// Transcriber writes down speech that is paid for.
type Transcriber struct {
	listener Listener
	cost     Cost
	observe  func(usd float64)
}

// NewTranscriber returns a transcriber at a price of a minute. observe is told what each call has cost; may be nil.
func NewTranscriber(listener Listener, cost Cost, observe func(usd float64)) *Transcriber {
	return &Transcriber{listener: listener, cost: cost, observe: observe}
}

// Speaker is a provider that speaks, with a voice or, if it is "", the configured one. It returns what that cost, also
// with an error.
type Speaker interface {
	Speak(ctx context.Context, text, voice string) (sound llm.Sound, usd float64, err error)
}

// Voice speaks texts, which is paid for.
type Voice struct {
	speaker Speaker
	cost    Cost
	observe func(usd float64)
}

// NewVoice returns a voice at a price of a million characters. observe is told what each call has cost; may be nil.
func NewVoice(speaker Speaker, cost Cost, observe func(usd float64)) *Voice {
	return &Voice{speaker: speaker, cost: cost, observe: observe}
}

// Price is the most that speaking a text costs, in USD.
func (v *Voice) Price(text string) float64 {
	return float64(utf8.RuneCountInString(text)) / 1e6 * v.cost.USD
}

// Speak has a text spoken with a voice, "" = the configured one.
func (v *Voice) Speak(ctx context.Context, text, voice string) (llm.Sound, float64, error) {
	return payFor(ctx, "speak", v.cost, v.Price(text), v.observe, func() (llm.Sound, float64, error) {
		return v.speaker.Speak(ctx, text, voice) //nolint:wrapcheck // the provider's own error
	})
}

// slowest is the fewest bytes of a recording a second that are expected, if nobody says how long it lasts: speech in
// Opus at 6 kbit/s.
const slowest = 750

// Transcribe writes down a recording. size and length are 0 if they are unknown; one of them bounds what is reserved.
func (t *Transcriber) Transcribe(
	ctx context.Context, name string, recording io.Reader, size int64, length time.Duration,
) (string, float64, error) {
	if length <= 0 {
		length = time.Duration(size) * time.Second / slowest
	}
	return payFor(ctx, "transcribe", t.cost, length.Minutes()*t.cost.USD, t.observe, func() (string, float64, error) {
		return t.listener.Transcribe(ctx, name, recording, size, length) //nolint:wrapcheck // the provider's own error
	})
}
