package cli

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/zephbot/zephbot/policy/nearest"
	"github.com/zephbot/zephbot/tools/audit"
)

// auditFilter says which lines of the audit logs are wanted.
type auditFilter struct {
	session, turn, tool, caller string
	results                     []string
	since, until                time.Time
	grep                        *regexp.Regexp

	flags struct{ result, since, until, grep string }
}

// add adds the flags.
func (f *auditFilter) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.session, "session", "", "only this session")
	flags.StringVar(&f.turn, "turn", "", "only this turn")
	flags.StringVar(&f.tool, "tool", "", `only this tool; * stands for anything, such as "github:*"`)
	flags.StringVar(&f.caller, "caller", "", "only this person with their sub-agents, such as telegram:42")
	flags.StringVar(
		&f.flags.result, "result", "", "only these results, with commas: "+strings.Join(auditResults(), ", "),
	)
	f.period(flags)
	flags.StringVar(&f.flags.grep, "grep", "", "only lines that this regular expression finds something in")
}

// period adds the flags --since and --until.
func (f *auditFilter) period(flags *pflag.FlagSet) {
	flags.StringVar(&f.flags.since, "since", "", "from this time on: 7d, 12h, 2026-03-04, \"2026-03-04 15:00\"")
	flags.StringVar(&f.flags.until, "until", "", "before this time, in the same forms")
}

// auditResults lists the results of calls.
func auditResults() []string {
	return []string{"success", "blocked", "error", "timeout", "cancelled", "rollback"}
}

// parse reads the flags. Its error is a usage error.
func (f *auditFilter) parse(now time.Time) error {
	var errs []error
	var err error
	if f.flags.result != "" {
		for result := range strings.SplitSeq(f.flags.result, ",") {
			result = strings.TrimSpace(result)
			if !slices.Contains(auditResults(), result) {
				text := fmt.Sprintf("--result %q: there are %s", result, strings.Join(auditResults(), ", "))
				if near, ok := nearest.Nearest(result, auditResults()); ok {
					text = fmt.Sprintf("--result %q: did you mean %s?", result, near)
				}
				errs = append(errs, errors.New(text))
			}
			f.results = append(f.results, result)
		}
	}
	if _, err := path.Match(f.tool, ""); err != nil {
		errs = append(errs, fmt.Errorf("--tool %q: %w", f.tool, err))
	}
	if f.since, err = when(f.flags.since, now); err != nil {
		errs = append(errs, fmt.Errorf("--since %w", err))
	}
	if f.until, err = when(f.flags.until, now); err != nil {
		errs = append(errs, fmt.Errorf("--until %w", err))
	}
	if !f.since.IsZero() && !f.until.IsZero() && !f.since.Before(f.until) {
		errs = append(errs, fmt.Errorf("--since %s is not before --until %s", f.flags.since, f.flags.until))
	}
	if f.flags.grep != "" {
		if f.grep, err = regexp.Compile(f.flags.grep); err != nil {
			errs = append(errs, fmt.Errorf("--grep: %w", err))
		}
	}
	if len(errs) > 0 {
		return usageError{errors.Join(errs...)}
	}
	return nil
}

// span matches a number of weeks, days, hours or minutes.
var span = regexp.MustCompile(`^(\d{1,6})(w|d|h|m)$`)

// when reads a point in time: a span before now, or a date in the local zone. The zero time is "".
func when(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if parts := span.FindStringSubmatch(text); parts != nil {
		n, err := strconv.Atoi(parts[1])
		if err != nil {
			return time.Time{}, err
		}
		switch parts[2] {
		case "w":
			return now.AddDate(0, 0, -7*n), nil
		case "d":
			return now.AddDate(0, 0, -n), nil
		case "h":
			return now.Add(-time.Duration(n) * time.Hour), nil
		default:
			return now.Add(-time.Duration(n) * time.Minute), nil
		}
	}
	for _, form := range []string{
		time.RFC3339Nano, "2006-01-02 15:04:05", "2006-01-02 15:04", "2006-01-02T15:04:05", "2006-01-02T15:04",
		time.DateOnly,
	} {
		if at, err := time.ParseInLocation(form, text, now.Location()); err == nil {
			return at, nil
		}
	}
	return time.Time{}, fmt.Errorf(
		"%q is no time: want a span such as 7d, 12h or 30m, or a date such as 2026-03-04 or \"2026-03-04 15:00\"", text,
	)
}

// match reports whether a line is wanted. A broken line says nothing reliable: it is wanted unless it is outside of the
// period, or --grep finds nothing in it.
func (f *auditFilter) match(l *audit.Line) bool {
	if !l.Time.IsZero() && (l.Time.Before(f.since) || !f.until.IsZero() && !l.Time.Before(f.until)) {
		return false
	}
	if f.grep != nil && !f.grep.Match(l.Raw) {
		return false
	}
	return l.Broken != "" || f.about(l)
}

// about reports whether a line is about the calls that are wanted.
func (f *auditFilter) about(l *audit.Line) bool {
	switch {
	case f.session != "" && l.Session != f.session,
		f.turn != "" && l.Turn != f.turn, f.tool != "" && !like(f.tool, l.Tool),
		f.caller != "" && l.Caller != f.caller && !strings.HasPrefix(l.Caller, f.caller+"/"),
		len(f.results) > 0 && !slices.Contains(f.results, l.Result):
		return false
	}
	return true
}

// like matches a name with a pattern, in which * also covers slashes.
func like(pattern, name string) bool {
	const slash = "\x01"
	ok, err := path.Match(strings.ReplaceAll(pattern, "/", slash), strings.ReplaceAll(name, "/", slash))
	return err == nil && ok
}
