// Package doctor checks everything that the service depends on.
package doctor

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/cmd/internal/app"
	"github.com/zephbot/zephbot/cmd/internal/config"
	"github.com/zephbot/zephbot/persistence"
	"github.com/zephbot/zephbot/policy/redact"
)

// Status is the result of one check.
type Status string

// The results: it works; it works, but somebody should look at it; it does not work.
const (
	OK   Status = "ok"
	Warn Status = "warn"
	Fail Status = "fail"
)

// Row is one finding (contract: doctor --json).
type Row struct {
	Check  string `json:"check"`
	Status Status `json:"status"`
	Text   string `json:"text"`
	Cure   string `json:"cure"` // what to do; "" with ok
}

// Limits of the checks: of each, of a turn of a model with what is learnt by it, and of all of them, which run side by
// side.
const (
	checkWithin = 10 * time.Second
	turnWithin  = 2 * time.Minute
	allWithin   = 30 * time.Second
)

// Options are the options of Run.
type Options struct {
	app.Options // Log is ignored: everything is in the rows
	// Problems and Warnings are what `config check` finds.
	Problems, Warnings config.Problems
	Offline            bool          // nothing that needs the network
	Each               time.Duration // limit of one check; 0 = checkWithin
	// Model: each provider gets one small turn with all tools, besides the other checks.
	Model bool
}

