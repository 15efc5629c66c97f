package texts

import (
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/zephbot/zephbot/bot/render"
	"github.com/zephbot/zephbot/policy"
)

// grantBook is what is said about standing approvals in one language.
type grantBook struct {
	chooseHead, chooseFoot                        string
	offers                                        map[policy.OfferKind]string // line of the list; with the rule
	labels                                        map[policy.OfferKind]string // of the button; with what is short of it
	where, while                                  string                      // directory; files
	past                                          count
	pastNone                                      string
	whole, wholeApproved                          string
	changed, changedMany                          string
	rulesHead, rulesNone, rulesEnded, rulesOld    string
	ruleBy, ruleHere, ruleChat, revoke, revoked   string // ruleBy: name, time
	revokedAlready, older, newer, more, wholeRule string
}

func englishGrants() grantBook {
	return grantBook{
		chooseHead: "What may always run in this chat?", chooseFoot: "The next card shows the rule once more before it is stored.",
		offers: map[policy.OfferKind]string{
			policy.OfferExact: "exactly %s", policy.OfferPrefix: "everything beginning with %s", policy.OfferDirectory: "all files below %s",
			policy.OfferExtension: "all files like %s",
		},
		labels: map[policy.OfferKind]string{
			policy.OfferExact: "Exactly this", policy.OfferPrefix: "Begins with %s", policy.OfferDirectory: "Files %s", policy.OfferExtension: "Files %s",
		},
		where: "Only in %s.", while: "Only as long as this does not change: %s.",
		past:     count{"In the last 7 days I asked %d time about what this rule covers:", "In the last 7 days I asked %d times about what this rule covers:"},
		pastNone: "In the last 7 days I asked about nothing else that this rule covers.",
		whole:    "Approve this tool in this conversation", wholeApproved: "✅ Tool approved for this conversation by %s, %s",
		changed: "⚠ %s has changed since you allowed it.", changedMany: "⚠ These have changed since you allowed them: %s.",
		rulesHead: "What may run without asking:", rulesNone: "No rule is stored. Admins can store one with Always… on a question.",
		rulesEnded: "no longer valid: the server was removed or has changed", rulesOld: "no longer valid: stored by an older version",
		ruleBy: "by %s, %s", ruleHere: "this chat", ruleChat: "chat %s", revoke: "Revoke %d", revoked: "Revoked: %s",
		revokedAlready: "This rule has already been revoked.", older: "Older ›", newer: "‹ Newer", more: "%d to %d of %d", wholeRule: "every call, in one conversation",
	}
}

func germanGrants() grantBook {
	return grantBook{
		chooseHead: "Was darf in diesem Chat immer laufen?", chooseFoot: "Die nächste Karte zeigt die Regel noch einmal, bevor sie gespeichert wird.",
		offers: map[policy.OfferKind]string{
			policy.OfferExact: "genau %s", policy.OfferPrefix: "alles, was so beginnt: %s", policy.OfferDirectory: "alle Dateien unter %s",
			policy.OfferExtension: "alle Dateien wie %s",
		},
		labels: map[policy.OfferKind]string{
			policy.OfferExact: "Genau das", policy.OfferPrefix: "Beginnt mit %s", policy.OfferDirectory: "Dateien %s", policy.OfferExtension: "Dateien %s",
		},
		where: "Nur in %s.", while: "Nur solange das bleibt, wie es ist: %s.",
		past:     count{"In den letzten 7 Tagen habe ich %d Mal gefragt, was diese Regel abdeckt:", "In den letzten 7 Tagen habe ich %d Mal gefragt, was diese Regel abdeckt:"},
		pastNone: "In den letzten 7 Tagen habe ich sonst nichts gefragt, was diese Regel abdeckt.",
		whole:    "Werkzeug in diesem Gespräch erlauben", wholeApproved: "✅ Werkzeug für dieses Gespräch erlaubt von %s, %s",
		changed: "⚠ %s wurde geändert, seit du es erlaubt hast.", changedMany: "⚠ Geändert, seit du es erlaubt hast: %s.",
		rulesHead: "Was läuft, ohne zu fragen:", rulesNone: "Keine Regel ist gespeichert. Admins speichern eine mit Immer… auf einer Frage.",
		rulesEnded: "gilt nicht mehr: der Server wurde entfernt oder geändert", rulesOld: "gilt nicht mehr: von einer älteren Version gespeichert",
		ruleBy: "von %s, %s", ruleHere: "dieser Chat", ruleChat: "Chat %s", revoke: "%d widerrufen", revoked: "Widerrufen: %s",
		revokedAlready: "Diese Regel ist schon widerrufen.", older: "Ältere ›", newer: "‹ Neuere", more: "%d bis %d von %d", wholeRule: "jeder Aufruf, in einem Gespräch",
	}
}

// labelLength limits the text of a button, in UTF-16 units.
const labelLength = 40

// Changed warns that files have changed since somebody allowed the call; "" for none.
func (w Words) Changed(language string, files []string) string {
	b := w.in(language).grants
	switch len(files) {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf(b.changed, files[0])
	default:
		return fmt.Sprintf(b.changedMany, strings.Join(files, ", "))
	}
}

