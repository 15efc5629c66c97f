// Package layer works with what a command has changed on an overlay: it reads the upper layer, keeps it until a person
// has decided, and applies it to the directory below, exactly and only if that is unchanged.
//
// The upper layer has the form of overlayfs. Deleted entries are devices 0/0 or have the attribute overlay.whiteout,
// directories that hide what is below have the attribute overlay.opaque; attributes are in the namespace user or
// trusted. What the form cannot hold exactly, or what only the kernel could make again, is refused (Refused).
//
// Only Linux has overlays.
package layer

import (
	"errors"
	"fmt"
)

// Kind is what is at a path.
type Kind string

// Kinds. Absent is the zero value.
const (
	Absent    Kind = ""
	File      Kind = "file"
	Directory Kind = "directory"
	Link      Kind = "link"
)

// State is what is at a path. States are compared with ==.
type State struct {
	Kind Kind   `json:"kind,omitempty"`
	Mode uint32 `json:"mode,omitempty"` // permission bits and the sticky bit; 0 for a link
	Size int64  `json:"size,omitempty"` // bytes of a file
	Time int64  `json:"time,omitempty"` // of the last change of the content, in nanoseconds since 1970
	UID  uint32 `json:"uid"`
	GID  uint32 `json:"gid"`
	// Content is the SHA-256 of a file in lower-case hex, or the target of a link.
	Content string `json:"content,omitempty"`
}

// same reports whether two states have the same content and the same kind.
func (s State) same(t State) bool { return s.Kind == t.Kind && s.Content == t.Content }

// Change is a difference between the directory below and the layer, at a path relative to both.
type Change struct {
	Path   string `json:"path"`
	Before State  `json:"before"`
	After  State  `json:"after"`
	// Whole: nothing of the directory below is visible through the layer, and each of its entries has a Change.
	Whole bool `json:"whole,omitempty"`
}

// Limits bound what is read. Zero means the default.
type Limits struct {
	Entries int   // changes; default 5 000
	Bytes   int64 // of files that are read, above and below; default 256 MiB
	Tree    int   // entries of the directory below that are compared; default 20 000
}

func (l Limits) withDefaults() Limits {
	if l.Entries <= 0 {
		l.Entries = 5000
	}
	if l.Bytes <= 0 {
		l.Bytes = 256 << 20
	}
	if l.Tree <= 0 {
		l.Tree = 20_000
	}
	return l
}

// Refused is the error for a layer that cannot be shown or applied exactly.
type Refused struct {
	Path string // relative; "" = it is about the whole
	Why  string // in a few words, for the log
}

// Error implements error.
func (r *Refused) Error() string { return fmt.Sprintf("layer: %q: %s", r.Path, r.Why) }

var (
	// ErrLarge means that a layer has more entries or bytes than Limits allow.
	ErrLarge = errors.New("layer: more than is kept")
	// ErrChanged means that the directory below is not what the layer was made on.
	ErrChanged = errors.New("layer: the directory below has changed")
	// ErrPartly means that a part of a layer may have been applied, and not the rest.
	ErrPartly = errors.New("layer: it may have been applied in part")
	// ErrDamaged means that a stored layer is missing or not what was stored.
	ErrDamaged = errors.New("layer: missing or damaged")
)
