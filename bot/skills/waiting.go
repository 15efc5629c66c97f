package skills

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/render"
	"github.com/zephbot/zephbot/tools/skill"
)

// told holds one value: the hash of each skill, by name, that admins were told of.
const told = "skill_told"

// settled is how long folders have to stay as they are before admins are told of them: somebody may be copying files.
const settled = time.Minute

// Announce tells the admins, in one message to each of places, of skills that wait for them and that they were not told
// of with this content. On several processes that happens once. Call it again and again; it reads the store only if
// something waits that this process has not told of. sent is told where a message was stored.
func (d *Handler) Announce(ctx context.Context, places []bot.Place, sent func(place bot.Place)) error {
	if d.deps.Library == nil || len(places) == 0 {
		return nil
	}
	waiting := d.waitingSkills()
	now := d.deps.Now()
	d.mu.Lock()
	if !maps.Equal(waiting, d.waits) {
		d.waits, d.since, d.said = waiting, now, false
	}
	due := d.decisions.Known() && len(waiting) > 0 && !d.said && now.Sub(d.since) >= settled
	d.mu.Unlock()
	if !due {
		return nil
	}
	told, err := d.storeAnnouncements(ctx, waiting, places)
	if errors.Is(err, bot.ErrConflict) {
		return nil // another process was faster: the next call reads what it has told
	}
	if err != nil {
		return err
	}
	d.mu.Lock()
	d.said = true
	d.mu.Unlock()
	for _, place := range told {
		sent(place)
	}
	return nil
}

// waitingSkills returns the hashes of the skills that nobody has decided about as they are, by name.
func (d *Handler) waitingSkills() map[string]string {
	waiting := map[string]string{}
	list, _ := d.deps.Library.Entries()
	for i := range list {
		if s := list[i].State; s == skill.Waiting || s == skill.Changed {
			waiting[list[i].Name] = list[i].Hash
		}
	}
	return waiting
}

// storeAnnouncements stores the messages about those that were not told of, and returns where they go.
func (d *Handler) storeAnnouncements(
	ctx context.Context, waiting map[string]string, places []bot.Place,
) ([]bot.Place, error) {
	before, err := d.deps.Store.Fact(ctx, told, "", d.deps.Now())
	if err != nil {
		return nil, fmt.Errorf("read which skills admins were told of: %w", err)
	}
	known := map[string]string{}
	_ = json.Unmarshal([]byte(before), &known) // what cannot be read was told by nobody
	var names []string
	for _, name := range slices.Sorted(maps.Keys(waiting)) {
		if known[name] != waiting[name] {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil, nil
	}
	value, err := json.Marshal(waiting) // what waits no more is forgotten
	if err != nil {
		return nil, fmt.Errorf("store which skills admins were told of: %w", err)
	}
	change := &bot.Change{Facts: []bot.Fact{{Bucket: told, Value: string(value), Was: &before}}}
	for _, place := range places {
		text, button := d.deps.Words.At(place).SkillsWaiting("", names)
		change.Send = append(change.Send, bot.Row{
			Place: place, Purpose: bot.Reply, Content: bot.Content{
				Text:     text,
				Entities: render.Inert(text),
				Buttons:  [][]bot.Button{{{Label: button, Data: Prefix + ":" + pressPage + ":0"}}},
			},
		})
	}
	if _, err := d.deps.Store.Apply(ctx, change); err != nil {
		return nil, fmt.Errorf("tell admins of skills: %w", err)
	}
	return places, nil
}
