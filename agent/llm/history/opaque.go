package history

import (
	"encoding/json"

	"github.com/zephbot/zephbot/agent/llm"
)

// MaxOpaque bounds what is kept of an answer for its vendor, in bytes. What is longer is not kept, and the vendor has to
// do without it.
const MaxOpaque = 512 << 10

// Opaque is the content of llm.Message.Extra: what a server gave with an answer and wants back with it, unchanged. It
// goes to the host and the model that it came from and to nobody else.
type Opaque struct {
	Host  string `json:"host"`
	Model string `json:"model"` // as configured
	// Fields are fields of the message, by their names on the wire.
	Fields map[string]json.RawMessage `json:"fields"`
}

// Extra encodes what has to be sent back with an answer; nil = nothing, or more than MaxOpaque.
func (o *Opaque) Extra() json.RawMessage {
	size := 0
	for _, value := range o.Fields {
		size += len(value)
	}
	if len(o.Fields) == 0 || size > MaxOpaque {
		return nil
	}
	data, err := json.Marshal(o)
	if err != nil || len(data) > 2*MaxOpaque {
		return nil
	}
	return data
}

// Fields returns what belongs to a message of the model, if this host and this model gave it; nil = nothing.
func Fields(m *llm.Message, host, model string) map[string]json.RawMessage {
	if len(m.Extra) == 0 {
		return nil
	}
	var o Opaque
	if json.Unmarshal(m.Extra, &o) != nil || o.Host != host || o.Model != model {
		return nil
	}
	return o.Fields
}
