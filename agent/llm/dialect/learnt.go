package dialect

import (
	"encoding/json"
	"maps"
	"slices"
	"time"
)

// Learnt is what a server has said that its row does not know: by refusing a request that it took after a change. It
// belongs to a provider and a model, and to the key and the address with which it was learnt.
type Learnt struct {
	Omit   []string          `json:"omit,omitempty"`   // as Params.Omit
	Rename map[string]string `json:"rename,omitempty"` // as Params.Rename
	// Set are values of fields without which the server refuses a request, as JSON.
	Set map[string]string `json:"set,omitempty"`
	// Safe: schemas are sent in the safe subset only.
	Safe bool `json:"safe,omitempty"`
	// Aside are the tools that the server refuses, which are not offered to it.
	Aside []Aside `json:"aside,omitempty"`
	// History are the rules of History that it has besides those of its row, by their names in JSON.
	History []string  `json:"history,omitempty"`
	Window  int       `json:"window,omitempty"` // tokens, the answer included; 0 = it has not said
	Spent   int       `json:"spent,omitempty"`  // requests that learning has cost for Catalog
	Catalog string    `json:"catalog,omitempty"`
	At      time.Time `json:"at,omitzero"` // of the last change
}

// Aside is a tool that a server refuses.
type Aside struct {
	Tool   string `json:"tool"`   // qualified name
	Schema string `json:"schema"` // hash of what was refused: another schema is tried again
	Reason string `json:"reason"` // what the server said, without secrets
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
	if l.Safe {
		d.Schema = Schema{Strict: d.Schema.Strict, MaxTools: d.Schema.MaxTools, MaxName: d.Schema.MaxName, MaxDescription: d.Schema.MaxDescription}
	}
	for _, rule := range l.History {
		switch rule {
		case "bridge":
			d.History.Bridge = true
		case "one_system":
			d.History.OneSystem = true
		case "alternate":
			d.History.Alternate = true
		case "tool_names":
			d.History.ToolNames = true
		case "call_ids":
			d.History.CallIDs = CallIDsShort
		case "empty_content":
			d.History.EmptyContent = true
		case "keep_tools":
			d.History.KeepTools = true
		case "reasoning":
			d.History.Reasoning = "reasoning_content"
		case "no_reasoning":
			d.History.Reasoning = ""
		}
	}
	return d
}

// Memory keeps what was learnt. Implementations forget it after a week, and when the key, the address or the model
// changes. Safe for concurrent use.
type Memory interface {
	// Recall returns what is known of the server that a provider asks for a model; nil = nothing. The result must not be
	// changed.
	Recall(provider, model string) *Learnt
	// Remember keeps what was learnt. It returns at once; what cannot be stored is reported by the implementation.
	Remember(provider, model string, l *Learnt)
}
