package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/dialect"
	"github.com/zephbot/zephbot/agent/llm/toolschema"
)

// Limits of the cache. Lists differ from turn to turn if tools are chosen for each.
const (
	MaxToolLists = 16
	MaxToolList  = 256 << 10 // bytes of one list; a longer one is encoded each time
	maxTools     = 1024      // single tools; with more, all are forgotten
)

// ToolCache caches the tools of requests in a vendor's encoding: at most MaxToolLists lists, the most recently
// used, and the tools that they consist of. A catalog has few different lists, and encoding one takes longer
// than the rest of a request. What is cached for one dialect is never given to another. Safe for concurrent
// use; the zero value is ready for use.
type ToolCache struct {
	mu    sync.Mutex
	lists []*ToolList // most recently used first
	tools map[toolSource]Tool
	of    dialect.Schema // the dialect of tools
}

// ToolList is the tools of a request in the vendor's encoding.
type ToolList struct {
	Names *Names
	Text  []byte   // nil if there are none; shared, must not be changed
	Left  []string // qualified names of the tools that are not offered, because the server takes no more

	tools   []llm.Tool
	dialect dialect.Schema
}

// Tool is a tool in the form that a server takes.
type Tool struct {
	Name        string // on the wire
	Description string
	Schema      json.RawMessage

	keys *toolschema.Keys
}

// toolSource is a tool as its author described it.
type toolSource struct{ description, schema string }

// Of returns the tools of a request for a dialect, from the cache or from write. A server that takes fewer tools gets
// our own ones first, then those of servers in their order. The result of write must depend only on the tools. An error
// is that of write.
func (b *ToolCache) Of(req *llm.Request, d *dialect.Schema, write func([]Tool) ([]byte, error)) (*ToolList, error) {
	if len(req.Tools) == 0 {
		return &ToolList{Names: NamesOf(req)}, nil
	}
	if l := b.findList(req.Tools, d); l != nil && l.covers(req) {
		return l, nil
	}
	l := &ToolList{Names: NamesOf(req), tools: make([]llm.Tool, len(req.Tools)), dialect: *d}
	for i, t := range req.Tools {
		l.tools[i] = llm.Tool{Name: t.Name, Description: t.Description, Schema: slices.Clone(t.Schema)}
	}
	var offered []llm.Tool
	offered, l.Left = withinLimit(l.tools, d.MaxTools)
	list := make([]Tool, 0, len(offered))
	for _, t := range offered {
		made := b.writeTool(t, d)
		made.Name = l.Names.Encode(t.Name)
		if made.keys != nil {
			l.Names.Translate(t.Name, made.keys)
		}
		list = append(list, made)
	}
	var err error
	if l.Text, err = write(list); err != nil {
		return nil, fmt.Errorf("write tools: %w", err)
	}
	if len(l.Text) <= MaxToolList && l.covers(req) {
		b.keepList(l)
	}
	return l, nil
}

// withinLimit returns the tools that a server takes, at most a number of them (0 = toolschema.MaxTools), and the names
// of the others. Tools without a server are our own.
func withinLimit(list []llm.Tool, most int) (offered []llm.Tool, left []string) {
	if most <= 0 {
		most = toolschema.MaxTools
	}
	if len(list) <= most {
		return list, nil
	}
	foreign := func(t llm.Tool) bool { return strings.Contains(t.Name, ":") }
	room := most
	for _, t := range list {
		if !foreign(t) {
			room--
		}
	}
	for _, t := range list {
		switch {
		case len(offered) == most:
		case !foreign(t):
			offered = append(offered, t)
			continue
		case room > 0:
			room--
			offered = append(offered, t)
			continue
		}
		left = append(left, t.Name)
	}
	return offered, left
}

// maxNamed bounds the tools that Noted names.
const maxNamed = 100

// Noted returns a request whose instructions name the tools that are not offered; the request itself if all are.
func (l *ToolList) Noted(req *llm.Request) *llm.Request {
	if len(l.Left) == 0 {
		return req
	}
	names := strings.Join(l.Left[:min(len(l.Left), maxNamed)], ", ")
	if more := len(l.Left) - maxNamed; more > 0 {
		names += fmt.Sprintf(" and %d more", more)
	}
	noted := *req
	noted.System = strings.TrimSpace(req.System +
		"\n\nMore tools exist than can be offered here at once. You cannot call these now; " +
		"say so if one is needed: " + names + ".")
	return &noted
}

// Len returns the number of cached lists.
func (b *ToolCache) Len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.lists)
}

// writeTool returns a tool in the form of a dialect, without its name.
func (b *ToolCache) writeTool(t llm.Tool, d *dialect.Schema) Tool {
	key := toolSource{t.Description, string(t.Schema)}
	b.mu.Lock()
	if b.tools == nil || len(b.tools) >= maxTools || !b.of.Equal(d) {
		b.tools, b.of = map[toolSource]Tool{}, *d
	}
	made, ok := b.tools[key]
	b.mu.Unlock()
	if ok {
		return made
	}
	made.Description, made.Schema, made.keys = toolschema.Tool(t.Description, t.Schema, d)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.of.Equal(d) {
		b.tools[key] = made
	}
	return made
}

func (b *ToolCache) findList(tools []llm.Tool, d *dialect.Schema) *ToolList {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.IndexFunc(b.lists, func(l *ToolList) bool {
		return l.dialect.Equal(d) && slices.EqualFunc(l.tools, tools, equalTools)
	})
	if i < 0 {
		return nil
	}
	l := b.lists[i]
	copy(b.lists[1:i+1], b.lists[:i])
	b.lists[0] = l
	return l
}

func equalTools(a, b llm.Tool) bool {
	return a.Name == b.Name && a.Description == b.Description && bytes.Equal(a.Schema, b.Schema)
}

func (b *ToolCache) keepList(l *ToolList) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lists = slices.Insert(b.lists, 0, l)
	b.lists = b.lists[:min(len(b.lists), MaxToolLists)]
}

// covers reports whether the names fit the request too: its history may contain other tools, and names depend on each
// other.
func (l *ToolList) covers(req *llm.Request) bool {
	for i := range req.Messages {
		for _, u := range req.Messages[i].Uses {
			if !slices.ContainsFunc(l.tools, func(t llm.Tool) bool { return t.Name == u.Name }) {
				return false
			}
		}
	}
	return true
}
