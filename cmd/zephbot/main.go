// Command zephbot is a Telegram service through which people talk to an agent that runs tools.
package main

import (
	"fmt"
	"os"

	"github.com/zephbot/zephbot/cmd/internal/cli"
	"github.com/zephbot/zephbot/tools/shell/sandbox"
)

func main() {
	if err := sandbox.Shield(); err != nil { // before there is anything to read
		fmt.Fprintln(os.Stderr, "zephbot: keep out of the reach of commands:", err)
	}
	os.Exit(cli.Process(os.Args[1:]))
}
