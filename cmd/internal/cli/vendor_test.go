package cli_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
)

// vendor is a server of models with OpenAI's API: it knows some models and one key, and has credit or not.
type vendor struct {
	*httptest.Server
	key    string
	models []string
	broke  bool   // the account has no credit
	busy   bool   // it is asked too often
	say    string // its answer
	minds  string // a tool whose definition it refuses

	mu    sync.Mutex
	asked int // conversations
	seen  []string
}

func newVendor(t *testing.T, key string, models ...string) *vendor {
	t.Helper()
	v := &vendor{key: key, models: models, say: "ok"}
	v.Server = httptest.NewServer(v)
	t.Cleanup(v.Close)
	return v
}

// ServeHTTP implements http.Handler.
func (v *vendor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	raw, _ := io.ReadAll(r.Body) // a client that goes away is of no interest
	v.mu.Lock()
	defer v.mu.Unlock()
	v.seen = append(v.seen, r.Method+" "+r.URL.Path)
	refuse := func(status int, code, text string) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = fmt.Fprintf(w, `{"error":{"message":%q,"type":"invalid_request_error","code":%q}}`, text, code)
	}
	if v.key != "" && r.Header.Get("Authorization") != "Bearer "+v.key {
		refuse(http.StatusUnauthorized, "invalid_api_key", "Incorrect API key provided: "+r.Header.Get("Authorization"))
		return
	}
	switch {
	case r.URL.Path == "/v1/models":
		type model struct {
			ID string `json:"id"`
		}
		var list struct {
			Data []model `json:"data"`
		}
		for _, m := range v.models {
			list.Data = append(list.Data, model{m})
		}
		_ = json.NewEncoder(w).Encode(list)
	case r.URL.Path != "/v1/chat/completions":
		refuse(http.StatusNotFound, "", "no such path")
	default:
		var request struct {
			Model string `json:"model"`
			Tools []struct {
				Function struct {
					Name string `json:"name"`
				} `json:"function"`
			} `json:"tools"`
		}
		_ = json.Unmarshal(raw, &request)
		v.asked++
		for i, t := range request.Tools {
			if v.minds != "" && t.Function.Name == v.minds {
				refuse(http.StatusBadRequest, "invalid_function_parameters", fmt.Sprintf("Invalid schema for function '%s' at tools[%d].function.parameters: bad, says %s", t.Function.Name, i, v.key))
				return
			}
		}
		v.answer(w, request.Model, refuse)
	}
}

func (v *vendor) answer(w http.ResponseWriter, model string, refuse func(int, string, string)) {
	switch {
	case v.broke:
		refuse(http.StatusTooManyRequests, "insufficient_quota", "You exceeded your current quota, please check your plan and billing details.")
	case v.busy:
		refuse(http.StatusTooManyRequests, "rate_limit_exceeded", "Rate limit reached")
	case !slices.Contains(v.models, model):
		refuse(http.StatusNotFound, "model_not_found", "The model `"+model+"` does not exist or you do not have access to it.")
	default:
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":%q}}]}\n\ndata: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n", v.say)
	}
}

// conversations is how often a model was asked.
func (v *vendor) conversations() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.asked
}

// provider is an entry of [[llm.providers]] at this vendor.
func (v *vendor) provider(name, model, key string, more ...string) string {
	return fmt.Sprintf("[[llm.providers]]\nname = %q\ntype = \"openai\"\nbase_url = %q\nmodel = %q\napi_key = %q\nwire = \"chat\"\n%s\n",
		name, v.URL+"/v1", model, key, strings.Join(more, "\n"))
}
