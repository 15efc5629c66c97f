package openai

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"strings"
	"unicode/utf8"

	goopenai "github.com/sashabaranov/go-openai"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/cost"
)

// maxPicture limits the answer with a picture, in bytes: 24 MB in base64.
const maxPicture = 32 << 20

// PicturePrice is what a picture costs: a price of each, by its pixels, or that of the tokens that the server counts.
// The zero value is a picture that costs nothing.
type PicturePrice struct {
	Each   *cost.Steps // by pixels; nil = Tokens
	Tokens cost.Tariff
}

// pictureTokens is the most that a picture of a quality counts as (OpenAI's guide to images, 2026), and the most that
// the picture to be changed does.
var pictureTokens = map[string]int{ //nolint:gochecknoglobals // a constant table
	goopenai.CreateImageQualityLow: 408, goopenai.CreateImageQualityMedium: 1584, goopenai.CreateImageQualityHigh: 6240,
}

const editedTokens = 2000

// isGPTImage reports whether the model takes the parameters of GPT Image.
func (p *Provider) isGPTImage() bool {
	return strings.Contains(p.o.ImageModel, "gpt-image") || strings.Contains(p.o.ImageModel, "chatgpt-image")
}

// sizeOf returns the size that is asked for, "" = the server's own, and its pixels.
func (p *Provider) sizeOf(shape llm.Shape) (size string, pixels int) {
	switch {
	case p.isGPTImage() && shape == llm.Landscape:
		return goopenai.CreateImageSize1536x1024, 1536 * 1024
	case p.isGPTImage() && shape == llm.Portrait:
		return goopenai.CreateImageSize1024x1536, 1536 * 1024
	case p.isGPTImage():
		return goopenai.CreateImageSize1024x1024, 1024 * 1024
	case strings.HasPrefix(p.o.ImageModel, "dall-e-3") && shape == llm.Landscape:
		return goopenai.CreateImageSize1792x1024, 1792 * 1024
	case strings.HasPrefix(p.o.ImageModel, "dall-e-3") && shape == llm.Portrait:
		return goopenai.CreateImageSize1024x1792, 1792 * 1024
	default: // other servers refuse sizes, or sizes that they do not know
		return "", 1024 * 1024
	}
}

// PictureUSD is the most that a picture costs.
func (p *Provider) PictureUSD(req *llm.PictureRequest) float64 {
	if each := p.o.ImagePrice.Each; each != nil {
		_, pixels := p.sizeOf(req.Shape)
		return each.For(pixels)
	}
	most, known := pictureTokens[p.o.ImageQuality]
	if !known {
		most = pictureTokens[goopenai.CreateImageQualityHigh]
	}
	usage := llm.Usage{Input: utf8.RuneCountInString(req.Prompt) + 100, Output: most}
	if req.Edit != nil {
		usage.Input += editedTokens
	}
	return p.o.ImagePrice.Tokens.Most(usage)
}

// Draw makes a picture (POST /images/generations of OpenAI's API), or changes one (POST /images/edits). The server has
// to give its content, and not only an address. usd is what it cost at the configured price, also when the picture could
// not be used. Errors are *llm.Error, with llm.ErrDeclined where the vendor's moderation refuses it, or those of ctx.
func (p *Provider) Draw(ctx context.Context, req *llm.PictureRequest) (picture llm.Picture, usd float64, err error) {
	if p.o.ImageModel == "" {
		return llm.Picture{}, 0, &llm.Error{
			Kind: llm.Invalid, Provider: p.o.Name, Err: errors.New("no image_model is configured"),
		}
	}
	x := p.newExchange()
	x.limit = maxPicture
	var answer goopenai.ImageResponse
	err = p.runUnwatched(ctx, x, func(ctx context.Context) error { // drawing takes minutes of silence
		var err error
		if req.Edit != nil {
			answer, err = p.edit(ctx, x, req)
		} else {
			answer, err = p.newSDK(x).CreateImage(ctx, p.imageRequest(req))
		}
		if x.head != nil && len(answer.Data) == 0 && !bytes.Contains(x.head.Bytes(), []byte(`"data"`)) {
			if other := p.strayError(x, x.head.Bytes(), true); other != nil {
				return other
			}
		}
		if err != nil {
			return err
		}
		picture, err = p.readPicture(&answer)
		return err
	})
	if x.status == http.StatusOK && x.complaint == nil && llm.KindOf(err) != llm.WrongAddress {
		usd = p.pictureCost(req, &answer)
	}
	if err != nil && x.refusal {
		err = errors.Join(err, llm.ErrDeclined)
	}
	return picture, usd, err
}

