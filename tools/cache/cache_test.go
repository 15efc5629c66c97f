package cache_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/policy"
	"github.com/zephbot/zephbot/policy/act"
	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/cache"
	"github.com/zephbot/zephbot/tools/cache/cachetest"
	"github.com/zephbot/zephbot/tools/chain"
	"github.com/zephbot/zephbot/tools/file"
	"github.com/zephbot/zephbot/tools/toolstest"
	"github.com/zephbot/zephbot/tools/web"
)

func TestMemory(t *testing.T) {
	t.Parallel()
	cachetest.Suite(t, func(*testing.T) cache.Store { return cache.NewMemory(nil) })
}

// setup is a stage over tools that are counted.
type setup struct {
	*cache.Cache
	store    *cachetest.Store
	now      time.Time
	log      bytes.Buffer
	observed []string
	runs     int
	result   *tools.Result
	err      error
	none     bool   // the tool gives nothing at all
	started  bool   // what the trail says after a failure
	during   func() // runs in the tool
}

func newSetup(change func(*cache.Options)) *setup {
	s := &setup{now: time.Unix(1_700_000_000, 0), started: true}
	clock := func() time.Time { return s.now }
	s.store = &cachetest.Store{Store: cache.NewMemory(clock)}
	o := cache.Options{
		Store: s.store, TTL: 5 * time.Minute, Timeout: time.Hour, Now: clock, Log: zerolog.New(&s.log),
		Observe: func(result string) { s.observed = append(s.observed, result) },
	}
	if change != nil {
		change(&o)
	}
	s.Cache = cache.New(o)
	return s
}

// definition of the tools that the tests call.
func definition(tool string) tools.Definition {
	d := tools.Definition{Name: tool, Schema: []byte(`{}`), ReadOnly: true}
	server, _, foreign := strings.Cut(tool, ":")
	switch {
	case foreign:
		d.Server = server
	default:
		d.Says = act.Of(append(file.Says(), web.Says()...), tool)
	}
	switch {
	case tool == "bash", tool == "write", tool == "edit", tool == "delete_path":
		d.ReadOnly = false
	}
	return d
}

// call passes one call through the stage; its result is the number of runs.
func (s *setup) call(ctx context.Context, tool, args string, change ...func(*tools.Call)) (*tools.Call, *tools.Result, error) {
	call := toolstest.Call(tool, args)
	call.Def = definition(tool)
	for _, f := range change {
		f(call)
	}
	res, err := s.Middleware(func(_ context.Context, call *tools.Call) (*tools.Result, error) {
		s.runs++
		call.Trail.Started = s.started
		if s.during != nil {
			s.during()
		}
		if s.err != nil || s.result != nil || s.none {
			return s.result, s.err
		}
		return &tools.Result{Text: fmt.Sprint("run ", s.runs)}, nil
	})(ctx, call)
	return call, res, err
}

// text makes a call that goes well.
func (s *setup) text(t *testing.T, tool, args string, change ...func(*tools.Call)) string {
	t.Helper()
	call, res, err := s.call(t.Context(), tool, args, change...)
	if err != nil || res == nil {
		t.Fatalf("%s: %v, %v", tool, res, err)
	}
	if hit := len(s.observed) > 0 && s.observed[len(s.observed)-1] == cache.Hit; hit != call.Trail.Cached {
		t.Errorf("%s: observed %v, cached %t", tool, s.observed, call.Trail.Cached)
	}
	return res.Text
}

func session(name string) func(*tools.Call) {
	return func(c *tools.Call) { c.Origin.Session = name }
}

func TestAllowList(t *testing.T) {
	t.Parallel()
	for tool, want := range map[string]string{
		"read": cache.Hit, "grep": cache.Hit, "find_path": cache.Hit, "list_directory": cache.Hit, "web_scrape": cache.Hit, "fetch": cache.Hit,
		"edit": cache.Bypass, "write": cache.Bypass, "bash": cache.Bypass, "memory_search": cache.Bypass, "memory_save": cache.Bypass, "echo": cache.Bypass,
		"server:read": cache.Bypass, "Read": cache.Bypass,
	} {
		t.Run(tool, func(t *testing.T) {
			t.Parallel()
			s := newSetup(nil)
			first, second := s.text(t, tool, `{}`), s.text(t, tool, `{}`)
			if hit := first == second; hit != (want == cache.Hit) || s.observed[len(s.observed)-1] != want {
				t.Errorf("got %q, then %q, observed %v", first, second, s.observed)
			}
		})
	}
}

