package mcp_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/mcp"
	"github.com/zephbot/zephbot/tools/mcp/guard"
)

// TestNoteOfSampling: the note for the person who approves a call says that the server may ask the model during it, if
// it may.
func TestNoteOfSampling(t *testing.T) {
	t.Parallel()
	sample := func(context.Context, mcp.SampleRequest) (mcp.SampleResult, error) { return mcp.SampleResult{}, nil }
	for name, tt := range map[string]struct {
		trust  guard.Trust
		sample func(context.Context, mcp.SampleRequest) (mcp.SampleResult, error)
		want   string
	}{
		"off":       {guard.Untrusted, nil, "server srv · untrusted"},
		"on":        {guard.Untrusted, sample, "server srv · untrusted · it may ask the model during the call"},
		"trusted":   {guard.Trusted, sample, "server srv · trusted · it may ask the model during the call"},
		"sandboxed": {guard.Sandboxed, sample, "server srv · sandboxed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg, _ := inProcess(t, "srv", testServer)
			cfg.Trust, cfg.Allowlist = tt.trust, &[]string{"echo"}
			b := start(t, mcp.Options{Servers: []mcp.Server{cfg}, Sample: tt.sample})
			b.ready(t)
			tool, ok := b.registry.Lookup("srv:echo")
			if !ok {
				t.Fatal("there is no srv:echo")
			}
			subject, err := tool.Describe(t.Context(), &tools.Call{Tool: "srv:echo", Args: json.RawMessage(`{"text":"x"}`)})
			if err != nil {
				t.Fatal(err)
			}
			if note, _, _ := strings.Cut(subject.Note.String(), " · The server says"); note != tt.want {
				t.Errorf("note %q, want %q", subject.Note, tt.want)
			}
		})
	}
}
