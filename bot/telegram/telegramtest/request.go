package telegramtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"
)

// upload is a file part of a multipart body.
type upload struct {
	name string
	data []byte
}

// request is a parsed call: every parameter as text, whatever way it came.
type request struct {
	params   map[string]string
	uploads  map[string]upload
	made     int // message id the method created
	returned int // updates a getUpdates returned
}

// parseRequest reads the query string and a multipart, urlencoded or JSON body. It always returns a usable request, so
// that a bad one can be logged.
func parseRequest(w http.ResponseWriter, req *http.Request) (*request, *apiError) {
	r := &request{params: map[string]string{}, uploads: map[string]upload{}}
	r.addValues(req.URL.Query())
	raw, fail := readBody(w, req)
	if fail != nil || len(raw) == 0 {
		return r, fail
	}
	kind, attrs, err := mime.ParseMediaType(req.Header.Get("Content-Type"))
	if err != nil {
		return r, badRequest("unsupported Content-Type")
	}
	switch kind {
	case "application/json":
		fail = r.addJSON(raw)
	case "application/x-www-form-urlencoded":
		var form url.Values
		if form, err = url.ParseQuery(string(raw)); err != nil {
			return r, badRequest("can't parse urlencoded parameters")
		}
		r.addValues(form)
	case "multipart/form-data":
		fail = r.addMultipart(raw, attrs["boundary"])
	default:
		fail = badRequest("unsupported Content-Type")
	}
	if fail != nil {
		return r, fail
	}
	for _, v := range r.params {
		if !utf8.ValidString(v) {
			return r, badRequest("strings must be encoded in UTF-8")
		}
	}
	return r, nil
}

func (r *request) addValues(form url.Values) {
	for k, v := range form {
		if len(v) > 0 {
			r.params[k] = v[0]
		}
	}
}

func (r *request) addJSON(raw []byte) *apiError {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		return badRequest("can't parse JSON object")
	}
	for k, v := range fields {
		var text string
		switch {
		case string(v) == "null":
		case json.Unmarshal(v, &text) == nil:
			r.params[k] = text
		default:
			r.params[k] = string(v)
		}
	}
	return nil
}

func (r *request) addMultipart(raw []byte, boundary string) *apiError {
	if boundary == "" {
		return badRequest("boundary not found")
	}
	parts := multipart.NewReader(bytes.NewReader(raw), boundary)
	for {
		p, err := parts.NextPart()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return badRequest("can't parse multipart form data")
		}
		data, err := io.ReadAll(p)
		if err != nil {
			return badRequest("can't parse multipart form data")
		}
		if p.FileName() != "" {
			r.uploads[p.FormName()] = upload{name: p.FileName(), data: data}
			continue
		}
		r.params[p.FormName()] = string(data)
	}
}

func (r *request) text(name string) string { return r.params[name] }

// integer reads a number; an absent or broken one is an error.
func (r *request) integer(name string) (int64, error) {
	return strconv.ParseInt(strings.TrimSpace(r.params[name]), 10, 64)
}

// number reads a number; absent or broken counts as 0, which is how Telegram reads it.
func (r *request) number(name string) int {
	n, err := r.integer(name)
	if err != nil {
		return 0
	}
	return int(n)
}

// flag reads a boolean the way Telegram does: true, yes and 1.
func (r *request) flag(name string) bool {
	switch strings.ToLower(strings.TrimSpace(r.params[name])) {
	case "true", "yes", "1":
		return true
	}
	return false
}

// decode reads a JSON parameter; false when it is absent.
func (r *request) decode(name string, into any) (bool, *apiError) {
	raw := r.params[name]
	if raw == "" || raw == "null" {
		return false, nil
	}
	if err := json.Unmarshal([]byte(raw), into); err != nil {
		return false, badRequestf("can't parse %s JSON object", strings.ReplaceAll(name, "_", " "))
	}
	return true, nil
}
