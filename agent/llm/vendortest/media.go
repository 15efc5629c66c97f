package vendortest

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"io"
	"io/fs"
	"mime"
	"mime/multipart"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"
)

// mediaDir is where the facts about servers that speak and draw are. They are apart from those about conversations,
// because other models are asked.
const mediaDir = "media/"

// The APIs for what is not a conversation: they are wires of a vendor too.
var mediaWires = map[string]string{ //nolint:gochecknoglobals // a constant table
	"speech": "/audio/speech",
	"images": "/images/generations",
	"edits":  "/images/edits",
	"hears":  "/audio/transcriptions",
}

// Transcript is what every recording says to a server that writes speech down.
const Transcript = "What is in the box?"

// isForm reports whether requests of a wire are forms.
func isForm(wire string) bool { return wire == "edits" || wire == "hears" }

// MediaVendors returns the names of the servers of which facts about speech and pictures are known.
func MediaVendors() []string {
	entries, err := fs.ReadDir(factFiles, "facts/"+strings.TrimSuffix(mediaDir, "/"))
	if err != nil {
		return nil
	}
	var names []string
	for _, e := range entries {
		names = append(names, mediaDir+strings.TrimSuffix(e.Name(), ".toml"))
	}
	return names
}

// talks reports whether a vendor's server has conversations.
func (f *facts) talks() bool {
	return slices.ContainsFunc(f.Wires, func(wire string) bool { return mediaWires[wire] == "" })
}

// readForm reads the fields of a form, and its files as their sizes.
func readForm(contentType string, body []byte) (map[string]any, error) {
	_, params, err := mime.ParseMediaType(contentType)
	if err != nil {
		return nil, fmt.Errorf("media type: %w", err)
	}
	fields := map[string]any{}
	for parts := multipart.NewReader(bytes.NewReader(body), params["boundary"]); ; {
		part, err := parts.NextPart()
		if err != nil {
			if err == io.EOF { //nolint:errorlint // the end of a form is bare
				return fields, nil
			}
			return nil, fmt.Errorf("form: %w", err)
		}
		data, err := io.ReadAll(part)
		if err != nil {
			return nil, fmt.Errorf("form: %w", err)
		}
		if part.FileName() == "" {
			fields[part.FormName()] = string(data)
			continue
		}
		fields[part.FormName()] = map[string]any{
			"size": float64(len(data)), "type": part.Header.Get("Content-Type"), "seen": http.DetectContentType(data),
		}
	}
}

// produce answers a request for speech or a picture.
func (x *exchange) produce() {
	x.note(http.StatusOK, "")
	if x.wire == "speech" {
		text, _ := x.body["input"].(string)
		format, _ := x.body["response_format"].(string)
		kind, data := soundAs(format, text)
		x.w.Header().Set("Content-Type", kind)
		_, _ = x.w.Write(data) // a client may be gone
		return
	}
	if x.wire == "hears" {
		x.w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(x.w).Encode(map[string]string{"text": Transcript}) // a client may be gone
		return
	}
	prompt, _ := x.body["prompt"].(string)
	size, _ := x.body["size"].(string)
	model, _ := x.body["model"].(string)
	data := Picture(prompt, size, x.server.facts.Pictures.JPEG)
	one := map[string]any{}
	if asked, _ := x.body["response_format"].(string); x.server.facts.Pictures.URL && asked != "b64_json" {
		one["url"] = x.server.url + "/pictures/" + base64.RawURLEncoding.EncodeToString([]byte(prompt))
	} else {
		one["b64_json"] = base64.StdEncoding.EncodeToString(data)
	}
	answer := map[string]any{"created": 1, "data": []any{one}}
	if tokens := x.server.facts.Pictures.Tokens[pictureQuality(x.body)]; tokens > 0 && strings.HasPrefix(model, "gpt-image") {
		input := len(prompt)/bytesPerToken + 1
		answer["usage"] = map[string]any{
			"input_tokens": input, "output_tokens": tokens, "total_tokens": input + tokens,
			"input_tokens_details": map[string]int{"text_tokens": input, "image_tokens": 0},
		}
	}
	x.w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(x.w).Encode(answer) // a client may be gone
}

func pictureQuality(body map[string]any) string {
	if q, ok := body["quality"].(string); ok {
		return q
	}
	return "auto"
}

