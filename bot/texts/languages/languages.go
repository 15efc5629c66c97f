// Package languages holds the sentences of the bot: one file per language, named by its two letters (ISO 639-1).
package languages

import (
	"embed"
	"slices"
	"strings"
)

// Files are the files of all languages.
//
//go:embed *.toml
var Files embed.FS

// Standard is the language that has every sentence. What another one lacks is said in it.
const Standard = "en"

// Tags lists the languages that have a file: the standard one first, the others sorted.
func Tags() []string {
	tags := []string{Standard}
	entries, err := Files.ReadDir(".")
	if err != nil { // an embedded directory can be read
		return tags
	}
	for _, e := range entries {
		if tag := strings.TrimSuffix(e.Name(), ".toml"); tag != Standard {
			tags = append(tags, tag)
		}
	}
	slices.Sort(tags[1:])
	return tags
}
