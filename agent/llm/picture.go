package llm

import "errors"

// Shape is the form of a picture.
type Shape string

// Shapes.
const (
	Square    Shape = "square"
	Landscape Shape = "landscape"
	Portrait  Shape = "portrait"
)

// PictureRequest asks for a picture.
type PictureRequest struct {
	Prompt string
	Shape  Shape // "" = Square
	// Edit is the picture that is to be changed; nil = a new one is made.
	Edit     []byte
	EditType string // its media type: image/png, image/jpeg or image/webp
}

// Picture is what a model has drawn.
type Picture struct {
	Data []byte
	Type string // image/png, image/jpeg or image/webp
}

// ErrDeclined goes with the error of a request that the vendor's moderation has refused.
var ErrDeclined = errors.New("the provider's moderation refuses this")