// pictures is what a server that draws gives.
type pictures struct {
	JPEG   bool           `toml:"jpeg"`   // pictures are JPEG, else PNG
	URL    bool           `toml:"url"`    // an address, unless b64_json is asked for
	Tokens map[string]int `toml:"tokens"` // what a picture is counted as, by quality; none = no usage is reported
}

// soundAs returns a text as silence of the length that speaking it takes, in a format.
func soundAs(format, text string) (mediaType string, data []byte) {
	switch format {
	case "opus":
		return "audio/ogg", Opus(text)
	case "", "mp3":
		// A frame of MPEG-1 layer III at 64 kbit/s and 44.1 kHz has 208 bytes and lasts 26 ms.
		frame := append([]byte{0xFF, 0xFB, 0x50, 0xC4}, make([]byte, 204)...)
		return "audio/mpeg", bytes.Repeat(frame, 1+speechLength(text)/26)
	case "wav":
		return "audio/wav", append([]byte("RIFF\x24\x00\x00\x00WAVEfmt "), make([]byte, 400)...)
	default:
		return "application/octet-stream", make([]byte, 400)
	}
}

// speechLength is how long a text is spoken, in milliseconds.
func speechLength(text string) int { return utf8.RuneCountInString(text) * 65 }

// Opus returns Opus in Ogg that can be played: silence, as long as it takes to speak a text.
func Opus(text string) []byte {
	const frame = 960 // samples of 20 ms
	silence := []byte{0xF8, 0xFF, 0xFE}
	var out bytes.Buffer
	head := append([]byte("OpusHead\x01\x01"), 0, 0, 0x80, 0xBB, 0, 0, 0, 0, 0)
	tags := append([]byte("OpusTags"), 4, 0, 0, 0, 't', 'e', 's', 't', 0, 0, 0, 0)
	frames := max(1, speechLength(text)/20)
	writePage(&out, 2, 0, 0, [][]byte{head})
	writePage(&out, 0, 0, 1, [][]byte{tags})
	for n, page := 0, uint32(2); n < frames; page++ {
		var packets [][]byte
		for len(packets) < 50 && n < frames {
			packets, n = append(packets, silence), n+1
		}
		kind := byte(0)
		if n == frames {
			kind = 4
		}
		writePage(&out, kind, uint64(n*frame), page, packets)
	}
	return out.Bytes()
}

// writePage writes a page of Ogg (RFC 3533, section 6) with packets that are shorter than 255 bytes.
func writePage(out *bytes.Buffer, kind byte, samples uint64, number uint32, packets [][]byte) {
	page := append([]byte("OggS\x00"), kind)
	page = binary.LittleEndian.AppendUint64(page, samples)
	page = binary.LittleEndian.AppendUint32(page, 1)
	page = binary.LittleEndian.AppendUint32(page, number)
	page = append(page, 0, 0, 0, 0, byte(len(packets)))
	for _, p := range packets {
		page = append(page, byte(len(p)))
	}
	for _, p := range packets {
		page = append(page, p...)
	}
	binary.LittleEndian.PutUint32(page[22:], oggSum(page))
	out.Write(page)
}

// oggSum is the checksum of a page of Ogg: CRC-32 with the bits in the other order than usual.
func oggSum(page []byte) (sum uint32) {
	for _, b := range page {
		sum ^= uint32(b) << 24
		for range 8 {
			if sum&(1<<31) != 0 {
				sum = sum<<1 ^ 0x04c11db7
			} else {
				sum <<= 1
			}
		}
	}
	return sum
}

// Picture returns a picture of one colour, which depends on the words that ask for it.
func Picture(prompt, size string, asJPEG bool) []byte {
	width, height := 1024, 1024
	if n, err := fmt.Sscanf(size, "%dx%d", &width, &height); n != 2 || err != nil {
		width, height = 1024, 1024
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(prompt))
	sum := h.Sum32()
	palette := color.Palette{color.RGBA{byte(sum), byte(sum >> 8), byte(sum >> 16), 255}}
	img, out := image.NewPaletted(image.Rect(0, 0, width, height), palette), bytes.Buffer{}
	if asJPEG {
		_ = jpeg.Encode(&out, img, nil) // writing to memory cannot fail
	} else {
		_ = png.Encode(&out, img)
	}
	return out.Bytes()
}
