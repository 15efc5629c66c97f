package history

import (
	"encoding/json"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/dialect"
)

// MaxOpaque bounds what is kept of an answer for its vendor, in bytes. What is longer is not kept, and
// the vendor has to do without it.
const MaxOpaque = 512 << 10

// Opaque is the content of llm.Message.Extra: what a server gave with an answer and wants back with it, unchanged. It
// goes to the host and the model that it came from and to nobody else.
type Opaque struct {
	Host  string `json:"host"`
	Model string `json:"model"` // as configured
	// Fields are fields of the message, by their names on the wire.
	Fields map[string]json.RawMessage `json:"fields,omitempty"`
}

// Extra encodes what has to be sent back with an answer, also if it is nothing but where the answer came
// from; nil = more than MaxOpaque.
func (o *Opaque) Extra() json.RawMessage {
	size := 0
	for _, value := range o.Fields {
		size += len(value)
	}
	if size > MaxOpaque {
		return nil
	}
	data, err := json.Marshal(o)
	if err != nil || len(data) > 2*MaxOpaque {
		return nil
	}
	return data
}

// FieldsOf returns what a host gave with a message of one of its models; false = another host or model gave it.
func FieldsOf(m *llm.Message, host, model string) (map[string]json.RawMessage, bool) {
	var o Opaque
	if len(m.Extra) == 0 || json.Unmarshal(m.Extra, &o) != nil || o.Host != host || o.Model != model {
		return nil, false
	}
	return o.Fields, true
}

// foreignCalls reports whether a message has calls that the server refuses, because another one has made them and it
// misses the reasoning that led to them.
func (r *Rules) foreignCalls(m *llm.Message) bool {
	if r.Reasoning != dialect.ReasoningRequired && r.Reasoning != dialect.ReasoningKept || len(m.Uses) == 0 {
		return false
	}
	_, own := FieldsOf(m, r.Host, r.Model)
	return !own
}
