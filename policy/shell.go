package policy

// Commands of bash: the blocklist, what the operator blocks, and the permission rules of each command in a script.

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/zephbot/zephbot/policy/act"
	"github.com/zephbot/zephbot/policy/command"
	"github.com/zephbot/zephbot/policy/reason"
)

// shellRules are the settings of [tools.shell] that the policy uses.
type shellRules struct {
	blocked      []string // folded, as written
	allowed      []string
	confirm      []string
	own          []string // of confirm, if they are the operator's own and not the default
	allowNetwork bool
	unasked      Unasked
}

// assignment matches a text that begins with an assignment.
var assignment = regexp.MustCompile(`^\s*[A-Za-z_][A-Za-z0-9_]*(\[[^]]*\])?\+?=`)

func compileShell(o Options) (shellRules, error) {
	r := shellRules{
		allowed: slices.Clone(o.AllowedCommands), confirm: slices.Clone(o.ConfirmPatterns),
		allowNetwork: o.AllowNetwork, unasked: o.Unasked,
	}
	if !slices.Equal(o.ConfirmPatterns, command.DefaultConfirm()) {
		r.own = r.confirm
	}
	var errs []error
	blank := func(key string, list []string) {
		for i, v := range list {
			if strings.TrimSpace(v) == "" {
				errs = append(errs, problemf(fmt.Sprintf("tools.shell.%s[%d]", key, i), "is empty; take it out"))
			}
		}
	}
	blank("blocked_commands", o.BlockedCommands)
	blank("allowed_commands", o.AllowedCommands)
	blank("confirm_patterns", o.ConfirmPatterns)
	for _, b := range o.BlockedCommands {
		r.blocked = append(r.blocked, foldText(b))
	}
	if o.AllowNetwork {
		// With the network on, network commands ask like other commands; only running a download stays blocked.
		r.allowed = append(r.allowed, "curl", "wget", "nc", "ncat", "netcat")
	}
	return r, errors.Join(errs...)
}

// hard denies what no permission can allow: the built-in blocklist, the blocked commands of the config and, with the
// network off, network commands.
func (r *shellRules) hard(c *call, legacy bool) (Decision, bool) {
	for i := range c.scripts {
		sc := &c.scripts[i].Script
		if pattern, ok := command.Blocked(*sc, r.allowed); ok {
			return because(
				Deny, fmt.Sprintf("built-in: blocklist %q", pattern), reason.New(reason.CommandNever, quoted(pattern)),
			), true
		}
		if pattern, ok := r.blocks(sc, legacy); ok {
			return because(Deny, fmt.Sprintf(
				"shell.blocked_commands %q deny", pattern,
			), reason.New(reason.CommandBlocked, quoted(pattern))), true
		}
		if name, ok := command.Network(*sc); ok && !r.allowNetwork {
			return because(Deny, fmt.Sprintf(
				"built-in: allow_network = false, %q", name,
			), reason.New(reason.NetworkOff, quoted(name))), true
		}
	}
	return Decision{}, false
}

// blocks returns the blocked command that occurs in a script. It always matches by name. Without permission rules for
// bash, it also matches anywhere in the text, like a deny rule `*cmd*` (seed 003).
func (r *shellRules) blocks(sc *command.Script, legacy bool) (string, bool) {
	if len(r.blocked) == 0 {
		return "", false
	}
	whole := foldText(sc.Text)
	for _, b := range r.blocked {
		if legacy && strings.Contains(whole, b) {
			return b, true
		}
		for i := range sc.Commands {
			cmd := &sc.Commands[i]
			if legacy && strings.Contains(foldText(cmd.Text), b) ||
				startsWith(foldText(byName(cmd)), strings.TrimSpace(b)) {
				return b, true
			}
		}
	}
	return r.blocksLater(sc)
}

