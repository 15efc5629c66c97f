package texts

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"
	"time"

	"golang.org/x/text/unicode/norm"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/render"
	"github.com/zephbot/zephbot/bot/visible"
	"github.com/zephbot/zephbot/policy"
	"github.com/zephbot/zephbot/policy/reason"
)

// Card is what an approval question shows in addition to the command itself.
type Card struct {
	Tool, Note, Reason string
	Agent              string // name of the sub-agent that asks; "" = none
	Asker              string // name of the person whose work it is, in a group; "" = everybody knows
	Suspicious         string
	Steps              int
	USD                float64
	Expires            time.Time
	Short              string
	Needed, Votes      int
	FileLines          int    // > 0: the whole text is sent as a file
	FileHash           string // of that file
	Found              visible.Found
	Changed            []string // files that have changed since this was allowed
	Deed               string   // what the call would do; "" = not known
	Untold             string   // why that is not known; "" = it was not tried
	Again              bool     // something else was approved before
	Partial            int      // > 0: so many files are compared again, and not the others
	Exit               int      // its exit code when it was tried
	NoAlways           bool     // to an admin: no standing approval can cover the call
}

// nameLength limits the name of a person, in UTF-16 units.
const nameLength = 60

// named formats a person's name, which they choose themselves.
// person names who did something: who runs the service has no other name there.
func (w Words) person(language, name string) string {
	if w.Owner && name != "" {
		return w.in(language).Terminal.You
	}
	return name
}

func named(name string) string { return render.Cut(visible.Name(name), nameLength) }

// Exactly names a person by name and id, within the length of a name.
func Exactly(name, id string) string {
	exactly := " (" + id + ")"
	return render.Cut(visible.Name(name), nameLength-render.Length(exactly)) + exactly
}

// SameName reports whether two names read alike.
func SameName(a, b string) bool { return strings.EqualFold(readAs(a), readAs(b)) }

// readAs is a name as people read it.
func readAs(name string) string { return norm.NFKC.String(named(name)) }

// idLike is the end of a name that looks like an id that tells people apart.
var idLike = regexp.MustCompile(`\([0-9]+\)\s*$`)

// EndsLikeID reports whether a name ends like what Exactly returns, so that it could pass for that of somebody else.
func EndsLikeID(name string) bool { return idLike.MatchString(readAs(name)) }

// Visible returns the words in signs for what cannot be seen.
func (w Words) Visible(language string) visible.Words {
	b := w.in(language)
	return visible.Words{Blanks: b.Card.Blanks, Lines: b.Card.EmptyLines}
}

// CardHead is the text above the command.
func (w Words) CardHead(language string, c Card) string {
	b := w.in(language)
	note := c.Note
	if note == "" {
		note = b.Card.InWorkspace
	}
	ask := b.Card.MayI
	if c.Deed != "" {
		ask = fmt.Sprintf(b.Card.Deeds.Ask, c.Deed)
	}
	head := ask + "\n" + c.Tool + " · " + note
	if c.Agent != "" {
		head += "\n" + fmt.Sprintf(b.Card.Agent, c.Agent)
	}
	return head
}

// CardFoot is the text below the command, before the hint; it may be empty.
func (w Words) CardFoot(language string, c Card) string {
	b := w.in(language)
	var lines []string
	if c.Exit != 0 {
		lines = append(lines, fmt.Sprintf(b.Card.Deeds.Exit, c.Exit))
	}
	if c.FileLines > 0 {
		lines = append(lines, fmt.Sprintf(b.Card.LongFile, c.FileLines, c.FileHash), "")
	}
	if n := c.Found.Invisible; n > 0 {
		lines = append(lines, fmt.Sprintf(b.Card.Invisible, n))
	}
	if n := c.Found.Alike; n > 0 {
		lines = append(lines, fmt.Sprintf(b.Card.LookAlike, n))
	}
	if warning := w.Changed(language, c.Changed); warning != "" {
		lines = append(lines, warning)
	}
	if c.Again {
		lines = append(lines, b.Card.Deeds.Again)
	}
	if c.Partial > 0 {
		lines = append(lines, b.Card.Deeds.Partial.say(c.Partial))
	}
	if c.Untold != "" {
		lines = append(lines, c.Untold)
	}
	if c.Suspicious != "" {
		lines = append(lines, fmt.Sprintf(b.Card.Suspicious, c.Suspicious))
	}
	if c.Reason != "" {
		lines = append(lines, fmt.Sprintf(b.Card.Why, c.Reason))
	}
	if c.NoAlways {
		lines = append(lines, fmt.Sprintf(b.Card.NoAlways, b.Buttons.Always))
	}
	if asker := named(c.Asker); asker != "" {
		lines = append(lines, fmt.Sprintf(b.Card.Asker, asker))
	}
	if c.Needed > 1 {
		lines = append(lines, fmt.Sprintf(b.Card.Needs, c.Needed, c.Votes))
	}
	return strings.Join(lines, "\n")
}

