package app

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/approval"
	"github.com/zephbot/zephbot/bot/command"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/bot/turn"
	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/approve"
	"github.com/zephbot/zephbot/tools/mcp"
)

// jobBucket holds the commands of /mcp that change something, from the Change that finishes their message to the one that stores how they went: whatever
// dies in between, the next start finishes them. jobFor is how long such a command is worth being carried out, once it may.
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
	Verb    string      `json:"verb"` // add, restart, remove, accept, signin
	ID      string      `json:"id"`
	Target  []string    `json:"target,omitempty"`
	Session string      `json:"session"`
	Message bot.Message `json:"message"`
	At      time.Time   `json:"at"`
	Owner   string      `json:"owner"`           // the process that carries it out; another one was interrupted
	Count   int         `json:"count,omitempty"` // of remove: the tools that go
	Names   []string    `json:"names,omitempty"` // of accept: the tools that are accepted
}

func (j job) call() *turn.Call {
	return &turn.Call{Session: j.Session, Message: &j.Message, Admin: true}
}

// args are what the audit says of the command.
func (j job) args() map[string]any {
	switch j.Verb {
	case "add":
		return addArgs(j.ID, j.Target)
	case "accept":
		return map[string]any{"id": j.ID, "code": j.Target[0]}
	default:
		return map[string]any{"id": j.ID}
	}
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

// Begin implements command.Servers. What can be seen at once is refused at once. The rest goes on beside the chat, which is told how it went; what is added is
// asked about first.
func (s servers) Begin(ctx context.Context, call *turn.Call, verb, id string, target []string) (turn.Effect, error) {
	var e turn.Effect
	if verb == "signin" && len(target) > 0 {
		return e, s.audited(call, verb, map[string]any{"id": id}, "", func() error { return s.signedInAt(id, target[0]) })
	}
	j := job{Verb: verb, ID: id, Target: target, Session: call.Session, Message: *call.Message, At: s.service.core.now(), Owner: s.service.core.owner}
	if err := s.prepare(ctx, call, &j); err != nil {
		return e, err
	}
	value, err := json.Marshal(j)
	if err != nil {
		return e, fmt.Errorf("note the command: %w", err)
	}
	e.Change.Facts = []bot.Fact{{Bucket: jobBucket, Key: j.Message.ID, Value: string(value)}}
	switch verb {
	case "add":
		return e, s.propose(ctx, j, &e.Change)
	case "signin":
		e.Change.Facts = append(e.Change.Facts, s.line(j, "", nil)...)
	}
	e.Then = func(ctx context.Context, _ *bot.Applied) (turn.Effect, error) {
		s.service.core.settleAudit(ctx)
		s.start(j)
		return turn.Effect{}, nil
	}
	return e, nil
}

// prepare says what is wrong with a command at first sight, and notes what it is about to change.
func (s servers) prepare(ctx context.Context, call *turn.Call, j *job) error {
	if j.Verb == "add" {
		return s.proposed(call, j.ID, j.Target)
	}
	st, ok := s.status(j.ID)
	if !ok {
		return command.ErrNoServer
	}
	switch j.Verb {
	case "remove":
		if !st.Dynamic {
			return errors.New("it stands in the configuration; take it out there")
		}
		j.Count = len(st.Tools)
	case "accept":
		p, err := s.client.Pending(ctx, j.ID)
		if err == nil && p.Code == j.Target[0] {
			for _, c := range p.Changes {
				j.Names = append(j.Names, c.Tool)
			}
		}
	case "signin":
		return s.maySignIn(j.ID)
	}
	return nil
}

// start carries a job out beside the chat. When the service is ending, the next start does it.
func (s servers) start(j job) {
	if err := s.service.beside(func(ctx context.Context) { s.perform(ctx, j) }); err != nil {
		s.service.log.Info().Str("server", j.ID).Str("verb", j.Verb).Msg("the service ends; the next start carries the command out")
	}
}

// propose adds the card that asks about a job to change.
func (s servers) propose(ctx context.Context, j job, change *bot.Change) error {
	w, language := s.service.core.words(), j.Message.Language
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
	raw, err := json.Marshal(j.args())
	if err != nil {
		return err
	}
	show := w.ServerAdd(language, p)
	key := jobSession + j.Message.ID
	asked := turn.Asked{
		Session: key, Turn: key, Place: j.Message.Place, Caller: j.Message.Caller, Name: j.Message.Name, Language: language,
		Questions: []tools.Question{{Call: key, Tool: jobTool, Hash: j.hash(), Show: show, Caller: j.Message.Caller, Args: string(raw)}},
	}
	if j.Message.Place.Group {
		asked.ReplyTo = j.Message.Message
	}
	return s.service.broker.Ask(ctx, asked, change)
}

// decided says what people have said to a job: StateOpen as long as nothing.
func (s servers) decided(ctx context.Context, j job) (a approve.Approval, err error) {
	key := jobSession + j.Message.ID
	err = s.service.core.keeper().Insist(ctx, func() (err error) {
		a, err = s.service.broker.Approval(ctx, key, key, j.hash())
		return err
	})
	if err == nil && a.State == approve.Approved && a.Hash != j.hash() {
		return approve.Approval{}, errors.New("something else was approved")
	}
	return a, err
}

// begun lists the commands that an earlier process has begun. It is asked before this one takes up any.
func (s servers) begun(ctx context.Context) []job {
	core := s.service.core
	var facts []bot.Fact
	err := core.keeper().Insist(ctx, func() (err error) {
		facts, err = core.stores.Bot.FactsOf(ctx, jobBucket, "", core.now())
		return err
	})
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
		s.perform(ctx, s.relocated(j))
	}
}

