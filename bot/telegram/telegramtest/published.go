package telegramtest

import (
	_ "embed"
	"strings"
)

// published has the methods of the Bot API with their parameters and the kinds of updates, as .ci/botapi found them.
//
//go:embed published.txt
var published string

// UpdateKinds lists the kinds of updates of the Bot API, as published when published.txt was renewed last.
func UpdateKinds() []string {
	var kinds []string
	for line := range strings.Lines(published) {
		if kind, ok := strings.CutPrefix(strings.TrimSpace(line), "update "); ok {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}
