package mcp

import (
	"sync"

	"github.com/rs/zerolog"
)

// Kind is what a notice is about.
type Kind string

// The kinds of notices.
const (
	Away      Kind = "away"      // the server is gone, its tools with it
	Back      Kind = "back"      // it is there again
	Changed   Kind = "changed"   // it offers other tools
	Withdrawn Kind = "withdrawn" // tools or instructions changed or are new, and wait for an admin
	Declined  Kind = "declined"  // a question of the server was declined and belongs to no call
)

// Notice says what happened to a server.
type Notice struct {
	Server   string
	Kind     Kind
	Text     string   // a sentence for people
	Sessions []string // those that used the server since it connected, sorted
	Tools    []string // qualified names it is about, where it is about tools
	Fresh    []string // of Withdrawn: qualified names of new tools that wait, besides Tools, which changed
	Held     bool     // of Withdrawn: the instructions changed and wait
}

// maxNotices bounds those that wait for a slow receiver.
const maxNotices = 256

// notices hands notices on from a goroutine of its own, so that nobody waits for the receiver.
type notices struct {
	to  func(Notice)
	log zerolog.Logger
	c   chan Notice
}

func newNotices(to func(Notice), log zerolog.Logger) *notices {
	return &notices{to: to, log: log, c: make(chan Notice, maxNotices)}
}

// send never blocks; a notice that finds no place is only logged.
func (n *notices) send(v Notice) {
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

// start begins to deliver; the returned function ends it after what has come so far was delivered.
func (n *notices) start() (stop func()) {
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
