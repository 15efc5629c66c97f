package policy

import (
	"github.com/zephbot/zephbot/policy/act"
	"github.com/zephbot/zephbot/policy/reason"
)

// Trust is the trust level of the skill or source behind a call.
type Trust string

// Trust levels, from most to least trusted. The zero value is trusted.
const (
	Trusted     Trust = "trusted"
	Verified    Trust = "verified"
	Quarantined Trust = "quarantined"
	Blocked     Trust = "blocked"
)

// Known reports whether t is one of the four levels or empty.
func (t Trust) Known() bool {
	switch t {
	case "", Trusted, Verified, Quarantined, Blocked:
		return true
	}
	return false
}

// Severity returns 0 for trusted, 1 for verified, 2 for quarantined and 3 for blocked. An unknown level is as severe as
// blocked.
func (t Trust) Severity() int {
	switch t {
	case "", Trusted:
		return 0
	case Verified:
		return 1
	case Quarantined:
		return 2
	}
	return 3
}

// trustDecision denies what the trust level does not permit: blocked permits nothing, quarantined only tools that read
// and send nothing out. A tool without a statement is denied.
func trustDecision(t Trust, a act.Act) (Decision, bool) {
	switch sev := t.Severity(); {
	case sev >= Blocked.Severity():
		return because(Deny, "built-in: trust blocked", reason.New(reason.SourceBlocked)), true
	case sev == Quarantined.Severity() && !a.Quiet():
		return because(Deny, "built-in: trust quarantined", reason.New(reason.SourceQuarantined)), true
	}
	return Decision{}, false
}
