package texts_test

import "github.com/zephbot/zephbot/bot/texts"

// hooks says everything about hooks in a language.
func hooks(l string, m map[string][]string) {
	list := []texts.Hook{
		{Name: "x", Owner: "Ann"},
		{Name: "x", Owner: "Ann", Last: at, Paused: true},
		{Name: "x", Owner: "Ann", Left: true},
		{Name: "x", Owner: "Ann", Config: true},
	}
	for _, group := range []bool{false, true} {
		m["HookList"] = append(m["HookList"], w.HookList(l, nil, group), w.HookList(l, list, group))
	}
	for name, say := range map[string]func(language, name string) string{
		"HookCalled": w.HookCalled, "HookRevoked": w.HookRevoked, "HookMade": w.HookMade, "HookRenewed": w.HookRenewed,
		"HookRemoved": w.HookRemoved, "HookPaused": w.HookPaused, "HookResumed": w.HookResumed, "HookTested": w.HookTested,
		"HookTaken": w.HookTaken, "HookGone": w.HookGone, "HookOfConfig": w.HookOfConfig,
		"HookAsksRenew": w.HookAsksRenew, "HookAsksRemove": w.HookAsksRemove,
	} {
		m[name] = []string{say(l, "x")}
	}
	test, renew := w.HookButtons(l)
	m["HookButtons"] = []string{test, renew}
	m["HookCard"] = []string{w.HookCard(l, &texts.Hook{Name: "x", Owner: "Ann", Prompt: "Look", When: "event=push"}, true)}
	m["HookOff"], m["HookHelp"], m["HookAdmins"] = []string{w.HookOff(l)}, []string{w.HookHelp(l)}, []string{w.HookAdmins(l)}
	m["HookName"], m["HookPromptWrong"] = []string{w.HookName(l)}, []string{w.HookPromptWrong(l, 2000)}
	m["HookSecret"] = []string{
		w.HookSecret(l, "x", "https://b/hooks/x", "whsec_1", false), w.HookSecret(l, "x", "http://127.0.0.1:1/hooks/x", "whsec_1", true),
	}
	m["HookSent"], m["HookNotYours"] = []string{w.HookSent(l)}, []string{w.HookNotYours(l, "Ann")}
	m["HookFull"] = []string{w.HookFull(l, 1), w.HookFull(l, 3), w.HookFull(l, 100)}
	m["HookLeft"], m["HookPrompt"] = []string{w.HookLeft(l, []string{"x", "y"})}, []string{w.HookPrompt(l)}
}
