package tools_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/tools"
)

// TestChecklist: what is shown of a plan fits, and has the step in progress in it.
func TestChecklist(t *testing.T) {
	t.Parallel()
	list := func(completed, all int) (list []tools.PlanEntry) {
		for i := range all {
			e := tools.PlanEntry{Text: fmt.Sprint("step ", i), Status: tools.PlanPending}
			if i < completed {
				e.Status = tools.PlanCompleted
			} else if i == completed {
				e.Status = tools.PlanInProgress
			}
			list = append(list, e)
		}
		return list
	}
	if diff := cmp.Diff([]string{"☑ step 0", "▶ step 1", "☐ step 2"}, tools.Checklist(list(1, 3), 8)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"☑ +5", "☑ step 5", "▶ step 6", "☐ step 7", "☐ +12"}, tools.Checklist(list(6, 20), 5)); diff != "" {
		t.Error(diff)
	}
	for all := range tools.MostPlanned + 1 {
		for completed := range all + 1 {
			for most := 1; most < 12; most++ {
				lines := tools.Checklist(list(completed, all), most)
				text := strings.Join(lines, "\n")
				if len(lines) > max(most, 3) || completed < all && !strings.Contains(text, fmt.Sprint("▶ step ", completed)) {
					t.Fatalf("%d of %d in %d lines:\n%s", completed, all, most, text)
				}
				shown := strings.Count(text, "step ")
				for _, line := range lines {
					var n int
					if _, err := fmt.Sscanf(line[len("☑ "):], "+%d", &n); err == nil {
						if shown += n; n < 2 {
							t.Fatalf("%d of %d in %d lines: a line for one\n%s", completed, all, most, text)
						}
					}
				}
				if shown != all {
					t.Fatalf("%d of %d in %d lines: %d are accounted for\n%s", completed, all, most, shown, text)
				}
			}
		}
	}
}
