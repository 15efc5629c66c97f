//go:build linux

package crashtest_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zephbot/zephbot/bot"
)

// Two processes must never work on one session at the same time. The fake model and the fake tool record each request
// with its process, and each process reports when it takes and when it releases a session's lane. The run fails if two
// processes make requests for one session and the newer request begins while the older one is in progress.
// What counts:
//
//   - a call of the tool, from the moment it arrives until its answer is written;
//   - a request to the model, from the moment it arrives until the last piece of its answer is written. Its process must
//     have reported the lane before: nothing leaves before the beginning of a turn is stored.
//
// What does not count:
//
//   - anything after the moment at which its process reported releasing the lane, or was killed or stopped (SIGSTOP): a
//     request that is under way cannot be taken back;
//   - anything that begins within settling after SIGCONT: a process finishes the step at which it was stopped before it
//     can notice that time has passed;
//   - anything that a process was already doing when others declared it dead because it was silent for too long: it ends
//     then, and requests that it began in the last fallen before its end are not counted. Requests that it begins later
//     are.
const (
	settling = time.Second
	// noticing is how long a fake may take to notice that its caller has gone.
	noticing = time.Second
)

// life is one run of one process.
type life struct{ process, number int }

// String is what lifeOf reads.
func (l life) String() string { return fmt.Sprintf("%d-%d", l.process, l.number) }

// job is a request of a process for a session.
type job struct {
	life
	session string
	what    string
	tool    bool // otherwise it asks the model
	from    time.Time
	to      time.Time // zero: it was never answered
	left    bool      // whoever asked went away before the answer
}

// hold is the time for which a process has a session's lane, as the process reports it.
type hold struct {
	life
	session string
	from    time.Time
	to      time.Time // zero: it was not released
}

// silence is a time during which a process was dead or stopped, or declared dead.
type silence struct {
	life
	from   time.Time
	to     time.Time // zero: forever
	doubt  bool      // others took it for dead
	frozen bool
}

// diary records what the processes of a machine did, and for which session.
type diary struct {
	mu       sync.Mutex
	jobs     []*job
	holds    []*hold
	open     map[hold]*hold // by life and session
	silences []silence
}

// begin records a request that has arrived.
func (d *diary) begin(j job) *job {
	d.mu.Lock()
	defer d.mu.Unlock()
	j.from = time.Now()
	d.jobs = append(d.jobs, &j)
	return &j
}

// end records that a request has ended, unless it has already.
func (d *diary) end(j *job, left bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if j.to.IsZero() {
		j.to, j.left = time.Now(), left
	}
}

// silent records that a process is no longer running.
func (d *diary) silent(s silence) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.silences = append(d.silences, s)
}

// again records that a stopped process continues.
func (d *diary) again(l life, at time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range d.silences {
		if s := &d.silences[i]; s.life == l && s.frozen && s.to.IsZero() {
			s.to = at
		}
	}
}

// Lines with which a process reports its lanes.
const (
	laneTaken = "lane taken"
	laneGiven = "lane given back"
)

// lanesOf returns the lines about the lanes that a Change takes or releases.
func lanesOf(c *bot.Change, taken bool, at time.Time) (lines []string) {
	if taken && c.Claim != nil {
		lines = append(lines, fmt.Sprintf("%s %d %s", laneTaken, at.UnixNano(), c.Claim.Session))
	}
	for i := range c.Lanes {
		if !taken && c.Lanes[i].Release {
			lines = append(lines, fmt.Sprintf("%s %d %s", laneGiven, at.UnixNano(), c.Lanes[i].Session))
		}
	}
	return lines
}

