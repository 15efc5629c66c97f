package memory_test

import (
	"testing"

	"github.com/zephbot/zephbot/bot/memory"
	"github.com/zephbot/zephbot/policy/act"
	"github.com/zephbot/zephbot/tools/toolstest"
)

// TestSays pins what decides whether calls run without a question, and which results are remembered.
func TestSays(t *testing.T) {
	t.Parallel()
	toolstest.CheckSays(t, memory.Says(), map[string]toolstest.Said{
		"memory_save":   {Act: act.Remembers},
		"memory_search": {Act: act.Recalls},
		"memory_forget": {Act: act.Remembers},
	})
}
