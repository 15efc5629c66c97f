package servers

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/bot/turn"
	"github.com/zephbot/zephbot/policy/reason"
	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/approve"
	"github.com/zephbot/zephbot/tools/mcp"
)

// jobBucket holds the /mcp commands that change something, from the Change that finishes their message to the one that
// stores their result: after a crash in between, the next start finishes them. jobFor is how long such a command may be
// performed, once it is allowed.
const (
	jobBucket = "mcp_job"
	jobFor    = time.Hour
)

// jobTool is the tool in a card about /mcp add, for the rights of approvers and the audit.
const jobTool = "/mcp add"

// jobSession is the session of a job's question: it is separate from the conversation, which does not wait for it.
const jobSession = "mcp/"

// Job is a command that takes a while. Jobs are identified by their message.
type Job struct {
	Verb    string         `json:"verb"` // add, restart, remove, accept, signin
	ID      string         `json:"id"`
	Target  []string       `json:"target,omitempty"`
	Session bot.SessionKey `json:"session"`
	Message bot.Message    `json:"message"`
	At      time.Time      `json:"at"`
	Owner   string         `json:"owner"`           // the process that performs it; another one was interrupted
	Count   int            `json:"count,omitempty"` // of remove: how many tools are removed
	Names   []string       `json:"names,omitempty"` // of accept: the tools that are accepted
}

func (j Job) call() *turn.Call {
	return &turn.Call{Session: j.Session, Message: &j.Message, Admin: true}
}

// args returns the arguments of the command for the audit.
func (j Job) args() map[string]any {
	switch j.Verb {
	case "add":
		return addArgs(j.ID, j.Target)
	case "accept":
		return map[string]any{"id": j.ID, "code": j.Target[0]}
	default:
		return map[string]any{"id": j.ID}
	}
}

