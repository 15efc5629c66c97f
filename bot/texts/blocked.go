package texts

import (
	"fmt"
	"strings"
	"time"

	"github.com/zephbot/zephbot/bot/visible"
	"github.com/zephbot/zephbot/policy/reason"
)

// Blocked is a tool that was blocked for a while because it failed too often.
type Blocked struct {
	Tool      string
	Reason    reason.Reason
	Left      time.Duration
	Elsewhere bool // in another conversation
}

// ToolsBlocked follows /tools when something is blocked.
func (w Words) ToolsBlocked(language string, list []Blocked) string {
	b := w.in(language)
	lines := []string{b.Blocked.Head}
	for _, t := range list {
		left := fmt.Sprintf(b.Blocked.Left, w.Duration(language, t.Left))
		if t.Elsewhere {
			left += ", " + b.Blocked.Elsewhere
		}
		lines = append(
			lines, "• "+visible.Name(t.Tool)+" – "+w.Said(language, t.Reason.Map(visible.Name))+" ("+left+")",
		)
	}
	return strings.Join(lines, "\n")
}

// ToolBlocked tells a conversation that a tool is blocked for a while.
func (w Words) ToolBlocked(language, tool string, left time.Duration) string {
	return fmt.Sprintf(w.in(language).Blocked.Tool, visible.Name(tool), w.Duration(language, left), visible.Name(tool))
}

// ToolBlockedFor tells a group that a tool is blocked for a while, for one person.
func (w Words) ToolBlockedFor(language, tool, person string, left time.Duration) string {
	return fmt.Sprintf(
		w.in(language).Blocked.ToolFor,
		visible.Name(tool),
		visible.Name(person),
		w.Duration(language, left),
		visible.Name(tool),
	)
}

// ToolBlockedAdmins tells the admins the same; chat is where, "" = everywhere.
func (w Words) ToolBlockedAdmins(language, tool, chat string, failures, calls int, left time.Duration) string {
	b := w.in(language)
	where := b.Blocked.Everywhere
	if chat != "" {
		where = fmt.Sprintf(b.Blocked.Chat, visible.Name(chat))
	}
	return fmt.Sprintf(b.Blocked.ToolAdmins, visible.Name(tool), failures, calls, where, w.Duration(language, left),
		visible.Name(tool))
}
