package simulator

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
)

// callMethod calls a method of the Bot API without a network.
func (w *world) callMethod(ctx context.Context, method string, params map[string]any) (json.RawMessage, error) {
	raw, err := json.Marshal(params)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", method, err)
	}
	return w.postMethod(ctx, method, "application/json", raw)
}

func (w *world) postMethod(ctx context.Context, method, kind string, body []byte) (json.RawMessage, error) {
	req, err := http.NewRequestWithContext(
		ctx, http.MethodPost, "/bot"+w.fake.Token()+"/"+method, bytes.NewReader(body),
	)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", method, err)
	}
	req.Header.Set("Content-Type", kind)
	var out reply
	w.fake.Handler().ServeHTTP(&out, req)
	var envelope struct {
		OK          bool            `json:"ok"`
		Result      json.RawMessage `json:"result"`
		Description string          `json:"description"`
	}
	if err := json.Unmarshal(out.body.Bytes(), &envelope); err != nil {
		return nil, fmt.Errorf("%s: status %d without an answer", method, out.status)
	}
	if !envelope.OK {
		return nil, fmt.Errorf("%s: %s", method, envelope.Description)
	}
	return envelope.Result, nil
}

// reply collects an HTTP answer.
type reply struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (r *reply) Header() http.Header {
	if r.header == nil {
		r.header = http.Header{}
	}
	return r.header
}

func (r *reply) WriteHeader(status int) { r.status = status }

func (r *reply) Write(p []byte) (int, error) { return r.body.Write(p) }