// hash returns what an approval of the job is bound to: every word of the command, and who wrote it.
func (j Job) hash() string {
	h := sha256.New()
	for _, word := range append([]string{j.Verb, j.ID, j.Message.Caller, j.Message.ID}, j.Target...) {
		sum := sha256.Sum256([]byte(word))
		h.Write(sum[:])
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Begin starts a change. verb is "add", "restart", "remove", "accept" or "signin"; target is the command line, the URL,
// the code that Pending has shown, or the address that a browser was redirected to. Its errors are sentences for the
// person who asked. Obvious mistakes are refused at once. The rest is done in the background, and the
// chat is told the result; adding a server needs approval first.
func (d *Handler) Begin(ctx context.Context, call *turn.Call, verb, id string, target []string) (turn.Effect, error) {
	var e turn.Effect
	if verb == "signin" && len(target) > 0 {
		return e, d.withAudit(call, verb, map[string]any{"id": id}, "", func() (err error) {
			e.Change.Facts, err = d.signedInAt(ctx, call, id, target[0])
			return err
		})
	}
	j := Job{
		Verb: verb, ID: id, Target: target, Session: call.Session, Message: *call.Message, At: d.deps.Now(),
		Owner: d.deps.Owner,
	}
	if err := d.prepareJob(ctx, call, &j); err != nil {
		return e, err
	}
	value, err := json.Marshal(j)
	if err != nil {
		return e, fmt.Errorf("note the command: %w", err)
	}
	e.Change.Facts = []bot.Fact{{Bucket: jobBucket, Key: j.Message.ID, Value: string(value)}}
	switch verb {
	case "add":
		return e, d.proposeServer(ctx, j, &e.Change)
	case "signin":
		e.Change.Facts = append(e.Change.Facts, d.auditLine(j, "", nil)...)
	}
	e.Then = func(ctx context.Context, _ *bot.Applied) (turn.Effect, error) {
		d.deps.Audit.Settle(ctx)
		d.startJob(j)
		return turn.Effect{}, nil
	}
	return e, nil
}

// prepareJob returns what is obviously wrong with a command, and records what it is about to change.
func (d *Handler) prepareJob(ctx context.Context, call *turn.Call, j *Job) error {
	if j.Verb == "add" {
		return d.checkProposal(call, j.ID, j.Target)
	}
	st, ok := d.findServer(ctx, j.ID)
	if !ok {
		return ErrNoServer
	}
	switch j.Verb {
	case "remove":
		if !st.Dynamic {
			return reason.Err(reason.ServerConfigured)
		}
		j.Count = len(st.Tools)
	case "accept":
		p, err := d.deps.Client.Pending(ctx, j.ID)
		if err == nil && p.Code == j.Target[0] {
			for _, c := range p.Changes {
				j.Names = append(j.Names, c.Tool)
			}
		}
	case "signin":
		return d.mayBegin(ctx, j.ID)
	}
	return nil
}

// startJob performs a job in the background. If the service is stopping, the next start does it.
func (d *Handler) startJob(j Job) {
	if err := d.startBeside(func(ctx context.Context) { d.performJob(ctx, j) }); err != nil {
		d.deps.Log.Info().Str("server", j.ID).Str("verb", j.Verb).
			Msg("the service ends; the next start carries the command out")
	}
}

// proposeServer adds the card that asks about a job to change.
func (d *Handler) proposeServer(ctx context.Context, j Job, change *bot.Change) error {
	w, language := d.deps.Words, j.Message.Language
	p := texts.ServerProposal{ID: j.ID}
	if isURL(j.Target[0]) {
		p.URL = j.Target[0]
	} else {
		p.Program = j.Target
		server, err := d.parseServer(j.ID, j.Target)
		if err != nil {
			return err
		}
		p.Holds = d.deps.Client.Holds(server)
	}
	raw, err := json.Marshal(j.args())
	if err != nil {
		return err
	}
	show := w.ServerAdd(language, p)
	key := jobSession + j.Message.ID
	asked := turn.Asked{
		Session: bot.SessionKey(key), Turn: key, Place: j.Message.Place, Caller: j.Message.Caller, Name: j.Message.Signature(),
		Language: language,
		Questions: []tools.Question{{
			Call: key, Tool: jobTool, Hash: j.hash(), Show: show, Caller: j.Message.Caller, Args: string(raw),
		}},
	}
	if j.Message.Place.Group {
		asked.ReplyTo = j.Message.Message
	}
	return d.deps.Broker.Ask(ctx, asked, change)
}

// decisionOf returns the decision about a job: StateOpen as long as there is none.
func (d *Handler) decisionOf(ctx context.Context, j Job) (a approve.Approval, err error) {
	key := jobSession + j.Message.ID
	err = d.deps.Keeper.Insist(ctx, func() (err error) {
		a, err = d.deps.Broker.Approval(ctx, key, key, j.hash())
		return err
	})
	if err == nil && a.State == approve.Approved && a.Hash != j.hash() {
		return approve.Approval{}, errors.New("something else was approved")
	}
	return a, err
}

// Begun lists the commands that an earlier process has begun. It must be called before this one takes up any.
func (d *Handler) Begun(ctx context.Context) []Job {
	var facts []bot.Fact
	err := d.deps.Keeper.Insist(ctx, func() (err error) {
		facts, err = d.deps.Store.FactsOf(ctx, jobBucket, "", d.deps.Now())
		return err
	})
	if err != nil {
		d.deps.Log.Error().Err(err).Msg("commands about servers not taken up")
	}
	var list []Job
	for _, f := range facts {
		if j, ok := d.readJob(f); ok {
			list = append(list, j)
		}
	}
	return list
}

// resumeJobs performs what an earlier process has begun.
func (d *Handler) resumeJobs(ctx context.Context, list []Job) {
	if len(list) == 0 || d.deps.Client.Ready(ctx) != nil { // not ready: ctx has ended
		return
	}
	for _, j := range list {
		d.performJob(ctx, d.relocateJob(j))
	}
}

// relocateJob returns a job in the chat that its session is in now.
func (d *Handler) relocateJob(j Job) Job {
	j.Session = d.deps.Moves.Current(j.Session)
	if chat := j.Session.Chat(); chat != "" && chat != j.Message.Place.Chat {
		j.Message.Place.Chat, j.Message.Message = chat, ""
	}
	return j
}

// wasInterrupted reports whether another process had begun to perform the job.
func (d *Handler) wasInterrupted(j Job) bool { return j.Owner != d.deps.Owner }

// isTooLate reports whether an interrupted job has waited so long that its sender may no longer want it.
func (d *Handler) isTooLate(j Job) bool {
	return !j.At.IsZero() && d.deps.Now().Sub(j.At) > d.deps.Patience+jobFor
}

// loadWithin limits how long a command waits right after a start for the servers of earlier processes.
const loadWithin = 5 * time.Second

// findServer returns the status of a server. Right after a start it waits until the servers of earlier processes are
// known, so that none of them is called unknown.
func (d *Handler) findServer(ctx context.Context, id string) (mcp.Status, bool) {
	if st, ok := d.statusOf(id); ok {
		return st, true
	}
	ctx, cancel := context.WithTimeout(ctx, loadWithin)
	defer cancel()
	if d.deps.Client.Loaded(ctx) != nil {
		return mcp.Status{}, false
	}
	return d.statusOf(id)
}

func (d *Handler) statusOf(id string) (mcp.Status, bool) {
	for _, st := range d.deps.Client.Statuses() {
		if st.ID == id {
			return st, true
		}
	}
	return mcp.Status{}, false
}
