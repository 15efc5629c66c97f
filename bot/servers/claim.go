package servers

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/zephbot/zephbot/bot"
)

// Several processes may find a job that nobody performs. The one that does is determined by a chain of facts in
// claimBucket: under MESSAGE/ is the process that took it first, under MESSAGE/PROCESS the one that took it over from a
// process that was gone. Each link is only set if absent.
const (
	claimBucket = "mcp_job_by"
	claimFor    = 48 * time.Hour
)

// claimJob takes a job for this process. It returns false if a living process has it. Afterwards the job says whether
// another process had begun it.
func (d *Handler) claimJob(ctx context.Context, j *Job) (bool, error) {
	if !d.deps.Shared {
		return true, nil
	}
	holder, err := d.holderOf(ctx, j.Message.ID)
	switch {
	case err != nil:
		return false, err
	case holder == d.deps.Owner: // the reply to an earlier attempt was lost: this process makes one attempt at a time
		return d.isOpen(ctx, j.Message.ID)
	case holder != "" && d.deps.Lives(holder):
		return false, nil
	case holder != "":
		j.Owner = holder // which may have done any part of it
	}
	link := bot.Fact{
		Bucket: claimBucket, Key: j.Message.ID + "/" + holder, Value: d.deps.Owner, Expires: d.deps.Now().Add(claimFor),
	}
	applied, err := d.deps.Keeper.Store.Apply(ctx, &bot.Change{FactsIf: []bot.Fact{link}})
	if err != nil {
		return false, fmt.Errorf("take a command about a server: %w", err)
	}
	if !applied.Set[0] {
		return false, nil
	}
	return d.isOpen(ctx, j.Message.ID)
}

// isOpen reports whether a job still has to be performed.
func (d *Handler) isOpen(ctx context.Context, message string) (bool, error) {
	job, err := d.deps.Store.Fact(ctx, jobBucket, message, d.deps.Now())
	if err != nil {
		return false, fmt.Errorf("read a command about a server: %w", err)
	}
	return job != "", nil
}

// holderOf returns the process that took a job last; "" = none.
func (d *Handler) holderOf(ctx context.Context, message string) (holder string, err error) {
	for {
		next, err := d.deps.Store.Fact(ctx, claimBucket, message+"/"+holder, d.deps.Now())
		if err != nil {
			return "", fmt.Errorf("read who performs a command about a server: %w", err)
		}
		if next == "" {
			return holder, nil
		}
		holder = next
	}
}

// TakeUp carries out what nobody does: jobs of processes that are gone, and jobs of this one whose question was decided
// in a process that is gone since; and it takes what other processes were told for jobs of this one. It is called every
// now and then, where several processes work on one store.
func (d *Handler) TakeUp(ctx context.Context) error {
	if err := d.takeAddresses(ctx); err != nil {
		return err
	}
	jobs, err := d.deps.Store.FactsOf(ctx, jobBucket, "", d.deps.Now())
	if err != nil {
		return fmt.Errorf("read commands about servers: %w", err)
	}
	for _, f := range jobs {
		j, ok := d.readJob(f)
		if !ok || d.performs(j.Message.ID) {
			continue
		}
		holder, err := d.holderOf(ctx, j.Message.ID)
		switch {
		case err != nil:
			return err
		case holder != "" && d.deps.Lives(holder):
			continue
		case holder == "" && j.Owner == d.deps.Owner && j.Verb != "add": // it is about to begin here
			continue
		case holder == "" && j.Owner != d.deps.Owner && d.deps.Lives(j.Owner):
			continue
		}
		d.startJob(d.relocateJob(j))
	}
	return nil
}

// readJob returns the job in a fact, if it is from one of the chats that are served.
func (d *Handler) readJob(f bot.Fact) (j Job, ok bool) {
	if err := json.Unmarshal([]byte(f.Value), &j); err != nil {
		d.deps.Log.Error().Err(err).Str("command", f.Key).Msg("command about a server not taken up")
		return j, false
	}
	place := j.Message.Place
	return j, place.Channel == d.deps.Channel && place.Bot == d.deps.Bot
}

// beginJob records that a job is being performed here; false if it is already.
func (d *Handler) beginJob(message string) bool {
	d.aside.Lock()
	defer d.aside.Unlock()
	if d.doing[message] {
		return false
	}
	d.doing[message] = true
	return true
}

// endJob records that a job is no longer being performed.
func (d *Handler) endJob(message string) {
	d.aside.Lock()
	defer d.aside.Unlock()
	delete(d.doing, message)
}

// performs reports whether a job is being performed here.
func (d *Handler) performs(message string) bool {
	d.aside.Lock()
	defer d.aside.Unlock()
	return d.doing[message]
}