// WholeButton is the label of the button that approves every call of a tool in this conversation.
func (w Words) WholeButton(language string) string { return w.in(language).grants.whole }

// ChooseHead is the text above the offers of a standing approval.
func (w Words) ChooseHead(language string) string { return w.in(language).grants.chooseHead }

// ChooseFoot is the text below them.
func (w Words) ChooseFoot(language string) string { return w.in(language).grants.chooseFoot }

// OfferLabel is the label of a choice. root is the directory from which paths are shown.
func (w Words) OfferLabel(language string, o policy.Offer, root string) string {
	label := w.in(language).grants.labels[o.Kind]
	if !strings.Contains(label, "%s") {
		return label
	}
	return render.Cut(fmt.Sprintf(label, ruleText(&o.Grants[0], root)), labelLength)
}

// Offer says one choice in a line.
func (w Words) Offer(language string, o policy.Offer, root string) string {
	rules := make([]string, len(o.Grants))
	for i := range o.Grants {
		rules[i] = ruleText(&o.Grants[i], root)
	}
	return fmt.Sprintf(w.in(language).grants.offers[o.Kind], strings.Join(rules, ", "))
}

// Rule is a standing approval in one line, and what limits it in further ones.
func (w Words) Rule(language string, g *policy.Grant, root string) (rule string, limits []string) {
	b := w.in(language).grants
	rule = g.Tool + ": " + ruleText(g, root)
	if g.Kind == policy.GrantTool {
		rule = g.Tool + ": " + b.wholeRule
	}
	if len(g.Words) > 0 && g.Dir != "" && g.Dir != root {
		limits = append(limits, fmt.Sprintf(b.where, fromRoot(g.Dir, root)))
	}
	var files []string
	for _, f := range g.Files {
		if f.Hash != "" && f.Hash != "system" && f.Hash != "directory" {
			files = append(files, f.Name)
		}
	}
	if len(files) > 0 {
		limits = append(limits, fmt.Sprintf(b.while, strings.Join(files, ", ")))
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

// Past says how often this bot asked about what a rule would cover, with examples.
func (w Words) Past(language string, n int, examples []string) string {
	b := w.in(language).grants
	if n == 0 {
		return b.pastNone
	}
	return strings.Join(append([]string{b.past.say(n)}, bulleted(examples)...), "\n")
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
	Chat  string // "" = the chat where it is listed
	Old   bool   // from a version that stored texts: it is no longer valid
	Ended bool   // its server has been replaced or removed
}

// Rules is the page of a list that begins with rule number from, counted from 1, of all rules. note is written below
// it.
func (w Words) Rules(language string, page []StoredRule, from, all int, note string) string {
	b := w.in(language).grants
	if all == 0 {
		return strings.TrimPrefix(note+"\n", "\n") + b.rulesNone
	}
	lines := []string{b.rulesHead}
	for i := range page {
		r := &page[i]
		rule, limits := w.Rule(language, &r.Grant, r.Root)
		lines = append(lines, "", fmt.Sprintf("%d. %s", from+i, w.seen(language, rule)))
		for _, limit := range limits {
			lines = append(lines, w.seen(language, limit))
		}
		where := b.ruleHere
		if r.Chat != "" {
			where = fmt.Sprintf(b.ruleChat, r.Chat)
		}
		lines = append(lines, where+" · "+fmt.Sprintf(b.ruleBy, named(r.By), w.moment(r.At)))
		switch {
		case r.Old:
			lines = append(lines, "⚠ "+b.rulesOld)
		case r.Ended:
			lines = append(lines, "⚠ "+b.rulesEnded)
		}
	}
	if all > len(page) {
		lines = append(lines, "", fmt.Sprintf(b.more, from, from+len(page)-1, all))
	}
	if note != "" {
		lines = append(lines, "", note)
	}
	return strings.Join(lines, "\n")
}

// seen returns a line of others' words, with signs for what cannot be seen.
func (w Words) seen(language, text string) string {
	line, _ := w.Visible(language).Line(text)
	return render.Cut(line, ruleLength)
}

// ruleLength bounds a line about a rule, in UTF-16 units.
const ruleLength = 300

// RevokeButton is the label of the button that ends rule number n.
func (w Words) RevokeButton(language string, n int) string {
	return fmt.Sprintf(w.in(language).grants.revoke, n)
}

// PageButtons turn the pages of the list.
func (w Words) PageButtons(language string) (newer, older string) {
	b := w.in(language).grants
	return b.newer, b.older
}

// Revoked says which rule was ended.
func (w Words) Revoked(language string, r StoredRule) string {
	rule, _ := w.Rule(language, &r.Grant, r.Root)
	return fmt.Sprintf(w.in(language).grants.revoked, w.seen(language, rule))
}

// RevokedAlready answers a press on a rule that is gone.
func (w Words) RevokedAlready(language string) string { return w.in(language).grants.revokedAlready }
