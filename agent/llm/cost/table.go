package cost

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

//go:embed table.jsonl
var vendored []byte

//go:embed own.jsonl
var own []byte

// row is a line of a table: where it is from, a provider, or a model of the provider before it.
type row struct {
	Source  string `json:"source"`
	Version string `json:"version"`
	Date    string `json:"date"`

	Provider string   `json:"provider"`
	API      string   `json:"api"`   // pattern of the beginning of base URLs
	Names    *rule    `json:"names"` // of models that are only this provider's
	Also     []string `json:"also"`  // providers whose models it has at their prices

	Model  string      `json:"model"`
	Match  *rule       `json:"match"` // nil = the model, with a date or -latest or without
	Window int         `json:"window"`
	Output int         `json:"output"`
	Prices []ratesJSON `json:"prices"`
}

// ratesJSON are the prices of a time as a table has them.
type ratesJSON struct {
	From      string `json:"from"`   // date
	Begins    string `json:"begins"` // time of the day
	Ends      string `json:"ends"`
	In        *Steps `json:"in"`
	Read      *Steps `json:"read"`
	Write     *Steps `json:"write"`
	Out       *Steps `json:"out"`
	Minute    *Steps `json:"minute"`
	AudioHour *Steps `json:"audio_hour"`
	Thousand  *Steps `json:"thousand"` // requests
	Chars     *Steps `json:"chars"`    // a million characters that are spoken
	Image     *Steps `json:"image"`    // a picture; the sizes are pixels
}

// UnmarshalJSON implements json.Unmarshaler: a number, or a list of the first price and pairs of a size and a price.
func (s *Steps) UnmarshalJSON(raw []byte) error {
	if len(raw) == 0 || raw[0] != '[' {
		return json.Unmarshal(raw, &s.base) //nolint:wrapcheck // names the place
	}
	var list []json.RawMessage
	if err := json.Unmarshal(raw, &list); err != nil || len(list) == 0 {
		return fmt.Errorf("price %s: want a number or a list of them", raw)
	}
	if err := json.Unmarshal(list[0], &s.base); err != nil {
		return err //nolint:wrapcheck // names the place
	}
	for _, one := range list[1:] {
		var pair [2]float64
		if err := json.Unmarshal(one, &pair); err != nil {
			return err //nolint:wrapcheck // names the place
		}
		s.above = append(s.above, step{tokens: int(pair[0]), usd: pair[1]})
	}
	slices.SortFunc(s.above, func(a, b step) int { return a.tokens - b.tokens })
	return nil
}

// readRate returns the prices of a line.
func (p *ratesJSON) readRate() (Rate, error) {
	r := Rate{Input: p.In, Cached: p.Read, Written: p.Write, Output: p.Out, Minute: p.Minute, Spoken: p.Chars, Picture: p.Image}
	if p.AudioHour != nil {
		r.Minute = &Steps{base: p.AudioHour.base / 60}
	}
	if p.Thousand != nil {
		r.Request = p.Thousand.base / 1000
	}
	var err error
	if p.From != "" {
		if r.from, err = time.Parse(time.DateOnly, p.From); err != nil {
			return r, fmt.Errorf("price from %q: %w", p.From, err)
		}
	}
	if p.Begins != "" || p.Ends != "" {
		if r.begins, err = parseClock(p.Begins); err == nil {
			r.ends, err = parseClock(p.Ends)
		}
	}
	return r, err
}

// parseClock reads a time of the day with its zone, as the time since midnight in UTC.
func parseClock(text string) (time.Duration, error) {
	t, err := time.Parse("15:04:05Z07:00", text)
	if err != nil {
		return 0, fmt.Errorf("time of a price: %w", err)
	}
	t = t.UTC()
	return time.Duration(t.Hour())*time.Hour + time.Duration(t.Minute())*time.Minute +
		time.Duration(t.Second())*time.Second, nil
}

