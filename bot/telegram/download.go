package telegram

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path"
	"strings"
	"time"

	tg "github.com/go-telegram/bot"
	"github.com/go-telegram/bot/models"

	"github.com/zephbot/zephbot/bot"
)

// publicHost is Telegram's own Bot API server.
const publicHost = "api.telegram.org"

// publicLimit is the largest file that Telegram's own server gives to bots (Bot API getFile); one that runs with
// --local gives any.
const publicLimit = 20 << 20

// FileLimit implements bot.Files.
func (c *Client) FileLimit() int64 {
	if u, err := url.Parse(c.opts.APIURL); err == nil && u.Hostname() == publicHost {
		return publicLimit
	}
	return 0
}

// Fetch implements bot.Files (Bot API getFile and the link it gives). The link holds the token: nothing of it gets into
// an error, and no redirect is followed, which would hand it on as the referrer. It is good for an hour; whoever tries
// again gets another one.
func (c *Client) Fetch(ctx context.Context, id string) (io.ReadCloser, error) {
	var file *models.File
	err := c.callMethod(ctx, func(ctx context.Context) (err error) {
		file, err = c.api.GetFile(ctx, &tg.GetFileParams{FileID: id})
		return err
	})
	if err != nil {
		return nil, refusedFile(err)
	}
	if path.IsAbs(file.FilePath) {
		return openLocal(file.FilePath)
	}
	return c.downloadFile(ctx, file.FilePath)
}

// refusedFile tells the refusals of getFile apart by the server's own words (Client.cpp of tdlib/telegram-bot-api).
func refusedFile(err error) error {
	text := strings.ToLower(err.Error())
	switch {
	case strings.Contains(text, "file is too big"):
		return fmt.Errorf("%w: %w", bot.ErrFileTooLarge, err)
	case strings.Contains(text, "bad request"):
		return fmt.Errorf("%w: %w", bot.ErrFileGone, err)
	}
	return fmt.Errorf("ask for a file: %w", err)
}

// openLocal opens a file that a Bot API server of the same machine, or one whose directory is mounted here, has stored
// (--local).
func openLocal(name string) (io.ReadCloser, error) {
	info, err := os.Lstat(name)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, fmt.Errorf(
			"%w: the Bot API server stored it as %s, which is not here: mount the server's directory at the same path",
			bot.ErrFileGone, name,
		)
	case err == nil && !info.Mode().IsRegular():
		return nil, fmt.Errorf("%w: %s is no regular file", bot.ErrFileGone, name)
	}
	f, err := os.Open(name) //nolint:gosec // the path is the answer of the operator's own server
	if err != nil {
		return nil, fmt.Errorf("open the file of the Bot API server: %w", err)
	}
	return f, nil
}

// downloadFile opens a link.
func (c *Client) downloadFile(ctx context.Context, filePath string) (io.ReadCloser, error) {
	address := strings.TrimRight(c.opts.APIURL, "/") + "/file/bot" +
		c.opts.Token + "/" + (&url.URL{Path: filePath}).EscapedPath()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return nil, c.redactError(err)
	}
	began := time.Now()
	resp, err := c.files.Do(req)
	status := 0
	if err == nil {
		status = resp.StatusCode
	}
	if c.opts.Observe != nil {
		c.opts.Observe(ctx, "file", status, time.Since(began))
	}
	if err != nil {
		return nil, fmt.Errorf("download a file: %w", c.redactError(err))
	}
	if status == http.StatusOK {
		return clean{resp.Body, c}, nil
	}
	_ = resp.Body.Close() // nothing of it is read
	if status == http.StatusNotFound || status == http.StatusGone {
		return nil, fmt.Errorf("%w: its link answered %d", bot.ErrFileGone, status)
	}
	return nil, fmt.Errorf("download a file: the server answered %d", status)
}

// clean keeps the token out of the errors of a body.
type clean struct {
	io.ReadCloser
	client *Client
}

// Read implements io.Reader.
func (r clean) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = r.client.redactError(err)
	}
	return n, err
}

var _ bot.Files = (*Client)(nil)
