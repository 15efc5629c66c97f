// Package llmtest provides a scripted language model for tests and scenario files. It behaves like a provider (it
// streams, waits, fails and honours ctx) and says only what its script contains.
//
// A script is a list of Steps, each of them one answer. New plays them in order, no matter who asks. On adds a rule
// instead: its steps answer the conversations whose last user message contains a text. Which of them comes next is read
// from the conversation alone (the number of assistant messages after that user message), so many sessions can run at
// once, and a resumed turn gets the same answer again. Steps with Err precede the step that they delay: each is played
// once for one and the same history, then the following step answers. An Err step with none after it fails forever.
// Rules are tried in order of declaration; if none matches, the steps of New are used.
//
// Parse reads a script from text, one action a line; empty lines and lines that begin with # are skipped:
//
//	on "hello": say Hi there            a rule and its first step
//	on "save": call bash {"command":"touch it"}
//	then say Done                       the next step of the same rule
//	on "many": say* one two three       streamed word by word
//	on "both": call* read {"path":"a"} read {"path":"b"}
//	on "look": say I will look.         one step: text …
//	and call list_directory {"path":"."}   … and a tool use, and so on
//	and usage 120 30                    input and output tokens of the step; "usage 120 30 0.15": and its price in USD
//	then expect "main.go"               the step's last user or tool message must contain this
//	and say Found it
//	on "x": fail rate_limited 5s        a llm.Kind, RateLimited optionally with RetryAfter
//	then say Now it works
//	on "slow": wait gate                blocks until Release("gate"), then goes on with
//	and say Here I am
//	on "broken": callraw bash {"command   arguments that are not JSON
//	on "cut": say Half an ans
//	and stop length                     end, tools, length, refusal
//	on "secret": never                  to be asked here is a mistake: Broken names the line
//	on "": say I match everything
//	sees image file                     a line of its own: the kinds of parts that the model takes
//	say First answer                    a line before any rule belongs to the ordered script of New
//
// A text in double quotes is unquoted as in Go ("two\
// lines"); say <<END takes the following lines up to the line END. Words, not indentation, group lines: "then" begins a
// new step, "and" adds to the last one, an "on" line begins a rule.
package llmtest

import (
	"crypto/sha256"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/zephbot/zephbot/agent/llm"
)

// Step is one answer of the script.
type Step struct {
	Expect     *regexp.Regexp  // the last user or tool message must match; nil = anything
	ExpectText string          // … must contain this; "" = anything
	Wait       <-chan struct{} // blocks until closed or received from; nil = no wait
	Deltas     []string        // streamed one by one; the answer's text is their sum
	Text       string          // streamed in one piece when there are no Deltas
	Thoughts   string          // thought before the text, in one piece
	Unmade     bool            // the text has calls that cannot be made
	Uses       []llm.ToolUse   // an empty ID is filled in, unique within the conversation
	Err        error           // returned after the deltas; for an *llm.Error, Provider and Streamed are filled in
	Stop       llm.Stop        // "" = tools when there are Uses, else end
	Declines   bool            // with StopRefusal: Text is all that the model says, and not the beginning of an answer
	Usage      llm.Usage
	USD        float64

	gate   *gate  // of a parsed "wait NAME"
	line   int    // of the script text; 0 = written in Go
	source string // that line
	played bool
	never  bool
}

// Model is the scripted provider. Safe for concurrent use.
type Model struct {
	name string
	sees llm.Accepts

	mu       sync.Mutex
	steps    []Step
	next     int
	rules    []rule
	failed   map[[sha256.Size]byte]int // failing steps played so far, per rule and history
	requests []llm.Request
	gates    map[string]*gate
	broken   []string
}

// rule is the script of the conversations whose last user message contains match.
type rule struct {
	match string
	steps []Step
}

// gate is a named wait.
type gate struct {
	release, arrived         chan struct{}
	releaseOnce, arrivedOnce sync.Once
}

func newGate() *gate { return &gate{release: make(chan struct{}), arrived: make(chan struct{})} }

// New makes a model named "scripted" that plays steps in order.
func New(steps ...Step) *Model { return Named("scripted", steps...) }

// Named is New with a different provider name.
func Named(name string, steps ...Step) *Model {
	return &Model{name: name, steps: steps, failed: map[[sha256.Size]byte]int{}, gates: map[string]*gate{}}
}

// On adds a rule for conversations whose last user message contains substring ("" matches all) and returns the model.
func (m *Model) On(substring string, steps ...Step) *Model {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.rules = append(m.rules, rule{match: substring, steps: steps})
	return m
}

// Name implements llm.Provider.
func (m *Model) Name() string { return m.name }

// Requests returns a copy of all requests so far, in order of arrival.
func (m *Model) Requests() []llm.Request {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := make([]llm.Request, len(m.requests))
	for i := range m.requests {
		out[i] = clone(&m.requests[i])
	}
	return out
}

// Unused names the steps, ordered ones and those of rules, that no request has reached so far: by the line of the
// script that begins them, or by their text if they were written in Go. A step whose expectation was not met is not
// reached; one that waits or fails is.
func (m *Model) Unused() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var list []string
	for _, steps := range append([][]Step{m.steps}, m.ruleSteps()...) {
		for i := range steps {
			if s := &steps[i]; s.never {
				continue
			} else if !s.played && s.line > 0 {
				list = append(list, fmt.Sprintf("line %d: %s", s.line, shorten(s.source)))
			} else if !s.played {
				list = append(list, fmt.Sprintf("step %d: %s", i+1, shorten(s.Text+strings.Join(s.Deltas, ""))))
			}
		}
	}
	return list
}

// Broken names the "never" lines that a request has reached.
func (m *Model) Broken() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.broken)
}

func (m *Model) ruleSteps() [][]Step {
	list := make([][]Step, len(m.rules))
	for i := range m.rules {
		list[i] = m.rules[i].steps
	}
	return list
}

// Release opens the named wait of a parsed script, for current and future callers. Repeating it does nothing.
func (m *Model) Release(name string) {
	g := m.gate(name)
	g.releaseOnce.Do(func() { close(g.release) })
}

// Arrived is closed when a call has reached the named wait for the first time.
func (m *Model) Arrived(name string) <-chan struct{} { return m.gate(name).arrived }

func (m *Model) gate(name string) *gate {
	m.mu.Lock()
	defer m.mu.Unlock()
	g := m.gates[name]
	if g == nil {
		g = newGate()
		m.gates[name] = g
	}
	return g
}

// Sees sets the kinds of parts that the model takes and returns the model. In what a step expects of a message, there
// is a line for each of its parts: [sees image "a.png", image/png, 12 bytes] for a content that the model has read,
// else the line that puts the part into words.
func (m *Model) Sees(accepts llm.Accepts) *Model {
	m.sees = accepts
	return m
}

// Accepts implements llm.Accepter.
func (m *Model) Accepts() llm.Accepts { return m.sees }
