package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/zephbot/zephbot/cmd/internal/app"
	"github.com/zephbot/zephbot/cmd/internal/config"
)

// maxInput limits a line of `policy check -` and `scan`, in bytes.
const maxInput = 4 << 20

// bench opens tools and rules, calls run, and closes them.
func (c *command) bench(run func(b *app.Bench) error) error {
	cfg, err := c.load()
	if err != nil {
		return err
	}
	return c.benchOf(cfg, run)
}

// benchOf does the same with a configuration that has been read.
func (c *command) benchOf(cfg *config.Config, run func(b *app.Bench) error) error {
	if cfg.Log.Level == "info" {
		cfg.Log.Level = "warn" // only the answer matters here
	}
	b, err := app.OpenBench(c.options(cfg))
	if err != nil {
		return err
	}
	return errors.Join(run(b), b.Close())
}

func (c *command) toolsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "tools", Short: "List the tools, or call one without a model", Args: oneOfSubs, RunE: needSub,
	}
	var asJSON bool
	list := &cobra.Command{
		Use: "list", Short: "List the registered tools", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.bench(func(b *app.Bench) error {
				if b.Configured() {
					if err := b.Connect(cmd.Context(), connectLimit); err != nil {
						return err
					}
				}
				return c.listTools(b, asJSON)
			})
		},
	}
	list.Flags().BoolVar(&asJSON, "json", false, "print definitions with their schemas")
	var o app.CallOptions
	call := &cobra.Command{
		Use: "call NAME JSON", Short: "Execute one call through the whole chain: policy, approval, audit",
		Args: cobra.ExactArgs(2),
		Long: "Executes one call in the current directory. What the rules ask about is denied, because nobody can be " +
			"asked here; --yes approves it.\n" +
			"--json prints {\"text\",\"error_category\",\"exit_code\",\"raw\",\"cached\",\"policy_match\"}. Exit " +
			"code 1 when the call failed.",
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Tool, o.Args = args[0], json.RawMessage(args[1])
			return c.bench(func(b *app.Bench) error {
				if strings.Contains(o.Tool, ":") && b.Configured() { // a tool of a server
					if err := b.Connect(cmd.Context(), connectLimit); err != nil {
						return err
					}
				}
				return c.callTool(cmd.Context(), b, o, asJSON)
			})
		},
	}
	call.Flags().BoolVar(&asJSON, "json", false, "print the outcome as JSON")
	call.Flags().BoolVar(&o.Yes, "yes", false, "approve what the rules ask about")
	call.Flags().StringVar(&o.Caller, "caller", "", "caller id, such as telegram:42 (default terminal:local)")
	cmd.AddCommand(list, call)
	return cmd
}

func (c *command) listTools(b *app.Bench, asJSON bool) error {
	type row struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		ReadOnly    bool            `json:"read_only"`
		Schema      json.RawMessage `json:"schema"`
	}
	var rows []row
	for _, d := range b.Definitions() {
		rows = append(rows, row{d.Name, d.Description, d.ReadOnly, d.Schema})
	}
	if asJSON {
		return c.printJSON(rows)
	}
	for _, r := range rows {
		kind := "changes"
		if r.ReadOnly {
			kind = "reads"
		}
		first, _, _ := strings.Cut(r.Description, "\n")
		if _, err := fmt.Fprintf(c.env.Out, "%-18s %-8s %s\n", r.Name, kind, first); err != nil {
			return err
		}
	}
	return nil
}

func (c *command) callTool(ctx context.Context, b *app.Bench, o app.CallOptions, asJSON bool) error {
	out := b.Call(ctx, o)
	var err error
	if asJSON {
		err = c.printJSON(out)
	} else {
		_, err = fmt.Fprintln(c.env.Out, out.Text)
	}
	if err == nil && out.Failed {
		err = errSilent
	}
	return err
}

// errSilent makes the exit code 1 without another message.
var errSilent = errors.New("")

func (c *command) printLine(v any) error {
	enc := json.NewEncoder(c.env.Out)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

func (c *command) checkLines(ctx context.Context, b *app.Bench, caller string) error {
	wrong := 0
	err := c.lines(func(line string) error {
		var in struct {
			Tool string          `json:"tool"`
			Args json.RawMessage `json:"args"`
		}
		err := json.Unmarshal([]byte(line), &in)
		if err == nil && in.Tool == "" {
			err = errors.New(`want {"tool":"…","args":{…}}`)
		}
		var d app.Decision
		if err == nil {
			d, err = b.Check(ctx, app.CallOptions{Tool: in.Tool, Args: in.Args, Caller: caller})
		}
		if err != nil {
			wrong++
			return c.printLine(map[string]string{"error": err.Error()})
		}
		return c.printLine(d)
	})
	if err == nil && wrong > 0 {
		err = fmt.Errorf("%d lines could not be checked", wrong)
	}
	return err
}

// lines reads stdin line by line and skips empty lines.
func (c *command) lines(do func(line string) error) error {
	return c.everyLine(func(line string) error {
		if strings.TrimSpace(line) == "" {
			return nil
		}
		return do(line)
	})
}

// everyLine reads stdin line by line, including empty lines.
func (c *command) everyLine(do func(line string) error) error {
	scanner := bufio.NewScanner(c.env.In)
	scanner.Buffer(make([]byte, 0, 64<<10), maxInput)
	for scanner.Scan() {
		if err := do(scanner.Text()); err != nil {
			return err
		}
	}
	if err := scanner.Err(); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read stdin: %w", err)
	}
	return nil
}