// byName returns the command with the base name of its program instead of its path.
func byName(cmd *command.Command) string {
	if len(cmd.Words) < 2 {
		return cmd.Name
	}
	return cmd.Name + " " + strings.Join(cmd.Words[1:], " ")
}

// startsWith compares a command with a blocked one. A name must match the whole name (mkfs also matches mkfs.ext4);
// several words must match the start of the text.
func startsWith(text, blocked string) bool {
	if strings.Contains(blocked, " ") {
		return strings.HasPrefix(text, blocked)
	}
	name, _, _ := strings.Cut(text, " ")
	return name == blocked || strings.HasPrefix(name, blocked+".")
}

// permitBash decides about every script of the call. The strictest answer wins.
func (s *Set) permitBash(c *call, table []permission) answer {
	var a answer
	for i := range c.scripts {
		var b answer
		sc := &c.scripts[i].Script
		if len(table) == 0 {
			b = s.shell.builtin(c, sc)
		} else {
			b = s.later(table, sc, byTable(table, sc))
		}
		b = s.grantedScript(c, table, sc, b)
		if i == 0 {
			a = b
		}
		a = a.stricter(b)
	}
	return a
}

// byTable decides about a script by the permission rules: each simple command by the first match, and the whole text by
// every deny and ask rule. What cannot be foreseen is never allowed without asking.
func byTable(table []permission, sc *command.Script) answer {
	one := single(sc)
	var a answer
	if len(sc.Commands) == 0 || sc.Problem != "" {
		a = byRules(table, sc.Text)
	}
	whole := newSubject(sc.Text)
	var alone *subject
	if one {
		alone = whole
	}
	seen := repeats{}
	for i := range sc.Commands {
		cmd := &sc.Commands[i]
		b := seen.byCommand(table, cmd, alone)
		if a.effect == "" {
			a = b
		}
		a = a.stricter(b)
	}
	if !one {
		a = byWhole(table, sc, whole, a)
	}
	if a.effect != Allow {
		return a
	}
	if !sc.Judged() {
		return uncertain(sc, a.rule)
	}
	if target, ok := written(sc); ok {
		return overwrites(sc, target, a.rule)
	}
	return a
}

// single reports whether the text is just one simple command.
func single(sc *command.Script) bool {
	return len(sc.Commands) == 1 && len(sc.Redirects) == 0 && sc.Problem == "" && !assignment.MatchString(sc.Text)
}

// byCommand applies the first rule that matches a simple command. An allow rule must match the words as the shell reads
// them. A deny or ask rule may also match the base name instead of a path, or the text if it contains only this command
// (alone; nil = it does not). A rule that names variables matches a command before which all of them are set. An allow
// rule does not match if the options or variables of the command go beyond it; if no other rule matches, the
// answer names the option or variable.
func byCommand(table []permission, cmd *command.Command, alone *subject) answer {
	text := newSubject(cmd.Text)
	var name *subject
	if len(cmd.Words) > 0 && cmd.Words[0] != cmd.Name {
		name = newSubject(byName(cmd))
	}
	strange := odd(cmd)
	none := unmatched(cmd.Text)
	first := text.first(0)
	firsts := [3]byte{first, name.first(first), alone.first(first)}
	for i := range table {
		p := &table[i]
		if !p.mayBegin(firsts) {
			continue // most rules are about other programs
		}
		if !p.finds(cmd) {
			continue
		}
		if p.program.matches(text) && (!strange || p.action != Allow) {
			if p.action != Allow {
				return p.answer(cmd.Text)
			}
			lift, departs := p.departs(cmd)
			if !departs {
				return p.answer(cmd.Text)
			}
			none = lift
		}
		if p.action == Allow {
			continue
		}
		if name != nil && p.program.matches(name) || alone != nil && p.glob.matches(alone) {
			return p.answer(cmd.Text)
		}
	}
	return none
}

// repeats caches the answers for commands by their text, because scripts often repeat commands.
type repeats map[string]repeat