// relocated is a job in the chat where its session is now.
func (s servers) relocated(j job) job {
	j.Session = s.service.core.moves.Current(j.Session)
	if parts := strings.Split(j.Session, "/"); len(parts) == 6 && parts[3] != j.Message.Place.Chat {
		j.Message.Place.Chat, j.Message.Message = parts[3], ""
	}
	return j
}

// interrupted says that another process had begun to carry the job out.
func (s servers) interrupted(j job) bool { return j.Owner != s.service.core.owner }

// late says that an interrupted job has waited for too long to be what somebody still wants.
func (s servers) late(j job) bool {
	core := s.service.core
	return !j.At.IsZero() && core.now().Sub(j.At) > core.cfg.Telegram.ApprovalTimeout+jobFor
}

func (s servers) status(id string) (mcp.Status, bool) {
	for _, st := range s.client.Statuses() {
		if st.ID == id {
			return st, true
		}
	}
	return mcp.Status{}, false
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

// Press implements turn.Approvals.
func (a asking) Press(ctx context.Context, msg *bot.Message) (turn.Effect, error) {
	e, err := a.counted.Press(ctx, msg)
	return a.follow(ctx, e), err
}

// Command implements command.Questions.
func (a asking) Command(ctx context.Context, call *turn.Call, state bot.ApprovalState) (turn.Effect, error) {
	e, err := a.counted.Command(ctx, call, state)
	return a.follow(ctx, e), err
}

// Expired implements turn.Approvals.
func (a asking) Expired(ctx context.Context, now time.Time) ([]turn.Effect, error) {
	effects, err := a.counted.Expired(ctx, now)
	for i := range effects {
		effects[i] = a.follow(ctx, effects[i])
	}
	return effects, err
}

// follow adds to a decision what it means for a job: no conversation goes on with it, but the job does.
func (a asking) follow(ctx context.Context, e turn.Effect) turn.Effect {
	for _, d := range e.Change.Decide {
		q, err := a.servers.service.core.stores.Bot.Approval(ctx, d.ID)
		if err != nil || !strings.HasPrefix(q.Session, jobSession) {
			continue
		}
		e.Decided = nil // of one question: there is no conversation
		first := e.Then
		e.Then = func(ctx context.Context, applied *bot.Applied) (turn.Effect, error) {
			var next turn.Effect
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
	var text string
	err := core.keeper().Insist(ctx, func() (err error) {
		text, err = core.stores.Bot.Fact(ctx, jobBucket, message, core.now())
		return err
	})
	if err != nil || text == "" {
		return err
	}
	var j job
	if err := json.Unmarshal([]byte(text), &j); err != nil {
		return err
	}
	j.Owner = core.owner // nobody has begun it: it was not decided
	a.servers.start(a.servers.relocated(j))
	return nil
}
