// Package skills lets people see skills, and admins decide about them (/skills). A decision is about exactly what a
// folder holds: it is stored with its hash, and says nothing about what the folder holds later.
package skills

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/facts"
	"github.com/zephbot/zephbot/bot/feature"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/bot/turn"
	"github.com/zephbot/zephbot/policy/nearest"
	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/skill"
)

const (
	// bucket holds the latest decision about each skill, by its name.
	bucket = "skill"
	// revisions holds one value, which changes with each decision: other processes read it instead of all decisions.
	revisions = "skill_revision"
)

// Deps are the dependencies of a Handler.
type Deps struct {
	Store   facts.Store
	Library *skill.Library // nil = no skills are configured
	Words   texts.Words
	Now     func() time.Time
	// Line makes facts of a decision for the audit log, which are stored with it; Recorded writes down what is stored.
	// Both may be nil.
	Line     func(call *tools.Call) []bot.Fact
	Recorded func(ctx context.Context)
	Log      zerolog.Logger
}

// Handler answers /skills and its buttons. It is safe for concurrent use and starts no goroutines.
type Handler struct {
	deps      Deps
	decisions *facts.Followed[map[string]skill.Decision] // by skill; the library has them too

	mu    sync.Mutex
	waits map[string]string // hashes of the skills that wait, by name
	since time.Time         // for how long these have been the ones
	said  bool              // nothing of them is left to be told
}

// New returns a Handler. Nothing is decided before the first Follow.
func New(deps Deps) *Handler {
	return &Handler{
		deps: deps,
		decisions: facts.NewFollowed(
			deps.Store,
			bucket,
			revisions,
			deps.Now,
			func(list []bot.Fact) map[string]skill.Decision {
				decisions := make(map[string]skill.Decision, len(list))
				for _, f := range list {
					var made skill.Decision
					// others are of a later version
					if json.Unmarshal([]byte(f.Value), &made) == nil && made.Verdict.Known() {
						decisions[f.Key] = made
					}
				}
				if deps.Library != nil {
					deps.Library.Decide(decisions)
				}
				return decisions
			},
		),
	}
}

// Feature returns /skills; d is nil where no skills are configured. The operators are told of skills that wait for
// them, in rows that wake announces.
func (d *Handler) Feature(words texts.Words, operators func() []bot.Place, wake func(bot.Place)) feature.Feature {
	return feature.Feature{
		Name:     "skills",
		Off:      d == nil,
		Commands: []feature.Command{{Name: "skills", Run: d.Command, OffText: words.SkillsOff}},
		Buttons:  []feature.Button{{Prefix: Prefix, Presser: d}},
		Run: func(ctx context.Context) error {
			return d.deps.Library.Follow(ctx, every, func(ctx context.Context) {
				if err := d.Announce(ctx, operators(), wake); err != nil && ctx.Err() == nil {
					d.deps.Log.Warn().Err(err).Msg("admins are told later of skills that wait for them")
				}
			})
		},
		Follow: d.Follow,
	}
}

// every is the time between two looks at the folders of skills.
const every = 5 * time.Second

// Follow reads what was decided in any process since the last call.
func (d *Handler) Follow(ctx context.Context) error {
	if d.deps.Library == nil {
		return nil
	}
	return d.decisions.Follow(ctx)
}

// verdictOf are the words of the command.
func verdictOf(word string) skill.Verdict {
	switch word {
	case "accept":
		return skill.Accepted
	case "limit":
		return skill.Limited
	case "refuse":
		return skill.Refused
	}
	return ""
}

// Command answers /skills. Only admins see details and decide.
func (d *Handler) Command(ctx context.Context, call *turn.Call) (turn.Effect, error) {
	msg, w := call.Message, d.deps.Words
	if d.deps.Library == nil {
		return call.ReplyText(w.SkillsOff(msg.Language)), nil
	}
	d.deps.Library.Sync()
	if err := d.Follow(ctx); err != nil {
		return turn.Effect{}, err
	}
	words := strings.Fields(msg.Args)
	switch {
	case len(words) == 0:
		return call.Reply(d.listPage(call, 0, "")), nil
	case !call.Admin, msg.Place.Group:
		return call.ReplyAside(bot.Content{Text: w.SkillsInPrivate(msg.Language)}), nil
	case len(words) == 1:
		e, ok := d.skillNamed(words[0])
		if !ok {
			return d.unknownSkill(call, words[0]), nil
		}
		return call.Reply(d.skillDetails(msg, e, 0)), nil
	case len(words) == 3 && verdictOf(words[0]) != "":
		return d.decideTyped(ctx, call, verdictOf(words[0]), words[1], words[2])
	}
	return call.ReplyText(w.SkillsHelp(msg.Language)), nil
}

