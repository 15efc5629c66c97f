package telegram_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/go-telegram/bot/models"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/telegram"
	"github.com/zephbot/zephbot/bot/telegram/telegramtest"
)

// updateOutcomes says for every published kind of update (telegramtest.UpdateKinds) what becomes of it. silent: it is stored, counted in
// zephbot_updates_total and finished; the other words are those of bot.Kind. A kind that is not requested can come all
// the same: the server keeps an earlier list of kinds for a while.
func updateOutcomes() map[string]struct {
	sample string
	kind   bot.Kind
	asked  bool // the bot requests it
} {
	type outcome = struct {
		sample string
		kind   bot.Kind
		asked  bool
	}
	const silent = bot.Ignored
	const query = `{"id":"1","from":{"id":42},"query":"x","offset":""}`
	const member = `{"chat":{"id":-100,"type":"group"},"from":{"id":42},"date":1,"old_chat_member":{"status":"left"},"new_chat_member":{"status":"member"}}`
	msg := `{` + inPrivate + `,"text":"hi"}`
	return map[string]outcome{
		"message":                    {msg, bot.Text, true},
		"edited_message":             {msg, bot.Edited, true},
		"channel_post":               {msg, silent, false},
		"edited_channel_post":        {msg, silent, false},
		"business_connection":        {`{"id":"c1","user":{"id":42},"user_chat_id":42,"is_enabled":true}`, bot.Connection, true},
		"business_message":           {`{` + inPrivate + `,"text":"hi","business_connection_id":"c1"}`, bot.Text, true},
		"edited_business_message":    {msg, silent, false},
		"deleted_business_messages":  {`{"business_connection_id":"c1","chat":{"id":42,"type":"private"},"message_ids":[1]}`, silent, false},
		"guest_message":              {`{` + inPrivate + `,"text":"hi","guest_query_id":"g1"}`, bot.Text, true},
		"message_reaction":           {`{"chat":{"id":42,"type":"private"},"message_id":1,"date":1,"old_reaction":[],"new_reaction":[{"type":"emoji","emoji":"👍"}]}`, silent, false},
		"message_reaction_count":     {`{"chat":{"id":-100,"type":"group"},"message_id":1,"date":1,"reactions":[]}`, silent, false},
		"inline_query":               {query, silent, false},
		"chosen_inline_result":       {`{"result_id":"1","from":{"id":42},"query":"x"}`, silent, false},
		"callback_query":             {`{"id":"1","from":{"id":42},"data":"x"}`, bot.Press, true},
		"shipping_query":             {`{"id":"1","from":{"id":42},"invoice_payload":"x","shipping_address":{}}`, silent, false},
		"pre_checkout_query":         {`{"id":"1","from":{"id":42},"currency":"XTR","total_amount":1,"invoice_payload":"x"}`, silent, false},
		"purchased_paid_media":       {`{"from":{"id":42},"paid_media_payload":"x"}`, silent, false},
		"poll":                       {`{"id":"1","question":"when?","options":[]}`, silent, false},
		"poll_answer":                {`{"poll_id":"1","user":{"id":42},"option_ids":[0]}`, silent, false},
		"my_chat_member":             {member, bot.Member, true},
		"chat_member":                {member, silent, false},
		"chat_join_request":          {`{"chat":{"id":-100,"type":"group"},"from":{"id":42},"user_chat_id":42,"date":1}`, silent, false},
		"chat_boost":                 {`{"chat":{"id":-100,"type":"supergroup"},"boost":{"boost_id":"1","source":{"source":"premium","user":{"id":42}}}}`, silent, false},
		"removed_chat_boost":         {`{"chat":{"id":-100,"type":"supergroup"},"boost_id":"1","remove_date":1,"source":{"source":"premium","user":{"id":42}}}`, silent, false},
		"managed_bot":                {`{"user":{"id":42},"bot":{"id":43,"is_bot":true}}`, silent, false},
		"subscription":               {`{}`, silent, false},
		"stopped_message_generation": {`{"chat":{"id":42,"type":"private"},"draft_id":5}`, bot.StopTap, true},
	}
}

// TestEveryKindOfUpdate: every kind that the library knows has an outcome, and has it whatever else it holds. A kind that
// a new version brings fails the test.
func TestEveryKindOfUpdate(t *testing.T) {
	t.Parallel()
	outcomes := updateOutcomes()
	var known []string
	for f := range reflect.TypeFor[models.Update]().Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name != "update_id" {
			known = append(known, name)
		}
		if _, ok := outcomes[name]; name != "update_id" && !ok {
			t.Errorf("%s has no outcome", name)
		}
	}
	for _, name := range telegramtest.UpdateKinds() {
		if _, ok := outcomes[name]; !ok {
			t.Errorf("%s is published and has no outcome", name)
		}
	}
	var asked []string
	for name, o := range outcomes {
		if !slices.Contains(known, name) {
			t.Errorf("the library does not know %s", name)
		}
		if o.asked {
			asked = append(asked, name)
		}
		m, err := decoder.Decode([]byte(`{"update_id":9,"` + name + `":` + o.sample + `}`))
		if err != nil || m.Kind != o.kind {
			t.Errorf("%s becomes %q, want %q (%v)", name, m.Kind, o.kind, err)
		}
		if m, err = decoder.Decode([]byte(`{"update_id":9,"` + name + `":{}}`)); err != nil || m.ID != "9" {
			t.Errorf("an empty %s: %q, %v", name, m.Kind, err)
		}
	}
	want := telegram.AllowedUpdates()
	slices.Sort(want)
	slices.Sort(asked)
	if !slices.Equal(asked, want) {
		t.Errorf("the bot requests %q, the table says %q", want, asked)
	}
}
