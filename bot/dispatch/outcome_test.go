package dispatch_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/agent"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/dispatch"
)

// replies lists answers with the message that each replies to and what it quotes.
func (w *world) replies() []string {
	w.t.Helper()
	due, err := w.store.Due(w.t.Context(), "test", "7", time.Now(), 0)
	if err != nil {
		w.t.Fatal(err)
	}
	var list []string
	for _, r := range due {
		if r.Purpose == bot.Final {
			list = append(list, fmt.Sprintf("%s > %s %q", r.Content.Text, r.ReplyTo, r.Content.Quote))
		}
	}
	return list
}

// gated answers once a channel gives way; a question that is not in gates is answered at once.
func gated(gates map[string]chan struct{}) func(context.Context, *agent.Turn, agent.Journal, agent.Sink) (agent.Outcome, error) {
	return func(ctx context.Context, turn *agent.Turn, log agent.Journal, sink agent.Sink) (agent.Outcome, error) {
		text, err := asked(ctx, turn, log)
		if err != nil {
			return agent.Outcome{}, err
		}
		if gate := gates[text]; gate != nil {
			if out, err, more := until(ctx, gate, turn); !more {
				return out, err
			}
		}
		return echo(ctx, turn, log, sink)
	}
}

// Where several messages wait, each answer says which one it answers.
func TestAnswersSayWhatTheyAnswer(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		gate := make(chan struct{})
		w.runner = gated(map[string]chan struct{}{"one": gate})
		p := w.start()
		w.accept(p, w.private("ann", "alone"))
		w.accept(p, w.private("ann", "one"))
		w.accept(p, w.private("ann", "two"))
		w.accept(p, w.private("ann", "three"))
		close(gate)
		pass(time.Second)
		w.accept(p, w.private("ann", "later"))
		want := []string{`re: alone >  ""`, `re: one > m2 "one"`, `re: two > m3 "two"`, `re: three > m4 "three"`, `re: later >  ""`}
		if diff := cmp.Diff(want, w.replies()); diff != "" {
			t.Errorf("answers (-want +got):\n%s", diff)
		}
	})
}

// The next process knows from the time that a message has waited.
func TestAnswersSayWhatTheyAnswerAfterARestart(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		never := make(chan struct{})
		gates := map[string]chan struct{}{"one": never}
		w.runner = gated(gates)
		p := w.start()
		w.accept(p, w.private("ann", "one"))
		w.accept(p, w.private("ann", "two"))
		pass(5 * time.Second)
		p.stop()
		delete(gates, "one")
		w.start()
		pass(3 * time.Second)
		if diff := cmp.Diff([]string{`re: one > m1 "one"`, `re: two > m2 "two"`}, w.replies()); diff != "" {
			t.Errorf("answers (-want +got):\n%s", diff)
		}
	})
}

// What is quoted is a part of the message as it was written, and short.
func TestExcerpts(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("word ", 60)
	for text, want := range map[string]string{
		"  spaces ":                  "spaces",
		"first line\nsecond":         "first line",
		long:                         strings.TrimSpace(long[:200]),
		strings.Repeat("x", 300):     strings.Repeat("x", 200),
		strings.Repeat("😀", 150):     strings.Repeat("😀", 100),
		"\n\n" + "after empty lines": "after empty lines",
	} {
		t.Run(want, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				gate := make(chan struct{})
				w.runner = gated(map[string]chan struct{}{"one": gate})
				p := w.start()
				w.accept(p, w.private("ann", "one"))
				w.accept(p, w.private("ann", text))
				close(gate)
				pass(time.Second)
				quoted := fmt.Sprintf("> m2 %q", want)
				if got := w.replies(); len(got) != 2 || !strings.HasSuffix(got[1], quoted) || !strings.Contains(text, want) {
					t.Errorf("answers %q, want %s", got, quoted)
				}
			})
		})
	}
}

// signs records what is reported.
type signs struct {
	mu   sync.Mutex
	list []string
}

func (s *signs) say(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = append(s.list, fmt.Sprintf(format, args...))
}

func (s *signs) Waits(session bot.SessionKey) { s.say("waits %s", session.Chat()) }

func (s *signs) Crowded(session bot.SessionKey, arrival int64, _ bot.Place, message string) {
	s.say("crowded %s %d %s", session.Chat(), arrival, message)
}

func (s *signs) Ended(session bot.SessionKey) { s.say("ended %s", session.Chat()) }

func (*signs) Spent(bot.SessionKey, bot.Place, string) {}

func (s *signs) Merged(session bot.SessionKey, messages []bot.Message) {
	for _, m := range messages {
		s.say("merged %s %s", session.Chat(), m.Message)
	}
}

// Shown says that every message has a sign once one waits.
func (s *signs) Shown(context.Context, bot.SessionKey, int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.list, func(line string) bool { return strings.HasPrefix(line, "waits") })
}

func (s *signs) take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.list
	s.list = nil
	return list
}

func TestWhatIsReportedForSigns(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		var s signs
		w.opts.Merge = 600 * time.Millisecond
		w.parts = func(parts *dispatch.Parts) { parts.Signs = &s }
		gate := make(chan struct{})
		w.runner = gated(map[string]chan struct{}{"one": gate})
		p := w.start()
		check := func(what string, want ...string) {
			t.Helper()
			if diff := cmp.Diff(want, slices.Compact(s.take())); diff != "" {
				t.Errorf("%s (-want +got):\n%s", what, diff)
			}
		}
		w.accept(p, w.private("ben", "alone"))
		check("a message that does not wait", "ended ben")
		w.accept(p, w.private("ann", "one"))
		check("a turn that runs")
		w.accept(p, w.private("ann", "two"))
		check("a message behind it", "waits ann")
		pass(time.Minute)
		s.take() // a sweep may report it again
		close(gate)
		pass(time.Second)
		check("both are answered", "ended ann")
		w.accept(p, w.forwarded("cy", "a"))
		w.accept(p, w.forwarded("cy", "b"))
		pass(time.Second)
		check("forwarded messages", "merged cy m5", "ended cy")
		w.accept(p, w.pictured("dora", "x", "look"))
		w.accept(p, w.pictured("dora", "x", ""))
		pass(2 * time.Second)
		check("an album", "ended dora")
	})
}

// Of several processes, each knows what another one has accepted, or was busy with.
func TestAnswersSayWhatTheyAnswerTogether(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.opts.Shared = true
		w.parts = func(parts *dispatch.Parts) { parts.Signs = &signs{} }
		gate := make(chan struct{})
		w.runner = gated(map[string]chan struct{}{"one": gate})
		a, b := w.start(), w.start()
		w.accept(b, w.private("ann", "alone"))
		w.accept(a, w.private("ann", "one"))
		w.accept(b, w.private("ann", "two"))
		pass(time.Second)
		close(gate)
		pass(5 * time.Second)
		if diff := cmp.Diff([]string{`re: alone >  ""`, `re: one > m2 "one"`, `re: two > m3 "two"`}, w.replies()); diff != "" {
			t.Errorf("answers (-want +got):\n%s", diff)
		}
	})
}
