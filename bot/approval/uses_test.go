package approval_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/approval"
	"github.com/zephbot/zephbot/bot/bottest"
	"github.com/zephbot/zephbot/bot/turn"
	"github.com/zephbot/zephbot/policy"
	"github.com/zephbot/zephbot/tools"
)

// few stores exactly for some calls by the buttons, and returns what is stored.
func (r *ruled) few(call string) bot.Approval {
	r.t.Helper()
	open := r.ask(offering(call, policy.Offer{Kind: policy.OfferExact, Grants: []policy.Grant{exactly}}))
	a := open[len(open)-1]
	e, _ := r.pressIn("boss", data(a, "a0"), here)
	if got := labels(r.card(e)); !slices.Equal(got, []string{"Store it", "Only 10 more times", "Back"}) {
		r.t.Fatalf("buttons: %q", got)
	}
	r.pressIn("boss", data(a, "l0"), here)
	return a
}

// rule is the only standing approval that is stored.
func (r *ruled) rule() (g approval.Grant) {
	r.t.Helper()
	list, err := r.store.FactsOf(r.t.Context(), approval.GrantBucket, "", r.now)
	if err != nil || len(list) != 1 {
		r.t.Fatalf("%d rules: %v", len(list), err)
	}
	if err := json.Unmarshal([]byte(list[0].Value), &g); err != nil {
		r.t.Fatal(err)
	}
	return g
}

// granted returns a call that the rule allows.
func grantedCall(id, show string) *tools.Call {
	return &tools.Call{
		ID: id, Tool: "bash", Subject: tools.Subject{Show: show}, Trail: &tools.Trail{Granted: []policy.Grant{exactly}},
		Origin: tools.Origin{Chat: here.ChatKey(), Session: session, Caller: "telegram:ann"},
	}
}

func (r *ruled) use(id, show string) bool {
	r.t.Helper()
	left, err := r.Use(r.t.Context(), grantedCall(id, show), "hash of "+id)
	if err != nil {
		r.t.Fatal(err)
	}
	return left
}

// TestFewUses: a rule for some calls allows as many, each counted once, not the one that was approved with it, and the
// next one asks. The list says so, in private with what was covered; kept, it allows as many again.
func TestFewUses(t *testing.T) {
	t.Parallel()
	r := rules(t)
	first := r.few("first")
	if !r.use(first.Call, "git push") || r.rule().Uses != 0 {
		t.Errorf("the call that was approved counts: %+v", r.rule())
	}
	most := r.rule().Most
	for i := range most {
		if !r.use(fmt.Sprint("c", i), fmt.Sprintf("git push hunter2 %d\nmore", i)) || !r.use(fmt.Sprint("c", i), "again") {
			t.Errorf("use %d of %d is refused", i+1, most)
		}
	}
	if g := r.rule(); g.Uses != most || r.use("next", "x") {
		t.Errorf("more than %d uses: %+v", most, g)
	}
	if list := r.granted(here.ChatKey(), session); len(list) != 0 {
		t.Errorf("used up, and still there: %v", list)
	}
	last := fmt.Sprint("c", most-1)
	if list, err := approval.Grants(t.Context(), r.store, here.ChatKey(), session, last, r.now); err != nil || len(list) != 1 || !r.use(last, "x") {
		t.Errorf("the last call is run again after a crash, and the rule is gone: %v, %v", list, err)
	}
	show := func(place bot.Place) bot.Content {
		e, err := r.Rules(t.Context(), &turn.Call{Message: &bot.Message{Place: place, Language: "en"}})
		if err != nil {
			t.Fatal(err)
		}
		return e.Change.Send[0].Content
	}
	private := bot.Place{Channel: here.Channel, Bot: here.Bot, Surface: here.Surface, Chat: "boss"}
	if got := show(private).Text; !strings.Contains(got, "used up after 10 times: I ask again · the last time on 1 Nov 2026") || !strings.Contains(got, "• git push [redacted] 9\n• git push [redacted] 8\n• git push [redacted] 7") || strings.Contains(got, "more") {
		t.Errorf("in private:\n%s", got)
	}
	group := show(here)
	if strings.Contains(group.Text, "[redacted]") || !strings.Contains(group.Text, "used up") {
		t.Errorf("in the group:\n%s", group.Text)
	}
	at := slices.IndexFunc(group.Buttons, func(row []bot.Button) bool { return len(row) > 1 })
	if at < 0 {
		t.Fatalf("no button keeps it: %+v", group.Buttons)
	}
	e, _ := r.pressIn("boss", group.Buttons[at][1].Data, here)
	_ = e
	if g := r.rule(); g.Uses != 0 || !r.use("again", "x") {
		t.Errorf("kept, and allows nothing: %+v", g)
	}
}

// TestUsesRace: processes that use one rule at the same moment together never exceed what it allows, and each call that
// is allowed is counted.
func TestUsesRace(t *testing.T) {
	t.Parallel()
	r := rules(t)
	r.few("first")
	most := r.rule().Most
	var allowed atomic.Int32
	var wg sync.WaitGroup
	for p := range 2 {
		other := r.another()
		for i := range most {
			wg.Go(func() {
				left, err := other.Use(t.Context(), grantedCall(fmt.Sprintf("p%d.%d", p, i), "x"), "")
				if err != nil {
					t.Error(err)
				}
				if left {
					allowed.Add(1)
				}
			})
		}
	}
	wg.Wait()
	if g := r.rule(); int(allowed.Load()) != most || g.Uses != most {
		t.Errorf("allowed %d, counted %d, of %d", allowed.Load(), g.Uses, most)
	}
}

// TestRevokedWhileUsed: a rule that is revoked after the gate has read it allows nothing more.
func TestRevokedWhileUsed(t *testing.T) {
	t.Parallel()
	r := rules(t)
	r.few("first")
	list, err := r.store.FactsOf(t.Context(), approval.GrantBucket, "", r.now)
	if err != nil {
		t.Fatal(err)
	}
	r.apply(&bot.Change{Facts: []bot.Fact{{Bucket: approval.GrantBucket, Key: list[0].Key}}})
	if r.use("c1", "x") {
		t.Error("a revoked rule allows a call")
	}
}

// TestUsesOfAnUncountedBroker: without a store to write to, nothing is counted.
func TestUsesOfAnUncountedBroker(t *testing.T) {
	t.Parallel()
	b := approval.New(approval.Deps{Store: bottest.New()}, 0)
	if left, err := b.Use(t.Context(), grantedCall("c", "x"), ""); !left || err != nil {
		t.Errorf("%v, %v", left, err)
	}
}
