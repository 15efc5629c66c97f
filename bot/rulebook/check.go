package rulebook

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/feature"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/bot/turn"
	"github.com/zephbot/zephbot/policy"
	"github.com/zephbot/zephbot/policy/nearest"
	"github.com/zephbot/zephbot/policy/reason"
	"github.com/zephbot/zephbot/tools"
)

// Chain passes a call through the stages (chain.Chain).
type Chain interface {
	Execute(ctx context.Context, call *tools.Call) (*tools.Result, error)
}

// Decision is what the rules decide about a call (contract: policy check).
type Decision struct {
	Effect string
	Rule   string
	Reason reason.Reason
}

// MarshalJSON writes the reason as its English sentence.
func (d Decision) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Effect string `json:"effect"`
		Rule   string `json:"rule"`
		Reason string `json:"reason"`
	}{d.Effect, d.Rule, d.Reason.String()})
}

// Check returns what would be decided about a call, without any effect. chain cannot ask anybody. What any stage or the
// tool itself would refuse before it runs is denied: wrong arguments, a path or an address out of reach, a blocked
// tool. Names of hosts are not resolved, because that is a request already. A call of an unregistered tool is judged by
// the rules alone. Errors are ErrMistaken.
func (b *Book) Check(ctx context.Context, chain Chain, call *tools.Call) (Decision, error) {
	if err := b.checkToolName(call.Tool); err != nil {
		return Decision{}, err
	}
	call.Probe = true
	_, err := chain.Execute(ctx, call)
	var args map[string]any
	if jsonErr := json.Unmarshal(call.Args, &args); jsonErr != nil && call.Trail.Effect == "" {
		return Decision{}, newMistake(reason.New(reason.NotJSONObject, jsonErr.Error()))
	}
	_, registered := b.deps.Tools.Lookup(call.Tool)
	effect := cmp.Or(call.Trail.Effect, string(policy.Allow))
	switch refused, ok := errors.AsType[*tools.Error](err); {
	case ok && effect == string(policy.Allow) && (registered || call.Trail.Effect != ""):
		return Decision{Effect: string(policy.Deny), Rule: "not possible", Reason: refused.Why()}, nil
	case call.Trail.Effect != "" || errors.Is(err, tools.ErrProbed):
		return Decision{Effect: effect, Rule: call.Trail.Rule, Reason: call.Trail.Reason}, nil
	}
	d := b.deps.Policy.Decide(policy.Request{
		Caller: call.Origin.Caller, Tool: call.Tool, Args: args, Inputs: inputsOf(args),
		Trust: policy.Trusted, Confined: b.deps.Reading,
	})
	return Decision{Effect: string(d.Effect), Rule: d.Rule, Reason: d.Reason}, nil
}

// checkToolName refuses the name of a tool that does not exist and suggests the nearest one: an answer about a
// misspelled name would mislead.
func (b *Book) checkToolName(tool string) error {
	if _, ok := b.deps.Tools.Lookup(tool); ok {
		return nil
	}
	// connected: all its tools are known
	if server, _, ok := strings.Cut(tool, ":"); ok && len(b.deps.Servers.Tools(server)) > 0 {
		var names []string
		for _, d := range b.deps.Servers.Tools(server) {
			names = append(names, d.Name)
		}
		why := reason.New(reason.NamesNoToolOf, strconv.Quote(tool), server)
		if near, ok := nearest.Nearest(tool, names); ok {
			why = why.With(reason.New(reason.DidYouMean, near))
		}
		return newMistake(why)
	}
	if problem, sure := b.deps.Problem(tool); problem.Known() && sure {
		return newMistake(problem)
	}
	return nil
}

// inputsOf extracts what permission rules look at from arguments that no tool has explained (seed 003).
func inputsOf(args map[string]any) []string {
	for _, key := range []string{"command", "file_path", "path", "source", "url", "uri", "query"} {
		if text, ok := args[key].(string); ok {
			return []string{text}
		}
	}
	return nil
}

// Answers answers /policy.
type Answers struct {
	Book *Book
	// Chain returns the chain of one call, which cannot ask anybody.
	Chain func() Chain
	// Granted lists what is always allowed (approval.Broker).
	Granted func(ctx context.Context, call *turn.Call) (turn.Effect, error)
	Words   texts.Words
}

// Feature returns /policy.
func (a Answers) Feature() feature.Feature {
	return feature.Feature{
		Name:     "rules",
		Commands: []feature.Command{{Name: "policy", Audience: feature.Admins, Run: a.Command}},
	}
}

// Command answers /policy: the rules, or what they would decide about a call.
func (a Answers) Command(ctx context.Context, call *turn.Call) (turn.Effect, error) {
	msg, w := call.Message, a.Words
	verb, rest, _ := strings.Cut(strings.TrimSpace(msg.Args), " ")
	tool, args, _ := strings.Cut(strings.TrimSpace(rest), " ")
	switch {
	case verb == "status" || verb == "":
		return call.ReplyText(w.PolicyStatus(msg.Language, a.Status())), nil
	case verb == "rules" && strings.TrimSpace(rest) == "":
		return a.Granted(ctx, call)
	case verb != "check" || tool == "" || strings.TrimSpace(args) == "":
		return call.ReplyText(w.Usage(
			msg.Language, verb, []string{"status", "rules", "check"}, w.PolicyHelp(msg.Language),
		)), nil
	}
	effect, why, err := a.Check(ctx, msg, call.Session, tool, []byte(strings.TrimSpace(args)))
	if err != nil {
		//nolint:nilerr // a reply
		return call.ReplyText(w.Said(msg.Language, reason.OfError(err)) + "\n" + w.PolicyHelp(msg.Language)), nil
	}
	return call.ReplyText(w.PolicyDecision(msg.Language, effect, &why)), nil
}

// Status returns which rules are in force.
func (a Answers) Status() *texts.Rules {
	d := &a.Book.deps
	return &texts.Rules{Status: d.Policy.Status(), Judged: d.Judged, Sandbox: d.Sandbox}
}

// Check returns what would be decided about a call of the person who asks, in the conversation where the question is
// asked: decisions about paths depend on where that works.
func (a Answers) Check(
	ctx context.Context, msg *bot.Message, session bot.SessionKey, tool string, args []byte,
) (effect string, why texts.Refusal, err error) {
	if !json.Valid(args) {
		return "", why, newMistake(reason.New(reason.NotJSON, strings.TrimSpace(string(args))))
	}
	lane, err := a.Book.deps.Store.Lane(ctx, session)
	if err != nil {
		return "", why, err
	}
	id := uuid.NewString()
	d, err := a.Book.Check(ctx, a.Chain(), &tools.Call{
		ID: id, Tool: a.Book.deps.Policy.Canonical(tool), Args: args, Trail: &tools.Trail{},
		Origin: tools.Origin{
			Channel: msg.Place.Channel, Session: string(session), Workspace: lane.Workspace,
			Chat: msg.Place.ChatKey(), Turn: id, Caller: msg.Caller, Admin: true,
		},
	})
	return d.Effect, texts.Refusal{Rule: d.Rule, Reason: d.Reason}, err
}
