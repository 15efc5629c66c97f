package telegram

import (
	"bytes"
	"context"
	"image"
	_ "image/jpeg" // formats that are sent as photos
	_ "image/png"
	"io"
	"strings"

	tg "github.com/go-telegram/bot"
	"github.com/go-telegram/bot/models"
	_ "golang.org/x/image/webp"

	"github.com/zephbot/zephbot/bot"
)

// Limits of a photo (Bot API sendPhoto).
const (
	maxPhoto = 10 << 20 // bytes
	maxEdges = 10_000   // width and height together, in pixels
	maxRatio = 20       // of the longer to the shorter edge
)

// medium is the form in which a file is sent.
type medium int

const (
	asDocument medium = iota
	asPhoto
	asAudio
	asVoice
)

// newMedium returns the form for a file: what Telegram does not take as a photo, and what cannot be looked at, is a
// document.
func (c *Client) newMedium(ctx context.Context, session bot.SessionKey, f *bot.File) medium {
	switch f.Media() {
	case bot.Sound:
		return asAudio
	case bot.Speech:
		return asVoice
	case bot.Picture:
		content, size, err := f.Open(ctx, session, c.opts.Files)
		if err != nil {
			return asDocument // sending it meets the same error and says what follows
		}
		defer func() { _ = content.Close() }() // it is only looked at
		if size <= maxPhoto && isPhoto(content) {
			return asPhoto
		}
	case bot.Plain:
	}
	return asDocument
}

// isPhoto says whether the head of a picture is one of a photo.
func isPhoto(content io.Reader) bool {
	head, format, err := image.DecodeConfig(io.LimitReader(content, maxPhoto))
	if err != nil || !strings.Contains("jpeg png webp", format) {
		return false
	}
	short, long := min(head.Width, head.Height), max(head.Width, head.Height)
	return short > 0 && short+long <= maxEdges && long <= maxRatio*short
}

// sendFile sends a file with the text as its caption (Bot API sendPhoto, sendAudio, sendVoice, sendDocument).
func (c *Client) sendFile(ctx context.Context, row *bot.Row) (string, error) {
	chat, err := chatID(row.Place)
	if err != nil {
		return "", err
	}
	caption, marks := captionOf(row)
	as := c.newMedium(ctx, row.Session, row.Content.File)
	return c.deliverMessage(ctx, func(ctx context.Context) (*models.Message, error) {
		ctx, file := c.uploadContext(ctx, row)
		input := &models.InputFileUpload{Filename: row.Content.File.Name, Data: bytes.NewReader(file.files[0].mark)}
		thread, reply, keys := sendThread(row.Place), replyTo(row), encodeKeyboard(row.Content.Buttons)
		switch as {
		case asPhoto:
			return c.api.SendPhoto(ctx, &tg.SendPhotoParams{
				BusinessConnectionID: row.Place.Business(),
				ChatID:               chat,
				MessageThreadID:      thread,
				Caption:              caption,
				CaptionEntities:      marks,
				Photo:                input,
				ReplyParameters:      reply,
				ReplyMarkup:          keys,
			})
		case asAudio:
			return c.api.SendAudio(ctx, &tg.SendAudioParams{
				BusinessConnectionID: row.Place.Business(),
				ChatID:               chat,
				MessageThreadID:      thread,
				Caption:              caption,
				CaptionEntities:      marks,
				Audio:                input,
				ReplyParameters:      reply,
				ReplyMarkup:          keys,
			})
		case asVoice:
			return c.api.SendVoice(ctx, &tg.SendVoiceParams{
				BusinessConnectionID: row.Place.Business(),
				ChatID:               chat,
				MessageThreadID:      thread,
				Caption:              caption,
				CaptionEntities:      marks,
				Voice:                input,
				Duration:             row.Content.File.Seconds,
				ReplyParameters:      reply,
				ReplyMarkup:          keys,
			})
		default:
			return c.api.SendDocument(ctx, &tg.SendDocumentParams{
				BusinessConnectionID: row.Place.Business(),
				ChatID:               chat,
				MessageThreadID:      thread,
				Caption:              caption,
				CaptionEntities:      marks,
				Document:             input,
				ReplyParameters:      reply,
				ReplyMarkup:          keys,
			})
		}
	})
}
