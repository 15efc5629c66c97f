package app

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/bottest"
	"github.com/zephbot/zephbot/cmd/internal/config"
	"github.com/zephbot/zephbot/persistence"
	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/audit"
)

// small is a core with a store, and nothing else.
func small(t *testing.T, store *bottest.Store, owner string) *Core {
	t.Helper()
	return &Core{cfg: &config.Config{}, log: zerolog.Nop(), now: time.Now, owner: owner, stores: &persistence.Stores{Bot: store}}
}

// TestAuditDue: a line that is stored with what it is about comes into the log once, whenever the process dies, and a
// log that cannot be written loses none.
func TestAuditDue(t *testing.T) {
	t.Parallel()
	path, store := filepath.Join(t.TempDir(), "audit.jsonl"), bottest.New()
	live := func(owner string) *Core {
		c := small(t, store, owner)
		log, err := audit.New(audit.Options{Path: path, ID: owner, Log: zerolog.Nop()})
		if err != nil {
			t.Fatal(err)
		}
		c.audit = log
		return c
	}
	die := func(c *Core) {
		if err := c.audit.Close(); err != nil {
			t.Fatal(err)
		}
	}
	due := func(c *Core, tool string, failed error) []bot.Fact {
		facts := c.due(&tools.Call{ID: "7", Tool: tool, Args: []byte(`{"id":"kind"}`), Trail: &tools.Trail{ApprovedBy: "telegram:1"}}, failed)
		if _, err := store.Apply(t.Context(), &bot.Change{Facts: facts}); err != nil {
			t.Fatal(err)
		}
		return facts
	}
	lines := func(want ...string) {
		t.Helper()
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range want {
			if n := strings.Count(string(raw), w); n != 1 {
				t.Errorf("%s is there %d times:\n%s", w, n, raw)
			}
		}
		left, err := store.FactsOf(t.Context(), dueBucket, "", time.Now())
		if len(left) > 0 || err != nil {
			t.Errorf("still due: %v, %v", left, err)
		}
	}
	first := live("first")
	due(first, "never-written", nil)
	due(first, "refused", &tools.Error{Category: tools.PolicyBlocked, Message: "no", Denied: true})
	die(first) // before it wrote anything
	second := live("second")
	second.settleAudit(t.Context())
	lines(`"tool":"never-written"`, `"reason":"no"`)
	facts := due(second, "written", nil)
	second.settleAudit(t.Context())
	if _, err := store.Apply(t.Context(), &bot.Change{Facts: facts}); err != nil { // it died before that was noted
		t.Fatal(err)
	}
	die(second)
	third := live("third")
	third.settleAudit(t.Context())
	third.settleAudit(t.Context())
	lines(`"tool":"written"`)
	due(third, "closed", nil)
	die(third)
	third.settleAudit(t.Context()) // nothing can be written any more
	fourth := live("fourth")
	fourth.settleAudit(t.Context())
	lines(`"tool":"closed"`)
	die(fourth)
	off := small(t, store, "off")
	if facts := off.due(&tools.Call{Trail: &tools.Trail{}}, errors.New("x")); facts != nil {
		t.Errorf("without a log there is %v", facts)
	}
	off.settleAudit(t.Context())
}
