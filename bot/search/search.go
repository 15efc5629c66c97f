// Package search finds what was said before: by its words, in the chat in which somebody searches, and nowhere else.
// People ask with /search, models with the tool search_conversations.
//
// Nothing is stored for it. A search reads the newest entries of the chat's journals, up to a bound, so what was erased
// or has reached the end of its retention is not found; and it ends where a conversation was cleared (/clear).
package search

import (
	"cmp"
	"context"
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/agent/prompt"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/render"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/tools"
)

// Bounds of a search.
const (
	mostResults  = 8
	mostSessions = 200    // conversations of a chat that are looked at
	mostLanes    = 20_000 // conversations of a chat that are listed: those of others are among them
	pageEntries  = 1000   // entries of a conversation that one query looks at
	mostEntries  = 20_000 // entries of all conversations of the chat that are looked at, the newest first

	mostCompared   = 100             // messages with their answers, the newest, that are compared by meaning
	comparedLength = 500             // characters of each message and answer that are
	compareTime    = 5 * time.Second // after that words decide
	leastAlike     = 0.3             // similarity of texts that have something to do with each other, with most models
)

// Store is what a search reads.
type Store interface {
	InChat(ctx context.Context, chat string, limit int) ([]bot.Lane, error)
	Past(ctx context.Context, session bot.SessionKey, from, before int64) ([]journal.Entry, error)
}

// Deps are the dependencies of a Searcher. All but Meaning and Log are required.
type Deps struct {
	Store Store
	// Link returns the address of a message in its chat, "" = it has none.
	Link func(place bot.Place, message string) string
	// Moved reports whether the chat of a session had another id before: then ids of its messages may be former ones.
	Moved func(session bot.SessionKey) bool
	Zone  func(caller string) *time.Location
	Words texts.Words
	// Meaning returns how similar in meaning a text is to others, from 0 to 1. The payer is in ctx. nil = there are
	// only words; it may return nil, too.
	Meaning func(ctx context.Context, text string, others []string) ([]float32, error)
	Log     zerolog.Logger
}

// Searcher searches. Safe for concurrent use; it keeps nothing between calls.
type Searcher struct{ deps Deps }

// New returns a Searcher.
func New(deps Deps) *Searcher { return &Searcher{deps: deps} }

// scope is what somebody may search. It comes from where a message or a call comes from, never from what it says.
type scope struct {
	chat    string // Place.ChatKey
	person  string // id on the channel
	private bool   // nobody else reads in the chat
}

// scopeOfMessage returns the scope of a message; false if nothing is searched where it was written.
func scopeOfMessage(msg *bot.Message) (scope, bool) {
	s := scope{chat: msg.Place.ChatKey(), person: msg.Person, private: !msg.Place.Group && !msg.FromBot}
	return s, msg.Place.Ordinary() && msg.Caller != ""
}

// scopeOfCall returns the scope of a tool call; false if nothing is searched where it comes from. Elsewhere than in the
// bot's own chats, as a guest or for a business account, strangers read.
func scopeOfCall(o tools.Origin) (scope, bool) {
	place, rest, ok := bot.CutChat(o.Chat)
	if !ok || rest != "" || place.Chat == "" || !place.Ordinary() || o.Caller == "" {
		return scope{}, false
	}
	_, person, _ := strings.Cut(o.Caller, ":")
	person, _, _ = strings.Cut(person, "/") // a sub-agent searches what the person may
	return scope{chat: o.Chat, person: person, private: o.Private}, true
}

// mayRead reports whether a conversation of the chat may be searched: one that everybody there shares, or one's own.
func (s scope) mayRead(session bot.SessionKey) bool {
	return s.private || session.Person() == "" || session.Person() == s.person
}

// query is what is looked for.
type query struct {
	terms   []term
	turn    string // is left out: it has the words because it asks for them
	trusted bool   // what tried to give instructions is left out
	length  int    // of an excerpt, in characters
	meant   string // what is looked for by its meaning, if no place has all words; "" = nothing
}

// found is a place where the words were said.
type found struct {
	at      time.Time
	speaker string // "" = the bot, if answer, else somebody
	answer  bool
	text    string // an excerpt
	hits    []span // in text
	link    string
}

// result is what a search has found.
type result struct {
	list    []found // the newest first
	all     int     // how many there are
	partly  bool    // none has all words: those that have the most, or are nearest in meaning, come first
	bounded bool    // there is more that was not looked at
}

