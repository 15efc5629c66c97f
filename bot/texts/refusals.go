package texts

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/render"
	"github.com/zephbot/zephbot/policy/reason"
)

// Refusal is a call of a tool that did not run.
type Refusal struct {
	Tool   string
	Args   string // JSON, as the model gave them
	Reason reason.Reason
	Rule   string // that decided; "" = the tool itself, or a limit
	// Asked is the question that a person denied, or nobody answered; without ID = nobody was asked.
	Asked bot.Approval
}

// builtIn begins the names of rules that are no rules of the configuration. Those of the policy end with details for the
// audit log, which the reason says in words.
const builtIn = "built-in: "

// argsLength bounds the arguments in an explanation, in UTF-16 units.
const argsLength = 200

// whyBook is the sentences that explain refusals.
type whyBook struct {
	Button, Nothing string
	NoRule          string            // of what a person denied
	Rule, Cure      string            // which
	Rules           map[string]string // what rules are called that are no rules of the configuration
	Cures           map[string]string // what would allow calls that rules with this beginning refuse
	Tool            string            // the cure where no rule decided
	Config          string            // the cure of any other rule
	Policy          string            // behind it for admins
}

// CommandIn returns the command that the arguments of a call have; "" = it is no command.
func CommandIn(args []byte) string {
	var in struct {
		Command string `json:"command"`
	}
	if json.Unmarshal(args, &in) != nil {
		return ""
	}
	return strings.TrimSpace(in.Command)
}

// WhyButton is the label of the button below an answer in whose turn calls were refused.
func (w Words) WhyButton(language string) string { return w.in(language).Refusals.Button }

// WhyNothing answers /why where nothing was refused.
func (w Words) WhyNothing(language string) string { return w.in(language).Refusals.Nothing }

// Why explains why calls were refused: what, why, by which rule, and what would allow it. Only admins are told which key
// of the configuration it is, and which command shows it.
func (w Words) Why(language string, admin bool, list []Refusal) string {
	b := w.in(language).Refusals
	parts := make([]string, len(list))
	for i, r := range list {
		what := r.Args
		if command := CommandIn([]byte(r.Args)); command != "" {
			what, r.Tool = command, ""
		}
		what, _ = w.Visible(language).Line(what)
		lines := []string{"⛔ " + strings.TrimSpace(named(r.Tool)+" "+render.Cut(what, argsLength))}
		if r.Asked.ID != "" {
			decided := strings.TrimPrefix(w.Decided(language, r.Asked), "⛔ ")
			parts[i] = strings.Join(append(lines, decided+". "+b.NoRule), "\n")
			continue
		}
		lines = append(lines, render.Cut(w.refused(language, &r), ruleLength))
		cure := b.cureOf(r.Rule)
		if r.Rule != "" && (admin || cure != b.Config) {
			lines = append(lines, fmt.Sprintf(b.Rule, w.rule(language, r.Rule)))
		}
		if admin && cure == b.Config {
			cure += " " + b.Policy
		}
		parts[i] = strings.Join(append(lines, fmt.Sprintf(b.Cure, cure)), "\n")
	}
	return strings.Join(parts, "\n\n")
}

// refused says why a call was refused, in words of the policy or of the tool.
func (w Words) refused(language string, r *Refusal) string {
	if r.Reason.Code != "" {
		return w.Reason(language, r.Reason.Map(func(s string) string { return w.shown(language, s) }))
	}
	return w.shown(language, r.Reason.Detail)
}

// rule says which rule decided.
func (w Words) rule(language, rule string) string {
	rules := w.in(language).Refusals.Rules
	if said, ok := rules[rule]; ok {
		return said
	}
	said, longest := "", 0
	for beginning, words := range rules {
		if strings.HasPrefix(beginning, builtIn) && strings.HasPrefix(rule, beginning) && len(beginning) > longest {
			said, longest = words, len(beginning)
		}
	}
	return cmp.Or(said, w.seen(language, rule))
}

// cureOf says what would allow what a rule refuses.
func (b *whyBook) cureOf(rule string) string {
	if rule == "" {
		return b.Tool
	}
	text, longest := b.Config, -1
	for beginning, cure := range b.Cures {
		if strings.HasPrefix(rule, beginning) && len(beginning) > longest {
			text, longest = cure, len(beginning)
		}
	}
	return text
}
