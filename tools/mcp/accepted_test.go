package mcp_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/zephbot/zephbot/tools/mcp"
)

// TestAcceptedElsewhere: what was accepted in one process is used in the others after their next look, and looking does
// not ask the server each time.
func TestAcceptedElsewhere(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		kept := &store{values: map[string]string{}}
		var listed atomic.Int32
		process := func(described string) *bench {
			cfg, _ := inProcess(t, "srv", func() *sdk.Server {
				s := sdk.NewServer(&sdk.Implementation{Name: "changing", Version: "1"}, nil)
				sdk.AddTool(s, &sdk.Tool{Name: "one", Description: described}, func(context.Context, *sdk.CallToolRequest, struct{}) (*sdk.CallToolResult, any, error) {
					return &sdk.CallToolResult{}, nil, nil
				})
				s.AddReceivingMiddleware(func(next sdk.MethodHandler) sdk.MethodHandler {
					return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
						if method == "tools/list" {
							listed.Add(1)
						}
						return next(ctx, method, req)
					}
				})
				return s
			})
			b := start(t, mcp.Options{Store: kept, Servers: []mcp.Server{cfg}})
			b.ready(t)
			return b
		}
		first := process("Reads a file.")
		first.stop()
		a, b := process("Removes a file."), process("Removes a file.")
		look := func() {
			t.Helper()
			if err := b.Sync(t.Context()); err != nil {
				t.Fatal(err)
			}
			<-time.After(5 * time.Second) // a server that is asked to is listed a moment later
			synctest.Wait()
		}
		look()
		before := listed.Load()
		for range 5 {
			look()
		}
		if n := listed.Load() - before; n != 0 {
			t.Errorf("the server was listed %d times for five looks", n)
		}
		if names := b.registry.Names(); len(names) != 0 {
			t.Errorf("offered unseen: %v", names)
		}
		p, err := a.Pending(t.Context(), "srv")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := a.Accept(t.Context(), "srv", p.Code, ""); err != nil {
			t.Fatal(err)
		}
		look()
		if names := b.registry.Names(); len(names) != 1 {
			t.Errorf("accepted elsewhere, and offered: %v", names)
		}
		a.stop()
		b.stop()
	})
}
