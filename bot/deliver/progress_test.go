package deliver_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/agent"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/deliver"
	"github.com/zephbot/zephbot/policy/act"
	"github.com/zephbot/zephbot/tools"
)

// sign is something that was shown.
type sign struct {
	kind string // draft, edit, typing
	text string
	at   time.Duration // since the turn began
}

func (s sign) String() string {
	return fmt.Sprintf("%s %s %q", s.at.Round(10*time.Millisecond), s.kind, s.text)
}

// screen is what a person sees of a running turn.
type screen struct {
	drafts bool
	began  time.Time
	answer func(kind string, text string) error // nil = well

	mu           sync.Mutex
	signs        []sign
	placeholders int
}

func (s *screen) Drafts(bot.Place) bool { return s.drafts }

func (s *screen) show(kind, text string) error {
	s.mu.Lock()
	s.signs = append(s.signs, sign{kind, text, time.Since(s.began)})
	answer := s.answer
	s.mu.Unlock()
	if answer == nil {
		return nil
	}
	return answer(kind, text)
}

func (s *screen) Draft(_ context.Context, _ bot.Place, id int64, c bot.Content) error {
	if id != 77 {
		return errors.New("wrong draft")
	}
	return s.show("draft", c.Text)
}

func (s *screen) Revise(_ context.Context, _ bot.Place, message string, c bot.Content) error {
	if message != "m5" {
		return errors.New("wrong message")
	}
	return s.show("edit", c.Text)
}

func (s *screen) Typing(context.Context, bot.Place) error { return s.show("typing", "") }

func (s *screen) all() []sign {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.signs)
}

func (s *screen) kinds(kind string) []sign {
	return slices.DeleteFunc(s.all(), func(e sign) bool { return e.kind != kind })
}

// watch is a turn that is being shown.
type watch struct {
	*deliver.Progress
	t      *testing.T
	screen *screen
	pacer  *deliver.Pacer
	done   chan error
}

// begin shows a turn in a chat. The placeholder arrives a second after it was asked for.
func begin(t *testing.T, chat string, s *screen) *watch {
	t.Helper()
	s.began = time.Now()
	w := &watch{t: t, screen: s, done: make(chan error, 1)}
	w.pacer = exact(deliver.Limits{PerSecond: 30, PerChatPerSecond: 1, PerGroupPerMinute: 20})
	var asked time.Time
	w.Progress = deliver.NewProgress(deliver.ProgressDeps{Live: s, Pacer: w.pacer, Words: words{}}, deliver.Spec{
		Place: place(chat), Draft: 77, Language: "en", Placeholder: func(context.Context) (string, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.placeholders++
			if asked.IsZero() {
				asked = time.Now()
			}
			if time.Since(asked) < time.Second {
				return "", nil
			}
			return "m5", nil
		},
	}, deliver.ProgressOptions{})
	go func() { w.done <- w.Run(context.WithoutCancel(t.Context())) }()
	synctest.Wait()
	return w
}

func (w *watch) say(text string) {
	w.Emit(w.t.Context(), agent.Event{Type: agent.DeltaEvent, Text: text})
}

func (w *watch) tool(call, what, show string) {
	w.Emit(w.t.Context(), agent.Event{Type: agent.ToolStartedEvent, Call: call, Tool: what, Verb: act.Verb(what), Args: show})
}

func (w *watch) finish(call string) {
	w.Emit(w.t.Context(), agent.Event{Type: agent.ToolFinishedEvent, Call: call})
}

// close ends the turn and checks that nothing is shown afterwards.
func (w *watch) close() {
	w.t.Helper()
	w.Close()
	n := len(w.screen.all())
	if err := <-w.done; err != nil {
		w.t.Errorf("Run: %v", err)
	}
	w.say("late")
	pass(time.Minute)
	if more := w.screen.all()[n:]; len(more) > 0 {
		w.t.Errorf("shown after Close: %v", more)
	}
}

