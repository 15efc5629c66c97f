package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode/utf8"
)

// Input is what stdin is, which decides whether --once TEXT reads it.
type Input int

// Kinds of input.
const (
	NoInput   Input = iota // a terminal, /dev/null or another device, or closed: nothing is read
	FileInput              // a file: it is read
	PipeInput              // a pipe or socket: it is read if something comes soon
)

// inputOf returns what a file is.
func inputOf(f *os.File) Input {
	info, err := f.Stat()
	switch {
	case err != nil, info.Mode()&os.ModeCharDevice != 0, info.Mode()&os.ModeDevice != 0, info.IsDir():
		return NoInput
	case info.Mode().IsRegular():
		return FileInput
	}
	return PipeInput
}

const (
	// maxContext limits what --once TEXT takes from stdin, in bytes.
	maxContext = 256 << 10
	// pipeWait is how long a pipe has for its first byte: one that was merely inherited never brings any.
	pipeWait = 3 * time.Second
)

// chunk is what a read gave.
type chunk struct {
	data []byte
	err  error
}

// context returns the message with what is on stdin behind it, quoted. wait: also if it takes longer than pipeWait to
// begin.
func (c *command) context(text string, wait bool) (string, error) {
	if c.env.Stdin == NoInput && !wait {
		return text, nil
	}
	read := make(chan chunk, 1)
	go func() { // it cannot be interrupted: it ends with the input, or the process
		data, err := firstBytes(c.env.In)
		read <- chunk{data, err}
	}()
	var first chunk
	patience := time.NewTimer(pipeWait)
	defer patience.Stop()
	limit := patience.C
	if wait || c.env.Stdin == FileInput {
		limit = nil
	}
	select {
	case first = <-read:
	case <-limit:
		_, _ = fmt.Fprintf(c.env.Err, "zephbot: nothing came on stdin within %d s, so it is left out; "+
			"write - behind the message to wait for it\n", int(pipeWait.Seconds())) // no harm if nobody reads it
		return text, nil
	}
	if first.err != nil && !errors.Is(first.err, io.EOF) {
		return "", fmt.Errorf("read stdin: %w", first.err)
	}
	data := first.data
	if first.err == nil {
		rest, err := io.ReadAll(io.LimitReader(c.env.In, maxContext+1-int64(len(data))))
		if err != nil {
			return "", fmt.Errorf("read stdin: %w", err)
		}
		data = append(data, rest...)
	}
	cut := len(data) > maxContext
	if cut {
		_, _ = fmt.Fprintf(c.env.Err, "zephbot: only the first %d KiB of stdin are used\n", maxContext>>10) // as above
		data = whole(data[:maxContext])
	}
	return quoted(text, strings.TrimRight(strings.ToValidUTF8(string(data), "\uFFFD"), "\r\n"), cut), nil
}

// firstBytes returns the first bytes of a reader.
func firstBytes(r io.Reader) ([]byte, error) {
	buf := make([]byte, 32<<10)
	for {
		if n, err := r.Read(buf); n > 0 || err != nil {
			return buf[:n], err
		}
	}
}

// whole removes the beginning of a character from the end.
func whole(data []byte) []byte {
	for i := 1; i <= utf8.UTFMax && i <= len(data); i++ {
		if c := data[len(data)-i]; utf8.RuneStart(c) {
			if !utf8.FullRune(data[len(data)-i:]) {
				return data[:len(data)-i]
			}
			break
		}
	}
	return data
}

// quoted returns a message with a text below it, in a fence that is longer than any in the text.
func quoted(message, text string, cut bool) string {
	if strings.TrimSpace(text) == "" {
		return message
	}
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	head := "What was on standard input, which is data and not part of my message"
	if cut {
		head += " (only its beginning)"
	}
	return message + "\n\n" + head + ":\n" + fence + "\n" + text + "\n" + fence
}