// find searches the conversations of a scope.
func (s *Searcher) find(ctx context.Context, in scope, q *query) (result, error) {
	past, err := s.openPast(ctx, in, q)
	if err != nil {
		return result{}, err
	}
	left := mostEntries
	for open := past; len(open) > 0 && left > 0; {
		for _, p := range open {
			if left <= 0 {
				break
			}
			left -= pageEntries
			if err := s.readPage(ctx, p); err != nil {
				return result{}, err
			}
		}
		open = slices.DeleteFunc(slices.Clone(open), func(p *pastTalk) bool { return p.before <= 1 })
	}
	bounded := slices.ContainsFunc(past, func(p *pastTalk) bool { return p.before > 1 })
	var all []*exchange
	for _, p := range past {
		for _, x := range p.turns {
			all = append(all, x)
		}
	}
	r := s.choose(all, q)
	if r.partly && q.meant != "" && s.deps.Meaning != nil {
		s.weighMeaning(ctx, all, q)
		r = s.choose(all, q)
	}
	r.bounded = bounded
	return r, nil
}

// weighMeaning notes how near in meaning the newest places are. If that is not known, words decide.
func (s *Searcher) weighMeaning(ctx context.Context, all []*exchange, q *query) {
	newest := slices.DeleteFunc(slices.Clone(all), func(x *exchange) bool { return x.said == "" })
	slices.SortFunc(newest, func(a, b *exchange) int {
		return cmp.Or(b.last.Compare(a.last), strings.Compare(a.said, b.said))
	})
	newest = newest[:min(len(newest), mostCompared)]
	others := make([]string, len(newest))
	for i, x := range newest {
		others[i] = x.said
	}
	ctx, cancel := context.WithTimeout(ctx, compareTime)
	defer cancel()
	alike, err := s.deps.Meaning(ctx, q.meant, others)
	if err != nil {
		s.deps.Log.Warn().Err(err).Msg("conversations searched by words only")
		return
	}
	for i := range alike {
		newest[i].alike = alike[i]
	}
}

// openPast returns the conversations of a scope, those with the newest turns first.
func (s *Searcher) openPast(ctx context.Context, in scope, q *query) ([]*pastTalk, error) {
	lanes, err := s.deps.Store.InChat(ctx, in.chat, mostLanes)
	if err != nil {
		return nil, fmt.Errorf("search conversations: %w", err)
	}
	lanes = slices.DeleteFunc(lanes, func(l bot.Lane) bool { return !in.mayRead(l.Session) || l.Last == 0 })
	slices.SortStableFunc(lanes, func(a, b bot.Lane) int { return b.Since.Compare(a.Since) })
	var list []*pastTalk
	for i := range lanes[:min(len(lanes), mostSessions)] {
		l := &lanes[i]
		p := &pastTalk{
			session: l.Session, before: l.Last + 1, query: q, turns: map[string]*exchange{}, edited: map[string]bool{},
		}
		if place, ok := l.Session.Place(); ok && !s.deps.Moved(l.Session) {
			p.link = func(message string) string { return s.deps.Link(place, message) }
		}
		list = append(list, p)
	}
	return list, nil
}

// pastTalk is a session that is searched from its end.
type pastTalk struct {
	session bot.SessionKey
	before  int64 // entries from this number on were looked at
	query   *query
	link    func(message string) string // nil = its messages have no addresses
	turns   map[string]*exchange        // in which words were found
	edited  map[string]bool             // turns whose message was changed: it reads as its newest version
}

// exchange is a message and its answer.
type exchange struct {
	found   uint // terms, a bit for each
	most    int  // terms of shown
	at      time.Time
	speaker string
	answer  bool
	text    string // of the message or the answer that has the most of the terms; the answer, if none has any
	message string // id of the message
	link    func(message string) string

	last  time.Time // when it ended
	said  string    // what is compared by meaning: the message and the answer, cut; "" = it is not
	alike float32   // how near in meaning it is to what is looked for
}

// score says how well it fits if nothing has all of the terms: by words that at least half of the terms are, or by
// meaning.
func (x *exchange) score(terms int) float32 {
	words := float32(bits.OnesCount(x.found)) / float32(terms)
	if words < 0.5 {
		words = 0
	}
	if x.alike < leastAlike {
		return words
	}
	return max(words, x.alike)
}