func TestKeys(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		change func(*tools.Call)
		hit    bool
	}{
		{"the same", func(*tools.Call) {}, true},
		{"another call, turn and caller", func(c *tools.Call) { c.ID, c.Origin.Turn, c.Origin.Caller = "2", "3", "telegram:7" }, true},
		{"other arguments", func(c *tools.Call) { c.Args = []byte(`{"path":"b"}`) }, false},
		{"another tool", func(c *tools.Call) { c.Def.Name = "grep" }, false},
		{"a tool that was changed", func(c *tools.Call) { c.Def.Description = "new" }, false},
		{"another session", session("telegram:7"), false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := newSetup(nil)
			s.text(t, "read", `{"path":"a"}`)
			if got := s.text(t, "read", `{"path":"a"}`, tc.change); (got == "run 1") != tc.hit {
				t.Errorf("got %q", got)
			}
		})
	}
}

// TestDrop: after a call that may have changed files, reading calls of the session read again. Results from the web are
// kept.
func TestDrop(t *testing.T) {
	t.Parallel()
	failure := tools.Errorf(tools.PermanentFailure, "no")
	for _, tc := range []struct {
		name    string
		tool    string
		change  func(*tools.Call)
		err     error
		started bool
		dropped bool
	}{
		{name: "bash", tool: "bash", started: true, dropped: true},
		{name: "write", tool: "write", started: true, dropped: true},
		{name: "edit", tool: "edit", started: true, dropped: true},
		{name: "a failure", tool: "delete_path", err: failure, started: true, dropped: true},
		{name: "a failure before the start", tool: "delete_path", err: failure, dropped: true}, // once, before
		{name: "a server's tool", tool: "server:look", started: true, dropped: true},
		{name: "a trusted server's reading tool", tool: "server:look", change: func(c *tools.Call) { c.Def.Trusted = true }, started: true},
		{name: "a trusted server's other tool", tool: "server:do", change: func(c *tools.Call) { c.Def.Trusted, c.Def.ReadOnly = true, false }, started: true, dropped: true},
		{name: "a reading tool", tool: "memory_search", started: true},
		{name: "another file", tool: "grep", started: true},
		{name: "another session", tool: "bash", change: session("telegram:7"), started: true},
		{name: "no session", tool: "bash", change: session(""), started: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := newSetup(nil)
			s.text(t, "read", `{}`)
			s.text(t, "fetch", `{}`)
			s.err, s.started = tc.err, tc.started
			change := tc.change
			if change == nil {
				change = func(*tools.Call) {}
			}
			if _, _, err := s.call(t.Context(), tc.tool, `{}`, change); !errors.Is(err, tc.err) {
				t.Fatal(err)
			}
			s.err = nil
			if got := s.text(t, "read", `{}`); (got == "run 1") == tc.dropped {
				t.Errorf("read: %q", got)
			}
			if got := s.text(t, "fetch", `{}`); got != "run 2" {
				t.Errorf("fetch: %q, want the cached run 2", got)
			}
		})
	}
}

// TestDropTwice: what a reader stored while the other call ran is dropped when that call ends, even if nobody waits for
// it any more.
func TestDropTwice(t *testing.T) {
	t.Parallel()
	for _, stopped := range []bool{false, true} {
		s := newSetup(nil)
		s.text(t, "read", `{}`)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		s.during = func() {
			s.during = nil
			if got := s.text(t, "read", `{}`); got != "run 3" {
				t.Errorf("beside the other: %q", got)
			}
			if stopped {
				cancel()
				s.err = ctx.Err()
			}
		}
		if _, _, err := s.call(ctx, "bash", `{}`); (err != nil) != stopped {
			t.Fatal(err)
		}
		s.err = nil
		if got := s.text(t, "read", `{}`); got != "run 4" {
			t.Errorf("after the other (stopped %t): %q", stopped, got)
		}
	}
}

// TestStale: a reader that began before a change does not keep what it read.
func TestStale(t *testing.T) {
	t.Parallel()
	s := newSetup(nil)
	s.during = func() {
		s.during = nil
		s.text(t, "write", `{}`)
	}
	s.text(t, "read", `{}`)
	if got := s.text(t, "read", `{}`); got != "run 3" {
		t.Errorf("got %q", got)
	}
	if got := s.text(t, "read", `{}`); got != "run 3" {
		t.Errorf("got %q: the next one is kept again", got)
	}
}

func TestChanged(t *testing.T) {
	t.Parallel()
	s := newSetup(nil)
	s.text(t, "read", `{}`)
	s.text(t, "fetch", `{}`)
	s.Changed(t.Context(), "")
	s.Changed(t.Context(), "telegram:7")
	if got := s.text(t, "read", `{}`); got != "run 1" {
		t.Errorf("somebody else's change: %q", got)
	}
	s.Changed(t.Context(), "telegram:42")
	if got := s.text(t, "read", `{}`); got != "run 3" {
		t.Errorf("read: %q", got)
	}
	if got := s.text(t, "fetch", `{}`); got != "run 2" {
		t.Errorf("fetch: %q", got)
	}
}

