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

// State adds to each tool its statement. A tool without one is an error, because it would be treated as one that may do
// anything.
func State(list []Tool, says []act.Tool) ([]Tool, error) {
	for i := range list {
		def := &list[i].Definition
		if def.Says = act.Of(says, def.Name); def.Says == nil {
			return nil, fmt.Errorf("tool %s does not say what it does", def.Name)
		}
	}
	return list, nil
}

// Registry contains the available tools. Its zero value is empty and ready to use. It is safe for concurrent use; a
// reader keeps the snapshot that it got.
type Registry struct {
	mu    sync.RWMutex
	tools map[string]Tool
	order []string                     // built-ins in the order in which they were added, then the others by name
	list  atomic.Pointer[[]Definition] // result of Definitions; nil after a change
}

// NewRegistry returns a registry of the given tools. A duplicate or malformed name is an error.
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

// sound returns an error if a tool is not valid by itself.
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

// Remove removes a tool. Calls in progress continue.
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

// Replace atomically replaces all tools of an MCP server by the given ones, so that no reader sees half of the change.
// Each tool must belong to the server; after an error nothing has changed. An empty list removes the server's tools.
// Calls in progress continue.
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

// Lookup returns a tool by its qualified name.
func (r *Registry) Lookup(name string) (Tool, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	t, ok := r.tools[name]
	return t, ok
}

// Definitions returns all tools: built-ins in the order in which they were added, then MCP tools by name. The order is
// stable, which keeps the prompt cache of a model valid. Since every turn needs the list, it is built once per set of
// tools and shared. Callers must not change its elements; appending makes a copy.
func (r *Registry) Definitions() []Definition {
	if list := r.list.Load(); list != nil {
		return *list
	}
	r.mu.RLock() // excludes writers, so that no older list replaces nil
	defer r.mu.RUnlock()
	list := r.definitions()
	r.list.Store(&list)
	return list
}

// definitions builds the list. The caller holds the lock.
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

// Names returns the names of all tools in the order of Definitions.
func (r *Registry) Names() []string {
	defs := r.Definitions()
	names := make([]string, len(defs))
	for i, d := range defs {
		names[i] = d.Name
	}
	return names
}
