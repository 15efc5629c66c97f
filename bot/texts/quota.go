package texts

import (
	"fmt"
	"strings"
	"time"
)

// Scope says whose quota is meant.
type Scope string

// The scopes of a quota.
const (
	User Scope = "user"
	Chat Scope = "chat"
	Bot  Scope = "bot"
)

// TurnsUsedUp says that a quota of turns is used up until fresh.
func (w Words) TurnsUsedUp(language string, scope Scope, limit int64, fresh time.Time) string {
	b, at := w.in(language), w.clock(fresh)
	switch scope {
	case Chat:
		return fmt.Sprintf(b.quotaTurnsChat, limit, at)
	case Bot:
		return fmt.Sprintf(b.quotaTurnsBot, limit, at)
	default:
		return fmt.Sprintf(b.quotaTurns, limit, at)
	}
}

// TurnsNear warns once that a quota is nearly used up; it starts afresh at fresh.
func (w Words) TurnsNear(language string, used, limit int64, fresh time.Time) string {
	return fmt.Sprintf(w.in(language).quotaNear, used, limit, w.clock(fresh))
}

// TurnsNearChat is TurnsNear for the quota of a chat.
func (w Words) TurnsNearChat(language string, used, limit int64, fresh time.Time) string {
	return fmt.Sprintf(w.in(language).quotaNearChat, used, limit, w.clock(fresh))
}

// QuotaUnread answers /quota while the counters cannot be read.
func (w Words) QuotaUnread(language string) string { return w.in(language).quotaUnread }

// QuotaAway says that quotas cannot be checked.
func (w Words) QuotaAway(language string) string { return w.in(language).quotaAway }

// Usage is a line of /quota.
type Usage struct {
	Scope Scope
	Used  int64
	Limit int64 // 0 = none
}

// Quota is the answer to /quota; the day of the quotas began at since.
func (w Words) Quota(language string, usage []Usage, since time.Time) string {
	b := w.in(language)
	names := map[Scope]string{User: b.quotaToday, Chat: b.quotaChat, Bot: b.quotaBot}
	lines := []string{fmt.Sprintf(b.quotaTitle, w.clock(since))}
	for _, u := range usage {
		if u.Limit == 0 {
			lines = append(lines, fmt.Sprintf(b.quotaNone, names[u.Scope], u.Used))
			continue
		}
		lines = append(lines, fmt.Sprintf(b.quotaReset, names[u.Scope], Bar(u.Used, u.Limit), u.Used, u.Limit))
	}
	return strings.Join(lines, "\n")
}

// Bar draws a share of a limit.
func Bar(used, limit int64) string {
	const width = 10
	full := 0
	if limit > 0 {
		full = int(min(width, (used*width+limit-1)/limit))
	}
	return strings.Repeat("▓", full) + strings.Repeat("░", width-full)
}
