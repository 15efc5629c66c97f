// Package replay decides recorded calls again with other rules, and compares what comes out. It reads no configuration
// and opens nothing: a [Decider] applies the rules.
package replay

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/zephbot/zephbot/tools/audit"
)

// Decision is what rules say about a call. Effect is allow, ask or deny.
type Decision struct {
	Effect string `json:"effect"`
	Rule   string `json:"rule"`
	Reason string `json:"reason,omitempty"`
}

// Call is a call that is decided: a recorded one, or one of an example.
type Call struct {
	Tool    string
	Args    json.RawMessage
	Caller  string // with the sub-agent, if one made the call
	Session string
	Channel string
	Flagged bool // the conversation had content that was flagged
}

// Decider applies rules to a call. Its error says why they cannot be applied.
type Decider interface {
	Decide(Call) (Decision, error)
}

// Unsure is why a recorded call cannot be decided exactly again.
type Unsure string

// Reasons. What is not recorded cannot be replayed.
const (
	Redacted Unsure = "arguments are redacted"
	Cut      Unsure = "arguments are shortened"
	Erased   Unsure = "line was pseudonymised"
	Source   Unsure = "trust level of a skill decided"
	Other    Unsure = "no rule decided (tool was not offered, arguments were wrong, or a limit was reached)"
	Failed   Unsure = "rules could not be applied"
	Elusive  Unsure = "the old configuration does not repeat the recorded decision either"
)

// Difference is a group of calls that would be decided differently in the same way.
type Difference struct {
	Tool   string   `json:"tool"`
	What   string   `json:"what"`
	Old    Decision `json:"old"`
	New    Decision `json:"new"`
	Count  int      `json:"count"`
	Caller string   `json:"caller"` // of the first one
	First  string   `json:"first"`  // its time
	Last   string   `json:"last"`
}

// Summary is the result of a replay.
type Summary struct {
	Calls     int            `json:"calls"`   // that were recorded
	Same      int            `json:"same"`    // decided as recorded
	Changed   int            `json:"changed"` // decided differently
	Undecided map[Unsure]int `json:"undecided,omitempty"`
	Broken    int            `json:"broken,omitempty"` // lines that are no audit lines
	// Differences are the groups, the most frequent first. Calls beyond MaxGroups groups are only counted, in Beyond.
	Differences []Difference `json:"differences"`
	Beyond      int          `json:"beyond,omitempty"`
}

// MaxGroups limits the groups, and what a Replay remembers of decisions.
const (
	MaxGroups   = 5000
	maxDecided  = 20_000
	maxCallSize = 1 << 10
)

// Replay takes recorded lines one by one. It is used by one goroutine.
type Replay struct {
	now, old Decider
	decided  map[string]both
	groups   map[groupKey]*Difference
	summary  Summary
}

type both struct {
	now, old Decision
	unsure   Unsure
}

type groupKey struct{ tool, what, oldEffect, oldRule, newEffect, newRule string }

// New returns a Replay that decides with now. If old is not nil, it has the rules that were in force: a call that they
// do not decide as recorded is not compared with the record, but with what they decide.
func New(now, old Decider) *Replay {
	return &Replay{
		now: now, old: old, decided: map[string]both{}, groups: map[groupKey]*Difference{},
		summary: Summary{Undecided: map[Unsure]int{}},
	}
}

// Line takes a line of the log into account. Only calls count.
func (r *Replay) Line(l *audit.Line) {
	switch {
	case l.Broken != "":
		r.summary.Broken++
		return
	case l.Kind != "" || strings.HasPrefix(l.Tool, "/"): // a command of a person is no call
		return
	}
	r.summary.Calls++
	was, unsure := recorded(l)
	if unsure != "" {
		r.summary.Undecided[unsure]++
		return
	}
	is := r.decide(Call{
		Tool:    l.Tool,
		Args:    l.Args,
		Caller:  l.Caller,
		Session: l.Session,
		Channel: l.Channel,
		Flagged: strings.Contains(l.Rule, flaggedRule),
	})
	switch {
	case is.unsure != "":
		r.summary.Undecided[is.unsure]++
	case r.old != nil && is.old.Effect != was.Effect && is.old.Effect == is.now.Effect:
		r.summary.Undecided[Elusive]++
	case r.old != nil && is.old.Effect != was.Effect:
		r.differs(l, is.old, is.now)
	case is.now.Effect == was.Effect || granted(was, is.now):
		r.summary.Same++
	default:
		r.differs(l, was, is.now)
	}
}

