package deliver

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/zephbot/zephbot/agent"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/render"
	"github.com/zephbot/zephbot/bot/turn"
	"github.com/zephbot/zephbot/bot/visible"
	"github.com/zephbot/zephbot/policy/act"
	"github.com/zephbot/zephbot/tools"
)

// state is what a turn is doing at the moment, however many events there were. Safe for concurrent use.
type state struct {
	now func() time.Time

	mu      sync.Mutex
	version uint64 // increases with every change of the frame
	text    strings.Builder
	running []running // oldest first
	since   time.Time // since when tools have been running without a break
	done    int
	total   int
	silence turn.Silence // of the model
	plan    []tools.PlanEntry
}

// saidLength limits what is shown of a tool's own words, in UTF-16 units.
const saidLength = 200

// mostSteps is how many lines of a plan are shown.
const mostSteps = 8

// mostSaid is how many calls that run at the same time are shown with their own words.
const mostSaid = 4

// running is a tool call in progress; said is the last line that it reported.
type running struct {
	call, show, said string
	does             act.Verb // "" = show is the name of the tool
}

func newState(now func() time.Time) *state {
	s := &state{now: now}
	s.silence.Begin(now())
	return s
}

// take records an event.
func (s *state) take(event agent.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.silence.Observe(event, s.now())
	switch event.Type {
	case agent.DeltaEvent:
		s.version++
		s.text.WriteString(event.Text)
	case agent.ResetEvent:
		s.version++
		s.text.Reset()
	case agent.ToolStartedEvent:
		if len(s.running) == 0 {
			s.since = s.now()
		}
		show := event.Args
		if event.Verb == "" {
			show = event.Tool
		}
		s.running = append(s.running, running{call: event.Call, does: event.Verb, show: show})
		s.total++
	case agent.ToolFinishedEvent:
		if i := slices.IndexFunc(s.running, func(r running) bool { return r.call == event.Call }); i >= 0 {
			s.running = slices.Delete(s.running, i, i+1)
			s.done++
			s.version++
		}
	case agent.ToolProgressEvent:
		if i := slices.IndexFunc(s.running, func(r running) bool { return r.call == event.Call }); i >= 0 {
			s.running[i].said = event.Text
		}
	case agent.PlanEvent:
		s.version++
		s.plan = event.Plan
	case agent.ModelEvent, agent.ThoughtEvent:
	}
}

// plainLines returns lines in which nothing is a link, a name or a command.
func plainLines(lines []string) bot.Content {
	for i, line := range lines[1:] {
		lines[i+1] = render.Cut(visible.Name(line), saidLength)
	}
	text := strings.Join(lines, "\n")
	return bot.Content{Text: text, Entities: render.Inert(text)}
}

// glance describes a frame without building it.
type glance struct {
	version uint64
	silent  time.Duration // for how long the model has said nothing, if that is to be said; else 0
	empty   bool          // there is nothing to show
	line    bool          // tools are named, with a running time
	change  time.Duration // when that changes by itself
}

func (s *state) glance(now time.Time) glance {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := glance{version: s.version, change: never}
	if len(s.running) > 0 {
		took := now.Sub(s.since)
		g.line = took > lineAfter
		g.change = time.Second
		if !g.line {
			g.change = lineAfter - took + time.Millisecond
		}
	}
	reached, next := s.silence.Lasting(now)
	if g.silent = reached; next > 0 {
		g.change = min(g.change, next)
	}
	g.empty = !g.line && s.text.Len() == 0 && g.silent == 0 && len(s.plan) == 0
	return g
}

// frame returns what to show at now. Its text is empty if there is nothing to show.
func (s *state) frame(words ProgressWords, language string, now time.Time) bot.Content {
	s.mu.Lock()
	text, done, total := s.text.String(), s.done, s.total
	var current running
	var said []string // the last line that a long command printed, or what sub-agents do
	took := time.Duration(0)
	silent, _ := s.silence.Lasting(now)
	if len(s.running) > 0 {
		current, took = s.running[0], now.Sub(s.since)
	}
	for i := range s.running {
		if text := s.running[i].said; text != "" && len(said) < mostSaid {
			said = append(said, text)
		}
	}
	steps := tools.Checklist(s.plan, mostSteps)
	s.mu.Unlock()
	if took > lineAfter {
		return plainLines(append(
			append([]string{words.Line(language, current.does, current.show, done, total, took)}, said...), steps...,
		))
	}
	m := render.Partial(text)
	content := bot.Content{Text: m.Text, Entities: m.Entities}
	switch {
	case silent > 0:
	case content.Text == "" && len(steps) > 0:
		return plainLines(append([]string{words.Thinking(language)}, steps...))
	default:
		return content
	}
	line := words.Silent(language, silent)
	switch {
	case content.Text == "":
		return plainLines(append([]string{line}, steps...))
	case fits(content, line):
		content.Text += "\n\n" + line
	}
	return content
}
