package telegram

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"io"
	"net/http"

	"github.com/rs/zerolog"
)

// maxUpdate limits the size of a webhook request.
const maxUpdate = 1 << 20

// Webhook is the handler of webhook mode: it stores the update, then responds with 200; any other status makes Telegram
// deliver it again.
type Webhook struct {
	Secret string // value of X-Telegram-Bot-Api-Secret-Token; must not be empty
	Accept Accept
	Log    zerolog.Logger
}

// ServeHTTP implements http.Handler.
func (h Webhook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		http.Error(w, "POST only", http.StatusMethodNotAllowed)
		return
	}
	got, want := sha256.Sum256([]byte(r.Header.Get("X-Telegram-Bot-Api-Secret-Token"))), sha256.Sum256([]byte(h.Secret))
	if h.Secret == "" || subtle.ConstantTimeCompare(got[:], want[:]) != 1 {
		http.Error(w, "wrong secret", http.StatusUnauthorized)
		return
	}
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxUpdate))
	if err != nil {
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			http.Error(w, "update too large", http.StatusRequestEntityTooLarge)
			return
		}
		http.Error(w, "body not readable", http.StatusBadRequest)
		return
	}
	updates := splitUpdates([]json.RawMessage{raw})
	if updates[0].ID <= 0 {
		http.Error(w, "not an update", http.StatusBadRequest)
		return
	}
	if err := h.Accept(r.Context(), updates); err != nil {
		h.Log.Error().Err(err).Msg("update not stored; telegram will deliver it again")
		http.Error(w, "not stored", http.StatusServiceUnavailable)
		return
	}
	w.WriteHeader(http.StatusOK)
}
