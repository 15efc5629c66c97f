package telegram_test

import (
	"fmt"
	"testing"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/telegram"
)

// TestOtherBots: another bot is a caller in groups, where that is switched on, and nobody else that is no person.
func TestOtherBots(t *testing.T) {
	t.Parallel()
	const group, private = `{"id":-5,"type":"group","title":"Team"}`, `{"id":555,"type":"private"}`
	for _, tt := range []struct {
		name, chat, from string
		off              bool
		caller           string
	}{
		{name: "a bot", chat: group, from: `{"id":555,"is_bot":true,"first_name":"Robo","username":"robo_bot"}`, caller: "telegram:555"},
		{name: "switched off", chat: group, from: `{"id":555,"is_bot":true,"first_name":"Robo"}`, off: true},
		{name: "in private", chat: private, from: `{"id":555,"is_bot":true,"first_name":"Robo"}`},
		{name: "itself", chat: group, from: `{"id":1,"is_bot":true,"first_name":"Zeph"}`},
		{name: "an anonymous admin", chat: group, from: `{"id":1087968824,"is_bot":true,"first_name":"Group"}`},
		{name: "a channel", chat: group, from: `{"id":136817688,"is_bot":true,"first_name":"Channel"}`},
		{name: "a person", chat: group, from: `{"id":42,"first_name":"Ann"}`, caller: "telegram:42"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d := telegram.Decoder{ID: "1", Username: "zephbot", Bots: !tt.off}
			raw := fmt.Sprintf(`{"update_id":7,"message":{"message_id":9,"date":1,"chat":%s,"from":%s,"text":"@zephbot hi","entities":[{"type":"mention","offset":0,"length":8}]}}`, tt.chat, tt.from)
			m, err := d.Decode([]byte(raw))
			if err != nil || m.Kind != bot.Text || m.Caller != tt.caller || m.FromBot != (tt.caller == "telegram:555") {
				t.Errorf("%+v, %v", m, err)
			}
		})
	}
}
