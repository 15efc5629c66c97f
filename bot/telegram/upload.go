package telegram

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/zephbot/zephbot/agent/blob"
	"github.com/zephbot/zephbot/bot"
)

// upload is a file that is part of a request. The library writes the whole request to memory, so it is given a mark in
// place of the content, and the content replaces the mark while the request is sent.
type upload struct {
	mark []byte
	file *bot.File
	from blob.Opener
	of   bot.SessionKey
	ctx  context.Context //nolint:containedctx // of the request, for a content that is opened while it is sent
}

type uploadKey struct{}

// uploading adds a file to the next request with ctx.
func (c *Client) uploading(ctx context.Context, row *bot.Row) (context.Context, *upload) {
	u := &upload{
		mark: []byte("content " + rand.Text() + rand.Text()), file: row.Content.File, from: c.opts.Files,
		of: row.Session,
	}
	u.ctx = ctx
	return context.WithValue(ctx, uploadKey{}, u), u
}

// errNoMark means that the library's form of a request has changed.
var errNoMark = errors.New("the request has no place for its file")

// into puts the content where the mark is. If the content is no longer kept, the row is refused: repeating the request
// would not help.
func (u *upload) into(req *http.Request) error {
	form, err := io.ReadAll(req.Body)
	if err != nil {
		return fmt.Errorf("read own request: %w", err)
	}
	before, after, found := bytes.Cut(form, u.mark)
	if !found {
		return errNoMark
	}
	content, size, err := u.file.Open(u.ctx, u.of, u.from)
	if err != nil {
		return u.failed(err)
	}
	body := func(content io.ReadCloser) io.ReadCloser {
		return struct {
			io.Reader
			io.Closer
		}{io.MultiReader(bytes.NewReader(before), content, bytes.NewReader(after)), content}
	}
	req.Body, req.ContentLength = body(content), int64(len(before)+len(after))+size
	// HTTP/2 sends the request again if the server is closing the connection.
	req.GetBody = func() (io.ReadCloser, error) {
		again, _, err := u.file.Open(u.ctx, u.of, u.from)
		if err != nil {
			return nil, err
		}
		return body(again), nil
	}
	return nil
}

// failed returns why a content cannot be sent. Nothing was sent.
func (u *upload) failed(err error) error {
	outcome := bot.NotSent
	if errors.Is(err, blob.ErrNotFound) || errors.Is(err, blob.ErrDamaged) {
		outcome = bot.Refused
	}
	return &bot.SendError{Outcome: outcome, Err: fmt.Errorf("file %s: %w", u.file.Name, err)}
}
