package anomaly

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/zephbot/zephbot/tools"
)

// forgetAfter is how long a session keeps the window of a tool that it does not call.
const forgetAfter = 24 * time.Hour

// Blocked returns the block, if any, that prevents a person from using a tool in a session now, as far as this process
// knows. If there are several, it returns the one that lasts longest.
func (d *Detector) Blocked(from tools.Origin, def tools.Definition) (found tools.Block, blocked bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.blocks) == 0 {
		return tools.Block{}, false
	}
	now := d.o.Now()
	places := []place{
		{from.Session, from.Caller, def.Name},
		{session: from.Session, tool: def.Name}, // stored by an earlier version
		{tool: def.Name},
	}
	if def.Server != "" {
		places = append(places, place{tool: everyTool(def.Server)})
	}
	for _, at := range places {
		if b, ok := d.blocks[at]; ok && now.Before(b.Until) && b.Until.After(found.Until) {
			found, blocked = b.Block, true
		}
	}
	return found, blocked
}

// Blocks returns the current blocks, sorted by tool and session.
func (d *Detector) Blocks() []tools.Block {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.o.Now()
	var list []tools.Block
	for _, b := range d.blocks {
		if now.Before(b.Until) {
			list = append(list, b.Block)
		}
	}
	slices.SortFunc(list, func(a, b tools.Block) int {
		return cmp.Or(cmp.Compare(a.Tool, b.Tool), cmp.Compare(a.Session, b.Session), cmp.Compare(a.Caller, b.Caller))
	})
	return list
}

// liftedFor is how long a lifted block stays away while the store still has it.
const liftedFor = 30 * time.Second

// Lift lifts the blocks of a tool, or of "server:*", in every session of this process at once, forgets the failures,
// and returns the blocks for the caller to delete from the store. If they are still stored after a while, they are
// back.
func (d *Detector) Lift(tool string) []tools.Block {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.o.Now()
	var list []tools.Block
	for at, b := range d.blocks {
		if at.tool == tool && now.Before(b.Until) {
			list = append(list, b.Block)
			d.lifted[at] = now.Add(liftedFor)
			d.changes++
			delete(d.blocks, at)
		}
	}
	if len(list) == 0 {
		return nil
	}
	for at := range d.windows {
		if at.tool == tool {
			delete(d.windows, at)
		}
	}
	slices.SortFunc(list, func(a, b tools.Block) int {
		return cmp.Or(cmp.Compare(a.Session, b.Session), cmp.Compare(a.Caller, b.Caller))
	})
	d.o.Log.Info().Str("tool", tool).Msg("tool unblocked")
	return list
}

// forgetLifted has the store's word count again for a tool.
func (d *Detector) forgetLifted(tool string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for at := range d.lifted {
		if at.tool == tool {
			delete(d.lifted, at)
		}
	}
}

