package policy

import (
	"path"
	"slices"
	"strings"

	"github.com/zephbot/zephbot/policy/command"
)

// Offers returns the standing approvals that would answer a request that asks, or that may have to ask because reading
// is too little for it. It is empty if the call does not ask, if
// no grant can cover it, and if there is flagged or foreign content because of which it asks.
func (s *Set) Offers(r Request) []Offer {
	if d := s.Decide(r); r.Suspicious != "" || r.Foreign != "" || d.Effect != Ask && !d.Reading {
		return nil
	}
	c := s.newCall(&r)
	offers := s.inputOffers(c)
	if c.runs() {
		offers = s.scriptOffers(c)
	}
	var out []Offer
	for _, o := range offers {
		with := r
		with.Grants = append(slices.Clip(r.Grants), o.Grants...)
		if d := s.Decide(with); len(o.Grants) > 0 && d.Effect == Allow && !d.Reading {
			out = append(out, o)
		}
	}
	return out
}

// scriptOffers returns the choices for the commands of a script that ask.
func (s *Set) scriptOffers(c *call) []Offer {
	if len(c.scripts) != 1 {
		return nil
	}
	exact, prefix := Offer{Kind: OfferExact}, Offer{Kind: OfferPrefix}
	every := true
	units := c.units(&c.scripts[0].Script)
	for i := range units {
		u := &units[i]
		if s.free(c, s.table(c.tool), u) {
			continue
		}
		if g, _ := c.grantFor(u); g != nil {
			continue
		}
		g := Grant{
			Tool: c.tool, Kind: GrantExact, Words: u.Words, Feed: u.Feed, Stdin: u.Stdin, Dir: u.dir,
			Files: u.files,
		}
		exact.Grants = append(exact.Grants, g)
		n := command.PrefixWords(u.Words)
		if every = every && n > 0; every {
			prefix.Grants = append(prefix.Grants, Grant{
				Tool: c.tool, Kind: GrantPrefix, Words: u.Words[:n], Dir: u.dir,
				Files: u.files,
			})
		}
	}
	if !every {
		return []Offer{exact}
	}
	return []Offer{exact, prefix}
}

// inputOffers returns the choices for a tool that runs no commands.
func (s *Set) inputOffers(c *call) []Offer {
	exact, dir, ext := Offer{Kind: OfferExact}, Offer{Kind: OfferDirectory}, Offer{Kind: OfferExtension}
	if isMCP(c.tool) {
		exact.Grants = []Grant{{
			Tool: c.tool, Kind: GrantExact, Input: c.inputs[0], Server: c.req.Server,
			Definition: c.req.Definition,
		}}
		return []Offer{exact}
	}
	for _, input := range c.inputs {
		g := Grant{Tool: c.tool, Kind: GrantExact, Input: input}
		exact.Grants = append(exact.Grants, g)
		if !path.IsAbs(input) || !within(c.req.InsidePaths, path.Dir(input)) {
			continue
		}
		g = Grant{Tool: c.tool, Kind: GrantPath, Dir: path.Dir(input)}
		dir.Grants = append(dir.Grants, g)
		if g.Ext = path.Ext(input); len(g.Ext) > 1 && !strings.HasPrefix(path.Base(input), ".") {
			ext.Grants = append(ext.Grants, g)
		}
	}
	offers := []Offer{exact}
	for _, o := range []Offer{dir, ext} {
		if len(o.Grants) == len(c.inputs) {
			offers = append(offers, o)
		}
	}
	return offers
}
