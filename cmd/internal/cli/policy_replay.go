package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/zephbot/zephbot/cmd/internal/app"
	"github.com/zephbot/zephbot/cmd/internal/config"
	"github.com/zephbot/zephbot/cmd/internal/layout"
	"github.com/zephbot/zephbot/cmd/internal/replay"
	"github.com/zephbot/zephbot/tools/audit"
)

// policyReplay is `policy replay`.
type policyReplay struct {
	c      *command
	mode   string
	old    string
	json   bool
	fail   bool
	groups int
	filter auditFilter
}

func (c *command) policyReplayCommand() *cobra.Command {
	r := &policyReplay{c: c}
	cmd := &cobra.Command{
		Use: "replay [FILE]", Short: "Show which recorded calls another configuration would decide differently",
		Long: "Decides the calls in the audit logs again with the rules of --config, and compares with what was " +
			"recorded. With --old,\n" +
			"the configuration that was in force decides them too, and only what the two decide differently is " +
			"shown: then it does\n" +
			"not matter what the log does not record. Nothing is run, and nothing is asked. docs/policy.md says what " +
			"cannot be known.",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return r.run(cmd.Context(), args) },
	}
	flags := cmd.Flags()
	r.filter.period(flags)
	flags.StringVar(&r.old, "old", "", "the configuration file that was in force; the logs are found with it")
	flags.StringVar(&r.mode, "mode", "", "only the logs of this mode")
	flags.StringVar(&r.filter.caller, "caller", "", "only calls of this person")
	flags.StringVar(&r.filter.tool, "tool", "", "only calls of this tool")
	flags.BoolVar(&r.json, "json", false, "print the result as JSON")
	flags.BoolVar(&r.fail, "fail-on-change", false, "exit code 1 if any call would be decided differently")
	flags.IntVar(&r.groups, "groups", 50, "how many groups of differences are printed")
	return cmd
}

func (r *policyReplay) run(ctx context.Context, args []string) error {
	r.filter.flags.since = cmp.Or(r.filter.flags.since, "7d")
	if err := r.filter.parse(time.Now()); err != nil {
		return err
	}
	if r.groups < 1 {
		return usageError{fmt.Errorf("--groups %d: want 1 or more", r.groups)}
	}
	now, err := r.c.load()
	if err != nil {
		return err
	}
	of := now
	if r.old != "" {
		source := r.c.source()
		source.File = r.old
		if of, err = config.Load(source); err != nil {
			return err
		}
	}
	logs, err := r.c.logsOf(of, args, r.mode)
	if err != nil {
		return err
	}
	return r.c.rules(now, func(rules *app.Rules) error {
		if r.old == "" {
			return r.replay(ctx, logs, replay.New(rules, nil))
		}
		return r.c.rules(of, func(old *app.Rules) error { return r.replay(ctx, logs, replay.New(rules, old)) })
	})
}

func (r *policyReplay) replay(ctx context.Context, logs []layout.Log, rp *replay.Replay) error {
	for _, log := range logs {
		err := audit.Read(ctx, log.Path, r.filter.since, func(l *audit.Line) error {
			if r.filter.match(l) {
				rp.Line(l)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	s := rp.Summary()
	var err error
	if r.json {
		err = r.c.printJSON(s)
	} else {
		err = r.print(s)
	}
	if err == nil && r.fail && s.Changed > 0 {
		err = errSilent
	}
	return err
}

func (r *policyReplay) print(s replay.Summary) error {
	p := printer{out: r.c.env.Out}
	p.printf(
		"%d calls since %s: %d decided alike, %d differently",
		s.Calls, r.filter.since.Format("2006-01-02 15:04"), s.Same, s.Changed,
	)
	undecided := 0
	for _, n := range s.Undecided {
		undecided += n
	}
	p.printf(", %d that cannot be decided exactly\n", undecided)
	for _, why := range sortedKeys(s.Undecided) {
		p.printf("  %6d× %s\n", s.Undecided[why], why)
	}
	if s.Broken > 0 {
		p.printf("%d lines are broken and were left out; zephbot audit verify names them\n", s.Broken)
	}
	for i, d := range s.Differences {
		if i == r.groups {
			p.printf("\n… and %d more groups; --groups or --json shows them\n", len(s.Differences)-i)
			break
		}
		p.printf("\n%6d× %s  %s\n", d.Count, oneLine(d.Tool), shortened(oneLine(d.What), 120))
		p.printf(
			"        %-5s → %-5s  %s → %s\n",
			d.Old.Effect, d.New.Effect, oneLine(d.Old.Rule), oneLine(cmp.Or(d.New.Rule, d.New.Reason)),
		)
		p.printf("        first by %s, %s to %s\n", oneLine(d.Caller), local(d.First), local(d.Last))
	}
	if s.Beyond > 0 {
		p.printf("\n%d more calls differ in other ways\n", s.Beyond)
	}
	return p.err
}

func sortedKeys(m map[replay.Unsure]int) []replay.Unsure {
	var keys []replay.Unsure
	for key := range m {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b replay.Unsure) int { return cmp.Or(m[b]-m[a], cmp.Compare(a, b)) })
	return keys
}
