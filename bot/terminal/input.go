package terminal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
)

const (
	// maxLine limits one line of input.
	maxLine = 1 << 20
	// maxAhead is how much is read ahead if there is nobody at the terminal, so that the rest can wait.
	maxAhead = 4 << 20
	// chunk is how much is read at once.
	chunk = 64 << 10
)

// errTooLong ends the input.
var errTooLong = fmt.Errorf("a line of more than %d bytes", maxLine)

// input reads lines as they arrive and remembers before which question each of them was begun. What somebody typed or
// pasted before they could see a question is not an answer to it; it is kept for the conversation. Safe for concurrent
// use.
type input struct {
	in    io.Reader
	eager bool // keeps reading however much is waiting: a person is typing it

	mu     sync.Mutex
	lines  []line
	size   int // bytes of the waiting lines
	part   []byte
	begun  int // question before which part was begun
	asked  int // questions shown so far
	err    error
	stir   chan struct{} // closed when something has changed
	opened bool
}

type line struct {
	text  string
	asked int // questions that were shown when its first byte arrived
}

func newInput(in io.Reader, eager bool) *input {
	return &input{in: in, eager: eager, stir: make(chan struct{})}
}

// markQuestion records that a question is shown now; it returns the number that lines must have to answer it.
func (i *input) markQuestion() int {
	i.openReader()
	i.mu.Lock()
	defer i.mu.Unlock()
	i.asked++
	return i.asked
}

// nextLine takes the oldest line that was begun after asked questions; 0 takes any line. It returns when ctx ends. The
// reading goroutine cannot be interrupted: it ends with the input.
func (i *input) nextLine(ctx context.Context, asked int) (string, error) {
	i.openReader()
	for {
		text, stir, err := i.takeLine(asked)
		if stir == nil {
			return text, err
		}
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case <-stir:
		}
	}
}

// takeLine is next without waiting; the channel is closed when it is worth trying again.
func (i *input) takeLine(asked int) (string, <-chan struct{}, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for n, l := range i.lines {
		if l.asked >= asked {
			i.lines = append(i.lines[:n:n], i.lines[n+1:]...)
			i.size -= len(l.text)
			i.wakeReaders()
			return l.text, nil, nil
		}
	}
	if i.err != nil {
		return "", nil, i.err
	}
	return "", i.stir, nil
}

// wakeReaders wakes all waiting calls; the caller holds the lock.
func (i *input) wakeReaders() {
	close(i.stir)
	i.stir = make(chan struct{})
}

// openReader starts reading, once.
func (i *input) openReader() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if !i.opened {
		i.opened = true
		go i.readInput() // ends with the input, which only its owner can close
	}
}

func (i *input) readInput() {
	buf := make([]byte, chunk)
	for {
		n, err := i.in.Read(buf)
		if !i.addData(buf[:n], err) {
			return
		}
	}
}

// addData appends data that was read, and waits while too much is waiting; it returns false to stop reading.
func (i *input) addData(data []byte, err error) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	for len(data) > 0 && i.err == nil {
		if len(i.part) == 0 {
			i.begun = i.asked
		}
		head, rest, whole := bytes.Cut(data, []byte("\n"))
		if i.part = append(i.part, head...); len(i.part) > maxLine {
			i.err = errTooLong
			break
		}
		if whole {
			i.finishLine()
		}
		data = rest
	}
	if err != nil && i.err == nil {
		if len(i.part) > 0 {
			i.finishLine()
		}
		if i.err = err; errors.Is(err, io.EOF) {
			i.err = io.EOF
		}
	}
	i.wakeReaders()
	for !i.eager && i.size > maxAhead && i.err == nil {
		stir := i.stir
		i.mu.Unlock()
		<-stir
		i.mu.Lock()
	}
	return i.err == nil
}

// finishLine completes the current line; the caller holds the lock.
func (i *input) finishLine() {
	text := string(bytes.TrimSuffix(i.part, []byte("\r")))
	i.lines = append(i.lines, line{text: text, asked: i.begun})
	i.size += len(text)
	i.part = i.part[:0]
}
