// Package toolbox caches the tools of requests in a vendor's encoding. A catalog has few different lists of tools, and
// encoding one takes longer than the rest of a request.
package toolbox

import (
	"bytes"
	"fmt"
	"slices"
	"sync"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/wirename"
)

// Limits of the cache. Lists differ from turn to turn if tools are chosen for each.
const (
	MaxLists = 16
	MaxList  = 256 << 10 // bytes of one list; a longer one is encoded each time
)

// Box caches encoded lists of tools, at most MaxLists, the most recently used. Safe for concurrent use; the zero value
// is ready for use.
type Box struct {
	mu    sync.Mutex
	lists []*written // most recently used first
}

// written is a list of tools in the vendor's encoding.
type written struct {
	tools []llm.Tool
	names *wirename.Names
	text  []byte
}

// Of returns the names and the encoded tools of a request, from the cache or from write; nil if there are none. The
// bytes are shared and must not be changed. The result of write must depend only on the tools and the names. An error
// is that of write.
func (b *Box) Of(
	req *llm.Request, write func(*llm.Request, *wirename.Names) ([]byte, error),
) (*wirename.Names, []byte, error) {
	if len(req.Tools) == 0 {
		return wirename.New(req), nil, nil
	}
	if w := b.find(req.Tools); w != nil && w.covers(req) {
		return w.names, w.text, nil
	}
	names := wirename.New(req)
	text, err := write(req, names)
	if err != nil {
		return nil, nil, fmt.Errorf("write tools: %w", err)
	}
	w := &written{tools: make([]llm.Tool, len(req.Tools)), names: names, text: text}
	for i, t := range req.Tools {
		w.tools[i] = llm.Tool{Name: t.Name, Description: t.Description, Schema: slices.Clone(t.Schema)}
	}
	if len(text) <= MaxList && w.covers(req) {
		b.keep(w)
	}
	return names, text, nil
}

// Len returns the number of cached lists.
func (b *Box) Len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.lists)
}

func (b *Box) find(tools []llm.Tool) *written {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.IndexFunc(b.lists, func(w *written) bool { return slices.EqualFunc(w.tools, tools, equal) })
	if i < 0 {
		return nil
	}
	w := b.lists[i]
	copy(b.lists[1:i+1], b.lists[:i])
	b.lists[0] = w
	return w
}

func equal(a, b llm.Tool) bool {
	return a.Name == b.Name && a.Description == b.Description && bytes.Equal(a.Schema, b.Schema)
}

func (b *Box) keep(w *written) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lists = slices.Insert(b.lists, 0, w)
	b.lists = b.lists[:min(len(b.lists), MaxLists)]
}

// covers reports whether the names fit the request too: its history may contain other tools, and names depend on each
// other.
func (w *written) covers(req *llm.Request) bool {
	for i := range req.Messages {
		for _, u := range req.Messages[i].Uses {
			if !slices.ContainsFunc(w.tools, func(t llm.Tool) bool { return t.Name == u.Name }) {
				return false
			}
		}
	}
	return true
}
