package mcp

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"sync"
)

// taskWatch records which tools can only be called as a task (execution.taskSupport = "required"). The protocol library
// does not know this field and drops it, so taskWatch reads it from the server's messages.
type taskWatch struct {
	mu     sync.Mutex
	needed map[string]bool // by the server's own name of the tool
	buf    []byte          // answers over HTTP that were not parsed yet
}

var taskField = []byte(`"taskSupport"`)

// inspectMessage inspects one message.
func (w *taskWatch) inspectMessage(message []byte) {
	if !bytes.Contains(message, taskField) {
		return
	}
	var m struct {
		Result struct {
			Tools []struct {
				Name      string `json:"name"`
				Execution struct {
					TaskSupport string `json:"taskSupport"`
				} `json:"execution"`
			} `json:"tools"`
		} `json:"result"`
	}
	if json.Unmarshal(message, &m) != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.needed == nil {
		w.needed = map[string]bool{}
	}
	for _, t := range m.Result.Tools {
		w.needed[t.Name] = t.Execution.TaskSupport == "required"
	}
}

// requiresTask reports whether a tool needs a task.
func (w *taskWatch) requiresTask(name string) bool {
	w.mu.Lock()
	buf := w.buf
	w.buf = nil
	w.mu.Unlock()
	if len(buf) > 0 {
		w.inspectMessage(buf) // a JSON document
		for line := range bytes.Lines(buf) {
			if data, ok := bytes.CutPrefix(line, []byte("data:")); ok { // an event of a stream
				w.inspectMessage(data)
			}
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.needed[name]
}

// requestsTools reports whether a request asks for the list of tools.
func requestsTools(req *http.Request) bool {
	if req.Method != http.MethodPost || req.GetBody == nil {
		return false
	}
	r, err := req.GetBody()
	if err != nil {
		return false
	}
	defer func() { _ = r.Close() }() // it is in memory
	head, err := io.ReadAll(io.LimitReader(r, 4096))
	return err == nil && bytes.Contains(head, []byte(`"tools/list"`))
}

// tee copies what is read from an answer, up to limit bytes that nobody has asked for yet.
type tee struct {
	io.ReadCloser
	w     *taskWatch
	limit int
}

// Read implements io.Reader.
func (t tee) Read(p []byte) (int, error) {
	n, err := t.ReadCloser.Read(p)
	t.w.mu.Lock()
	defer t.w.mu.Unlock()
	if len(t.w.buf)+n <= t.limit {
		t.w.buf = append(t.w.buf, p[:n]...)
	}
	return n, err
}
