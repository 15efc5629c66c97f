package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/zephbot/zephbot/cmd/internal/layout"
	"github.com/zephbot/zephbot/tools/audit"
)

// How often following looks for lines, and for logs of processes that began later.
const (
	followEvery = 250 * time.Millisecond
	searchEvery = 2 * time.Second
)

// maxTail limits -n: the lines are held in memory.
const maxTail = 1_000_000

// auditTail is `audit tail`.
type auditTail struct {
	c      *command
	args   []string
	mode   string
	lines  int
	follow bool
	json   bool
	filter auditFilter
	table  auditTable
}

func (c *command) tailCommand(mode *string) *cobra.Command {
	t := &auditTail{c: c}
	cmd := &cobra.Command{
		Use: "tail [FILE]", Short: "Print the last lines of all logs: who did what when; -f waits for more",
		Long: "Prints the last lines of the audit logs of all modes and processes in the order of their times, as " +
			"a table or\n" +
			"with --json as they are. -f also prints lines that are added, over rotation and with processes that " +
			"begin later,\n" +
			"until Ctrl-C.",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			t.args, t.mode = args, *mode
			return t.run(cmd.Context())
		},
	}
	flags := cmd.Flags()
	flags.IntVarP(&t.lines, "lines", "n", 20, "how many lines")
	flags.BoolVarP(&t.follow, "follow", "f", false, "wait for more lines")
	flags.BoolVar(&t.json, "json", false, "print the lines as they are")
	flags.BoolVar(&t.table.all, "all", false, "also lines about calls that begin and files that continue")
	t.filter.add(flags)
	return cmd
}

func (t *auditTail) run(ctx context.Context) error {
	if t.lines < 0 || t.lines > maxTail || t.lines == 0 && !t.follow {
		return usageError{fmt.Errorf("--lines %d: want 1 to %d", t.lines, maxTail)}
	}
	now := time.Now()
	if err := t.filter.parse(now); err != nil {
		return err
	}
	t.table.out, t.table.zone, t.table.colour = t.c.env.Out, now.Location(), t.c.coloured()
	logs, err := t.c.auditLogs(t.args, t.mode)
	if err != nil && (!t.follow || !errors.Is(err, errNoLog)) {
		return err
	}
	var followers []*audit.Follower
	defer func() {
		for _, f := range followers {
			_ = f.Close() // read only
		}
	}()
	if t.follow { // first, so that no line is between
		for _, log := range logs {
			f, err := audit.Follow(log.Path, false)
			if err != nil {
				return err
			}
			followers = append(followers, f)
		}
	}
	shown, err := t.last(ctx, logs)
	if err != nil || !t.follow {
		return err
	}
	return t.wait(ctx, logs, &followers, shown)
}

// shows reports whether a line is printed.
func (t *auditTail) shows(l *audit.Line) bool {
	if !t.json && !t.table.all && l.Broken == "" && (l.Kind == "started" || l.Kind == "continue") {
		return false
	}
	return t.filter.match(l)
}

// last prints the last lines of all logs, and returns which ones.
func (t *auditTail) last(ctx context.Context, logs []layout.Log) (map[string]bool, error) {
	var list []audit.Line
	for _, log := range logs {
		part, err := audit.Last(ctx, log.Path, t.lines, t.filter.since, t.shows)
		if err != nil {
			return nil, err
		}
		list = append(list, timed(part)...)
	}
	slices.SortStableFunc(list, func(a, b audit.Line) int { return a.Time.Compare(b.Time) })
	shown := map[string]bool{}
	for _, l := range list[max(0, len(list)-t.lines):] {
		shown[l.Hash] = true
		if err := t.print(&l); err != nil {
			return nil, err
		}
	}
	return shown, nil
}

// timed gives lines that say no time that of the line before, so that they stay where they are.
func timed(list []audit.Line) []audit.Line {
	var at time.Time
	for i := range list {
		if list[i].Time.IsZero() {
			list[i].Time = at
		}
		at = list[i].Time
	}
	return list
}

func (t *auditTail) print(l *audit.Line) error {
	if !t.json {
		return t.table.line(l)
	}
	if l.Broken != "" && !bytes.HasPrefix(l.Raw, []byte(`{"timestamp":`)) { // what it is cannot be known
		_, err := fmt.Fprintln(t.c.env.Err, oneLine(fmt.Sprintf("%s:%d: %s", l.File, l.Number, l.Broken)))
		return err
	}
	_, err := fmt.Fprintf(t.c.env.Out, "%s\n", l.Raw)
	return err
}

// wait prints what is added until ctx ends.
func (t *auditTail) wait(
	ctx context.Context, logs []layout.Log, followers *[]*audit.Follower, shown map[string]bool,
) error {
	known := map[string]bool{}
	for _, log := range logs {
		known[log.Path] = true
	}
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	searched := time.Now()
	for {
		if err := t.added(*followers, shown); err != nil {
			return err
		}
		if shown = nil; time.Since(searched) > searchEvery && len(t.args) == 0 {
			searched = time.Now()
			logs, err := t.c.auditLogs(t.args, t.mode)
			if err != nil && !errors.Is(err, errNoLog) {
				return err
			}
			for _, log := range logs {
				if known[log.Path] {
					continue
				}
				f, err := audit.Follow(log.Path, true)
				if err != nil {
					return err
				}
				known[log.Path], *followers = true, append(*followers, f)
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// added prints what was added to all logs since the last time, in the order of the times.
func (t *auditTail) added(followers []*audit.Follower, shown map[string]bool) error {
	var list []audit.Line
	for _, f := range followers {
		var part []audit.Line
		if err := f.Next(func(l *audit.Line) { part = append(part, *l) }); err != nil {
			return err
		}
		list = append(list, timed(part)...)
	}
	slices.SortStableFunc(list, func(a, b audit.Line) int { return cmp.Compare(a.Time.UnixNano(), b.Time.UnixNano()) })
	for _, l := range list {
		if !t.shows(&l) || shown[l.Hash] && l.Hash != "" {
			continue
		}
		if err := t.print(&l); err != nil {
			return err
		}
	}
	return nil
}
