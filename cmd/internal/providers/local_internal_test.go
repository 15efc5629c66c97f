package providers

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestFindLocal: servers at ports that several programs use are told from each other by what they answer, and one that
// nothing tells has no preset.
func TestFindLocal(t *testing.T) {
	t.Parallel()
	list := func(owner string) string {
		return `{"object":"list","data":[{"id":"m","object":"model","owned_by":"` + owner + `"}]}`
	}
	for name, tt := range map[string]struct {
		pages map[string]string
		want  string
	}{
		"llama.cpp":              {map[string]string{"/v1/models": list("llamacpp"), "/props": `{"default_generation_settings":{"n_ctx":8192}}`}, "llamacpp"},
		"llama.cpp, other owner": {map[string]string{"/v1/models": list("me"), "/props": `{"default_generation_settings":{"n_ctx":8192}}`}, "llamacpp"},
		"vLLM":                   {map[string]string{"/v1/models": list("vllm"), "/version": `{"version":"0.19.0"}`}, "vllm"},
		"SGLang":                 {map[string]string{"/v1/models": list("sglang")}, "sglang"},
		"older SGLang":           {map[string]string{"/v1/models": list("root"), "/get_model_info": `{"model_path":"x"}`}, "sglang"},
		"LiteLLM":                {map[string]string{"/v1/models": list("openai"), "/health/liveliness": `"I'm alive!"`}, "litellm"},
		"Ollama":                 {map[string]string{"/v1/models": list("library"), "/": "Ollama is running"}, "ollama"},
		"LM Studio":              {map[string]string{"/v1/models": list("organization_owner")}, "lmstudio"},
		"something else":         {map[string]string{"/v1/models": list("somebody"), "/": "<html>", "/props": "[]"}, ""},
		"every path is a page":   {map[string]string{"/v1/models": list(""), "/": "<html>", "/props": "<html>", "/get_model_info": "<html>", "/health/liveliness": "<html>"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				page, ok := tt.pages[r.URL.Path]
				if !ok {
					http.NotFound(w, r)
					return
				}
				_, _ = w.Write([]byte(page))
			}))
			t.Cleanup(s.Close)
			found := FindLocal(t.Context(), []string{"127.0.0.1:1", strings.TrimPrefix(s.URL, "http://")})
			if len(found) != 1 || found[0].Preset != tt.want || len(found[0].Models) != 1 {
				t.Errorf("found %+v, want %q", found, tt.want)
			}
		})
	}
}
