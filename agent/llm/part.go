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

// Part is a piece of a message besides its text: a picture, a sound, a file. It refers to its content, which is read
// through Request.Open where it is needed. A part without Hash is known by name only and cannot be read.
type Part struct {
	Kind  PartKind `json:"kind"`
	Hash  string   `json:"hash,omitempty"`  // of the content: SHA-256 in lower-case hex
	Type  string   `json:"type,omitempty"`  // media type, as given by its source
	Name  string   `json:"name,omitempty"`  // as given by its source: never a path to open
	Size  int64    `json:"size,omitempty"`  // bytes; 0 = unknown
	Label string   `json:"label,omitempty"` // what people call such a thing: "voice message", "location"
	// Text is what can be said in words: "52.5, 13.4", a sticker's emoji. It is the whole content of a TextPart.
	Text string `json:"text,omitempty"`
	// Outgoing: a tool sends the content to the people of the chat, with Text as its caption. Models do not get it.
	Outgoing bool `json:"outgoing,omitempty"`
	// Own: Text is what the person said themselves, written down.
	Own bool `json:"own,omitempty"`
	// Quoted: it came with the message that the person replied to, not with their own.
	Quoted bool `json:"quoted,omitempty"`
}

// KindOfType returns the kind of part for a media type.
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

// Accepts lists what a model takes besides text. The zero value is text only, which is also assumed for an unknown
// model.
type Accepts struct {
	Image, Audio, File bool
}

// Takes reports whether parts of a kind can be sent.
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

// Accepter is a Provider that reports what its model takes. A request can contain other parts too: the provider puts
// them into words.
type Accepter interface {
	Accepts() Accepts
}

// Chooser is a Provider that asks others and knows what each of them takes.
type Chooser interface {
	// AcceptsFor returns what the provider takes that is asked first for Request.Prefer.
	AcceptsFor(prefer string) Accepts
}

// AcceptsFor returns what the model takes that a request with this Prefer reaches first.
func AcceptsFor(p Provider, prefer string) Accepts {
	if c, ok := p.(Chooser); ok {
		return c.AcceptsFor(prefer)
	}
	return AcceptsOf(p)
}

// AcceptsOf returns what a provider takes: text only if it does not report it.
func AcceptsOf(p Provider) Accepts {
	if a, ok := p.(Accepter); ok {
		return a.Accepts()
	}
	return Accepts{}
}

// Attached returns the parts of a result, none for nil.
func (r *ToolResult) Attached() []Part {
	if r == nil {
		return nil
	}
	return r.Parts
}
