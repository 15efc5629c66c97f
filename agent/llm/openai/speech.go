package openai

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"unicode/utf8"

	goopenai "github.com/sashabaranov/go-openai"

	"github.com/zephbot/zephbot/agent/llm"
)

// DefaultVoice speaks where none is configured: OpenAI's oldest voice, which most compatible servers know by this name.
const DefaultVoice = "alloy"

// maxSound limits a recording that a server makes, in bytes: half an hour of Opus at 64 kbit/s.
const maxSound = 16 << 20

// Speak has a text spoken (POST /audio/speech of OpenAI's API), with a voice or, if it is "", the configured one. It asks for Opus, which chats play as a voice message,
// and for MP3 where the server refuses that. usd is what it cost at the configured price, also when the sound could not
// be used. Errors are *llm.Error or those of ctx.
func (p *Provider) Speak(ctx context.Context, text, voice string) (sound llm.Sound, usd float64, err error) {
	if p.o.SpeechModel == "" {
		return llm.Sound{}, 0, &llm.Error{
			Kind: llm.Invalid, Provider: p.o.Name, Err: errors.New("no speech_model is configured"),
		}
	}
	format := goopenai.SpeechResponseFormatOpus
	if p.onlyMP3.Load() {
		format = goopenai.SpeechResponseFormatMp3
	}
	sound, usd, refused, err := p.speakAs(ctx, format, text, voice)
	if refused && format == goopenai.SpeechResponseFormatOpus {
		if sound, usd, _, err = p.speakAs(ctx, goopenai.SpeechResponseFormatMp3, text, voice); err == nil {
			p.onlyMP3.Store(true)
		}
	}
	return sound, usd, err
}

// speakAs asks for a sound in a format. refused: the server does not make this format.
func (p *Provider) speakAs(
	ctx context.Context, format goopenai.SpeechResponseFormat, text, voice string,
) (sound llm.Sound, usd float64, refused bool, err error) {
	x := p.newExchange()
	x.limit = maxSound
	err = p.runWatched(ctx, x, func(ctx context.Context) error {
		answer, err := p.newSDK(x).CreateSpeech(ctx, goopenai.CreateSpeechRequest{
			Model: goopenai.SpeechModel(p.o.SpeechModel), Input: text, Voice: goopenai.SpeechVoice(cmp.Or(voice, p.o.SpeechVoice)),
			ResponseFormat: format,
		})
		if err != nil {
			return err
		}
		defer func() { _ = answer.Close() }() // it is read to its end
		data, err := io.ReadAll(answer)
		if err != nil {
			return fmt.Errorf("read a sound: %w", err)
		}
		var ok bool
		if sound, ok = llm.SoundOf(data); ok {
			return nil
		}
		if utf8.Valid(x.head.Bytes()) { // words instead of a sound
			if other := p.strayError(x, x.head.Bytes(), true); other != nil {
				return other
			}
		}
		return p.garbledError("a sound that is neither Opus in Ogg nor MP3")
	})
	if x.status == http.StatusOK && x.complaint == nil && llm.KindOf(err) != llm.WrongAddress {
		usd = float64(utf8.RuneCountInString(text)) / 1e6 * p.o.SpeechUSDPerMChar
	}
	if err != nil {
		return llm.Sound{}, usd, llm.KindOf(err) == llm.Invalid && x.refusesFormat(), err
	}
	return sound, usd, false, nil
}

// refusesFormat reports whether the server has refused the format of a sound.
func (x *exchange) refusesFormat() bool {
	if x.complaint == nil {
		return false
	}
	text := strings.ToLower(x.complaint.Text() + " " + x.complaint.Param)
	return strings.Contains(text, "response_format") || strings.Contains(text, "opus")
}
