package catalog_test

import (
	"testing"

	"github.com/zephbot/zephbot/agent/catalog"
	"github.com/zephbot/zephbot/policy/act"
	"github.com/zephbot/zephbot/tools/toolstest"
)

// TestSays pins what decides whether calls run without a question, and which results are remembered.
func TestSays(t *testing.T) {
	t.Parallel()
	toolstest.CheckSays(t, catalog.Says(), map[string]toolstest.Said{
		"tool_search": {Act: act.Recalls},
	})
}
