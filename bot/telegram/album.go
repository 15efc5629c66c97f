package telegram

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"mime/multipart"
	"strconv"

	"github.com/go-telegram/bot/models"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/render"
)

// groupItem is a file of an album (Bot API InputMediaPhoto, InputMediaAudio and InputMediaDocument).
type groupItem struct {
	Type     string                 `json:"type"`
	Media    string                 `json:"media"` // attach://PART of the request
	Caption  string                 `json:"caption,omitempty"`
	Entities []models.MessageEntity `json:"caption_entities,omitempty"`
}

// sendAlbum sends several files as one message with one caption (Bot API sendMediaGroup). It returns the id of the
// first of the messages that the server makes of them. The library is not used, because it names each file by the part
// of the request that contains it, so that two files could not have the same name.
func (c *Client) sendAlbum(ctx context.Context, row *bot.Row) (string, error) {
	if _, err := chatID(row.Place); err != nil {
		return "", err
	}
	caption, marks := captionOf(row)
	kind := c.albumKind(ctx, row)
	return c.deliverMessage(ctx, func(ctx context.Context) (*models.Message, error) {
		ctx, files := c.uploadContext(ctx, row)
		items := make([]groupItem, len(files.files))
		for i := range items {
			items[i] = groupItem{Type: kind, Media: "attach://" + partName(i)}
		}
		items[0].Caption, items[0].Entities = caption, marks
		body, contentType, err := albumForm(row, items, files.files)
		if err != nil {
			return nil, err
		}
		var sent []struct {
			ID int `json:"message_id"`
		}
		if err := c.requestMethod(ctx, "sendMediaGroup", contentType, body, &sent); err != nil {
			return nil, err
		}
		if len(sent) == 0 {
			return nil, fmt.Errorf("the answer names none of the %d messages", len(items))
		}
		return &models.Message{ID: sent[0].ID}, nil
	})
}

// albumKind is the type of all files of an album, because Telegram does not mix documents or sounds with anything else.
// If not all of them can be photos or sounds, all are documents.
func (c *Client) albumKind(ctx context.Context, row *bot.Row) string {
	names := map[medium]string{asPhoto: "photo", asAudio: "audio", asDocument: "document"}
	files := row.Content.Files()
	first := c.newMedium(ctx, row.Session, files[0])
	for _, f := range files[1:] {
		if c.newMedium(ctx, row.Session, f) != first {
			return names[asDocument]
		}
	}
	return names[first]
}

func partName(i int) string { return "file" + strconv.Itoa(i) }

// albumForm returns the body of a request, with marks in place of the contents, and its content type.
func albumForm(row *bot.Row, items []groupItem, files []marked) (body []byte, contentType string, err error) {
	media, err := json.Marshal(items)
	if err != nil {
		return nil, "", fmt.Errorf("album: %w", err)
	}
	fields := [][2]string{{"chat_id", row.Place.Chat}, {"media", string(media)}}
	if connection := row.Place.Business(); connection != "" {
		fields = append(fields, [2]string{"business_connection_id", connection})
	}
	if n := sendThread(row.Place); n != 0 {
		fields = append(fields, [2]string{"message_thread_id", strconv.Itoa(n)})
	}
	if r := replyTo(row); r != nil {
		raw, err := json.Marshal(r)
		if err != nil {
			return nil, "", fmt.Errorf("album: %w", err)
		}
		fields = append(fields, [2]string{"reply_parameters", string(raw)})
	}
	var form bytes.Buffer
	w := multipart.NewWriter(&form)
	for _, f := range fields {
		if err := w.WriteField(f[0], f[1]); err != nil {
			return nil, "", fmt.Errorf("album: %w", err)
		}
	}
	for i, f := range files {
		part, err := w.CreateFormFile(partName(i), f.file.Name)
		if err == nil {
			_, err = part.Write(f.mark)
		}
		if err != nil {
			return nil, "", fmt.Errorf("album: %w", err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, "", fmt.Errorf("album: %w", err)
	}
	return form.Bytes(), w.FormDataContentType(), nil
}

// captionOf returns the text of a row as a caption.
func captionOf(row *bot.Row) (string, []models.MessageEntity) {
	text := render.Cut(row.Content.Text, captionLength)
	if text != row.Content.Text {
		return text, nil // the entities may point behind the cut
	}
	return text, encodeEntities(row.Content.Entities)
}
