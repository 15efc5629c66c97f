package mcptest

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
)

// Guarded is the endpoint of a server with one tool, which answers only requests with one of the access tokens. All
// others are told where its metadata are (RFC 9728); metadata is called for each of them.
func Guarded(metadata func() string, tokens ...string) http.HandlerFunc {
	return func(rw http.ResponseWriter, r *http.Request) {
		var req struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
		}
		token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		switch {
		case !slices.Contains(tokens, token):
			rw.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+metadata()+`"`)
			rw.WriteHeader(http.StatusUnauthorized)
			return
		case r.Method != http.MethodPost:
			rw.WriteHeader(http.StatusMethodNotAllowed)
			return
		case json.NewDecoder(r.Body).Decode(&req) != nil || len(req.ID) == 0:
			rw.WriteHeader(http.StatusAccepted)
			return
		}
		reply := map[string]any{"jsonrpc": "2.0", "id": req.ID}
		switch req.Method {
		case "initialize":
			reply["result"] = map[string]any{
				"protocolVersion": "2025-06-18",
				"capabilities":    map[string]any{"tools": map[string]any{}},
				"serverInfo":      map[string]any{"name": "guarded", "version": "1"},
			}
		case "tools/list":
			reply["result"] = map[string]any{
				"tools": []any{map[string]any{"name": "echo", "inputSchema": map[string]any{"type": "object"}}},
			}
		case "ping":
			reply["result"] = map[string]any{}
		default:
			reply["error"] = map[string]any{"code": -32601, "message": "no such method"}
		}
		rw.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(rw).Encode(reply) // a client that went away is seen by the test
	}
}
