package app

import (
	"github.com/zephbot/zephbot/agent/llm/route"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/feature"
	"github.com/zephbot/zephbot/bot/job"
	"github.com/zephbot/zephbot/bot/speech"
	"github.com/zephbot/zephbot/bot/telegram"
	"github.com/zephbot/zephbot/bot/turn"
)

// speakAttempts is how often speaking an answer is tried while the server is busy or loads its model.
const speakAttempts = 3

// newSpeech builds what speaks answers; nil = nothing speaks, or the channel plays no recordings.
func (s *service) newSpeech() (*speech.Handler, error) {
	c := s.core
	voice, err := c.models.Voice()
	if err != nil || voice == nil || s.ch.name != telegram.Name {
		return nil, err
	}
	jobs := s.jobDeps("speech")
	retry, err := route.NewRetry(route.Options{Attempts: speakAttempts, Now: c.now, Log: jobs.Log})
	if err != nil {
		return nil, err
	}
	return speech.New(speech.Deps{
		Deps: jobs, Conversations: c.stores.Bot, Blobs: c.stores.Blobs, Voice: voice, Retry: retry,
		VoiceOf: func(session bot.SessionKey) string {
			persona, _ := c.personas.Of(session)
			return persona.Voice
		},
		Open:   func(msg *bot.Message, id string) turn.Budget { return s.meter.Open(msg, id) },
		Wanted: c.own.Speech, Words: c.words(),
	}), nil
}

// jobDeps is what people's jobs need that a component works on.
func (s *service) jobDeps(component string) job.Deps {
	c := s.core
	return job.Deps{
		Store: c.stores.Bot, Keeper: c.keeper(), Wake: func(place bot.Place) { s.outbox.Wake(place) },
		Current: c.moves.Current, Owner: c.owner, Lives: c.living.Lives, Now: c.now,
		Log: c.log.With().Str("component", component).Logger(),
	}
}

// speaks returns /speak and the recordings that follow answers.
func (s *service) speaks() feature.Feature {
	if s.speech == nil {
		return speech.Off(s.core.words())
	}
	return s.speech.Feature()
}

// spoken is what can be stopped of them; nil = nothing speaks.
func (s *service) spoken() turn.Speech {
	if s.speech == nil {
		return nil
	}
	return s.speech
}
