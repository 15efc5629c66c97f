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
	"github.com/zephbot/zephbot/agent/llm/vendortest"
)

func speaker(t *testing.T, base, key string, client *http.Client) *openai.Provider {
	t.Helper()
	p, err := openai.New(openai.Options{
		Name: "main", BaseURL: base, Key: openai.Key(key), SpeechModel: "tts-1", SpeechUSDPerMChar: 15, HTTPClient: client,
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestSpeak: the vendor's own server gives Opus of the length that the text takes, at the price of its characters.
func TestSpeak(t *testing.T) {
	t.Parallel()
	s, err := vendortest.New(vendortest.Options{Vendor: "media/openai"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	p := speaker(t, s.URL(), s.Key(), nil)
	text := strings.Repeat("ä", 1000)
	sound, usd, err := p.Speak(t.Context(), text, "")
	if err != nil || sound.Type != llm.OggOpus || usd != 0.015 || sound.Length != 65*time.Second {
		t.Errorf("%s of %s, %v USD, %v", sound.Type, sound.Length, usd, err)
	}
	if _, usd, err := p.Speak(t.Context(), strings.Repeat("x", 4097), ""); llm.KindOf(err) == llm.Unavailable || err == nil || usd != 0 {
		t.Errorf("too long: %v USD, %v", usd, err)
	}
	for kind, want := range map[string]llm.Kind{"key": llm.Unauthorized, "credit": llm.NoCredit, "overload": llm.Unavailable} {
		if err := s.Fail(kind); err != nil {
			t.Fatal(err)
		}
		if _, usd, err := p.Speak(t.Context(), "a", ""); llm.KindOf(err) != want || usd != 0 {
			t.Errorf("%s: %v USD, %v", kind, usd, err)
		}
	}
}

// TestSpeakMP3: a server that makes no Opus is asked for MP3, and not for Opus again.
func TestSpeakMP3(t *testing.T) {
	t.Parallel()
	var asked []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		asked = append(asked, string(body))
		if strings.Contains(string(body), `"opus"`) {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"error":{"message":"response_format must be one of mp3, wav","type":"invalid_request_error"}}`)
			return
		}
		_, _ = io.WriteString(w, "ID3\x04 sounds")
	}))
	t.Cleanup(s.Close)
	p := speaker(t, s.URL+"/v1", "k", s.Client())
	for range 2 {
		sound, usd, err := p.Speak(t.Context(), strings.Repeat("a", 1000), "")
		if err != nil || sound.Type != llm.MP3 || sound.Length != 0 || usd != 0.015 {
			t.Errorf("%+v, %v USD, %v", sound, usd, err)
		}
	}
	if len(asked) != 3 {
		t.Errorf("asked %q", asked)
	}
}

func TestSpeakFails(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		status int
		body   string
		want   llm.Kind
		costs  bool
	}{
		"wrong voice":  {http.StatusBadRequest, `{"error":{"message":"voice must be one of [hannah]"}}`, llm.Invalid, false},
		"no such path": {http.StatusNotFound, `<html>404</html>`, llm.WrongAddress, false},
		"wave":         {http.StatusOK, "RIFF\xff\xfe\x00\x00WAVEfmt ", llm.Unavailable, true},
		"words":        {http.StatusOK, `{"detail":"Invalid API key"}`, llm.Unauthorized, false},
		"page":         {http.StatusOK, `<!DOCTYPE html><html><title>Login</title></html>`, llm.WrongAddress, false},
		"nothing":      {http.StatusOK, "", llm.Unavailable, true},
		"far too long": {http.StatusOK, "OggS" + strings.Repeat("x", 17<<20), llm.Oversize, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(row.status)
				_, _ = io.WriteString(w, row.body)
			}))
			t.Cleanup(s.Close)
			sound, usd, err := speaker(t, s.URL+"/v1", string(key), s.Client()).Speak(t.Context(), "a", "")
			if sound.Data != nil || llm.KindOf(err) != row.want || (usd > 0) != row.costs {
				t.Errorf("%v USD, %v; want %s", usd, err, row.want)
			}
			if err != nil && strings.Contains(err.Error(), string(key)) {
				t.Errorf("the key is in %v", err)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := speaker(t, "http://127.0.0.1:1/v1", "k", nil).Speak(ctx, "a", ""); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	p, err := openai.New(openai.Options{Name: "main", Model: "m"})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := p.Speak(t.Context(), "a", ""); llm.KindOf(err) != llm.Invalid {
		t.Errorf("no model: %v", err)
	}
}
