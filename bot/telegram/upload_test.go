package telegram_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/zephbot/zephbot/agent/blob"
	"github.com/zephbot/zephbot/agent/blob/blobtest"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/telegram"
	"github.com/zephbot/zephbot/bot/telegram/telegramtest"
)

// upload is a row with a file that is kept elsewhere.
func upload(hash string, size int64) *bot.Row {
	row := hello("11")
	row.Session = "s"
	row.Content = bot.Content{Text: "see", File: &bot.File{Name: "a.bin", Hash: hash, Size: size}}
	return row
}

func TestFilesAreSentFromWhereTheyAreKept(t *testing.T) {
	t.Parallel()
	w := setup(t, time.Minute)
	var files blobtest.Store
	w.client = newClient(t, telegram.Options{Token: w.Token(), APIURL: w.url, Files: &files})
	text := strings.Repeat("content \x00\r\n--\xff", 50_000)
	ref, err := files.Put(t.Context(), "s", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	m := w.send(t, upload(ref.Hash, ref.Size))
	if data, _ := w.FileData(m.Attachment.FileID); string(data) != text || m.Text != "see" {
		t.Errorf("%d bytes arrived with %q, %d were sent", len(data), m.Text, len(text))
	}
	other := upload(ref.Hash, ref.Size)
	other.Session = "another"
	_, err = w.client.Send(t.Context(), other)
	wantError(t, err, bot.Refused)
	files.Forget()
	_, err = w.client.Send(t.Context(), upload(ref.Hash, ref.Size))
	wantError(t, err, bot.Refused) // another form of the message may say so
	none := newClient(t, telegram.Options{Token: w.Token(), APIURL: w.url})
	_, err = none.Send(t.Context(), upload(ref.Hash, ref.Size))
	wantError(t, err, bot.Refused)
	if p := w.Problems(); len(p) > 0 {
		t.Errorf("problems %q", p)
	}
}

// opener gives what a function makes.
type opener func() (io.ReadCloser, error)

// Open implements blob.Opener.
func (o opener) Open(context.Context, string, string) (io.ReadCloser, error) { return o() }

func TestWhatKeepsAFileFromBeingSent(t *testing.T) {
	t.Parallel()
	broken := errors.New("the disk is away")
	for name, test := range map[string]struct {
		open opener
		want bot.SendOutcome
	}{
		"cannot be opened": {func() (io.ReadCloser, error) { return nil, broken }, bot.NotSent},
		"is damaged":       {func() (io.ReadCloser, error) { return nil, blob.ErrDamaged }, bot.Refused},
		// Whether a server does something with half a request nobody knows.
		"breaks off": {func() (io.ReadCloser, error) {
			return io.NopCloser(io.MultiReader(strings.NewReader("half"), iotest.ErrReader(broken))), nil
		}, bot.Vague},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t, time.Minute)
			w.client = newClient(t, telegram.Options{Token: w.Token(), APIURL: w.url, Files: test.open})
			_, err := w.client.Send(t.Context(), upload("h", 8))
			wantError(t, err, test.want)
		})
	}
}

// TestALargeFileIsNotHeldInMemory sends 48 MB to a server that throws them away.
func TestALargeFileIsNotHeldInMemory(t *testing.T) { //nolint:paralleltest // it measures the heap
	const size, most = 48 << 20, 8 << 20
	var got int64
	sum := sha256.New()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got, _ = io.Copy(sum, r.Body)
		if r.ContentLength != got {
			t.Errorf("%d bytes are announced, %d came", r.ContentLength, got)
		}
		_, _ = w.Write([]byte(`{"ok":true,"result":{"message_id":7}}`))
	}))
	t.Cleanup(s.Close)
	client := newClient(t, telegram.Options{Token: telegramtest.DefaultToken, APIURL: s.URL, Files: opener(func() (io.ReadCloser, error) {
		return io.NopCloser(io.LimitReader(zeros{}, size)), nil
	})})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	message, err := client.Send(t.Context(), upload("h", size))
	runtime.ReadMemStats(&after)
	if err != nil || message != "7" || got < size {
		t.Errorf("message %q, %v, %d bytes (%s)", message, err, got, hex.EncodeToString(sum.Sum(nil)))
	}
	if made := after.TotalAlloc - before.TotalAlloc; made > most {
		t.Errorf("%d MB were allocated for %d MB", made>>20, size>>20)
	}
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}

// TestASlowLine: a server that takes its time gets a file, whose request may last longer than that of a text.
func TestASlowLine(t *testing.T) {
	t.Parallel()
	const size = 256 << 10 // 2 s more
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-time.After(700 * time.Millisecond):
		case <-r.Context().Done():
		}
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = w.Write([]byte(`{"ok":true,"result":{"message_id":7}}`))
	}))
	t.Cleanup(s.Close)
	client := newClient(t, telegram.Options{Token: telegramtest.DefaultToken, APIURL: s.URL, Timeout: 200 * time.Millisecond, Files: opener(func() (io.ReadCloser, error) {
		return io.NopCloser(io.LimitReader(zeros{}, size)), nil
	})})
	if message, err := client.Send(t.Context(), upload("h", size)); err != nil || message != "7" {
		t.Errorf("a file: %q, %v", message, err)
	}
	_, err := client.Send(t.Context(), hello("11"))
	wantError(t, err, bot.Vague)
}
