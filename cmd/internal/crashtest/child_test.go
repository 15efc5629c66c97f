//go:build unix

package crashtest_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/cmd/internal/app"
	"github.com/zephbot/zephbot/cmd/internal/config"
	"github.com/zephbot/zephbot/persistence/sql"
)

const (
	childVariable = "CRASHTEST_CHILD" // set: this process is the bot
	killVariable  = "CRASHTEST_KILL"  // "phase change": where it kills itself; empty = nowhere
	laneVariable  = "CRASHTEST_LANES" // set: it reports when it takes and releases a lane
)

// Exit codes of the bot process.
const (
	exitFailed = 1
	exitOrphan = 3 // the test has ended
)

// serve is the bot process: the service as the program runs it, configured by the environment.
func serve() int {
	go func() { // the process must not outlive the test, however that ends
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(exitOrphan)
	}()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	log := zerolog.New(os.Stderr).With().Timestamp().Logger()
	dir := os.Getenv("ZEPH_DATA_DIR")
	cfg, err := config.Load(config.Source{Env: os.Environ(), WorkDir: dir, Home: dir})
	if err != nil {
		log.Error().Err(err).Msg("config")
		return exitFailed
	}
	hooks, err := hooksOf(os.Getenv(killVariable))
	if err != nil {
		log.Error().Err(err).Msg("kill point")
		return exitFailed
	}
	if err := app.Serve(ctx, app.Options{Config: cfg, Version: "v0.0.0-crash", WorkDir: dir, Log: log, Hooks: hooks}); err != nil {
		log.Error().Err(err).Msg("serve")
		return exitFailed
	}
	return 0
}

// commits counts the changes of this process. The hooks of PostgreSQL's store run on several goroutines.
type commits struct {
	mu    sync.Mutex
	n     int // changes committed
	phase string
	at    int // the change around which the process is killed; 0 = none
	lanes bool
}

func hooksOf(kill string) (sql.Hooks, error) {
	c := &commits{lanes: os.Getenv(laneVariable) != ""}
	if kill != "" {
		if _, err := fmt.Sscanf(kill, "%s %d", &c.phase, &c.at); err != nil {
			return sql.Hooks{}, fmt.Errorf("%q: %w", kill, err)
		}
	}
	return sql.Hooks{BeforeCommit: c.before, AfterCommit: c.after}, nil
}

// here reports whether a group contains the change at which to end. Changes are counted, not commits, because which of
// them share a commit varies.
func (c *commits) here(group []*bot.Change) bool { return c.n < c.at && c.at <= c.n+len(group) }

func (c *commits) before(group []*bot.Change) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tell(group, false) // as soon as it is committed, another process may take the lane, before it is reported here
	switch {
	case !c.here(group):
	case c.phase == before:
		die()
	case c.phase == during: // during the commit or just after it
		go die()
	}
}

func (c *commits) after(group []*bot.Change) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.here(group) && c.phase == after {
		die()
	}
	c.tell(group, true)
	for _, change := range group {
		c.n++
		_, _ = fmt.Fprintln(os.Stdout, c.n, describe(change)) // no report is needed if the test has ended
	}
}

// tell reports which lanes a group of changes takes or releases.
func (c *commits) tell(group []*bot.Change, taken bool) {
	if !c.lanes {
		return
	}
	now := time.Now()
	for _, change := range group {
		for _, line := range lanesOf(change, taken, now) {
			_, _ = fmt.Fprintln(os.Stdout, line) // no report is needed if the test has ended
		}
	}
}

// die ends this process like kill -9.
func die() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL) // a process can always kill itself
	select {}
}

// describe names a change by its content.
func describe(c *bot.Change) string {
	var parts []string
	add := func(there bool, name string) {
		if there {
			parts = append(parts, name)
		}
	}
	add(len(c.Arrive) > 0, "arrive")
	add(c.Claim != nil, "claim")
	if c.Append != nil {
		for _, e := range c.Append.Entries {
			add(true, string(e.Kind)+e.Tool)
		}
	}
	add(len(c.Ask) > 0, "ask")
	add(len(c.Decide) > 0, "decide")
	for i := range c.Send {
		add(true, "queue_"+string(c.Send[i].Purpose))
	}
	for i := range c.Rows {
		add(true, "row_"+string(c.Rows[i].To))
	}
	add(len(c.Done) > 0, "done")
	for _, f := range slices.Concat(c.Facts, c.FactsIf) {
		add(true, "fact_"+f.Bucket)
	}
	add(len(parts) == 0, "lanes")
	return strings.Join(parts, "+")
}
