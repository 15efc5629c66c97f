package apptest

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/zephbot/zephbot/agent/llm/vendortest"
)

// Vendor is a model server to play a scenario on.
type Vendor struct {
	Name  string // as in vendortest
	Model string // "" = the vendor's first one
	// Preset configures the service with the vendor's preset; else it knows only the address, the key and the
	// model, and finds out the rest.
	Preset bool
}

// PlayVendor plays one scenario on a service whose model is behind a vendor's server. Besides what holds in every
// scenario: no request is repeated as it was after it was refused, and no person sees what the model thought.
func PlayVendor(t *testing.T, archive *txtar.Archive, v Vendor) {
	t.Helper()
	play(t, archive, &scene{vendor: &v})
}

// openVendor starts the server that the scripted model is behind.
func (s *scene) openVendor() {
	s.t.Helper()
	server, err := vendortest.New(vendortest.Options{Vendor: s.vendor.Name, Model: s.model, Name: s.vendor.Model})
	if err != nil {
		s.t.Fatal(err)
	}
	s.server = server
	s.t.Cleanup(server.Close)
}

// Provider is the table of the configuration that a person would write for a vendor's server.
func Provider(server *vendortest.Server, preset bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "[[llm.providers]]\nname = \"main\"\nbase_url = %q\nmodel = %q\n", server.URL(), server.Name())
	if preset && server.Preset() != "" {
		fmt.Fprintf(&b, "preset = %q\n", server.Preset())
	}
	if server.Type() != "openai" {
		fmt.Fprintf(&b, "type = %q\n", server.Type())
	}
	if !server.Keyless() {
		fmt.Fprintf(&b, "api_key = %q\n", server.Key())
	}
	return b.String()
}

// judgeVendor checks what must be true of the requests to a vendor's server.
func (s *scene) judgeVendor() {
	s.t.Helper()
	if s.server == nil {
		return
	}
	for _, problem := range RefusedAgain(s.server) {
		s.t.Error(problem)
	}
	for name, chat := range s.chats {
		for _, m := range s.fake.Chat(chat) {
			if m.FromBot && strings.Contains(m.Text, vendortest.Thought) {
				s.t.Errorf("chat %s: a thought of the model is shown: %s", name, m.Text)
			}
		}
	}
}

// RefusedAgain names the requests that were sent again as they were after the server had refused them.
func RefusedAgain(server *vendortest.Server) []string {
	var refused [][]byte
	var problems []string
	for i, e := range server.Exchanges() {
		if e.Refused == "" || e.Status >= 500 || e.Status == 429 {
			continue
		}
		for _, before := range refused {
			if bytes.Equal(before, e.Body) {
				problems = append(problems, fmt.Sprintf(
					"request %d is one that was refused already: %s\n%s", i+1, e.Refused, e.Answer,
				))
			}
		}
		refused = append(refused, e.Body)
	}
	return problems
}

// Refusals describes what a server refused.
func Refusals(server *vendortest.Server) string {
	var b strings.Builder
	fmt.Fprintf(&b, "--- %s\n", server.Title())
	for i, e := range server.Exchanges() {
		if e.Refused != "" {
			fmt.Fprintf(
				&b, "  request %d, %d bytes: %d %s\n    %.600s\n", i+1, len(e.Body), e.Status, e.Refused, e.Answer,
			)
		}
	}
	return b.String()
}
