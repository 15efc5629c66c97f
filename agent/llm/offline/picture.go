package offline

import (
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	_ "image/gif" // formats in which people send pictures
	_ "image/jpeg"
	_ "image/png"
	"io"
	"slices"
	"strings"

	_ "golang.org/x/image/webp"

	"github.com/zephbot/zephbot/agent/llm"
)

// Limits of a picture that is measured: its file in bytes, and its pixels, which are decoded in memory.
const (
	maxPictureBytes  = 20 << 20
	maxPicturePixels = 40_000_000
)

// Accepts implements llm.Accepter: pictures are measured.
func (m *Model) Accepts() llm.Accepts { return llm.Accepts{Image: true} }

// hasPicture reports whether a message has a picture that can be opened.
func hasPicture(message *llm.Message) bool {
	return slices.ContainsFunc(message.Parts, isPicture)
}

func isPicture(p llm.Part) bool { return p.Kind == llm.ImagePart && p.Hash != "" }

// measurePictures says what can be measured of the pictures of a message; "" = it has none.
func measurePictures(ctx context.Context, t *tongue, req *llm.Request, message *llm.Message) string {
	var told []string
	end := ""
	for i := range message.Parts {
		if !isPicture(message.Parts[i]) {
			continue
		}
		img, format, err := openPicture(ctx, req, &message.Parts[i])
		if err != nil {
			told = append(told, t.say("I could not open this picture: %s.", t.say(err.Error())))
			continue
		}
		told = append(told, describePicture(t, img, format))
		end = "\n\n" + t.say("I can only measure a picture: what it shows, a real model would see.")
	}
	if len(told) == 0 {
		return ""
	}
	if len(told) > 1 {
		for i, one := range told {
			told[i] = fmt.Sprintf("%d. %s", i+1, one)
		}
	}
	return strings.Join(told, "\n") + end
}

// openPicture decodes a picture within the limits. The error is for people.
func openPicture(ctx context.Context, req *llm.Request, part *llm.Part) (img image.Image, format string, err error) {
	if req.Open == nil {
		return nil, "", errors.New("its content is not kept")
	}
	read := func(use func(io.Reader) error) error {
		content, err := req.Open(ctx, part.Hash)
		if err != nil {
			return errors.New("its content is not kept any more")
		}
		defer func() { _ = content.Close() }() // it was only read
		return use(io.LimitReader(content, maxPictureBytes))
	}
	err = read(func(r io.Reader) error {
		head, _, err := image.DecodeConfig(r)
		switch {
		case err != nil:
			return errors.New("it is no PNG, JPEG, GIF or WebP")
		case head.Width*head.Height > maxPicturePixels:
			return fmt.Errorf("with %d × %d pixels it is too large for me", head.Width, head.Height)
		}
		return nil
	})
	if err != nil {
		return nil, "", err
	}
	err = read(func(r io.Reader) error {
		if img, format, err = image.Decode(r); err != nil {
			return errors.New("it is damaged")
		}
		return nil
	})
	return img, format, err
}

// sampleEdge is the number of points of a picture that are looked at, in each direction.
const sampleEdge = 120

// describePicture says size, shape, kind and colours of a picture.
func describePicture(t *tongue, img image.Image, format string) string {
	b := img.Bounds()
	shape := "square"
	switch {
	case b.Dx() > b.Dy():
		shape = "landscape"
	case b.Dx() < b.Dy():
		shape = "portrait"
	}
	s := samplePicture(img)
	return t.say("%s: %d × %d pixels, %s, %s. Colours: %s.",
		t.say(s.kind()), b.Dx(), b.Dy(), t.say(shape), strings.ToUpper(format), s.colours(t))
}

// pictureSample is what was counted at the points of a grid.
type pictureSample struct {
	points int
	flat   int // points whose right neighbour, one pixel away, has the same colour
	names  map[string]int
}

func samplePicture(img image.Image) pictureSample {
	b, s := img.Bounds(), pictureSample{names: map[string]int{}}
	stepX, stepY := max(1, b.Dx()/sampleEdge), max(1, b.Dy()/sampleEdge)
	for y := b.Min.Y; y < b.Max.Y; y += stepY {
		for x := b.Min.X; x < b.Max.X; x += stepX {
			at := rgbAt(img, x, y)
			s.points++
			s.names[colourName(at)]++
			if x+1 < b.Max.X && colourDistance(at, rgbAt(img, x+1, y)) <= 2 {
				s.flat++
			}
		}
	}
	return s
}

// flatShare is the share of even areas, in percent, from which a picture was drawn rather than photographed: cameras
// and their files have noise everywhere.
const flatShare = 80

// kind tells drawings from photos by their even areas. With one colour alone there is nothing to see.
func (s *pictureSample) kind() string {
	switch {
	case len(s.names) == 1 && s.flat*100 >= s.points*flatShare:
		return "This is an even area of one colour"
	case s.flat*100 >= s.points*flatShare:
		return "This looks like a chart, a drawing or a screenshot (even areas, sharp edges)"
	default:
		return "This looks like a photo (colours change from point to point)"
	}
}

// colours lists the most frequent colours with their share, at most four, without what covers less than 3 %.
func (s *pictureSample) colours(t *tongue) string {
	names := make([]string, 0, len(s.names))
	for name := range s.names {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		if d := s.names[b] - s.names[a]; d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	var told []string
	for i, name := range names {
		share := (s.names[name]*100 + s.points/2) / s.points
		if i == 4 || i > 0 && share < 3 {
			break
		}
		told = append(told, fmt.Sprintf("%s %d %%", t.say(name), share))
	}
	return strings.Join(told, ", ")
}

func rgbAt(img image.Image, x, y int) color.NRGBA {
	c, _ := color.NRGBAModel.Convert(img.At(x, y)).(color.NRGBA) // the model returns nothing else
	return c
}

// colourDistance is the largest difference of two colours in one channel.
func colourDistance(a, b color.NRGBA) int {
	apart := func(x, y uint8) int { return max(int(x), int(y)) - min(int(x), int(y)) }
	return max(apart(a.R, b.R), apart(a.G, b.G), apart(a.B, b.B))
}

// hues are the names of colours by the end of their range, in degrees of the colour circle.
var hues = [...]struct {
	end  int
	name string
}{
	{15, "red"},
	{40, "orange"},
	{70, "yellow"},
	{165, "green"},
	{195, "turquoise"},
	{255, "blue"},
	{290, "purple"},
	{340, "pink"},
	{360, "red"},
}

// colourName is the word for a colour.
func colourName(c color.NRGBA) string {
	r, g, b := int(c.R), int(c.G), int(c.B)
	most, least := max(r, g, b), min(r, g, b)
	spread := most - least
	switch {
	case c.A < 32:
		return "transparent"
	case most < 45:
		return "black"
	case least > 225:
		return "white"
	case spread*100 < most*15:
		return "grey"
	}
	hue := 0
	switch most {
	case r:
		hue = 60 * (g - b) / spread
	case g:
		hue = 120 + 60*(b-r)/spread
	default:
		hue = 240 + 60*(r-g)/spread
	}
	hue = (hue + 360) % 360
	for _, h := range hues {
		if hue < h.end {
			if (h.name == "orange" || h.name == "red") && most < 150 && h.end == 40 {
				return "brown"
			}
			return h.name
		}
	}
	return "red"
}
