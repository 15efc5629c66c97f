// Package anomaly is the stage that watches how often a tool fails, and blocks one that fails too often (seed 003: a
// sliding window for each tool).
//
// A failure is a run that ended with an error that says something about the tool: one that may pass (network, server,
// rate limit, time) or a permanent one. No failures are: refusals of policy, quota or a person; questions;
// cancellations; mistakes of the model (unknown tool, wrong arguments, what is not there: a file, a page, a host, a
// command); and a result that reports a failure of its own. A command that exits with 1, a test suite that is red or a
// grep that finds nothing is the ordinary outcome of a shell that works.
//
// A call counts once, however often it is tried. The rate is that of a full window, so that no tool is judged by its
// first calls.
//
// A block concerns one conversation and ends by itself, after ten minutes, and after twice as long as the last time
// when the tool goes on failing. The tools of an MCP server whose calls fail in every conversation that makes any are
// blocked everywhere.
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

	"github.com/zephbot/zephbot/tools"
)

// The defaults of [tools.anomaly].
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
	remembered = 24 * time.Hour // after its end, for how long the next one is
)

// leastConversations is how many have to call a server before its failures are those of everybody.
const leastConversations = 2

// Store keeps the blocks, for all processes and over restarts. It is safe for concurrent use.
type Store interface {
	// Blocks lists the blocks that were stored and not lifted, until Block.Forget: those that have ended too.
	Blocks(ctx context.Context) ([]Block, error)
	// Block stores a block, in the place of an older one of the same session and tool.
	Block(ctx context.Context, b Block) error
	// Unblock removes a block; none is no error.
	Unblock(ctx context.Context, session, tool string) error
}

// Level says how bad it is.
type Level string

// The levels of an Event.
const (
	Warning  Level = "warning"
	Critical Level = "critical"
)

// Event is a tool that came to a level, or was blocked.
type Event struct {
	Tool     string    // "server:*" = all tools of a server
	Session  string    // the conversation; "" = all of them
	Until    time.Time // the end of the block
	Level    Level
	Failures int
	Samples  int
	Last     tools.Category // of the last failure
	Blocked  bool           // it is blocked from now on
	Model    string         // the reasoning model that made the calls, where that is to be said; else ""
}

// Block is a tool that may not run for a while.
type Block struct {
	Tool    string    `json:"tool"`    // "server:*" = all tools of a server
	Session string    `json:"session"` // the conversation in which; "" = in all of them
	Reason  string    `json:"reason"`
	Since   time.Time `json:"since"`
	Until   time.Time `json:"until"`
	Times   int       `json:"times"` // how often in a row, from 1
}

// Forget is when an ended block has no say any more in how long the next one lasts.
func (b Block) Forget() time.Time { return b.Until.Add(remembered) }

// place is what a window and a block are of.
type place struct{ session, tool string }

func (b Block) place() place { return place{b.Session, b.Tool} }

// Options configures a Detector. The zero value watches with the defaults and blocks nothing.
type Options struct {
	// Window is how many calls of a tool are looked at; 0 = 20.
	Window int
	// Warning and Critical are shares of failures, from 0 to 1, that are reached; 0 = 0.5 and 0.7.
	Warning, Critical float64
	// AutoBlock blocks a tool that is critical.
	AutoBlock bool
	// Attempts is how often a reading call is tried at most (the retry stage's repetitions and one). A passing failure
	// that will be tried again is not judged yet. 0 = 1.
	Attempts int
	// Store keeps the blocks; nil = this process forgets them when it ends.
	Store Store
	// Observe hears of every level that a tool comes to. May be nil. Must not block.
	Observe func(Event)
	// ReasoningModelWarning names the model in events when it is one that reasons, which is known to call tools wrongly
	// more often.
	ReasoningModelWarning bool
	// Model is the model that is in use; may be nil. Must not block.
	Model func() string
	// Now is the clock; nil = time.Now.
	Now func() time.Time
	// Log hears of levels, blocks and a Store that fails.
	Log zerolog.Logger
}

// Detector is the stage and the list of blocks. It is safe for concurrent use.
type Detector struct {
	o Options

	storing sync.Mutex // held while a block is stored or lifted, so that the store ends with what this process says

	mu         sync.Mutex // guards what follows
	windows    map[place]*window
	blocks     map[place]block
	changes    int // of blocks by this process
	refreshed  time.Time
	complained time.Time
	forgot     time.Time
}

