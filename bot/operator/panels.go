package operator

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/approval"
	"github.com/zephbot/zephbot/bot/quota"
)

// approvalRow is a question that waits for a decision. What it would run is a text of the conversation, and not shown.
type approvalRow struct {
	ID      string         `json:"question,omitempty"` // for a decision; "" = it is decided in the chat only
	Short   string         `json:"short"`
	Session bot.SessionKey `json:"session"`
	Chat    string         `json:"chat"`
	Title   string         `json:"title,omitempty"` // of the chat, or the name of its person
	Caller  string         `json:"caller"`
	Name    string         `json:"name,omitempty"`
	Tool    string         `json:"tool"`
	Since   time.Time      `json:"since"`
	Expires time.Time      `json:"expires,omitzero"`
	Votes   int            `json:"votes"`
	Needed  int            `json:"needed"`
}

func (p *Page) listApprovals(ctx context.Context, _ *visitor, _ *http.Request) (any, error) {
	open, err := p.deps.Store.OpenApprovals(ctx, "")
	if err != nil {
		return nil, err
	}
	list, all, names := []approvalRow{}, 0, p.deps.Names()
	for i := range open {
		a := &open[i]
		if a.Place.Channel != p.deps.Channel || a.Place.Bot != p.deps.Bot {
			continue
		}
		if all++; len(list) < PageSize {
			id := a.ID
			if p.deps.Apply == nil || approval.Asks(a) {
				id = ""
			}
			list = append(list, approvalRow{
				ID:      id,
				Short:   a.Short,
				Session: a.Session,
				Chat:    a.Place.Chat,
				Title:   names[p.deps.Channel+":"+a.Place.Chat],
				Caller:  a.Caller,
				Name:    cmp.Or(names[a.Caller], approval.AskerName(a)),
				Tool:    a.Tool,
				Since:   a.Created,
				Expires: a.Expires,
				Votes:   len(a.Votes),
				Needed:  a.Needed,
			})
		}
	}
	return map[string]any{"approvals": list, "all": all}, nil
}

// serverRow is an MCP server.
type serverRow struct {
	ID        string    `json:"id"`
	Transport string    `json:"transport"`
	Trust     string    `json:"trust"`
	State     string    `json:"state"`
	Problem   string    `json:"problem,omitempty"`
	Since     time.Time `json:"since,omitzero"`
	Attempts  int       `json:"attempts,omitempty"`
	Dynamic   bool      `json:"dynamic,omitempty"` // added in the chat
	Name      string    `json:"name,omitempty"`
	Tools     []string  `json:"tools"`
	Waiting   []string  `json:"waiting"` // tools that wait to be accepted
	Warnings  []string  `json:"warnings"`
}

func (p *Page) listServers(context.Context, *visitor, *http.Request) (any, error) {
	list := []serverRow{}
	if p.deps.Servers == nil {
		return map[string]any{"servers": list}, nil
	}
	for _, s := range p.deps.Servers() {
		list = append(list, serverRow{
			ID:        s.ID,
			Transport: s.Transport,
			Trust:     string(s.Trust),
			State:     string(s.State),
			Problem:   s.Problem,
			Since:     s.Since,
			Attempts:  s.Attempts,
			Dynamic:   s.Dynamic,
			Name:      s.Name,
			Tools:     append([]string{}, s.Tools...),
			Waiting:   append(append([]string{}, s.Withdrawn...), s.Fresh...),
			Warnings:  append([]string{}, s.Warnings...),
		})
	}
	return map[string]any{"servers": list}, nil
}

// chartBar is how much of a limit is used.
type chartBar struct {
	Level  string    `json:"level"`
	Scope  string    `json:"scope"`
	Name   string    `json:"name,omitempty"`
	Unit   string    `json:"unit"`
	Window string    `json:"window"`
	Used   int64     `json:"used"`
	Limit  int64     `json:"limit"`
	Fresh  time.Time `json:"fresh"`
	By     string    `json:"by,omitempty"`
	At     time.Time `json:"at,omitzero"`
	Set    bool      `json:"set,omitempty"` // the limit can be changed here
}

func (p *Page) listQuotas(ctx context.Context, _ *visitor, r *http.Request) (any, error) {
	page, err := queryNumber(r, "page")
	if err != nil {
		return nil, err
	}
	if p.deps.Bars == nil {
		return map[string]any{"bars": []chartBar{}}, nil
	}
	sums, err := p.deps.Store.Sums(ctx, p.deps.MonthBegan())
	if err != nil {
		return nil, err
	}
	bars, err := p.deps.Bars(ctx, sums)
	if err != nil {
		return nil, err
	}
	list, names := []chartBar{}, p.deps.Names()
	from := min(int(min(page, mostLanes))*PageSize, len(bars))
	for _, b := range bars[from:min(from+PageSize, len(bars))] {
		list = append(list, chartBar{
			Level:  b.Level,
			Scope:  string(b.Scope),
			Name:   names[strings.TrimPrefix(b.Level, "user/")],
			Unit:   b.Unit,
			Window: string(b.Window),
			Used:   b.Used,
			Limit:  b.Limit,
			Fresh:  b.Fresh,
			By:     cmp.Or(b.Name, b.By),
			At:     b.At,
			Set:    p.settable(&b),
		})
	}
	return map[string]any{"bars": list, "page": page, "all": len(bars), "more": from+PageSize < len(bars)}, nil
}

