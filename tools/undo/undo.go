// Package undo keeps what tools change in files, so that the changes of a turn can be put back.
//
// Before a call that may change files runs, the state of these files is stored; after it, what has changed. Contents
// are stored once, under their SHA-256, apart for each workspace. All of it is in files, written before what it is
// about happens, so that nothing is lost if the process is killed, and any process that shares the directory can put
// back what another one has kept.
//
//	DIR/WORKSPACE/lock              held while anything below is read or written, never while a tool runs
//	DIR/WORKSPACE/objects/ab/abcd…  contents
//	DIR/WORKSPACE/turns/TURN.open   the state before the call that is running
//	DIR/WORKSPACE/turns/TURN.json   what the calls of the turn have changed
//
// Keeping never stops a call: what could not be kept is recorded as such, and cannot be put back.
package undo

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/tools"
)

// Options configure a Store. Dir, Find, Own and Workspace are required.
type Options struct {
	// Dir is the directory of the store. No tool may reach it.
	Dir string
	// Find returns the tool of a call.
	Find func(call *tools.Call) (tools.Tool, bool)
	// Own returns the directory that belongs to the conversation of a call alone. Only there, everything that a command
	// may change is kept: in a directory of several conversations, it could be somebody else's change.
	Own func(tools.Origin) (string, error)
	// Workspace returns the name of the directory for a conversation; "" = nothing is kept for it.
	Workspace func(tools.Origin) string
	// Live reports whether a command of the conversation runs in the background. What a call changes in a whole
	// directory cannot be told from what that command changes then. nil = none ever does.
	Live func(tools.Origin) bool
	// Room returns how many of so many bytes may be stored in Dir; nil = all.
	Room   func(ctx context.Context, want int64) int64
	Limits Limits
	Now    func() time.Time // nil = time.Now
	Log    zerolog.Logger
}

// Limits bound what is stored. Zero means the default.
type Limits struct {
	File      int64         // bytes of a file; default 16 MiB
	Call      int64         // bytes of all files that one call may change; default 64 MiB
	Entries   int           // files and directories that one call may change; default 10 000
	Time      time.Duration // for looking at them; default 5 s
	Wait      time.Duration // for others who look at the same workspace; default 10 s
	Workspace int64         // bytes of a workspace; default 256 MiB
	Total     int64         // bytes of all workspaces; default 2 GiB
	Turns     int           // of a workspace; default 50
	Age       time.Duration // of a turn; default 7 days
}

func (l Limits) withDefaults() Limits {
	fill(&l.File, 16<<20)
	fill(&l.Call, 64<<20)
	fill(&l.Entries, 10_000)
	fill(&l.Time, 5*time.Second)
	fill(&l.Wait, 10*time.Second)
	fill(&l.Workspace, 256<<20)
	fill(&l.Total, 2<<30)
	fill(&l.Turns, 50)
	fill(&l.Age, 7*24*time.Hour)
	return l
}

func fill[T int | int64 | time.Duration](v *T, def T) {
	if *v <= 0 {
		*v = def
	}
}

// settleWithin bounds how long it takes to record what a call has changed, also if the call was cancelled.
const settleWithin = 20 * time.Second

// Store keeps what calls change. It is safe for concurrent use, also by several processes with the same Dir. It starts
// no goroutines.
type Store struct {
	o     Options
	known index

	mu    sync.Mutex
	added map[string]int64 // bytes stored since the last sweep, by workspace
}

// New returns a Store.
func New(o Options) *Store {
	o.Limits = o.Limits.withDefaults()
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Room == nil {
		o.Room = func(_ context.Context, want int64) int64 { return want }
	}
	return &Store{o: o, added: map[string]int64{}}
}

// Key is the name under which a turn is kept.
func Key(turn string) string {
	sum := sha256.Sum256([]byte(turn))
	return hex.EncodeToString(sum[:8])
}

// Middleware is the stage that keeps what a call changes. It comes right before the tool
// runs, so once for each attempt.
func (s *Store) Middleware(next tools.Handler) tools.Handler {
	return func(ctx context.Context, call *tools.Call) (*tools.Result, error) {
		k := s.begin(ctx, call)
		res, err := next(ctx, call)
		if k != nil {
			s.settle(ctx, k)
		}
		return res, err
	}
}

// kept is what is known before a call runs.
type kept struct {
	workspace string
	open      opened
}

// begin stores the state before a call; nil = there is nothing to keep.
func (s *Store) begin(ctx context.Context, call *tools.Call) *kept {
	workspace := s.o.Workspace(call.Origin)
	if call.Def.ReadOnly || call.Origin.Turn == "" || workspace == "" {
		return nil
	}
	tool, ok := s.o.Find(call)
	if !ok || tool.Changes == nil {
		return nil
	}
	changes, err := tool.Changes(ctx, call)
	if err != nil || len(changes.Files)+len(changes.Beyond) == 0 {
		return nil // the call fails for the same reason, or changes nothing
	}
	k := &kept{workspace: workspace, open: opened{
		Turn: call.Origin.Turn, Session: call.Origin.Session, Caller: call.Origin.Caller, At: s.o.Now(),
		Call: call.ID, Attempt: call.Trail.Attempts, Tool: call.Def.Name, Beyond: changes.Beyond,
	}}
	if err := s.keep(ctx, k, call.Origin, changes.Files); err != nil {
		if ctx.Err() != nil {
			return nil // the call ends before it has begun
		}
		s.o.Log.Warn().Err(err).Str("call", call.ID).Msg("files are not kept before a call; it cannot be undone")
		k.open.Areas, k.open.Before, k.open.Problem = nil, nil, problem(err)
	}
	return k
}

