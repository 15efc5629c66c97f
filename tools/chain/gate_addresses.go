package chain

import (
	"encoding/json"

	"github.com/zephbot/zephbot/policy"
	"github.com/zephbot/zephbot/policy/act"
	"github.com/zephbot/zephbot/policy/netrule"
	"github.com/zephbot/zephbot/tools"
)

// mostAddresses bounds the addresses of one call that are looked at. A call with more of them is judged by the first.
const mostAddresses = 256

// takeAddresses returns the web addresses of a call that reads the web, of a command, or of a tool of a server, and
// takes their sites (tools.Addresses.Take). Without foreign text in the conversation, nobody asks for them.
func takeAddresses(call *tools.Call) []policy.Address {
	if call.Foreign == "" {
		return nil
	}
	var list []string
	switch {
	case call.Def.Server != "":
		list = urlsInArgs(call.Args)
	case call.Def.Runs() || call.Def.Stated().Act == act.ReadsWeb:
		for _, input := range call.Subject.Inputs {
			if normal, ok := netrule.Plain(input); ok {
				list = append(list, normal)
			} else if call.Def.Runs() {
				list = append(list, netrule.Find(input, mostAddresses, true)...)
			}
		}
	}
	var out []policy.Address
	for _, normal := range list {
		out = append(out, knownAddress(call, normal))
	}
	return out
}

// urlsInArgs returns the addresses in the texts of arguments, with every reading of JSON and with escapes undone.
func urlsInArgs(args json.RawMessage) []string {
	var texts []string
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case string:
			texts = append(texts, v)
		case []any:
			for _, one := range v {
				walk(one)
			}
		case map[string]any:
			for key, one := range v {
				texts = append(texts, key)
				walk(one)
			}
		}
	}
	var v any
	if json.Unmarshal(args, &v) == nil {
		walk(v)
	}
	var out []string
	for _, text := range texts {
		if len(out) < mostAddresses {
			out = append(out, netrule.Find(text, mostAddresses, true)...)
		}
	}
	return out
}

// knownAddress returns what the session knows of an address, and takes its site.
func knownAddress(call *tools.Call, normal string) policy.Address {
	a := policy.Address{URL: normal}
	if call.Addresses == nil {
		return a
	}
	a.Origin = call.Addresses.Origin(normal)
	a.Room = a.Origin == netrule.Found && call.Addresses.Take(netrule.Site(netrule.HostOf(normal)))
	return a
}

// followRedirects returns the check of redirects for a call that nobody was asked about.
func (g *gate) followRedirects(call *tools.Call, r policy.Request) func(before, to string) error {
	var asked policy.Address
	if len(r.Addresses) > 0 {
		asked = r.Addresses[0]
	}
	return func(before, to string) error {
		next := knownAddress(call, to)
		if asked.Origin == netrule.Found && !next.Room && call.Addresses != nil {
			next.Room = call.Addresses.Take(netrule.Site(netrule.HostOf(to)))
		}
		if g.options.Policy.Follows(r, asked, policy.Address{URL: before}, next) {
			return nil
		}
		return &tools.Error{
			Category:   tools.PolicyBlocked,
			Message:    "The page redirects to " + to + ", which may not be opened without a person.",
			Suggestion: "If it matters, open that address itself: then a person is asked.",
		}
	}
}
