// Package anomaly is the stage that watches how often a tool fails, and blocks one that fails too often (seed 003: a sliding window for each
// tool; an admin lifts the block).
//
// A failure is a run that ended with an error that says something about the tool: one that may pass (network, server, rate limit, time) or a
// permanent one. No failures are: refusals of policy, quota or a person; questions; cancellations; mistakes of the model (unknown tool, wrong
// arguments, a file that is not there); and a result that reports a failure of its own. A command that exits with 1, a test suite that is red or
// a grep that finds nothing is the ordinary outcome of a shell that works: counting it would take bash away from everybody in the middle of
// their work.
//
// A call counts once, however often it is tried.
package anomaly

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
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
	minSamples    = 3 // fewer calls say nothing
	refreshEvery  = 5 * time.Second
	storeTimeout  = 2 * time.Second
	complainEvery = time.Minute
)

// Store keeps the blocks, for all processes and over restarts. It is safe for concurrent use.
type Store interface {
	// Blocks lists the blocked tools with the reasons.
	Blocks(ctx context.Context) (map[string]string, error)
	// Block stores a block, or replaces its reason.
	Block(ctx context.Context, tool, reason string) error
	// Unblock removes a block; none is no error.
	Unblock(ctx context.Context, tool string) error
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
	Tool     string
	Level    Level
	Failures int
	Samples  int
	Last     tools.Category // of the last failure
	Blocked  bool           // it is blocked from now on
	Model    string         // the reasoning model that made the calls, where that is to be said; else ""
}

// Block is a tool that may not run.
type Block struct {
	Tool   string
	Reason string
	Since  time.Time // zero when another process, or this one before it was restarted, has blocked it
}

// Options configures a Detector. The zero value watches with the defaults and blocks nothing.
type Options struct {
	// Window is how many calls of a tool are looked at; 0 = 20.
	Window int
	// Warning and Critical are shares of failures, from 0 to 1, that are reached; 0 = 0.5 and 0.7.
	Warning, Critical float64
	// AutoBlock blocks a tool that is critical.
	AutoBlock bool
	// Attempts is how often a reading call is tried at most (the retry stage's repetitions and one). A passing failure that will be tried again
	// is not judged yet. 0 = 1.
	Attempts int
	// Store keeps the blocks; nil = this process forgets them when it ends.
	Store Store
	// Observe hears of every level that a tool comes to. May be nil. Must not block.
	Observe func(Event)
	// ReasoningModelWarning names the model in events when it is one that reasons, which is known to call tools wrongly more often.
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
	windows    map[string]*window
	blocks     map[string]block
	changes    int // of blocks by this process
	refreshed  time.Time
	complained time.Time
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
	d := &Detector{o: o, windows: map[string]*window{}, blocks: map[string]block{}}
	if err := d.load(ctx); err != nil {
		return nil, err
	}
	return d, nil
}