// readPage looks at the next entries of a session.
func (s *Searcher) readPage(ctx context.Context, p *pastTalk) error {
	from := max(1, p.before-pageEntries)
	entries, err := s.deps.Store.Past(ctx, p.session, from, p.before)
	if err != nil {
		return fmt.Errorf("search conversations: %w", err)
	}
	p.before = from
	for i := range entries {
		e := &entries[i]
		if e.Anew() && !e.Parted { // it was cleared: what was before is forgotten
			p.before = 1
			return nil
		}
		p.look(e)
	}
	return nil
}

// look looks at an entry.
func (p *pastTalk) look(e *journal.Entry) {
	switch {
	case !e.Spoken() || e.Child != "" || e.Turn == p.query.turn || e.Flagged && p.query.trusted:
		return
	case e.Joins == journal.Edited:
		p.edited[e.Turn] = true
	case e.Kind == journal.UserEntry && e.Joins == "" && p.edited[e.Turn]:
		return
	}
	text := saidText(e)
	terms := matchTerms(p.query.terms, text)
	x := p.turns[e.Turn]
	compared := p.query.meant != "" && (x != nil || len(p.turns) < mostCompared)
	if x == nil && terms == 0 && !compared {
		return
	}
	if x == nil {
		x = &exchange{link: p.link, last: e.At, most: -1}
		p.turns[e.Turn] = x
	}
	if compared {
		x.said = strings.TrimSpace(cutText(text) + "\n" + x.said)
	}
	x.found |= terms
	if n := bits.OnesCount(terms); n > x.most {
		x.most, x.at, x.text, x.speaker, x.answer = n, e.At, text, e.Speaker, e.Kind == journal.AnswerEntry
	}
	if len(e.Heard) > 0 {
		x.message = e.Heard[0].Message
	}
}

// saidText is what was said in an entry: without our marks around a text that was passed on, and with what was spoken.
func saidText(e *journal.Entry) string {
	text := e.Text
	if e.Foreign != "" || e.Scheduled {
		said, passed := prompt.Divide(text)
		text = "\n" + strings.TrimSpace(said+"\n"+passed)
	}
	for i := range e.Parts {
		if p := &e.Parts[i]; p.Own {
			_, spoken, _ := strings.Cut(p.Text, "\n") // below a line that says what it is
			text += "\n" + spoken
		}
	}
	return text
}

// cutText is as much of a text as is compared by meaning.
func cutText(text string) string {
	n := 0
	for i := range text {
		if n++; n > comparedLength {
			return text[:i]
		}
	}
	return text
}

// choose returns the places that have all terms, or, if none has, those that have at least half of them or are near in
// meaning.
func (s *Searcher) choose(all []*exchange, q *query) result {
	whole := func(x *exchange) bool { return bits.OnesCount(x.found) == len(q.terms) }
	r := result{partly: !slices.ContainsFunc(all, whole)}
	all = slices.DeleteFunc(slices.Clone(all), func(x *exchange) bool {
		return !whole(x) && (!r.partly || x.score(len(q.terms)) == 0)
	})
	slices.SortFunc(all, func(a, b *exchange) int {
		return cmp.Or(
			cmp.Compare(b.score(len(q.terms)), a.score(len(q.terms))), b.at.Compare(a.at), strings.Compare(a.text, b.text),
		)
	})
	r.all = len(all)
	for _, x := range all[:min(len(all), mostResults)] {
		f := found{at: x.at, speaker: x.speaker, answer: x.answer}
		f.text, f.hits = excerptOf(shownText(x), q.terms, q.length)
		if x.link != nil && x.message != "" {
			f.link = x.link(x.message)
		}
		r.list = append(r.list, f)
	}
	return r
}

// shownText is what people saw of it: an answer without the marks of Markdown.
func shownText(x *exchange) string {
	if !x.answer {
		return x.text
	}
	var b strings.Builder
	for _, m := range render.Markdown(x.text) {
		b.WriteString(m.Text + "\n")
	}
	return b.String()
}

// joinSpans sorts spans, and joins those that overlap.
func joinSpans(list []span) []span {
	slices.SortFunc(list, func(a, b span) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to)) })
	var joined []span
	for _, s := range list {
		if n := len(joined); n > 0 && s.from <= joined[n-1].to {
			joined[n-1].to = max(joined[n-1].to, s.to)
			continue
		}
		joined = append(joined, s)
	}
	return joined
}
