package turn_test

import (
	"testing"
	"time"

	"github.com/zephbot/zephbot/agent"
	"github.com/zephbot/zephbot/bot/turn"
)

func TestSilence(t *testing.T) {
	t.Parallel()
	began := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	at := func(seconds int) time.Time { return began.Add(time.Duration(seconds) * time.Second) }
	var s turn.Silence
	if reached, wait := s.Lasting(at(1000)); reached != 0 || wait != 0 {
		t.Errorf("before the turn: %s, %s", reached, wait)
	}
	s.Begin(began)
	for i, step := range []struct {
		at      int // seconds
		event   agent.Event
		reached time.Duration
		wait    time.Duration
	}{
		{14, agent.Event{Type: agent.ResetEvent}, 0, time.Second},
		{15, agent.Event{Type: agent.ResetEvent}, 15 * time.Second, 45 * time.Second},
		{59, agent.Event{Type: agent.ToolProgressEvent}, 15 * time.Second, time.Second},
		{60, agent.Event{Type: agent.ResetEvent}, time.Minute, 0},
		{600, agent.Event{Type: agent.ResetEvent}, time.Minute, 0},
		{601, agent.Event{Type: agent.ThoughtEvent, Text: "hm"}, 0, 15 * time.Second},
		{610, agent.Event{Type: agent.DeltaEvent, Text: "a"}, 0, 15 * time.Second},
		{630, agent.Event{Type: agent.ToolStartedEvent, Call: "1"}, 0, 0},
		{640, agent.Event{Type: agent.ToolStartedEvent, Call: "2"}, 0, 0},
		{700, agent.Event{Type: agent.ToolFinishedEvent, Call: "1"}, 0, 0},
		{710, agent.Event{Type: agent.ToolFinishedEvent, Call: "2"}, 0, 15 * time.Second},
		{720, agent.Event{Type: agent.ModelEvent}, 0, 15 * time.Second},
		{740, agent.Event{Type: agent.ResetEvent}, 15 * time.Second, 40 * time.Second},
	} {
		s.Observe(step.event, at(step.at))
		if reached, wait := s.Lasting(at(step.at)); reached != step.reached || wait != step.wait {
			t.Errorf("step %d: %s reached, next in %s; want %s and %s", i, reached, wait, step.reached, step.wait)
		}
	}
	var late turn.Silence
	late.Observe(agent.Event{Type: agent.ResetEvent}, at(5))
	if reached, wait := late.Lasting(at(10)); reached != 0 || wait != 10*time.Second {
		t.Errorf("a turn that begins with an event: %s, %s", reached, wait)
	}
}
