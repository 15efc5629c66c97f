// Command zephbot is a Telegram service through which people talk to an agent that runs tools.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/zephbot/zephbot/cmd/internal/cli"
	"github.com/zephbot/zephbot/tools/shell/sandbox"
)

func main() {
	if sandbox.Main(os.Args) { // this process is the helper of a sandboxed command
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := cli.Main(ctx, os.Args[1:], cli.Standard())
	stop()
	os.Exit(code)
}
