// Package mcptest is an MCP server that misbehaves: depending on its options it hangs, floods, dies, lies, changes its
// tools and answers with a gigabyte. Tests run it as a separate process (the test binary itself, see Main) or behind
// httptest (Handler).
package mcptest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// variable is the environment variable with the Options of a process that Main turns into a server.
const variable = "MCPTEST_SERVER"

// Behaviour says how a server behaves.
type Behaviour string

// Behaviours. Unless stated otherwise, a server has the tool echo, which works. Those marked "raw" write their frames
// themselves and support only revisions before 2026-07-28.
const (
	Plain Behaviour = "plain" // behaves well: echo, and the tools of Options.Tools

	HangInitialize Behaviour = "hang at initialize" // raw; answers nothing at all
	HangList       Behaviour = "hang at tools/list" // raw
	HangCall       Behaviour = "hang at a call"     // raw; no call is ever answered, and cancellation is ignored
	Deaf           Behaviour = "deaf"               // raw; stops reading after the list

	// raw; sends notifications without end once its tools were listed; over HTTP, as the answer to a call
	Flood    Behaviour = "flood"
	FloodLog Behaviour = "flood log" // raw; the same with log messages

	DieInCall  Behaviour = "die in mid-call" // raw; any call kills the process
	ExitAtOnce Behaviour = "exit at once"    // with status 3

	// the tool change gives echo a different schema and description, and adds the tool fresh
	Change Behaviour = "change"
	Lie    Behaviour = "lie" // the tool tidy claims to be read-only, and removes the file named by its argument

	ElicitForm Behaviour = "elicit a form"    // the tool ask asks once and returns the answer
	ElicitURL  Behaviour = "elicit a page"    // the same with an address to open
	ElicitLoop Behaviour = "elicit in a loop" // the tool ask keeps asking after it was declined
	Sample     Behaviour = "sample"           // the tool ask asks the model
	Roots      Behaviour = "roots"            // the tool ask lists the client's roots

	// raw; answers a call with Options.Size bytes in one message (over HTTP: one JSON document)
	Giant      Behaviour = "giant"
	GiantEvent Behaviour = "giant event" // raw; over HTTP the same in one event of a stream
	// raw; sends Options.Size bytes as notifications of 64 KiB before the answer
	GiantStream Behaviour = "giant stream"

	Junk        Behaviour = "junk"         // raw; prints other text before and between frames
	StderrFlood Behaviour = "stderr flood" // writes Options.Size bytes to standard error before it serves
	Grandchild  Behaviour = "grandchild"   // has a child process that ignores SIGTERM and keeps the pipes open
	// serves once the file Options.Gate exists; without Gate, after 5 s
	SlowStart Behaviour = "slow start"

	Duplicates Behaviour = "duplicates" // raw; two tools with the same name
	Many       Behaviour = "many"       // raw; 10 000 tools, all in one page
	BigSchema  Behaviour = "big schema" // raw; the tool big has a schema of Options.Size bytes
	// instructions, and the description and schema of the tool poison, try to instruct the model
	Inject Behaviour = "inject"
	// the tool count returns a structured result that violates its output schema
	Mismatch     Behaviour = "mismatch"
	InvalidJSON  Behaviour = "invalid json"  // raw; answers a call with half an object
	WrongVersion Behaviour = "wrong version" // raw; agrees to a revision that does not exist

	Tasks      Behaviour = "tasks"       // raw; the tool slow needs a task, the tool maybe supports one
	PageNeeded Behaviour = "page needed" // raw; refuses every call until a page was opened
	Fails      Behaviour = "fails"       // raw; every call reports a failure of its own
	// raw; the tools bomb and tree have schemas whose check never ends in practice
	SchemaBomb Behaviour = "schema bomb"

	// the tool reach tries to read or write a file, to connect to an address, or to signal a process, and returns the
	// outcome
	Reach  Behaviour = "reach"
	Escape Behaviour = "escape" // the tool escape leaves a process in a new session behind and returns its process id

	stay Behaviour = "stay" // the grandchild
)

