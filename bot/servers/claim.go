package servers

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/zephbot/zephbot/bot"
)

// Several processes may find a job that nobody carries out. Who does is a chain of facts in claimBucket: under MESSAGE/
// is the process that took it first, under MESSAGE/PROCESS the one that took it over when that one was gone. Each link
// is set only where there is none.
const (
	claimBucket = "mcp_job_by"
	claimFor    = 48 * time.Hour
)

// claim takes a job for this process. It reports false when a living process has it. The job says afterwards whether
// another one had begun it.
func (d *Desk) claim(ctx context.Context, j *Job) (bool, error) {
	if !d.deps.Shared {
		return true, nil
	}
	holder, err := d.holder(ctx, j.Message.ID)
	switch {
	case err != nil:
		return false, err
	case holder == d.deps.Owner: // the answer to an earlier attempt got lost: one attempt at a time is made here
		return d.open(ctx, j.Message.ID)
	case holder != "" && d.deps.Lives(holder):
		return false, nil
	case holder != "":
		j.Owner = holder // which may have got anywhere with it
	}
	link := bot.Fact{Bucket: claimBucket, Key: j.Message.ID + "/" + holder, Value: d.deps.Owner, Expires: d.deps.Now().Add(claimFor)}
	applied, err := d.deps.Keeper.Store.Apply(ctx, &bot.Change{FactsIf: []bot.Fact{link}})
	if err != nil {
		return false, fmt.Errorf("take a command about a server: %w", err)
	}
	if !applied.Set[0] {
		return false, nil
	}
	return d.open(ctx, j.Message.ID)
}

// open says whether a job is still to be carried out.
func (d *Desk) open(ctx context.Context, message string) (bool, error) {
	job, err := d.deps.Store.Fact(ctx, jobBucket, message, d.deps.Now())
	if err != nil {
		return false, fmt.Errorf("read a command about a server: %w", err)
	}
	return job != "", nil
}

// holder is the process that took a job last; "" = none.
func (d *Desk) holder(ctx context.Context, message string) (holder string, err error) {
	for {
		next, err := d.deps.Store.Fact(ctx, claimBucket, message+"/"+holder, d.deps.Now())
		if err != nil {
			return "", fmt.Errorf("who carries out a command about a server: %w", err)
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
func (d *Desk) TakeUp(ctx context.Context) error {
	if err := d.takeAddresses(ctx); err != nil {
		return err
	}
	jobs, err := d.deps.Store.FactsOf(ctx, jobBucket, "", d.deps.Now())
	if err != nil {
		return fmt.Errorf("read commands about servers: %w", err)
	}
	for _, f := range jobs {
		j, ok := d.read(f)
		if !ok || d.has(j.Message.ID) {
			continue
		}
		holder, err := d.holder(ctx, j.Message.ID)
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
		d.start(d.relocated(j))
	}
	return nil
}

// read gives the job in a fact, if it is one of the chats that are served.
func (d *Desk) read(f bot.Fact) (j Job, ok bool) {
	if err := json.Unmarshal([]byte(f.Value), &j); err != nil {
		d.deps.Log.Error().Err(err).Str("command", f.Key).Msg("command about a server not taken up")
		return j, false
	}
	place := j.Message.Place
	return j, place.Channel == d.deps.Channel && place.Bot == d.deps.Bot
}

// begin notes that a job is under way here; false when it is already.
func (d *Desk) begin(message string) bool {
	d.aside.Lock()
	defer d.aside.Unlock()
	if d.doing[message] {
		return false
	}
	d.doing[message] = true
	return true
}

// end notes that a job is not under way any more.
func (d *Desk) end(message string) {
	d.aside.Lock()
	defer d.aside.Unlock()
	delete(d.doing, message)
}

// has says whether a job is under way here.
func (d *Desk) has(message string) bool {
	d.aside.Lock()
	defer d.aside.Unlock()
	return d.doing[message]
}
