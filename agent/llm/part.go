package llm

import "strings"

// PartKind says what a Part is.
type PartKind string

// The kinds of parts.
const (
	TextPart  PartKind = "text"
	ImagePart PartKind = "image"
	AudioPart PartKind = "audio"
	FilePart  PartKind = "file"
)

// Part is a piece of a message besides its text: a picture, a sound, a file. It names its content and does not hold it:
// the content is read where it is needed, through Request.Open. A part without Hash is known by name only; nobody can
// read it.
type Part struct {
	Kind  PartKind `json:"kind"`
	Hash  string   `json:"hash,omitempty"`  // of the content: SHA-256 in lower-case hex
	Type  string   `json:"type,omitempty"`  // media type, as its source says
	Name  string   `json:"name,omitempty"`  // as its source says: never a path to open
	Size  int64    `json:"size,omitempty"`  // bytes; 0 = unknown
	Label string   `json:"label,omitempty"` // what people call such a thing: "voice message", "location"
	// what can be said of it in words: "52.5, 13.4", a sticker's emoji; of a TextPart all of it
	Text string `json:"text,omitempty"`
}

// KindOfType is the kind of part for a media type.
func KindOfType(mediaType string) PartKind {
	switch main, _, _ := strings.Cut(strings.ToLower(mediaType), "/"); main {
	case "image":
		return ImagePart
	case "audio":
		return AudioPart
	default:
		return FilePart
	}
}

// Accepts says what a model takes besides text. The zero value is text only, which is also what is known of an unknown
// model.
type Accepts struct {
	Image, Audio, File bool
}

// Takes says whether parts of a kind can be sent.
func (a Accepts) Takes(kind PartKind) bool {
	switch kind {
	case TextPart:
		return true
	case ImagePart:
		return a.Image
	case AudioPart:
		return a.Audio
	case FilePart:
		return a.File
	default:
		return false
	}
}

// Accepter is a Provider that says what its model takes. Other parts may stand in a request all the same: it puts them
// into words.
type Accepter interface {
	Accepts() Accepts
}

// AcceptsOf is what a provider takes: text only, where it does not say.
func AcceptsOf(p Provider) Accepts {
	if a, ok := p.(Accepter); ok {
		return a.Accepts()
	}
	return Accepts{}
}

// Attached are the parts of a result; of nil there are none.
func (r *ToolResult) Attached() []Part {
	if r == nil {
		return nil
	}
	return r.Parts
}
