package content

import (
	"fmt"
	"mime"
	"path"
	"strings"

	"github.com/zephbot/zephbot/tools"
)

// maxFiles is how many files of one result a person is shown.
const maxFiles = 10

// Files returns the images, sounds and binary contents of a result for the person. The model only reads that they
// exist.
func (r Raw) Files() []tools.File {
	var list []tools.File
	for i, p := range r.Parts {
		if len(p.Data) == 0 || len(list) == maxFiles {
			continue
		}
		list = append(list, tools.File{Name: fileName(p, i+1), MIME: p.MIME, Data: p.Data})
	}
	return list
}

// fileName returns the last part of the server's name for a part, made safe, or else its kind and number. The extension
// fits the type.
func fileName(p Part, n int) string {
	name := p.Name
	if name == "" {
		name = path.Base(strings.TrimSuffix(p.URI, "/"))
	}
	name = strings.Map(func(r rune) rune {
		switch {
		case r >= '0' && r <= '9', r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r == '-', r == '_', r == '.':
			return r
		}
		return '_'
	}, name)
	name = strings.Trim(name, "._")
	if name == "" || len(name) > 80 {
		name = fmt.Sprintf("%s-%d", strings.ReplaceAll(string(p.Kind), " ", "-"), n)
	}
	if path.Ext(name) == "" {
		if kind, _, err := mime.ParseMediaType(p.MIME); err == nil {
			name += extension(kind)
		}
	}
	return name
}

// extension returns the usual extension of a type. The tables of the system differ between machines and list several.
func extension(kind string) string {
	switch kind {
	case "image/png":
		return ".png"
	case "image/jpeg":
		return ".jpg"
	case "image/gif":
		return ".gif"
	case "image/webp":
		return ".webp"
	case "image/svg+xml":
		return ".svg"
	case "audio/wav", "audio/x-wav":
		return ".wav"
	case "audio/mpeg":
		return ".mp3"
	case "application/pdf":
		return ".pdf"
	default:
		return ".bin"
	}
}
