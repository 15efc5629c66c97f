package memory

import (
	"context"
	"slices"
	"strings"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/agent/window"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/bot/turn"
)

// What one turn is reminded of.
const (
	recallTokens  = 400
	recallEntries = 6
	// A memory is recalled if it fits the message this well, and not much worse than the one that fits best.
	recallScore = 0.12
	recallShare = 0.35
)

// Recall implements turn.Memory. Failing to read costs the turn nothing but the reminder: the error is logged.
func (s *Store) Recall(ctx context.Context, of *turn.Reminder) (*journal.Recalled, bool) {
	scope, ok := scopeOf(of.Message)
	if !ok || strings.TrimSpace(of.Message.Text) == "" {
		return nil, false
	}
	noted, may := s.isNoted(scope)
	if !may {
		return nil, false
	}
	known, err := s.recentMemories(ctx, scope)
	if err != nil {
		s.deps.Log.Warn().Err(err).Msg("the turn begins without what is remembered")
		return nil, false
	}
	if len(known.list) == 0 {
		s.noteEmpty(scope, noted)
		return nil, false
	}
	var r journal.Recalled
	var lines []string
	flagged, left := false, recallTokens
	hits := s.rankMemories(ctx, scope, of.Message.Text, known)
	for i := range hits {
		h := &hits[i]
		if h.score < recallScore || h.score < recallShare*hits[0].score || len(lines) == recallEntries {
			break
		}
		line := s.lineForModel(h.Memory, scope)
		cost := window.Tokens(line)
		if cost > left || slices.Contains(of.Known, h.ID) {
			continue
		}
		left -= cost
		lines, r.IDs = append(lines, line), append(r.IDs, h.ID)
		flagged = flagged || s.deps.Flagged != nil && s.deps.Flagged(h.document())
	}
	if len(lines) == 0 {
		return nil, false
	}
	r.Text = strings.Join(lines, "\n")
	return &r, flagged
}

// lineForModel is a memory as the model reads it: what, and where it comes from.
func (s *Store) lineForModel(m *Memory, scope Scope) string {
	var b strings.Builder
	b.WriteString("- [" + m.ID + "] ")
	if m.Key != "" {
		b.WriteString(m.Key + ": ")
	}
	b.WriteString(strings.ReplaceAll(m.Text, "\n", "\n  "))
	where := "in the private chat"
	if scope.shared {
		where = "in this group"
	}
	who := texts.Named(m.Name)
	if who == "" {
		who = "somebody"
	}
	b.WriteString(" (" + m.At.In(s.deps.Zone).Format("2 Jan 2006") + ", " + where + ", by " + who + ")")
	return b.String()
}

var _ turn.Memory = (*Store)(nil)
