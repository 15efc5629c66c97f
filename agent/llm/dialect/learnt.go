package dialect

import (
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"time"
)

// Learnt is what a server has said that its row does not know: by refusing a request that it took after a change. It
// belongs to a provider and a model, and to the key and the address with which it was learnt.
type Learnt struct {
	Omit   []string          `json:"omit,omitempty"`   // as Params.Omit
	Rename map[string]string `json:"rename,omitempty"` // as Params.Rename
	// Set are values of fields without which the server refuses a request, as JSON.
	Set map[string]string `json:"set,omitempty"`
	// Wire is the API that the model requires for tools, as Dialect.Wire; "" = the one that was tried first.
	Wire string `json:"wire,omitempty"`
	// Safe: schemas are sent in the safe subset only.
	Safe bool `json:"safe,omitempty"`
	// Closed: objects say additionalProperties false, as Schema.Closed.
	Closed bool `json:"closed,omitempty"`
	// MaxTools is the most tools that the server takes; 0 = it has not said.
	MaxTools int `json:"max_tools,omitempty"`
	// Aside are the tools that the server refuses, which are not offered to it.
	Aside []Aside `json:"aside,omitempty"`
	// History are the rules of History that it has besides those of its row, by their names in JSON; "call_ids" is
	// CallIDsShort, "reasoning" ReasoningRequired, "no_reasoning" ReasoningNever,
	// "no_tool_names" that results carry none.
	History []string `json:"history,omitempty"`
	// Begins is what answers have begun with, against what the name of the model says: BeginsThought or
	// BeginsText; "" = nothing else was seen.
	Begins  string    `json:"begins,omitempty"`
	Window  int       `json:"window,omitempty"` // tokens, the answer included; 0 = it has not said
	Spent   int       `json:"spent,omitempty"`  // requests that learning has cost for Catalog
	Catalog string    `json:"catalog,omitempty"`
	SpentAt time.Time `json:"spent_at,omitzero"` // of the first of them
	At      time.Time `json:"at,omitzero"`       // of the last change
}

// The values of Learnt.Begins.
const (
	BeginsThought = "thought" // as Traits.OpensThought
	BeginsText    = "text"
)

// Aside is a tool that a server refuses.
type Aside struct {
	Tool   string `json:"tool"`   // qualified name
	Schema string `json:"schema"` // hash of what was refused: another schema is tried again
	Reason string `json:"reason"` // what the server said, without secrets
}

// Clone returns a copy that shares nothing with l; an empty Learnt for nil.
func (l *Learnt) Clone() *Learnt {
	if l == nil {
		return &Learnt{}
	}
	c := *l
	c.Omit, c.Aside, c.History = slices.Clone(l.Omit), slices.Clone(l.Aside), slices.Clone(l.History)
	c.Rename, c.Set = maps.Clone(l.Rename), maps.Clone(l.Set)
	return &c
}

// Empty reports whether nothing was learnt, whatever it has cost.
func (l *Learnt) Empty() bool {
	return l == nil || len(l.Omit) == 0 && len(l.Rename) == 0 &&
		len(l.Set) == 0 && l.Wire == "" && !l.Safe && !l.Closed &&
		l.MaxTools == 0 && len(l.Aside) == 0 && len(l.History) == 0 && l.Begins == "" && l.Window == 0
}

// SameForm reports whether two make the same of a request, whatever they have cost.
func (l *Learnt) SameForm(m *Learnt) bool {
	if l == m {
		return true
	}
	if l == nil {
		l = &Learnt{}
	}
	if m == nil {
		m = &Learnt{}
	}
	return slices.Equal(l.Omit, m.Omit) && maps.Equal(l.Rename, m.Rename) &&
		maps.Equal(l.Set, m.Set) && l.Wire == m.Wire &&
		l.Begins == m.Begins && l.Safe == m.Safe && l.Closed == m.Closed && l.MaxTools == m.MaxTools &&
		slices.Equal(l.Aside, m.Aside) && slices.Equal(l.History, m.History)
}

