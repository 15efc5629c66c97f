package telegram_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/go-telegram/bot/models"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/telegram"
)

// kinds is every field of a Message that says what kind it is (Bot API Message), with an example and what it is told
// as; "" = it only reports something, and is counted as ignored.
var kinds = map[string]struct{ example, told string }{
	"text":             {`"hello"`, "text: hello"},
	"photo":            {`[{"file_id":"s","width":90,"height":60},{"file_id":"l","width":900,"height":600,"file_size":7},{"file_id":"m","width":300,"height":200}]`, "photo l"},
	"document":         {`{"file_id":"f","file_name":"a.pdf","mime_type":"application/pdf"}`, "document f a.pdf"},
	"voice":            {`{"file_id":"f","duration":3}`, "voice message f 3 s"},
	"audio":            {`{"file_id":"f","duration":200,"performer":"P","title":"T"}`, "audio file f 200 s, P – T"},
	"video":            {`{"file_id":"f","duration":9,"thumbnail":{"file_id":"t"}}`, "video f 9 s still t"},
	"video_note":       {`{"file_id":"f","duration":9,"thumbnail":{"file_id":"t"}}`, "video message f 9 s still t"},
	"animation":        {`{"file_id":"f","duration":2}`, "animation f 2 s"},
	"live_photo":       {`{"file_id":"f","photo":[{"file_id":"p"}]}`, "photo p"},
	"sticker":          {`{"file_id":"f","emoji":"👍","set_name":"Cats"}`, "sticker 👍, Cats"},
	"location":         {`{"latitude":52.5,"longitude":13.4}`, "location 52.500000, 13.400000"},
	"venue":            {`{"title":"Café","address":"Road 1","location":{"latitude":52.5,"longitude":13.4}}`, "venue Café, Road 1, 52.500000, 13.400000"},
	"contact":          {`{"first_name":"Eve","phone_number":"+491"}`, "contact Eve, +491"},
	"poll":             {`{"question":"when?","options":[{"text":"today","voter_count":2},{"text":"never"}]}`, "poll when?: today (2); never (0)"},
	"dice":             {`{"emoji":"🎲","value":4}`, "dice 🎲 4"},
	"checklist":        {`{"title":"Shop","tasks":[{"text":"milk","completion_date":5},{"text":"tea"}]}`, "checklist Shop: milk (done); tea (open)"},
	"story":            {`{"id":1,"chat":{"id":1,"title":"News"}}`, "story News"},
	"paid_media":       {`{"star_count":5,"paid_media":[]}`, "paid post 5 stars"},
	"game":             {`{"title":"Chess","description":"d","photo":[]}`, "game Chess, d"},
	"invoice":          {`{"title":"Tea","description":"d","currency":"EUR","total_amount":250}`, "invoice Tea, d, 2.50 EUR"},
	"giveaway":         {`{"winner_count":1,"chats":[]}`, "giveaway"},
	"giveaway_winners": {`{"winner_count":1}`, "list of giveaway winners"},
	"rich_message":     {`{"blocks":[]}`, "formatted message"},

	"new_chat_members": {`[{"id":5}]`, ""}, "left_chat_member": {`{"id":5}`, ""}, "new_chat_title": {`"T"`, ""}, "new_chat_photo": {`[{"file_id":"f"}]`, ""},
	"delete_chat_photo": {`true`, ""}, "group_chat_created": {`true`, ""}, "supergroup_chat_created": {`true`, ""}, "channel_chat_created": {`true`, ""},
	"message_auto_delete_timer_changed": {`{}`, ""}, "pinned_message": {`{"message_id":1,"date":1,"chat":{"id":42}}`, ""},
	"successful_payment": {`{}`, ""}, "refunded_payment": {`{}`, ""}, "users_shared": {`{"users":[]}`, ""}, "chat_shared": {`{}`, ""}, "gift": {`{"gift":{"id":"g","sticker":{}}}`, ""},
	"unique_gift": {`{}`, ""}, "gift_upgrade_sent": {`{"gift":{"id":"g","sticker":{}}}`, ""}, "connected_website": {`"example.com"`, ""}, "write_access_allowed": {`{}`, ""},
	"passport_data": {`{}`, ""}, "proximity_alert_triggered": {`{}`, ""}, "boost_added": {`{}`, ""}, "chat_background_set": {`{"type":{"type":"fill","fill":{"type":"solid"}}}`, ""},
	"checklist_tasks_done": {`{}`, ""}, "checklist_tasks_added": {`{"tasks":[]}`, ""}, "direct_message_price_changed": {`{}`, ""}, "forum_topic_created": {`{}`, ""},
	"forum_topic_edited": {`{}`, ""}, "forum_topic_closed": {`{}`, ""}, "forum_topic_reopened": {`{}`, ""}, "general_forum_topic_hidden": {`{}`, ""},
	"general_forum_topic_unhidden": {`{}`, ""}, "giveaway_created": {`{}`, ""}, "giveaway_completed": {`{}`, ""}, "paid_message_price_changed": {`{}`, ""},
	"chat_owner_left": {`{}`, ""}, "chat_owner_changed": {`{"new_owner":{"id":5}}`, ""}, "community_chat_added": {`{}`, ""}, "community_chat_joined": {`{}`, ""},
	"community_chat_removed": {`{}`, ""}, "suggested_post_approved": {`{}`, ""}, "suggested_post_approval_failed": {`{}`, ""}, "suggested_post_declined": {`{}`, ""},
	"suggested_post_paid": {`{}`, ""}, "suggested_post_refunded": {`{}`, ""}, "video_chat_scheduled": {`{}`, ""}, "video_chat_started": {`{}`, ""}, "video_chat_ended": {`{}`, ""},
	"video_chat_participants_invited": {`{}`, ""}, "web_app_data": {`{"data":"d"}`, ""}, "managed_bot_created": {`{}`, ""}, "poll_option_added": {`{}`, ""}, "poll_option_deleted": {`{}`, ""},
}

