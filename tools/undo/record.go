package undo

import (
	"slices"
	"strings"
	"time"

	"github.com/zephbot/zephbot/tools"
)

// opened is the state before a call that is running.
type opened struct {
	Turn    string           `json:"turn"`
	Session string           `json:"session"`
	Caller  string           `json:"caller"`
	Own     string           `json:"own"` // the directory of the conversation
	At      time.Time        `json:"at"`
	Call    string           `json:"call"`
	Attempt int              `json:"attempt,omitempty"`
	Tool    string           `json:"tool"`
	Areas   []tools.Area     `json:"areas,omitempty"`
	Before  map[string]state `json:"before,omitempty"` // by absolute path
	Beyond  []tools.Beyond   `json:"beyond,omitempty"`
	Problem string           `json:"problem,omitempty"`
}

// add adds something that the call may change besides its files.
func (o *opened) add(what tools.Beyond) {
	if !slices.Contains(o.Beyond, what) {
		o.Beyond = append(o.Beyond, what)
	}
}

func (o *opened) name() string { return Key(o.Turn) + openSuffix }

// turnFile is what the calls of a turn have changed.
type turnFile struct {
	Turn    string    `json:"turn"`
	Session string    `json:"session"`
	Caller  string    `json:"caller"`
	Own     string    `json:"own"`
	At      time.Time `json:"at"`
	Calls   []call    `json:"calls"`
	Undone  *Undone   `json:"undone,omitempty"`
}

// Undone says who has put a turn's changes back, and when.
type Undone struct {
	ID   string    `json:"id"` // of the request
	By   string    `json:"by"` // caller id
	Name string    `json:"name,omitempty"`
	At   time.Time `json:"at"` // set by Undo
}

// call is what a call has changed.
type call struct {
	Call    string         `json:"call"`
	Attempt int            `json:"attempt,omitempty"`
	Tool    string         `json:"tool"`
	Changed []change       `json:"changed,omitempty"`
	Beyond  []tools.Beyond `json:"beyond,omitempty"`
	Problem string         `json:"problem,omitempty"` // why nothing is known of its changes
}

// change is a path that a call has changed.
type change struct {
	Path   string `json:"path"` // absolute
	Root   string `json:"root"` // allowed directory that contains it
	Before state  `json:"before"`
	After  state  `json:"after"`
}

// add adds a call. It returns false if there is nothing to add, or the call is recorded already.
func (f *turnFile) add(c call) bool {
	if len(c.Changed)+len(c.Beyond) == 0 && c.Problem == "" {
		return false
	}
	if slices.ContainsFunc(f.Calls, func(o call) bool { return o.Call == c.Call && o.Attempt == c.Attempt }) {
		return false
	}
	f.Calls = append(f.Calls, c)
	return true
}

// difference lists what differs from the state before a call, by path.
func difference(open *opened, after map[string]state) []change {
	var list []change
	add := func(path string, before, after state) {
		if before.same(after) {
			return
		}
		list = append(list, change{Path: path, Root: rootOf(open.Areas, path), Before: before, After: after})
	}
	for path, before := range open.Before {
		add(path, before, after[path])
	}
	for path, now := range after {
		if _, known := open.Before[path]; !known {
			add(path, state{}, now)
		}
	}
	slices.SortFunc(list, func(a, b change) int { return strings.Compare(a.Path, b.Path) })
	return list
}

// rootOf returns the root of the area that contains a path.
func rootOf(areas []tools.Area, path string) string {
	for _, a := range areas {
		if a.Alone && inside(a.Root, path) { // there can be many
			return a.Root
		}
		for _, p := range a.Paths {
			if inside(p, path) {
				return a.Root
			}
		}
	}
	return ""
}

// inside reports whether a path is dir or below it.
func inside(dir, path string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}
