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

// upload is the files that are part of a request, in their order. The library writes the whole request to memory, so
// it is given a mark in place of each content, and the contents replace the marks while the request is sent.
type upload struct {
	files []marked
	from  blob.Opener
	of    bot.SessionKey
	ctx   context.Context //nolint:containedctx // of the request, for a content that is opened while it is sent
}

// marked is a file and the mark that stands for its content.
type marked struct {
	mark []byte
	file *bot.File
}

type uploadKey struct{}

// uploadContext adds the files of a row to the next request with ctx.
func (c *Client) uploadContext(ctx context.Context, row *bot.Row) (context.Context, *upload) {
	u := &upload{from: c.opts.Files, of: row.Session}
	for _, f := range row.Content.Files() {
		u.files = append(u.files, marked{mark: []byte("content " + rand.Text() + rand.Text()), file: f})
	}
	u.ctx = ctx
	return context.WithValue(ctx, uploadKey{}, u), u
}

// errNoMark means that the library's form of a request has changed.
var errNoMark = errors.New("the request has no place for its file")

// fillRequest puts the contents where the marks are. If a content is no longer kept, the row is refused:
// repeating the request would not help.
func (u *upload) fillRequest(req *http.Request) error {
	form, err := io.ReadAll(req.Body)
	if err != nil {
		return fmt.Errorf("read own request: %w", err)
	}
	between := make([][]byte, 0, len(u.files)+1)
	for _, f := range u.files {
		before, after, found := bytes.Cut(form, f.mark)
		if !found {
			return errNoMark
		}
		between, form = append(between, before), after
	}
	body, size, err := u.joinBody(append(between, form))
	if err != nil {
		return err
	}
	req.Body, req.ContentLength = body, size
	// HTTP/2 sends the request again if the server is closing the connection.
	req.GetBody = func() (io.ReadCloser, error) {
		again, _, err := u.joinBody(append(between, form))
		return again, err
	}
	return nil
}

// joinBody joins what is between the contents and the contents. They are all opened first: whether one is missing is
// known before anything is sent.
func (u *upload) joinBody(between [][]byte) (io.ReadCloser, int64, error) {
	var readers []io.Reader
	var opened closers
	var length int64
	for i, f := range u.files {
		content, size, err := f.file.Open(u.ctx, u.of, u.from)
		if err != nil {
			_ = opened.Close() // nothing of them was read
			return nil, 0, u.contentError(f.file, err)
		}
		opened = append(opened, content)
		readers = append(readers, bytes.NewReader(between[i]), content)
		length += int64(len(between[i])) + size
	}
	last := between[len(u.files)]
	return struct {
		io.Reader
		io.Closer
	}{io.MultiReader(append(readers, bytes.NewReader(last))...), opened}, length + int64(len(last)), nil
}

// closers are closed together.
type closers []io.Closer

// Close implements io.Closer.
func (c closers) Close() error {
	list := make([]error, len(c))
	for i, one := range c {
		list[i] = one.Close()
	}
	return errors.Join(list...)
}

// contentError returns why a content cannot be sent. Nothing was sent.
func (u *upload) contentError(f *bot.File, err error) error {
	outcome := bot.NotSent
	if errors.Is(err, blob.ErrNotFound) || errors.Is(err, blob.ErrDamaged) {
		outcome = bot.Refused
	}
	return &bot.SendError{Outcome: outcome, Err: fmt.Errorf("file %s: %w", f.Name, err)}
}
