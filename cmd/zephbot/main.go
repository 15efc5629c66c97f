// Command zephbot is a Telegram service through which people talk to an agent that runs tools.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/zephbot/zephbot/cmd/internal/cli"
	"github.com/zephbot/zephbot/tools/shell/sandbox"
)

func main() {
	if err := sandbox.Shield(); err != nil { // before there is anything to read
		fmt.Fprintln(os.Stderr, "zephbot: keep out of the reach of commands:", err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := cli.Main(ctx, os.Args[1:], cli.Standard())
	stop()
	os.Exit(code)
}
