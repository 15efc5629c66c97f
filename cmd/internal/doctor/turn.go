package doctor

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/spend"
	"github.com/zephbot/zephbot/bot/learnt"
	"github.com/zephbot/zephbot/cmd/internal/app"
	"github.com/zephbot/zephbot/cmd/internal/config"
	"github.com/zephbot/zephbot/cmd/internal/providers"
	"github.com/zephbot/zephbot/cmd/internal/upkeep"
)

// turns gives each provider one small turn with all tools, and says what its server refused, what was learnt by that,
// and what it cost. The turns begin without what the service has learnt: what it shows is what the server does today.
func (d *doctor) turns(ctx context.Context) []Row {
	offered, err := d.offered(ctx)
	if err != nil {
		return []Row{
			warn("turn", "the tools cannot be opened: %s", withoutMark(err))("see the rows config and sandbox"),
		}
	}
	known := d.known(ctx)
	rows := make([][]Row, len(d.c.LLM.Providers))
	var running sync.WaitGroup
	for i := range d.c.LLM.Providers {
		running.Go(func() { rows[i] = d.turn(ctx, i, &d.c.LLM.Providers[i], offered, known) })
	}
	running.Wait()
	var list []Row
	for _, more := range rows {
		list = append(list, more...)
	}
	return list
}

// offered returns all tools, as a turn would offer them. They are built in a directory of their own, so that a running
// service does not notice it.
func (d *doctor) offered(ctx context.Context) ([]llm.Tool, error) {
	b, err := app.OpenTrial(ctx, d.opts.Options)
	if b != nil {
		defer func() { _ = b.Close() }() // what it began is a temporary directory
	}
	if err != nil {
		return nil, err
	}
	if b.Configured() {
		_ = b.Connect(ctx, checkWithin) // each server has a row of its own
	}
	var list []llm.Tool
	for _, t := range b.Usable() {
		list = append(list, llm.Tool{Name: t.Name, Description: t.Description, Schema: t.Schema})
	}
	return list, nil
}

// known returns what the service has learnt of the servers of models; nothing if its database cannot be read.
func (d *doctor) known(ctx context.Context) map[string]string {
	list := map[string]string{}
	entries, err := upkeep.LearntIn(ctx, d.c, d.dir, d.c.Database.URL.Reveal(), d.opts.Now())
	if err != nil {
		return list // the row database says so
	}
	for _, e := range entries {
		list[e.Provider+" "+e.Model] = learnt.Describe(e.Learnt)
	}
	return list
}

// maxRefusals bounds how many refusals are shown of one turn.
const maxRefusals = 6

// turn gives one provider a turn.
func (d *doctor) turn(
	ctx context.Context, i int, p *config.Provider, offered []llm.Tool, known map[string]string,
) []Row {
	about := "turn " + p.Name
	if p.Model == "" && p.Type != "offline" {
		return nil // it serves no conversations
	}
	if p.BaseURL == "" && p.Type != "offline" {
		return []Row{placeless(about)}
	}
	var mu sync.Mutex
	var refusals []string
	m := d.providers(func(words string) {
		mu.Lock()
		defer mu.Unlock()
		refusals = append(refusals, words)
	})
	provider, err := m.NewProvider(*p)
	if err != nil {
		return []Row{fail(about, "%v", err)(fmt.Sprintf("correct llm.providers[%d]", i))}
	}
	started := time.Now()
	res, err := spend.TryTools(ctx, provider, offered)
	took := time.Since(started).Round(10 * time.Millisecond)
	text := ""
	if n := len(refusals); n > 0 {
		text = fmt.Sprintf("; %d requests were refused: %s", n, strings.Join(refusals[:min(n, maxRefusals)], " | "))
	}
	l := m.Learnt.Recall(p.Name, p.Model)
	if what := learnt.Describe(l); what != "" {
		text += "; learnt: " + what
	}
	if what := known[p.Name+" "+p.Model]; what != "" {
		text += "; the service knows: " + what
	}
	if err != nil {
		trouble := providers.TroubleOf(p, err)
		return []Row{fail(about, "%s%s", trouble.Text, text)(trouble.Cure(d.c, i, p))}
	}
	cost := fmt.Sprintf("$%.6f", res.USD)
	if _, priced := providers.TariffOf(p); !priced {
		cost = "at a price that nobody knows"
	}
	row := Row{Check: about, Status: OK, Text: fmt.Sprintf("%s answers with %d tools in %s; %d tokens in, %d out, %s%s",
		res.Model, len(offered), took, res.Usage.Input, res.Usage.Output, cost, text)}
	if l != nil && len(l.Aside) > 0 {
		var names []string
		for _, a := range l.Aside {
			names = append(names, a.Tool)
		}
		row.Status = Warn
		row.Cure = "correct the definitions of these tools, or use another model for them: " + strings.Join(names, ", ")
	}
	return []Row{row}
}
