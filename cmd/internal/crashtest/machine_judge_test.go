//go:build linux

package crashtest_test

import (
	"strings"
	"testing"
	"time"
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
