package app_test

import (
	"strings"
	"testing"

	"github.com/zephbot/zephbot/bot/telegram/telegramtest"
	"github.com/zephbot/zephbot/cmd/internal/app"
	"github.com/zephbot/zephbot/tools/mcp/mcptest"
)

const searches = `
on "now": call tool_search {"query":"says the text","max_results":1}
then expect "kind:echo: Says the text."
and call kind:echo {"text":"it was found"}
then expect "it was found"
and say Found and called.
on "blind": call kind:many_00097 {}
then expect "was not offered"
and say I have to search first.
`

// TestToolIsFoundBySearch: of a server with more tools than there is room for, the model finds one by its search and
// calls it; the person sees that not all are shown, and is asked about the call, not about the search.
func TestToolIsFoundBySearch(t *testing.T) {
	t.Parallel()
	w := begin(t, searches, app.Internet{}, permitted, chatted, "ZEPH_TOOLS_SHELL_SANDBOX=off", "ZEPH_MCP_MAX_DEFINITION_SHARE=0.01")
	w.add(mcptest.Many)
	w.say("/mcp list")
	w.says("tools at once (all servers share 1280 tokens); it finds the rest by searching", 1)
	w.say("blind")
	w.says("I have to search first.", 1)
	w.say("now")
	w.card("it was found")
	w.press("Approve once")
	w.says("Found and called.", 1)
	w.audited(`"tool":"tool_search".*"type":"success"`, `"tool":"kind:echo".*"type":"success"`)
	w.wait("no question about the search", func(telegramtest.Shown) bool {
		for _, m := range w.fake.Chat(1001) {
			if len(m.Keyboard) > 0 && strings.Contains(m.Text, "tool_search") {
				t.Error(m.Text)
			}
		}
		return true
	})
}
