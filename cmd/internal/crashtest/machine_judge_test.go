//go:build linux

package crashtest_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/quota"
)

// TestMachineSees: the verdict notices each broken promise, and nothing else.
func TestMachineSees(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		kind    string
		excused bool
		answers []said
		ran     map[string]int
		want    string // in the verdict; "" = nothing
	}{
		{name: "answered", kind: askSay, answers: []said{{}}},
		{name: "answered again, marked", kind: askSay, answers: []said{{}, {marked: true}}},
		{name: "the first copy never got out", kind: askSay, answers: []said{{marked: true}}},
		{name: "silent double", kind: askSay, answers: []said{{}, {}}, want: "answered 2 times without saying so"},
		{name: "no answer", kind: askSay, want: "has no answer"},
		{name: "stopped", kind: askSay, excused: true},
		{name: "ran", kind: askFree, answers: []said{{words: " a=done"}}, ran: map[string]int{"q0q-a": 1}},
		{name: "ran twice", kind: askFree, answers: []said{{words: " a=done"}}, ran: map[string]int{"q0q-a": 2}, want: "ran 2 times"},
		{name: "did not run", kind: askFree, answers: []said{{words: " a=done"}}, want: "did not run"},
		{name: "ran though denied", kind: askHeld, answers: []said{{words: " a=policy_blocked"}}, ran: map[string]int{"q0q-a": 1}, want: "says \"policy_blocked\""},
		{name: "denied", kind: askHeld, answers: []said{{words: " a=policy_blocked"}}},
		{name: "unknown and ran", kind: askHeld, answers: []said{{words: " a=unknown"}}, ran: map[string]int{"q0q-a": 1}},
		{name: "unknown and twice", kind: askHeld, answers: []said{{words: " a=unknown"}}, ran: map[string]int{"q0q-a": 2}, want: "ran 2 times"},
		{name: "stopped, and ran twice", kind: askFree, excused: true, ran: map[string]int{"q0q-a": 2}, want: "ran 2 times"},
		{name: "the second of a pair is missing", kind: askPair, answers: []said{{words: " a=done b=done"}}, ran: map[string]int{"q0q-a": 1}, want: "command b of q0q did not run"},
		{name: "two stories", kind: askFree, answers: []said{{words: " a=done"}, {words: " a=unknown", marked: true}}, ran: map[string]int{"q0q-a": 1}, want: "another unknown"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			m := &machine{t: t, began: time.Now(), hits: map[string]int{}}
			m.judgeQuestion(&question{kind: tt.kind, excused: tt.excused, talker: &talker{m: m}, at: m.began}, tt.answers, tt.ran)
			got := strings.Join(m.wrong, "\n")
			if (tt.want == "") != (got == "") || !strings.Contains(got, tt.want) {
				t.Errorf("verdict %q, want %q", got, tt.want)
			}
		})
	}
}

// TestMachineCounts: the verdict about money notices what is charged twice, nowhere, to some only, or for nothing.
func TestMachineCounts(t *testing.T) {
	t.Parallel()
	charge := func(key string, n int, scopes ...string) (list []bot.Charge) {
		_, costs := price(n)
		for _, scope := range scopes {
			list = append(list,
				bot.Charge{Key: key + "/tokens/" + scope, Scope: scope, Unit: quota.Tokens, Day: "2026-01-01", N: costs.tokens},
				bot.Charge{Key: key + "/microusd/" + scope, Scope: scope, Unit: quota.USD, Day: "2026-01-01", N: costs.micro})
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
			m := &machine{t: t, began: time.Now(), hits: map[string]int{}, questions: []*question{{}}}
			for i := range 2 + tt.broken {
				a, _ := m.money.ask(life{}, 0)
				if i < 2 {
					m.money.answered(a)
				}
			}
			if tt.died {
				m.diary.silent(silence{from: time.Now()})
			}
			m.judgeCharges(slices.Concat(tt.charges...))
			got := strings.Join(m.wrong, "\n")
			if (tt.want == "") != (got == "") || !strings.Contains(got, tt.want) {
				t.Errorf("verdict %q, want %q", got, tt.want)
			}
		})
	}
}

// TestPace: what was broken is not broken again before it has done something, but for one fault in eight of a process.
func TestPace(t *testing.T) {
	t.Parallel()
	var p pace
	kill := fault{Kind: faultKill, Node: 1, Dice: 1}
	if p.allows(kill) {
		t.Error("a process that has done nothing is killed")
	}
	if !p.allows(fault{Kind: faultKill, Node: 1, Dice: unpaced}) {
		t.Error("no process is killed while it starts")
	}
	for range workOfProcess {
		p.asked(1)
	}
	if !p.allows(kill) || p.allows(kill) {
		t.Error("a process that has worked is not killed, or is killed twice")
	}
	if p.allows(fault{Kind: faultTelegram + "cut", Dice: unpaced}) {
		t.Error("calls fail before there were any")
	}
}