// gaps checks that signs lie at least so far apart.
func gaps(t *testing.T, signs []sign, least time.Duration) {
	t.Helper()
	for i := 1; i < len(signs); i++ {
		if gap := signs[i].at - signs[i-1].at; gap < least {
			t.Errorf("%s comes %s after %s", signs[i], gap, signs[i-1])
		}
	}
}

func TestQuickAnswerShowsNothing(t *testing.T) {
	t.Parallel()
	for _, chat := range []string{"7", "-7"} {
		t.Run(chat, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := begin(t, chat, &screen{drafts: chat == "7"})
				w.say("short")
				pass(290 * time.Millisecond)
				w.close()
				if got := w.screen.all(); len(got) > 0 || w.screen.placeholders > 0 {
					t.Errorf("shown: %v, placeholders: %d", got, w.screen.placeholders)
				}
			})
		})
	}
}

func TestDraftGrows(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := begin(t, "7", &screen{drafts: true})
		pass(time.Second)
		if got := w.screen.all(); len(got) != 1 || got[0].text != "thinking" || got[0].at < 300*time.Millisecond {
			t.Errorf("first sign: %v", got)
		}
		var want strings.Builder
		for i := range 100 {
			text := fmt.Sprintf("word%d ", i)
			want.WriteString(text)
			w.say(text)
			pass(100 * time.Millisecond)
		}
		pass(2 * time.Second)
		drafts := w.screen.kinds("draft")
		gaps(t, drafts, 500*time.Millisecond)
		if len(drafts) < 9 {
			t.Errorf("%d frames in 10 s", len(drafts))
		}
		if got := drafts[len(drafts)-1].text; got != strings.TrimSpace(want.String()) {
			t.Errorf("last frame %q", got)
		}
		n := len(drafts)
		for range 7 { // the model thinks
			w.Emit(t.Context(), agent.Event{Type: agent.ThoughtEvent})
			pass(10 * time.Second)
		}
		again := w.screen.kinds("draft")[n:]
		if len(again) != 3 {
			t.Errorf("%d frames in 70 s without a word, want 3", len(again))
		}
		gaps(t, again, 20*time.Second)
		w.Emit(t.Context(), agent.Event{Type: agent.ResetEvent})
		w.say("**new")
		pass(2 * time.Second)
		drafts = w.screen.kinds("draft")
		if got := drafts[len(drafts)-1].text; got != "new" {
			t.Errorf("after a reset: %q", got)
		}
		if len(w.screen.kinds("typing"))+len(w.screen.kinds("edit"))+w.screen.placeholders > 0 {
			t.Errorf("more than drafts: %v", w.screen.all())
		}
		w.close()
	})
}

func TestDraftNamesToolsThatTakeLong(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := begin(t, "7", &screen{drafts: true})
		w.tool("a", "read", "app.log")
		pass(1500 * time.Millisecond)
		w.finish("a")
		w.tool("b", "bash", "make")
		w.tool("c", "read", "x")
		pass(1500 * time.Millisecond)
		for _, s := range w.screen.all() {
			if s.text != "thinking" {
				t.Errorf("a tool was named too early: %s", s)
			}
		}
		pass(3 * time.Second)
		w.finish("b")
		pass(1500 * time.Millisecond)
		drafts := w.screen.kinds("draft")
		texts := []string{drafts[1].text, drafts[len(drafts)-1].text}
		if diff := cmp.Diff([]string{"bash make 1/3 2", "read x 2/3 5"}, texts); diff != "" {
			t.Errorf("%s\n%v", diff, drafts)
		}
		gaps(t, drafts, 500*time.Millisecond)
		w.close()
	})
}

