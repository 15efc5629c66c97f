// Package approve is the stage that requires approvals: a call that the gate marked "ask" runs only with a stored
// approval of exactly this call. Before a person is asked, the effect of the call is shown where it can be (Previewer);
// a call that is allowed only where it can change nothing is tried there first.
package approve

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/zephbot/zephbot/policy"
	"github.com/zephbot/zephbot/policy/grant"
	"github.com/zephbot/zephbot/policy/reason"
	"github.com/zephbot/zephbot/tools"
)

// State is the state of the question about a call.
type State string

// States of a question. "" counts as None.
const (
	None      State = "none"
	Waiting   State = "pending"
	Approved  State = "approved"
	Denied    State = "denied"
	Expired   State = "expired"
	Cancelled State = "cancelled"
)

// ScopeSession marks an approval "for this session". It came from another call with the same tool, arguments and
// caller.
const ScopeSession = "session"

// Approval is what is stored about the question of a call.
type Approval struct {
	State State
	By    string // who decided: "telegram:42", or several people, in the form of the store
	Hash  string // hash of what was approved, see Hash
	Scope string // "" (once), ScopeSession, or another value of the store
	// Cleared is the flagged source that the question named, if who decided has cleared its mark; "" = they have not.
	Cleared string
	// Layer identifies what the call would do, as it was shown to the person who approved it (tools.Effect.Layer); "" =
	// the text of the call was approved.
	Layer string
	// States is what was at the paths that the call works on when the person who approved it saw what it does to them,
	// which is Deed; nil = they approved the text of the call.
	States []tools.FileState
	Deed   *tools.Effect
	// Again: the question was a repeated one, because what was approved before did not hold.
	Again bool
	// Reply is what the caller has answered, if the call asks them something (tools.Subject.Form).
	Reply *tools.FormReply
}

// Previewer runs calls without effect before a person is asked about them. Implementations are safe for concurrent use.
type Previewer interface {
	// Previewable reports whether a call can be run without effect here. If it cannot, why says so to people; "" =
	// there is nothing to say, because the call is of another kind, or previews are switched off.
	Previewable(ctx context.Context, call *tools.Call) (can bool, why tools.Unknown)
	// Preview returns what a call would do; nil = that was not tried. The effect is kept until Drop.
	Preview(ctx context.Context, call *tools.Call) *tools.Effect
	// Holds reports whether the effect of a call with this layer is kept and would still be the same.
	Holds(ctx context.Context, call *tools.Call, layer string) bool
	// Drop removes what is kept of a call.
	Drop(ctx context.Context, call *tools.Call)
}

// Lookup finds the stored approval of a call. A call that was never asked about has State None and no error. An error
// refuses the call. Implementations are safe for concurrent use.
type Lookup interface {
	// Approval returns the approval of the call, or one of the whole session with the same hash.
	Approval(ctx context.Context, session, call, hash string) (Approval, error)
	// Use counts a call for the standing approvals that allow it (tools.Trail.Granted), once, durably and before it
	// runs. left is false if one of them allows no more, or was revoked: then nothing is counted, and the call asks.
	Use(ctx context.Context, call *tools.Call, hash string) (left bool, err error)
}

// New returns the stage. With a nil lookup there is nobody to ask, and every question is denied (a pipe, `tools call`
// without --yes). With a nil previewer, people are asked about the text of calls.
func New(lookup Lookup, previewer Previewer) tools.Middleware {
	s := stage{lookup: lookup, previewer: previewer}
	return func(next tools.Handler) tools.Handler {
		return func(ctx context.Context, call *tools.Call) (*tools.Result, error) {
			effect := call.Trail.Effect
			switch {
			case call.Subject.Form != nil && (effect == "allow" || effect == "ask"):
				if err := s.answered(ctx, call); err != nil { // who answers has nothing to approve
					return nil, err
				}
				return next(ctx, call)
			case effect == "allow":
				if call.Trail.Reading {
					return s.tried(ctx, call, next)
				}
				if err := s.granted(ctx, call); err != nil {
					return nil, err
				}
				s.shown(ctx, call)
				return next(ctx, call)
			case effect == "ask":
				if err := s.decided(ctx, call); err != nil {
					return nil, err
				}
				return next(ctx, call)
			default: // without a decision there is no permission
				return nil, tools.Refused(reason.New(reason.CallUnpermitted), "")
			}
		}
	}
}

