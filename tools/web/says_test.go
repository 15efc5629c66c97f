package web_test

import (
	"testing"

	"github.com/zephbot/zephbot/policy/act"
	"github.com/zephbot/zephbot/tools/toolstest"
	"github.com/zephbot/zephbot/tools/web"
)

// TestSays pins what decides whether calls run without a question, and which results are remembered.
func TestSays(t *testing.T) {
	t.Parallel()
	toolstest.CheckSays(t, web.Says(), map[string]toolstest.Said{
		"fetch":      {Act: act.ReadsWeb, Cache: act.Web},
		"web_scrape": {Act: act.ReadsWeb, Cache: act.Web},
		"web_search": {Act: act.ReadsWeb, Cache: act.Web},
	})
}
