package app

import (
	"time"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/dispatch"
	"github.com/zephbot/zephbot/bot/sign"
)

// newSigns builds what shows signs on messages that wait; nil where the channel has no reactions.
func (s *service) newSigns(pacer bot.Pacer) dispatch.Signs {
	if s.ch.reactor == nil {
		return nil
	}
	deps := sign.Deps{
		Store: s.core.stores.Bot, Reactor: s.ch.reactor, Decoders: s.ch.decoders, Now: s.core.now,
		Log: s.core.log.With().Str("component", "signs").Logger(),
	}
	if p, ok := pacer.(interface {
		Frozen(place bot.Place) bool
		Freeze(place bot.Place, wait time.Duration)
	}); ok {
		deps.Pacer = p
	}
	s.signs = sign.New(deps)
	return s.signs
}