// notKinds are the fields that every kind may have.
const notKinds = ` message_id message_thread_id direct_messages_topic from sender_chat sender_boost_count sender_business_bot sender_tag receiver_user
 ephemeral_message_id date business_connection_id chat forward_origin is_topic_message is_automatic_forward reply_to_message external_reply quote reply_to_story
 reply_to_checklist_task_id via_bot edit_date has_protected_content is_from_offline is_paid_post media_group_id author_signature paid_star_count entities
 link_preview_options suggested_post_info effect_id migrate_from_chat_id caption caption_entities show_caption_above_media has_media_spoiler migrate_to_chat_id guest_bot_caller_user
 guest_bot_caller_chat guest_query_id reply_to_poll_option_id reply_markup `

// Every kind of message that the Bot API knows is told to the model in a sensible way, or ignored and counted as such
// (updates_total{kind="ignored"}). A new version of the library with a kind that is not in the table fails here.
func TestEveryKindOfMessage(t *testing.T) {
	t.Parallel()
	decoder := telegram.Decoder{ID: "77", Username: "zephbot"}
	fields := reflect.TypeFor[models.Message]()
	for field := range fields.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		kind, known := kinds[name]
		if !known {
			if !strings.Contains(notKinds, " "+name+" ") && !strings.Contains(notKinds, "\n "+name+" ") && !strings.Contains(notKinds, " "+name+"\n") {
				t.Errorf("%s: a kind of message that the table does not know", name)
			}
			continue
		}
		raw := fmt.Sprintf(`{"update_id":9,"message":{"message_id":5,"date":1,"chat":{"id":42,"type":"private"},"from":{"id":42},%q:%s}}`, name, kind.example)
		if !json.Valid([]byte(raw)) {
			t.Fatalf("%s: %s", name, raw)
		}
		m, err := decoder.Decode([]byte(raw))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var told []string
		for _, f := range m.Files {
			words := strings.Fields(strings.Join([]string{f.Kind, f.ID, f.Name, f.Note}, " "))
			if f.Still != "" {
				words = append(words, "still", f.Still)
			}
			told = append(told, strings.Join(words, " "))
		}
		if m.Text != "" {
			told = append(told, "text: "+m.Text)
		}
		got := strings.Join(told, " | ")
		if got != kind.told || (m.Kind == bot.Ignored) != (kind.told == "") {
			t.Errorf("%s: %s %q, want %q", name, m.Kind, got, kind.told)
		}
	}
}
