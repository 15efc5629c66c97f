package simulator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// pressLife is how long Telegram keeps a press that nobody has fetched (telegram-bot-api Client.cpp).
const pressLife = 150 * time.Second

// replay rebuilds a stored world in a new one: messages and files are put back as they were, presses are repeated with
// the clock turned back. Anything that no Bot API server can have made is found here and not later.
type replay struct {
	w    *world
	m    *memory
	disk *store
}

func (r *replay) runReplay(ctx context.Context) error {
	r.w.silent.Store(true)
	defer func() {
		r.w.past.Store(nil)
		r.w.silent.Store(false)
	}()
	// The bot has received all this once: nothing of it becomes an update again.
	if err := r.callMethod(ctx, "getUpdates", map[string]any{
		"allowed_updates": []string{"poll"},
		"timeout":         0,
	}); err != nil {
		return err
	}
	if err := r.restoreChats(); err != nil {
		return err
	}
	if err := r.pressAgain(ctx); err != nil {
		return err
	}
	r.w.past.Store(nil)
	if err := r.callMethod(ctx, "getUpdates", map[string]any{"allowed_updates": []string{}, "timeout": 0}); err != nil {
		return err
	}
	return r.restoreRest()
}

// restoreChats puts files, topics and messages back.
func (r *replay) restoreChats() error {
	for _, f := range r.m.Files {
		data, err := r.disk.readFile(f.Sum)
		if err != nil {
			return fmt.Errorf("file %q: %w", f.ID, err)
		}
		if err := r.w.fake.RestoreFile(f.KeptFile, data); err != nil {
			return err
		}
		r.w.sums[f.ID] = f.Sum
	}
	if err := r.w.fake.RestoreTopics(Team, r.m.Topics); err != nil {
		return err
	}
	for chat, messages := range r.m.Chats {
		if err := r.w.fake.Restore(chat, messages); err != nil {
			return fmt.Errorf("chat %d: %w", chat, err)
		}
	}
	return nil
}

// pressAgain presses the buttons again, in order: the ids of presses are counted, and one that the bot
// has yet to answer needs its id.
func (r *replay) pressAgain(ctx context.Context) error {
	for _, p := range r.m.Presses {
		r.w.past.Store(&p.At)
		again := p
		if err := r.w.sendPress(&again); err != nil {
			return fmt.Errorf("press of %q: %w", p.Data, err)
		}
		if again.ID != p.ID {
			return fmt.Errorf("press of %q: its id %s came back as %s", p.Data, p.ID, again.ID)
		}
		if !p.Answered {
			continue
		}
		if err := r.callMethod(ctx, "answerCallbackQuery", map[string]any{"callback_query_id": p.ID}); err != nil {
			return err
		}
	}
	r.w.presses = slices.Clone(r.m.Presses)
	return nil
}

// restoreRest restores what is not in the chats.
func (r *replay) restoreRest() error {
	w, m := r.w, r.m
	now := w.now()
	old := map[string]bool{}
	for _, p := range m.Presses {
		old[p.ID] = now.Sub(p.At) >= pressLife
	}
	for _, raw := range m.Pending {
		var u struct {
			Callback struct {
				ID string `json:"id"`
			} `json:"callback_query"`
		}
		if err := json.Unmarshal(raw, &u); err != nil {
			return fmt.Errorf("waiting update: %w", err)
		}
		if old[u.Callback.ID] {
			continue
		}
		if _, err := w.fake.RawUpdate(raw); err != nil {
			return fmt.Errorf("waiting update: %w", err)
		}
	}
	w.nextUpdate = m.NextUpdate
	if m.Reacts != nil {
		w.reacts = m.Reacts
	}
	if m.Reads != nil {
		w.reads = m.Reads
	}
	w.callMu.Lock()
	w.calls = slices.Clone(m.Calls)
	for _, c := range m.Calls {
		w.callN = max(w.callN, c.N)
	}
	w.callMu.Unlock()
	if problems := w.fake.Problems(); len(problems) > 0 {
		return errors.New(strings.Join(problems, "; "))
	}
	return nil
}

func (r *replay) callMethod(ctx context.Context, method string, params map[string]any) error {
	_, err := r.w.callMethod(ctx, method, params)
	return err
}
