package sql_test

import (
	"regexp"
	"testing"

	"github.com/zephbot/zephbot/persistence/sql"
)

// fullScan is a plan that reads a whole table or an index that holds every row. Partial indexes hold only open work.
var fullScan = regexp.MustCompile(`^SCAN (inbox|outbox|o|lane|journal|approval|charge|fact|tool_overflow)( USING .*INDEX (.*))?$`)

func TestFinishedRowsCostNothing(t *testing.T) {
	t.Parallel()
	plans, err := open(t, sql.Options{}).Explain(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	open := map[string]bool{"inbox_lane": true, "inbox_dead": true, "approval_pending": true}
	for name, plan := range plans {
		for _, line := range plan {
			if found := fullScan.FindStringSubmatch(line); found != nil && !open[found[3]] {
				t.Errorf("%s: %s", name, line)
			}
		}
	}
	if len(plans) < 15 {
		t.Errorf("%d plans only", len(plans))
	}
}
