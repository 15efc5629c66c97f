package file_test

import (
	"testing"

	"github.com/zephbot/zephbot/policy/act"
	"github.com/zephbot/zephbot/tools/file"
	"github.com/zephbot/zephbot/tools/toolstest"
)

// TestSays pins what decides whether calls run without a question, and which results are remembered.
func TestSays(t *testing.T) {
	t.Parallel()
	toolstest.CheckSays(t, file.Says(), map[string]toolstest.Said{
		"read":             {Act: act.ReadsFile, Cache: act.Files},
		"write":            {Act: act.WritesFile},
		"edit":             {Act: act.WritesFile},
		"find_path":        {Act: act.Searches, Cache: act.Files},
		"grep":             {Act: act.Searches, Cache: act.Files},
		"list_directory":   {Act: act.Searches, Cache: act.Files},
		"create_directory": {Act: act.MakesDirectory},
		"delete_path":      {Act: act.RemovesPath},
		"move_path":        {Act: act.MovesPath},
		"copy_path":        {Act: act.CopiesPath},
		"send_file":        {Act: act.ShowsFile},
	})
}