func TestDraftRefusedGoesOnWithEdits(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := begin(t, "7", &screen{drafts: true, answer: func(kind, _ string) error {
			if kind == "draft" {
				return fail(bot.Refused)
			}
			return nil
		}})
		w.say("text")
		pass(10 * time.Second)
		if n := len(w.screen.kinds("draft")); n != 1 {
			t.Errorf("%d drafts after a refusal", n)
		}
		if got := w.screen.kinds("edit"); len(got) != 1 || got[0].text != "text" {
			t.Errorf("edits: %v", got)
		}
		w.close()
	})
}

func TestThrottledKeepsTheNewestFrame(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := begin(t, "7", &screen{drafts: true, answer: func(_, text string) error {
			if text == "a" {
				return &bot.SendError{Outcome: bot.Throttled, RetryAfter: 7 * time.Second, Err: errors.New("429")}
			}
			return nil
		}})
		w.say("a")
		pass(time.Second)
		if try(t, w.pacer, place("7"), bot.High) {
			t.Error("the chat is not frozen for the others")
		}
		for _, text := range []string{"b", "c", "d"} {
			w.say(text)
			pass(time.Second)
		}
		pass(5 * time.Second)
		got := w.screen.all()
		if len(got) != 2 || got[1].text != "abcd" || got[1].at-got[0].at < 7*time.Second {
			t.Errorf("shown: %v", got)
		}
		w.close()
	})
}

func TestGroup(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := begin(t, "-7", &screen{drafts: false})
		pass(1900 * time.Millisecond)
		if got := w.screen.all(); len(got) != 1 || got[0].kind != "typing" || got[0].at < 300*time.Millisecond || w.screen.placeholders > 0 {
			t.Errorf("before 2 s: %v, placeholders %d", got, w.screen.placeholders)
		}
		for i := range 1800 {
			w.say(fmt.Sprintf("word%d ", i))
			pass(100 * time.Millisecond)
		}
		pass(15 * time.Second)
		edits := w.screen.kinds("edit")
		gaps(t, edits, 3*time.Second)
		times := make([]time.Time, len(edits))
		for i, e := range edits {
			times[i] = w.screen.began.Add(e.at)
		}
		if n := most(times, time.Minute); n > 12 || n < 10 {
			t.Errorf("%d edits within a minute", n)
		}
		if got := edits[len(edits)-1].text; !strings.HasSuffix(got, "word1799") {
			t.Errorf("last frame ends with %q", got[len(got)-20:])
		}
		if typing := w.screen.kinds("typing"); len(typing) != 1 {
			t.Errorf("typing beside a message: %v", typing)
		}
		n := len(edits)
		pass(time.Minute)
		if more := w.screen.kinds("edit")[n:]; len(more) > 0 {
			t.Errorf("equal frames were shown again: %v", more)
		}
		w.close()
	})
}

// A model that says nothing for 15 s is said to, and again after a minute: as a draft, as an edit with the buttons that
// the message has, and below the text that has come until then. Whatever it says, and a tool that runs, ends that.
func TestSilenceIsSaid(t *testing.T) {
	t.Parallel()
	for _, chat := range []string{"7", "-7"} {
		t.Run(chat, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := begin(t, chat, &screen{drafts: chat == "7"})
				kind := map[string]string{"7": "draft", "-7": "edit"}[chat]
				last := func() string {
					if all := w.screen.kinds(kind); len(all) > 0 {
						return all[len(all)-1].text
					}
					return ""
				}
				first := func(text string) time.Duration {
					for _, s := range w.screen.kinds(kind) {
						if s.text == text {
							return s.at
						}
					}
					return -1
				}
				pass(14900 * time.Millisecond)
				if got := last(); strings.Contains(got, "silent") {
					t.Errorf("before 15 s: %q", got)
				}
				pass(2 * time.Minute)
				if at := first("silent 15s"); at < 15*time.Second || at > 18*time.Second {
					t.Errorf("first said at %s", at)
				}
				if at := first("silent 1m0s"); at < time.Minute || at > 63*time.Second {
					t.Errorf("said again at %s", at)
				}
				w.tool("1", "read", "a.log")
				pass(time.Minute)
				if got := last(); strings.Contains(got, "silent") {
					t.Errorf("while a tool runs: %q", got)
				}
				w.finish("1")
				w.say("Three files")
				pass(10 * time.Second)
				if got := last(); got != "Three files" {
					t.Errorf("text came: %q", got)
				}
				pass(15 * time.Second)
				if got := last(); got != "Three files\n\nsilent 15s" {
					t.Errorf("the text has stopped: %q", got)
				}
				w.say(" are there")
				pass(10 * time.Second)
				if got := last(); got != "Three files are there" {
					t.Errorf("it goes on: %q", got)
				}
				for range 30 {
					w.Emit(t.Context(), agent.Event{Type: agent.ThoughtEvent, Text: "hm"})
					pass(5 * time.Second)
				}
				if got := last(); got != "Three files are there" {
					t.Errorf("while it thinks: %q", got)
				}
				w.close()
			})
		})
	}
}

