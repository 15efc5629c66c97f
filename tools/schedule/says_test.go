package schedule_test

import (
	"testing"

	"github.com/zephbot/zephbot/policy/act"
	"github.com/zephbot/zephbot/tools/schedule"
	"github.com/zephbot/zephbot/tools/toolstest"
)

// TestSays pins what decides whether calls run without a question, and which results are remembered.
func TestSays(t *testing.T) {
	t.Parallel()
	toolstest.CheckSays(t, schedule.Says(), map[string]toolstest.Said{
		"schedule_periodic": {Act: act.Keeps},
		"schedule_deferred": {Act: act.Keeps},
		"list_tasks":        {Act: act.Recalls},
		"cancel_task":       {Act: act.Keeps},
	})
}