// rule says which names are meant, as genai-prices writes it: one of its fields is set. Names are in lower case.
type rule struct {
	Or         []rule `json:"or"`
	And        []rule `json:"and"`
	Not        *rule  `json:"not"` // ours: Go's expressions have no negation
	Equals     string `json:"equals"`
	StartsWith string `json:"starts_with"`
	EndsWith   string `json:"ends_with"`
	Contains   string `json:"contains"`
	Regex      string `json:"regex"`
}

// matchesName reports whether a name in lower case is meant.
func (r *rule) matchesName(name string) bool {
	switch {
	case r == nil:
		return false
	case len(r.Or) > 0:
		return slices.ContainsFunc(r.Or, func(one rule) bool { return one.matchesName(name) })
	case len(r.And) > 0:
		return !slices.ContainsFunc(r.And, func(one rule) bool { return !one.matchesName(name) })
	case r.Not != nil:
		return !r.Not.matchesName(name)
	case r.Equals != "":
		return name == r.Equals
	case r.StartsWith != "":
		return strings.HasPrefix(name, r.StartsWith)
	case r.EndsWith != "":
		return strings.HasSuffix(name, r.EndsWith)
	case r.Contains != "":
		return strings.Contains(name, r.Contains)
	case r.Regex != "":
		found, err := regexp.MatchString(r.Regex, name)
		return err == nil && found
	default:
		return false
	}
}

// edition is what a name adds to that of its model without another price: a date, or that it is the latest.
var edition = regexp.MustCompile(`^(?:-latest|[-@](?:19|20)\d{6}|-(?:19|20)\d\d-\d\d-\d\d)?$`)

// compact is a date without dashes in a name, which some vendors write and others do not.
var compact = regexp.MustCompile(`-(20\d{2})(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])(-|:|$)`)

// dated is a date at the end of a name, or that it is the latest.
var dated = regexp.MustCompile(`(?:-latest|[-@](?:19|20)\d{6}|-(?:19|20)\d\d-\d\d-\d\d)$`)

// provider is what both tables have of a provider. Its models are decoded when they are asked for.
type provider struct {
	row
	vendored, own models
}

// models are the rows of a provider in one table.
type models struct {
	lines [][]byte
	rows  []row // decoded; nil = not yet
}

// firstRow returns the first model that fits; nil = none.
func (m *models) firstRow(fits func(*row) bool) (*row, error) {
	if len(m.rows) < len(m.lines) {
		m.rows = make([]row, len(m.lines))
		for i, line := range m.lines {
			if err := json.Unmarshal(line, &m.rows[i]); err != nil {
				return nil, fmt.Errorf("%s: %w", line, err)
			}
		}
	}
	for i := range m.rows {
		if fits(&m.rows[i]) {
			return &m.rows[i], nil
		}
	}
	return nil, nil
}

// priceBook are the tables while a question is answered.
type priceBook struct {
	providers []*provider
	sources   []row
}

// openTables finds the providers of both tables. An error is a mistake in the tables, which the tests find.
func openTables() (*priceBook, error) {
	b := &priceBook{}
	if err := b.addTable(vendored, func(p *provider) *models { return &p.vendored }); err != nil {
		return nil, fmt.Errorf("table.jsonl: %w", err)
	}
	if err := b.addTable(own, func(p *provider) *models { return &p.own }); err != nil {
		return nil, fmt.Errorf("own.jsonl: %w", err)
	}
	return b, nil
}