type block struct {
	Block
	unsaved bool // the store does not have it yet
}

// New makes the detector and reads the blocks from the store. ctx bounds the reading.
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
	d := &Detector{o: o, windows: map[place]*window{}, blocks: map[place]block{}}
	if err := d.load(ctx); err != nil {
		return nil, err
	}
	return d, nil
}

// Middleware is the stage that counts; it implements tools.Middleware. It stands next to the tool.
func (d *Detector) Middleware(next tools.Handler) tools.Handler {
	return func(ctx context.Context, call *tools.Call) (*tools.Result, error) {
		if err := d.Gate(ctx, call.Origin.Session, call.Def); err != nil {
			return nil, err
		}
		before := call.Trail.Attempts
		res, err := next(ctx, call)
		if call.Trail.Attempts > before { // it ran: what fails before that says nothing about the tool
			d.record(ctx, call, cause(res, err))
		}
		return res, err
	}
}

// Block is the stage that refuses: it stands before the policy, so that nobody has to decide about a call that cannot
// run.
func (d *Detector) Block(next tools.Handler) tools.Handler {
	return func(ctx context.Context, call *tools.Call) (*tools.Result, error) {
		if err := d.Gate(ctx, call.Origin.Session, call.Def); err != nil {
			return nil, err
		}
		return next(ctx, call)
	}
}

// Gate refuses a blocked tool: nil, or a *tools.Error. It is cheap. A store that fails leaves the blocks as they were
// known.
func (d *Detector) Gate(ctx context.Context, session string, def tools.Definition) error {
	d.refresh(ctx)
	b, ok := d.Blocked(session, def)
	if !ok {
		return nil
	}
	minutes := int(math.Ceil(b.Until.Sub(d.o.Now()).Minutes()))
	return &tools.Error{
		Category: tools.PolicyBlocked, Denied: true,
		Message: fmt.Sprintf("The tool %s is blocked for %d more min because it failed too often (%s).", def.Name,
			minutes, b.Reason),
		Suggestion: fmt.Sprintf("Do it another way. An admin can lift this with /tools unblock %s: tell the user, if it matters.", b.Tool),
	}
}

// record takes down how a run ended, and acts on it.
func (d *Detector) record(ctx context.Context, call *tools.Call, err error) {
	s := sample{session: call.Origin.Session, failed: failed(err)}
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
	d.act(ctx, place{call.Origin.Session, call.Def.Name}, s, again)
	if call.Def.Server != "" {
		d.act(ctx, place{"", everyTool(call.Def.Server)}, s, again)
	}
}

// everyTool names all tools of a server.
func everyTool(server string) string { return server + ":*" }

// act adds a sample to a window and tells what comes of it.
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

// judge adds a sample to a window and looks whether it came to a level that it did not have.
func (d *Detector) judge(at place, s sample, again bool) (*Event, *Block) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.o.Now()
	before, was := d.blocks[at]
	if was && now.Before(before.Until) { // it ran beside the calls that led to the block
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
	if at.session == "" && !w.everywhere(d.o.Critical) {
		level = "" // the conversations have windows of their own
	}
	risen := level.rank() > w.level.rank()
	w.level = level
	if !risen {
		return nil, nil
	}
	e := &Event{Tool: at.tool, Session: at.session, Level: level, Failures: failures, Samples: samples, Last: w.last()}
	if level != Critical || !d.o.AutoBlock {
		return e, nil
	}
	b := Block{
		Tool: at.tool, Session: at.session, Since: now, Times: 1,
		Reason: fmt.Sprintf("%d of the last %d calls failed, the last one with %s", failures, samples, e.Last),
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

// lasts is how long a block in a row of such lasts.
func lasts(times int) time.Duration {
	return min(firstBlock<<min(max(times-1, 0), 10), longest)
}

// level judges a full window.
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

// cause is why a run did not do its work, also where it left something; nil = it did.
func cause(res *tools.Result, err error) error {
	if err == nil && res != nil && res.Failure != nil {
		return res.Failure
	}
	return err
}

// failed says whether an error is a failure of the tool. That nothing is at a path, or something is already, is the
// state of the world.
func failed(err error) bool {
	if err == nil {
		return false
	}
	e := tools.AsError(err)
	if e.Denied || e.Mistake || (!e.Category.Transient() && e.Category != tools.PermanentFailure) {
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
