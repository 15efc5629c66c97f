package privacy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/transcript"
	"github.com/zephbot/zephbot/bot/turn"
)

// exporting is an export that was asked for in a chat.
type exporting struct {
	Session  bot.SessionKey `json:"session"`
	Person   Person         `json:"person"`
	Place    bot.Place      `json:"place"`
	Language string         `json:"language,omitempty"`
	Row      int64          `json:"row,omitempty"` // it was made, and this row sends it
	Hash     string         `json:"hash,omitempty"`
	At       time.Time      `json:"at"`
	// Page is the conversation that is made a page; nil = everything about the person is wanted, as data.
	Page *transcript.Order `json:"page,omitempty"`
}

// Export answers /export: with everything about the person as data, at most once an hour, or with a page.
func (d *Handler) Export(ctx context.Context, call *turn.Call) (turn.Effect, error) {
	msg, w := call.Message, d.deps.Words
	switch args := strings.TrimSpace(msg.Args); {
	case strings.EqualFold(args, pageWord):
		return d.ExportPage(ctx, call)
	case args != "":
		return call.ReplyAside(bot.Content{Text: w.TranscriptUnknown(msg.Language)}), nil
	}
	of, ok := inOwnChat(msg)
	if !ok {
		return call.ReplyAside(bot.Content{Text: w.ForgetPrivate(msg.Language)}), nil
	}
	last, err := d.store.Fact(ctx, oftenBucket, of.Caller(), d.now())
	if err != nil {
		return turn.Effect{}, fmt.Errorf("when was the last export: %w", err)
	}
	if last != "" && last != msg.ID {
		return call.ReplyAside(bot.Content{Text: w.ExportOften(msg.Language)}), nil
	}
	value, err := json.Marshal(exporting{
		Session:  call.Session,
		Person:   of,
		Place:    msg.Place,
		Language: msg.Language,
		At:       d.now(),
	})
	if err != nil {
		return turn.Effect{}, fmt.Errorf("note an export: %w", err)
	}
	e := call.ReplyAside(bot.Content{Text: w.ExportBegun(msg.Language), Buttons: d.pageButton(msg.Language, of)})
	e.Change.Facts = []bot.Fact{
		{Bucket: exportBucket, Key: msg.ID, Value: string(value), Expires: d.now().Add(exportFor)},
		{Bucket: oftenBucket, Key: of.Caller(), Value: msg.ID, Expires: d.now().Add(often)},
	}
	e.Then = d.lookNow
	return e, nil
}

func (d *Handler) exportAll(ctx context.Context) error {
	list, err := d.store.FactsOf(ctx, exportBucket, "", d.now())
	if err != nil {
		return fmt.Errorf("read who wants an export: %w", err)
	}
	for _, f := range list {
		if err := d.withLock(ctx, f, d.exportOne); err != nil {
			return err
		}
	}
	return nil
}

func (d *Handler) exportOne(ctx context.Context, f bot.Fact) error {
	x := &exporting{}
	if err := json.Unmarshal([]byte(f.Value), x); err != nil {
		d.deps.Log.Error().Err(err).Msg("a request for an export cannot be read")
		return nil
	}
	if x.Row != 0 {
		return d.removeDelivered(ctx, x.Row, f, x.Hash, x.Session)
	}
	content, err := d.makeExport(ctx, x)
	if err != nil {
		if ctx.Err() != nil {
			return err
		}
		d.deps.Log.Error().Err(err).Msg("no export")
		if content.Text = d.deps.Words.ExportFailed(x.Language); x.Page != nil {
			content.Text = d.deps.Words.TranscriptFailed(x.Language)
		}
	}
	content.Language = x.Language
	if content.File != nil {
		x.Hash = content.File.Hash
	}
	row := bot.Row{Session: x.Session, Place: x.Place, Purpose: bot.Reply, Key: rowKey + f.Key, Content: content}
	return d.tellOnce(ctx, row, func(id int64) (bot.Fact, error) {
		x.Row = id
		value, err := json.Marshal(x)
		return bot.Fact{Bucket: f.Bucket, Key: f.Key, Value: string(value), Expires: d.now().Add(exportFor)}, err
	})
}

// makeExport writes an export, and without files if it is too large with them, or fails.
func (d *Handler) makeExport(ctx context.Context, x *exporting) (bot.Content, error) {
	try, large := d.tryExport, d.deps.Words.ExportLarge
	if x.Page != nil {
		try, large = d.tryPage, d.deps.Words.TranscriptLarge
	}
	var failed error
	for _, bare := range []bool{false, true} {
		content, fits, err := try(ctx, x, bare)
		if fits || ctx.Err() != nil {
			return content, err
		}
		if failed = err; err != nil {
			d.deps.Log.Warn().Err(err).Bool("bare", bare).Msg("an export failed")
		}
	}
	if failed != nil {
		return bot.Content{}, failed
	}
	return bot.Content{Text: large(x.Language, d.deps.Limit)}, nil
}

func (d *Handler) tryExport(ctx context.Context, x *exporting, bare bool) (content bot.Content, fits bool, err error) {
	file := &bot.File{Name: "export.zip", Type: "application/zip"}
	err = d.writeFile(ctx, x, file, func(out io.Writer) error {
		return d.deps.Export.Write(ctx, x.Person, x.Language, bare, out)
	})
	switch {
	case errors.Is(err, errLarge):
		return content, false, nil
	case errors.Is(err, ErrNothing):
		return bot.Content{Text: d.deps.Words.ExportNothing(x.Language)}, true, nil
	case err != nil:
		return content, false, err
	}
	return bot.Content{Text: d.deps.Words.ExportDone(x.Language, bare), File: file}, true, nil
}

// writeFile writes a file that is sent, and keeps it until it is.
func (d *Handler) writeFile(
	ctx context.Context, x *exporting, file *bot.File, write func(out io.Writer) error,
) (err error) {
	temp, err := d.deps.Temp()
	if err != nil {
		return fmt.Errorf("write an export: %w", err)
	}
	defer func() { err = errors.Join(err, temp.Close()) }()
	if err := write(&upTo{temp, d.deps.Limit}); err != nil {
		return err
	}
	if _, err := temp.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("read an export: %w", err)
	}
	ref, err := d.deps.Blobs.Put(ctx, string(x.Session), temp)
	if err != nil {
		return fmt.Errorf("keep an export: %w", err)
	}
	file.Hash, file.Size, file.Document = ref.Hash, ref.Size, true
	return nil
}

// upTo writes so many bytes and then fails with errLarge, so that no export fills the disk.
type upTo struct {
	out  io.Writer
	left int64
}

// Write implements io.Writer.
func (u *upTo) Write(p []byte) (int, error) {
	if int64(len(p)) > u.left {
		return 0, errLarge
	}
	u.left -= int64(len(p))
	return u.out.Write(p)
}
