package tools

import (
	"fmt"

	"github.com/zephbot/zephbot/policy/reason"
)

// Set is a set of tools; *Registry is one, View another.
type Set interface {
	// Lookup finds a tool by its qualified name.
	Lookup(name string) (Tool, bool)
	// Definitions returns the definitions of the tools: built-ins first, then those of servers by name.
	Definitions() []Definition
}

// Overlay is how one turn changes the set of tools: an allow-list removes some, and an editor, a sub-agent or a skill
// may add some. It is immutable and safe for concurrent use. The set below it can still change: the tools of a server
// that connects meanwhile appear, unless they are removed. A nil Overlay changes nothing.
type Overlay struct {
	takes func(name string) bool
	added []Tool
	why   func(name string) reason.Reason // see Narrow; nil = nothing to say
}

// NewOverlay returns an overlay. takes reports whether a tool is removed, by its name. It must always return the same
// result and be safe for concurrent use; nil removes none. Added tools are never removed, and hide a tool of the same
// name below. They must be built-in tools, because those of a server come and go with it (Registry.Replace).
func NewOverlay(takes func(name string) bool, added ...Tool) (*Overlay, error) {
	o := &Overlay{takes: takes}
	for _, t := range added {
		if err := t.sound(); err != nil {
			return nil, err
		}
		name := t.Definition.Name
		switch _, twice := o.Added(name); {
		case t.Definition.Server != "":
			return nil, fmt.Errorf("tool %s: a turn cannot add a tool of a server", name)
		case twice:
			return nil, fmt.Errorf("tool %s: added twice", name)
		}
		o.added = append(o.added, t)
	}
	return o, nil
}

// Only returns the overlay of an allow-list: it removes what the list does not allow. A nil list allows everything.
func Only(allowed func(name string) bool) *Overlay {
	if allowed == nil {
		return nil
	}
	return &Overlay{takes: func(name string) bool { return !allowed(name) }}
}

// Takes reports whether a tool is removed.
func (o *Overlay) Takes(name string) bool {
	if o == nil || o.takes == nil {
		return false
	}
	_, added := o.Added(name)
	return !added && o.takes(name)
}

// Added returns a tool that the turn adds.
func (o *Overlay) Added(name string) (Tool, bool) {
	if o != nil {
		for _, t := range o.added {
			if t.Definition.Name == name {
				return t, true
			}
		}
	}
	return Tool{}, false
}

// Over returns the set of tools below as the turn sees it.
func (o *Overlay) Over(below Set) View { return View{below: below, overlay: o} }

// View is a set of tools with an overlay. It is safe for concurrent use.
type View struct {
	below   Set
	overlay *Overlay
}

// Lookup implements Set.
func (v View) Lookup(name string) (Tool, bool) {
	if t, ok := v.overlay.Added(name); ok {
		return t, true
	}
	if v.overlay.Takes(name) {
		return Tool{}, false
	}
	return v.below.Lookup(name)
}

// Definitions implements Set: what the turn adds is listed after our own tools and before those of servers.
func (v View) Definitions() []Definition {
	below := v.below.Definitions()
	if v.overlay == nil {
		return below
	}
	list := make([]Definition, 0, len(below)+len(v.overlay.added))
	add := func() {
		for _, t := range v.overlay.added {
			list = append(list, t.Definition)
		}
	}
	added := false
	for _, d := range below {
		if d.Server != "" && !added {
			added = true
			add()
		}
		if _, covered := v.overlay.Added(d.Name); !covered && !v.overlay.Takes(d.Name) {
			list = append(list, d)
		}
	}
	if !added {
		add()
	}
	return list
}
