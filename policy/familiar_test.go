package policy_test

import (
	"strings"
	"testing"

	"github.com/zephbot/zephbot/policy"
)

// TestReasonsNameNoServerPath: people read paths as they know them.
func TestReasonsNameNoServerPath(t *testing.T) {
	t.Parallel()
	set, err := policy.New(policy.Options{Tools: stated()})
	if err != nil {
		t.Fatal(err)
	}
	for input, want := range map[string]string{
		"/srv/data/workspaces/telegram_1/notes.txt": "`notes.txt`",
		"/srv/data/workspaces/telegram_1":           "`.`",
		"/elsewhere/x":                              "`/elsewhere/x`",
	} {
		for _, inside := range [][]string{{"/srv/data/workspaces/telegram_1", "/elsewhere"}, nil, {"/"}} {
			d := set.Decide(policy.Request{Tool: "write", Inputs: []string{input}, InsidePaths: inside})
			wanted := want
			if len(inside) < 2 {
				wanted = ""
			}
			if d.Effect != policy.Ask || !strings.Contains(d.Reason.String(), wanted) {
				t.Errorf("%s inside %v: %+v, want %s", input, inside, d, wanted)
			}
		}
	}
}