// Unblock lifts the blocks of a tool, or of "server:*", in every session and from any process, and forgets the
// failures. It returns false when there were none. After an error, blocks that could not be lifted remain.
func (d *Detector) Unblock(ctx context.Context, tool string) (bool, error) {
	d.forgetLifted(tool)
	if err := d.load(ctx); err != nil {
		return false, err
	}
	d.storing.Lock()
	defer d.storing.Unlock()
	was := false
	for _, at := range d.placesOf(tool) {
		if d.o.Store != nil {
			if err := d.o.Store.Unblock(ctx, tools.Block{
				Tool:    at.tool,
				Session: at.session,
				Caller:  at.caller,
			}); err != nil {
				return false, fmt.Errorf("unblock %s: %w", tool, err)
			}
		}
		d.mu.Lock()
		was = was || d.o.Now().Before(d.blocks[at].Until)
		d.changes++
		delete(d.blocks, at)
		d.mu.Unlock()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for at := range d.windows {
		if at.tool == tool && was {
			delete(d.windows, at)
		}
	}
	if was {
		d.o.Log.Info().Str("tool", tool).Msg("tool unblocked")
	}
	return was, nil
}

// placesOf returns the places where a tool has a block, or had one that is not forgotten.
func (d *Detector) placesOf(tool string) []place {
	d.mu.Lock()
	defer d.mu.Unlock()
	var list []place
	for at := range d.blocks {
		if at.tool == tool {
			list = append(list, at)
		}
	}
	return list
}

// refresh reads the blocks of other processes from time to time, stores those that could not be stored before, and
// drops old ones.
func (d *Detector) refresh(ctx context.Context) {
	d.mu.Lock()
	now := d.o.Now()
	due := now.Sub(d.refreshed) >= refreshEvery
	var unsaved []tools.Block
	if due {
		d.refreshed = now // meanwhile, others use what is known
		d.forget(now)
		for _, b := range d.blocks {
			if b.unsaved {
				unsaved = append(unsaved, b.Block)
			}
		}
	}
	d.mu.Unlock()
	if !due || d.o.Store == nil {
		return
	}
	for _, b := range unsaved {
		d.save(ctx, b)
	}
	bounded, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	if err := d.load(bounded); err != nil && ctx.Err() == nil {
		d.complain(err)
	}
}

// forget drops windows and blocks that no longer have an effect. The caller holds the lock.
func (d *Detector) forget(now time.Time) {
	for at, b := range d.blocks {
		if !now.Before(b.Forget()) {
			delete(d.blocks, at)
		}
	}
	if now.Sub(d.forgot) < forgetAfter/24 { // there may be one for each tool of each session
		return
	}
	d.forgot = now
	for at, w := range d.windows {
		if now.Sub(w.used) >= forgetAfter {
			delete(d.windows, at)
		}
	}
}

// load replaces the blocks by those in the store. If this process has changed blocks meanwhile, it keeps them and reads
// the list again next time.
func (d *Detector) load(ctx context.Context) error {
	if d.o.Store == nil {
		return nil
	}
	d.mu.Lock()
	changes := d.changes
	d.mu.Unlock()
	stored, err := d.o.Store.Blocks(ctx)
	if err != nil {
		return fmt.Errorf("read blocked tools: %w", err)
	}
	list := make(map[place]tools.Block, len(stored))
	for _, b := range stored {
		list[placeOf(b)] = b
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.refreshed = d.o.Now()
	if d.changes != changes {
		return nil
	}
	for at, b := range d.blocks {
		if _, ok := list[at]; !ok && !b.unsaved { // lifted by another process
			delete(d.blocks, at)
			delete(d.windows, at)
		}
	}
	for at, b := range list {
		if until, ok := d.lifted[at]; ok && d.o.Now().Before(until) {
			continue
		}
		delete(d.lifted, at)
		if known, ok := d.blocks[at]; !ok || known.Until.Before(b.Until) {
			d.blocks[at] = block{Block: b}
			delete(d.windows, at)
		}
	}
	return nil
}

// save stores a block, unless it was lifted meanwhile. One that cannot be stored holds in this process and is tried
// again.
func (d *Detector) save(ctx context.Context, b tools.Block) {
	if d.o.Store == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	d.storing.Lock()
	defer d.storing.Unlock()
	if known, ok := d.known(placeOf(b)); !ok || known.Since != b.Since || known.Until != b.Until {
		return
	}
	if err := d.o.Store.Block(ctx, b); err != nil {
		d.complain(fmt.Errorf("store block of %s: %w", b.Tool, err))
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if known, ok := d.blocks[placeOf(b)]; ok {
		known.unsaved = false
		d.blocks[placeOf(b)] = known
		d.changes++ // a list that was read before does not have it
	}
}

func (d *Detector) known(at place) (tools.Block, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	b, ok := d.blocks[at]
	return b.Block, ok
}

func (d *Detector) complain(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.o.Now()
	if d.complained.IsZero() || now.Sub(d.complained) >= complainEvery {
		d.complained = now
		d.o.Log.Error().Err(err).Msg("blocked tools: the store is not available, using the blocks known so far")
	}
}
