package texts

import (
	"fmt"
	"strings"

	"github.com/zephbot/zephbot/bot/render"
)

// Refusal is a call of a tool that did not run.
type Refusal struct {
	Tool   string
	Args   string // JSON, as the model gave them
	Reason string // in English, as the policy or the tool says it
	Rule   string // that decided; "" = the tool itself, or a limit
}

// argsLength bounds the arguments in an explanation, in UTF-16 units.
const argsLength = 200

// whyBook is the sentences that explain refusals.
type whyBook struct {
	button, nothing, rule, cure string
	cures                       []cure
	tool                        string // the cure where no rule decided
	config                      string // the cure of any other rule
}

// cure says what would allow calls that rules with a certain beginning refuse.
type cure struct{ rule, text string }

func englishWhy() whyBook {
	return whyBook{
		button: "Why?", nothing: "Nothing was refused in this conversation lately.",
		rule: "Rule: %s", cure: "What would allow it: %s",
		cures: []cure{
			{"built-in: autonomy level readonly", "an admin can set security.autonomy_level to supervised in the configuration."},
			{"built-in: trust", "an admin can give the server a higher trust_level in the configuration."},
			{"built-in: blocklist", "nothing. Such commands never run here."},
			{"built-in: allow_network", "an admin can set tools.shell.allow_network in the configuration."},
			{"built-in: flagged content", "/new begins a conversation without the text that was flagged; or somebody approves the call."},
			{"tools.max_tool_calls_per_session", "/clear empties the conversation and resets the limit; an admin can raise it in the configuration."},
			{"hidden in this chat", "an admin can add the tool to allowed_tools: of this chat, of your role or of the bot."},
			{"not offered", "ask again and name what the tool does; tools are offered when they fit the question."},
			{"not possible", "a call that the tool can carry out: what is wrong with this one is said above."},
			{"default: ask", "a person who may approve. An admin can name one with /admit ID approver."},
			{"built-in: ", "a person who may approve. An admin can name one with /admit ID approver, or write a rule into the configuration."},
		},
		tool:   "what the sentence above names; paths, hosts and limits of the tool are in the configuration. A tool that failed too often comes back by itself, or with /tools unblock NAME.",
		config: "an admin can change that rule in the configuration. /policy status shows the rules in force.",
	}
}

func germanWhy() whyBook {
	return whyBook{
		button: "Warum?", nothing: "In diesem Gespräch wurde zuletzt nichts abgelehnt.",
		rule: "Regel: %s", cure: "Was es erlauben würde: %s",
		cures: []cure{
			{"built-in: autonomy level readonly", "Ein Admin kann security.autonomy_level in der Konfiguration auf supervised setzen."},
			{"built-in: trust", "Ein Admin kann dem Server in der Konfiguration ein höheres trust_level geben."},
			{"built-in: blocklist", "Nichts. Solche Befehle laufen hier nie."},
			{"built-in: allow_network", "Ein Admin kann tools.shell.allow_network in der Konfiguration setzen."},
			{"built-in: flagged content", "/new beginnt ein Gespräch ohne den auffälligen Text; oder jemand gibt den Aufruf frei."},
			{"tools.max_tool_calls_per_session", "/clear leert das Gespräch und setzt die Grenze zurück; ein Admin kann sie in der Konfiguration anheben."},
			{"hidden in this chat", "Ein Admin kann das Werkzeug in allowed_tools aufnehmen: in diesem Chat, für deine Rolle oder für den Bot."},
			{"not offered", "Noch einmal fragen und sagen, was das Werkzeug tun soll; Werkzeuge werden angeboten, wenn sie zur Frage passen."},
			{"not possible", "Ein Aufruf, den das Werkzeug ausführen kann; was an diesem falsch ist, steht darüber."},
			{"default: ask", "Eine Person mit Freigaberecht. Ein Admin ernennt sie mit /admit NUMMER approver."},
			{"built-in: ", "Eine Person mit Freigaberecht. Ein Admin ernennt sie mit /admit NUMMER approver oder schreibt eine Regel in die Konfiguration."},
		},
		tool:   "Was der Satz darüber nennt; Pfade, Adressen und Grenzen des Werkzeugs stehen in der Konfiguration. Ein Werkzeug, das zu oft versagt hat, kommt von selbst zurück, oder mit /tools unblock NAME.",
		config: "Ein Admin kann diese Regel in der Konfiguration ändern. /policy status zeigt die geltenden Regeln.",
	}
}

// WhyButton is the label of the button below an answer in whose turn calls were refused.
func (w Words) WhyButton(language string) string { return w.in(language).refusals.button }

// WhyNothing answers /why where nothing was refused.
func (w Words) WhyNothing(language string) string { return w.in(language).refusals.nothing }

// Why explains why calls were refused: what, why, by which rule, and what would allow it.
func (w Words) Why(language string, list []Refusal) string {
	b := w.in(language).refusals
	parts := make([]string, len(list))
	for i, r := range list {
		args, _ := w.Visible(language).Line(r.Args)
		lines := []string{"⛔ " + strings.TrimSpace(named(r.Tool)+" "+render.Cut(args, argsLength)), w.seen(language, w.Reason(language, r.Reason))}
		if r.Rule != "" {
			lines = append(lines, fmt.Sprintf(b.rule, w.seen(language, r.Rule)))
		}
		parts[i] = strings.Join(append(lines, fmt.Sprintf(b.cure, b.cureOf(r.Rule))), "\n")
	}
	return strings.Join(parts, "\n\n")
}

// cureOf says what would allow what a rule refuses.
func (b *whyBook) cureOf(rule string) string {
	if rule == "" {
		return b.tool
	}
	for _, c := range b.cures {
		if strings.HasPrefix(rule, c.rule) {
			return c.text
		}
	}
	return b.config
}
