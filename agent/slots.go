package agent

import "context"

// slots bounds how many calls of a turn run at once, those of its sub-agents included. A call that began a sub-agent
// only waits for it, so its slot is the sub-agent's: each can always run one call, and no call waits for one that waits
// for it. A nil *slots bounds nothing. Safe for concurrent use.
type slots struct {
	own    chan struct{} // of the call that began the sub-agent; nil = these are the turn's
	common chan struct{} // of the turn: one element for each free slot
}

// newSlots returns n free slots; negative = no limit.
func newSlots(n int) *slots {
	if n < 0 {
		return nil
	}
	return &slots{common: filledSlots(max(n, 1))}
}

func filledSlots(n int) chan struct{} {
	free := make(chan struct{}, n)
	for range n {
		free <- struct{}{}
	}
	return free
}

// inheritSlot returns the slots of a sub-agent that a call with a slot has begun.
func (s *slots) inheritSlot() *slots {
	if s == nil {
		return nil
	}
	return &slots{own: filledSlots(1), common: s.common}
}

// takeSlot waits for a free slot and returns what frees it, or nil if ctx ended first.
func (s *slots) takeSlot(ctx context.Context) (release func()) {
	if s == nil {
		return func() {}
	}
	select {
	case <-s.own: // first, because nobody else can use it
		return func() { s.own <- struct{}{} }
	default:
	}
	select {
	case <-s.own:
		return func() { s.own <- struct{}{} }
	case <-s.common:
		return func() { s.common <- struct{}{} }
	case <-ctx.Done():
		return nil
	}
}
