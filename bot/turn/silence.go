package turn

import (
	"time"

	"github.com/zephbot/zephbot/agent"
)

// silences are the lengths after which it is said that a model has said nothing.
var silences = [...]time.Duration{15 * time.Second, time.Minute}

// Silence knows for how long the model of a turn has said nothing: neither text nor thoughts, and no tool runs. The
// zero value is a turn that begins with the first event. Not safe for concurrent use.
type Silence struct {
	heard time.Time
	calls map[string]bool // that run
}

// Begin says that the turn begins.
func (s *Silence) Begin(now time.Time) { s.heard = now }

// Observe takes an event of the turn. A text that has become void is no sign of the model: its server may have failed.
func (s *Silence) Observe(event agent.Event, now time.Time) {
	switch event.Type {
	case agent.ToolStartedEvent:
		if s.calls == nil {
			s.calls = map[string]bool{}
		}
		s.calls[event.Call] = true
	case agent.ToolFinishedEvent:
		delete(s.calls, event.Call)
		s.heard = now
	case agent.DeltaEvent, agent.ThoughtEvent, agent.ModelEvent, agent.PlanEvent:
		s.heard = now
	case agent.ResetEvent, agent.ToolProgressEvent:
	}
	if s.heard.IsZero() {
		s.heard = now
	}
}

// Lasting returns which length of silence has been reached, the longest one, or 0, and when the next one is; wait 0 =
// there is none before the next event.
func (s *Silence) Lasting(now time.Time) (reached, wait time.Duration) {
	if len(s.calls) > 0 || s.heard.IsZero() {
		return 0, 0
	}
	lasting := now.Sub(s.heard)
	for _, length := range silences {
		if lasting < length {
			return reached, length - lasting
		}
		reached = length
	}
	return reached, 0
}
