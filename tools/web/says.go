package web

import "github.com/zephbot/zephbot/policy/act"

// Says returns the statements of this package's tools for the policy.
func Says() []act.Tool {
	return []act.Tool{
		{Name: "fetch", Statement: act.Statement{Act: act.ReadsWeb, Verb: act.Fetch, Cache: act.Web}},
		{Name: "web_scrape", Statement: act.Statement{Act: act.ReadsWeb, Verb: act.Read, Cache: act.Web}},
		{Name: SearchName, Statement: act.Statement{Act: act.ReadsWeb, Verb: act.Search, Cache: act.Web}},
	}
}