type stage struct {
	lookup    Lookup
	previewer Previewer
}

// tried runs a call where it can change nothing. If that is too little, a person is asked, and an approved call runs as
// one for which the gate asked. A call that a person has decided about is not tried again.
func (s stage) tried(ctx context.Context, call *tools.Call, next tools.Handler) (*tools.Result, error) {
	before := *call.Trail
	why := before.Reason
	if !s.settled(ctx, call) {
		res, err := next(ctx, call)
		walled, ok := errors.AsType[*tools.Walled](err)
		if !ok {
			return res, err
		}
		why = walled.Reason
	}
	*call.Trail = before // what was tried has left no trace
	call.Trail.Effect, call.Trail.Rule = "ask", before.Rule+"; too little"
	call.Trail.Reason = why
	call.Trail.Reading, call.Trail.Bared = false, false
	if err := s.decided(ctx, call); err != nil {
		return nil, err
	}
	return next(ctx, call)
}

// granted returns nil when the standing approvals of an allowed call, if there are any, allow this one too. Where another
// call has used one of them up in the meantime, a person is asked as if it had never been there.
func (s stage) granted(ctx context.Context, call *tools.Call) error {
	if len(call.Trail.Granted) == 0 || call.Probe || s.lookup == nil {
		return nil
	}
	left, err := s.lookup.Use(ctx, call, Hash(call))
	switch {
	case err != nil:
		return unreadable(ctx, err)
	case left:
		return nil
	}
	call.Trail.Effect, call.Trail.Rule = "ask", call.Trail.Rule+"; used up"
	call.Trail.Reason, call.Trail.Granted = reason.New(reason.GrantSpent), nil
	return s.decided(ctx, call)
}

// shown has a call that a standing approval allows apply the layer that a person saw when storing it. The rule is for
// later calls; this one does what its card has shown.
func (s stage) shown(ctx context.Context, call *tools.Call) {
	if s.lookup == nil || s.previewer == nil || call.Probe ||
		!call.Def.Runs() || !strings.HasPrefix(call.Trail.Rule, grant.RulePrefix) {
		return
	}
	hash := Hash(call)
	a, err := s.lookup.Approval(ctx, call.Origin.Session, call.ID, hash)
	if err != nil || a.State != Approved || a.Hash != hash || a.Layer == "" {
		return // the rule allows it in any case
	}
	if s.previewer.Holds(ctx, call, a.Layer) {
		call.Layer, call.Trail.ApprovedBy = a.Layer, a.By
		return
	}
	s.drop(ctx, call)
}

// settled reports whether a person has decided about exactly this call, or whether that cannot be found out.
func (s stage) settled(ctx context.Context, call *tools.Call) bool {
	if s.lookup == nil {
		return false
	}
	hash := Hash(call)
	switch a, err := s.lookup.Approval(ctx, call.Origin.Session, call.ID, hash); {
	case err != nil:
		return true // asking says what is wrong
	case a.State == Approved:
		return a.Hash == hash
	default:
		return a.State != None && a.State != "" && a.State != Waiting
	}
}

// decided returns nil when the call has an approval that covers it, and fills Trail.ApprovedBy and Layer.
func (s stage) decided(ctx context.Context, call *tools.Call) error {
	lookup := s.lookup
	if lookup == nil || call.Origin.Alone && !known(ctx, lookup, call) {
		return tools.Refused(
			reason.New(reason.NobodyToAsk), "Do it another way, or tell the user what you could not do.",
		)
	}
	hash := Hash(call)
	a, err := lookup.Approval(ctx, call.Origin.Session, call.ID, hash)
	if err != nil {
		return unreadable(ctx, err)
	}
	switch a.State {
	case Waiting: // with whatever was known when it was asked
		return &tools.Pending{Question: question(call, hash)}
	case None, "":
		return s.ask(ctx, call, hash, false)
	case Denied, Expired, Cancelled:
		s.drop(ctx, call)
		return refused(a.State)
	case Approved:
		if a.Hash != hash { // something else was approved
			return s.ask(ctx, call, hash, false)
		}
		if !call.Probe && !s.holds(ctx, call, &a) {
			if a.Again { // something else works in the same files all the time
				q := question(call, hash)
				q.Again, q.Effect, q.Deed, q.States = true, &tools.Effect{Unknown: tools.UnknownBusy}, nil, nil
				s.drop(ctx, call)
				return &tools.Pending{Question: q}
			}
			return s.ask(ctx, call, hash, true)
		}
		call.Trail.ApprovedBy, call.Trail.Cleared = a.By, a.Cleared
		return nil
	default:
		return &tools.Error{
			Category: tools.PermanentFailure, Message: "The approval of this call could not be read.",
			Err: fmt.Errorf("approval of %s: unknown state %q", call.ID, a.State),
		}
	}
}

