package cli

import (
	"os"
	"runtime"
	"strings"
	"sync"

	"github.com/zephbot/zephbot/bot/terminal"
	"github.com/zephbot/zephbot/bot/terminal/console"
)

// Console prepares the terminal of a person; restore may be called more than once.
type Console func() (console terminal.Console, restore func(), err error)

// consoleOf returns how the process's terminal is prepared for drawing; nil if it has none, or one that cannot draw.
func consoleOf(in, out *os.File) Console {
	name := os.Getenv("TERM")
	if runtime.GOOS == "windows" || name == "" || name == "dumb" ||
		!console.IsTerminal(in) || !console.IsTerminal(out) {
		return nil
	}
	return func() (terminal.Console, func(), error) {
		tty, err := console.OpenTTY(in, out)
		if err != nil {
			return terminal.Console{}, nil, err
		}
		resized, unresize := console.Resized()
		sent, unsend := console.Deadly()
		var ending sync.Once
		var watching sync.WaitGroup
		done := make(chan struct{})
		watching.Go(func() {
			select {
			case s := <-sent:
				tty.Close()
				console.Die(s)
			case <-done:
			}
		})
		restore := func() {
			ending.Do(func() {
				close(done)
				watching.Wait()
				unresize()
				unsend()
				tty.Close()
			})
		}
		return terminal.Console{In: tty, Out: tty, Size: tty.Size, Resized: resized, Suspend: tty.Suspend}, restore, nil
	}
}

// coloured reports whether what is printed on stdout may have colours.
func (c *command) coloured() bool { return c.env.OutTerm && colours(c.env.Environ) }

// colours reports whether a terminal is to be shown colours: NO_COLOR forbids them, CLICOLOR_FORCE and FORCE_COLOR
// demand them, CLICOLOR=0 goes without.
func colours(environ []string) bool {
	values := map[string]string{}
	for _, pair := range environ {
		name, value, _ := strings.Cut(pair, "=")
		values[name] = value
	}
	forced := func(name string) bool { return values[name] != "" && values[name] != "0" && values[name] != "false" }
	switch {
	case values["NO_COLOR"] != "":
		return false
	case forced("CLICOLOR_FORCE"), forced("FORCE_COLOR"):
		return true
	case values["FORCE_COLOR"] == "0", values["FORCE_COLOR"] == "false":
		return false
	}
	return values["CLICOLOR"] != "0"
}