// addTable adds a table. A provider that is there already gets what it did not have.
func (b *priceBook) addTable(table []byte, tableOf func(*provider) *models) error {
	var current *provider
	for line := range bytes.SplitSeq(table, []byte("\n")) {
		if bytes.HasPrefix(line, []byte(`{"model"`)) {
			if current == nil {
				return fmt.Errorf("a model without a provider: %s", line)
			}
			m := tableOf(current)
			m.lines = append(m.lines, line)
			continue
		}
		if len(line) == 0 {
			continue
		}
		var r row
		if err := json.Unmarshal(line, &r); err != nil {
			return fmt.Errorf("%s: %w", line, err)
		}
		if r.Source != "" {
			b.sources = append(b.sources, r)
			continue
		}
		if current = b.providerNamed(r.Provider); current == nil {
			current = &provider{row: r}
			b.providers = append(b.providers, current)
			continue
		}
		if r.Names != nil && current.Names != nil {
			r.Names = &rule{Or: []rule{*current.Names, *r.Names}}
		}
		if r.Names != nil {
			current.Names = r.Names
		}
		current.Also = append(current.Also, r.Also...)
	}
	return nil
}

func (b *priceBook) providerNamed(id string) *provider {
	i := slices.IndexFunc(b.providers, func(p *provider) bool { return p.Provider == id })
	if i < 0 {
		return nil
	}
	return b.providers[i]
}

// providerOf returns the provider of an address, or for an unknown address the one whose name a model has; nil = none.
func (b *priceBook) providerOf(base, model string) *provider {
	for _, p := range b.providers {
		if p.API == "" || base == "" {
			continue
		}
		if found, err := regexp.MatchString(`^(?:`+p.API+`)`, base); err == nil && found {
			return p
		}
	}
	for _, name := range spellingsOf(model) {
		if i := slices.IndexFunc(b.providers, func(p *provider) bool { return p.Names.matchesName(name) }); i >= 0 {
			return b.providers[i]
		}
	}
	return nil
}

// findModel returns the row of a model of a provider that has what is wanted. Providers that have the models of
// others at their prices are followed.
func (b *priceBook) findModel(p *provider, model string, wanted func(*row) bool) (*row, error) {
	for _, name := range spellingsOf(model) {
		r, err := b.findSpelled(p, name, wanted, 0)
		if r != nil || err != nil {
			return r, err
		}
	}
	return nil, nil
}

// deepest limits how far Also is followed.
const deepest = 3

func (b *priceBook) findSpelled(p *provider, name string, wanted func(*row) bool, depth int) (*row, error) {
	named, err := p.vendored.firstRow(func(r *row) bool { return strings.EqualFold(r.Model, name) && wanted(r) })
	if named == nil && err == nil {
		named, err = p.own.firstRow(func(r *row) bool { return r.meansModel(name) && wanted(r) })
	}
	if named == nil && err == nil {
		named, err = p.vendored.firstRow(func(r *row) bool { return r.meansModel(name) && wanted(r) })
	}
	if named != nil || err != nil || depth == deepest {
		return named, err
	}
	for _, id := range p.Also {
		if other := b.providerNamed(id); other != nil {
			if found, err := b.findSpelled(other, name, wanted, depth+1); found != nil || err != nil {
				return found, err
			}
		}
	}
	return nil, nil
}

// meansModel reports whether a name in lower case is that of the row's model.
func (r *row) meansModel(name string) bool {
	if r.Match != nil {
		return r.Match.matchesName(name)
	}
	rest, found := strings.CutPrefix(name, r.Model)
	return found && edition.MatchString(rest)
}

// maxName limits the name of a model that is looked for, in bytes.
const maxName = 512

// spellingsOf returns what a model may be called in a table: as it is asked for, with its date written as others do,
// without the name of a vendor before it, and without a date.
func spellingsOf(model string) []string {
	name := strings.ToLower(strings.TrimSpace(model))
	if name == "" || len(name) > maxName {
		return nil
	}
	list := []string{name, compact.ReplaceAllString(name, "-$1-$2-$3$4")}
	short := name[strings.LastIndexByte(name, '/')+1:]
	list = append(list, short, dated.ReplaceAllString(short, ""), dated.ReplaceAllString(name, ""))
	seen := map[string]bool{"": true}
	return slices.DeleteFunc(list, func(s string) bool {
		was := seen[s]
		seen[s] = true
		return was
	})
}
