package anomaly

import (
	"context"
	"fmt"
)

// refresh reads the blocks of other processes now and then, and stores those that could not be stored before.
func (d *Detector) refresh(ctx context.Context) {
	if d.o.Store == nil {
		return
	}
	d.mu.Lock()
	now := d.o.Now()
	due := now.Sub(d.refreshed) >= refreshEvery
	if due {
		d.refreshed = now // others go on with what is known meanwhile
	}
	var unsaved []Block
	for _, b := range d.blocks {
		if b.unsaved && due {
			unsaved = append(unsaved, b.Block)
		}
	}
	d.mu.Unlock()
	if !due {
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

// load makes the blocks those of the store. What this process changes meanwhile is not undone: then the list is read again next time.
func (d *Detector) load(ctx context.Context) error {
	if d.o.Store == nil {
		return nil
	}
	d.mu.Lock()
	changes := d.changes
	d.mu.Unlock()
	list, err := d.o.Store.Blocks(ctx)
	if err != nil {
		return fmt.Errorf("read blocked tools: %w", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.refreshed = d.o.Now()
	if d.changes != changes {
		return nil
	}
	for tool, b := range d.blocks {
		if _, ok := list[tool]; !ok && !b.unsaved { // lifted by another process
			delete(d.blocks, tool)
			delete(d.windows, tool)
		}
	}
	for tool, reason := range list {
		if _, ok := d.blocks[tool]; !ok {
			d.blocks[tool] = block{Block: Block{Tool: tool, Reason: reason}}
			delete(d.windows, tool)
		}
	}
	return nil
}

// save stores a block, unless it was lifted meanwhile. One that cannot be stored holds in this process and is tried again.
func (d *Detector) save(ctx context.Context, b Block) {
	if d.o.Store == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	d.storing.Lock()
	defer d.storing.Unlock()
	if _, ok := d.Blocked(b.Tool); !ok {
		return
	}
	if err := d.o.Store.Block(ctx, b.Tool, b.Reason); err != nil {
		d.complain(fmt.Errorf("store block of %s: %w", b.Tool, err))
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if known, ok := d.blocks[b.Tool]; ok {
		known.unsaved = false
		d.blocks[b.Tool] = known
		d.changes++ // a list that was read before this does not have it
	}
}

func (d *Detector) complain(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.o.Now()
	if d.complained.IsZero() || now.Sub(d.complained) >= complainEvery {
		d.complained = now
		d.o.Log.Error().Err(err).Msg("blocked tools: the store is away, this process goes by what it knows")
	}
}
