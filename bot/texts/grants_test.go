package texts_test

import (
	"strings"
	"testing"
	"time"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/bot/visible"
	"github.com/zephbot/zephbot/policy"
)

// grants says every sentence about standing approvals.
func grants(l string) map[string][]string {
	push := policy.Grant{
		Tool: "bash", Kind: policy.GrantPrefix, Words: []string{"git", "push"}, Dir: "/work/sub",
		Files: []policy.File{{Name: "x.sh", Hash: "1"}, {Name: "Makefile"}, {Name: "/usr/bin/git", Hash: "system"}},
	}
	whole := policy.Grant{Tool: "srv:read", Kind: policy.GrantTool, Session: "s"}
	host := policy.Grant{Tool: "fetch", Kind: policy.GrantHost, Input: "example.com", Session: "s"}
	server := policy.Grant{Tool: "srv:write", Kind: policy.GrantHost, Session: "s"}
	src := policy.Grant{Tool: "write", Kind: policy.GrantPath, Dir: "/work/src", Ext: ".go"}
	var lines, labels []string
	for _, kind := range []policy.OfferKind{policy.OfferExact, policy.OfferPrefix, policy.OfferDirectory, policy.OfferExtension} {
		lines = append(lines, w.Offer(l, policy.Offer{Kind: kind, Grants: []policy.Grant{src, push}}, "/work"))
		labels = append(labels, w.OfferLabel(l, policy.Offer{Kind: kind, Grants: []policy.Grant{src}}, "/work"))
	}
	all := policy.Offer{Kind: policy.OfferDirectory, Grants: []policy.Grant{{Tool: "write", Kind: policy.GrantPath, Dir: "/work"}, src}}
	lines, labels = append(lines, w.Offer(l, all, "/work")), append(labels, w.OfferLabel(l, all, "/work"))
	_, limits := w.Rule(l, &push, "/work", visible.Name)
	every, _ := w.Rule(l, &whole, "/work", visible.Name)
	toHost, _ := w.Rule(l, &host, "/work", visible.Name)
	toServer, _ := w.Rule(l, &server, "/work", visible.Name)
	newer, older := w.PageButtons(l)
	rules := []texts.StoredRule{
		{Grant: push, Root: "/work", By: "Ann", At: at, Counted: true, Uses: 3, Used: at, Covered: []string{"git push x"}},
		{Grant: src, Root: "/work", By: "Ann", At: at, Until: at, Chat: "-5"},
		{Grant: whole, By: "Ann", At: at, Ended: true, Counted: true},
		{Grant: whole, By: "Ann", At: at, Counted: true, Uses: 4, Most: 10},
		{Grant: whole, By: "Ann", At: at, Counted: true, Uses: 10, Most: 10, Used: at},
		{Grant: whole, By: "Ann", At: at, Old: true},
	}
	return map[string][]string{
		"Changed": {w.Changed(l, []string{"x.sh"}), w.Changed(l, []string{"x.sh", "y.sh"})}, "WholeButton": {w.WholeButton(l, &whole), w.WholeButton(l, &host), w.WholeButton(l, &server)}, "PageButton": {w.PageButton(l)}, "ChooseHead": {w.ChooseHead(l)},
		"ChooseFoot": {w.ChooseFoot(l)}, "Offer": lines, "OfferLabel": labels, "Rule": append(limits, every, toHost, toServer),
		"Past": {w.Past(l, 0, nil), w.Past(l, 1, []string{"a"}), w.Past(l, 5, []string{"a", "b", "c"})}, "RevokeButton": {w.RevokeButton(l, 3)},
		"PageButtons": {newer, older}, "Rules": {w.Rules(l, nil, 1, 0, ""), w.Rules(l, nil, 1, 0, "note"), w.Rules(l, rules, 6, 12, "note"), w.Rules(l, rules[:1], 1, 1, "")},
		"Revoked": {w.Revoked(l, rules[0])}, "RevokedAlready": {w.RevokedAlready(l)},
		"Personal": {w.Personal(l, "Ann")}, "RuleEnds": {w.RuleEnds(l, rules[0].At), w.RuleEnds(l, time.Time{})}, "RuleEndsSoon": {w.RuleEndsSoon(l, rules[0])}, "RuleKept": {w.RuleKept(l, rules[0])},
		"KeepRuleButton": {w.KeepRuleButton(l, 7)}, "KeepButton": {w.KeepButton(l)}, "EndButton": {w.EndButton(l)},
	}
}

func TestGrantSentences(t *testing.T) {
	t.Parallel()
	if got := w.Changed("en", nil); got != "" {
		t.Errorf("nothing changed: %q", got)
	}
	if got := w.Decided("en", bot.Approval{State: bot.Approved, Scope: bot.Tool, ByName: "Ann", Decided: at}); got != "✅ Tool approved for this conversation by Ann, 14:22 UTC" {
		t.Errorf("got %q", got)
	}
	if got := w.Decided("en", bot.Approval{State: bot.Approved, Scope: bot.Host, ByName: "Ann", Decided: at}); got != "✅ Host approved for this conversation by Ann, 14:22 UTC" {
		t.Errorf("got %q", got)
	}
	card := w.CardFoot("en", texts.Card{Changed: []string{"deploy.sh"}, Expires: at})
	if !strings.Contains(card, "⚠ deploy.sh has changed since you allowed it.") {
		t.Errorf("card: %q", card)
	}
	said := grants("en")
	if line, label := said["Offer"][4], said["OfferLabel"][4]; line != "all files (also in subfolders), all files below src" || label != "All files" {
		t.Errorf("files: %q, %q", line, label)
	}
	text := strings.Join(said["Rules"], "\n---\n")
	for _, want := range []string{
		"6. bash: git push *\nOnly in sub.\nOnly as long as this does not change: x.sh.\nthis chat · by Ann, 4 Mar 2026, 14:22 UTC\nused 3 times · the last time on 4 Mar 2026, 14:22 UTC\n• git push x", "7. write: src/*.go\nchat -5 · by Ann",
		"8. srv:read: every call, in one conversation", "⚠ no longer valid: the server was removed or has changed", "⚠ no longer valid: stored by an older version",
		"6 to 11 of 12", "used 4 of 10 times", "used up after 10 times: I ask again", "note\nNo rule is stored.",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}