func (p *Page) searchAudit(ctx context.Context, _ *visitor, r *http.Request) (any, error) {
	query := r.URL.Query()
	q := AuditQuery{
		Person: strings.TrimSpace(query.Get("person")),
		Tool:   strings.TrimSpace(query.Get("tool")),
		Result: query.Get("result"),
		Next:   query.Get("next"),
		Limit:  PageSize,
	}
	for name, at := range map[string]*time.Time{"since": &q.Since, "until": &q.Until} {
		if text := query.Get(name); text != "" {
			parsed, err := time.Parse(time.RFC3339, text)
			if err != nil {
				return nil, wrong{http.StatusBadRequest, name + " is no time such as 2026-03-01T09:00:00Z"}
			}
			*at = parsed
		}
	}
	if p.deps.Audit == nil {
		return map[string]any{"lines": []any{}, "off": true}, nil
	}
	page, err := p.deps.Audit(ctx, q)
	if page.Lines == nil {
		page.Lines = []any{}
	}
	out := map[string]any{"lines": page.Lines, "next": page.Next, "names": p.namesIn(page.Lines)}
	if !page.Back.IsZero() {
		out["back"] = page.Back
	}
	if err != nil {
		if len(page.Lines) == 0 {
			return nil, wrong{http.StatusConflict, err.Error()}
		}
		out["problem"] = err.Error()
	}
	return out, nil
}

// namesIn returns the names of the people whom lines name by their caller ids.
func (p *Page) namesIn(lines []any) map[string]string {
	names := map[string]string{}
	raw, err := json.Marshal(lines)
	if err != nil {
		return names // the answer with the lines fails for the same reason
	}
	for caller, name := range p.deps.Names() {
		if bytes.Contains(raw, []byte(caller)) {
			names[caller] = name
		}
	}
	return names
}

// dayRow is what one day has cost.
type dayRow struct {
	Day    string  `json:"day"`
	Turns  int64   `json:"turns"`
	Tokens int64   `json:"tokens"`
	USD    float64 `json:"usd"`
}

// spenderRow is what one person or provider has cost.
type spenderRow struct {
	ID     string  `json:"id"`
	Name   string  `json:"name,omitempty"`
	Turns  int64   `json:"turns,omitempty"`
	Tokens int64   `json:"tokens,omitempty"`
	USD    float64 `json:"usd"`
}

const (
	mostDays  = 400
	mostSpend = 10
	million   = 1e6
)

// showCosts adds the charges up by day, for the whole bot, and by person.
func (p *Page) showCosts(ctx context.Context, _ *visitor, r *http.Request) (any, error) {
	days, err := queryNumber(r, "days")
	if err != nil {
		return nil, err
	}
	if days == 0 || days > mostDays {
		days = 30
	}
	now := p.deps.Now().UTC()
	sums, err := p.deps.Store.Sums(ctx, now.AddDate(0, 0, int(1-days)).Format(time.DateOnly))
	if err != nil {
		return nil, err
	}
	byDay, people := map[string]*dayRow{}, map[string]*spenderRow{}
	list := []dayRow{}
	for _, c := range sums {
		kind, id, _ := strings.Cut(c.Scope, "/")
		switch {
		case kind == "bot" && id == p.deps.Channel+"/"+p.deps.Bot:
			if byDay[c.Day] == nil {
				byDay[c.Day] = &dayRow{Day: c.Day}
			}
			d := byDay[c.Day]
			add(c, &d.Turns, &d.Tokens, &d.USD)
		case kind == "user":
			if people[id] == nil {
				people[id] = &spenderRow{ID: id}
			}
			s := people[id]
			add(c, &s.Turns, &s.Tokens, &s.USD)
		}
	}
	for n := range int(days) {
		day := now.AddDate(0, 0, n+1-int(days)).Format(time.DateOnly)
		d := dayRow{Day: day}
		if byDay[day] != nil {
			d = *byDay[day]
		}
		list = append(list, d)
	}
	return map[string]any{
		"days":      list,
		"people":    topSpenders(people, p.deps.Names()),
		"providers": p.providers(),
		"priceless": append([]string{}, p.deps.Priceless...),
	}, nil
}

func add(c bot.Charge, turns, tokens *int64, usd *float64) {
	switch c.Unit {
	case quota.Turns:
		*turns += c.N
	case quota.Tokens:
		*tokens += c.N
	case quota.USD:
		*usd += float64(c.N) / million
	}
}

// topSpenders returns who has cost most.
func topSpenders(all map[string]*spenderRow, names map[string]string) []spenderRow {
	list := []spenderRow{}
	for _, s := range all {
		s.Name = names[s.ID]
		list = append(list, *s)
	}
	slices.SortFunc(list, func(a, b spenderRow) int {
		return cmp.Or(
			cmp.Compare(b.USD, a.USD),
			cmp.Compare(b.Tokens, a.Tokens),
			cmp.Compare(b.Turns, a.Turns),
			cmp.Compare(a.ID, b.ID),
		)
	})
	return list[:min(mostSpend, len(list))]
}

func (p *Page) providers() []spenderRow {
	list := []spenderRow{}
	if p.deps.Spent == nil {
		return list
	}
	for name, usd := range p.deps.Spent() {
		list = append(list, spenderRow{ID: name, USD: usd})
	}
	slices.SortFunc(list, func(a, b spenderRow) int {
		return cmp.Or(cmp.Compare(b.USD, a.USD), cmp.Compare(a.ID, b.ID))
	})
	return list
}
