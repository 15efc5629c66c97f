package texts

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/zephbot/zephbot/bot/render"
	"github.com/zephbot/zephbot/policy"
)

// grantBook is what is said about standing approvals in one language.
type grantBook struct {
	ChooseHead, ChooseFoot                        string
	Offers                                        map[policy.OfferKind]string // line of the list; with the rule
	Labels                                        map[policy.OfferKind]string // of the button; with what is short of it
	AllFiles, AllFilesButton                      string                      // for those below the working directory
	Personal                                      string                      // name
	Where, While                                  string                      // directory; files
	Past                                          count
	PastNone                                      string
	Whole, WholeApproved                          string
	Host, Server, HostApproved                    string
	HostRule, ServerRule                          string
	Changed, ChangedMany                          string
	RulesHead, RulesNone, RulesEnded, RulesOld    string
	RuleBy, RuleHere, RuleChat, Revoke, Revoked   string // ruleBy: name, time
	RevokedAlready, Older, Newer, More, WholeRule string
	RuleUntil, RuleEnds, RuleEndsSoon, RuleKept   string // day; ruleKept: and the rule
	RuleUnending                                  string
	KeepRule, Keep, End                           string
	RuleUnused, RuleLast                          string // ruleLast: time
	RuleUsed, RuleUsedOf, RuleSpent, Few          count  // ruleUsedOf: uses, most
}

// labelLength limits the text of a button, in UTF-16 units.
const labelLength = 40

// Changed warns that files have changed since somebody allowed the call; "" for none.
func (w Words) Changed(language string, files []string) string {
	b := w.in(language).Grants
	switch len(files) {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf(b.Changed, files[0])
	default:
		return fmt.Sprintf(b.ChangedMany, strings.Join(files, ", "))
	}
}

// WholeButton is the label of the button that approves more than one call in this conversation: every call of a tool,
// or what goes to a host or server.
func (w Words) WholeButton(language string, g *policy.Grant) string {
	switch b := w.in(language).Grants; {
	case g.Kind != policy.GrantHost:
		return b.Whole
	case g.Input == "":
		return b.Server
	default:
		return b.Host
	}
}

// PageButton is the label of the button that approves one page.
func (w Words) PageButton(language string) string { return w.in(language).Buttons.Page }

// ChooseHead is the text above the offers of a standing approval.
func (w Words) ChooseHead(language string) string { return w.in(language).Grants.ChooseHead }

// ChooseFoot is the text below them.
func (w Words) ChooseFoot(language string) string { return w.in(language).Grants.ChooseFoot }

// OfferLabel is the label of a choice. root is the directory from which paths are shown.
func (w Words) OfferLabel(language string, o policy.Offer, root string) string {
	b, g := w.in(language).Grants, &o.Grants[0]
	label, what := b.Labels[o.Kind], ruleText(g, root)
	switch {
	case !strings.Contains(label, "%s"):
		return label
	case o.Kind == policy.OfferDirectory && g.Dir == root:
		return b.AllFilesButton
	case o.Kind == policy.OfferDirectory:
		what = fromRoot(g.Dir, root)
	}
	return render.Cut(fmt.Sprintf(label, w.shown(language, what)), labelLength)
}

// Offer says one choice in a line.
func (w Words) Offer(language string, o policy.Offer, root string) string {
	show := func(text string) string { return w.shown(language, text) }
	rules := make([]string, len(o.Grants))
	for i := range o.Grants {
		if g := &o.Grants[i]; o.Kind == policy.OfferDirectory {
			rules[i] = w.filesBelow(language, g, root, show)
		} else {
			rules[i] = show(ruleText(g, root))
		}
	}
	all := strings.Join(slices.Compact(rules), ", ")
	if o.Kind == policy.OfferDirectory {
		return all
	}
	return fmt.Sprintf(w.in(language).Grants.Offers[o.Kind], all)
}

// filesBelow says which files a standing approval covers that is for a directory.
func (w Words) filesBelow(language string, g *policy.Grant, root string, show func(string) string) string {
	b := w.in(language).Grants
	if g.Dir == root {
		return b.AllFiles
	}
	return fmt.Sprintf(b.Offers[policy.OfferDirectory], show(fromRoot(g.Dir, root)))
}

