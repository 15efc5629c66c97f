// Package anomaly is the stage that counts how often a tool fails, and blocks one that fails too often (seed 003: a
// sliding window for each tool).
//
// A failure is a run whose error says something about the tool: a temporary one (network, server, rate limit, timeout)
// or a permanent one. The following are not failures: refusals by policy, quota or a person; questions; cancellations;
// mistakes of the model (an unknown tool, wrong arguments, or a file, page, host or command that does not exist); and a
// result that reports a failure of its own. A command that exits with 1, failing tests and a grep without matches are
// ordinary results of a shell that works.
//
// A call counts once, regardless of retries. The rate is computed over a full window, so that no tool is judged by its
// first calls.
//
// A block applies to one person in one session, so that nobody can have a tool taken away from others. It ends after
// ten minutes, and each time the tool continues to fail, the next block lasts twice as long. The tools of an MCP server
// are blocked for everybody if its calls fail for everybody who makes any, and not mostly for one person.
package anomaly

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"sync"
	"syscall"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/policy/reason"
	"github.com/zephbot/zephbot/tools"
)

// Defaults of [tools.anomaly].
const (
	defaultWindow   = 20
	defaultWarning  = 0.5
	defaultCritical = 0.7
)

const (
	refreshEvery  = 5 * time.Second
	storeTimeout  = 2 * time.Second
	complainEvery = time.Minute

	firstBlock = 10 * time.Minute // doubled each time
	longest    = 24 * time.Hour
)

// othersShare is the part of a server's window that the calls of all but the person with the most must fill before its
// tools can be blocked for everybody: a fourth of them, at least one.
const othersShare = 4

// Store keeps the blocks for all processes and across restarts. It is safe for concurrent use.
type Store interface {
	// Blocks returns the stored blocks that were not lifted, including ended ones until Block.Forget.
	Blocks(ctx context.Context) ([]tools.Block, error)
	// Block stores a block and replaces an older one of the same session, caller and tool.
	Block(ctx context.Context, b tools.Block) error
	// Unblock removes the block of the same session, caller and tool. It is not an error if there is none.
	Unblock(ctx context.Context, b tools.Block) error
}

// Level is the severity of an Event.
type Level string

// Levels.
const (
	Warning  Level = "warning"
	Critical Level = "critical"
)

// Event reports that a tool reached a level or was blocked.
type Event struct {
	Tool     string    // "server:*" = all tools of a server
	Session  string    // the session; "" = all
	Caller   string    // whose calls failed; "" = everybody's
	Name     string    // how the caller calls themselves; untrusted
	Until    time.Time // the end of the block
	Level    Level
	Failures int
	Samples  int
	Last     tools.Category // of the last failure
	Blocked  bool           // it is blocked from now on
	Model    string         // the reasoning model that made the calls, if it is to be named; else ""
}

// place identifies a window or a block.
type place struct{ session, caller, tool string }

func placeOf(b tools.Block) place { return place{b.Session, b.Caller, b.Tool} }

// Options configures a Detector. The zero value uses the defaults and blocks nothing.
type Options struct {
	// Window is the number of calls of a tool that are evaluated; 0 = 20.
	Window int
	// Warning and Critical are rates of failure, from 0 to 1, from which a level is reached; 0 = 0.5 and 0.7.
	Warning, Critical float64
	// AutoBlock blocks tools at the level critical.
	AutoBlock bool
	// Attempts is the maximum number of attempts of a reading call: the retries of the retry stage plus one. A
	// temporary failure is not counted if the call is retried. 0 = 1.
	Attempts int
	// Store keeps the blocks; nil = they are lost when this process ends.
	Store Store
	// Observe receives every level that a tool reaches. It may be nil and must not block.
	Observe func(Event)
	// ReasoningModelWarning names the model in events if it is a reasoning model; these are known to make more wrong
	// tool calls.
	ReasoningModelWarning bool
	// Model returns the current model; may be nil. It must not block.
	Model func() string
	// Now is the clock; nil = time.Now.
	Now func() time.Time
	// Log receives levels, blocks and errors of the Store.
	Log zerolog.Logger
}