// CardHint is the last line of a card: what the turn has cost, how long the question is open, and how to answer it in
// words.
func (w Words) CardHint(language string, c Card) string {
	b := w.in(language)
	last := fmt.Sprintf(b.Card.Expires, w.clock(language, c.Expires), c.Short)
	if c.Steps > 1 || c.USD > 0 {
		last = fmt.Sprintf(b.Card.SoFar, b.Card.Steps.say(c.Steps), w.Money(language, c.USD)) + " · " + last
	}
	return last
}

// Buttons are the labels of the card's buttons.
func (w Words) Buttons(language string) (once, session, deny string) {
	b := w.in(language)
	return b.Buttons.Once, b.Buttons.Session, b.Buttons.Deny
}

// Decided is the record that a card becomes.
func (w Words) Decided(language string, a bot.Approval) string {
	b := w.in(language)
	at := w.clock(language, a.Decided)
	a.ByName = w.person(language, a.ByName)
	switch a.State {
	case bot.Approved:
		if a.Scope == bot.Tool {
			return fmt.Sprintf(b.Grants.WholeApproved, named(a.ByName), at)
		}
		if a.Scope == bot.Cleared {
			return fmt.Sprintf(b.Decisions.ApprovedCleared, named(a.ByName), at)
		}
		if a.Scope == bot.Host {
			return fmt.Sprintf(b.Grants.HostApproved, named(a.ByName), at)
		}
		switch most, until, stored := bot.RuleStored(a.Scope); {
		case most > 0 && !until.IsZero():
			return b.Decisions.ApprovedUsesUntil.with(most, most, w.Day(language, until), named(a.ByName), at)
		case most > 0:
			return b.Decisions.ApprovedUses.with(most, most, named(a.ByName), at)
		case !until.IsZero():
			return fmt.Sprintf(b.Decisions.ApprovedUntil, w.Day(language, until), named(a.ByName), at)
		case stored:
			return fmt.Sprintf(b.Decisions.ApprovedAlways, named(a.ByName), at)
		}
		if a.Scope == bot.Session {
			return fmt.Sprintf(b.Decisions.ApprovedSession, named(a.ByName), at)
		}
		return fmt.Sprintf(b.Decisions.Approved, named(a.ByName), at)
	case bot.Denied:
		return fmt.Sprintf(b.Decisions.Denied, named(a.ByName), at)
	case bot.Expired:
		return fmt.Sprintf(b.Decisions.Expired, at)
	default:
		return fmt.Sprintf(b.Decisions.Withdrawn, at)
	}
}

// NotYours answers the press of somebody who may not decide.
func (w Words) NotYours(language, who string) string {
	b := w.in(language)
	if who = named(who); who == "" {
		who = b.Decisions.Asker
	}
	return fmt.Sprintf(b.Decisions.Stranger, who)
}

// NotYoursEither answers the press of somebody who may not decide where whoever asked may not approve either.
func (w Words) NotYoursEither(language string) string {
	return w.in(language).Decisions.StrangerSeveral
}

// NotYourself answers the press of the person who asked, where somebody else has to approve.
func (w Words) NotYourself(language string) string { return w.in(language).Decisions.NotYourself }

// VoteOthers answers the press of the person who asked, where several have to approve.
func (w Words) VoteOthers(language string) string { return w.in(language).Decisions.VoteOthers }

// Already answers a second press.
func (w Words) Already(language string, a bot.Approval) string {
	return fmt.Sprintf(w.in(language).Decisions.Already, w.Decided(language, a))
}

// UnknownQuestion answers a button that belongs to nothing.
func (w Words) UnknownQuestion(language string) string {
	return w.in(language).Decisions.UnknownQuestion
}

// UnknownButton answers a button that nobody knows any more; a channel shows 200 characters of it.
func (w Words) UnknownButton(language string) string {
	return w.in(language).Decisions.UnknownButton
}

// WriteAsYourself answers somebody who writes in the name of a group or a channel.
func (w Words) WriteAsYourself(language string) string {
	return w.in(language).Decisions.WriteAsYourself
}

// NoQuestion answers /approve and /deny where nothing is open.
func (w Words) NoQuestion(language string) string { return w.in(language).Decisions.NoQuestion }

