//go:build unix

package bench_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"image"
	"image/png"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/zephbot/zephbot/bot/telegram/telegramtest"
)

// picturesVariable is the size in MB of each of the pictures; the figures are made with 9, about the most that OpenAI
// takes.
const picturesVariable = "BENCH_PICTURES_MB"

// Fifty people send a large picture each at once, and a model that sees takes its time for each of them. The service
// holds none of the pictures while it sends them.
func TestFiftyPicturesAtOnce(t *testing.T) {
	size := 2
	if text := os.Getenv(picturesVariable); text != "" {
		var err error
		if size, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	path, err := os.Executable()
	if size >= 9 {
		path = program(t) // for the figures
	}
	if err != nil {
		t.Fatal(err)
	}
	data := photograph(t, size<<20)
	model := looking(t, int64(base64.StdEncoding.EncodedLen(len(data))))
	w := newWorld(t, senders)
	p, err := launch(t, path, t.TempDir(), model, w, "ZEPH_LLM_PROVIDERS_MAIN_ACCEPTS=image")
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
		if _, err := w.fake.Post(person(i), person(i), telegramtest.Message{Document: &telegramtest.File{Name: fmt.Sprintf("%d.png", i), MIME: "image/png", Data: data}}); err != nil {
			t.Fatal(err)
		}
	}
	for range senders {
		a, err := w.next(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(a.text, "seen") {
			t.Fatalf("chat %d got %q", a.chat, a.text)
		}
	}
	took := time.Since(began)
	peak, err := p.memory("VmHWM")
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d pictures of %d MB at once: %.0f MB at the peak (%.0f before), %s", senders, size, peak, before, took.Round(10*time.Millisecond))
	grow := float64(filesGrow)
	if raced() { // each request and its goroutines are several times as large, pictures are not
		grow *= 3
	}
	if peak-before > grow {
		t.Errorf("the service grew from %.0f to %.0f MB; at most by %.0f", before, peak, grow)
	}
	if err := p.end(ctx); err != nil {
		t.Error(err)
	}
}

// raced reports whether this program, which is also the service, was built with the race detector.
func raced() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

// photograph is a PNG of about so many bytes.
func photograph(t *testing.T, size int) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 1000, 1000))); err != nil {
		t.Fatal(err)
	}
	return append(b.Bytes(), make([]byte, max(0, size-b.Len()))...)
}

// looking is a model that wants a picture of so many characters in each request.
func looking(t *testing.T, want int64) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, err := io.Copy(io.Discard, r.Body)
		if err != nil || n < want || n != r.ContentLength {
			http.Error(w, fmt.Sprintf(`{"error":{"message":"%d bytes of %d, %v"}}`, n, r.ContentLength, err), http.StatusBadRequest)
			return
		}
		wait(r.Context(), 500*time.Millisecond)
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, `data: {"choices":[{"index":0,"delta":{"content":"seen"},"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n")
	}))
	t.Cleanup(server.Close)
	return server.URL
}