// Detector is the stage, with the list of blocks. It is safe for concurrent use.
type Detector struct {
	o Options

	storing sync.Mutex // held while a block is stored or lifted, so that the store and this process agree in the end

	mu         sync.Mutex // guards the fields below
	windows    map[place]*window
	blocks     map[place]block
	lifted     map[place]time.Time // by Lift: until when the store's word does not bring them back
	changes    int                 // number of changes of blocks by this process
	refreshed  time.Time
	complained time.Time
	forgot     time.Time
}

type block struct {
	tools.Block
	unsaved bool // not stored yet
}

// New returns a detector with the blocks from the store. ctx limits the reading.
func New(ctx context.Context, o Options) (*Detector, error) {
	if o.Window <= 0 {
		o.Window = defaultWindow
	}
	if o.Warning <= 0 {
		o.Warning = defaultWarning
	}
	if o.Critical <= 0 {
		o.Critical = defaultCritical
	}
	if o.Attempts <= 0 {
		o.Attempts = 1
	}
	if o.Observe == nil {
		o.Observe = func(Event) {}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	d := &Detector{o: o, windows: map[place]*window{}, blocks: map[place]block{}, lifted: map[place]time.Time{}}
	if err := d.load(ctx); err != nil {
		return nil, err
	}
	return d, nil
}

// Middleware is the stage that counts failures. It must be next to the tool.
func (d *Detector) Middleware(next tools.Handler) tools.Handler {
	return func(ctx context.Context, call *tools.Call) (*tools.Result, error) {
		if err := d.Gate(ctx, call.Origin, call.Def); err != nil {
			return nil, err
		}
		before := call.Trail.Attempts
		res, err := next(ctx, call)
		if call.Trail.Attempts > before { // it ran: earlier errors say nothing about the tool
			d.record(ctx, call, cause(res, err))
		}
		return res, err
	}
}

// Block returns the stage that refuses calls of blocked tools. It comes before the policy, so that nobody has to decide
// about a call that cannot run.
func (d *Detector) Block(next tools.Handler) tools.Handler {
	return func(ctx context.Context, call *tools.Call) (*tools.Result, error) {
		if err := d.Gate(ctx, call.Origin, call.Def); err != nil {
			return nil, err
		}
		return next(ctx, call)
	}
}

// Gate returns a *tools.Error for a blocked tool, else nil. It is cheap. If the store fails, Gate uses the blocks that
// it knows.
func (d *Detector) Gate(ctx context.Context, from tools.Origin, def tools.Definition) error {
	d.refresh(ctx)
	b, ok := d.Blocked(from, def)
	if !ok {
		return nil
	}
	minutes := int(math.Ceil(b.Until.Sub(d.o.Now()).Minutes()))
	return tools.Refused(
		reason.New(reason.ToolFails, def.Name, fmt.Sprint(minutes)).With(b.Why()),
		fmt.Sprintf(
			"Do it another way. An admin can lift this with /tools unblock %s: tell the user, if it matters.", b.Tool,
		),
	)
}

// record records the outcome of a run and acts on it.
func (d *Detector) record(ctx context.Context, call *tools.Call, err error) {
	s := sample{person: call.Origin.Caller, name: call.Origin.Name, failed: failed(err)}
	if call.ID != "" {
		s.call = call.Origin.Session + "\x00" + call.ID
	}
	if s.failed {
		s.category = tools.AsError(err).Category
	} else if err != nil {
		s.drop = true // neither a success nor a failure
	}
	again := s.failed && s.category.Transient() && call.Def.ReadOnly && call.Trail.Attempts < d.o.Attempts &&
		ctx.Err() == nil
	d.act(ctx, place{call.Origin.Session, call.Origin.Caller, call.Def.Name}, s, again)
	if call.Def.Server != "" {
		d.act(ctx, place{tool: everyTool(call.Def.Server)}, s, again)
	}
}

// everyTool returns the name that stands for all tools of a server.
func everyTool(server string) string { return server + ":*" }

// act adds a sample to a window, and reports and stores the consequences.
func (d *Detector) act(ctx context.Context, at place, s sample, again bool) {
	e, b := d.judge(at, s, again)
	if e == nil {
		return
	}
	if d.o.ReasoningModelWarning && d.o.Model != nil {
		if model := d.o.Model(); Reasoning(model) {
			e.Model = model
		}
	}
	line := d.o.Log.Warn().Str("tool", e.Tool).Str("session", e.Session).Str("state", string(e.Level)).
		Int("failures", e.Failures).Int("samples", e.Samples).
		Float64("rate", float64(e.Failures)/float64(e.Samples)).Str("category", string(e.Last)).
		Bool("blocked", e.Blocked)
	if e.Model != "" {
		line = line.Str("reasoning_model", e.Model)
	}
	line.Msg("tool fails often")
	if b != nil {
		d.save(ctx, *b)
	}
	d.o.Observe(*e)
}

// judge adds a sample to a window and returns an event, and perhaps a block, if it reached a new level.
func (d *Detector) judge(at place, s sample, again bool) (*Event, *tools.Block) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.o.Now()
	before, was := d.blocks[at]
	if was && now.Before(before.Until) { // it ran at the same time as the calls that led to the block
		return nil, nil
	}
	w := d.windows[at]
	if w == nil {
		w = &window{}
		d.windows[at] = w
	}
	w.add(s, d.o.Window, now)
	if again {
		return nil, nil
	}
	failures, samples := w.count()
	level := d.level(w)
	if at.session == "" && !w.everywhere(d.o.Critical, d.o.Window) {
		level = "" // each person has their own window
	}
	risen := level.rank() > w.level.rank()
	w.level = level
	if !risen {
		return nil, nil
	}
	e := &Event{
		Tool: at.tool, Session: at.session, Caller: at.caller, Level: level, Failures: failures, Samples: samples,
		Last: w.last(),
	}
	if at.caller != "" {
		e.Name = s.name
	}
	if level != Critical || !d.o.AutoBlock {
		return e, nil
	}
	b := tools.Block{
		Tool: at.tool, Session: at.session, Caller: at.caller, Since: now, Times: 1,
		Reason: reason.New(reason.CallsFailed, fmt.Sprint(failures), fmt.Sprint(samples), string(e.Last)),
	}
	if was && now.Before(before.Forget()) {
		b.Times = before.Times + 1
	}
	b.Until = now.Add(lasts(b.Times))
	d.changes++
	d.blocks[at] = block{Block: b, unsaved: d.o.Store != nil}
	delete(d.windows, at)
	e.Blocked, e.Until = true, b.Until
	return e, &b
}

