package openai_test

import (
	"errors"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/cost"
	"github.com/zephbot/zephbot/agent/llm/openai"
	"github.com/zephbot/zephbot/agent/llm/vendortest"
)

func artist(t *testing.T, base, key, model, quality string, price openai.PicturePrice) *openai.Provider {
	t.Helper()
	p, err := openai.New(openai.Options{
		Name: "main", BaseURL: base, Key: openai.Key(key), ImageModel: model, ImageQuality: quality, ImagePrice: price,
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestDraw: each vendor's own server takes what it is asked for, new pictures and changed ones, and they cost what its
// tokens or the price of a picture say, never more than was set aside.
func TestDraw(t *testing.T) {
	t.Parallel()
	tokens := openai.PicturePrice{Tokens: cost.FixedTariff(5, 5, 5, 40)}
	for name, row := range map[string]struct {
		vendor, model, quality string
		price                  openai.PicturePrice
		kind                   string
		usd                    float64 // 0 = by tokens
		edits                  bool
	}{
		"gpt-image": {"openai", "gpt-image-1", "medium", tokens, "image/png", 0, true},
		"auto":      {"openai", "gpt-image-1", "", tokens, "image/png", 0, true},
		"dall-e":    {"openai", "dall-e-3", "medium", openai.PicturePrice{Each: cost.FlatPrice(0.04)}, "image/png", 0.04, false},
		"xai":       {"xai", "grok-imagine-image", "medium", openai.PicturePrice{Each: cost.FlatPrice(0.02)}, "image/jpeg", 0.02, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := vendortest.New(vendortest.Options{Vendor: "media/" + row.vendor})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(s.Close)
			p := artist(t, s.URL(), s.Key(), row.model, row.quality, row.price)
			for _, shape := range []llm.Shape{"", llm.Square, llm.Landscape, llm.Portrait} {
				requests := []*llm.PictureRequest{{Prompt: "A fox", Shape: shape}}
				if row.edits {
					requests = append(requests, &llm.PictureRequest{Prompt: "Blue", Shape: shape, Edit: vendortest.Picture("a", "8x8", true), EditType: "image/jpeg"})
				}
				for _, req := range requests {
					picture, usd, err := p.Draw(t.Context(), req)
					most := p.PictureUSD(req)
					if err != nil || picture.Type != row.kind || len(picture.Data) == 0 || usd > most || row.usd > 0 && usd != row.usd || usd <= 0 {
						t.Errorf("%s, %d bytes of %s, %v USD of %v, %v", shape, len(picture.Data), picture.Type, usd, most, err)
					}
				}
			}
			if row.vendor != "openai" {
				return
			}
			if err := s.Fail("content"); err != nil {
				t.Fatal(err)
			}
			if _, usd, err := p.Draw(t.Context(), &llm.PictureRequest{Prompt: "violence"}); !errors.Is(err, llm.ErrDeclined) || usd != 0 {
				t.Errorf("declined: %v USD, %v", usd, err)
			}
		})
	}
}

func TestDrawFails(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		status int
		body   string
		want   llm.Kind
		costs  bool
	}{
		"an address":   {http.StatusOK, `{"data":[{"url":"http://169.254.169.254/x.png"}]}`, llm.Invalid, true},
		"no picture":   {http.StatusOK, `{"data":[]}`, llm.Unavailable, true},
		"no base64":    {http.StatusOK, `{"data":[{"b64_json":"***"}]}`, llm.Unavailable, true},
		"a page":       {http.StatusOK, `{"data":[{"b64_json":"PGh0bWw+"}]}`, llm.Unavailable, true},
		"other JSON":   {http.StatusOK, `{}`, llm.WrongAddress, false},
		"cut":          {http.StatusOK, `{"data":[{"b64_json":"aaaa`, llm.Truncated, true},
		"overloaded":   {http.StatusServiceUnavailable, ``, llm.Unavailable, false},
		"wrong key":    {http.StatusUnauthorized, `{"error":{"message":"no"}}`, llm.Unauthorized, false},
		"no such path": {http.StatusNotFound, `<html>404</html>`, llm.WrongAddress, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(row.status)
				_, _ = io.WriteString(w, row.body)
			}))
			t.Cleanup(s.Close)
			p := artist(t, s.URL+"/v1", "k", "m", "", openai.PicturePrice{Each: cost.FlatPrice(0.04)})
			for _, req := range []*llm.PictureRequest{{Prompt: "a"}, {Prompt: "a", Edit: []byte("x"), EditType: "image/png"}} {
				if _, usd, err := p.Draw(t.Context(), req); llm.KindOf(err) != row.want || (usd > 0) != row.costs {
					t.Errorf("%v USD, %v; want %s", usd, err, row.want)
				}
			}
		})
	}
	p, err := openai.New(openai.Options{Name: "main", Model: "m"})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := p.Draw(t.Context(), &llm.PictureRequest{Prompt: "a"}); llm.KindOf(err) != llm.Invalid {
		t.Errorf("no model: %v", err)
	}
}

// TestPicturePrice: a wide picture of DALL-E costs what the table says, and unknown qualities the most.
func TestPicturePrice(t *testing.T) {
	t.Parallel()
	wide, ok := cost.PicturePrice("https://api.openai.com/v1", "dall-e-3", time.Now())
	if !ok {
		t.Fatal("the table has no price")
	}
	p := artist(t, "", "k", "dall-e-3", "", openai.PicturePrice{Each: wide})
	for shape, want := range map[llm.Shape]float64{llm.Square: 0.04, llm.Landscape: 0.08, llm.Portrait: 0.08} {
		if got := p.PictureUSD(&llm.PictureRequest{Shape: shape}); math.Abs(got-want) > 1e-9 {
			t.Errorf("%s costs %v", shape, got)
		}
	}
	tokens := openai.PicturePrice{Tokens: cost.FixedTariff(5, 5, 5, 40)}
	high := artist(t, "", "k", "gpt-image-1", "high", tokens).PictureUSD(&llm.PictureRequest{})
	if auto := artist(t, "", "k", "gpt-image-1", "", tokens).PictureUSD(&llm.PictureRequest{}); auto != high {
		t.Errorf("auto %v, high %v", auto, high)
	}
}
