//go:build linux

package crashtest_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/zephbot/zephbot/tools/mcp/mcptest"
)

// The fake tool is one of an MCP server.
const (
	toolServer = "desk"
	toolName   = toolServer + "__echo"
	// processHeader tells the tool's server which process calls: its number and that of its run.
	processHeader = "Machine-Process"
	longestTool   = 400 * time.Millisecond
)

// workbench is an MCP server whose tool records who calls it, for which question, and when.
type workbench struct {
	*httptest.Server
	m    *machine
	real http.Handler

	mu  sync.Mutex
	ran map[string]int // calls by the name of the command: "q7q-a"
}

func newWorkbench(t *testing.T, m *machine) *workbench {
	b := &workbench{m: m, real: mcptest.Options{Behaviour: mcptest.Plain}.Handler(), ran: map[string]int{}}
	b.Server = httptest.NewServer(b)
	t.Cleanup(func() {
		b.CloseClientConnections() // streams of processes that were killed
		b.Close()
	})
	return b
}

// lifeOf reads "2-7": the seventh run of process 2.
func lifeOf(text string) (l life, err error) {
	_, err = fmt.Sscanf(text, "%d-%d", &l.process, &l.number)
	return l, err
}

// config is the part of a process's configuration about the tool.
func (b *workbench) config(l life) string {
	return fmt.Sprintf(`
[[mcp.servers]]
id = %q
url = %q
trust_level = "trusted"
[mcp.servers.headers]
%s = "%d-%d"
[[tools.permissions.%q]]
pattern = "*"
action = "allow"
`, toolServer, b.URL, processHeader, l.process, l.number, toolServer+":echo")
}

// called returns the name of the command in a call.
var called = regexp.MustCompile(`"(q([0-9]+)q-[ab])"`)

// ServeHTTP implements http.Handler: every call takes a while, everything else is answered at once.
func (b *workbench) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	var call struct {
		Method string          `json:"method"`
		Params json.RawMessage `json:"params"`
	}
	if r.Method == http.MethodPost {
		_ = json.Unmarshal(body, &call) // the server judges whatever is not a call
	}
	if call.Method == "tools/call" {
		b.work(r, call.Params)
	}
	b.real.ServeHTTP(w, r)
}

// work performs a call. It finishes before its answer is written, and so before the caller can know the result.
func (b *workbench) work(r *http.Request, params json.RawMessage) {
	by, err := lifeOf(r.Header.Get(processHeader))
	found := called.FindSubmatch(params)
	if err != nil || found == nil {
		b.m.fail("a call that makes no sense: %s, %v", params, err)
		return
	}
	name := string(found[1])
	n, err := strconv.Atoi(string(found[2]))
	session := b.m.sessionOf(n)
	if err != nil || session == "" {
		b.m.fail("a call for a question that nobody asked: %s", params)
		return
	}
	j := b.m.diary.begin(job{life: by, session: session, what: "call " + name, tool: true})
	b.mu.Lock()
	b.ran[name]++
	b.mu.Unlock()
	took := time.Duration(n*37%100) * longestTool / 100
	wait(r.Context(), took, nil)
	b.m.diary.end(j, r.Context().Err() != nil)
}

// add adds how often each command was called.
func (b *workbench) add(counts map[string]int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for name, n := range maps.All(b.ran) {
		counts[name] += n
	}
}

// sessionOf returns the session of a question; "" = there is no such question.
func (m *machine) sessionOf(n int) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n < 0 || n >= len(m.questions) {
		return ""
	}
	return string(m.questions[n].talker.session())
}
