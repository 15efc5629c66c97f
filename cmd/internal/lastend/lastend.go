// Package lastend tells whether a memory limit ended the last process. The kernel kills without a
// word, so each process leaves a note in its data directory while it runs: what its control group has counted, and how
// much memory there was when it became short.
package lastend

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// File is the name of the note in the data directory. No backup needs it.
const File = "running.json"

const (
	every = 2 * time.Second
	// shares of the limit, in percent, from which on memory is short, and below which it no longer is
	short, enough = 85, 75
)

// note is what a process leaves while it runs.
type note struct {
	PID   int       `json:"pid"`
	Group string    `json:"group,omitempty"` // identity of the control group: a new one counts from zero
	Kills int64     `json:"kills"`           // processes of the group that the kernel has killed for memory
	Used  int64     `json:"used,omitempty"`  // bytes, when memory was last short; 0 = it is not
	Limit int64     `json:"limit,omitempty"` // bytes
	At    time.Time `json:"at"`
}

// Note is the note of this process. It has one owner.
type Note struct {
	path  string
	group string // directory of the control group; "" = none
	now   func() time.Time

	mu   sync.Mutex
	note note
}

// Begin reads what the last process left in dir, and leaves a note of this one. group is the directory of the control
// group (Group); "" = there is none. last says in one clause how the last process was ended, and is "" unless it ended
// without End and something is known about memory: that the kernel has killed for it, or that it was short. A note that
// cannot be read is an error; the new one replaces it.
func Begin(dir, group string, now func() time.Time) (n *Note, last string, err error) {
	n = &Note{path: filepath.Join(dir, File), group: group, now: now}
	n.note = note{PID: os.Getpid(), Group: identity(group), Kills: n.number("memory.events", "oom_kill "), At: now()}
	raw, err := os.ReadFile(n.path)
	switch {
	case err == nil:
		var old note
		if err = json.Unmarshal(raw, &old); err == nil {
			last = old.why(n.note)
		}
	case errors.Is(err, fs.ErrNotExist):
		err = nil
	}
	return n, last, errors.Join(err, n.write())
}

// why is how a process ended that left this note.
func (old note) why(now note) string {
	limit := ""
	if old.Limit > 0 {
		limit = fmt.Sprintf(" of %d MB", old.Limit>>20)
	}
	switch {
	case old.Group != "" && old.Group == now.Group && now.Kills > old.Kills:
		return fmt.Sprintf(
			"the last process ended without closing, and the kernel has killed for the memory limit%s since it began",
			limit,
		)
	case old.Used > 0:
		return fmt.Sprintf(
			"the last process ended without closing; %d%% of its memory%s was in use when it last looked (%s)",
			100*old.Used/max(old.Limit, 1), limit, old.At.UTC().Format(time.DateTime),
		)
	}
	return ""
}

// Run looks at the memory until ctx ends, and notes when it becomes short. Without a limit it only waits.
func (n *Note) Run(ctx context.Context) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			if err := n.Look(); err != nil {
				return err
			}
		}
	}
}

// Look looks at the memory once.
func (n *Note) Look() error {
	used, limit := n.number("memory.current", ""), n.number("memory.max", "")
	if limit <= 0 {
		return nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	switch share := 100 * used / limit; {
	case share >= short:
		n.note.Used = used
	case share < enough && n.note.Used > 0:
		n.note.Used = 0
	case n.note.Limit == limit && n.note.Used == 0:
		return nil
	}
	n.note.Limit, n.note.At = limit, n.now()
	return n.write()
}

// End removes the note: this process has ended in order.
func (n *Note) End() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := os.Remove(n.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the note of this process: %w", err)
	}
	return nil
}

func (n *Note) write() error {
	raw, err := json.Marshal(n.note)
	if err == nil {
		err = os.WriteFile(n.path+".new", raw, 0o600)
	}
	if err == nil {
		err = os.Rename(n.path+".new", n.path)
	}
	if err != nil {
		return fmt.Errorf("leave the note of this process: %w", err)
	}
	return nil
}

// number reads a number of the control group: the first one in the line that begins with key. 0 = there is none.
func (n *Note) number(file, key string) int64 {
	if n.group == "" {
		return 0
	}
	raw, err := os.ReadFile(filepath.Join(n.group, file))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(raw)) {
		if rest, ok := strings.CutPrefix(line, key); ok {
			v, err := strconv.ParseInt(strings.TrimSpace(rest), 10, 64)
			if err != nil { // "max": no limit
				return 0
			}
			return v
		}
	}
	return 0
}
