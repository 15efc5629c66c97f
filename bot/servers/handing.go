package servers

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/turn"
	"github.com/zephbot/zephbot/policy/reason"
	"github.com/zephbot/zephbot/tools/mcp/oauth"
)

// handBucket holds addresses at which a browser ended, until the process in which the sign-in waits has taken them. The
// address goes to the secrets of the sign-in, not they to it: the verifier never leaves that process, and without it
// the code in the address opens nothing (RFC 7636). The message that brought the address is in the store anyway.
const handBucket = "mcp_signin_at"

// handed is such an address.
type handed struct {
	ID      string         `json:"id"`  // of the server
	Job     string         `json:"job"` // message that began the sign-in
	Address string         `json:"address"`
	Session bot.SessionKey `json:"session"`
	Message bot.Message    `json:"message"` // that brought the address, without its text
}

// signedInAt is /mcp signin ID ADDRESS, with the address at which the browser ended. A sign-in that waits in another
// process gets it through facts, and that process says what is wrong with it.
func (d *Handler) signedInAt(ctx context.Context, call *turn.Call, id, address string) ([]bot.Fact, error) {
	in := d.deps.SignIns
	if !d.knowsServer(id) {
		return nil, ErrNoServer
	}
	if in == nil {
		return nil, d.maySignIn(id)
	}
	problem := in.manager.Complete(id, address)
	if problem == nil {
		return nil, nil
	}
	jobs, err := d.signingInElsewhere(ctx, id)
	if err != nil {
		return nil, err
	}
	if len(jobs) == 0 {
		return nil, &reason.Error{Reason: errorSentence(problem)}
	}
	var facts []bot.Fact
	for _, job := range jobs {
		h := handed{ID: id, Job: job, Address: address, Session: call.Session, Message: *call.Message}
		h.Message.Text = ""
		value, err := json.Marshal(h)
		if err != nil {
			return nil, fmt.Errorf("hand over an address: %w", err)
		}
		facts = append(facts, bot.Fact{
			Bucket:  handBucket,
			Key:     job + "/" + call.Message.ID,
			Value:   string(value),
			Expires: d.deps.Now().Add(oauth.MaxWait),
		})
	}
	return facts, nil
}

// signingInElsewhere lists the messages whose sign-ins to a server other living processes carry out.
func (d *Handler) signingInElsewhere(ctx context.Context, id string) ([]string, error) {
	if !d.deps.Shared {
		return nil, nil
	}
	facts, err := d.deps.Store.FactsOf(ctx, jobBucket, "", d.deps.Now())
	if err != nil {
		return nil, fmt.Errorf("read commands about servers: %w", err)
	}
	var list []string
	for _, f := range facts {
		j, ok := d.readJob(f)
		if !ok || j.Verb != "signin" || j.ID != id {
			continue
		}
		holder, err := d.holderOf(ctx, j.Message.ID)
		if err != nil {
			return nil, err
		}
		if by := cmp.Or(holder, j.Owner); by != d.deps.Owner && d.deps.Lives(by) {
			list = append(list, j.Message.ID)
		}
	}
	return list, nil
}

// takeAddresses gives the sign-ins that wait here the addresses that other processes were told.
func (d *Handler) takeAddresses(ctx context.Context) error {
	if d.deps.SignIns == nil || !d.anyJob() {
		return nil
	}
	facts, err := d.deps.Store.FactsOf(ctx, handBucket, "", d.deps.Now())
	if err != nil {
		return fmt.Errorf("read addresses of sign-ins: %w", err)
	}
	for _, f := range facts {
		var h handed
		if err := json.Unmarshal([]byte(f.Value), &h); err != nil {
			d.deps.Log.Error().Err(err).Str("key", f.Key).Msg("address of a sign-in not readable")
			continue
		}
		if !d.performs(h.Job) {
			continue
		}
		// deleted first: it is taken once
		gone := &bot.Change{Facts: []bot.Fact{{Bucket: handBucket, Key: f.Key}}}
		if err := d.deps.Keeper.Keep(ctx, gone); err != nil {
			return fmt.Errorf("take the address of a sign-in: %w", err)
		}
		if err := d.deps.SignIns.manager.Complete(h.ID, h.Address); err != nil {
			call := &turn.Call{Session: h.Session, Message: &h.Message}
			d.tellLater(ctx, call, "address", d.deps.Words.ServerFailed(h.Message.Language, h.ID, errorSentence(err)))
		}
	}
	return nil
}

// anyJob says whether any job is under way here.
func (d *Handler) anyJob() bool {
	d.aside.Lock()
	defer d.aside.Unlock()
	return len(d.doing) > 0
}
