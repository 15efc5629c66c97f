//go:build unix

package bench_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/zephbot/zephbot/bot/telegram/telegramtest"
)

// filesVariable is the size in MB of each of the files that are sent at once; the figures are made with 20, the most
// that Telegram's own server gives.
const filesVariable = "BENCH_FILES_MB"

const (
	senders = 50
	// filesGrow is how much the service may grow, in MB: from some 45 to 150. A race detector's program begins higher.
	filesGrow = 105
)

// crowdOfFiles is fifty people who send a file each at once.
type crowdOfFiles struct {
	size        int // of a file, in MB
	what, reply string
	notice      string                           // what may be said before the reply; "" = nothing
	message     func(i int) telegramtest.Message // the i-th person's
	model       string                           // its address
	environment []string
	grow        float64 // how much the service may grow, in MB
}

// sizeOf returns the size of a file in MB: few, or what the variable says, for figures.
func sizeOf(t *testing.T, variable string) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return 2
	}
	size, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return size
}

// send sends the files, waits until everyone has the reply, and compares the memory of the service with that before.
func (c *crowdOfFiles) send(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	path, err := os.Executable()
	if c.size > 2 {
		path = program(t)
	}
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, senders)
	p, err := launch(t, path, t.TempDir(), c.model, w, c.environment...)
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-w.polled:
	case err := <-p.exited:
		t.Fatalf("the program ended: %v", err)
	}
	before, err := p.memory("VmHWM")
	if err != nil {
		t.Skip(err) // no /proc
	}
	began := time.Now()
	for i := range senders {
		if _, err := w.fake.Post(person(i), person(i), c.message(i)); err != nil {
			t.Fatal(err)
		}
	}
	for answers := 0; answers < senders; {
		a, err := w.next(ctx)
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case strings.Contains(a.text, c.reply):
			answers++
		case c.notice == "" || !strings.Contains(a.text, c.notice):
			t.Fatalf("chat %d got %q", a.chat, a.text)
		}
	}
	took := time.Since(began)
	peak, err := p.memory("VmHWM")
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d %s of %d MB at once: %.0f MB at the peak (%.0f before), %s", senders, c.what, c.size, peak, before, took.Round(10*time.Millisecond))
	if peak-before > c.grow {
		t.Errorf("the service grew from %.0f to %.0f MB; at most by %.0f", before, peak, c.grow)
	}
	if err := p.end(ctx); err != nil {
		t.Error(err)
	}
}

// Fifty people send a file each at once. The service downloads all of them side by side and holds none of them.
func TestFiftyFilesAtOnce(t *testing.T) {
	size := sizeOf(t, filesVariable)
	data := bytes.Repeat([]byte("\x00\x01binary"), size<<20/8) // one for all: the memory of the fake is not measured
	c := crowdOfFiles{
		size: size, what: "files", reply: "stored in the working directory", notice: "I do not know this format", model: mirror(t, 0), grow: filesGrow,
		message: func(i int) telegramtest.Message {
			return telegramtest.Message{Document: &telegramtest.File{Name: fmt.Sprintf("%d.bin", i), Data: data}}
		},
	}
	c.send(t)
}
