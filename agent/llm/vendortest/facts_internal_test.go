package vendortest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/textproto"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/llmtest"
)

// TestFacts: each row of what servers refuse is reached: the smallest request that breaks it is refused because of it and
// of no other, and the plain request that it was made of is taken. A row of facts/shared has to be reached on one of the
// servers that use it, since another one may say the same in words of its own.
func TestFacts(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	missed, reached := map[string]string{}, map[string]bool{} // shared rows
	t.Run("vendors", func(t *testing.T) {
		for _, vendor := range append(Vendors(), MediaVendors()...) {
			t.Run(vendor, func(t *testing.T) {
				t.Parallel()
				f, err := readFacts(vendor)
				if err != nil {
					t.Fatal(err)
				}
				for i := range f.Refuse {
					r := &f.Refuse[i]
					problem := breakRule(t, vendor, f, r)
					switch row := r.origin + ": " + r.Fact + " " + r.Wire; {
					case r.origin == "" && problem != "":
						t.Errorf("%s: %s", r.Fact, problem)
					case r.origin == "":
					case problem == "":
						mu.Lock()
						reached[row] = true
						mu.Unlock()
					default:
						mu.Lock()
						missed[row] = vendor + ": " + problem
						mu.Unlock()
					}
				}
			})
		}
	})
	for row, problem := range missed {
		if !reached[row] {
			t.Errorf("%s: %s", row, problem)
		}
	}
}

// breakRule sends the smallest request that breaks a rule, and says what is wrong with the answer.
func breakRule(t *testing.T, vendor string, f *facts, r *rule) string {
	t.Helper()
	i := slices.IndexFunc(f.Models, func(name string) bool { return r.model == nil || r.model.MatchString(name) })
	if i < 0 {
		return "it is about none of the models"
	}
	wire := cmp.Or(r.Wire, f.Wires[0])
	if !slices.Contains(f.Wires, wire) {
		return "the server has no API of that name"
	}
	call := llm.ToolUse{Name: "look", Args: json.RawMessage("{}")}
	s, err := New(Options{Vendor: vendor, Name: f.Models[i], Model: llmtest.New(llmtest.Step{Uses: []llm.ToolUse{call}}, llmtest.Step{Text: "All right."})})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if status, text := sent(t, s, wire, ""); status != http.StatusOK {
		return fmt.Sprintf("a plain request: %d %s", status, text)
	}
	status, text := sent(t, s, wire, badRequest(s, wire, r.Bad))
	s.mu.Lock()
	defer s.mu.Unlock()
	last := s.exchanges[len(s.exchanges)-1]
	switch {
	case last.Refused != r.Fact:
		return fmt.Sprintf("%s: %d because of %q: %s", last.Body, status, last.Refused, text)
	case status < 400 || strings.Contains(text, "${"):
		return fmt.Sprintf("%d %s", status, text)
	}
	return ""
}

var repeated = regexp.MustCompile(`@(\d+)@`)

// badRequest writes out the short forms of rule.Bad.
func badRequest(s *Server, wire, bad string) string {
	bad = repeated.ReplaceAllStringFunc(bad, func(word string) string {
		n, _ := strconv.Atoi(strings.Trim(word, "@")) // digits
		return strings.Repeat("x", n)
	})
	s.given.mu.Lock()
	for id := range s.given.by {
		bad = strings.ReplaceAll(bad, "${id}", id)
	}
	s.given.mu.Unlock()
	form := `{"type":"function","function":{"name":%q,"parameters":%s}}`
	switch wire {
	case "messages":
		form = `{"name":%q,"input_schema":%s}`
	case "responses":
		form = `{"type":"function","name":%q,"strict":false,"parameters":%s}`
	}
	const object = `{"type":"object","properties":{},"additionalProperties":false}`
	if schema, ok := strings.CutPrefix(bad, "schema:"); ok {
		return `"tools":[` + fmt.Sprintf(form, "look", schema) + `]`
	}
	if name, ok := strings.CutPrefix(bad, "name:"); ok {
		return `"tools":[` + fmt.Sprintf(form, name, `{"type":"object","properties":{}}`) + `]`
	}
	if number, ok := strings.CutPrefix(bad, "many:"); ok {
		n, _ := strconv.Atoi(number) // a mistake is found, because no tools break no rule
		list := make([]string, n)
		for i := range list {
			list[i] = fmt.Sprintf(form, fmt.Sprintf("tool_%d", i), object)
		}
		return `"tools":[` + strings.Join(list, ",") + `]`
	}
	return bad
}

// sent sends a plain request with more fields, of which the last one of a name counts.
func sent(t *testing.T, s *Server, wire, more string) (int, string) {
	t.Helper()
	if more != "" {
		more = "," + more
	}
	path, body := "/chat/completions", `"messages":[{"role":"system","content":"You help."},{"role":"user","content":"a"}]`
	switch wire {
	case "messages":
		path, body = "/v1/messages", `"max_tokens":100,"messages":[{"role":"user","content":[{"type":"text","text":"a"}]}]`
	case "responses":
		path, body = "/responses", `"input":[{"role":"user","content":"a"}]`
	case "speech":
		path, body = mediaWires[wire], `"input":"a","voice":"alloy"`
	case "images", "edits":
		path, body = mediaWires[wire], `"prompt":"a"`
	}
	base, stream := s.facts.Base, `"stream":true,`
	if mediaWires[wire] != "" {
		stream = ""
	}
	if wire == "messages" {
		base = strings.TrimSuffix(base, "/v1")
	}
	kind, text := "application/json", fmt.Sprintf(`{"model":%q,%s%s%s}`, s.name, stream, body, more)
	if isForm(wire) {
		kind, text = asForm(t, text)
	}
	req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, base+path, strings.NewReader(text))
	req.Header.Set("Content-Type", kind)
	for _, name := range []string{"Authorization", "api-key", "x-api-key"} {
		req.Header.Set(name, s.Key())
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, req)
	return w.Code, w.Body.String()
}

// asForm writes the fields of an object as a form: an object with a type is a file.
func asForm(t *testing.T, object string) (contentType, body string) {
	t.Helper()
	var fields map[string]any
	if err := json.Unmarshal([]byte(object), &fields); err != nil {
		t.Fatal(err)
	}
	var form strings.Builder
	w := multipart.NewWriter(&form)
	for name, value := range fields {
		head := textproto.MIMEHeader{}
		text, plain := value.(string)
		head.Set("Content-Disposition", fmt.Sprintf("form-data; name=%q", name))
		if !plain {
			head.Set("Content-Disposition", fmt.Sprintf("form-data; name=%q; filename=%q", name, name))
			head.Set("Content-Type", fmt.Sprint(value.(map[string]any)["type"]))
		}
		part, err := w.CreatePart(head)
		if err == nil {
			_, err = part.Write([]byte(text))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return w.FormDataContentType(), form.String()
}