// Run checks everything that the service depends on, and returns a row for each finding. It works with a configuration
// that has mistakes, offline, and while the service runs, which does not notice it. It changes nothing and tells
// nobody. Each provider of a model is asked for one word at most. No row contains a secret.
func Run(ctx context.Context, opts Options) []Row {
	opts.Log = zerolog.Nop()
	if opts.Now == nil {
		opts.Now = time.Now
	}
	d := &doctor{opts: opts, c: opts.Config, dir: opts.Config.Path(opts.Config.DataDir)}
	d.holder, d.running, _ = persistence.Holder(d.dir) // what cannot be read is reported with data_dir
	limit := allWithin
	if opts.Model {
		limit += turnWithin
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	rows := d.all(ctx, d.checks())
	hide := d.redactor()
	for i := range rows {
		rows[i].Text, rows[i].Cure = hide(rows[i].Text), hide(rows[i].Cure)
	}
	return rows
}

// doctor is one run.
type doctor struct {
	opts    Options
	c       *config.Config
	dir     string // data_dir
	running bool   // a process works in data_dir
	holder  string // which one
}

// probe is a group of rows.
type probe struct {
	name   string        // of its row if it takes too long
	online bool          // it needs the network
	within time.Duration // its limit; 0 = that of all checks
	run    func(ctx context.Context) []Row
}

// checks are all groups, in the order in which they are shown.
func (d *doctor) checks() []probe {
	list := []probe{
		{name: "config", run: d.config},
		{name: "data_dir", run: d.place},
		{name: "service", run: d.service},
		{name: "database", online: d.c.Database.URL != "", run: d.database},
		{name: "quotas", online: d.c.Database.URL != "", run: d.limits},
		{name: "redis", online: d.c.Redis.URL != "", run: d.redis},
		{name: "qdrant", online: true, run: d.qdrant},
		{name: "telegram", online: true, run: d.telegram},
	}
	for i := range d.c.LLM.Providers {
		p := &d.c.LLM.Providers[i]
		list = append(list, probe{
			name:   "model " + p.Name,
			online: p.Type != "offline",
			run:    func(ctx context.Context) []Row { return d.model(ctx, i, p) },
		})
	}
	if d.opts.Model {
		list = append(list, probe{name: "turn", online: true, within: turnWithin, run: d.turns})
	}
	return append(list,
		probe{name: "model", run: d.noModel},
		probe{name: "mcp", online: true, run: d.servers},
		probe{name: "sandbox", run: d.sandbox},
		probe{name: "previews", run: d.previews},
		probe{name: "programs", run: d.programs},
		probe{name: "toolchains", run: d.toolchains},
		probe{name: "audit", online: d.c.Database.URL != "", run: d.audit},
		probe{name: "skills", run: d.skills},
		probe{name: "workspaces", run: d.workspaces},
		probe{name: "ports", run: d.ports},
		probe{name: "tracing", online: true, run: d.tracing},
		probe{name: "time zones", run: d.zones},
	)
}

// all runs the checks side by side. One that does not end in time has a row that says so, and is left
// alone: it ends with the program.
func (d *doctor) all(ctx context.Context, list []probe) []Row {
	results := make([]chan []Row, len(list))
	var running sync.WaitGroup
	for i, one := range list {
		results[i] = make(chan []Row, 1)
		if one.online && d.opts.Offline {
			results[i] <- nil
			continue
		}
		running.Go(func() {
			within, cancel := context.WithTimeout(ctx, d.limit(one))
			defer cancel()
			results[i] <- one.run(within)
		})
	}
	started := time.Now()
	var rows []Row
	for i, one := range list {
		select {
		case found := <-results[i]:
			rows = append(rows, found...)
			continue
		default:
		}
		limit, cancel := context.WithDeadline(ctx, started.Add(d.limit(one)+time.Second))
		select {
		case found := <-results[i]:
			rows = append(rows, found...)
		case <-limit.Done():
			rows = append(rows, fail(one.name, "gave no answer within %s", d.limit(one))(
				"look at what it depends on, and run zephbot doctor again",
			))
		}
		cancel()
	}
	return rows
}

// limit is how long a check may take.
func (d *doctor) limit(one probe) time.Duration { return cmp.Or(d.opts.Each, one.within, checkWithin) }

// ok, warn and fail make a row; the latter two take what to do about it.
func ok(check, format string, args ...any) []Row {
	return []Row{{Check: check, Status: OK, Text: fmt.Sprintf(format, args...)}}
}

func warn(check, format string, args ...any) func(cure string) Row {
	return func(cure string) Row {
		return Row{Check: check, Status: Warn, Text: fmt.Sprintf(format, args...), Cure: cure}
	}
}

func fail(check, format string, args ...any) func(cure string) Row {
	return func(cure string) Row {
		return Row{Check: check, Status: Fail, Text: fmt.Sprintf(format, args...), Cure: cure}
	}
}

// redactor returns a function that removes everything secret from a text, and puts it on one line.
func (d *doctor) redactor() func(string) string {
	list := d.c.Credentials()
	for _, v := range d.c.Tracing.Headers {
		list = append(list, v.Reveal())
	}
	for _, s := range d.c.MCP.Servers {
		for _, v := range s.Env {
			list = append(list, v.Reveal())
		}
		for _, v := range s.Headers {
			list = append(list, v.Reveal())
		}
	}
	r := redact.New(slices.DeleteFunc(list, func(s string) bool { return len(s) < 6 }))
	return func(text string) string {
		return strings.Join(strings.Fields(r.String(text)), " ")
	}
}

// config lists what `config check` finds.
func (d *doctor) config(context.Context) []Row {
	var rows []Row
	for _, p := range d.opts.Problems {
		rows = append(rows, d.problem(Fail, p))
	}
	for _, p := range d.opts.Warnings {
		rows = append(rows, d.problem(Warn, p))
	}
	if len(rows) > 0 {
		return rows
	}
	file := d.c.File
	if file == "" {
		return ok("config", "there is no config file: defaults and environment variables")
	}
	return ok("config", "%s has no mistakes", file)
}

// problem makes a row of a problem, whose text ends with what to do.
func (d *doctor) problem(status Status, p config.Problem) Row {
	row := Row{
		Check:  "config",
		Status: status,
		Text:   p.String(),
		Cure:   "correct it there; docs/config.md explains every key",
	}
	if i := strings.LastIndex(row.Text, "; "); i > 0 {
		row.Text, row.Cure = row.Text[:i], row.Text[i+2:]
	}
	return row
}

// service says which process works in data_dir.
func (d *doctor) service(context.Context) []Row {
	if d.running {
		return ok("service", "it runs (%s)", cmp.Or(d.holder, "its process is not known"))
	}
	return ok("service", "nothing runs in %s", d.dir)
}