// What rules of the policy begin with, or contain, that depend on more than the configuration.
const (
	flaggedRule = "built-in: flagged content"
	trustRule   = "built-in: trust "
	grantRule   = "grant: "
)

// granted reports whether a standing approval allowed the call, which answers the question of the new rules
// too. It does not answer a denial.
func granted(was, is Decision) bool {
	return strings.Contains(was.Rule, grantRule) && was.Effect == "allow" && is.Effect == "ask"
}

// recorded returns the decision that a line records.
func recorded(l *audit.Line) (Decision, Unsure) {
	d := Decision{Effect: l.Effect, Rule: l.Rule}
	if d.Effect == "" { // an earlier version wrote the line
		d.Effect = derived(l)
	}
	switch {
	case l.Rule == "" || d.Effect == "", l.Rule == "not possible", l.Rule == "not offered",
		l.Rule == "not a tool of the sub-agent", l.Rule == "no policy":
		return d, Other
	case l.Erased:
		return d, Erased
	case strings.Contains(l.Rule, trustRule):
		return d, Source
	case bytes.Contains(l.Args, []byte("[redacted]")):
		return d, Redacted
	case len(l.Args) > 0 && l.Args[0] != '{':
		return d, Cut
	}
	return d, ""
}

// derived concludes the effect from how the call ended.
func derived(l *audit.Line) string {
	switch {
	case l.ApprovedBy != "":
		return "ask"
	case l.Result == "blocked" && l.Reason == "This call is denied by policy.":
		return "deny"
	case l.Result == "blocked" || l.Result == "cancelled":
		return "ask"
	default:
		return "allow"
	}
}

// decide decides a call, or remembers how an equal one was decided.
func (r *Replay) decide(c Call) both {
	key := ""
	if len(c.Args) <= maxCallSize {
		flagged := ""
		if c.Flagged {
			flagged = "!"
		}
		key = strings.Join([]string{c.Tool, string(c.Args), c.Caller, c.Session, c.Channel, flagged}, "\x00")
		if d, ok := r.decided[key]; ok {
			return d
		}
	}
	d := r.judge(c)
	if key != "" {
		if len(r.decided) >= maxDecided {
			clear(r.decided)
		}
		r.decided[key] = d
	}
	return d
}

func (r *Replay) judge(c Call) (d both) {
	var err error
	if d.now, err = r.now.Decide(c); err != nil {
		return both{unsure: Failed}
	}
	if r.old == nil {
		return d
	}
	if d.old, err = r.old.Decide(c); err != nil {
		return both{unsure: Failed}
	}
	return d
}

func (r *Replay) differs(l *audit.Line, old, now Decision) {
	r.summary.Changed++
	what := callSubject(l.Args)
	key := groupKey{l.Tool, what, old.Effect, old.Rule, now.Effect, now.Rule}
	g := r.groups[key]
	if g == nil {
		if len(r.groups) >= MaxGroups {
			r.summary.Beyond++
			return
		}
		g = &Difference{
			Tool:   l.Tool,
			What:   what,
			Old:    old,
			New:    now,
			Caller: l.Caller,
			First:  l.Time.UTC().Format(time.RFC3339),
		}
		r.groups[key] = g
	}
	g.Count++
	g.Last = l.Time.UTC().Format(time.RFC3339)
}

// Summary returns the result so far.
func (r *Replay) Summary() Summary {
	s := r.summary
	s.Differences = make([]Difference, 0, len(r.groups))
	for _, g := range r.groups {
		s.Differences = append(s.Differences, *g)
	}
	slices.SortFunc(s.Differences, func(a, b Difference) int {
		return cmp.Or(
			b.Count-a.Count,
			strings.Compare(a.Tool, b.Tool),
			strings.Compare(a.What, b.What),
			strings.Compare(a.First, b.First),
		)
	})
	return s
}

// maxWhat limits what a group shows of its arguments, in bytes.
const maxWhat = 300

// callSubject returns the part of arguments that says most, shortened: the command, the
// path, the address; otherwise all.
func callSubject(args json.RawMessage) string {
	text := string(args)
	var fields map[string]any
	if json.Unmarshal(args, &fields) == nil {
		for _, key := range []string{"command", "file_path", "path", "source", "url", "uri", "query", "text"} {
			if s, ok := fields[key].(string); ok && s != "" {
				text = s
				break
			}
		}
		if len(fields) == 0 {
			text = ""
		}
	}
	if len(text) > maxWhat {
		text = strings.ToValidUTF8(text[:maxWhat], "") + "…"
	}
	return text
}
