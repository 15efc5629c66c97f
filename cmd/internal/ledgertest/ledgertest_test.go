package ledgertest_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/quota"
	"github.com/zephbot/zephbot/cmd/internal/ledgertest"
)

// TestJudge: the verdict notices what is charged twice, nowhere, to some only, or for nothing.
func TestJudge(t *testing.T) {
	t.Parallel()
	charge := func(key string, n int, scopes ...string) (list []bot.Charge) {
		_, costs := ledgertest.Price(n)
		for _, scope := range scopes {
			list = append(list,
				bot.Charge{Key: key + "/tokens/" + scope, Scope: scope, Unit: quota.Tokens, Day: "2026-01-01", N: costs.Tokens},
				bot.Charge{Key: key + "/microusd/" + scope, Scope: scope, Unit: quota.USD, Day: "2026-01-01", N: costs.Micro})
		}
		return list
	}
	const person, all = "user/telegram:1", "bot/telegram/1"
	both := func(key string, n int) []bot.Charge { return charge(key, n, person, all) }
	lost := []bot.Charge{{Key: bot.Lost + "t1/x/microusd/" + all, Scope: all, Unit: quota.USD, Day: "2026-01-01", N: 200_000}}
	tests := []struct {
		name    string
		broken  int // requests that were not answered, after two that were
		died    bool
		charges [][]bot.Charge
		want    string // in the verdict; "" = nothing
	}{
		{name: "each once", charges: [][]bot.Charge{both("a", 0), both("b", 1)}},
		{name: "twice", charges: [][]bot.Charge{both("a", 0), both("b", 1), both("c", 1)}, want: "is charged 2 times"},
		{name: "nowhere", charges: [][]bot.Charge{both("a", 0)}, want: "is charged nowhere"},
		{name: "lost with its process", died: true, charges: [][]bot.Charge{both("a", 0), lost}},
		{name: "lost and not charged", died: true, charges: [][]bot.Charge{both("a", 0)}, want: "only 0 estimates and 0 lost"},
		{name: "to the person only", charges: [][]bot.Charge{both("a", 0), charge("b", 1, person)}, want: "to the person"},
		{name: "an estimate of what broke off", broken: 1, charges: [][]bot.Charge{both("a", 0), both("b", 1), both("c", 7)}},
		{name: "an estimate of nothing", charges: [][]bot.Charge{both("a", 0), both("b", 1), both("c", 7)}, want: "only 0 answers broke off"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var book ledgertest.Book
			for i := range 2 + tt.broken {
				r, _ := book.Ask("0-1", "q0q")
				if i < 2 {
					book.Answered(r)
				}
			}
			v := book.Judge(slices.Concat(tt.charges...), func(*ledgertest.Request) bool { return tt.died })
			got := strings.Join(v.Wrong, "\n")
			if (tt.want == "") != (got == "") || !strings.Contains(got, tt.want) {
				t.Errorf("verdict %q, want %q", got, tt.want)
			}
		})
	}
}
