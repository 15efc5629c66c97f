package guard_test

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/mcp/guard"
)

func TestLimiter(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	l := guard.NewLimiter(2)
	for i, c := range []struct {
		at   time.Duration
		ok   bool
		wait time.Duration
	}{
		{0, true, 0},
		{10 * time.Second, true, 0},
		{20 * time.Second, false, 40 * time.Second},
		{59 * time.Second, false, time.Second}, // refused calls do not count
		{60 * time.Second, true, 0},
		{60 * time.Second, false, 10 * time.Second},
		{70 * time.Second, true, 0},
		{10 * time.Second, false, time.Minute}, // the clock was set back
		{70 * time.Second, true, 0},
	} {
		if ok, wait := l.Allow(start.Add(c.at)); ok != c.ok || wait != c.wait {
			t.Errorf("call %d at %v: %v %v", i, c.at, ok, wait)
		}
	}
	for _, n := range []int{0, -1} {
		free := guard.NewLimiter(n)
		for range 1000 {
			if ok, _ := free.Allow(start); !ok {
				t.Fatalf("%d: refused", n)
			}
		}
	}
}

func TestLimiterTogether(t *testing.T) {
	t.Parallel()
	l := guard.NewLimiter(10)
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var permitted atomic.Int64
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			if ok, _ := l.Allow(now); ok {
				permitted.Add(1)
			}
		})
	}
	wg.Wait()
	if permitted.Load() != 10 {
		t.Errorf("%d calls were permitted", permitted.Load())
	}
}

func TestLimited(t *testing.T) {
	t.Parallel()
	e := guard.Limited("github", "search", 1200*time.Millisecond)
	if e.Code != guard.PolicyBlocked || !strings.Contains(e.Message, "github") || !strings.Contains(e.Message, "2s") {
		t.Errorf("%+v", e)
	}
	if te := e.ToolError(); te.Category != tools.PolicyBlocked || !te.Denied() || te.Retryable || !strings.Contains(te.Suggestion, "Wait 2s") {
		t.Errorf("%+v", te)
	}
}

func TestPolicy(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		p       guard.Policy
		tool    string
		allowed bool
	}{
		{"none", guard.Policy{}, "rm", true},
		{"denied", guard.Policy{Denied: []string{"rm"}}, "rm", false},
		{"denied by its qualified name", guard.Policy{Denied: []string{"s:rm"}}, "rm", false},
		{"another is denied", guard.Policy{Denied: []string{"rm", "x:ls"}}, "ls", true},
		{"both: denied", guard.Policy{Denied: []string{"rm"}, Allowed: &[]string{"rm"}}, "rm", false},
		{"listed", guard.Policy{Allowed: &[]string{"ls"}}, "ls", true},
		{"listed by its qualified name", guard.Policy{Allowed: &[]string{"s:ls"}}, "ls", true},
		{"not listed", guard.Policy{Allowed: &[]string{"ls"}}, "rm", false},
		{"empty list", guard.Policy{Allowed: &[]string{}}, "ls", false},
	} {
		err := c.p.Check("s", c.tool)
		if (err == nil) != c.allowed {
			t.Errorf("%s: %v", c.name, err)
		}
		if err != nil && (err.Code != guard.PolicyBlocked || err.Server != "s" || err.Tool != c.tool) {
			t.Errorf("%s: %+v", c.name, err)
		}
	}
}
