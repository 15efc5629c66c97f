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

// Fifty people send a file each at once. The service downloads all of them side by side and holds none of them.
func TestFiftyFilesAtOnce(t *testing.T) {
	size := 2
	if text := os.Getenv(filesVariable); text != "" {
		var err error
		if size, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	path, err := os.Executable()
	if size >= 20 {
		path = program(t) // for the figures
	}
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, senders)
	p, _, err := start(ctx, t, path, t.TempDir(), mirror(t, 0), w)
	if err != nil {
		t.Fatal(err)
	}
	before, err := p.memory("VmHWM")
	if err != nil {
		t.Skip(err) // no /proc
	}
	data := bytes.Repeat([]byte("\x00\x01binary"), size<<20/8) // one for all: the memory of the fake is not measured
	began := time.Now()
	for i := range senders {
		if _, err := w.fake.Post(person(i), person(i), telegramtest.Message{Document: &telegramtest.File{Name: fmt.Sprintf("%d.bin", i), Data: data}}); err != nil {
			t.Fatal(err)
		}
	}
	for range senders {
		a, err := w.next(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(a.text, "stored in the working directory") {
			t.Fatalf("chat %d got %q", a.chat, a.text)
		}
	}
	took := time.Since(began)
	peak, err := p.memory("VmHWM")
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d files of %d MB at once: %.0f MB at the peak (%.0f before), %s", senders, size, peak, before, took.Round(10*time.Millisecond))
	if peak-before > filesGrow {
		t.Errorf("the service grew from %.0f to %.0f MB; at most by %d", before, peak, filesGrow)
	}
	if err := p.end(ctx); err != nil {
		t.Error(err)
	}
}
