package llm

import (
	"bytes"
	"encoding/json"
)

// PlainJSON encodes a value on one line without the escapes for HTML, which a model would have to read.
func PlainJSON(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err //nolint:wrapcheck // names the value
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
