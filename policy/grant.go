package policy

import "github.com/zephbot/zephbot/policy/command"

// Grant is an approval stored by "Always": it turns ask into allow for one
// tool and what the pattern matches. It stands after every denial, and in bash
// it never covers indirection, expansions or redirections that write.
type Grant struct {
	// Tool is the canonical name.
	Tool string
	// Pattern is a glob in exact case over one simple command, path or URL;
	// see [CompileGlob] and [QuoteGlob]. For bash a bare * covers nothing.
	Pattern string
}

// grant is a Grant that holds for this call.
type grant struct {
	glob *Glob
	name string
}

// grants compiles those of the request that are for the tool. One that does
// not compile covers nothing: the call asks, as without it.
func (c *call) grants() []grant {
	if c.grantsKnown {
		return c.grantList
	}
	c.grantsKnown = true
	for _, g := range c.req.Grants {
		if CanonicalTool(g.Tool) != c.tool {
			continue
		}
		glob, err := CompileGlob(g.Pattern, false)
		if err != nil || c.tool == "bash" && glob.all {
			continue
		}
		c.grantList = append(c.grantList, grant{glob: glob, name: "grant: " + c.tool + " " + quoted(g.Pattern)})
	}
	return c.grantList
}

// granted turns an ask about the input into an allow when a grant covers it.
func (c *call) granted(a answer, input string) answer {
	if a.effect != Ask {
		return a
	}
	for _, g := range c.grants() {
		if g.glob.Match(input) {
			return answer{effect: Allow, rule: g.name, before: "An admin allowed ", about: &input, after: " for always."}
		}
	}
	return a
}

// grantable reports that grants may cover the commands of a script at all.
func grantable(sc *command.Script) bool {
	return sc.Certain() && !writes(sc)
}

// writes reports a redirection that may change a file.
func writes(sc *command.Script) bool {
	for _, r := range sc.Redirects {
		if r.Writes {
			return true
		}
	}
	return false
}

// Offer gives the grants that "Always" would store for a request that asks,
// and nil when the call does not ask, no grant could cover it, or flagged
// content stands in this turn.
func (s *Set) Offer(r Request) []Grant {
	if r.Suspicious != "" || s.Decide(r).Effect != Ask {
		return nil
	}
	c := newCall(&r, CanonicalTool(r.Tool))
	var out []Grant
	if c.tool != "bash" {
		for _, input := range c.inputs {
			pattern := QuoteGlob(input)
			if input == "" {
				pattern = "*"
			}
			out = append(out, Grant{Tool: c.tool, Pattern: pattern})
		}
	}
	for i := range c.scripts {
		for _, cmd := range s.asking(c, &c.scripts[i]) {
			out = append(out, Grant{Tool: c.tool, Pattern: QuoteGlob(cmd.Text)})
		}
	}
	r.Grants = append(append([]Grant(nil), r.Grants...), out...)
	if s.Decide(r).Effect != Allow {
		return nil
	}
	return out
}

// asking lists the commands of a script that ask.
func (s *Set) asking(c *call, sc *command.Script) []command.Command {
	table := s.table("bash")
	var out []command.Command
	for i := range sc.Commands {
		cmd := sc.Commands[i]
		switch {
		case len(table) > 0:
			if a, _ := byCommand(table, &cmd, nil); a.effect != Ask {
				continue
			}
		case s.shell.readsFreely(c, only(sc, sc.Commands[i:i+1])):
			continue
		}
		out = append(out, cmd)
	}
	return out
}

// only is the script with other commands.
func only(sc *command.Script, commands []command.Command) command.Script {
	rest := *sc
	rest.Commands = commands
	return rest
}
