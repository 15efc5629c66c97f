package operator

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/story"
)

const (
	mostLanes = 10_000    // sessions that a list looks through
	tailRoom  = 256 << 10 // bytes of a journal that are shown
	mostTurns = 20
	mostRows  = 200
)

// Whoami is what the page knows of its reader and of the service.
type Whoami struct {
	Caller    string     `json:"caller"`
	Name      string     `json:"name,omitempty"`
	Token     string     `json:"token"`
	Now       time.Time  `json:"now"`
	Bot       string     `json:"bot"`
	Version   string     `json:"version"`
	Started   time.Time  `json:"started"`
	Process   string     `json:"process"`
	Processes []string   `json:"processes"`
	Counts    bot.Counts `json:"counts"`
	Approvals int        `json:"approvals"`
	Problem   string     `json:"problem,omitempty"` // why there are no counts
}

func (p *Page) whoami(ctx context.Context, v *visitor) Whoami {
	d := &p.deps
	out := Whoami{
		Caller:    v.Caller,
		Name:      v.Name,
		Token:     v.csrf(),
		Now:       d.Now(),
		Bot:       d.Name,
		Version:   d.Version,
		Started:   d.Started,
		Process:   d.Owner,
		Processes: []string{d.Owner},
	}
	if d.Processes != nil {
		out.Processes = d.Processes()
	}
	counts, err := d.Store.Counts(ctx, d.Channel, d.Bot)
	if err == nil {
		out.Counts = counts
		var open []bot.Approval
		open, err = d.Store.OpenApprovals(ctx, "")
		out.Approvals = len(open)
	}
	if err != nil {
		d.Log.Error().Err(err).Msg("operator's page: counts")
		out.Problem = "The database does not answer; the log says why."
	}
	return out
}

// Session is a line of the list of sessions.
type Session struct {
	Key     bot.SessionKey `json:"key"`
	Chat    string         `json:"chat"`
	Title   string         `json:"title,omitempty"` // of the group
	Topic   string         `json:"topic,omitempty"`
	Surface string         `json:"surface,omitempty"`
	Group   bool           `json:"group,omitempty"`
	Person  string         `json:"person,omitempty"`
	Name    string         `json:"name,omitempty"` // of the person
	State   bot.LaneState  `json:"state"`
	Since   time.Time      `json:"since,omitzero"`
	Entries int64          `json:"entries"` // of its journal
	Owner   string         `json:"owner,omitempty"`
	Turn    string         `json:"turn,omitempty"`
	Stop    bool           `json:"stop,omitempty"`
}

func (p *Page) sessionOf(l *bot.Lane, names map[string]string) Session {
	person := cmp.Or(l.Session.Person(), l.Caller)
	if person == "" && !l.Place.Group && l.Place.Ordinary() {
		person = l.Place.Chat // a private chat has the id of its person
	}
	s := Session{
		Key:     l.Session,
		Chat:    l.Place.Chat,
		Topic:   l.Place.Thread,
		Surface: string(l.Place.Surface),
		Group:   l.Place.Group,
		Person:  person,
		State:   l.State,
		Since:   l.Since,
		Entries: l.Last,
		Owner:   l.Owner,
		Turn:    l.Turn,
		Stop:    l.Stop != "" && l.Stop == l.Turn,
	}
	s.Name = cmp.Or(names[person], names[p.deps.Channel+":"+person])
	s.Title = p.titleOf(l.Place, names)
	return s
}

// titleOf returns what a group is called, as far as that is known; "" for a private chat.
func (p *Page) titleOf(place bot.Place, names map[string]string) string {
	if !place.Group {
		return ""
	}
	return names[p.deps.Channel+":"+place.Chat]
}