type repeat struct {
	command *command.Command
	answer  answer
}

// byCommand returns the function byCommand with a cache for equal commands.
func (m repeats) byCommand(table []permission, cmd *command.Command, alone *subject) answer {
	if r, ok := m[cmd.Text]; ok && slices.Equal(r.command.Words, cmd.Words) &&
		slices.Equal(r.command.Marks, cmd.Marks) && slices.Equal(r.command.Sets, cmd.Sets) {
		return r.answer
	}
	a := byCommand(table, cmd, alone)
	m[cmd.Text] = repeat{cmd, a}
	return a
}

// odd reports whether the name of a command contains blanks. Its text then looks like a different command with words.
func odd(cmd *command.Command) bool {
	return len(cmd.Words) > 0 && strings.ContainsAny(cmd.Words[0], " \t\n")
}

// byWhole matches deny and ask rules, except a bare *, against the whole text and against its redirections.
func byWhole(table []permission, sc *command.Script, whole *subject, a answer) answer {
	texts := []*subject{whole}
	for _, r := range sc.Redirects {
		texts = append(texts, newSubject(r.Op+" "+r.Target))
	}
	for i := range table {
		p := &table[i]
		if p.glob.all || p.action.rank() <= a.effect.rank() {
			continue
		}
		if slices.ContainsFunc(texts, p.glob.matches) {
			a = p.answer(sc.Text)
		}
	}
	return a
}

// uncertain turns an allow into an ask.
func uncertain(sc *command.Script, rule string) answer {
	why := sc.Unclear()
	return answer{
		effect: Ask,
		rule:   "built-in: indirection (" + rule + ")",
		code:   reason.RunsUncertain,
		about:  &sc.Text,
		of:     &why,
	}
}

// builtin decides about a script if bash has no permission rules.
func (r *shellRules) builtin(c *call, sc *command.Script) answer {
	if pattern, ok := command.Confirm(*sc, r.confirm); ok {
		return answer{
			effect: Ask,
			rule:   fmt.Sprintf("shell.confirm_patterns %q ask", pattern),
			code:   reason.ConfirmPattern,
			about:  &pattern,
		}
	}
	if r.readsFreely(c, sc) {
		return answer{
			effect: Allow, rule: "built-in: reading command", reading: c.req.Confined,
			code: reason.ReadsInside,
		}
	}
	if r.unasked == UnaskedConfined && c.req.Confined && !evidentlyWrites(sc) {
		return answer{
			effect: Allow, rule: "built-in: tried where it can change nothing", reading: true,
			code: reason.TriedHarmless,
		}
	}
	if !sc.Certain() {
		return uncertain(sc, "bash asks")
	}
	asks := answer{effect: Ask, rule: "built-in: bash asks", code: reason.NoRule, about: &sc.Text}
	if len(sc.Commands) == 1 {
		asks.about = &sc.Commands[0].Text
	}
	if target, ok := onlyRedirects(sc); ok {
		asks.code, asks.about, asks.target = reason.RedirectionWrites, &sc.Text, &target
	}
	return asks
}

// later denies a script in which an unknown program may run something that a deny rule matches: "choom -n 0 -- rm x"
// with the rule "rm *".
func (s *Set) later(table []permission, sc *command.Script, a answer) answer {
	if a.effect == Deny || len(s.denied) == 0 {
		return a
	}
	for name, words := range sc.Later() {
		if !s.denied[name] {
			continue
		}
		cmd := command.Command{Name: name, Words: words, Text: strings.Join(words, " ")}
		if b := byCommand(table, &cmd, nil); b.effect == Deny {
			return b
		}
	}
	return a
}

// deniedPrograms returns the programs with which deny rules begin, folded: "rm" for "rm *" and for "rm*". A rule that
// begins with a wildcard names none, but it is matched against the whole text anyway.
func (s *Set) deniedPrograms(list []act.Tool) map[string]bool {
	names := map[string]bool{}
	for i := range list {
		if list[i].Act == act.Runs {
			addDenied(names, s.table(list[i].Name))
		}
	}
	return names
}

