package quota_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/zephbot/zephbot/agent"
	"github.com/zephbot/zephbot/bot/quota"
)

// TestSettledWhileReserving: a call of a turn is settled while another one of it is being reserved. What it has cost is
// at no moment neither set aside nor charged, so both together stay within the limit.
func TestSettledWhileReserving(t *testing.T) {
	t.Parallel()
	const limit = 100
	for n := range 3000 {
		d := setup(t, aLimit(quota.Tokens, quota.Day, limit))
		p := d.meter.Open(private("42"), "turn")
		of := &agent.Turn{ID: "turn"}
		if err := d.meter.Reserve(t.Context(), of, "turn/1", tokens(limit, 0)); err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		var reserved error
		wg.Go(func() { reserved = d.meter.Reserve(t.Context(), of, "turn/2", tokens(limit, 0)) })
		if err := d.meter.Settle(t.Context(), of, "turn/1", tokens(limit, 0), 0); err != nil {
			t.Fatal(err)
		}
		wg.Wait()
		if _, denied := errors.AsType[*agent.Denied](reserved); !denied {
			t.Fatalf("run %d: %v although all is spent", n, fmt.Sprint(reserved))
		}
		d.keep(p)
		p.Close()
	}
}

// TestSettledForNothingWhileReserving: what a call set aside and did not cost is enough for the next one, also if that
// is found out while the next one is being reserved.
func TestSettledForNothingWhileReserving(t *testing.T) {
	t.Parallel()
	o := aLimit(quota.Tokens, quota.Day, 100)
	of := &agent.Turn{ID: "turn"}
	var d *desk
	meanwhile := func() {}
	o.Older = func() bool {
		meanwhile()
		return false
	}
	d = setup(t, o)
	p := d.meter.Open(private("42"), "turn")
	defer p.Close()
	if err := d.meter.Reserve(t.Context(), of, "turn/1", tokens(100, 0)); err != nil {
		t.Fatal(err)
	}
	meanwhile = func() {
		if err := d.meter.Settle(t.Context(), of, "turn/1", tokens(0, 0), 0); err != nil {
			t.Error(err)
		}
	}
	if err := d.meter.Reserve(t.Context(), of, "turn/2", tokens(100, 0)); err != nil {
		t.Error(err)
	}
}
