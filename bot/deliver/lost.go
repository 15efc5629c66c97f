package deliver

import (
	"context"
	"slices"
	"strings"

	"github.com/zephbot/zephbot/bot"
)

// maxTold limits how many rows one Change marks as reported.
const maxTold = 100

// lost is a row that somebody waits for and that may not have arrived. In the store it is in state unknown until they
// are told; this is a copy.
type lost struct {
	id      int64
	problem string
}

// recall reads the losses that people were not told about before the last process ended. It returns false if ctx ended
// first.
func (o *Outbox) recall(ctx context.Context) bool {
	for n := 0; ctx.Err() == nil; n++ {
		rows, err := o.deps.Store.Lost(ctx, o.opts.Channel, o.opts.Bot)
		if err == nil {
			o.mu.Lock()
			defer o.mu.Unlock()
			for i := range rows {
				o.remind(&rows[i])
			}
			return true
		}
		o.deps.Log.Warn().Err(err).Msg("lost rows not read; retrying")
		sleep(ctx, o.backoff(n))
	}
	return false
}

// remind records a row whose loss was not reported. o.mu must be held.
func (o *Outbox) remind(row *bot.Row) {
	key := row.Place.ChatKey()
	o.lost[key] = append(slices.Clip(o.lost[key]), lost{row.ID, row.Problem})
}

// lose records a row that has ended in state unknown.
func (o *Outbox) lose(key string, row *bot.Row, update bot.RowUpdate) {
	if update.To != bot.Unknown {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.lost[key] = append(slices.Clip(o.lost[key]), lost{row.ID, update.Problem})
}

// renameLost changes the key of a group to its new id.
func (o *Outbox) renameLost(key string, move *bot.Move) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.lost[key]) == 0 {
		return
	}
	to := renamed(key, move)
	o.lost[to] = append(slices.Clip(o.lost[to]), o.lost[key]...)
	delete(o.lost, key)
}

// renamed returns the key of a chat after it moved.
func renamed(key string, move *bot.Move) string {
	if before, ok := strings.CutSuffix(key, "/"+move.From); ok {
		return before + "/" + move.To
	}
	return key
}

// settleTold ends rows whose loss was reported. If that cannot be stored, it is reported again.
func (o *Outbox) settleTold(ctx context.Context, key string, told []lost) {
	for list := range slices.Chunk(told, maxTold) {
		change := &bot.Change{}
		for _, l := range list {
			change.Rows = append(change.Rows, bot.RowUpdate{
				ID: l.id, From: []bot.RowState{bot.Unknown}, To: bot.Dead, Problem: l.problem,
			})
		}
		if _, err := o.apply(ctx, change); err != nil && !hopeless(err) {
			o.deps.Log.Warn().Err(err).Str("chat", key).Msg("report of a loss not stored; it will be repeated")
			return
		}
		o.mu.Lock()
		for _, l := range list {
			o.finished[l.id] = o.looks
		}
		o.lost[key] = slices.DeleteFunc(slices.Clone(o.lost[key]), func(l lost) bool {
			return slices.Contains(list, l)
		})
		if len(o.lost[key]) == 0 {
			delete(o.lost, key)
		}
		o.mu.Unlock()
	}
}
