package simulator

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"mime/multipart"
	"net/http"
	"strings"
)

// call calls a method of the Bot API without a network.
func (w *world) call(ctx context.Context, method string, params map[string]any) (json.RawMessage, error) {
	raw, err := json.Marshal(params)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", method, err)
	}
	return w.post(ctx, method, "application/json", raw)
}

// upload sends a file as the bot did. The method is named after the kind.
func (w *world) upload(ctx context.Context, params map[string]any, info fileInfo, data []byte) (json.RawMessage, error) {
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	for name, v := range params {
		text, isText := v.(string)
		if !isText {
			raw, err := json.Marshal(v)
			if err != nil {
				return nil, fmt.Errorf("encode %s: %w", name, err)
			}
			text = string(raw)
		}
		if err := form.WriteField(name, text); err != nil {
			return nil, fmt.Errorf("write %s: %w", name, err)
		}
	}
	part, err := form.CreateFormFile(info.Kind, cmp.Or(info.Name, "file"))
	if err != nil {
		return nil, fmt.Errorf("write the file: %w", err)
	}
	if _, err := part.Write(data); err != nil {
		return nil, fmt.Errorf("write the file: %w", err)
	}
	if err := form.Close(); err != nil {
		return nil, fmt.Errorf("write the file: %w", err)
	}
	method := "send" + strings.ToUpper(info.Kind[:1]) + info.Kind[1:]
	return w.post(ctx, method, form.FormDataContentType(), body.Bytes())
}

func (w *world) post(ctx context.Context, method, kind string, body []byte) (json.RawMessage, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "/bot"+w.fake.Token()+"/"+method, bytes.NewReader(body))
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
