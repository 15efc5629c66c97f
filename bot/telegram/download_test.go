package telegram_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/telegram"
	"github.com/zephbot/zephbot/bot/telegram/telegramtest"
)

// sends has ann send a document, and gives its file id.
func (w *world) sends(t *testing.T, f telegramtest.File) string {
	t.Helper()
	said, err := w.Post(ann, ann, telegramtest.Message{Document: &f})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range w.Chat(ann) {
		if m.MessageID == said.MessageID {
			return m.Attachment.FileID
		}
	}
	t.Fatal("the message is not there")
	return ""
}

func fetched(t *testing.T, c *telegram.Client, id string) ([]byte, error) {
	t.Helper()
	content, err := c.Fetch(t.Context(), id)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(content)
	return data, errors.Join(err, content.Close())
}

func TestFetch(t *testing.T) {
	t.Parallel()
	w := setup(t, time.Minute)
	want := bytes.Repeat([]byte("content "), 50_000)
	id := w.sends(t, telegramtest.File{Name: "a b?.bin", Data: want})
	if got, err := fetched(t, w.client, id); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if _, err := fetched(t, w.client, "nothing"); !errors.Is(err, bot.ErrFileGone) {
		t.Errorf("an id that nobody knows: %v", err)
	}
	if _, err := fetched(t, w.client, w.sends(t, telegramtest.File{Name: "film", Data: []byte("x"), Size: 21 << 20})); !errors.Is(err, bot.ErrFileTooLarge) {
		t.Errorf("a file that is too large: %v", err)
	}
}

// The link of a download holds the token. It is in no error, however the download fails.
func TestTheTokenIsInNoErrorOfADownload(t *testing.T) {
	t.Parallel()
	w := setup(t, time.Minute)
	id := w.sends(t, telegramtest.File{Name: "a.bin", Data: bytes.Repeat([]byte("x"), 1<<20)})
	for _, fault := range []telegramtest.Fault{
		{Method: telegramtest.FileMethod, Kind: telegramtest.FaultCut, Count: 1},
		{Method: telegramtest.FileMethod, Kind: telegramtest.FaultDrop, Count: 1},
		{Method: telegramtest.FileMethod, Kind: telegramtest.Fault500, Count: 1},
		{Method: telegramtest.FileMethod, Kind: telegramtest.Fault502, Count: 1},
		{Method: telegramtest.FileMethod, Kind: telegramtest.Fault400, Count: 1, Description: "no /file/bot" + w.Token() + "/a"},
		{Method: "getFile", Kind: telegramtest.Fault500, Count: 1},
		{Method: "getFile", Kind: telegramtest.FaultDrop, Count: 1},
		{Method: "getFile", Kind: telegramtest.Fault400, Count: 1, Description: "Bad Request: " + w.Token()},
	} {
		w.AddFault(fault)
		_, err := fetched(t, w.client, id)
		_, secret, _ := strings.Cut(w.Token(), ":")
		if err == nil || strings.Contains(err.Error(), secret) {
			t.Errorf("%s %s: %v", fault.Method, fault.Kind, err)
		}
	}
	if _, err := fetched(t, w.client, id); err != nil {
		t.Errorf("afterwards: %v", err)
	}
	gone := newClient(t, telegram.Options{Token: telegramtest.DefaultToken, APIURL: "http://127.0.0.1:1"})
	if _, err := fetched(t, gone, id); err == nil || strings.Contains(err.Error(), "opens-nothing") {
		t.Errorf("nobody listens: %v", err)
	}
}

// A redirect would hand the token to another server as the referrer.
func TestADownloadFollowsNoRedirect(t *testing.T) {
	t.Parallel()
	asked := make(chan string, 1)
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked <- r.Referer() }))
	t.Cleanup(other.Close)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/getFile") {
			_, _ = w.Write([]byte(`{"ok":true,"result":{"file_id":"f","file_path":"a/b"}}`))
			return
		}
		http.Redirect(w, r, other.URL, http.StatusFound)
	}))
	t.Cleanup(s.Close)
	if _, err := fetched(t, newClient(t, telegram.Options{Token: telegramtest.DefaultToken, APIURL: s.URL}), "f"); err == nil {
		t.Error("a redirect was followed")
	}
	select {
	case referer := <-asked:
		t.Errorf("the other server was asked, with the referrer %q", referer)
	default:
	}
}

// A Bot API server with --local gives files of any size, by their path.
func TestFetchFromALocalServer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := telegramtest.New(telegramtest.Options{Local: true, FilesDir: dir})
	t.Cleanup(s.Close)
	s.AddUser(telegramtest.User{ID: ann, FirstName: "Ann"})
	url, err := s.Start()
	if err != nil {
		t.Fatal(err)
	}
	w := &world{Server: s, client: newClient(t, telegram.Options{Token: s.Token(), APIURL: url})}
	id := w.sends(t, telegramtest.File{Name: "film.mkv", Data: []byte("a film"), Size: 1_900_000_000})
	if got, err := fetched(t, w.client, id); err != nil || string(got) != "a film" || w.client.FileLimit() != 0 {
		t.Errorf("%q, %v, limit %d", got, err, w.client.FileLimit())
	}
	lost := answering(t, http.StatusOK, `{"ok":true,"result":{"file_id":"f","file_path":"`+dir+`/nothing"}}`)
	if _, err := fetched(t, lost, "f"); !errors.Is(err, bot.ErrFileGone) || !strings.Contains(err.Error(), "mount the server's directory") {
		t.Errorf("a path that is not here: %v", err)
	}
	if err := os.Symlink("/etc/passwd", dir+"/link"); err != nil {
		t.Fatal(err)
	}
	link := answering(t, http.StatusOK, `{"ok":true,"result":{"file_id":"f","file_path":"`+dir+`/link"}}`)
	if _, err := fetched(t, link, "f"); !errors.Is(err, bot.ErrFileGone) {
		t.Errorf("a link: %v", err)
	}
}

func TestFileLimit(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]int64{"https://api.telegram.org": 20 << 20, "http://localhost:8081": 0, "https://api.telegram.org.example.com": 0} {
		if got := newClient(t, telegram.Options{Token: telegramtest.DefaultToken, APIURL: address}).FileLimit(); got != want {
			t.Errorf("%s: %d, want %d", address, got, want)
		}
	}
}
