package mcptest

import (
	"context"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// newTicket is what the tool of Tickets takes.
type newTicket struct {
	Title string `json:"title"`
}

// Tickets is an honest server with one tool, create, which opens ticket 17.
func Tickets() http.Handler {
	server := mcp.NewServer(&mcp.Implementation{Name: "tickets", Version: "1.0"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "create", Description: "Opens a ticket."},
		func(context.Context, *mcp.CallToolRequest, newTicket) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "17"}}}, nil, nil
		})
	return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil)
}
