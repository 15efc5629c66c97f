package acp

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/rs/zerolog"
)

// FuzzFrames: whatever an editor writes, each line is either passed on as the JSON object that it is, or answered with
// one error, and nothing of it is lost.
func FuzzFrames(f *testing.F) {
	for _, seed := range []string{
		"", "\n\n", "nonsense\n", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}` + "\n", `{"id":1`, `[{"id":1}]` + "\r\n",
		`{"jsonrpc":"2.0","id":"a","result":null}` + "\n" + `{"method":"x"}`, `{"id":{"a":1},"method":"x"}`, `{"error":"x","id":1}`, "\x00\xff\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var passed, answered bytes.Buffer
		if err := (sieve{in: bytes.NewReader(data), out: &answered, log: zerolog.Nop()}).copyLines(&passed); err != io.EOF { //nolint:errorlint // it is the reader's own
			t.Fatal(err)
		}
		lines := 0
		for line := range bytes.SplitSeq(data, []byte("\n")) {
			if len(bytes.TrimSpace(line)) > 0 {
				lines++
			}
		}
		if got := bytes.Count(passed.Bytes(), []byte("\n")) + bytes.Count(answered.Bytes(), []byte("\n")); got != lines {
			t.Errorf("%d lines came to %d", lines, got)
		}
		for line := range bytes.Lines(passed.Bytes()) {
			var object map[string]json.RawMessage
			if json.Unmarshal(line, &object) != nil {
				t.Errorf("passed on %q", line)
			}
		}
		for line := range bytes.Lines(answered.Bytes()) {
			var object struct {
				ID    any      `json:"id"`
				Error *problem `json:"error"`
			}
			if json.Unmarshal(line, &object) != nil || object.Error == nil {
				t.Errorf("answered %q", line)
			}
		}
	})
}

// TestQueue: an editor that does not read holds nothing up, and is given up when too much waits for it.
func TestQueue(t *testing.T) {
	t.Parallel()
	read, write := io.Pipe()
	q := newQueue(write)
	var running sync.WaitGroup
	running.Go(q.writeQueued)
	line := []byte(strings.Repeat("x", 1<<20))
	var err error
	for range 200 {
		if _, err = q.Write(line); err != nil {
			break
		}
	}
	if err == nil {
		t.Error("it takes more than it may")
	}
	<-q.broken
	_ = read.Close()
	running.Wait()
}
