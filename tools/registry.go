package tools

import (
	"fmt"
	"regexp"
	"slices"
	"sort"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/zephbot/zephbot/policy/act"
)

// State gives each tool its statement. A tool without one is an error: it would be treated as one that may do anything.
func State(list []Tool, says []act.Tool) ([]Tool, error) {
	for i := range list {
		def := &list[i].Definition
		if def.Says = act.Of(says, def.Name); def.Says == nil {
			return nil, fmt.Errorf("tool %s does not say what it does", def.Name)
		}
	}
	return list, nil
}

// Registry holds the tools that exist. Its zero value is empty and ready. Safe for concurrent use; a reader keeps the
// snapshot it took.
type Registry struct {
	mu    sync.RWMutex
	tools map[string]Tool
	order []string                     // built-ins in the order they were added, then others by name
	list  atomic.Pointer[[]Definition] // what Definitions gives; nil after a change
}

// NewRegistry makes a registry of the given tools; a doubled or malformed name is an error.
func NewRegistry(list ...Tool) (*Registry, error) {
	r := &Registry{}
	for _, t := range list {
		if err := r.Add(t); err != nil {
			return nil, err
		}
	}
	return r, nil
}

var nameRule = regexp.MustCompile(`^[A-Za-z0-9_.-]+(:[A-Za-z0-9_./-]+)?$`)

// sound says what is wrong with a tool by itself.
func (t *Tool) sound() error {
	switch name := t.Definition.Name; {
	case !nameRule.MatchString(name):
		return fmt.Errorf("tool name %q: want letters, digits, _ . - and at most one colon", name)
	case t.Run == nil:
		return fmt.Errorf("tool %s: nothing to run", name)
	case t.Definition.Server != "" && t.Definition.Says != nil:
		return fmt.Errorf("tool %s: what a server says of its tools is not believed", name)
	}
	return nil
}

// Add registers a tool.
func (r *Registry) Add(t Tool) error {
	if err := t.sound(); err != nil {
		return err
	}
	name := t.Definition.Name
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.tools[name]; ok {
		return fmt.Errorf("tool %s: registered twice", name)
	}
	if r.tools == nil {
		r.tools = map[string]Tool{}
	}
	r.tools[name] = t
	r.order = append(r.order, name)
	r.list.Store(nil)
	return nil
}

// Remove takes a tool out; calls that run go on.
func (r *Registry) Remove(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.tools, name)
	r.list.Store(nil)
	for i, n := range r.order {
		if n == name {
			r.order = append(r.order[:i:i], r.order[i+1:]...)
			return
		}
	}
}

// Replace puts the given tools in the place of all tools of an MCP server, at once: no reader sees a part of the
// change. Each must belong to the server; an error changes nothing. Without tools the server's are gone; calls that run
// go on.
func (r *Registry) Replace(server string, list []Tool) error {
	if server == "" {
		return fmt.Errorf("replace tools: no server is named")
	}
	fresh := make(map[string]Tool, len(list))
	for _, t := range list {
		name := t.Definition.Name
		if err := t.sound(); err != nil {
			return err
		}
		switch _, twice := fresh[name]; {
		case t.Definition.Server != server || !strings.HasPrefix(name, server+":"):
			return fmt.Errorf("tool %s: does not belong to the server %s", name, server)
		case twice:
			return fmt.Errorf("tool %s: registered twice", name)
		}
		fresh[name] = t
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for name := range fresh {
		if old, ok := r.tools[name]; ok && old.Definition.Server != server {
			return fmt.Errorf("tool %s: registered twice", name)
		}
	}
	order := make([]string, 0, len(r.order)+len(list))
	for _, name := range r.order {
		if r.tools[name].Definition.Server == server {
			delete(r.tools, name)
			continue
		}
		order = append(order, name)
	}
	if r.tools == nil {
		r.tools = make(map[string]Tool, len(list))
	}
	for _, t := range list {
		r.tools[t.Definition.Name] = t
		order = append(order, t.Definition.Name)
	}
	r.order = order
	r.list.Store(nil)
	return nil
}

// Lookup finds a tool by its qualified name.
func (r *Registry) Lookup(name string) (Tool, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	t, ok := r.tools[name]
	return t, ok
}

// Definitions lists all tools: built-ins in the order they were added, then MCP tools by name, so that the list (and a
// model's prompt cache) is stable. Every turn asks for it, so it is made once for each set of tools and shared: nobody
// may change its elements, while appending to it makes a copy.
func (r *Registry) Definitions() []Definition {
	if list := r.list.Load(); list != nil {
		return *list
	}
	r.mu.RLock() // who changes the tools waits, so that no older list takes the place of nil
	defer r.mu.RUnlock()
	list := r.definitions()
	r.list.Store(&list)
	return list
}

// definitions makes the list; the lock is held.
func (r *Registry) definitions() []Definition {
	var own, foreign []Definition
	for _, n := range r.order {
		if d := r.tools[n].Definition; d.Server == "" {
			own = append(own, d)
		} else {
			foreign = append(foreign, d)
		}
	}
	sort.Slice(foreign, func(i, j int) bool { return foreign[i].Name < foreign[j].Name })
	return slices.Clip(append(own, foreign...))
}

// Names lists the names of all tools in the order of Definitions.
func (r *Registry) Names() []string {
	defs := r.Definitions()
	names := make([]string, len(defs))
	for i, d := range defs {
		names[i] = d.Name
	}
	return names
}