func addDenied(names map[string]bool, table []permission) {
	for i := range table {
		if table[i].action != Deny {
			continue
		}
		name, _, _ := strings.Cut(table[i].glob.pattern, " ")
		if at := strings.IndexAny(name, "*?["); at >= 0 {
			name = name[:at]
		}
		if name != "" {
			names[foldText(name)] = true
		}
	}
}

// blocksLater searches for a blocked command among the words that an unknown program may run.
func (r *shellRules) blocksLater(sc *command.Script) (string, bool) {
	for name, words := range sc.Later() {
		for _, b := range r.blocked {
			b = strings.TrimSpace(b)
			if first, _, _ := strings.Cut(b, " "); name == first &&
				startsWith(foldText(strings.Join(append([]string{name}, words[1:]...), " ")), b) {
				return b, true
			}
		}
	}
	return "", false
}

// overwrites turns an allow into an ask: a rule is about the command, not about the file that its output goes to. This
// applies to every allow rule, including one that names the redirection.
func overwrites(sc *command.Script, target, rule string) answer {
	return answer{
		effect: Ask,
		rule:   "built-in: redirection that writes (" + rule + ")",
		code:   reason.RedirectionWrites,
		about:  &sc.Text,
		target: &target,
	}
}

// onlyRedirects returns the file to which a script writes that would only read without its redirections.
func onlyRedirects(sc *command.Script) (target string, ok bool) {
	bare := *sc
	bare.Redirects = nil
	if _, ok := command.ReadsOnly(bare); !ok {
		return "", false
	}
	return written(sc)
}

// written returns the target of the first redirection that may create or change a file.
func written(sc *command.Script) (target string, ok bool) {
	for i := range sc.Redirects {
		if sc.Redirects[i].Writes {
			return sc.Redirects[i].Target, true
		}
	}
	return "", false
}

// Confirms reports whether the operator wants a person to approve a command before anything of it runs, not even
// without effect: an ask rule may be about a part of it, in whatever order the rules are, or a confirm pattern that is
// not one of the built-in ones. In a command that is not certain, such a part may be hidden. The rules about files
// count too: what has to be approved because of what it reads must not show it before.
func (s *Set) Confirms(r Request) bool {
	c := s.newCall(&r)
	if !c.runs() {
		return false
	}
	if s.judgeFiles(c).effect == Ask {
		return true
	}
	table := slices.DeleteFunc(slices.Clone(s.table(c.tool)), func(p permission) bool { return p.action != Ask })
	if len(table) == 0 && len(s.shell.own) == 0 {
		return false
	}
	for i := range c.scripts {
		sc := &c.scripts[i].Script
		if _, ok := command.Contains(*sc, s.shell.own); ok || !sc.Certain() || about(table, sc) {
			return true
		}
	}
	return false
}

// about reports whether a rule matches a script, a command in it, or a redirection.
func about(rules []permission, sc *command.Script) bool {
	subjects := []*subject{newSubject(sc.Text)}
	add := func(cmd *command.Command) {
		for _, text := range []string{cmd.Text, byName(cmd)} { // a wrapper such as xargs may add words
			subjects = append(subjects, newSubject(text), newSubject(text+" "))
		}
	}
	for i := range sc.Commands {
		add(&sc.Commands[i])
	}
	for name, words := range sc.Later() {
		add(&command.Command{Name: name, Words: words, Text: strings.Join(words, " ")})
	}
	for _, r := range sc.Redirects {
		subjects = append(subjects, newSubject(r.Op+" "+r.Target))
	}
	return slices.ContainsFunc(rules, func(p permission) bool {
		return slices.ContainsFunc(subjects, p.program.matches)
	})
}