// heard reads a line of a process's report.
func (d *diary) heard(l life, line string) {
	var nanos int64
	var session string
	is := func(what string) bool {
		rest, ok := strings.CutPrefix(line, what+" ")
		if ok {
			_, err := fmt.Sscanf(rest, "%d %s", &nanos, &session)
			ok = err == nil // half a line of a process that was killed
		}
		return ok
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case is(laneTaken):
		h := &hold{life: l, session: session, from: time.Unix(0, nanos)}
		if d.open == nil {
			d.open = map[hold]*hold{}
		}
		d.open[hold{life: l, session: session}] = h
		d.holds = append(d.holds, h)
	case is(laneGiven):
		if h := d.open[hold{life: l, session: session}]; h != nil {
			h.to = time.Unix(0, nanos)
			delete(d.open, hold{life: l, session: session})
		}
	}
}

// verdict is the result of evaluating a diary.
type verdict struct {
	model, tools int
	early        []*job // requests to the model that came before their process had the lane
	counted      int
	passed       int        // how often a session's next request came from another process than the one before
	twice        [][2]*span // concurrent requests, the older one first
}

// span is the part of a job that counts.
type span struct {
	*job
	from, to time.Time
}

// verdict looks for concurrent requests.
func (d *diary) verdict() (v verdict) {
	d.mu.Lock()
	defer d.mu.Unlock()
	silences, holds := map[life][]silence{}, map[hold][]*hold{}
	for _, s := range d.silences {
		silences[s.life] = append(silences[s.life], s)
	}
	for _, h := range d.holds {
		key := hold{life: h.life, session: h.session}
		holds[key] = append(holds[key], h)
	}
	sessions := map[string][]*span{}
	for _, j := range d.jobs {
		held := held(j, holds[hold{life: j.life, session: j.session}])
		switch {
		case j.tool:
			v.tools++
		case held == nil || held.from.After(j.from):
			v.model++
			v.early = append(v.early, j)
		default:
			v.model++
		}
		if s := counts(j, held, silences[j.life]); s != nil {
			v.counted++
			sessions[j.session] = append(sessions[j.session], s)
		}
	}
	for _, list := range sessions {
		slices.SortFunc(list, func(a, b *span) int { return a.from.Compare(b.from) })
		for i, newer := range list {
			if i > 0 && list[i-1].process != newer.process {
				v.passed++
			}
			for _, older := range list[:i] {
				if older.process != newer.process && newer.from.Before(older.to) {
					v.twice = append(v.twice, [2]*span{older, newer})
				}
			}
		}
	}
	slices.SortFunc(v.twice, func(a, b [2]*span) int { return cmp.Or(a[1].from.Compare(b[1].from), a[0].from.Compare(b[0].from)) })
	return v
}

// held returns the hold during which a request was made, or that was reported while it was in progress; nil if there is
// none.
func held(j *job, holds []*hold) (found *hold) {
	for _, h := range holds {
		if (h.to.IsZero() || h.to.After(j.from)) && (j.to.IsZero() || h.from.Before(j.to)) {
			found = h
		}
	}
	return found
}

// counts returns the part of a request that counts; nil if none does.
func counts(j *job, held *hold, silences []silence) *span {
	if held == nil && !j.tool {
		return nil
	}
	s := &span{job: j, from: j.from, to: j.to}
	if j.to.IsZero() {
		s.to = j.from.Add(aftermath)
	}
	if j.left {
		s.to = s.to.Add(-noticing)
	}
	if held != nil && !j.tool && held.from.After(s.from) {
		s.from = held.from
	}
	if held != nil && !held.to.IsZero() && held.to.Before(s.to) {
		s.to = held.to
	}
	for _, still := range silences {
		if !still.doubt && !still.from.After(s.from) && (still.to.IsZero() || s.from.Before(still.to.Add(settling))) {
			return nil
		}
		if still.from.Before(s.to) && (still.doubt || still.from.After(s.from)) {
			s.to = still.from
		}
	}
	if s.to.Before(s.from) {
		s.to = s.from
	}
	return s
}