// TestLive: while files change behind our back, they are read; also when that begins in the middle.
func TestLive(t *testing.T) {
	t.Parallel()
	live := true
	s := newSetup(func(o *cache.Options) { o.Live = func(*tools.Call) bool { return live } })
	for i := 1; i <= 2; i++ {
		if got := s.text(t, "read", `{}`); got != fmt.Sprint("run ", i) {
			t.Errorf("got %q", got)
		}
	}
	s.text(t, "fetch", `{}`)
	if got := s.text(t, "fetch", `{}`); got != "run 3" {
		t.Errorf("fetch: %q", got)
	}
	live = false
	s.during = func() { live = true }
	s.text(t, "read", `{}`)
	s.during, live = nil, false
	if got := s.text(t, "read", `{}`); got != "run 5" {
		t.Errorf("what was read meanwhile is kept: %q", got)
	}
}

func TestTTL(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		ttl, age time.Duration
		hit      bool
	}{
		{5 * time.Minute, 5*time.Minute - 1, true},
		{5 * time.Minute, 5 * time.Minute, false},
		{0, 24*time.Hour - 1, true},
		{0, 24 * time.Hour, false},
		{-1, time.Hour, true},
		{100 * time.Hour, 24 * time.Hour, false},
	} {
		s := newSetup(func(o *cache.Options) { o.TTL = tc.ttl })
		s.text(t, "read", `{}`)
		s.now = s.now.Add(tc.age)
		if got := s.text(t, "read", `{}`); (got == "run 1") != tc.hit {
			t.Errorf("ttl %s, after %s: %q", tc.ttl, tc.age, got)
		}
	}
}

// TestScope: the app defines what a session is; a call outside of one is not cached.
func TestScope(t *testing.T) {
	t.Parallel()
	began := 1
	s := newSetup(func(o *cache.Options) {
		o.Scope = func(c *tools.Call) string {
			if c.Origin.Session == "" {
				return ""
			}
			return fmt.Sprint(c.Origin.Session, "#", began)
		}
	})
	s.text(t, "read", `{}`)
	if got := s.text(t, "read", `{}`); got != "run 1" {
		t.Errorf("got %q", got)
	}
	began++ // /clear
	if got := s.text(t, "read", `{}`); got != "run 2" {
		t.Errorf("after /clear: %q", got)
	}
	for want := 3; want < 5; want++ {
		if got := s.text(t, "read", `{}`, session("")); got != fmt.Sprint("run ", want) {
			t.Errorf("without a session: %q", got)
		}
	}
	if s.observed[len(s.observed)-1] != cache.Bypass {
		t.Errorf("observed %v", s.observed)
	}
}

func TestResults(t *testing.T) {
	t.Parallel()
	zero := 0
	whole := &tools.Result{
		Text: "a <b>\n", Whole: "all", ExitCode: &zero, Truncated: true, Untrusted: "https://example.org/", MIME: "text/html",
		Raw: map[string]any{"n": 12345678901234567, "list": []any{"x", nil, true}},
	}
	for _, tc := range []struct {
		name   string
		result *tools.Result
		err    error
		hit    bool
	}{
		{"everything", whole, nil, true},
		{"nothing", &tools.Result{}, nil, true},
		{"the tool reports a failure", &tools.Result{Text: "no", Error: true}, nil, false},
		{"an error", nil, tools.Errorf(tools.NetworkError, "no"), false},
		{"no result", nil, nil, false},
		{"large", &tools.Result{Text: strings.Repeat("x", 60_000)}, nil, true},
		{"too large", &tools.Result{Text: strings.Repeat("x", 65_536)}, nil, false},
		{"too large as it is stored", &tools.Result{Text: strings.Repeat("\n", 40_000)}, nil, false},
		{"too large as a whole", &tools.Result{Text: "x", Whole: strings.Repeat("x", 70_000)}, nil, false},
		{"too large raw", &tools.Result{Text: "x", Raw: strings.Repeat("x", 70_000)}, nil, false},
		{"no JSON", &tools.Result{Text: "x", Raw: func() {}}, nil, false},
		{"no text", &tools.Result{Text: "a\xff"}, nil, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := newSetup(nil)
			s.result, s.err, s.none = tc.result, tc.err, tc.result == nil
			if _, _, err := s.call(t.Context(), "read", `{}`); !errors.Is(err, tc.err) {
				t.Fatal(err)
			}
			call, got, err := s.call(t.Context(), "read", `{}`)
			if call.Trail.Cached != tc.hit || (s.runs == 1) != tc.hit || !errors.Is(err, tc.err) {
				t.Fatalf("cached %t after %d runs, error %v", call.Trail.Cached, s.runs, err)
			}
			if !tc.hit {
				return
			}
			if got == tc.result || call.Trail.Attempts != 0 || call.Trail.Started {
				t.Errorf("a hit is no run and shares nothing: %p %p %+v", got, tc.result, call.Trail)
			}
			if diff := cmp.Diff(fmt.Sprintf("%+v", clear(*tc.result)), fmt.Sprintf("%+v", clear(*got))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if (tc.result.ExitCode == nil) != (got.ExitCode == nil) || (got.ExitCode != nil && *got.ExitCode != *tc.result.ExitCode) {
				t.Errorf("exit code %v", got.ExitCode)
			}
		})
	}
}