// listSessions lists the sessions that work, then the others, the last ones first.
func (p *Page) listSessions(ctx context.Context, _ *visitor, r *http.Request) (any, error) {
	page, err := queryNumber(r, "page")
	if err != nil {
		return nil, err
	}
	lanes, err := p.deps.Store.Lanes(ctx, p.deps.Channel, p.deps.Bot, mostLanes)
	if err != nil {
		return nil, err
	}
	names := p.deps.Names()
	text, state := strings.ToLower(strings.TrimSpace(r.URL.Query().Get("text"))), r.URL.Query().Get("state")
	list := []Session{}
	for i := range lanes {
		s := p.sessionOf(&lanes[i], names)
		if state != "" && string(s.State) != state || !s.matches(text) {
			continue
		}
		list = append(list, s)
	}
	slices.SortFunc(list, func(a, b Session) int {
		return cmp.Or(
			cmp.Compare(stateRank(b.State), stateRank(a.State)), b.Since.Compare(a.Since), cmp.Compare(a.Key, b.Key),
		)
	})
	all := len(list)
	from := min(int(min(page, mostLanes))*PageSize, all)
	return map[string]any{
		"sessions": list[from:min(from+PageSize, all)],
		"page":     page,
		"all":      all,
		"more":     from+PageSize < all,
		"cut":      len(lanes) == mostLanes,
	}, nil
}

// stateRank orders states: what works or waits comes before what rests.
func stateRank(s bot.LaneState) int {
	if s == bot.Idle || s == "" {
		return 0
	}
	return 1
}

func (s *Session) matches(text string) bool {
	return text == "" ||
		slices.ContainsFunc([]string{string(s.Key), s.Person, s.Name, s.Turn, s.Chat, s.Title}, func(field string) bool {
			return strings.Contains(strings.ToLower(field), text)
		})
}

// callDetail is what the inspector shows of a session.
type callDetail struct {
	Session Session      `json:"session"`
	Turns   []story.Turn `json:"turns"` // newest first
	Waiting int          `json:"waiting"`
	Texts   bool         `json:"texts"` // the texts are included
}

func (p *Page) showSession(ctx context.Context, _ *visitor, r *http.Request) (any, error) {
	return p.detail(ctx, bot.SessionKey(r.URL.Query().Get("key")), false)
}

// textsOf names the session whose texts somebody wants to see.
type textsOf struct {
	Session bot.SessionKey `json:"session"`
}

// showTexts gives the texts of a session. They are what people said in confidence: that somebody reads them is on
// record before they do.
func (p *Page) showTexts(ctx context.Context, v *visitor, in textsOf) (any, error) {
	out, err := p.detail(ctx, in.Session, true)
	if err == nil {
		_, err = p.recordChange(
			ctx, &bot.Change{}, p.auditCall(v, "admin_texts", map[string]any{"session": in.Session}),
		)
	}
	return out, err
}

func (p *Page) detail(ctx context.Context, key bot.SessionKey, texts bool) (*callDetail, error) {
	lane, err := p.deps.Store.Lane(ctx, key)
	if err != nil {
		return nil, err
	}
	if lane.Place.Channel != p.deps.Channel || lane.Place.Bot != p.deps.Bot {
		return nil, wrong{http.StatusNotFound, "there is no such session"}
	}
	tail, err := p.deps.Store.Tail(ctx, key, tailRoom)
	if err != nil {
		return nil, err
	}
	rows, err := p.deps.Store.Rows(ctx, key, mostRows)
	if err != nil {
		return nil, err
	}
	waiting, err := p.deps.Store.Tickets(ctx, string(key))
	if err != nil {
		return nil, err
	}
	turns := story.Of(tail.Entries, rows, &lane, p.deps.Plain)
	turns = turns[max(0, len(turns)-mostTurns):]
	slices.Reverse(turns)
	if !texts {
		removeTexts(turns)
	}
	names := p.deps.Names()
	nameDeciders(turns, names)
	return &callDetail{
		Session: p.sessionOf(&lane, names),
		Turns:   turns,
		Waiting: len(waiting),
		Texts:   texts,
	}, nil
}

// nameDeciders names who has approved or denied, one or several by caller ids, as far as names are known.
func nameDeciders(turns []story.Turn, names map[string]string) {
	for i := range turns {
		for j := range turns[i].Steps {
			step := &turns[i].Steps[j]
			list := strings.Split(step.By, ", ")
			for k, caller := range list {
				list[k] = cmp.Or(names[caller], caller)
			}
			step.By = strings.Join(list, ", ")
		}
	}
}

// removeTexts removes what people, models and tools said.
func removeTexts(turns []story.Turn) {
	for i := range turns {
		turns[i].Text = ""
		for j := range turns[i].Steps {
			turns[i].Steps[j].Text = ""
		}
	}
}

// errGone reports whether what a change was about is decided already.
func errGone(err error) bool {
	return errors.Is(err, bot.ErrConflict) || errors.Is(err, bot.ErrHandled) || errors.Is(err, bot.ErrNotFound)
}