// imageRequest returns the request for a new picture. Models of GPT Image always give the content and refuse to be asked
// for it.
func (p *Provider) imageRequest(req *llm.PictureRequest) goopenai.ImageRequest {
	size, _ := p.sizeOf(req.Shape)
	out := goopenai.ImageRequest{Prompt: req.Prompt, Model: p.o.ImageModel, Size: size}
	if p.isGPTImage() {
		out.Quality = p.o.ImageQuality
	} else {
		out.ResponseFormat = goopenai.CreateImageResponseFormatB64JSON
	}
	return out
}

// pictureCost is what a picture cost: by the tokens that the server reports, or else the most that it may cost.
func (p *Provider) pictureCost(req *llm.PictureRequest, answer *goopenai.ImageResponse) float64 {
	if used := answer.Usage; p.o.ImagePrice.Each == nil && used.OutputTokens > 0 {
		return p.o.ImagePrice.Tokens.Cost(p.o.Now(), llm.Usage{Input: used.InputTokens, Output: used.OutputTokens}, 0)
	}
	return p.PictureUSD(req)
}

// edit asks for a changed picture. The SDK's form has empty fields, which servers refuse.
func (p *Provider) edit(
	ctx context.Context, x *exchange, req *llm.PictureRequest,
) (answer goopenai.ImageResponse, err error) {
	var form bytes.Buffer
	w := multipart.NewWriter(&form)
	asked := p.imageRequest(req)
	for _, field := range [][2]string{
		{"model", asked.Model},
		{"prompt", asked.Prompt},
		{"size", asked.Size},
		{"quality", asked.Quality},
		{"response_format", asked.ResponseFormat},
	} {
		if field[1] != "" {
			err = errors.Join(err, w.WriteField(field[0], field[1]))
		}
	}
	head := textproto.MIMEHeader{}
	head.Set("Content-Disposition", `form-data; name="image"; filename="picture`+pictureEnding(req.EditType)+`"`)
	head.Set("Content-Type", req.EditType)
	part, partErr := w.CreatePart(head)
	if err = errors.Join(err, partErr); err == nil {
		_, err = part.Write(req.Edit)
	}
	if err = errors.Join(err, w.Close()); err != nil {
		return answer, fmt.Errorf("make a form: %w", err)
	}
	post, err := http.NewRequestWithContext(ctx, http.MethodPost, p.o.BaseURL+"/images/edits", &form)
	if err != nil {
		return answer, p.garbledError("nothing: the request cannot be made")
	}
	post.Header.Set("Content-Type", w.FormDataContentType())
	if p.o.Key != "" {
		post.Header.Set("Authorization", "Bearer "+string(p.o.Key))
	}
	resp, err := x.Do(post)
	if err != nil {
		return answer, err
	}
	defer func() { _ = resp.Body.Close() }() // it is read to its end
	raw, err := io.ReadAll(resp.Body)
	if err == nil {
		err = json.Unmarshal(raw, &answer)
	}
	if err != nil {
		return answer, fmt.Errorf("read a picture: %w", err)
	}
	return answer, nil
}

// pictureEnding is that of the name of a picture.
func pictureEnding(mediaType string) string {
	switch mediaType {
	case "image/jpeg":
		return ".jpg"
	case "image/webp":
		return ".webp"
	default:
		return ".png"
	}
}

// readPicture returns the picture of an answer.
func (p *Provider) readPicture(answer *goopenai.ImageResponse) (llm.Picture, error) {
	if len(answer.Data) == 0 {
		return llm.Picture{}, p.garbledError("no picture")
	}
	one := &answer.Data[0]
	if one.B64JSON == "" && one.URL != "" {
		return llm.Picture{}, &llm.Error{
			Kind: llm.Invalid, Provider: p.o.Name,
			Err: errors.New("the server gives the address of a picture and not its content, which is not fetched"),
		}
	}
	_, encoded, found := strings.Cut(one.B64JSON, ";base64,") // some servers give a data URL
	if !found {
		encoded = one.B64JSON
	}
	data, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return llm.Picture{}, p.garbledError("a picture that is not base64")
	}
	switch kind := http.DetectContentType(data); kind {
	case "image/png", "image/jpeg", "image/webp":
		return llm.Picture{Data: data, Type: kind}, nil
	default:
		return llm.Picture{}, p.garbledError("a picture in a format that is not shown: %s", kind)
	}
}