// holds reports whether the call would still do what the person who approved it saw, and binds it to that.
func (s stage) holds(ctx context.Context, call *tools.Call, a *Approval) bool {
	if a.Layer != "" {
		if s.previewer == nil || !s.previewer.Holds(ctx, call, a.Layer) {
			return false
		}
		call.Layer = a.Layer
	}
	if a.States == nil {
		return true
	}
	if call.Subject.State == nil {
		return false
	}
	now, err := call.Subject.State()
	if err != nil || len(now) != len(a.States) {
		return false
	}
	for i, shown := range a.States {
		if shown.Path != now[i].Path || shown.Before != now[i].Before && !followed(call, a, now) {
			return false
		}
	}
	call.Shown = now
	return true
}

// followed reports whether nothing but calls of the same step has changed the files since the question was shown, and
// the call still does what was shown, in whatever line of the files.
func followed(call *tools.Call, a *Approval, now []tools.FileState) bool {
	for i, shown := range a.States {
		state := shown.Before
		for _, left := range call.Ahead {
			if left.Path == shown.Path && left.Before == state {
				state = left.After
			}
		}
		if state != now[i].Before {
			return false
		}
	}
	if a.Deed == nil || call.Subject.Deed == nil {
		return false
	}
	deed := call.Subject.Deed()
	return deed != nil && reflect.DeepEqual(anywhere(*a.Deed), anywhere(*deed))
}

// hunk is what a unified diff says of where its lines are.
var hunk = regexp.MustCompile(`(?m)^@@ [-+, 0-9]+ @@`)

// anywhere returns an effect without where in the files it is, and how long they are.
func anywhere(e tools.Effect) tools.Effect {
	e.Diff = hunk.ReplaceAllString(e.Diff, "@@")
	sizeless := func(list []tools.FileEffect) []tools.FileEffect {
		list = slices.Clone(list)
		for i := range list {
			list[i].Bytes = 0
		}
		return list
	}
	e.Created, e.Changed = sizeless(e.Created), sizeless(e.Changed)
	return e
}

// answered returns nil when the caller has answered what the call asks them, or will not any more, and fills
// Call.Reply.
func (s stage) answered(ctx context.Context, call *tools.Call) error {
	if s.lookup == nil || call.Origin.Unattended || call.Origin.Agent != "" || call.Origin.Caller == "" {
		return tools.Refused(
			reason.New(reason.NobodyAnswers),
			"Go on with what is most likely, and say in your answer what you have assumed.",
		)
	}
	hash := Hash(call)
	a, err := s.lookup.Approval(ctx, call.Origin.Session, call.ID, hash)
	if err != nil {
		return unreadable(ctx, err)
	}
	switch {
	case a.State == None || a.State == "" || a.State == Waiting || a.Hash != hash && a.State != Cancelled:
		q := question(call, hash)
		q.Form = call.Subject.Form
		return &tools.Pending{Question: q}
	case a.State == Cancelled:
		return refused(a.State)
	case a.Reply == nil:
		return unreadable(ctx, fmt.Errorf("question %s is %s, without a reply", call.ID, a.State))
	}
	call.Reply = a.Reply
	return nil
}

// unreadable is the error of a call whose approval cannot be read.
func unreadable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return tools.AsError(ctx.Err())
	}
	return &tools.Error{
		Category: tools.ServerError, Message: "The approval of this call could not be read.",
		Err: fmt.Errorf("read approval: %w", err),
	}
}

// refused returns what the model reads of a question that was not answered with yes.
func refused(state State) *tools.Error {
	switch state {
	case Denied:
		return tools.Refused(
			reason.New(reason.ApprovalDeclined), "Do not repeat it. Ask the user how to go on, or do it another way.",
		)
	case Expired:
		return tools.Refused(
			reason.New(reason.ApprovalExpired), "Go on without it, and tell the user what still needs a decision.",
		)
	default:
		e := tools.Refused(reason.New(reason.ApprovalCancelled), "")
		e.Category = tools.Cancelled
		return e
	}
}

