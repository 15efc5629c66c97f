package access

import (
	"maps"
	"slices"

	"github.com/zephbot/zephbot/bot"
)

// EverybodyDecides reports whether people may decide what they asked for themselves, by the configuration of a place.
func (g *Guard) EverybodyDecides(place bot.Place) bool { return g.configuredRights(place).Everybody() }

// Deciders returns the ids of those who may decide what others ask for and are no admins, as cached by this process.
func (g *Guard) Deciders() []string {
	ids := slices.Clone(g.opts.Approvers)
	if known := g.known.Load(); known != nil {
		for _, id := range slices.Sorted(maps.Keys(*known)) {
			if (*known)[id].Role == Approver && !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
	}
	admins := g.Operators()
	return slices.DeleteFunc(ids, func(id string) bool { return slices.Contains(admins, id) })
}