func TestTyping(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := &screen{began: time.Now()}
		p := deliver.NewProgress(deliver.ProgressDeps{Live: s, Pacer: exact(deliver.Limits{}), Words: words{}},
			deliver.Spec{Place: place("-7"), Draft: 77}, deliver.ProgressOptions{})
		done := make(chan error, 1)
		go func() { done <- p.Run(context.WithoutCancel(t.Context())) }()
		pass(30 * time.Minute)
		typing := s.kinds("typing")
		gaps(t, typing, 4*time.Second)
		last := typing[len(typing)-1]
		if last.at > 10*time.Minute || last.at < 10*time.Minute-5*time.Second || len(typing) < 145 {
			t.Errorf("%d times typing, the last at %s", len(typing), last.at)
		}
		p.Close()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// What fails may cost frames, never the turn.
func TestShowingFails(t *testing.T) {
	t.Parallel()
	for _, outcome := range []bot.SendOutcome{bot.NotSent, bot.Vague, bot.Refused, bot.Missing, bot.Gone, bot.Moved} {
		t.Run(string(outcome), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := begin(t, "-7", &screen{answer: func(string, string) error { return fail(outcome) }})
				w.say("text")
				pass(90 * time.Second) // each failure doubles the time to the next try, which grows by itself too
				edits := w.screen.kinds("edit")
				gaps(t, edits, 3*time.Second)
				switch lost := outcome == bot.NotSent || outcome == bot.Vague; {
				case lost && len(edits) < 3:
					t.Errorf("given up after %d edits", len(edits))
				case (outcome == bot.Refused || outcome == bot.Missing) && len(edits) != 1:
					t.Errorf("%d edits of a message that cannot be edited", len(edits))
				case (outcome == bot.Gone || outcome == bot.Moved) && len(w.screen.all()) != 1:
					t.Errorf("shown to nobody: %v", w.screen.all())
				}
				w.close()
			})
		})
	}
}

func TestCloseWaitsForTheRequestInFlight(t *testing.T) {
	bubble(t, func(t *testing.T) {
		release := make(chan struct{})
		w := begin(t, "7", &screen{drafts: true, answer: func(string, string) error {
			<-release
			return nil
		}})
		pass(time.Second)
		closed := make(chan struct{})
		go func() {
			defer close(closed)
			w.Close()
		}()
		synctest.Wait()
		select {
		case <-closed:
			t.Error("Close returned with a frame in flight")
		default:
		}
		close(release)
		<-closed
		w.close()
	})
}

