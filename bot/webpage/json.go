package webpage

import (
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
)

// Answer writes v as JSON. The error is that of the encoding, or of a connection that is gone.
func Answer(rw http.ResponseWriter, v any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		Refuse(rw, http.StatusInternalServerError, errors.New("the answer could not be encoded"))
		return fmt.Errorf("encode an answer for the page: %w", err)
	}
	rw.Header().Set("Content-Type", "application/json")
	_, err = rw.Write(raw)
	return err
}

// Refuse writes {"error":"…"} with a status of 400 and more.
func Refuse(rw http.ResponseWriter, status int, err error) {
	// A map of strings always has a JSON form.
	raw, _ := json.Marshal(map[string]string{"error": err.Error()})
	rw.Header().Set("Content-Type", "application/json")
	rw.WriteHeader(status)
	_, _ = rw.Write(raw) // the client has gone: the error concerns nobody
}

// Decode reads the JSON object of a POST into out, at most limit bytes; without success it has answered. Another
// Content-Type is refused, because a form of another page can send that.
func Decode(rw http.ResponseWriter, r *http.Request, limit int64, out any) bool {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		Refuse(rw, http.StatusUnsupportedMediaType, errors.New("want Content-Type application/json"))
		return false
	}
	dec := json.NewDecoder(http.MaxBytesReader(rw, r.Body, limit))
	dec.DisallowUnknownFields()
	if err := dec.Decode(out); err != nil {
		Refuse(rw, http.StatusBadRequest, fmt.Errorf("%s does not accept this request: %w", r.URL.Path, err))
		return false
	}
	return true
}