// With returns the dialect with what was learnt.
func (d Dialect) With(l *Learnt) Dialect {
	if l == nil {
		return d
	}
	d.Params.Omit = slices.Concat(d.Params.Omit, l.Omit)
	if len(l.Rename) > 0 {
		rename := maps.Clone(d.Params.Rename)
		if rename == nil {
			rename = map[string]string{}
		}
		maps.Copy(rename, l.Rename)
		d.Params.Rename = rename
	}
	if len(l.Set) > 0 {
		set := maps.Clone(d.Params.Set)
		if set == nil {
			set = map[string]json.RawMessage{}
		}
		for name, value := range l.Set {
			set[name] = json.RawMessage(value)
		}
		d.Params.Set = set
	}
	if l.Wire != "" {
		d.Wire = l.Wire
	}
	if l.Safe {
		d.Schema = Schema{
			Closed:         d.Schema.Closed,
			Strict:         d.Schema.Strict,
			MaxTools:       d.Schema.MaxTools,
			MaxDescription: d.Schema.MaxDescription,
		}
	}
	if l.Closed {
		d.Schema.Closed = true
	}
	if l.MaxTools > 0 {
		d.Schema.MaxTools = l.MaxTools
	}
	if l.Begins != "" {
		d.Traits.OpensThought = l.Begins == BeginsThought
	}
	d.History = d.History.withRules(l.History)
	return d
}

// withRules returns the form of messages with more rules, by their names.
func (h History) withRules(rules []string) History {
	all := h.Reasoning == ReasoningAll || h.Reasoning == ReasoningKept
	for _, rule := range rules {
		switch rule {
		case "bridge":
			h.Bridge = true
		case "no_system", "one_system": // there is one already, so another one is put before it behind our back
			h.NoSystem = true
		case "alternate":
			h.Alternate = true
		case "tool_names":
			h.ToolNames = true
		case "no_tool_names":
			h.ToolNames = false
		case "call_ids":
			h.CallIDs = CallIDsShort
		case "call_ids_verbatim":
			h.CallIDs = CallIDsVerbatim
		case "empty_content":
			h.EmptyContent = true
		case "keep_tools":
			h.KeepTools = true
		case "no_channels":
			h.NoChannels = true
		case "reasoning":
			if h.Reasoning = ReasoningRequired; all {
				h.Reasoning = ReasoningKept
			}
		case "reasoning_kept":
			h.Reasoning = ReasoningKept
		case "reasoning_all":
			h.Reasoning = ReasoningAll
		case "no_reasoning":
			h.Reasoning = ReasoningNever
		}
	}
	return h
}

// Memory keeps what was learnt. Implementations forget it after a week, and when the key, the address or the model
// changes. Safe for concurrent use.
type Memory interface {
	// Recall returns what is known of the server that a provider asks for a model; nil = nothing. The result must not
	// be changed. As long as nothing changes, it is the same pointer.
	Recall(provider, model string) *Learnt
	// Update changes what is known: change gets a copy, empty if nothing is known, and nobody else changes it
	// meanwhile. Update returns at once; what cannot be stored is reported by the implementation.
	Update(provider, model string, change func(*Learnt))
}

// Forgotten is how long what was learnt is believed.
const Forgotten = 7 * 24 * time.Hour

// Local is a Memory of this process. The zero value is ready for use, with the time of the system's clock.
type Local struct {
	Now func() time.Time // nil = time.Now

	mu    sync.RWMutex
	known map[modelKey]*Learnt
}

// modelKey is what something was learnt of.
type modelKey struct{ provider, model string }

func (m *Local) now() time.Time {
	if m.Now != nil {
		return m.Now()
	}
	return time.Now()
}

// Recall implements Memory. It allocates nothing.
func (m *Local) Recall(provider, model string) *Learnt {
	m.mu.RLock()
	l := m.known[modelKey{provider, model}]
	m.mu.RUnlock()
	if l == nil || m.now().Sub(l.At) > Forgotten {
		return nil
	}
	return l
}

// Update implements Memory. The week begins again with each change of what is
// known, and not with what learning has cost.
func (m *Local) Update(provider, model string, change func(*Learnt)) {
	m.Set(provider, model, func(l *Learnt) *Learnt {
		before := l.Clone()
		change(l)
		if l.At.IsZero() || !l.SameForm(before) || l.Window != before.Window {
			l.At = m.now()
		}
		return l
	})
}

// Set replaces what is known by what change makes of a copy of it; nil = nothing is known any more. Unlike with Update,
// the time of the change is left alone: for what another process has learnt.
func (m *Local) Set(provider, model string, change func(*Learnt) *Learnt) {
	m.mu.Lock()
	defer m.mu.Unlock()
	at := modelKey{provider, model}
	known := m.known[at]
	if known != nil && m.now().Sub(known.At) > Forgotten {
		known = nil
	}
	if m.known == nil {
		m.known = map[modelKey]*Learnt{}
	}
	if l := change(known.Clone()); l != nil {
		m.known[at] = l
		return
	}
	delete(m.known, at)
}
