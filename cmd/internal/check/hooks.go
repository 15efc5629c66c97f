package check

import (
	"fmt"
	"strings"

	"github.com/zephbot/zephbot/bot/hook"
)

// hooks checks the prompts of hooks, and whether they can be called without telling others what they are sent.
func (k *inspector) hooks() {
	for i, h := range k.c.Hooks {
		if _, err := hook.ParsePrompt(h.Prompt); err != nil {
			k.wrong(fmt.Sprintf("hooks[%d].prompt", i), "%v", err)
		}
		for _, text := range h.When {
			if _, err := hook.ParseCondition(text); err != nil {
				k.wrong(fmt.Sprintf("hooks[%d].when", i), "%v", err)
			}
		}
	}
	t := k.c.Triggers
	switch {
	case t.Listen == "" && len(k.c.Hooks) > 0:
		k.warn("hooks", "nobody can call them: set triggers.listen, such as \"127.0.0.1:8444\"")
	case t.Listen == "":
	case strings.HasPrefix(t.URL, "http://") && !Loopback(t.URL):
		k.wrong("triggers.url", "callers would send what they know, and perhaps the secret, in clear text; let a proxy with "+
			"a certificate stand before triggers.listen, and name its https address")
	case !strings.HasPrefix(t.URL, "https://") && !Loopback("http://"+t.Listen):
		k.warn("triggers.listen", "is reached from other machines, in clear text; listen on 127.0.0.1 behind a proxy with a "+
			"certificate, and name its address in triggers.url")
	}
}
