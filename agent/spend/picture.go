package spend

import (
	"context"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/cost"
)

// Artist is a provider that makes pictures. It returns what that cost, also with an error.
type Artist interface {
	Draw(ctx context.Context, req *llm.PictureRequest) (picture llm.Picture, usd float64, err error)
	// PictureUSD is the most that a picture costs.
	PictureUSD(req *llm.PictureRequest) float64
}

// Painter makes pictures that are paid for.
type Painter struct {
	artist   Artist
	unpriced string
	observe  func(usd float64)
}

// NewPainter returns a painter. unpriced names the model if nobody knows its price; "" = it is known. observe is told
// what each call has cost; may be nil.
func NewPainter(artist Artist, unpriced string, observe func(usd float64)) *Painter {
	return &Painter{artist: artist, unpriced: unpriced, observe: observe}
}

// Price is the most that a picture costs, in USD; known is false if nobody knows it.
func (p *Painter) Price(req *llm.PictureRequest) (usd float64, known bool) {
	return p.artist.PictureUSD(req), p.unpriced == ""
}

// Paint makes a picture. A call of which nobody knows how it has ended has cost what was set aside.
func (p *Painter) Paint(ctx context.Context, req *llm.PictureRequest) (llm.Picture, float64, error) {
	most := p.artist.PictureUSD(req)
	if most <= 0 && p.unpriced == "" {
		picture, _, err := p.artist.Draw(ctx, req)
		return picture, 0, err //nolint:wrapcheck // the provider's own error
	}
	h, err := holdAmount(ctx, "draw", cost.Amount{USD: most, Unpriced: p.unpriced})
	if err != nil {
		return llm.Picture{}, 0, err
	}
	picture, usd, err := p.artist.Draw(ctx, req)
	if llm.MayHaveCost(err) {
		usd = most
	}
	h.settleHold(ctx, cost.Amount{USD: usd})
	if p.observe != nil && usd > 0 {
		p.observe(usd)
	}
	return picture, usd, err //nolint:wrapcheck // the provider's own error
}
