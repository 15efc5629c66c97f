package privacy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/zephbot/zephbot/bot"
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
}

// Export answers /export, at most once an hour.
func (d *Handler) Export(ctx context.Context, call *turn.Call) (turn.Effect, error) {
	msg, w := call.Message, d.deps.Words
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
	e := call.ReplyAside(bot.Content{Text: w.ExportBegun(msg.Language)})
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
		content = bot.Content{Text: d.deps.Words.ExportFailed(x.Language)}
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
	var failed error
	for _, bare := range []bool{false, true} {
		content, fits, err := d.tryExport(ctx, x, bare)
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
	return bot.Content{Text: d.deps.Words.ExportLarge(x.Language, d.deps.Limit)}, nil
}

func (d *Handler) tryExport(ctx context.Context, x *exporting, bare bool) (content bot.Content, fits bool, err error) {
	temp, err := d.deps.Temp()
	if err != nil {
		return content, false, fmt.Errorf("write an export: %w", err)
	}
	defer func() { err = errors.Join(err, temp.Close()) }()
	err = d.deps.Export.Write(ctx, x.Person, x.Language, bare, &upTo{temp, d.deps.Limit})
	if errors.Is(err, errLarge) {
		return content, false, nil
	}
	if errors.Is(err, ErrNothing) {
		return bot.Content{Text: d.deps.Words.ExportNothing(x.Language)}, true, nil
	}
	if err != nil {
		return content, false, err
	}
	if _, err := temp.Seek(0, io.SeekStart); err != nil {
		return content, false, fmt.Errorf("read an export: %w", err)
	}
	ref, err := d.deps.Blobs.Put(ctx, string(x.Session), temp)
	if err != nil {
		return content, false, fmt.Errorf("keep an export: %w", err)
	}
	return bot.Content{
		Text: d.deps.Words.ExportDone(x.Language, bare),
		File: &bot.File{
			Name: "export.zip", Type: "application/zip",
			Hash: ref.Hash, Size: ref.Size, Document: true,
		},
	}, true, nil
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
