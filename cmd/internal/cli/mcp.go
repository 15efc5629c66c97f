package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/zephbot/zephbot/cmd/internal/app"
	"github.com/zephbot/zephbot/cmd/internal/config"
	"github.com/zephbot/zephbot/tools/mcp"
)

// connectLimit is how long commands wait for MCP servers.
const connectLimit = 2 * time.Minute

func (c *command) mcpCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "mcp", Short: "Connect to the configured MCP servers and show what they offer", Args: oneOfSubs,
		RunE: needSub,
	}
	var asJSON bool
	list := &cobra.Command{
		Use: "list", Short: "Connect to all servers, one line each", Args: cobra.NoArgs,
		Long: "Connects to every configured server and prints how that went. Exit code 1 when one did not connect.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.bench(func(b *app.Bench) error { return c.listServers(cmd.Context(), b, asJSON) })
		},
	}
	list.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	test := &cobra.Command{
		Use: "test ID", Short: "Connect to one server and print its tools, instructions and problems",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, err := c.load()
			if err != nil {
				return err
			}
			if err := only(cfg, args[0]); err != nil {
				return err
			}
			return c.benchOf(cfg, func(b *app.Bench) error { return c.testServer(cmd.Context(), b) })
		},
	}
	signin := &cobra.Command{
		Use: "signin ID", Short: "Sign in to a server that wants OAuth", Args: cobra.ExactArgs(1),
		Long: "Prints a link to open in a browser and waits until it comes back to this machine. Where the browser " +
			"runs elsewhere, paste the address at which it ended.",
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.bench(func(b *app.Bench) error { return c.signIn(cmd.Context(), b, args[0]) })
		},
	}
	cmd.AddCommand(list, test, signin)
	return cmd
}

func (c *command) signIn(ctx context.Context, b *app.Bench, id string) error {
	lines := make(chan string)
	go func() { // ends with the program: reading a terminal cannot be interrupted
		defer close(lines)
		for in := bufio.NewScanner(c.env.In); in.Scan(); {
			select {
			case lines <- strings.TrimSpace(in.Text()):
			case <-ctx.Done():
				return
			}
		}
	}()
	show := func(link string) error {
		_, err := fmt.Fprintf(
			c.env.Out,
			"Open this link in a browser:\n%s\nIf it ends at a page that does not load, paste its address here.\n",
			link,
		)
		return err
	}
	err := b.SignIn(ctx, id, show, func(ctx context.Context) (string, error) {
		select {
		case line, ok := <-lines:
			if !ok {
				<-ctx.Done() // the input has ended: the browser may still redirect by itself
				return "", ctx.Err()
			}
			return line, nil
		case <-ctx.Done():
			return "", ctx.Err()
		}
	})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(c.env.Out, "signed in to "+id)
	return err
}

func (c *command) listServers(ctx context.Context, b *app.Bench, asJSON bool) error {
	if !b.Configured() {
		_, err := fmt.Fprintln(c.env.Out, "no MCP server is configured; add [[mcp.servers]]")
		return err
	}
	if err := b.Connect(ctx, connectLimit); err != nil && ctx.Err() != nil {
		return err
	}
	type row struct {
		ID        string   `json:"id"`
		Transport string   `json:"transport"`
		Trust     string   `json:"trust"`
		State     string   `json:"state"`
		Protocol  string   `json:"protocol,omitempty"`
		Tools     []string `json:"tools"`
		Problem   string   `json:"problem,omitempty"`
	}
	rows := []row{}
	failed := false
	for _, s := range b.Servers() {
		rows = append(rows, row{s.ID, s.Transport, string(s.Trust), string(s.State), s.Protocol, s.Tools, s.Problem})
		failed = failed || s.State != mcp.Connected
	}
	var err error
	if asJSON {
		err = c.printJSON(rows)
	} else {
		for _, r := range rows {
			line := fmt.Sprintf("%-16s %-10s %-10s %-10s %d tools", r.ID, r.Transport, r.Trust, r.State, len(r.Tools))
			if r.Problem != "" {
				line += "  " + r.Problem
			}
			if _, err = fmt.Fprintln(c.env.Out, line); err != nil {
				break
			}
		}
	}
	if err == nil && failed {
		err = errSilent
	}
	return err
}

// only keeps one server in the configuration: the others need not start.
func only(cfg *config.Config, id string) error {
	var known []string
	for _, s := range cfg.MCP.Servers {
		if known = append(known, s.ID); s.ID == id {
			cfg.MCP.Servers = []config.MCPServer{s}
			return nil
		}
	}
	return usageError{fmt.Errorf("no MCP server %q is configured; there are: %s", id, strings.Join(known, ", "))}
}

func (c *command) testServer(ctx context.Context, b *app.Bench) error {
	if err := b.Connect(ctx, connectLimit); err != nil && ctx.Err() != nil {
		return err
	}
	for _, s := range b.Servers() {
		return c.describeServer(b, s)
	}
	return errors.New("the server is gone")
}

// describeServer prints what is known of a server, and fails if it is not connected.
func (c *command) describeServer(b *app.Bench, s mcp.Status) error {
	var lines []string
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	add("%s: %s over %s, %s", s.ID, s.State, s.Transport, s.Trust)
	if s.Problem != "" {
		add("problem: %s", s.Problem)
	}
	if s.State == mcp.Connected {
		add("server: %s, protocol %s", s.Name, s.Protocol)
	}
	for _, t := range b.Offered(s.ID) {
		kind := "changes"
		if t.ReadOnly {
			kind = "reads"
		}
		first, _, _ := strings.Cut(t.Description, "\n")
		add("tool %s (%s): %s", t.Name, kind, first)
	}
	for _, name := range s.Withdrawn {
		add("withdrawn %s: it has changed; /mcp accept %s takes it", name, s.ID)
	}
	for _, d := range s.Dropped {
		add("dropped %s: %s", d.Tool, d.Reason)
	}
	for _, w := range s.Warnings {
		add("warning: %s", w)
	}
	for _, f := range s.Findings {
		add("finding: %s, %s: %s", f.Tool, f.Field, f.Rule)
	}
	if s.Instructions != "" {
		add("instructions:\n%s", s.Instructions)
	}
	if _, err := fmt.Fprintln(c.env.Out, strings.Join(lines, "\n")); err != nil {
		return err
	}
	if s.State != mcp.Connected {
		return errSilent
	}
	return nil
}
