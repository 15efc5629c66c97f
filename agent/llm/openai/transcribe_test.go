package openai_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/openai"
)

// scribe is a server that writes down recordings. What it was sent goes into heard.
func scribe(t *testing.T, status int, body string) (s *httptest.Server, heard chan string) {
	t.Helper()
	heard = make(chan string, 8)
	s = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/audio/transcriptions" || r.Header.Get("Authorization") != "Bearer "+string(key) {
			t.Errorf("%s, %q", r.URL.Path, r.Header.Get("Authorization"))
		}
		f, header, err := r.FormFile("file")
		if err != nil {
			t.Errorf("form: %v", err)
			return
		}
		data, err := io.ReadAll(f)
		if err != nil {
			t.Error(err)
		}
		heard <- r.FormValue("model") + " " + header.Filename + " " + string(data)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(s.Close)
	return s, heard
}

func listener(t *testing.T, s *httptest.Server) *openai.Provider {
	t.Helper()
	p, err := openai.New(openai.Options{
		Name: "main", BaseURL: s.URL + "/v1/", Key: key, TranscriptionModel: "whisper", TranscriptionUSDPerMinute: 0.006, HTTPClient: s.Client(),
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestTranscribe(t *testing.T) {
	t.Parallel()
	const recording = "OggS and sounds"
	for name, size := range map[string]int64{"of a known length": int64(len(recording)), "of an unknown length": 0} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, heard := scribe(t, http.StatusOK, `{"text":"buy tea"}`)
			text, usd, err := listener(t, s).Transcribe(t.Context(), "recording.ogg", strings.NewReader(recording), size, 30*time.Second)
			if err != nil || text != "buy tea" || usd != 0.003 {
				t.Errorf("%q, %v USD, %v", text, usd, err)
			}
			if got := <-heard; got != "whisper recording.ogg "+recording {
				t.Errorf("sent %q", got)
			}
		})
	}
}

// TestTranscribeCharged: what the server says that it charges comes before what the sender says of the recording.
func TestTranscribeCharged(t *testing.T) {
	t.Parallel()
	s, _ := scribe(t, http.StatusOK, `{"text":"buy tea","usage":{"type":"duration","seconds":120}}`)
	_, usd, err := listener(t, s).Transcribe(t.Context(), "a.ogg", strings.NewReader("OggS"), 4, time.Second)
	if err != nil || usd != 0.012 {
		t.Errorf("%v USD, %v", usd, err)
	}
}

func TestTranscribeFails(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		status int
		body   string
		want   llm.Kind
		costs  bool
	}{
		"no sound":     {http.StatusBadRequest, `{"error":{"message":"Invalid file format."}}`, llm.Invalid, false},
		"wrong key":    {http.StatusUnauthorized, `{"error":{"message":"no"}}`, llm.Unauthorized, false},
		"overloaded":   {http.StatusServiceUnavailable, ``, llm.Unavailable, false},
		"too often":    {http.StatusTooManyRequests, `{"error":{"message":"slow down"}}`, llm.RateLimited, false},
		"no text":      {http.StatusOK, `{"text":null}`, llm.Unavailable, true},
		"half":         {http.StatusOK, `{"text":"hel`, llm.Truncated, true},
		"not JSON":     {http.StatusOK, `oops`, llm.WrongAddress, false},
		"other JSON":   {http.StatusOK, `{}`, llm.WrongAddress, false},
		"key in a 200": {http.StatusOK, `{"detail":"Invalid API key"}`, llm.Unauthorized, false},
		"far too long": {http.StatusOK, `{"text":"` + strings.Repeat("x", 2<<20) + `"}`, llm.Oversize, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, _ := scribe(t, test.status, test.body)
			text, usd, err := listener(t, s).Transcribe(t.Context(), "a.ogg", strings.NewReader("OggS"), 4, time.Minute)
			if text != "" || llm.KindOf(err) != test.want || (usd > 0) != test.costs {
				t.Errorf("%q, %v USD, %v; want %s", text, usd, err, test.want)
			}
			if err != nil && strings.Contains(err.Error(), string(key)) {
				t.Errorf("the key is in %v", err)
			}
		})
	}
}

// A recording that breaks off while it is sent is a failure of the way, and the end of a context its own.
func TestTranscribeBreaksOff(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }))
	t.Cleanup(s.Close)
	_, _, err := listener(t, s).Transcribe(t.Context(), "a.ogg", io.MultiReader(strings.NewReader("Ogg"), errReader{}), 100, 0)
	if err == nil || llm.KindOf(err) == llm.Invalid {
		t.Errorf("it breaks off: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := listener(t, s).Transcribe(ctx, "a.ogg", strings.NewReader("Ogg"), 3, 0); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	p, err := openai.New(openai.Options{Name: "main", Model: "m"})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := p.Transcribe(t.Context(), "a.ogg", strings.NewReader("Ogg"), 3, 0); llm.KindOf(err) != llm.Invalid {
		t.Errorf("no model: %v", err)
	}
}

type errReader struct{}

func (errReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }
