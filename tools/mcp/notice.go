package mcp

import (
	"sync"

	"github.com/rs/zerolog"
)

// Kind says what a notice is about.
type Kind string

// Kinds of notices.
const (
	Away      Kind = "away"      // the server went away, with its tools
	Back      Kind = "back"      // it is connected again
	Changed   Kind = "changed"   // it offers different tools
	Withdrawn Kind = "withdrawn" // tools or instructions changed or are new, and wait for an admin
	Declined  Kind = "declined"  // a question of the server was declined and belongs to no call
)

// Notice reports what happened to a server.
type Notice struct {
	Server   string
	Kind     Kind
	Text     string   // a sentence for people
	Sessions []string // sessions that used the server since it connected, sorted
	Tools    []string // qualified names, when the notice is about tools
	Fresh    []string // with Withdrawn: qualified names of new tools that wait; Tools holds those that changed
	Held     bool     // with Withdrawn: the instructions changed and wait
}

// maxNotices is how many notices may wait for a slow receiver.
const maxNotices = 256

// notices passes notices to the receiver from a goroutine of its own, so that the sender never waits.
type notices struct {
	to  func(Notice)
	log zerolog.Logger
	c   chan Notice
}

func newNotices(to func(Notice), log zerolog.Logger) *notices {
	return &notices{to: to, log: log, c: make(chan Notice, maxNotices)}
}

// sendNotice never blocks. When the queue is full, the notice is only logged.
func (n *notices) sendNotice(v Notice) {
	n.log.Info().Str("server", v.Server).Str("kind", string(v.Kind)).Strs("tools", v.Tools).Msg(v.Text)
	if n.to == nil {
		return
	}
	select {
	case n.c <- v:
	default:
		n.log.Warn().Str("server", v.Server).Str("kind", string(v.Kind)).Msg("notice lost: its receiver is too slow")
	}
}

// startDelivery begins to deliver. The returned function stops it after everything sent so far was delivered.
func (n *notices) startDelivery() (stop func()) {
	if n.to == nil {
		return func() {}
	}
	var wg sync.WaitGroup
	end := make(chan struct{})
	wg.Go(func() {
		for {
			select {
			case v := <-n.c:
				n.to(v)
			case <-end:
				for {
					select {
					case v := <-n.c:
						n.to(v)
					default:
						return
					}
				}
			}
		}
	})
	return func() {
		close(end)
		wg.Wait()
	}
}