// ask returns the question about a call, with its effect if it may be tried. again says that another effect of it was
// approved.
func (s stage) ask(ctx context.Context, call *tools.Call, hash string, again bool) error {
	q := question(call, hash)
	q.Again = again
	q.Effect = s.effect(ctx, call)
	if ctx.Err() != nil {
		return tools.AsError(ctx.Err())
	}
	return &tools.Pending{Question: q}
}

// effect returns what a call would do, or why that is not known; nil = people need not be told why.
func (s stage) effect(ctx context.Context, call *tools.Call) *tools.Effect {
	if s.previewer == nil {
		return nil
	}
	can, why := s.previewer.Previewable(ctx, call)
	switch {
	case !can && why == "":
		return nil
	case call.Trail.Explicit:
		why = tools.UnknownRule
	case can && !call.Probe:
		return s.previewer.Preview(ctx, call)
	case can: // its question is asked together with that of a call before it
		why = tools.UnknownBehind
	}
	return &tools.Effect{Unknown: why}
}

// drop removes what is kept of a call that does not run.
func (s stage) drop(ctx context.Context, call *tools.Call) {
	if s.previewer != nil && !call.Probe {
		s.previewer.Drop(ctx, call)
	}
}

// known reports whether a call was decided while there was somebody to ask.
func known(ctx context.Context, lookup Lookup, call *tools.Call) bool {
	a, err := lookup.Approval(ctx, call.Origin.Session, call.ID, Hash(call))
	return err != nil || a.State != None && a.State != "" && a.State != Waiting
}

// question returns everything that a person needs to decide. Nothing is shortened.
func question(call *tools.Call, hash string) tools.Question {
	show := call.Subject.Show
	if show == "" {
		show = string(call.Args)
	}
	q := tools.Question{
		Call: call.ID, Tool: name(call), Hash: hash, Show: show, Note: call.Subject.Note, Reason: call.Trail.Reason,
		Caller: call.Origin.Caller, Agent: call.Origin.Agent, Args: string(call.Args),
		ReadOnly: call.Def.ReadOnly, Command: call.Def.Runs(), Destroys: call.Def.Destructive,
		Suspicious: call.Trail.Suspicious,
		Marked:     call.Trail.Suspicious != "" && strings.HasPrefix(call.Trail.Rule, policy.FlaggedRule),
		Offers:     call.Trail.Offers,
		Basis: tools.Basis{
			Inputs: call.Subject.Inputs, Dir: call.Subject.Dir, Files: call.Subject.Scripts,
			Changed: call.Trail.Changed, Server: call.Trail.Server,
		},
	}
	if call.Subject.State != nil {
		// Before the deed: if the files change in between, the question is asked again.
		if states, err := call.Subject.State(); err == nil {
			q.States = states
		}
	}
	if call.Subject.Deed != nil {
		q.Deed = call.Subject.Deed()
	}
	if call.Def.Server != "" {
		q.Definition = call.Def.Hash()
	}
	q.Whole = call.Trail.Whole
	if len(q.Offers) > 0 && q.Server != "" && call.Def.Reads && !q.Destroys && q.Suspicious == "" &&
		call.Origin.Session != "" && call.Origin.Caller != "" {
		q.Whole = &grant.Grant{
			Tool: q.Tool, Kind: grant.Tool, Server: q.Server, Definition: q.Definition, Session: call.Origin.Session,
			Caller: call.Origin.Caller,
		}
	}
	return q
}

// Hash returns the SHA-256 of what an approval covers: tool, definition, canonical arguments, caller and the files that
// determine what the call does. The decode stage must have run, so that equivalent arguments have the same hash.
func Hash(call *tools.Call) string {
	h := sha256.New()
	for _, part := range []string{name(call), call.Def.Hash(), string(call.Args), call.Origin.Caller} {
		fmt.Fprintf(h, "%d:%s", len(part), part) // prefixed by its length, so that no two calls collide
	}
	for _, f := range grant.Relative(call.Subject.Scripts) {
		fmt.Fprintf(h, "%d:%s%d:%s%d:%s", len(f.Name), f.Name, len(f.Path), f.Path, len(f.Hash), f.Hash)
	}
	return hex.EncodeToString(h.Sum(nil))
}

func name(call *tools.Call) string {
	if call.Def.Name != "" {
		return call.Def.Name
	}
	return call.Tool
}
