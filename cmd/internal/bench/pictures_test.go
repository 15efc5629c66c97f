//go:build unix

package bench_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"image"
	"image/png"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime/debug"
	"slices"
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
	size := sizeOf(t, picturesVariable)
	data := photograph(t, size<<20)
	c := crowdOfFiles{
		size: size, what: "pictures", reply: "seen", model: looking(t, int64(base64.StdEncoding.EncodedLen(len(data)))), grow: filesGrow,
		environment: []string{"ZEPH_LLM_PROVIDERS_MAIN_ACCEPTS=image"},
		message: func(i int) telegramtest.Message {
			return telegramtest.Message{Document: &telegramtest.File{Name: fmt.Sprintf("%d.png", i), MIME: "image/png", Data: data}}
		},
	}
	if raced() { // each request and its goroutines are several times as large, pictures are not
		c.grow *= 3
	}
	c.send(t)
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
