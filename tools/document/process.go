package document

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime/metrics"
	"time"
)

// Word is the first argument of a program that is to be the process of Main.
const Word = "__document"

// Bounds of the process that reads a document.
const (
	readTime   = 20 * time.Second
	readMemory = 384 << 20 // bytes
	atOnce     = 2         // processes; who comes later waits
	watchEvery = 10 * time.Millisecond
)

// What the process says by its exit code.
const (
	codeCut      = 10
	codeDamaged  = 11
	codeLocked   = 12
	codeTooLarge = 13
	codeUnknown  = 14
)

// Reader reads documents, each in a process. Make it with NewReader; safe for concurrent use.
type Reader struct {
	argv  []string
	slots chan struct{}
}

// NewReader makes a Reader. argv starts the program whose main function calls Main when its first argument is Word;
// argv ends with Word.
func NewReader(argv []string) *Reader {
	return &Reader{argv: argv, slots: make(chan struct{}, atOnce)}
}

// Text reads a document of a kind from a regular file. cut says that there is more than MaxText. It takes at most 20 s
// from when its turn has come. Errors are those of the package, of ctx, or of a process that could not be started.
func (r *Reader) Text(ctx context.Context, f *os.File, kind Kind) (text string, cut bool, err error) {
	select {
	case r.slots <- struct{}{}:
	case <-ctx.Done():
		return "", false, fmt.Errorf("read a document: %w", ctx.Err())
	}
	defer func() { <-r.slots }()
	reading, cancel := context.WithTimeout(ctx, readTime+time.Second)
	defer cancel()
	cmd := exec.CommandContext(reading, r.argv[0], append(r.argv[1:len(r.argv):len(r.argv)], string(kind))...)
	cmd.Env = []string{"GOMAXPROCS=1", "GOMEMLIMIT=256MiB", "GOTRACEBACK=none"} // and nothing of ours
	cmd.Stdin = f
	var out bounded
	cmd.Stdout = &out
	err = cmd.Run()
	if ctxErr := ctx.Err(); ctxErr != nil {
		return "", false, fmt.Errorf("read a document: %w", ctxErr)
	}
	exit, ended := errors.AsType[*exec.ExitError](err)
	switch {
	case err == nil:
		return out.String(), false, nil
	case !ended:
		return "", false, fmt.Errorf("read a document: %w", err)
	}
	switch exit.ExitCode() {
	case codeCut:
		return out.String(), true, nil
	case codeLocked: // what is not, such as the names of files, can be read
		return out.String(), false, ErrLocked
	case codeUnknown:
		return "", false, ErrUnknown
	case codeTooLarge, -1: // killed: it took too long
		return "", false, ErrTooLarge
	default: // also what the runtime dies of
		return "", false, ErrDamaged
	}
}

// bounded keeps what a process writes, up to MaxText.
type bounded struct{ bytes.Buffer }

// Write implements io.Writer.
func (b *bounded) Write(p []byte) (int, error) {
	b.Buffer.Write(p[:min(len(p), MaxText-b.Len())]) // never fails
	return len(p), nil
}

// Main is the process that reads a document: from stdin, of the kind that args names. Its text goes to stdout; the
// result is the code to exit with, at once. It returns also while the document is still being read, when that takes too
// long or too much memory: nothing else can end what a library does with it.
func Main(args []string, stdin *os.File, stdout io.Writer) int {
	if len(args) != 1 {
		return codeDamaged
	}
	info, err := stdin.Stat()
	if err != nil {
		return codeDamaged
	}
	done := make(chan outcome, 1)
	go func() { // ends with the process
		text, cut, err := read(stdin, info.Size(), Kind(args[0]))
		done <- outcome{text, cut, err}
	}()
	end, ticker := time.NewTimer(readTime), time.NewTicker(watchEvery)
	defer end.Stop()
	defer ticker.Stop()
	for {
		select {
		case out := <-done:
			return out.tell(stdout)
		case <-end.C:
			return codeTooLarge
		case <-ticker.C:
			if held() > readMemory {
				return codeTooLarge
			}
		}
	}
}

// outcome is what became of a document.
type outcome struct {
	text string
	cut  bool
	err  error
}

// tell writes the text, and gives the code to exit with.
func (o outcome) tell(stdout io.Writer) int {
	switch {
	case errors.Is(o.err, ErrLocked):
		if _, err := io.WriteString(stdout, o.text); err != nil {
			return codeDamaged
		}
		return codeLocked
	case errors.Is(o.err, ErrUnknown):
		return codeUnknown
	case errors.Is(o.err, ErrTooLarge):
		return codeTooLarge
	case o.err != nil:
		return codeDamaged
	}
	if _, err := io.WriteString(stdout, o.text); err != nil {
		return codeDamaged
	}
	if o.cut {
		return codeCut
	}
	return 0
}

// held is how many bytes the process holds.
func held() uint64 {
	sample := []metrics.Sample{
		{Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/memory/classes/heap/stacks:bytes"},
	}
	metrics.Read(sample)
	return sample[0].Value.Uint64() + sample[1].Value.Uint64()
}
