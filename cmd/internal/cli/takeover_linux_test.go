package cli_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/zephbot/zephbot/bot/telegram/telegramtest"
	"github.com/zephbot/zephbot/cmd/internal/cli"
)

// begun is two processes, of which the first is in the middle of a turn: it polls.
func (g *together) begun() (one, two *served) {
	g.Helper()
	one, two = g.start(), g.start()
	g.fake.Say(1001, 1001, telegramtest.Message{Text: "how many apples are there?"})
	g.asked("apples", one, two)
	return one, two
}

// end tells a process to end, as it should be able to without an error.
func (s *served) end() {
	s.t.Helper()
	s.term()
	if code := s.exit(); code != cli.Fine {
		s.t.Errorf("exit %d; printed: %s", code, s)
	}
}

// TestTakeOver: a process is killed in the middle of a turn. Another one goes on with the turn, answers, and takes what
// comes from then on.
func TestTakeOver(t *testing.T) {
	t.Parallel()
	g := newTogether(t)
	one, two := g.begun()
	one.signal(syscall.SIGKILL)
	killed := time.Now()
	g.asked("apples", two)
	t.Logf("the model is asked again %s after the kill", time.Since(killed).Round(time.Millisecond))
	g.model.answers["apples"] <- "Three apples."
	eventually(t, func() bool { return g.said(1001, "Three apples.") == 1 })
	g.fake.Say(1002, 1002, telegramtest.Message{Text: "and how many bananas?"})
	g.asked("bananas", two)
	t.Logf("polled by the other process %s after the kill", time.Since(killed).Round(time.Millisecond))
	g.model.answers["bananas"] <- "Two bananas."
	eventually(t, func() bool { return g.said(1002, "Two bananas.") == 1 })
	two.end()
}

// TestPausedTooLong: a process is paused (SIGSTOP) in the middle of a turn for longer than it is taken to live. Another
// one answers; the first one, let go with an answer of its own waiting for it, does nothing but end with a sentence.
func TestPausedTooLong(t *testing.T) {
	t.Parallel()
	g := newTogether(t)
	one, two := g.begun()
	one.signal(syscall.SIGSTOP)
	stopped := time.Now()
	g.asked("apples", two)
	t.Logf("the model is asked again %s after the stop", time.Since(stopped).Round(time.Millisecond))
	g.model.answers["apples"] <- "Late apples." // to the first process, whose request has waited longer
	g.model.answers["apples"] <- "Three apples."
	eventually(t, func() bool { return g.said(1001, "Three apples.") == 1 })
	one.signal(syscall.SIGCONT)
	if code := one.exit(); code != cli.Failed {
		t.Errorf("the one that was paused ends with %d; printed: %s", code, one)
	}
	one.await(t, "declared this one dead", 0)
	if n := g.said(1001, "apples."); n != 1 {
		t.Errorf("%d answers about apples; printed: %s", n, one)
	}
	two.end()
}