// clear leaves out what is compared otherwise: a pointer.
func clear(r tools.Result) tools.Result {
	r.ExitCode = nil
	return r
}

func TestNoStore(t *testing.T) {
	t.Parallel()
	s := newSetup(func(o *cache.Options) { o.Store = nil })
	s.Changed(t.Context(), "telegram:42")
	for i, tool := range []string{"read", "read", "write"} {
		if got := s.text(t, tool, `{}`); got != fmt.Sprint("run ", i+1) {
			t.Errorf("%s: %q", tool, got)
		}
	}
}

// TestRaces: readers and writers of one session at once; afterwards the last content is what is read.
func TestRaces(t *testing.T) {
	t.Parallel()
	c := cache.New(cache.Options{Store: cache.NewMemory(nil), Timeout: time.Hour})
	var mu sync.Mutex
	content := 0
	h := c.Middleware(func(_ context.Context, call *tools.Call) (*tools.Result, error) {
		mu.Lock()
		defer mu.Unlock()
		if !call.Def.ReadOnly {
			content++
		}
		return &tools.Result{Text: fmt.Sprint(content)}, nil
	})
	do := func(tool string) string {
		call := toolstest.Call(tool, `{}`)
		call.Def = definition(tool)
		res, err := h(t.Context(), call)
		if err != nil {
			t.Error(err)
			return ""
		}
		return res.Text
	}
	var wg sync.WaitGroup
	for n := range 8 {
		wg.Go(func() {
			for range 50 {
				if n%4 == 0 {
					do("write")
				} else {
					do("read")
				}
			}
		})
	}
	wg.Wait()
	if got := do("read"); got != "100" {
		t.Errorf("read %q after 100 writes", got)
	}
}

// TestChain: arguments in another order are the same call. A hit starts nothing, and is decided like any other call.
func TestChain(t *testing.T) {
	t.Parallel()
	runs := 0
	list, err := tools.NewRegistry(tools.Tool{
		Definition: tools.Definition{Name: "grep", Says: definition("grep").Says, Schema: []byte(`{"type":"object"}`), ReadOnly: true},
		Run: func(context.Context, *tools.Call) (*tools.Result, error) {
			runs++
			return &tools.Result{Text: "found"}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	effect := policy.Allow
	o := chain.Options{Registry: list, Cache: cache.New(cache.Options{Store: cache.NewMemory(nil), Timeout: time.Hour}).Middleware}
	o.Gate.Policy = toolstest.Decide(func(policy.Request) policy.Decision { return policy.Decision{Effect: effect} })
	c := chain.New(o)
	for i, args := range []string{`{"a":1,"b":[2]}`, `{ "b":[2], "a":1 }`} {
		call := toolstest.Call("grep", args)
		call.OnStart = func(context.Context) error {
			if i > 0 {
				t.Error("a hit is started")
			}
			return nil
		}
		res, err := c.Execute(t.Context(), call)
		if err != nil || res.Text != "found" || call.Trail.Cached != (i > 0) || call.Trail.Attempts != 1-i || call.Trail.Started != (i == 0) {
			t.Errorf("call %d: %v, %v, %+v", i, res, err, call.Trail)
		}
	}
	effect = policy.Deny
	if _, err := c.Execute(t.Context(), toolstest.Call("grep", `{"a":1,"b":[2]}`)); tools.AsError(err).Category != tools.PolicyBlocked || runs != 1 {
		t.Errorf("a cached call that is denied now: %v, %d runs", err, runs)
	}
}

// BenchmarkStage is what the stage adds to a call, with a store in memory and a result of 4 KiB.
func BenchmarkStage(b *testing.B) {
	for _, tool := range []string{"echo", "write", "read"} {
		b.Run(tool, func(b *testing.B) {
			res := &tools.Result{Text: strings.Repeat("x", 4096)}
			h := cache.New(cache.Options{Store: cache.NewMemory(nil), Timeout: time.Hour}).Middleware(func(context.Context, *tools.Call) (*tools.Result, error) { return res, nil })
			call := toolstest.Call(tool, `{"path":"a"}`)
			call.Def = definition(tool)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := h(b.Context(), call); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
