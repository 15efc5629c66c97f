package spend

import (
	"context"

	"github.com/zephbot/zephbot/agent/llm"
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

// Paint makes a picture.
func (p *Painter) Paint(ctx context.Context, req *llm.PictureRequest) (llm.Picture, float64, error) {
	most := p.artist.PictureUSD(req)
	return payFor(ctx, "draw", Cost{USD: most, Unpriced: p.unpriced}, most, p.observe, func() (llm.Picture, float64, error) {
		return p.artist.Draw(ctx, req) //nolint:wrapcheck // the provider's own error
	})
}