// GiB is the default size of what is too large.
const GiB = 1 << 30

// Options of a server.
type Options struct {
	Behaviour Behaviour
	Size      int64 `json:",omitempty"` // bytes, for the behaviours that name it; 0 = GiB
	Tools     int   `json:",omitempty"` // for Plain: number of tools besides echo
	// directory in which every process of the server creates a file named after its process id
	Pids string `json:",omitempty"`
	Gate string `json:",omitempty"` // for SlowStart
}

// Env returns the environment of a process that Main turns into this server.
func (o Options) Env() map[string]string {
	data, err := json.Marshal(o)
	if err != nil {
		panic(err) //nolint:forbidigo // strings and numbers always marshal
	}
	// A process built with the race detector sleeps a second before it exits; that is not needed here.
	return map[string]string{variable: string(data), "GORACE": "atexit_sleep_ms=0"}
}

func (o Options) size() int64 {
	if o.Size > 0 {
		return o.Size
	}
	return GiB
}

// Main serves on standard input and output where Variable is set, and gives the code to exit with; ok is false where it
// is not set. TestMain calls it first:
//
//	if code, ok := mcptest.Main(); ok {
//		os.Exit(code)
//	}
func Main() (code int, ok bool) {
	text, ok := os.LookupEnv(variable)
	if !ok {
		return 0, false
	}
	var o Options
	err := json.Unmarshal([]byte(text), &o)
	if err == nil {
		err = o.serve(context.Background())
	}
	if err != nil && !errors.Is(err, io.EOF) {
		fmt.Fprintln(os.Stderr, err)
		return exitCode(err), true
	}
	return 0, true
}

// errExit is the error of ExitAtOnce.
var errExit = errors.New("fatal: there is no licence for this server")

func exitCode(err error) int {
	if errors.Is(err, errExit) {
		return 3
	}
	return 1
}

// serve runs a server process.
func (o Options) serve(ctx context.Context) error {
	if o.Pids != "" {
		if err := os.WriteFile(filepath.Join(o.Pids, strconv.Itoa(os.Getpid())), nil, 0o600); err != nil {
			return err
		}
	}
	switch o.Behaviour {
	case ExitAtOnce:
		return errExit
	case stay:
		return o.stay()
	case StderrFlood:
		if err := o.complain(); err != nil {
			return err
		}
	case Grandchild:
		if err := o.multiply(ctx); err != nil {
			return err
		}
	case SlowStart:
		if err := o.wait(ctx); err != nil {
			return err
		}
	}
	if o.raw() {
		return (&frames{o: o, w: os.Stdout}).serve(os.Stdin)
	}
	return o.server().Run(ctx, &mcp.StdioTransport{})
}

// Handler serves over streamable HTTP. Behaviours about processes and standard streams behave normally here. DieInCall
// closes the connection.
func (o Options) Handler() http.Handler {
	if o.raw() {
		return http.HandlerFunc(o.rawHTTP)
	}
	one := o.server()
	return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return one }, nil)
}

// complain writes to standard error.
func (o Options) complain() error {
	line := append(bytesOf('e', 1023), '\n')
	for left := o.size(); left > 0; left -= int64(len(line)) {
		if _, err := os.Stderr.Write(line); err != nil {
			return err
		}
	}
	return nil
}

// wait delays the start.
func (o Options) wait(ctx context.Context) error {
	if o.Gate == "" {
		t := time.NewTimer(5 * time.Second)
		defer t.Stop()
		<-t.C
		return nil
	}
	return until(ctx, func() bool {
		_, err := os.Stat(o.Gate)
		return err == nil
	})
}

// until polls for a state of the file system, which sends no notification when it changes.
func until(ctx context.Context, reached func() bool) error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !reached() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func bytesOf(b byte, n int) []byte {
	out := make([]byte, n)
	for i := range out {
		out[i] = b
	}
	return out
}
