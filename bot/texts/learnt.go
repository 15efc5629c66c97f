package texts

import (
	"fmt"
	"strings"

	"github.com/zephbot/zephbot/bot/visible"
)

// SetAside is a tool that the server of a model refuses.
type SetAside struct {
	Provider, Model string
	Tool            string // "" = it takes no tools at all
	Reason          string // what the server said; "" with no tools at all
}

// ToolsAside follows /tools when servers of models refuse something.
func (w Words) ToolsAside(language string, list []SetAside) string {
	b := w.in(language).Learnt
	lines := []string{b.Head}
	for _, t := range list {
		if t.Tool == "" {
			lines = append(lines, "• "+fmt.Sprintf(b.NoTools, visible.Name(t.Provider), visible.Name(t.Model)))
			continue
		}
		lines = append(
			lines, "• "+fmt.Sprintf(b.Line, visible.Name(t.Tool), visible.Name(t.Provider), visible.Name(t.Reason)),
		)
	}
	return strings.Join(lines, "\n")
}

// ToolAside tells the admins of a tool that the server of a model refuses.
func (w Words) ToolAside(language string, t SetAside) string {
	b := w.in(language).Learnt
	if t.Tool == "" {
		return fmt.Sprintf(b.NoToolsAdmins, visible.Name(t.Model), visible.Name(t.Provider))
	}
	return fmt.Sprintf(b.ToolAdmins, visible.Name(t.Provider), visible.Name(t.Tool), visible.Name(t.Reason))
}