// keep stores the state of the areas.
func (s *Store) keep(ctx context.Context, k *kept, origin tools.Origin, areas []tools.Area) error {
	if err := s.choose(k, origin, areas); err != nil || len(k.open.Areas) == 0 {
		return err
	}
	home, err := s.enter(ctx, k.workspace)
	if err != nil {
		return err
	}
	defer home.leave()
	if err := s.abandoned(ctx, home); err != nil {
		return err
	}
	scan := s.newScan(ctx, home, true)
	if k.open.Before, err = scan.all(k.open.Areas); err != nil {
		return err
	}
	if err := scan.sync(); err != nil {
		return err
	}
	if err := home.write(k.open.name(), &k.open); err != nil {
		return err
	}
	s.tally(ctx, home, scan.stored)
	return nil
}

// choose takes the areas that can be kept.
func (s *Store) choose(k *kept, origin tools.Origin, areas []tools.Area) error {
	own, err := s.o.Own(origin)
	if err == nil {
		own, err = filepath.EvalSymlinks(own)
	}
	if err != nil {
		return fmt.Errorf("find the directory of the conversation: %w", err)
	}
	k.open.Own = own
	live := s.o.Live != nil && s.o.Live(origin)
	for _, a := range areas {
		whole := len(a.Paths) == 1 && a.Paths[0] == a.Root && !a.Alone
		switch {
		case whole && a.Root != own:
			k.open.add(tools.Elsewhere)
		case whole && live:
			k.open.add(tools.Background)
		default:
			k.open.Areas = append(k.open.Areas, a)
		}
	}
	return nil
}

// settle records what a call has changed.
func (s *Store) settle(ctx context.Context, k *kept) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleWithin)
	defer cancel()
	home, err := s.enter(ctx, k.workspace)
	if err == nil {
		err = s.close(ctx, home, &k.open, false)
		home.leave()
	}
	if err != nil {
		s.o.Log.Error().Err(err).Str("call", k.open.Call).
			Msg("what a call has changed is not recorded; it cannot be undone")
	}
}

// Interrupted records what a call has changed that was running when its process died. It must be called before another
// call of the conversation runs.
func (s *Store) Interrupted(ctx context.Context, call *tools.Call) {
	workspace := s.o.Workspace(call.Origin)
	if workspace == "" || call.Origin.Turn == "" {
		return
	}
	if _, err := os.Stat(filepath.Join(s.o.Dir, workspace)); err != nil {
		return // nothing was ever kept
	}
	err := func() error {
		home, err := s.enter(ctx, workspace)
		if err != nil {
			return err
		}
		defer home.leave()
		var open opened
		err = home.read(Key(call.Origin.Turn)+openSuffix, &open)
		if err != nil || open.Call != call.ID {
			return ignoreMissing(err)
		}
		return s.close(ctx, home, &open, false)
	}()
	if err != nil {
		s.o.Log.Error().Err(err).Str("call", call.ID).Msg("what an interrupted call has changed is not recorded")
	}
}

// abandoned closes what calls have left open whose process died: which of the changes since then are theirs is not
// known. A conversation runs one call at a time that changes files.
func (s *Store) abandoned(ctx context.Context, home *home) error {
	list, err := home.opens()
	if err != nil {
		return err
	}
	for i := range list {
		if err := s.close(ctx, home, &list[i], true); err != nil {
			return err
		}
	}
	return nil
}

// close compares the files with their state before a call, and records the difference in its turn. lost says that the
// state after the call is not known.
func (s *Store) close(ctx context.Context, home *home, open *opened, lost bool) error {
	record := call{Call: open.Call, Attempt: open.Attempt, Tool: open.Tool, Beyond: open.Beyond, Problem: open.Problem}
	switch {
	case lost:
		record.Problem = Interrupted
	case len(open.Areas) > 0:
		after, err := s.newScan(ctx, home, false).all(open.Areas)
		if err != nil {
			record.Problem = problem(err)
		} else {
			record.Changed = difference(open, after)
		}
	}
	file := turnFile{Turn: open.Turn, Session: open.Session, Caller: open.Caller, Own: open.Own, At: open.At}
	err := home.read(Key(open.Turn)+turnSuffix, &file)
	if ignoreMissing(err) != nil {
		return err
	}
	if file.add(record) {
		if err := home.write(Key(open.Turn)+turnSuffix, &file); err != nil {
			return err
		}
	}
	return home.remove(open.name())
}

// Problems of a call: why what it changed cannot be put back.
const (
	Many        = "many"        // it may change too many files
	Slow        = "slow"        // looking at them took too long
	Interrupted = "interrupted" // the process died while it ran
	Failed      = "failed"      // its files could not be read or stored
)

var (
	errMany = errors.New("too many files")
	errSlow = errors.New("looking at the files takes too long")
)

func problem(err error) string {
	switch {
	case errors.Is(err, errMany):
		return Many
	case errors.Is(err, errSlow):
		return Slow
	default:
		return Failed
	}
}

// tally counts what was stored in a workspace, and makes room when it is much.
func (s *Store) tally(ctx context.Context, home *home, bytes int64) {
	s.mu.Lock()
	s.added[home.name] += bytes
	much := s.added[home.name] > s.o.Limits.Workspace/4
	if much {
		delete(s.added, home.name)
	}
	s.mu.Unlock()
	if !much {
		return
	}
	if _, err := s.prune(ctx, home, s.o.Limits.Workspace); err != nil {
		s.o.Log.Warn().Err(err).Str("workspace", home.name).Msg("old copies of files not removed")
	}
}
