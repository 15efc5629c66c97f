package mcptest

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// reach does one thing and returns the outcome: "read FILE", "write FILE", "dial ADDRESS", "env NAME".
func reach(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	what, of, _ := strings.Cut(textOf(req), " ")
	var err error
	switch what {
	case "read":
		var data []byte
		if data, err = os.ReadFile(of); err == nil {
			return said("read: %.200s", data), nil
		}
	case "list":
		_, err = os.ReadDir(of)
	case "write":
		err = os.WriteFile(of, []byte("x"), 0o600)
	case "dial":
		var c net.Conn
		if c, err = (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, "tcp", of); err == nil {
			err = c.Close()
		}
	case "env":
		return said("env: %s", os.Getenv(of)), nil
	default:
		err = fmt.Errorf("%q is not known", what)
	}
	if err != nil {
		return said("refused: %v", err), nil
	}
	return said("done"), nil
}

// escape leaves a process behind that is in none of our process groups, ignores SIGTERM, and holds the named pipe
// "hold" in our directory open, to which it writes that it runs.
func escape(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	script := `trap "" TERM HUP; exec 9>hold; printf held >&9; touch escaped; while :; do sleep 1000 9>&-; done`
	c := exec.CommandContext(context.WithoutCancel(ctx), "setsid", "--fork", "sh", "-c", script)
	if err := c.Run(); err != nil {
		return said("refused: %v", err), nil
	}
	err := until(ctx, func() bool {
		_, err := os.Stat("escaped")
		return err == nil
	})
	return said("left"), err
}
