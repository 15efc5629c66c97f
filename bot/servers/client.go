package servers

import (
	"context"
	"errors"

	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/mcp"
)

// Client is the client of the servers, as a Handler uses it (mcp.Manager). Its errors are for people, as sentence puts
// them. Safe for concurrent use.
type Client interface {
	Shown
	Hosting
	Accepting
	// Sync brings the servers in line with what other processes have stored; mcp.ErrNotRunning before it runs.
	Sync(ctx context.Context) error
}

// Shown is what people are shown of the servers.
type Shown interface {
	// Statuses lists the servers, by id.
	Statuses() []mcp.Status
	// Tools lists the tools of a server that may be called.
	Tools(id string) []tools.Definition
	// Loaded waits until the servers of earlier processes are known; the error is ctx's.
	Loaded(ctx context.Context) error
	// Ready waits until each server was tried once; the error is ctx's.
	Ready(ctx context.Context) error
}

// Hosting adds, restarts and removes servers. What is added is kept over a restart.
type Hosting interface {
	// Check says at first sight what is wrong with a server that is to be added.
	Check(cfg mcp.Server) error
	// Holds says what confines a program that is to be added.
	Holds(cfg mcp.Server) string
	Add(ctx context.Context, cfg mcp.Server) (mcp.Status, error)
	Restart(ctx context.Context, id string) (mcp.Status, error)
	// Remove gives the number of tools that went.
	Remove(ctx context.Context, id string) (int, error)
}

// Accepting has people accept what a server has changed.
type Accepting interface {
	// Pending is what is to be accepted, with the code that names exactly that.
	Pending(ctx context.Context, id string) (mcp.Pending, error)
	// Accept takes what code names, and gives the tools; note is kept with it.
	Accept(ctx context.Context, id, code, note string) ([]string, error)
	// AcceptedBy is the note of what was accepted last.
	AcceptedBy(ctx context.Context, id string) (string, error)
}

// Follow brings this process in line with what others have done with the servers, and takes up the jobs that nobody
// carries out any more. It is called again and again where processes share.
func (d *Handler) Follow(ctx context.Context) error {
	if err := d.deps.Client.Sync(ctx); err != nil && !errors.Is(err, mcp.ErrNotRunning) {
		return err
	}
	return d.TakeUp(ctx)
}