// once checks that no two processes worked on one session at the same time.
func (m *machine) once() {
	v := m.diary.verdict()
	m.tally.verdict = v
	for _, pair := range v.twice[:min(len(v.twice), 10)] {
		older, newer := pair[0], pair[1]
		m.fail("seed %d: two at once for %s: process %d (life %d) began %s at %.3f s, while %s of process %d (life %d), from %.3f s to %.3f s, was under way",
			m.seed, newer.session, newer.process, newer.number, newer.what, m.since(newer.from), older.what, older.process, older.number, m.since(older.from), m.since(older.to))
	}
	for _, j := range v.early[:min(len(v.early), 10)] {
		m.fail("seed %d: process %d (life %d) asked the model for %s at %.3f s, before it had the lane", m.seed, j.process, j.number, j.session, m.since(j.from))
	}
	if m.shared && (v.counted == 0 || v.passed == 0 && !m.steady || v.tools == 0) {
		m.fail("%+v: this proves nothing about two at once", v)
	}
}

func (m *machine) since(at time.Time) float64 { return at.Sub(m.began).Seconds() }

// TestTwoAtOnce shows that the check can fail, and what it ignores.
func TestTwoAtOnce(t *testing.T) {
	t.Parallel()
	zero := time.Unix(1_800_000_000, 0)
	at := func(second float64) time.Time {
		if second == 0 {
			return time.Time{}
		}
		return zero.Add(time.Duration(second * float64(time.Second)))
	}
	one, two := life{0, 1}, life{1, 1}
	model := func(l life, from, to float64) job { return job{life: l, session: "s", from: at(from), to: at(to)} }
	tool := func(l life, from, to float64) job {
		return job{life: l, session: "s", tool: true, from: at(from), to: at(to)}
	}
	lane := func(l life, from, to float64) hold { return hold{life: l, session: "s", from: at(from), to: at(to)} }
	other, gone := model(two, 5, 9), model(one, 1, 6)
	other.session, gone.left = "other", true
	for name, c := range map[string]struct {
		jobs     []job
		holds    []hold
		silences []silence
		twice    int
	}{
		"one after the other":              {[]job{model(one, 1, 5), model(two, 5, 9)}, []hold{lane(one, 1, 5), lane(two, 5, 9)}, nil, 0},
		"model and model":                  {[]job{model(one, 1, 6), model(two, 5, 9)}, []hold{lane(one, 1, 0), lane(two, 5, 9)}, nil, 1},
		"… of other sessions":              {[]job{model(one, 1, 6), other}, []hold{lane(one, 1, 0), lane(two, 5, 9)}, nil, 0},
		"… of one process":                 {[]job{model(one, 1, 6), model(one, 5, 9)}, []hold{lane(one, 1, 0)}, nil, 0},
		"… of the next life":               {[]job{model(one, 1, 0), model(life{0, 2}, 5, 9)}, []hold{lane(one, 1, 0), lane(life{0, 2}, 5, 9)}, nil, 0},
		"… the first never answered":       {[]job{model(one, 1, 0), model(two, 5, 9)}, []hold{lane(one, 1, 0), lane(two, 5, 9)}, nil, 1},
		"… the second asked in vain":       {[]job{model(one, 1, 6), model(two, 5, 9)}, []hold{lane(one, 1, 6)}, nil, 0},
		"… the first asked in vain":        {[]job{model(one, 1, 6), model(two, 5, 9)}, []hold{lane(two, 4, 9)}, nil, 0},
		"… the second has the lane later":  {[]job{model(one, 1, 6), model(two, 5, 9)}, []hold{lane(one, 1, 6), lane(two, 6.5, 9)}, nil, 0},
		"… the first gave the lane back":   {[]job{model(one, 1, 6), model(two, 5, 9)}, []hold{lane(one, 1, 4.5), lane(two, 5, 9)}, nil, 0},
		"… a lane of an earlier turn":      {[]job{model(one, 3, 6), model(two, 5, 9)}, []hold{lane(one, 1, 2), lane(two, 5, 9)}, nil, 0},
		"… whoever asked had gone":         {[]job{gone, model(two, 5.5, 9)}, []hold{lane(one, 1, 0), lane(two, 5, 9)}, nil, 0},
		"… and goes after the second came": {[]job{gone, model(two, 4.5, 9)}, []hold{lane(one, 1, 0), lane(two, 4, 9)}, nil, 1},
		"tool and model":                   {[]job{tool(one, 1, 6), model(two, 5, 9)}, []hold{lane(one, 1, 0), lane(two, 5, 9)}, nil, 1},
		"model and tool":                   {[]job{model(one, 1, 6), tool(two, 5, 9)}, []hold{lane(one, 1, 0), lane(two, 5, 9)}, nil, 1},
		"tools without a lane":             {[]job{tool(one, 1, 6), tool(two, 5, 9)}, nil, nil, 1},
		"three at once":                    {[]job{tool(one, 1, 6), tool(two, 5, 9), tool(life{2, 1}, 5.5, 7)}, nil, nil, 3},
		"the first killed before":          {[]job{tool(one, 1, 6), tool(two, 5, 9)}, nil, []silence{{life: one, from: at(2)}}, 0},
		"the first killed after":           {[]job{tool(one, 1, 8), tool(two, 5, 9)}, nil, []silence{{life: one, from: at(6)}}, 1},
		"another life killed":              {[]job{tool(one, 1, 6), tool(two, 5, 9)}, nil, []silence{{life: life{0, 2}, from: at(2)}}, 1},
		"the first stopped":                {[]job{tool(one, 1, 8), tool(two, 5, 9)}, nil, []silence{{life: one, from: at(2), to: at(6)}}, 0},
		"the second sent when stopped":     {[]job{tool(one, 1, 8), tool(two, 5, 9)}, nil, []silence{{life: two, from: at(4), to: at(6)}}, 0},
		"… and when it went on":            {[]job{tool(one, 1, 8), tool(two, 5, 9)}, nil, []silence{{life: two, from: at(3), to: at(4.5)}}, 0},
		"… and long after it went on":      {[]job{tool(one, 1, 8), tool(two, 5, 9)}, nil, []silence{{life: two, from: at(2), to: at(3)}}, 1},
		"the first was taken for dead":     {[]job{tool(one, 3, 8), tool(two, 5, 9)}, nil, []silence{{life: one, from: at(2), doubt: true}}, 0},
		"… and begins something":           {[]job{tool(two, 1, 8), tool(one, 5, 9)}, nil, []silence{{life: one, from: at(2), doubt: true}}, 1},
	} {
		d := &diary{silences: c.silences}
		for i := range c.jobs {
			d.jobs = append(d.jobs, &c.jobs[i])
		}
		for i := range c.holds {
			d.holds = append(d.holds, &c.holds[i])
		}
		if got := d.verdict(); len(got.twice) != c.twice {
			t.Errorf("%s: %d at once, want %d", name, len(got.twice), c.twice)
		}
	}
}

// TestLanesAreReported: the diary can read what a process reports about its lanes.
func TestLanesAreReported(t *testing.T) {
	t.Parallel()
	from, to := time.Unix(1_800_000_000, 7), time.Unix(1_800_000_004, 9)
	take := &bot.Change{Claim: &bot.Claim{Session: "a/b"}}
	give := &bot.Change{Lanes: []bot.LaneUpdate{{Session: "other"}, {Session: "a/b", Release: true}}}
	d := &diary{}
	for _, line := range slices.Concat(lanesOf(take, true, from), lanesOf(take, false, from), lanesOf(give, true, to), lanesOf(give, false, to), []string{"1 claim", laneTaken + " 12"}) {
		d.heard(life{2, 3}, line)
	}
	if len(d.holds) != 1 || *d.holds[0] != (hold{life: life{2, 3}, session: "a/b", from: from, to: to}) || len(d.open) != 0 {
		t.Errorf("holds %+v, open %v", d.holds, d.open)
	}
}
