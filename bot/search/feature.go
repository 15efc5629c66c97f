package search

import (
	"context"
	"slices"
	"strings"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/feature"
	"github.com/zephbot/zephbot/bot/render"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/bot/turn"
)

// shownLength is how much of what was said a person is shown of each place, in characters.
const shownLength = 200

// Feature returns /search. name is what people know the bot as; "" = it has no name.
func (s *Searcher) Feature(name string) feature.Feature {
	return feature.Feature{Name: "search", Commands: []feature.Command{{
		Name: "search",
		Run:  func(ctx context.Context, call *turn.Call) (turn.Effect, error) { return s.answer(ctx, call, name) },
	}}}
}

// answer answers /search WORDS.
func (s *Searcher) answer(ctx context.Context, call *turn.Call, name string) (turn.Effect, error) {
	msg, w := call.Message, s.deps.Words
	say := func(text string) (turn.Effect, error) {
		return call.Reply(bot.Content{Text: text, Entities: render.Inert(text), Language: msg.Language}), nil
	}
	in, ok := scopeOfMessage(msg)
	if !ok {
		return say(w.SearchNowhere(msg.Language))
	}
	terms := parseQuery(msg.Args)
	switch {
	case len(terms) == 0:
		return say(w.SearchHelp(msg.Language))
	case len(terms) > mostTerms:
		return say(w.SearchLong(msg.Language, mostTerms))
	}
	r, err := s.find(ctx, in, &query{terms: terms, length: shownLength})
	if err != nil {
		return turn.Effect{}, err
	}
	for i := range r.list {
		if r.list[i].answer {
			r.list[i].speaker = name
		}
	}
	return call.Reply(pageOf(w.At(msg.Place), msg, &r)), nil
}

// pageOf shows what was found: a line that says when and who, which leads to the message, and what was said below.
func pageOf(w texts.Words, msg *bot.Message, r *result) bot.Content {
	p := &page{}
	p.addInert(w.SearchHead(msg.Language, texts.Searched{
		Query: strings.Join(strings.Fields(msg.Args), " "), Group: msg.Place.Group,
		Shown: len(r.list), All: r.all, Partly: r.partly, Bounded: r.bounded,
	}))
	for i := range r.list {
		f := &r.list[i]
		p.text += "\n\n"
		who := w.SearchWho(msg.Language, f.at, f.speaker, f.answer)
		if f.link != "" {
			p.add(who, render.Entity{Type: "text_link", Length: render.Length(who), URL: f.link})
		} else {
			p.addInert(who)
		}
		p.text += "\n"
		p.addExcerpt(f)
	}
	return bot.Content{Text: p.text, Entities: p.entities, Language: msg.Language}
}

// page is a text with formatting that grows.
type page struct {
	text     string
	entities []render.Entity
}

// add adds a text with its formatting, whose offsets are in that text.
func (p *page) add(text string, entities ...render.Entity) {
	offset := render.Length(p.text)
	for _, e := range entities {
		e.Offset += offset
		p.entities = append(p.entities, e)
	}
	p.text += text
}

func (p *page) addInert(text string) { p.add(text, render.Inert(text)...) }

// addExcerpt adds an excerpt, in which the words are bold, unless they are in what had to become code.
func (p *page) addExcerpt(f *found) {
	entities := render.Inert(f.text)
	var bold []render.Entity
	for _, h := range f.hits {
		e := render.Entity{Type: "bold", Offset: render.Length(f.text[:h.from]), Length: render.Length(f.text[h.from:h.to])}
		if !slices.ContainsFunc(entities, func(c render.Entity) bool {
			return e.Offset < c.Offset+c.Length && c.Offset < e.Offset+e.Length
		}) {
			bold = append(bold, e)
		}
	}
	entities = append(entities, bold...)
	slices.SortFunc(entities, func(a, b render.Entity) int { return a.Offset - b.Offset })
	p.add(f.text, entities...)
}