// Rule is a standing approval, as show makes it visible, and lines about what limits it.
func (w Words) Rule(
	language string, g *policy.Grant, root string, show func(string) string,
) (rule string, limits []string) {
	b := w.in(language).Grants
	switch server, _, _ := strings.Cut(g.Tool, ":"); {
	case g.Kind == policy.GrantTool:
		rule = show(g.Tool) + ": " + b.WholeRule
	case g.Kind == policy.GrantHost && g.Input == "":
		rule = show(server) + ": " + b.ServerRule
	case g.Kind == policy.GrantHost:
		rule = show(g.Input) + ": " + b.HostRule
	case g.Kind == policy.GrantPath && g.Ext == "":
		rule = show(g.Tool) + ": " + w.filesBelow(language, g, root, show)
	default:
		rule = show(g.Tool + ": " + ruleText(g, root))
	}
	if len(g.Words) > 0 && g.Dir != "" && g.Dir != root {
		limits = append(limits, fmt.Sprintf(b.Where, w.shown(language, fromRoot(g.Dir, root))))
	}
	var files []string
	for _, f := range g.Files {
		if f.Hash != "" && f.Hash != "system" && f.Hash != "directory" {
			files = append(files, f.Name)
		}
	}
	if len(files) > 0 {
		limits = append(limits, fmt.Sprintf(b.While, w.shown(language, strings.Join(files, ", "))))
	}
	return rule, limits
}

// ruleText returns the rule with paths as people of the conversation know them.
func ruleText(g *policy.Grant, root string) string {
	if g.Kind == policy.GrantPath || g.Kind == policy.GrantExact && strings.HasPrefix(g.Input, "/") {
		return fromRoot(g.Text(), root)
	}
	return g.Text()
}

// fromRoot returns a path relative to root, if it is below it.
func fromRoot(p, root string) string {
	if rest, ok := strings.CutPrefix(p, root+"/"); ok && root != "" {
		return rest
	}
	return path.Clean(p)
}

// Personal says that a rule of a group counts only where the bot works for one person.
func (w Words) Personal(language, name string) string {
	return fmt.Sprintf(w.in(language).Grants.Personal, named(name))
}

// Past says how often this bot asked about what a rule would cover, with examples.
func (w Words) Past(language string, n int, examples []string) string {
	b := w.in(language).Grants
	if n == 0 {
		return b.PastNone
	}
	return strings.Join(append([]string{b.Past.say(n)}, bulleted(examples)...), "\n")
}

func bulleted(list []string) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = "• " + s
	}
	return out
}

// StoredRule is a standing approval as /policy rules lists it.
type StoredRule struct {
	Grant policy.Grant
	Root  string // from which paths are shown
	By    string
	At    time.Time
	Until time.Time // zero = it does not end
	Chat  string    // "" = the chat where it is listed
	Old   bool      // from a version that stored texts: it is no longer valid
	Ended bool      // its server has been replaced or removed
	// Counted: its uses are counted. Most is how many it has; 0 = any number.
	Counted    bool
	Uses, Most int
	Used       time.Time // the last time; zero = not known
	Covered    []string  // what the last calls were
}

// Rules is the page of a list that begins with rule number from, counted from 1, of all rules. note is written below
// it.
func (w Words) Rules(language string, page []StoredRule, from, all int, note string) string {
	b := w.in(language).Grants
	if all == 0 {
		return strings.TrimPrefix(note+"\n", "\n") + b.RulesNone
	}
	lines := []string{b.RulesHead}
	for i := range page {
		r := &page[i]
		rule, limits := w.Rule(language, &r.Grant, r.Root, func(s string) string { return w.shown(language, s) })
		lines = append(lines, "", fmt.Sprintf("%d. %s", from+i, render.Cut(rule, ruleLength)))
		for _, limit := range limits {
			lines = append(lines, render.Cut(limit, ruleLength))
		}
		where := b.RuleHere
		if r.Chat != "" {
			where = fmt.Sprintf(b.RuleChat, r.Chat)
		}
		line := where + " · " + fmt.Sprintf(b.RuleBy, named(r.By), w.Moment(language, r.At))
		if !r.Until.IsZero() {
			line += " · " + fmt.Sprintf(b.RuleUntil, w.Day(language, r.Until))
		}
		lines = append(lines, line)
		if r.Counted {
			lines = append(lines, w.ruleUses(language, r)...)
		}
		switch {
		case r.Old:
			lines = append(lines, "⚠ "+b.RulesOld)
		case r.Ended:
			lines = append(lines, "⚠ "+b.RulesEnded)
		}
	}
	if all > len(page) {
		lines = append(lines, "", fmt.Sprintf(b.More, from, from+len(page)-1, all))
	}
	if note != "" {
		lines = append(lines, "", note)
	}
	return strings.Join(lines, "\n")
}

