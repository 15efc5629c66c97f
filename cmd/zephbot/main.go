// Command zephbot is the program: a Telegram service through which people talk to an agent that runs tools.
package main

import (
	"fmt"
	"os"

	"github.com/zephbot/zephbot/cmd/internal/cli"
	"github.com/zephbot/zephbot/tools/document"
	"github.com/zephbot/zephbot/tools/shell/sandbox"
)

func main() {
	if err := sandbox.Shield(); err != nil { // before there is anything to read
		fmt.Fprintln(os.Stderr, "zephbot: keep out of the reach of commands:", err)
	}
	if len(os.Args) > 1 && os.Args[1] == document.Word {
		os.Exit(document.Main(os.Args[2:], os.Stdin, os.Stdout))
	}
	os.Exit(cli.Process(os.Args[1:]))
}
