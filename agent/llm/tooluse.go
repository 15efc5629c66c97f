package llm

import (
	"encoding/json"
	"fmt"
)

// toolUseJSON is the stored form of a ToolUse. RawArgs replaces Args if the model wrote something that is not JSON.
type toolUseJSON struct {
	ID      string          `json:"id"`
	Own     string          `json:"own,omitempty"`
	Name    string          `json:"name"`
	Args    json.RawMessage `json:"args,omitempty"`
	RawArgs *string         `json:"raw_args,omitempty"`
	Extra   json.RawMessage `json:"extra,omitempty"`
}

// MarshalJSON implements json.Marshaler. A model's arguments can be malformed, and json.RawMessage cannot be encoded
// then. Such arguments are stored as a string in "raw_args", so that a journal can store every answer.
func (u ToolUse) MarshalJSON() ([]byte, error) {
	out := toolUseJSON{ID: u.ID, Own: u.Own, Name: u.Name, Args: u.Args, Extra: u.Extra}
	if len(u.Args) > 0 && !json.Valid(u.Args) {
		raw := string(u.Args)
		out.Args, out.RawArgs = nil, &raw
	}
	data, err := json.Marshal(out)
	if err != nil {
		return nil, fmt.Errorf("write tool use %s: %w", u.Name, err)
	}
	return data, nil
}

// UnmarshalJSON implements json.Unmarshaler; the inverse of MarshalJSON.
func (u *ToolUse) UnmarshalJSON(data []byte) error {
	var in toolUseJSON
	if err := json.Unmarshal(data, &in); err != nil {
		return fmt.Errorf("read tool use: %w", err)
	}
	*u = ToolUse{ID: in.ID, Own: in.Own, Name: in.Name, Args: in.Args, Extra: in.Extra}
	if in.RawArgs != nil {
		u.Args = json.RawMessage(*in.RawArgs)
	}
	return nil
}
