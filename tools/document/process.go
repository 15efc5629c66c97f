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
	"sync"
	"sync/atomic"
	"time"

	"github.com/klippa-app/go-pdfium"
)

// Word is the first argument of a program that is to be the process of Main.
const Word = "__document"

// Bounds of the process that reads a document.
const (
	startTime  = 2 * time.Minute // to begin: only PDFium takes long, when it is not compiled yet
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
	codeEngine   = 15
)

// What the process does besides reading the text of a document of a kind.
const (
	engineKind = "pdf-engine" // prepares the reading of PDF
	drawKind   = "pdf-pages"  // draws pages
)

// Reader reads documents, each in a process. Make it with NewReader; safe for concurrent use.
type Reader struct {
	argv  []string
	cache string
	slots chan struct{}
	slow  atomic.Bool // PDFium could not be compiled

	once      sync.Once // of compiling PDFium; of Close if nobody has asked for it
	warmed    chan struct{}
	stop      context.CancelFunc // ends compiling; nil = it was not begun
	preparing sync.WaitGroup
}

// NewReader makes a Reader. argv starts the program whose main function calls Main when its first argument is Word;
// argv ends with Word. cache is a directory of the service's own in which the reader of PDF is kept as machine code, some
// 20 MB; it may be missing. "" = it is compiled for every document, which takes seconds.
func NewReader(argv []string, cache string) *Reader {
	return &Reader{argv: argv, cache: cache, slots: make(chan struct{}, atOnce), warmed: make(chan struct{})}
}

// Close ends what Prepare has begun, and waits for it. Nobody may read any more.
func (r *Reader) Close() {
	r.once.Do(func() { close(r.warmed) })
	if r.stop != nil {
		r.stop()
	}
	r.preparing.Wait()
}

// command is the process that does something.
func (r *Reader) command(ctx context.Context, kind string) *exec.Cmd {
	cache := r.cache
	if r.slow.Load() {
		cache = interpreted
	}
	argv := append(r.argv[1:len(r.argv):len(r.argv)], kind, cache)
	cmd := exec.CommandContext(ctx, r.argv[0], argv...)
	cmd.Env = []string{"GOMAXPROCS=1", "GOMEMLIMIT=256MiB", "GOTRACEBACK=none"} // and nothing of ours
	return cmd
}

// Pages draws the first pages of a PDF as JPEG. pages is how many it has.
func (r *Reader) Pages(ctx context.Context, f *os.File) (drawn [][]byte, pages int, err error) {
	raw, _, err := r.run(ctx, f, drawKind, maxDrawnSize+4*(maxDrawn+1))
	if err != nil {
		return nil, 0, err
	}
	drawn, pages = drawnPages([]byte(raw))
	return drawn, pages, nil
}

// Text reads a document of a kind from a regular file. cut says that there is more than MaxText. It takes at most 20 s
// from when its turn has come. Errors are those of the package, of ctx, or of a process that could not be started.
func (r *Reader) Text(ctx context.Context, f *os.File, kind Kind) (text string, cut bool, err error) {
	return r.run(ctx, f, string(kind), MaxText)
}

// run has a process do something with a document, and gives what it writes.
func (r *Reader) run(ctx context.Context, f *os.File, kind string, most int) (text string, cut bool, err error) {
	select {
	case r.slots <- struct{}{}:
	case <-ctx.Done():
		return "", false, fmt.Errorf("read a document: %w", ctx.Err())
	}
	defer func() { <-r.slots }()
	if kind == string(PDF) || kind == drawKind {
		if err := r.Prepare(ctx); err != nil {
			return "", false, err
		}
	}
	reading, cancel := context.WithTimeout(ctx, startTime+readTime+time.Second)
	defer cancel()
	cmd := r.command(reading, kind)
	cmd.Stdin = f
	out := bounded{most: most}
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
	case codeEngine:
		return "", false, fmt.Errorf("read a document: %w", errEngine)
	case codeTooLarge, -1: // killed: it took too long
		return "", false, ErrTooLarge
	default: // also what the runtime dies of
		return "", false, ErrDamaged
	}
}

// bounded keeps what a process writes, up to a number of bytes.
type bounded struct {
	bytes.Buffer
	most int
}

// Write implements io.Writer.
func (b *bounded) Write(p []byte) (int, error) {
	b.Buffer.Write(p[:min(len(p), b.most-b.Len())]) // never fails
	return len(p), nil
}

// Main is the process that reads a document: from stdin, of the kind that args names. Its text goes to stdout; the
// result is the code to exit with, at once. It returns also while the document is still being read, when that takes too
// long or too much memory: nothing else can end what a library does with it.
func Main(args []string, stdin *os.File, stdout io.Writer) int {
	if len(args) != 2 {
		return codeDamaged
	}
	done := make(chan outcome, 1)
	ready := make(chan struct{}) // what reads is there, and reads
	go func() {                  // ends with the process
		done <- readOrDraw(args[0], args[1], stdin, stdout, func() { close(ready) })
	}()
	most := warmTime
	if args[0] != engineKind {
		most = startTime
	}
	end, ticker := time.NewTimer(most), time.NewTicker(watchEvery)
	defer end.Stop()
	defer ticker.Stop()
	for {
		select {
		case out := <-done:
			return out.tell(stdout)
		case <-ready:
			ready = nil
			end.Reset(readTime)
		case <-end.C:
			return codeTooLarge
		case <-ticker.C:
			if heldMemory() > readMemory {
				return codeTooLarge
			}
		}
	}
}

// readOrDraw does what the process is there for. It calls ready when it begins to read.
func readOrDraw(kind, cache string, stdin *os.File, stdout io.Writer, ready func()) outcome {
	var engine pdfium.Pdfium
	var err error
	switch kind {
	case engineKind, drawKind, string(PDF):
		if engine, err = openEngine(cache); err != nil || kind == engineKind {
			return outcome{err: err}
		}
	}
	info, err := stdin.Stat()
	if err != nil {
		return outcome{err: err}
	}
	ready()
	if kind == drawKind {
		return outcome{err: drawPDF(stdout, engine, stdin, info.Size())}
	}
	text, cut, err := readDocument(stdin, info.Size(), Kind(kind), engine)
	return outcome{text, cut, err}
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
	case errors.Is(o.err, errEngine):
		return codeEngine
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

// heldMemory is how many bytes the process holds.
func heldMemory() uint64 {
	sample := []metrics.Sample{
		{Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/memory/classes/heap/stacks:bytes"},
	}
	metrics.Read(sample)
	return sample[0].Value.Uint64() + sample[1].Value.Uint64()
}
