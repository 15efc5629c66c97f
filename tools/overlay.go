package tools

import "fmt"

// Set is a set of tools; *Registry is one, View another.
type Set interface {
	// Lookup finds a tool by its qualified name.
	Lookup(name string) (Tool, bool)
	// Definitions lists the tools: our own first, those of servers by name.
	Definitions() []Definition
}

// Overlay is what one turn changes of the tools that there are: an allow-list takes some away, an editor, a sub-agent
// or a skill may add its own. It does not change once it is made, and is safe for concurrent use. What lies below it
// goes on: the tools of a server that connects meanwhile are there, unless they are taken away. Nil changes nothing.
type Overlay struct {
	takes func(name string) bool
	added []Tool
}

// NewOverlay makes an overlay. takes says of the name of a tool whether it is taken away; it must always give the same
// answer and be safe for concurrent use; nil takes none. Tools that are added stay, whatever takes says of their names,
// and cover a tool of the same name below. They are tools of our own, since those of a server come and go with it
// (Registry.Replace).
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

// Only returns the overlay of an allow-list: what it does not allow is taken away. A nil list allows all.
func Only(allowed func(name string) bool) *Overlay {
	if allowed == nil {
		return nil
	}
	return &Overlay{takes: func(name string) bool { return !allowed(name) }}
}

// Takes reports whether a tool is taken away.
func (o *Overlay) Takes(name string) bool {
	if o == nil || o.takes == nil {
		return false
	}
	_, added := o.Added(name)
	return !added && o.takes(name)
}

// Added finds a tool that the turn adds.
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

// Over returns a set of tools as the turn sees it.
func (o *Overlay) Over(below Set) View { return View{below: below, overlay: o} }

// View is a set of tools under an overlay. Safe for concurrent use.
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
