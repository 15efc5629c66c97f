package memory

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zephbot/zephbot/agent/catalog"
	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/tools"
)

// Journal is what a search reads of the conversation that it is made in.
type Journal interface {
	// Journal returns the entries of the present conversation of a session with numbers above after, in order.
	Journal(ctx context.Context, session bot.SessionKey, after int64) ([]journal.Entry, error)
	// Tail returns the end of it (journal.Back).
	Tail(ctx context.Context, session bot.SessionKey, room int) (journal.Tail, error)
}

const (
	// saidEntries limits how many entries of a conversation are searched, newest first.
	saidEntries = 4000
	// saidLong is the most characters of a message that a search shows, and searchedLong the most that it looks at.
	saidLong, searchedLong = 400, 4000
)

// remark is something that was said in a conversation and that its model no longer reads.
type remark struct {
	who   string
	text  string
	at    time.Time
	score float32
}

// addSaid adds to a search what was said in its own conversation and is no longer part of what the model
// reads: messages that were summed up or left out, and former summaries. /new ends a conversation, so
// nothing before it is found. Output of tools is not searched, nor what tried to give instructions. Failing
// to read costs only these sections.
func (s *Store) addSaid(ctx context.Context, call *tools.Call, query string, limit int) string {
	if s.deps.Journal == nil || call.Origin.Session == "" || strings.TrimSpace(query) == "" {
		return ""
	}
	session := bot.SessionKey(call.Origin.Session)
	tail, err := s.deps.Journal.Tail(ctx, session, 1)
	var entries []journal.Entry
	if soFar := tail.StateAt(tail.Last()); err == nil && (soFar.Summary > 0 || soFar.Unsummed.Times > 0) {
		entries, err = s.deps.Journal.Journal(ctx, session, max(0, tail.Last()-saidEntries))
	}
	if err != nil {
		s.deps.Log.Warn().Err(err).Msg("memories searched without the conversation")
		return ""
	}
	said, summaries := unreadEntries(entries, call.Origin.Turn)
	return s.bestSection("Recalled messages", said, query, limit) +
		s.bestSection("Session summaries", summaries, query, limit)
}

// unreadEntries returns what the model no longer reads of a conversation in one of its turns.
func unreadEntries(entries []journal.Entry, turn string) (said, summaries []remark) {
	newest, first := journal.Summary(entries)
	if newest == nil { // the oldest turns were left out without one
		first = slices.IndexFunc(entries, func(e journal.Entry) bool { return e.Turn == turn })
	}
	for i := range entries {
		e := &entries[i]
		old := i < first && e.Turn != turn && e.Child == "" && !e.Flagged && strings.TrimSpace(e.Text) != ""
		switch {
		case e.Kind == journal.SummaryEntry && e != newest && e.Text != "" && !e.Flagged:
			summaries = append(summaries, remark{who: "summary", text: e.Text, at: e.At})
		case old && e.Kind == journal.UserEntry:
			said = append(said, remark{who: cmp.Or(texts.Named(e.Speaker), "person"), text: e.Text, at: e.At})
		case old && e.Kind == journal.AnswerEntry:
			said = append(said, remark{who: "assistant", text: e.Text, at: e.At})
		}
	}
	return said, summaries
}

// bestSection lists what fits a query best; "" = nothing does.
func (s *Store) bestSection(title string, list []remark, query string, limit int) string {
	docs := make([]string, len(list))
	for i := range list {
		docs[i] = firstCharacters(list[i].text, searchedLong)
	}
	scores := catalog.NewTexts(docs).Rank(query)
	var hits []remark
	for i := range list {
		if list[i].score = scores[i]; scores[i] >= recallScore {
			hits = append(hits, list[i])
		}
	}
	if len(hits) == 0 {
		return ""
	}
	slices.SortStableFunc(hits, func(a, b remark) int {
		return cmp.Or(cmp.Compare(b.score, a.score), b.at.Compare(a.at))
	})
	var b strings.Builder
	fmt.Fprintf(&b, "## %s (%d of %d)", title, min(limit, len(hits)), len(list))
	for i := range hits[:min(limit, len(hits))] {
		h := &hits[i]
		text := strings.ReplaceAll(firstCharacters(strings.TrimSpace(h.text), saidLong), "\n", "\n  ")
		fmt.Fprintf(
			&b, "\n- %s (%s, %s) [score: %.2f]", text, h.at.In(s.deps.Zone).Format("2 Jan 2006"), h.who, h.score,
		)
	}
	return b.String() + "\n"
}

// firstCharacters returns the first characters of a text.
func firstCharacters(text string, most int) string {
	for i := range text {
		if most--; most < 0 {
			return text[:i] + " …"
		}
	}
	return text
}
