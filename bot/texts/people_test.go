package texts_test

import (
	"strings"
	"testing"
	"time"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/policy/reason"
)

// people says the sentences about who may talk to the bot.
func people(l string) map[string][]string {
	ann := texts.Person{ID: "4711", Name: "Ann", Role: "user", By: "Cy", At: at}
	group, first := texts.Person{ID: "-100", Group: true, Name: "Team", By: "Cy", At: at}, texts.Person{ID: "1", Role: "admin", ByCode: true, At: at}
	invitation, forGroup := texts.Invitation{Role: "user", Left: 1, By: "Cy", Expires: at}, texts.Invitation{Role: "approver", Group: true, Left: 5, Quota: "turns/day", Limit: "20", By: "Cy", Expires: at}
	return map[string][]string{
		"StrangerAsks":    {asks(l, "Ann", "ann_a", "hello", "Team"), asks(l, "", "", "", "")},
		"StrangerButtons": {buttons(l)},
		"Declined":        {w.Declined(l, ann), w.Declined(l, group)}, "Blocked": {w.Blocked(l, ann), w.Blocked(l, group)}, "YouAreDeclined": {w.YouAreDeclined(l)},
		"GroupAsks": {w.GroupAsks(l, "Ann", "Team", "-100"), w.GroupAsks(l, "", "", "-100")}, "GroupAsked": {w.GroupAsked(l, nil), w.GroupAsked(l, []string{"Ben", "Cy"})}, "GroupRefused": {w.GroupRefused(l)}, "GroupAsksYou": {w.GroupAsksYou(l, "Team", true), w.GroupAsksYou(l, "Team", false)}, "GroupAskedYou": {w.GroupAskedYou(l, "Ann")}, "StrangerCode": {w.StrangerCode(l, "4711")}, "InvitedPerson": {w.InvitedPerson(l)}, "InviteInPrivate": {w.InviteInPrivate(l)}, "GroupDeclined": {w.GroupDeclined(l)}, "SetupWaits": {w.SetupWaits(l)},
		"Invited":     {w.Invited(l, invitation, "https://t.me/b?start=X"), w.Invited(l, forGroup, "https://t.me/b?startgroup=X")},
		"Invitations": {w.Invitations(l, nil, "X"), w.Invitations(l, []texts.Invitation{invitation, forGroup}, "")}, "StrangerDeclined": {w.StrangerDeclined(l, "", time.Unix(0, 0)), w.StrangerDeclined(l, "Ann", time.Unix(0, 0))}, "StrangerNotAsking": {w.StrangerNotAsking(l)}, "NameUnknown": {w.NameUnknown(l, "Ann", nil), w.NameUnknown(l, "Ann", []string{"1", "2"})}, "RevokeLinkButton": {w.RevokeLinkButton(l)},
		"InviteHelp": {w.InviteHelp(l, 100, 30)}, "InviteFull": {w.InviteFull(l, 50)}, "InvitationRevoked": {w.InvitationRevoked(l)}, "InvitationOver": {w.InvitationOver(l)},
		"InvitationUsed": {w.InvitationUsed(l, "Ann", "", 1), w.InvitationUsed(l, "Ann", "Team", 0)}, "InvitationGone": {w.InvitationGone(l)}, "InvitationGoneAsk": {w.InvitationGoneAsk(l)},
		"InvitationUnneeded": {w.InvitationUnneeded(l)}, "InvitationForGroup": {w.InvitationForGroup(l)}, "InvitedGroup": {w.InvitedGroup(l, "@zephbot"), w.InvitedGroup(l, "")},
		"NamePinned": {w.NamePinned(l, "ann", "Ann", "4711")},
		"CodeWrong":  {w.CodeWrong(l, 1), w.CodeWrong(l, 4)}, "CodeTooOften": {w.CodeTooOften(l)}, "StartAdmin": {w.StartAdmin(l)}, "ProfileDescription": {w.ProfileDescription(l)}, "ProfileShort": {w.ProfileShort(l)}, "InvitationUsedUp": {w.InvitationUsedUp(l)}, "ByNameHere": {w.ByNameHere(l)},
		"People": {
			w.People(l, texts.People{From: 1}), w.People(l, texts.People{From: 1, Waiting: []texts.Person{ann, group}, MoreWaiting: 2, Declined: []texts.Person{ann}}),
			w.People(l, texts.People{Configured: []texts.Person{{ID: "*"}, {ID: "*", Group: true}, {ID: "7", Role: "approver"}}, Page: []texts.Person{ann, group, first}, From: 1, All: 9, Note: "X"}),
		},
		"PeopleInPrivate": {w.PeopleInPrivate(l)}, "PeopleOff": {w.PeopleOff(l)}, "AdmitHelp": {w.AdmitHelp(l)}, "RemoveHelp": {w.RemoveHelp(l)},
		"RemoveButton": {w.RemoveButton(l, 1, ann), w.RemoveButton(l, 2, first)}, "PersonConfigured": {w.PersonConfigured(l, texts.Person{ID: "7", Role: "admin"}, "telegram.admins")},
		"GroupConfigured": {w.GroupConfigured(l, "-100")}, "Admitted": {w.Admitted(l, ann), w.Admitted(l, group)}, "AdmittedAlready": {w.AdmittedAlready(l, ann)},
		"Removed": {w.Removed(l, ann, true), w.Removed(l, ann, false)}, "LastAdmin": {w.LastAdmin(l)}, "NotAdmitted": {w.NotAdmitted(l, "5")},
		"YouAreAdmitted": {w.YouAreAdmitted(l, false), w.YouAreAdmitted(l, true)},
		"WhyButton":      {w.WhyButton(l)}, "WhyNothing": {w.WhyNothing(l)}, "Why": {why(l), w.Why(l, true, []texts.Refusal{{Tool: "bash", Args: "{}", Asked: bot.Approval{ID: "q", State: bot.Denied, ByName: "Ann", Decided: at}}})},
	}
}