func TestCloseIsBounded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := &hanging{screen: screen{drafts: true, began: time.Now()}}
		p := deliver.NewProgress(deliver.ProgressDeps{Live: s, Pacer: exact(deliver.Limits{}), Words: words{}},
			deliver.Spec{Place: place("7"), Draft: 77}, deliver.ProgressOptions{})
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- p.Run(ctx) }()
		pass(time.Second)
		stop() // a turn that is stopped lets its last frame arrive all the same
		began := time.Now()
		p.Close()
		p.Close()
		if took := time.Since(began); took < time.Second || took > 10*time.Second {
			t.Errorf("Close took %s", took)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// hanging never answers.
type hanging struct{ screen }

func (h *hanging) Draft(ctx context.Context, _ bot.Place, _ int64, _ bot.Content) error {
	<-ctx.Done()
	return &bot.SendError{Outcome: bot.Vague, Err: ctx.Err()}
}

func TestPlaceholderProblemIsTold(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := &screen{began: time.Now()}
		away := errors.New("the disk is away")
		p := deliver.NewProgress(deliver.ProgressDeps{Live: s, Pacer: exact(deliver.Limits{}), Words: words{}}, deliver.Spec{
			Place: place("-7"), Placeholder: func(context.Context) (string, error) { return "", away },
		}, deliver.ProgressOptions{})
		done := make(chan error, 1)
		go func() { done <- p.Run(context.WithoutCancel(t.Context())) }()
		pass(20 * time.Second)
		p.Close()
		if err := <-done; !errors.Is(err, away) {
			t.Errorf("Run: %v", err)
		}
	})
}

// TestDraftShowsWhatALongCommandPrints: the newest line of the tool that is named, and only that.
func TestDraftShowsWhatALongCommandPrints(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := begin(t, "7", &screen{drafts: true})
		w.tool("a", "bash", "make")
		for _, text := range []string{"first", "compiling 7 of 9"} {
			w.Emit(t.Context(), agent.Event{Type: agent.ToolProgressEvent, Call: "a", Tool: "bash", Text: text})
		}
		w.Emit(t.Context(), agent.Event{Type: agent.ToolProgressEvent, Call: "gone", Text: "of nobody"})
		pass(4 * time.Second)
		drafts := w.screen.kinds("draft")
		if last := drafts[len(drafts)-1].text; !strings.HasPrefix(last, "bash make 0/1 ") || !strings.HasSuffix(last, "\ncompiling 7 of 9") {
			t.Errorf("the draft says %q", last)
		}
		w.close()
	})
}

// TestPlanIsShown: a plan is below what is being done, and alone while the model thinks; an answer that grows takes its
// place.
func TestPlanIsShown(t *testing.T) {
	t.Parallel()
	for _, chat := range []string{"7", "-7"} {
		t.Run(chat, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := begin(t, chat, &screen{drafts: chat == "7"})
				kind := map[string]string{"7": "draft", "-7": "edit"}[chat]
				last := func() string {
					if all := w.screen.kinds(kind); len(all) > 0 {
						return all[len(all)-1].text
					}
					return ""
				}
				w.Emit(t.Context(), agent.Event{Type: agent.PlanEvent, Plan: []tools.PlanEntry{{Text: "read\x1b[1m", Status: tools.PlanCompleted}, {Text: "write", Status: tools.PlanInProgress}}})
				pass(6 * time.Second)
				if got := last(); !strings.HasSuffix(got, "\n☑ read␛[1m\n▶ write") || strings.HasPrefix(got, "☑") {
					t.Errorf("while it thinks: %q", got)
				}
				pass(20 * time.Second)
				if got := last(); got != "silent 15s\n☑ read␛[1m\n▶ write" {
					t.Errorf("while it is silent: %q", got)
				}
				w.tool("1", "read", "a.log")
				pass(12 * time.Second)
				if got := last(); !strings.Contains(got, "a.log") || !strings.HasSuffix(got, "\n☑ read␛[1m\n▶ write") {
					t.Errorf("while a tool runs: %q", got)
				}
				w.finish("1")
				w.say("Done so")
				pass(12 * time.Second)
				if got := last(); got != "Done so" {
					t.Errorf("while it answers: %q", got)
				}
				w.close()
			})
		})
	}
}
