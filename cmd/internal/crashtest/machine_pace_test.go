//go:build linux

package crashtest_test

import (
	"strings"
	"sync"
)

// pace keeps faults from coming faster than the service does anything: a plan is a list of moments, and on a slow
// machine most processes would be killed before they are ready, and every request would fail. What is to be broken has
// to have done something since it was broken last. One fault of a process or of a store in eight comes anyway: some
// have to hit a process that starts.
type pace struct {
	mu       sync.Mutex
	requests map[int]int    // to the model, by process
	calls    int            // of the Bot API
	broken   map[string]int // what had been done when it was broken last
}

// What has to be done between two faults: requests to the model of a process and of all, and calls of the Bot API.
const (
	workOfProcess = 4
	workOfStore   = 6
	workOfBotAPI  = 6
	workOfModel   = 3
	unpaced       = 8
)

func (p *pace) asked(process int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.requests == nil {
		p.requests = map[int]int{}
	}
	p.requests[process]++
}

func (p *pace) called() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls++
}

// allows reports whether a fault may come now.
func (p *pace) allows(f fault) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	what, done, least := "", 0, 0
	for process, n := range p.requests {
		if done += n; (f.Kind == faultKill || f.Kind == faultStop || f.Kind == faultTerm) && process != f.Node {
			done -= n
		}
	}
	always := f.Dice%unpaced == 0
	switch {
	case f.Kind == faultKill || f.Kind == faultStop || f.Kind == faultTerm:
		what, least = string(rune('0'+f.Node)), workOfProcess
	case strings.HasPrefix(f.Kind, faultTelegram) || f.Kind == faultOutage:
		what, done, least, always = faultTelegram, p.calls, workOfBotAPI, false
	case strings.HasPrefix(f.Kind, faultModel):
		what, least, always = faultModel, workOfModel, false
	case f.Kind == faultAgain:
		return true
	case strings.HasPrefix(f.Kind, "Redis"):
		what, least = "Redis", workOfStore
	default:
		what, least = "store", workOfStore
	}
	if !always && done < p.broken[what]+least {
		return false
	}
	if p.broken == nil {
		p.broken = map[string]int{}
	}
	p.broken[what] = done
	return true
}