// decideTyped decides by a command, about the content that a code names.
func (d *Handler) decideTyped(
	ctx context.Context, call *turn.Call, v skill.Verdict, name, code string,
) (turn.Effect, error) {
	e, ok := d.skillNamed(name)
	switch {
	case !ok:
		return d.unknownSkill(call, name), nil
	case !strings.EqualFold(code, e.Brief()):
		return call.ReplyText(d.deps.Words.SkillOutdated(call.Message.Language)), nil
	}
	out, text, err := d.decideSkill(ctx, call, e, v)
	if err != nil {
		return turn.Effect{}, err
	}
	out.Change.Send = append(out.Change.Send, call.ReplyText(text).Change.Send...)
	return out, nil
}

func (d *Handler) unknownSkill(call *turn.Call, name string) turn.Effect {
	var names []string
	list, _ := d.deps.Library.Entries()
	for i := range list {
		names = append(names, list[i].Name)
	}
	near, _ := nearest.Nearest(name, names)
	return call.ReplyText(d.deps.Words.SkillUnknown(call.Message.Language, name, near))
}

func (d *Handler) skillNamed(name string) (skill.Entry, bool) {
	list, _ := d.deps.Library.Entries()
	for i := range list {
		if list[i].Name == name {
			return list[i], true
		}
	}
	return skill.Entry{}, false
}

// decideSkill returns the Effect that stores a decision about a skill as it is, without an answer, and what to say. A
// decision that is there already changes nothing.
func (d *Handler) decideSkill(
	ctx context.Context, call *turn.Call, e skill.Entry, v skill.Verdict,
) (turn.Effect, string, error) {
	msg, w := call.Message, d.deps.Words
	// Another process may have stored something since the last Follow.
	stored, err := d.deps.Store.Fact(ctx, bucket, e.Name, d.deps.Now())
	if err != nil {
		return turn.Effect{}, "", fmt.Errorf("read what was decided about a skill: %w", err)
	}
	var before skill.Decision
	if json.Unmarshal([]byte(stored), &before) == nil && before.Verdict == v && before.Hash == e.Hash {
		e.Decision, e.State = before, skill.State(v)
		return turn.Effect{}, w.SkillAlready(msg.Language, shownSkill(e)), nil
	}
	made := skill.Decision{Verdict: v, Hash: e.Hash, By: msg.Caller, ByName: msg.Signature(), At: d.deps.Now().UTC()}
	value, err := json.Marshal(made)
	if err != nil {
		return turn.Effect{}, "", fmt.Errorf("store what was decided about a skill: %w", err)
	}
	change := bot.Change{Facts: []bot.Fact{
		{Bucket: bucket, Key: e.Name, Value: string(value)}, d.decisions.Revised(),
	}}
	if d.deps.Line != nil {
		change.Facts = append(change.Facts, d.deps.Line(auditLine(call, e, v))...)
	}
	then := func(ctx context.Context, _ *bot.Applied) (turn.Effect, error) {
		if d.deps.Recorded != nil {
			d.deps.Recorded(ctx)
		}
		return turn.Effect{}, d.Follow(ctx)
	}
	return turn.Effect{Change: change, Then: then}, w.SkillDecided(msg.Language, string(v), e.Name), nil
}

// auditLine is the audit line of a decision.
func auditLine(call *turn.Call, e skill.Entry, v skill.Verdict) *tools.Call {
	msg := call.Message
	// texts only: cannot fail
	args, _ := json.Marshal(map[string]any{"skill": e.Name, "hash": e.Hash, "verdict": v, "dir": e.Dir})
	return &tools.Call{
		ID: msg.ID, Tool: "skill_" + string(v), Args: args, Trail: &tools.Trail{ApprovedBy: msg.Caller, Rule: "skills"},
		Origin: tools.Origin{
			Channel: msg.Place.Channel,
			Session: string(call.Session),
			Chat:    msg.Place.ChatKey(),
			Caller:  msg.Caller,
			Admin:   true,
		},
	}
}

var _ turn.Presser = (*Handler)(nil)
