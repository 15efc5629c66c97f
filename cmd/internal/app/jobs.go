package app

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/approval"
	"github.com/zephbot/zephbot/bot/dispatch"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/approve"
	"github.com/zephbot/zephbot/tools/mcp"
)

// jobBucket holds /mcp add and /mcp restart from their first answer to their last, so that a restart of the service in between loses neither. jobFor is
// how long such a command is worth being carried out, once it may.
const (
	jobBucket = "mcp_job"
	jobFor    = time.Hour
)

// jobTool is what a card about /mcp add is about, as the rights of approvers and the audit name it.
const jobTool = "/mcp add"

// jobSession is where the question of a job stands: apart from the conversation, which does not wait for it.
const jobSession = "mcp/"

// job is a command that takes a while, by the id of its message.
type job struct {
	Verb    string      `json:"verb"` // add, restart
	ID      string      `json:"id"`
	Target  []string    `json:"target,omitempty"`
	Session string      `json:"session"`
	Message bot.Message `json:"message"`
}

func (j job) call() *dispatch.Call {
	return &dispatch.Call{Session: j.Session, Message: &j.Message, Admin: true}
}

// hash is what an approval of the job binds: every word of the command, and who wrote it.
func (j job) hash() string {
	h := sha256.New()
	for _, word := range append([]string{j.Verb, j.ID, j.Message.Caller, j.Message.ID}, j.Target...) {
		sum := sha256.Sum256([]byte(word))
		h.Write(sum[:])
	}
	return hex.EncodeToString(h.Sum(nil))
}

// worth is how long a command waits to be carried out, the wait for a decision included.
func (s servers) worth() time.Duration { return s.service.core.cfg.Telegram.ApprovalTimeout + jobFor }

// propose adds the card that asks about a job to change.
func (s servers) propose(ctx context.Context, j job, change *bot.Change) error {
	w, language := texts.Words{}, j.Message.Language
	p := texts.ServerProposal{ID: j.ID}
	if isURL(j.Target[0]) {
		p.URL = j.Target[0]
	} else {
		p.Program = j.Target
		server, err := s.parse(j.ID, j.Target)
		if err != nil {
			return err
		}
		p.Holds = s.client.Holds(server)
	}
	raw, err := json.Marshal(addArgs(j.ID, j.Target))
	if err != nil {
		return err
	}
	show := w.ServerAdd(language, p)
	key := jobSession + j.Message.ID
	asked := dispatch.Asked{
		Session: key, Turn: key, Place: j.Message.Place, Caller: j.Message.Caller, Name: j.Message.Name, Language: language,
		Questions: []tools.Question{{Call: key, Tool: jobTool, Hash: j.hash(), Show: show, Caller: j.Message.Caller, Args: string(raw)}},
	}
	if j.Message.Place.Group {
		asked.ReplyTo = j.Message.Message
	}
	return s.service.broker.Ask(ctx, asked, change)
}

// decided says what people have said to a job: StateOpen as long as nothing.
func (s servers) decided(ctx context.Context, j job) (approve.Approval, error) {
	key := jobSession + j.Message.ID
	a, err := s.service.broker.Approval(ctx, key, key, j.hash())
	if err == nil && a.State == approve.Approved && a.Hash != j.hash() {
		return approve.Approval{}, errors.New("something else was approved")
	}
	return a, err
}

// perform does it and tells the chat how it went, in one commit with forgetting it. When the service ends meanwhile, the next start does it.
func (s servers) perform(ctx context.Context, j job) {
	by := ""
	if j.Verb == "add" {
		a, err := s.decided(ctx, j)
		switch {
		case err != nil:
			s.service.log.Error().Err(err).Str("server", j.ID).Msg("decision about a server not read")
			return
		case a.State == approve.Denied, a.State == approve.Expired, a.State == approve.Cancelled:
			_ = s.audited(j.call(), j.Verb, addArgs(j.ID, j.Target), a.By, func() error { return refusal(errors.New("it was not approved: " + string(a.State))) })
			s.forget(ctx, j)
			return
		case a.State != approve.Approved:
			return // the press that decides it comes here again
		}
		by = a.By
	}
	var st mcp.Status
	args := map[string]any{"id": j.ID}
	if j.Verb == "add" {
		args = addArgs(j.ID, j.Target)
	}
	err := s.audited(j.call(), j.Verb, args, by, func() (err error) {
		st, err = s.carryOut(ctx, j)
		return err
	})
	if ctx.Err() != nil {
		return
	}
	w, language := texts.Words{}, j.Message.Language
	text := w.ServerAdded(language, j.ID, len(st.Tools))
	if err != nil {
		text = w.ServerFailed(language, j.ID, sentence(err))
	}
	s.finish(ctx, j, text)
}

