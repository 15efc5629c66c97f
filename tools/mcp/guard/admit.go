package guard

import (
	"fmt"
	"slices"
	"strings"
)

// Server is the part of a server's configuration that decides which of its tools are admitted.
type Server struct {
	ID             string
	Trust          Trust
	Allow          *[]string // tool_allowlist, with sanitised names; nil = not set
	Expected       []string  // expected_tools; empty = anything
	MaxDescription int       // bytes; 0 = DefaultMaxDescription
}

// Drop is a tool that was not admitted, and the reason: one sentence without a full stop.
type Drop struct {
	Tool, Reason string
}

// Admitted is the result of Admit: the tools that a model may be offered.
type Admitted struct {
	Tools    []Tool    // in the server's order
	Findings []Finding // including those about dropped tools
	Dropped  []Drop
	Warnings []string // for the log and for "mcp test", one sentence each
}

// Admit selects from the tools that a server offers, in this order: the first 100; sanitised, always; without those
// that need tasks; for servers that are not trusted, without those with instructions in places that cannot be changed;
// those in expected_tools; those in tool_allowlist.
func (s Server) Admit(offered []Tool) Admitted {
	var a Admitted
	if len(offered) > MaxTools {
		a.warn("the server %s offers %d tools; only the first %d are used", s.ID, len(offered), MaxTools)
		offered = offered[:MaxTools]
	}
	a.Tools, a.Findings = Sanitise(s.ID, offered, s.MaxDescription)
	all := make([]string, len(a.Tools))
	for i, t := range a.Tools {
		all[i] = t.Name
	}
	a.keep(func(t Tool) string {
		if t.NeedsTask {
			return "it can only be called as a task, which is not done here"
		}
		return ""
	})
	s.withhold(&a)
	s.attest(&a)
	s.list(&a, all)
	return a
}

func (a *Admitted) warn(format string, args ...any) {
	a.Warnings = append(a.Warnings, fmt.Sprintf(format, args...))
}

// keep drops the tools for which reason returns a text.
func (a *Admitted) keep(reason func(t Tool) string) {
	kept := a.Tools[:0]
	for _, t := range a.Tools {
		if r := reason(t); r != "" {
			a.Dropped = append(a.Dropped, Drop{Tool: t.Name, Reason: r})
			continue
		}
		kept = append(kept, t)
	}
	a.Tools = kept
}

// withhold drops tools with instructions in the names of parameters. A valid call has to repeat those names, so they
// cannot be replaced.
func (s Server) withhold(a *Admitted) {
	bad := map[string]string{}
	for _, f := range a.Findings {
		if f.Injection() && f.Kept {
			bad[f.Tool] = f.Field
		}
	}
	if len(bad) == 0 {
		return
	}
	if s.Trust == Trusted {
		for _, t := range a.Tools {
			if field := bad[t.Name]; field != "" {
				a.warn("the tool %s tries to instruct the model at %s, where it cannot be taken out",
					Qualified(s.ID, t.Name), field)
			}
		}
		return
	}
	a.keep(func(t Tool) string {
		if field := bad[t.Name]; field != "" {
			return "it tries to instruct the model at " + field + ", where it cannot be taken out"
		}
		return ""
	})
}

// attest compares the tools with expected_tools. Other tools are kept with a warning for a trusted server, and dropped
// for the rest. Missing tools are fine.
func (s Server) attest(a *Admitted) {
	if len(s.Expected) == 0 {
		return
	}
	if s.Trust == Trusted {
		for _, t := range a.Tools {
			if !slices.Contains(s.Expected, t.Name) {
				a.warn(
					"the tool %s is not among the expected_tools of its server; it is kept because the "+
						"server is trusted",
					Qualified(s.ID, t.Name),
				)
			}
		}
		return
	}
	a.keep(func(t Tool) string {
		if slices.Contains(s.Expected, t.Name) {
			return ""
		}
		return "it is not among the expected_tools of its server"
	})
}

// list applies tool_allowlist according to the trust level. all are the names of the server's tools.
func (s Server) list(a *Admitted, all []string) {
	switch {
	case s.Trust == Trusted:
		return
	case s.Allow == nil && s.Trust == Untrusted:
		if len(a.Tools) > 0 {
			a.warn(
				"the server %s is untrusted and has no tool_allowlist: all %d tools are offered; list the "+
					"ones you want",
				s.ID, len(a.Tools),
			)
		}
		return
	}
	var allow []string
	if s.Allow != nil {
		allow = *s.Allow
	}
	var strangers []string
	for _, name := range allow {
		if !slices.Contains(all, name) {
			strangers = append(strangers, shown(name))
		}
	}
	if len(strangers) > 0 {
		a.warn("tool_allowlist of the server %s names what it does not have: %s", s.ID,
			strings.Join(strangers[:min(len(strangers), 10)], ", "))
	}
	if len(allow) == 0 && len(a.Tools) > 0 {
		a.warn("the server %s is %s and its tool_allowlist is empty: none of its %d tools is offered", s.ID, s.Trust,
			len(a.Tools))
	}
	a.keep(func(t Tool) string {
		if slices.Contains(allow, t.Name) {
			return ""
		}
		return "it is not in the tool_allowlist of its server"
	})
}
