package telegram_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/telegram"
	"github.com/zephbot/zephbot/bot/telegram/telegramtest"
)

// TestAttackTokenInError: whatever a server writes into its errors, the token gets into no error and no log line, in no
// spelling.
func TestAttackTokenInError(t *testing.T) {
	t.Parallel()
	token := telegramtest.DefaultToken
	_, secret, _ := strings.Cut(token, ":")
	for name, said := range map[string]string{
		"as it is":    "Unknown path /bot" + token + "/sendMessage",
		"escaped":     "Unknown path /bot" + url.QueryEscape(token) + "/sendMessage",
		"half of it":  "wrong secret " + secret,
		"upper case":  "BAD TOKEN " + strings.ToUpper(token),
		"at the edge": strings.Repeat("x", 480) + token,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			body, err := json.Marshal(map[string]any{"ok": false, "error_code": 400, "description": said})
			if err != nil {
				t.Fatal(err)
			}
			polled := make(chan struct{}, 64)
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if strings.HasSuffix(r.URL.Path, "/getUpdates") {
					select {
					case polled <- struct{}{}:
					default:
					}
				}
				w.WriteHeader(http.StatusBadRequest)
				_, _ = w.Write(body) // the client reads it or is gone
			}))
			t.Cleanup(server.Close)
			client := newClient(t, telegram.Options{Token: token, APIURL: server.URL, Timeout: time.Minute})
			_, err = client.Send(t.Context(), &bot.Row{Place: telegram.Private(client.ID(), "11"), Content: bot.Content{Text: "hi"}})
			texts := []string{err.Error()}
			log := &buffer{}
			poll(t, client, newInbox(0).accept, log, telegram.PollOptions{})
			<-polled
			<-polled // the first failure is in the log by now
			texts = append(texts, log.String())
			for _, text := range texts {
				if text == "" || strings.Contains(strings.ToLower(text), "token-that-opens") {
					t.Errorf("the token shows: %q", text)
				}
			}
		})
	}
}