func (s servers) carryOut(ctx context.Context, j job) (mcp.Status, error) {
	if j.Verb == "restart" {
		return s.client.Restart(ctx, j.ID)
	}
	server, err := s.parse(j.ID, j.Target)
	if err != nil {
		return mcp.Status{}, err
	}
	return s.client.Add(ctx, server)
}

func (s servers) finish(ctx context.Context, j job, text string) {
	s.service.tellLater(ctx, j.call(), "end", text, bot.Fact{Bucket: jobBucket, Key: j.Message.ID})
}

// forget drops a job of which the card has said everything.
func (s servers) forget(ctx context.Context, j job) {
	change := &bot.Change{Facts: []bot.Fact{{Bucket: jobBucket, Key: j.Message.ID}}}
	if _, err := s.service.core.stores.Bot.Apply(ctx, change); err != nil {
		s.service.log.Error().Err(err).Msg("a command about a server not forgotten")
	}
}

// begun lists the commands that an earlier process has begun. It is asked before this one takes up any.
func (s servers) begun(ctx context.Context) []job {
	core := s.service.core
	facts, err := core.stores.Bot.FactsOf(ctx, jobBucket, "", core.now())
	if err != nil {
		s.service.log.Error().Err(err).Msg("commands about servers not taken up")
	}
	var list []job
	for _, f := range facts {
		var j job
		if err := json.Unmarshal([]byte(f.Value), &j); err != nil {
			s.service.log.Error().Err(err).Str("command", f.Key).Msg("command about a server not taken up")
			continue
		}
		if place := j.Message.Place; place.Channel != s.service.ch.name || place.Bot != s.service.ch.bot {
			continue
		}
		list = append(list, j)
	}
	return list
}

// resume does what an earlier process has begun.
func (s servers) resume(ctx context.Context, list []job) {
	if len(list) == 0 || s.client.Ready(ctx) != nil { // not ready: ctx has ended
		return
	}
	for _, j := range list {
		if j.Verb == "add" && s.known(j.ID) { // it was connected and kept before that could be told
			s.finish(ctx, j, texts.Words{}.ServerAdded(j.Message.Language, j.ID, len(s.client.Tools(j.ID))))
			continue
		}
		s.perform(ctx, j)
	}
}

// onlyAdmins leaves the decision about a server to admins: those who approve the calls of a chat need not be.
func onlyAdmins(rights func(bot.Place, string) approval.Rights) func(bot.Place, string) approval.Rights {
	return func(place bot.Place, tool string) approval.Rights {
		r := rights(place, tool)
		if tool == jobTool {
			r.Approvers = r.Admins
		}
		return r
	}
}

// asking puts questions to people like the broker under it, and goes on with a job once its question is decided.
type asking struct {
	counted
	servers servers
}

// Press implements dispatch.Approvals.
func (a asking) Press(ctx context.Context, msg *bot.Message) (dispatch.Effect, error) {
	e, err := a.counted.Press(ctx, msg)
	return a.follow(ctx, e), err
}

// Command implements command.Questions.
func (a asking) Command(ctx context.Context, call *dispatch.Call, state bot.ApprovalState) (dispatch.Effect, error) {
	e, err := a.counted.Command(ctx, call, state)
	return a.follow(ctx, e), err
}

// Expired implements dispatch.Approvals.
func (a asking) Expired(ctx context.Context, now time.Time) ([]dispatch.Effect, error) {
	effects, err := a.counted.Expired(ctx, now)
	for i := range effects {
		effects[i] = a.follow(ctx, effects[i])
	}
	return effects, err
}

// follow adds to a decision what it means for a job: no conversation goes on with it, but the job does.
func (a asking) follow(ctx context.Context, e dispatch.Effect) dispatch.Effect {
	for _, d := range e.Change.Decide {
		q, err := a.servers.service.core.stores.Bot.Approval(ctx, d.ID)
		if err != nil || !strings.HasPrefix(q.Session, jobSession) {
			continue
		}
		e.Decided = nil // of one question: there is no conversation
		first := e.Then
		e.Then = func(ctx context.Context, applied *bot.Applied) (dispatch.Effect, error) {
			var next dispatch.Effect
			if first != nil {
				var err error
				if next, err = first(ctx, applied); err != nil {
					return next, err
				}
				next.Decided = nil
			}
			return next, a.goOn(ctx, strings.TrimPrefix(q.Session, jobSession))
		}
	}
	return e
}

// goOn carries out the job of a message beside the chat, as far as it is decided.
func (a asking) goOn(ctx context.Context, message string) error {
	core := a.servers.service.core
	text, err := core.stores.Bot.Fact(ctx, jobBucket, message, core.now())
	if err != nil || text == "" {
		return err
	}
	var j job
	if err := json.Unmarshal([]byte(text), &j); err != nil {
		return err
	}
	err = a.servers.service.beside(func(ctx context.Context) { a.servers.perform(ctx, j) })
	if err != nil {
		a.servers.service.log.Info().Str("server", j.ID).Msg("decided while the service ends; the next start goes on")
	}
	return nil
}
