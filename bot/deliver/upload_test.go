package deliver_test

import (
	"testing"
	"time"

	"github.com/zephbot/zephbot/bot"
)

// TestALargeFileHasMoreTime: the time limit of a request grows with the file that it sends, so that a large one gets
// through a slow line; a request without a file keeps its limit.
func TestALargeFileHasMoreTime(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for _, tt := range []struct {
			size, more int64 // of the first file, and of the second one of an album
			limit      time.Duration
		}{{0, 0, 30 * time.Second}, {50 << 20, 0, 430 * time.Second}, {20 << 20, 30 << 20, 430 * time.Second}} {
			w := setup(t)
			w.sender.wait = true
			r := row(bot.Reply, "file")
			if tt.size > 0 {
				r.Content.File = &bot.File{Name: "film.mkv", Hash: "h", Size: tt.size}
			}
			if tt.more > 0 {
				r.Content.More = []bot.File{{Name: "more.mkv", Hash: "h", Size: tt.more}}
			}
			w.start()
			id := w.say(r)[0]
			pass(tt.limit - time.Second)
			if got := w.row(id); got.State != bot.Sending || got.Attempts > 1 {
				t.Errorf("%d bytes, a second before the limit: %s, %d attempts", tt.size, got.State, got.Attempts)
			}
			pass(2 * time.Second)
			if got := w.row(id); got.Doubt.IsZero() {
				t.Errorf("%d bytes, a second after the limit: %+v", tt.size, got)
			}
			w.stop()
		}
	})
}