// lasts returns the duration of the n-th block in a row.
func lasts(times int) time.Duration {
	return min(firstBlock<<min(max(times-1, 0), 10), longest)
}

// level returns the level of a full window.
func (d *Detector) level(w *window) Level {
	failures, samples := w.count()
	if samples < d.o.Window || failures == 0 {
		return ""
	}
	switch ratio := float64(failures) / float64(samples); {
	case ratio >= d.o.Critical:
		return Critical
	case ratio >= d.o.Warning:
		return Warning
	default:
		return ""
	}
}

func (l Level) rank() int {
	switch l {
	case Critical:
		return 2
	case Warning:
		return 1
	default:
		return 0
	}
}

// cause returns the error of a run that did not do its work, even if it has a result; nil if it did.
func cause(res *tools.Result, err error) error {
	if err == nil && res != nil && res.Failure != nil {
		return res.Failure
	}
	return err
}

// failed reports whether an error is a failure of the tool. That a path does not exist, or exists already, is not.
func failed(err error) bool {
	if err == nil {
		return false
	}
	e := tools.AsError(err)
	if e.Denied() || e.Mistake || (!e.Category.Transient() && e.Category != tools.PermanentFailure) {
		return false
	}
	for _, world := range []error{
		fs.ErrNotExist, fs.ErrExist, syscall.ENOTDIR, syscall.EISDIR, syscall.ENOTEMPTY,
		syscall.ENAMETOOLONG, syscall.ELOOP,
	} {
		if errors.Is(err, world) {
			return false
		}
	}
	return true
}
