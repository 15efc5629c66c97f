package cache

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/zephbot/zephbot/policy/source"
	"github.com/zephbot/zephbot/tools"
)

// maxValue is the size of the largest stored result, in bytes of its stored form.
const maxValue = 64 << 10

// layout is the version of value. A stored value with another version is a miss.
const layout = 1

// value is the stored form of a Result.
type value struct {
	Layout      int             `json:"v"`
	Text        string          `json:"text"`
	Whole       string          `json:"whole,omitempty"`
	Raw         json.RawMessage `json:"raw,omitempty"`
	ExitCode    *int            `json:"exit_code,omitempty"`
	Truncated   bool            `json:"truncated,omitempty"`
	Untrusted   source.Source   `json:"untrusted,omitempty"`
	Error       bool            `json:"error,omitempty"`
	MIME        string          `json:"mime,omitempty"`
	Links       []string        `json:"links,omitempty"`
	Credentials int             `json:"credentials,omitempty"`
}

// encode returns the stored form. It returns false when the result is too large, or would change by being stored.
func encode(r *tools.Result) ([]byte, bool) {
	if len(r.Text)+len(r.Whole) > maxValue {
		return nil, false
	}
	for _, s := range []string{r.Text, r.Whole, string(r.Untrusted), r.MIME} {
		if !utf8.ValidString(s) { // JSON would change it
			return nil, false
		}
	}
	v := value{
		Layout: layout, Text: r.Text, Whole: r.Whole, ExitCode: r.ExitCode, Truncated: r.Truncated,
		Untrusted: r.Untrusted, Error: r.Error, MIME: r.MIME,
		Credentials: r.Credentials, Links: r.Links,
	}
	if r.Raw != nil {
		raw, err := plain(r.Raw)
		if err != nil || len(raw) > maxValue {
			return nil, false
		}
		v.Raw = raw
	}
	data, err := plain(v)
	return data, err == nil && len(data) <= maxValue
}

// plain returns JSON without the escapes for HTML.
func plain(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("encode result: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

var errLayout = errors.New("the stored result has another layout")

// decode converts a stored value to a Result. Raw becomes a tree of JSON values, with numbers as json.Number.
func decode(data []byte) (*tools.Result, error) {
	var v value
	if err := json.Unmarshal(data, &v); err != nil {
		return nil, fmt.Errorf("decode result: %w", err)
	}
	if v.Layout != layout {
		return nil, errLayout
	}
	r := &tools.Result{
		Text: v.Text, Whole: v.Whole, ExitCode: v.ExitCode, Truncated: v.Truncated, Untrusted: v.Untrusted,
		Error: v.Error, MIME: v.MIME,
		Credentials: v.Credentials, Links: v.Links,
	}
	if len(v.Raw) > 0 {
		d := json.NewDecoder(bytes.NewReader(v.Raw))
		d.UseNumber()
		if err := d.Decode(&r.Raw); err != nil {
			return nil, fmt.Errorf("decode raw result: %w", err)
		}
	}
	return r, nil
}