// Middleware is the stage; it implements tools.Middleware.
func (d *Detector) Middleware(next tools.Handler) tools.Handler {
	return func(ctx context.Context, call *tools.Call) (*tools.Result, error) {
		if err := d.Gate(ctx, call.Def.Name); err != nil {
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

// Gate refuses a blocked tool: nil, or a *tools.Error. It is cheap and may be asked before the policy is, so that nobody has to decide about a
// call that cannot run. A store that fails leaves the blocks as they were known.
func (d *Detector) Gate(ctx context.Context, tool string) error {
	d.refresh(ctx)
	b, ok := d.Blocked(tool)
	if !ok {
		return nil
	}
	return &tools.Error{
		Category: tools.PolicyBlocked, Denied: true,
		Message:    fmt.Sprintf("The tool %s is blocked because it failed too often (%s).", tool, b.Reason),
		Suggestion: fmt.Sprintf("Do it another way. An admin can lift this with /tools unblock %s: tell the user, if it matters.", tool),
	}
}

// Blocked says whether a tool is blocked, as far as this process knows.
func (d *Detector) Blocked(tool string) (Block, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	b, ok := d.blocks[tool]
	return b.Block, ok
}

// Blocks lists the blocked tools by name.
func (d *Detector) Blocks() []Block {
	d.mu.Lock()
	defer d.mu.Unlock()
	list := make([]Block, 0, len(d.blocks))
	for _, b := range d.blocks {
		list = append(list, b.Block)
	}
	slices.SortFunc(list, func(a, b Block) int { return strings.Compare(a.Tool, b.Tool) })
	return list
}

// Unblock lifts a block, of whatever process, and forgets the failures; false when there was none. After an error the tool stays blocked.
func (d *Detector) Unblock(ctx context.Context, tool string) (bool, error) {
	if err := d.load(ctx); err != nil {
		return false, err
	}
	d.storing.Lock()
	defer d.storing.Unlock()
	if _, ok := d.Blocked(tool); !ok {
		return false, nil
	}
	if d.o.Store != nil {
		if err := d.o.Store.Unblock(ctx, tool); err != nil {
			return false, fmt.Errorf("unblock %s: %w", tool, err)
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.changes++
	delete(d.blocks, tool)
	delete(d.windows, tool)
	d.o.Log.Info().Str("tool", tool).Msg("tool unblocked")
	return true, nil
}

// record takes down how a run ended, and acts on it.
func (d *Detector) record(ctx context.Context, call *tools.Call, err error) {
	s := sample{failed: failed(err)}
	if call.ID != "" {
		s.call = call.Origin.Session + "\x00" + call.ID
	}
	if s.failed {
		s.category = tools.AsError(err).Category
	} else if err != nil {
		s.drop = true // neither a success nor a failure
	}
	again := s.failed && s.category.Transient() && call.Def.ReadOnly && call.Trail.Attempts < d.o.Attempts && ctx.Err() == nil
	e, b := d.judge(call.Def.Name, s, again)
	if e == nil {
		return
	}
	if d.o.ReasoningModelWarning && d.o.Model != nil {
		if model := d.o.Model(); Reasoning(model) {
			e.Model = model
		}
	}
	line := d.o.Log.Warn().Str("tool", e.Tool).Str("level", string(e.Level)).Int("failures", e.Failures).Int("samples", e.Samples).
		Str("category", string(e.Last)).Bool("blocked", e.Blocked)
	if e.Model != "" {
		line = line.Str("reasoning_model", e.Model)
	}
	line.Msg("tool fails often")
	if b != nil {
		d.save(ctx, *b)
	}
	d.o.Observe(*e)
}

// judge adds a sample to the tool's window and looks whether it came to a level that it did not have.
func (d *Detector) judge(tool string, s sample, again bool) (*Event, *Block) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, ok := d.blocks[tool]; ok { // it ran beside the calls that led to the block
		return nil, nil
	}
	w := d.windows[tool]
	if w == nil {
		w = &window{}
		d.windows[tool] = w
	}
	w.add(s, d.o.Window)
	if again {
		return nil, nil
	}
	failures, samples := w.count()
	level := d.level(failures, samples)
	risen := level.rank() > w.level.rank()
	w.level = level
	if !risen {
		return nil, nil
	}
	e := &Event{Tool: tool, Level: level, Failures: failures, Samples: samples, Last: w.last()}
	if level != Critical || !d.o.AutoBlock {
		return e, nil
	}
	b := Block{Tool: tool, Reason: fmt.Sprintf("%d of the last %d calls failed, the last one with %s", failures, samples, e.Last), Since: d.o.Now()}
	d.changes++
	d.blocks[tool] = block{Block: b, unsaved: d.o.Store != nil}
	delete(d.windows, tool)
	e.Blocked = true
	return e, &b
}

func (d *Detector) level(failures, samples int) Level {
	if samples < min(minSamples, d.o.Window) || failures == 0 {
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

// failed says whether an error is a failure of the tool. That nothing is at a path, or something is already, is the state of the world.
func failed(err error) bool {
	if err == nil {
		return false
	}
	e := tools.AsError(err)
	if e.Denied || e.Mistake || (!e.Category.Transient() && e.Category != tools.PermanentFailure) {
		return false
	}
	for _, world := range []error{fs.ErrNotExist, fs.ErrExist, syscall.ENOTDIR, syscall.EISDIR, syscall.ENOTEMPTY, syscall.ENAMETOOLONG, syscall.ELOOP} {
		if errors.Is(err, world) {
			return false
		}
	}
	return true
}
