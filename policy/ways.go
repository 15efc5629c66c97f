package policy

import (
	"net/url"
	"slices"
	"strings"

	"github.com/zephbot/zephbot/policy/act"
	"github.com/zephbot/zephbot/policy/command"
	"github.com/zephbot/zephbot/policy/grant"
	"github.com/zephbot/zephbot/policy/netrule"
	"github.com/zephbot/zephbot/policy/reason"
)

// WayRule begins Decision.Rule of a call that is asked about because it may carry something out of the conversation.
const WayRule = "built-in: way out"

// Address is a web address of a call.
type Address struct {
	// URL is the address in normal form (netrule.Plain).
	URL string
	// Origin says who has brought it into the conversation.
	Origin netrule.Origin
	// Room: fewer than netrule.MostOpened addresses of its site were opened in this turn because they were found.
	Room bool
}

// QuietHosts is the default of [Options.QuietHosts]: places that publish no visits, open no other address for a visitor
// and redirect to no other place that a visitor chooses.
func QuietHosts() []string {
	return []string{
		"api.github.com", "raw.githubusercontent.com", "developer.mozilla.org", "docs.python.org", "doc.rust-lang.org",
		"docs.rs", "go.dev", "pkg.go.dev", "www.rfc-editor.org",
	}
}

// wayOut asks about a call that is allowed and may carry something out of a conversation with foreign text: to an
// address that the model has put together, to an MCP server that it writes to, by a network command. What is private
// needs no second condition, since people have written in every conversation.
func (s *Set) wayOut(c *call, a answer) (Decision, bool) {
	if c.req.Foreign == "" {
		return Decision{}, false
	}
	d := s.way(c, strings.HasPrefix(a.rule, grant.RulePrefix) || a.reading)
	if d.Reason.Code == "" {
		return d, false
	}
	d.Effect, d.Rule = Ask, WayRule+" ("+a.rule+")"
	if c.req.Session == "" || c.req.Caller == "" {
		d.Whole = nil
	}
	return d, true
}

// way returns why a call may carry something out, and what may be approved instead of it alone; no reason = it may not.
// granted: a person has seen this call, or approved all calls of its tool for this
// conversation; or it runs without a network.
func (s *Set) way(c *call, granted bool) Decision {
	r := c.req
	switch {
	case granted:
	case c.runs():
		if name, leads := s.networkOut(c); leads {
			return because("", "", reason.New(reason.WayNetwork, shorten(r.Foreign), quoted(name)))
		}
	case isMCP(c.tool) && !r.ReadOnly && !r.Reads:
		if server, _, _ := strings.Cut(c.tool, ":"); !s.hostApproved(c, "") {
			d := because("", "", reason.New(reason.WayServer, shorten(r.Foreign), quoted(server)))
			if r.Server != "" {
				d.Whole = s.hostGrant(c, "")
			}
			return d
		}
	case isMCP(c.tool), c.act == act.ReadsWeb:
		for i := range r.Addresses {
			to := &r.Addresses[i]
			switch host := netrule.HostOf(to.URL); {
			case s.opens(c, to):
			case to.Origin == netrule.Found:
				d := because("", "", reason.New(reason.WayPages, quoted(netrule.Site(host))))
				d.Whole = s.hostGrant(c, host)
				return d
			default:
				d := because("", "", reason.New(reason.WayAddress, shorten(r.Foreign), quoted(host)))
				d.Whole = s.hostGrant(c, host)
				return d
			}
		}
	}
	return Decision{}
}

// hostGrant returns the approval of a host, or with "" of the MCP server of the call, for the rest of the conversation.
func (s *Set) hostGrant(c *call, host string) *Grant {
	r := c.req
	return &Grant{
		Tool:       c.tool,
		Kind:       GrantHost,
		Input:      host,
		Server:     r.Server,
		Definition: r.Definition,
		Session:    r.Session,
		Caller:     r.Caller,
	}
}

// opens reports whether an address may be opened without a question.
func (s *Set) opens(c *call, to *Address) bool {
	host := netrule.HostOf(to.URL)
	return to.Origin == netrule.Given || to.Origin == netrule.Found && to.Room ||
		s.quiet(host) || s.hostApproved(c, host)
}

// quiet reports whether a host is one of QuietHosts.
func (s *Set) quiet(host string) bool { return netrule.Listed(host, s.quietHosts) }

// hostApproved reports whether a person has approved a host, or with "" the MCP server of
// the call, for this conversation.
func (s *Set) hostApproved(c *call, host string) bool {
	r := c.req
	return r.Session != "" && slices.ContainsFunc(r.Grants, func(g Grant) bool {
		if g.Kind != GrantHost || g.Session != r.Session || g.Caller != r.Caller || g.Input != host {
			return false
		}
		if host != "" {
			return true
		}
		server, _, _ := strings.Cut(c.tool, ":")
		approved, _, _ := strings.Cut(g.Tool, ":")
		return server == approved && g.Server != "" && g.Server == r.Server
	})
}

// networkOut returns the first network command of a call that sends more than a request
// to addresses that may be opened.
func (s *Set) networkOut(c *call) (name string, leads bool) {
	for _, reading := range c.scripts {
		sc := &reading.Script
		if _, ok := command.Network(*sc); !ok {
			continue
		}
		if len(sc.Commands) == 0 || sc.Problem != "" {
			name, _ = command.Network(*sc)
			return name, true
		}
		known := false
		for i := range sc.Commands {
			name, ok := command.Network(command.Script{Commands: sc.Commands[i : i+1]})
			if known = known || ok; ok && !s.requests(c, &sc.Commands[i]) {
				return name, true
			}
		}
		if name, ok := command.Network(command.Script{Redirects: sc.Redirects}); ok || !known {
			return name, true
		}
	}
	return "", false
}

// requests reports whether a command only requests addresses that may be opened: curl or wget with nothing but these
// and options that send nothing.
func (s *Set) requests(c *call, cmd *command.Command) bool {
	if cmd.Dynamic || cmd.Name != "curl" && cmd.Name != "wget" {
		return false
	}
	for _, word := range cmd.Words[1:] {
		if slices.Contains(plainOptions, word) {
			continue
		}
		normal, ok := netrule.Plain(word)
		i := slices.IndexFunc(c.req.Addresses, func(a Address) bool { return a.URL == normal })
		if !ok || i < 0 || !s.opens(c, &c.req.Addresses[i]) {
			return false
		}
	}
	return true
}

// plainOptions are options of curl and wget that send nothing of a conversation.
var plainOptions = strings.Fields("-s -S -f -L -I -O -q -sS -sL -sO -fsS -fsSL -sSL -sSf -sSfL -LO -OL -nv --silent " +
	"--show-error --fail --location --head --remote-name --compressed --quiet")

// Follows reports whether a call that was allowed without a person may follow a redirect from the address before it.
// asked is the address of the call.
//
// Where the call's address was not put together by the model, what a server answers is not the model's choice
// either, and counts like any address that was found. Where it was, it may have been chosen so that the server
// sends what is in it on to another place.
func (s *Set) Follows(r Request, asked, before, to Address) bool {
	c := s.newCall(&r)
	return r.Foreign == "" || s.opens(c, &to) || host(before.URL) == host(to.URL) ||
		asked.Origin == netrule.Given || asked.Origin == netrule.Found && to.Room
}

// host returns the host and port of an address.
func host(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Host
}