// OneQuestion answers /approve and /deny with a name that is not that of the only open question.
func (w Words) OneQuestion(language, short string) string {
	return fmt.Sprintf(w.in(language).Decisions.OneQuestion, short)
}

// WhichQuestion answers /approve and /deny where several questions are open.
func (w Words) WhichQuestion(language string, short []string) string {
	return fmt.Sprintf(w.in(language).Decisions.WhichQuestion, strings.Join(short, ", "))
}

// Noted answers a press that was counted.
func (w Words) Noted(language string, missing int) string {
	if missing > 0 {
		return fmt.Sprintf(w.in(language).Decisions.NotedMore, missing)
	}
	return w.in(language).Decisions.Noted
}

// WhyOffer is below the record of a denial: until when a reply to it says why.
func (w Words) WhyOffer(language string, until time.Time) string {
	return fmt.Sprintf(w.in(language).Decisions.WhyOffer, w.clock(language, until))
}

// WhyNoted answers somebody who has said why they denied: the model reads it now, or, if it is not at work, later.
func (w Words) WhyNoted(language string, atWork bool) string {
	if atWork {
		return w.in(language).Decisions.WhyNoted
	}
	return w.in(language).Decisions.WhyLater
}

// WhyLate answers somebody who says why when it is too late, or who has not denied it.
func (w Words) WhyLate(language string) string { return w.in(language).Decisions.WhyLate }

// AlwaysButton is the label of the button that begins storing a rule.
func (w Words) AlwaysButton(language string) string { return w.in(language).Buttons.Always }

// StoreButtons are the labels of the card that shows the rule.
func (w Words) StoreButtons(language string) (store, back string) {
	b := w.in(language)
	return b.Buttons.StoreIt, b.Buttons.Back
}

// StoreHead is the text above the rules that would be stored.
func (w Words) StoreHead(language string, rules int) string {
	b := w.in(language).Policy
	if rules > 1 {
		return b.StoreHeads
	}
	return b.StoreHead
}

// StoreFoot is the text below it.
func (w Words) StoreFoot(language string) string { return w.in(language).Policy.StoreFoot }

// ClearButton is the label of the button that clears the mark of a flagged text.
func (w Words) ClearButton(language string) string { return w.in(language).Buttons.Clear }

// AdminsClear answers somebody who may not clear the mark of a flagged text.
func (w Words) AdminsClear(language string) string { return w.in(language).Decisions.AdminsClear }

// AdminsStore answers somebody who may not store rules.
func (w Words) AdminsStore(language string) string { return w.in(language).Policy.AdminsStore }

// Rules are the rules in force.
type Rules struct {
	policy.Status
	Judged  bool          // a model judges calls
	Sandbox reason.Reason // what the kernel enforces
}

// PolicyStatus answers /policy status.
func (w Words) PolicyStatus(language string, r *Rules) string {
	b := w.in(language).Policy
	permissions, policy, authorization := b.Status.PermissionsOff, b.Status.PolicyOff, b.Status.AuthorizationOff
	if r.PermissionRules > 0 {
		permissions = fmt.Sprintf(b.Status.Permissions, r.PermissionRules, r.PermissionTools)
	}
	if r.Enabled {
		policy = fmt.Sprintf(b.Status.Policy, r.PolicyRules, r.Evaluation, r.Default)
	}
	if r.Enabled && r.File != "" {
		policy += fmt.Sprintf(b.Status.From, visible.Name(r.File))
	}
	if r.Authorization {
		authorization = fmt.Sprintf(b.Status.Authorization, r.AuthorizationRules)
	}
	said := []string{
		b.Head,
		fmt.Sprintf(b.Status.Autonomy, cmp.Or(b.Status.Levels[string(r.Level)], string(r.Level))),
		permissions,
		policy, authorization,
	}
	if r.Judged {
		said = append(said, b.Status.Judged)
	}
	return strings.Join(append(said, fmt.Sprintf(b.Status.Sandbox, w.Said(language, r.Sandbox))), "\n")
}

// PolicyDecision answers /policy check.
func (w Words) PolicyDecision(language, effect string, why *Refusal) string {
	b := w.in(language)
	lines := []string{b.Policy.Effects[effect]}
	if text := w.refused(language, why); text != "" {
		lines = append(lines, text)
	}
	return strings.Join(append(lines, fmt.Sprintf(b.Policy.Rule, w.rule(language, why.Rule))), "\n")
}

// PolicyHelp says how /policy is used.
func (w Words) PolicyHelp(language string) string { return w.in(language).Policy.Help }