// asks is all that an admin reads of a stranger.
func asks(l, name, username, said, title string) string {
	head, who, quote, foot := w.StrangerAsks(l, name, username, said, "4711", title)
	return strings.Join([]string{head, who, quote, foot}, "\n")
}

// one joins what an admin reads of a stranger, for tests of what may be in it.
func one(head, who, quote, foot string) string { return head + who + quote + foot }

// buttons are the labels below it.
func buttons(l string) string {
	admit, decline, block := w.StrangerButtons(l)
	return admit + decline + block
}

// why explains a refusal by a rule of each kind, and one by none.
func why(l string) string {
	var list []texts.Refusal
	for _, rule := range []string{
		"built-in: autonomy level readonly", "built-in: trust blocked", "built-in: blocklist", "built-in: allow_network = false", "built-in: flagged content (x)",
		"tools.max_tool_calls_per_session", "hidden in this chat", "not a tool of the sub-agent", "not offered", "not possible", "default: ask (no matching rules)", "built-in: bash asks", "tools.policy.rules[0]", "",
	} {
		list = append(list, texts.Refusal{Tool: "bash", Args: "{}", Reason: reason.New(reason.PolicyDenies), Rule: rule})
	}
	return strings.NewReplacer("built-in: allow_network = false", "", "hidden in this chat", "", "not a tool of the sub-agent", "", "not offered", "", "not possible", "", "default: ask (no matching rules)", "").Replace(w.Why(l, true, list))
}

// TestCures: each kind of rule has its own way out, in every language.
func TestCures(t *testing.T) {
	t.Parallel()
	for _, l := range w.Languages() {
		seen := map[string]bool{}
		for part := range strings.SplitSeq(why(l), "\n\n") {
			lines := strings.Split(part, "\n")
			seen[lines[len(lines)-1]] = true
		}
		if len(seen) != 14 {
			t.Errorf("%s: %d different ways out: %v", l, len(seen), seen)
		}
	}
}

// TestNamesOfOthers: a name fills no message, breaks no line and hides nothing.
func TestNamesOfOthers(t *testing.T) {
	t.Parallel()
	evil := "A\nB\u202e" + strings.Repeat("x", 500)
	for _, text := range []string{one(w.StrangerAsks("en", evil, "", evil, "1", evil)), w.GroupAsks("en", evil, evil, "-1"), w.NamePinned("en", "ann", evil, "1"), texts.Named(evil)} {
		if strings.ContainsAny(text, "\n\u202e") || len(text) > 900 {
			t.Errorf("%q", text)
		}
	}
}
