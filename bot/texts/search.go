package texts

import (
	"fmt"
	"strings"
	"time"

	"github.com/zephbot/zephbot/bot/render"
)

// searchBook is what /search says.
type searchBook struct {
	Here, HereGroup     string // what is searched in a private chat and in a group
	Head                count  // how many, query, here
	Newest              count  // how many, query, here, shown
	Partly              string // query, here
	None                string // query, here
	Bounded             string
	Me, Somebody        string
	Help, Long, Nowhere string // Long: at most
}

// Searched is what /search has looked for.
type Searched struct {
	Query      string
	Group      bool // in a group: in the conversations that somebody has there, in a private chat in all
	Shown, All int
	Partly     bool // nothing has all of the words
	Bounded    bool // there is more that was not looked at
}

// shownQuery is how much of a query is repeated, in characters.
const shownQuery = 80

// SearchHead stands above what was found.
func (w Words) SearchHead(language string, s Searched) string {
	b, query := w.in(language).Search, render.Cut(s.Query, shownQuery)
	here := b.Here
	if s.Group {
		here = b.HereGroup
	}
	var lines []string
	switch {
	case s.All == 0:
		lines = append(lines, fmt.Sprintf(b.None, query, here))
	case s.Partly:
		lines = append(lines, fmt.Sprintf(b.Partly, query, here))
	case s.Shown < s.All:
		lines = append(lines, b.Newest.with(s.All, s.All, query, here, s.Shown))
	default:
		lines = append(lines, b.Head.with(s.All, s.All, query, here))
	}
	if s.Bounded {
		lines = append(lines, b.Bounded)
	}
	return strings.Join(lines, "\n")
}

// SearchWho says when something was said and by whom; answer: by the bot, whose name speaker is then, if it has one.
func (w Words) SearchWho(language string, at time.Time, speaker string, answer bool) string {
	b, who := w.in(language).Search, named(speaker)
	switch {
	case who == "" && answer:
		who = b.Me
	case who == "":
		who = b.Somebody
	}
	return w.Moment(language, at) + ", " + who
}

// SearchHelp says how to search.
func (w Words) SearchHelp(language string) string { return w.in(language).Search.Help }

// SearchLong says that a search has too many words.
func (w Words) SearchLong(language string, most int) string {
	return fmt.Sprintf(w.in(language).Search.Long, most)
}

// SearchNowhere says that nothing is searched in this chat.
func (w Words) SearchNowhere(language string) string { return w.in(language).Search.Nowhere }
