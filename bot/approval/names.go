package approval

import (
	"context"
	"strings"

	"github.com/zephbot/zephbot/bot"
)

// openNames returns the short names of the open questions of a chat.
func (b *Broker) openNames(ctx context.Context, place bot.Place) (map[string]bool, error) {
	open, err := b.deps.Store.OpenApprovals(ctx, "")
	if err != nil {
		return nil, err
	}
	taken := map[string]bool{}
	for _, a := range open {
		if a.Place.ChatKey() == place.ChatKey() {
			taken[a.Short] = true
		}
	}
	return taken, nil
}

// speakableName returns a name that can be spoken and typed: consonants and vowels alternate, and it is extended until it is
// unused.
func speakableName(id []byte, taken map[string]bool) string {
	const vowels, consonants = "aeiou", "bdfgklmnprstvz"
	for n := 5; ; n++ {
		var s strings.Builder
		for i := range n {
			set := consonants
			if i%2 == 1 {
				set = vowels
			}
			s.WriteByte(set[int(id[i%len(id)])%len(set)])
		}
		if name := s.String(); !taken[name] || n >= len(id) {
			taken[name] = true
			return name
		}
	}
}
