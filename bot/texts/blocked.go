package texts

import (
	"fmt"
	"time"

	"github.com/zephbot/zephbot/bot/visible"
)

// Blocked is a tool that was blocked for a while because it failed too often.
type Blocked struct {
	Tool      string
	Reason    string
	Left      time.Duration
	Elsewhere bool // in another conversation
}

// ToolsBlocked follows /tools when something is blocked.
func (w Words) ToolsBlocked(language string, list []Blocked) string {
	b := w.in(language)
	lines := []string{b.toolsBlocked}
	for _, t := range list {
		left := fmt.Sprintf(b.blockedLeft, w.Duration(language, t.Left))
		if t.Elsewhere {
			left += ", " + b.blockedElsewhere
		}
		lines = append(lines, "• "+t.Tool+" – "+t.Reason+" ("+left+")")
	}
	return lined(lines)
}

// ToolBlocked tells a conversation that a tool is blocked for a while.
func (w Words) ToolBlocked(language, tool string, left time.Duration) string {
	return fmt.Sprintf(w.in(language).toolBlocked, visible.Name(tool), w.Duration(language, left), visible.Name(tool))
}

// ToolBlockedAdmins tells the admins the same; chat is where, "" = everywhere.
func (w Words) ToolBlockedAdmins(language, tool, chat string, failures, calls int, left time.Duration) string {
	b := w.in(language)
	where := b.blockedEverywhere
	if chat != "" {
		where = fmt.Sprintf(b.blockedChat, visible.Name(chat))
	}
	return fmt.Sprintf(b.toolBlockedAdmins, visible.Name(tool), failures, calls, where, w.Duration(language, left),
		visible.Name(tool))
}
