package telegram_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/bot"
)

// TestQuotes: a reply carries whose message it answers and what came with it, also from another chat.
func TestQuotes(t *testing.T) {
	t.Parallel()
	const (
		ben   = `"message_id":4,"date":1,"chat":{"id":-100},"from":{"id":43,"first_name":"Ben","last_name":"C"}`
		photo = `"photo":[{"file_id":"s","width":9,"height":9},{"file_id":"l","width":90,"height":90,"file_size":7}]`
	)
	var (
		quoted  = bot.Quote{ID: "4", Author: "Ben C", Caller: "telegram:43"}
		picture = bot.Attachment{Kind: bot.Photo, ID: "l", MIME: "image/jpeg", Size: 7}
		with    = func(text string, files ...bot.Attachment) *bot.Quote {
			q := quoted
			q.Text, q.Files = text, files
			return &q
		}
		album = picture
	)
	album.Album = "a"
	for name, c := range map[string]struct {
		reply string
		want  *bot.Quote
	}{
		"text":                {`"reply_to_message":{` + ben + `,"text":"hi"}`, with("hi")},
		"photo":               {`"reply_to_message":{` + ben + `,` + photo + `}`, with("", picture)},
		"photo with a text":   {`"reply_to_message":{` + ben + `,` + photo + `,"caption":"my cat"}`, with("my cat", picture)},
		"quoted part":         {`"reply_to_message":{` + ben + `,` + photo + `,"caption":"my cat"},"quote":{"text":"cat","position":3}`, with("cat", picture)},
		"one of an album":     {`"reply_to_message":{` + ben + `,` + photo + `,"media_group_id":"a"}`, with("", album)},
		"sticker":             {`"reply_to_message":{` + ben + `,"sticker":{"file_id":"f","emoji":"🙂"}}`, with("", bot.Attachment{Kind: "sticker", Note: "🙂", Still: "f"})},
		"animated sticker":    {`"reply_to_message":{` + ben + `,"sticker":{"file_id":"f","is_animated":true,"thumbnail":{"file_id":"t"}}}`, with("", bot.Attachment{Kind: "sticker", Still: "t"})},
		"place":               {`"reply_to_message":{` + ben + `,"location":{"latitude":52.5,"longitude":13.4}}`, with("", bot.Attachment{Kind: "location", Note: "52.500000, 13.400000"})},
		"formatted":           {`"reply_to_message":{` + ben + `,"text":"hi","rich_message":{"blocks":[]}}`, with("hi")},
		"beginning of topic":  {`"reply_to_message":{` + ben + `,"forum_topic_created":{"name":"T"}}`, nil},
		"somebody has joined": {`"reply_to_message":{` + ben + `,"new_chat_members":[{"id":5}]}`, nil},
		"in the name of the group": {
			`"reply_to_message":{"message_id":4,"date":1,"chat":{"id":-100},"from":{"id":1087968824,"is_bot":true,"first_name":"Group"},"sender_chat":{"id":-100,"title":"Team"},"text":"hi"}`,
			&bot.Quote{ID: "4", Author: "Team", Text: "hi"},
		},
		"another chat": {
			`"external_reply":{"origin":{"type":"user","sender_user":{"id":43,"first_name":"Ben","last_name":"C"}},"chat":{"id":-7,"title":"Garden"},"message_id":99,` + photo + `},"quote":{"text":"my cat"}`,
			&bot.Quote{Author: "Ben C", Caller: "telegram:43", Text: "my cat", Elsewhere: true, Chat: "Garden", Files: []bot.Attachment{picture}},
		},
		"another chat, a channel": {
			`"external_reply":{"origin":{"type":"channel","chat":{"id":-8,"title":"News"},"message_id":3},"poll":{"question":"when?","options":[{"text":"now"}]}}`,
			&bot.Quote{Author: "News", Elsewhere: true, Files: []bot.Attachment{{Kind: "poll", Note: "when?: now (0)"}}},
		},
		"another chat, somebody hidden": {
			`"external_reply":{"origin":{"type":"hidden_user","sender_user_name":"Eve"}},"quote":{"text":"psst"}`,
			&bot.Quote{Author: "Eve", Text: "psst", Elsewhere: true},
		},
		"another chat, this bot": { // what led to it there is not known here
			`"external_reply":{"origin":{"type":"user","sender_user":{"id":7,"is_bot":true,"first_name":"Zeph"}}},"quote":{"text":"done"}`,
			&bot.Quote{Author: "Zeph", Caller: "telegram:7", Text: "done", Elsewhere: true},
		},
		"another chat, as a group": {
			`"external_reply":{"origin":{"type":"chat","sender_chat":{"id":-9,"title":"Board"}}},"quote":{"text":"agreed"}`,
			&bot.Quote{Author: "Board", Text: "agreed", Elsewhere: true},
		},
		"story": {`"reply_to_story":{"id":1,"chat":{"id":43,"first_name":"Ben"}}`, &bot.Quote{Author: "Ben", Files: []bot.Attachment{{Kind: "story", Note: "Ben"}}}},
	} {
		m, err := decoder.Decode([]byte(`{"update_id":9,"message":{` + inGroup + `,"text":"@zephbot what is this?","entities":` + entity("mention", 0, 8) + `,` + c.reply + `}}`))
		if err != nil || !m.Addressed || m.Text != "what is this?" {
			t.Errorf("%s: %+v, %v", name, m, err)
		}
		if diff := cmp.Diff(c.want, m.Reply); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		fetched := c.want != nil && len(c.want.Files) > 0 && (c.want.Files[0].ID != "" || c.want.Files[0].Still != "")
		if m.HasFiles() != fetched || m.Album() != "" {
			t.Errorf("%s: has files %t, album %q", name, m.HasFiles(), m.Album())
		}
	}
}
