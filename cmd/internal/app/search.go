package app

import (
	"fmt"
	"time"

	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/cmd/internal/config"
	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/web"
)

// search builds web_search; none if no backend is configured.
func (c *Core) search() ([]tools.Tool, error) {
	s := c.cfg.WebSearch
	if s.Backend == "" {
		return nil, nil
	}
	common := c.webOptions()
	common.Timeout, common.AllowedDomains, common.DeniedDomains = time.Duration(s.Timeout)*time.Second, nil, nil
	tool, err := web.NewSearch(web.SearchOptions{Backend: s.Backend, URL: s.URL, Key: s.APIKey.Reveal(), MaxResults: s.MaxResults, Web: common})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", config.ErrInvalid, err)
	}
	return []tools.Tool{tool}, nil
}

// unset lists the tools that are absent because a key is not set.
func (c *Core) unset() []texts.Unset {
	if c.cfg.WebSearch.Backend == "" {
		return []texts.Unset{{Tool: web.SearchName, Key: "web_search.backend"}}
	}
	return nil
}