// ruleUses says how often a rule was used, and for what.
func (w Words) ruleUses(language string, r *StoredRule) []string {
	b := w.in(language).Grants
	line := b.RuleUnused
	switch {
	case r.Most > 0 && r.Uses >= r.Most:
		line = b.RuleSpent.say(r.Most)
	case r.Most > 0:
		line = b.RuleUsedOf.with(r.Most, r.Uses, r.Most)
	case r.Uses > 0:
		line = b.RuleUsed.say(r.Uses)
	}
	if !r.Used.IsZero() && r.Uses > 0 {
		line += " · " + fmt.Sprintf(b.RuleLast, w.Moment(language, r.Used))
	}
	lines := []string{line}
	for _, text := range r.Covered {
		lines = append(lines, "• "+w.seen(language, text))
	}
	return lines
}

// FewButton is the label of the button that stores a rule for so many calls.
func (w Words) FewButton(language string, n int) string { return w.in(language).Grants.Few.say(n) }

// shown returns words of others in one line, with signs for what cannot be seen. Sentences of the bot do not pass
// through it: in a language that is not written in Latin letters, it would mark their words as words that pose as Latin
// ones.
func (w Words) shown(language, text string) string {
	line, _ := w.Visible(language).Line(text)
	return line
}

// seen returns the beginning of words of others, shown in a line.
func (w Words) seen(language, text string) string {
	return render.Cut(w.shown(language, text), ruleLength)
}

// ruleLength bounds a line about a rule, in UTF-16 units.
const ruleLength = 300

// RevokeButton is the label of the button that ends rule number n.
func (w Words) RevokeButton(language string, n int) string {
	return fmt.Sprintf(w.in(language).Grants.Revoke, n)
}

// PageButtons turn the pages of the list.
func (w Words) PageButtons(language string) (newer, older string) {
	b := w.in(language).Grants
	return b.Newer, b.Older
}

// Revoked says which rule was ended.
func (w Words) Revoked(language string, r StoredRule) string {
	rule, _ := w.Rule(language, &r.Grant, r.Root, func(s string) string { return w.shown(language, s) })
	return fmt.Sprintf(w.in(language).Grants.Revoked, render.Cut(rule, ruleLength))
}

// RuleEnds says until when a rule that is stored now runs calls without asking; zero = it does not end.
func (w Words) RuleEnds(language string, end time.Time) string {
	if end.IsZero() {
		return w.in(language).Grants.RuleUnending
	}
	return fmt.Sprintf(w.in(language).Grants.RuleEnds, w.Day(language, end))
}

// RuleEndsSoon tells a chat that one of its rules ends.
func (w Words) RuleEndsSoon(language string, r StoredRule) string {
	rule, _ := w.Rule(language, &r.Grant, r.Root, func(s string) string { return w.shown(language, s) })
	return fmt.Sprintf(w.in(language).Grants.RuleEndsSoon, w.Day(language, r.Until)) + "\n" + render.Cut(rule, ruleLength)
}

// RuleKept says until when a rule was kept.
func (w Words) RuleKept(language string, r StoredRule) string {
	rule, _ := w.Rule(language, &r.Grant, r.Root, func(s string) string { return w.shown(language, s) })
	return fmt.Sprintf(w.in(language).Grants.RuleKept, w.Day(language, r.Until), render.Cut(rule, ruleLength))
}

// KeepRuleButton is the label of the button that keeps rule number n longer.
func (w Words) KeepRuleButton(language string, n int) string {
	return fmt.Sprintf(w.in(language).Grants.KeepRule, n)
}

// KeepButton keeps the one rule that a message is about.
func (w Words) KeepButton(language string) string { return w.in(language).Grants.Keep }

// EndButton ends that rule.
func (w Words) EndButton(language string) string { return w.in(language).Grants.End }

// RevokedAlready answers a press on a rule that is gone.
func (w Words) RevokedAlready(language string) string { return w.in(language).Grants.RevokedAlready }
