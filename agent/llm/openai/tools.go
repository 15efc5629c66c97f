package openai

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"

	goopenai "github.com/sashabaranov/go-openai"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/wirename"
)

// Bounds of what is remembered of lists of tools: a catalog has few, which differ from turn to turn where tools are chosen for each.
const (
	maxToolboxes = 16
	maxToolbox   = 256 << 10 // bytes of one list; a longer one is encoded each time
)

// standInJSON is what the SDK writes of standIn. No text can hold it: quotes are escaped there.
const standInJSON = `"tools":[{"type":""}]`

// standIn stands in a request for its tools while the SDK writes it.
func standIn(tools []byte) []goopenai.Tool {
	if tools == nil {
		return nil
	}
	return []goopenai.Tool{{}}
}

// toolbox writes tools once for each list of them: the SDK would write the definitions anew with every request. Safe for concurrent use; the zero value is
// ready.
type toolbox struct {
	mu    sync.Mutex
	lists []*written // most recently used first
}

// written is a list of tools in the vendor's form.
type written struct {
	tools []llm.Tool
	names *wirename.Names
	json  []byte
}

// of gives the names and the tools of a request: the very bytes that the SDK would write.
func (b *toolbox) of(req *llm.Request, form func(*llm.Request, *wirename.Names) []goopenai.Tool) (*wirename.Names, []byte, error) {
	if len(req.Tools) == 0 {
		return wirename.New(req), nil, nil
	}
	if w := b.find(req.Tools); w != nil && w.covers(req) {
		return w.names, w.json, nil
	}
	names := wirename.New(req)
	data, err := json.Marshal(form(req, names))
	if err != nil {
		return nil, nil, fmt.Errorf("write tools: %w", err)
	}
	w := &written{tools: make([]llm.Tool, len(req.Tools)), names: names, json: data}
	for i, t := range req.Tools {
		w.tools[i] = llm.Tool{Name: t.Name, Description: t.Description, Schema: slices.Clone(t.Schema)}
	}
	if len(data) <= maxToolbox && w.covers(req) {
		b.keep(w)
	}
	return names, data, nil
}

func (b *toolbox) find(tools []llm.Tool) *written {
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

func (b *toolbox) keep(w *written) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lists = slices.Insert(b.lists, 0, w)
	b.lists = b.lists[:min(len(b.lists), maxToolboxes)]
}

// covers says whether the names are those of the request too: its history may name other tools, and names depend on each other.
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

var errNoPlace = errors.New("the request has no place for its tools")

// addTools puts the tools into a request in place of what stands in for them.
func (x *exchange) addTools(req *http.Request) error {
	if x.tools == nil {
		return nil
	}
	data, err := ownBody(req)
	if err != nil {
		return err
	}
	before, after, ok := bytes.Cut(data, []byte(standInJSON))
	if !ok {
		return errNoPlace
	}
	setBody(req, before, []byte(`"tools":`), x.tools, after)
	return nil
}

// ownBody reads the body of a request that was not sent yet.
func ownBody(req *http.Request) ([]byte, error) {
	data := bytes.NewBuffer(make([]byte, 0, max(req.ContentLength, 0)+bytes.MinRead))
	if _, err := data.ReadFrom(req.Body); err != nil {
		return nil, fmt.Errorf("read own request: %w", err)
	}
	return data.Bytes(), nil
}

// setBody makes the body of a request of pieces, which are not joined: the tools of a request are far longer than the rest, shared by all requests, and would
// be copied for each while its model thinks.
func setBody(req *http.Request, parts ...[]byte) {
	req.ContentLength = 0
	for _, part := range parts {
		req.ContentLength += int64(len(part))
	}
	req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(&pieces{rest: parts}), nil }
	req.Body = io.NopCloser(&pieces{rest: parts})
}

// pieces reads texts one after another. It does not change them nor their list.
type pieces struct {
	rest [][]byte
	read int // of the first
}

func (p *pieces) Read(into []byte) (int, error) {
	for len(p.rest) > 0 && p.read == len(p.rest[0]) {
		p.rest, p.read = p.rest[1:], 0
	}
	if len(p.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(into, p.rest[0][p.read:])
	p.read += n
	return n, nil
}
