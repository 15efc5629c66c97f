package skill_test

import (
	"testing"

	"github.com/zephbot/zephbot/policy/act"
	"github.com/zephbot/zephbot/tools/skill"
	"github.com/zephbot/zephbot/tools/toolstest"
)

// TestSays pins what decides whether calls run without a question, and which results are remembered.
func TestSays(t *testing.T) {
	t.Parallel()
	toolstest.CheckSays(t, skill.Says(), map[string]toolstest.Said{
		"use_skill": {Act: act.Recalls},
	})
}
