package texts

import (
	"fmt"
	"strings"
	"time"

	"github.com/zephbot/zephbot/bot"
)

// Card is what an approval question shows besides the command itself.
type Card struct {
	Tool, Note, Reason string
	Suspicious         string
	Steps              int
	USD                float64
	Expires            time.Time
	Short              string
	Needed, Votes      int
	FileLines          int    // > 0: the whole text goes out as a file
	FileHash           string // of that file
}

// CardHead is what stands above the command.
func (Words) CardHead(language string, c Card) string {
	b := in(language)
	note := c.Note
	if note == "" {
		note = b.inWorkspace
	}
	return b.mayI + "\n" + c.Tool + " · " + note
}

// CardFoot is what stands below the command.
func (Words) CardFoot(language string, c Card) string {
	b := in(language)
	var lines []string
	if c.FileLines > 0 {
		lines = append(lines, fmt.Sprintf(b.longFile, c.FileLines, c.FileHash), "")
	}
	if c.Suspicious != "" {
		lines = append(lines, fmt.Sprintf(b.suspicious, c.Suspicious))
	}
	if c.Reason != "" {
		lines = append(lines, fmt.Sprintf(b.why, c.Reason))
	}
	if c.Needed > 1 {
		lines = append(lines, fmt.Sprintf(b.needs, c.Needed, c.Votes))
	}
	last := fmt.Sprintf(b.expires, clock(c.Expires), c.Short)
	if c.Steps > 1 || c.USD > 0 {
		last = fmt.Sprintf(b.soFar, b.steps.say(c.Steps), Money(c.USD)) + " · " + last
	}
	return strings.Join(append(lines, last), "\n")
}

// clock says a time of day. The Bot API does not tell a reader's zone, so it is UTC and says so.
func clock(t time.Time) string { return t.UTC().Format("15:04") + " UTC" }

// Buttons are the labels of the card's buttons.
func (Words) Buttons(language string) (once, session, deny string) {
	b := in(language)
	return b.once, b.session, b.deny
}

// Decided is the record that a card becomes.
func (Words) Decided(language string, a bot.Approval) string {
	b := in(language)
	at := clock(a.Decided)
	switch a.State {
	case bot.Approved:
		if a.Scope == bot.Always {
			return fmt.Sprintf(b.approvedAlways, a.ByName, at)
		}
		if a.Scope == bot.Session {
			return fmt.Sprintf(b.approvedSession, a.ByName, at)
		}
		return fmt.Sprintf(b.approved, a.ByName, at)
	case bot.Denied:
		return fmt.Sprintf(b.denied, a.ByName, at)
	case bot.Expired:
		return fmt.Sprintf(b.expired, at)
	default:
		return fmt.Sprintf(b.withdrawn, at)
	}
}

// NotYours answers the press of somebody who may not decide.
func (Words) NotYours(language, who string) string {
	b := in(language)
	if who == "" {
		who = b.asker
	}
	return fmt.Sprintf(b.stranger, who)
}

// NotYourself answers the press of the person who asked, where somebody else has to approve.
func (Words) NotYourself(language string) string { return in(language).notYourself }

// Already answers a second press.
func (w Words) Already(language string, a bot.Approval) string {
	return fmt.Sprintf(in(language).already, w.Decided(language, a))
}

// UnknownQuestion answers a button that belongs to nothing.
func (Words) UnknownQuestion(language string) string { return in(language).unknownQuestion }

// NoQuestion answers /approve and /deny where nothing is open.
func (Words) NoQuestion(language string) string { return in(language).noQuestion }

// OneQuestion answers /approve and /deny with a name that is not that of the only open question.
func (Words) OneQuestion(language, short string) string {
	return fmt.Sprintf(in(language).oneQuestion, short)
}

// WhichQuestion answers /approve and /deny where several questions are open.
func (Words) WhichQuestion(language string, short []string) string {
	return fmt.Sprintf(in(language).whichQuestion, strings.Join(short, ", "))
}

// Noted answers a press that was counted.
func (Words) Noted(language string, missing int) string {
	if missing > 0 {
		return fmt.Sprintf(in(language).votedToast, missing)
	}
	return in(language).decidedToast
}

// AlwaysButton is the label of the button that begins storing a rule.
func (Words) AlwaysButton(language string) string { return in(language).always }

// StoreButtons are the labels of the card that shows the rule.
func (Words) StoreButtons(language string) (store, back string) {
	b := in(language)
	return b.storeIt, b.back
}

// StoreHead stands above the rule that would be stored.
func (Words) StoreHead(language string) string { return in(language).storeHead }

// StoreFoot stands below it.
func (Words) StoreFoot(language string) string { return in(language).storeFoot }

// AdminsStore answers somebody who may not store rules.
func (Words) AdminsStore(language string) string { return in(language).adminsStore }

// PolicyStatus answers /policy status.
func (Words) PolicyStatus(language string, lines []string) string {
	return in(language).policyHead + "\n" + strings.Join(lines, "\n")
}

// PolicyDecision answers /policy check.
func (Words) PolicyDecision(language, effect, rule, reason string) string {
	b := in(language)
	lines := []string{b.effects[effect]}
	if reason != "" {
		lines = append(lines, reason)
	}
	return strings.Join(append(lines, fmt.Sprintf(b.policyRule, rule)), "\n")
}

// PolicyHelp says how /policy is used.
func (Words) PolicyHelp(language string) string { return in(language).policyHelp }
