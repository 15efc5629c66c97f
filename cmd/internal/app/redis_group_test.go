package app_test

import (
	"fmt"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/bot/telegram/telegramtest"
	"github.com/zephbot/zephbot/persistence/redis/redistest"
)

// TestRedisAwayInGroup: while Redis is away, each mention in a group with a limit gets an answer of its own, and the one
// that passes the limit is told so.
func TestRedisAwayInGroup(t *testing.T) {
	t.Parallel()
	const group, mentions = -2001, 3
	for name, fault := range map[string]redistest.Fault{"away": redistest.Cut, "slow": redistest.Stall, "read-only": redistest.ReadOnly} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := &vendor{}
			for i := range mentions {
				v.answers = append(v.answers, spoken(fmt.Sprintf("answer %d", i+1)))
			}
			model := httptest.NewServer(v)
			t.Cleanup(model.Close)
			p := &plugged{server: run(t)}
			p.plug = redistest.Between(t, p.server.Addr())
			p.wired = wireWith(t, zerolog.Nop(), time.Now().UTC().Truncate(24*time.Hour),
				fmt.Sprintf("allowed_chats = [%d]\n[[llm.providers]]\nname = \"main\"\nmodel = \"m\"\nwire = \"chat\"\nbase_url = %q\n", group, model.URL+"/v1"),
				fmt.Sprintf("[redis]\nurl = \"redis://zeph:s3cret@%s\"\n[quotas]\non_redis_down = \"deny\"\n[quotas.user]\nturns_per_day = %d\n", p.plug.Addr(), mentions))
			p.fake.AddGroup(telegramtest.Group{ID: group, Title: "Team", Members: []int64{1001}})
			p.plug.Break(fault)
			w := &world{t: t, fake: p.fake}
			for i := range mentions {
				p.fake.Say(1001, group, telegramtest.Message{Text: fmt.Sprintf("@zephbot question %d", i+1)})
				w.hears(group, fmt.Sprintf("answer %d", i+1))
			}
			p.fake.Say(1001, group, telegramtest.Message{Text: "@zephbot one more"})
			w.hears(group, "used up")
		})
	}
}
