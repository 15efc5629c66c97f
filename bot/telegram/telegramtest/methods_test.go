package telegramtest_test

import (
	"bytes"
	"fmt"
	"maps"
	"mime/multipart"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/zephbot/zephbot/bot/telegram/telegramtest"
)

const notModified = "Bad Request: message is not modified: specified new message content and reply markup are exactly the same as a current content and reply markup of the message"

// refusal is a call and the words it is refused with.
type refusal struct {
	method string
	params p
	code   int
	text   string
}

// TestRefusals has a row for every refusal that needs no more preparation than one message in each place.
func TestRefusals(t *testing.T) {
	t.Parallel()
	w := setup(t, telegramtest.Options{})
	own := w.send(ann, "own", keyboard(p{"text": "A", "callback_data": "a"}))
	said, _ := w.Say(ann, ann, telegramtest.Message{Text: "hers"})
	inGroup, _ := w.Say(ann, group, telegramtest.Message{Text: "/hi"})
	for i, row := range slices.Concat(sendRefusals(said), otherRefusals(own, said, inGroup)) {
		t.Run(fmt.Sprintf("%d %s", i, row.method), func(t *testing.T) {
			w := &world{Server: w.Server, clock: w.clock, url: w.url, t: t}
			w.refused(row.method, row.params, row.code, row.text)
		})
	}
	if got := w.Chat(ann); len(got) != 2 {
		t.Errorf("refused calls left %d messages, want the 2 from before", len(got))
	}
}

func sendRefusals(said int) []refusal {
	button := func(b p) p { return p{"chat_id": ann, "text": "x", "reply_markup": p{"inline_keyboard": [][]p{{b}}}} }
	entity := func(text string, e ...p) p { return p{"chat_id": ann, "text": text, "entities": e} }
	html := func(text string) p { return p{"chat_id": ann, "text": text, "parse_mode": "HTML"} }
	md := func(text string) p { return p{"chat_id": ann, "text": text, "parse_mode": "MarkdownV2"} }
	many := make([]p, 9)
	for i := range many {
		many[i] = p{"text": "x", "callback_data": "x"}
	}
	return []refusal{
		{"noSuchMethod", p{}, 404, "Not Found"},
		{"sendMessage", p{"text": "x"}, 400, "Bad Request: chat_id is empty"},
		{"sendMessage", p{"chat_id": 999, "text": "x"}, 400, "Bad Request: chat not found"},
		{"sendMessage", p{"chat_id": "@nobody", "text": "x"}, 400, "Bad Request: chat not found"},
		{"sendMessage", p{"chat_id": carol, "text": "x"}, 403, "Forbidden: bot can't initiate conversation with a user"},
		{"sendMessage", p{"chat_id": ann}, 400, "Bad Request: message text is empty"},
		{"sendMessage", p{"chat_id": ann, "text": " \n "}, 400, "Bad Request: text must be non-empty"},
		{"sendMessage", p{"chat_id": ann, "text": strings.Repeat("😀", 2049)}, 400, "Bad Request: message is too long"},
		{"sendMessage", p{"chat_id": ann, "text": "x", "parse_mode": "BB"}, 400, "Bad Request: unsupported parse_mode"},
		{"sendMessage", p{"chat_id": ann, "text": "x", "reply_parameters": p{"message_id": 99}}, 400, "Bad Request: message to be replied not found"},
		{"sendMessage", p{"chat_id": ann, "text": "x", "reply_to_message_id": 99}, 400, "Bad Request: message to be replied not found"},
		{"sendMessage", p{"chat_id": ann, "text": "x", "reply_parameters": p{"message_id": said, "quote": "his"}}, 400, "Bad Request: QUOTE_TEXT_INVALID"},
		{"sendMessage", p{"chat_id": ann, "text": "x", "reply_parameters": "nonsense"}, 400, "Bad Request: can't parse reply parameters JSON object"},
		{"sendMessage", p{"chat_id": ann, "text": "x", "message_thread_id": 7}, 400, "Bad Request: message thread not found"},
		{"sendMessage", p{"chat_id": forum, "text": "x", "message_thread_id": 8}, 400, "Bad Request: message thread not found"},
		{"sendMessage", p{"chat_id": forum, "text": "x", "message_thread_id": 1}, 400, "Bad Request: message thread not found"},
		{"sendMessage", button(p{"text": "x", "callback_data": strings.Repeat("ä", 33)}), 400, "Bad Request: BUTTON_DATA_INVALID"},
		{"sendMessage", button(p{"text": "x"}), 400, "Bad Request: can't parse inline keyboard button: Text buttons are unallowed in the inline keyboard"},
		{"sendMessage", button(p{"text": "", "callback_data": "x"}), 400, "Bad Request: can't parse inline keyboard button: Field \"text\" must be of type String"},
		{"sendMessage", button(p{"text": "x", "callback_data": "x", "url": "https://a"}), 400, "Bad Request: can't parse inline keyboard button: exactly one optional field must be used"},
		{"sendMessage", button(p{"text": "x", "copy_text": p{"text": strings.Repeat("x", 257)}}), 400, "Bad Request: BUTTON_COPY_TEXT_INVALID"},
		{"sendMessage", button(p{"text": "x", "callback_data": "x", "style": "pink"}), 400, "Bad Request: can't parse inline keyboard button: invalid button style specified"},
		{"sendMessage", p{"chat_id": ann, "text": "x", "reply_markup": p{"inline_keyboard": [][]p{many}}}, 400, "Bad Request: reply markup is too long"},
		{"sendMessage", entity("ab", p{"type": "bold", "offset": 1, "length": 2}), 400, "Bad Request: entity beginning at UTF-16 offset 1 ends after the end of the text at UTF-16 offset 3"},
		{"sendMessage", entity("😀b", p{"type": "bold", "offset": 1, "length": 2}), 400, "Bad Request: entity begins in a middle of a UTF-16 symbol at byte offset 4"},
		{"sendMessage", entity("😀b", p{"type": "bold", "offset": 0, "length": 1}), 400, "Bad Request: entity beginning at UTF-16 offset 0 ends in a middle of a UTF-16 symbol at byte offset 4"},
		{"sendMessage", entity("ab", p{"type": "bold", "offset": -1, "length": 1}), 400, "Bad Request: entity has negative offset"},
		{"sendMessage", entity("ab", p{"type": "bold", "offset": 0, "length": -1}), 400, "Bad Request: entity has negative length"},
		{"sendMessage", entity("ab", p{"offset": 0, "length": 1}), 400, "Bad Request: can't parse MessageEntity: Field \"type\" must be of type String"},
		{"sendMessage", entity("ab", p{"type": "text_link", "offset": 0, "length": 1}), 400, "Bad Request: can't parse MessageEntity: Can't find field \"url\""},
		{"sendMessage", entity("ab", p{"type": "text_mention", "offset": 0, "length": 1}), 400, "Bad Request: can't parse MessageEntity: Can't find field \"user\""},
		{"sendMessage", html("<b>x"), 400, "Bad Request: can't parse entities: can't find end tag corresponding to start tag \"b\""},
		{"sendMessage", html("<p>x</p>"), 400, "Bad Request: can't parse entities: unsupported start tag \"p\" at byte offset 0"},
		{"sendMessage", html("<b>x</i>"), 400, "Bad Request: can't parse entities: unmatched end tag at byte offset 4, expected \"</b>\", found \"</i>\""},
		{"sendMessage", html("x</b>"), 400, "Bad Request: can't parse entities: unexpected end tag at byte offset 1"},
		{"sendMessage", html("a < b"), 400, "Bad Request: can't parse entities: unclosed start tag at byte offset 2"},
		{"sendMessage", md("a.b"), 400, "Bad Request: can't parse entities: character '.' is reserved and must be escaped with the preceding '\\'"},
		{"sendMessage", md("*a"), 400, "Bad Request: can't parse entities: can't find end of Bold entity at byte offset 0"},
		{"sendMessage", md("```a"), 400, "Bad Request: can't parse entities: can't find end of Pre entity at byte offset 0"},
		{"sendMessage", md("[a](b"), 400, "Bad Request: can't parse entities: can't find end of a URL at byte offset 2"},
	}
}

func otherRefusals(own, said, inGroup int) []refusal {
	return []refusal{
		{"editMessageText", p{"chat_id": ann, "text": "x"}, 400, "Bad Request: message identifier is not specified"},
		{"editMessageText", p{"chat_id": ann, "message_id": 99, "text": "x"}, 400, "Bad Request: message to edit not found"},
		{"editMessageText", p{"chat_id": ann, "message_id": said, "text": "x"}, 400, "Bad Request: message can't be edited"},
		{"editMessageText", p{"chat_id": ann, "message_id": own, "text": ""}, 400, "Bad Request: message text is empty"},
		{"editMessageText", p{"chat_id": ann, "message_id": own, "text": strings.Repeat("x", 4097)}, 400, "Bad Request: message is too long"},
		{"editMessageText", p{"inline_message_id": "abc", "text": "x"}, 400, "Bad Request: MESSAGE_ID_INVALID"},
		{"editMessageCaption", p{"chat_id": ann, "message_id": own, "caption": "x"}, 400, "Bad Request: there is no caption in the message to edit"},
		{"editMessageReplyMarkup", p{"chat_id": ann, "message_id": own, "reply_markup": p{"inline_keyboard": [][]p{{{"text": "A", "callback_data": "a"}}}}}, 400, notModified},
		{"deleteMessage", p{"chat_id": ann, "message_id": 99}, 400, "Bad Request: message to delete not found"},
		{"deleteMessage", p{"chat_id": group, "message_id": inGroup}, 400, "Bad Request: message can't be deleted"},
		{"deleteMessages", p{"chat_id": ann}, 400, "Bad Request: message identifiers are not specified"},
		{"deleteMessages", p{"chat_id": ann, "message_ids": make([]int, 101)}, 400, "Bad Request: too many message identifiers specified"},
		{"answerCallbackQuery", p{"callback_query_id": "1"}, 400, "Bad Request: query is too old and response timeout expired or query ID is invalid"},
		{"sendChatAction", p{"chat_id": ann, "action": "dancing"}, 400, "Bad Request: wrong parameter action in request"},
		{"sendChatAction", p{"chat_id": forum, "action": "typing", "message_thread_id": 8}, 400, "Bad Request: message thread not found"},
		{"sendMessageDraft", p{"chat_id": group, "draft_id": 1, "text": "x"}, 400, "Bad Request: TEXTDRAFT_PEER_INVALID"},
		{"sendMessageDraft", p{"chat_id": ann, "draft_id": 0, "text": "x"}, 400, "Bad Request: draft identifier must be non-zero"},
		{"sendMessageDraft", p{"chat_id": ann, "draft_id": 1, "text": strings.Repeat("x", 4097)}, 400, "Bad Request: message is too long"},
		{"setMessageReaction", p{"chat_id": ann, "message_id": said, "reaction": []p{{"type": "emoji", "emoji": "✅"}}}, 400, "Bad Request: REACTION_INVALID"},
		{"setMessageReaction", p{"chat_id": ann, "message_id": said, "reaction": []p{{"type": "emoji", "emoji": "👍"}, {"type": "emoji", "emoji": "👀"}}}, 400, "Bad Request: REACTIONS_TOO_MANY"},
		{"setMessageReaction", p{"chat_id": ann, "message_id": 99, "reaction": []p{}}, 400, "Bad Request: message to react not found"},
		{"sendDocument", p{"chat_id": ann}, 400, "Bad Request: there is no document in the request"},
		{"sendDocument", p{"chat_id": ann, "document": "nope"}, 400, "Bad Request: wrong remote file identifier specified: can't unserialize it"},
		{"sendDocument", p{"chat_id": ann, "document": "x", "caption": strings.Repeat("x", 1025)}, 400, "Bad Request: message caption is too long"},
		{"getFile", p{"file_id": "nope"}, 400, "Bad Request: invalid file_id"},
		{"setMyCommands", p{"commands": []p{{"command": "Upper", "description": "x"}}}, 400, "Bad Request: BOT_COMMAND_INVALID"},
		{"setMyCommands", p{"commands": []p{{"command": "a", "description": ""}}}, 400, "Bad Request: BOT_COMMAND_DESCRIPTION_INVALID"},
		{"setMyCommands", p{"commands": []p{{"command": "a", "description": "x"}}, "scope": p{"type": "world"}}, 400, "Bad Request: can't parse BotCommandScope: unsupported type specified"},
		{"setMyCommands", p{"commands": []p{{"command": "a", "description": "x"}}, "scope": p{"type": "chat", "chat_id": 999}}, 400, "Bad Request: chat not found"},
		{"setMyDescription", p{"description": strings.Repeat("x", 513)}, 400, "Bad Request: description is too long"},
		{"setMyShortDescription", p{"short_description": strings.Repeat("x", 121)}, 400, "Bad Request: short_description is too long"},
		{"getChat", p{"chat_id": 999}, 400, "Bad Request: chat not found"},
		{"getChatMember", p{"chat_id": group, "user_id": 999}, 400, "Bad Request: PARTICIPANT_ID_INVALID"},
		{"getChatAdministrators", p{"chat_id": ann}, 400, "Bad Request: there are no administrators in the private chat"},
		{"leaveChat", p{"chat_id": ann}, 400, "Bad Request: chat not found"},
		{"createForumTopic", p{"chat_id": group, "name": "x"}, 400, "Bad Request: the chat is not a forum"},
		{"createForumTopic", p{"chat_id": forum, "name": strings.Repeat("x", 129)}, 400, "Bad Request: TOPIC_TITLE_EMPTY"},
		{"editForumTopic", p{"chat_id": forum, "message_thread_id": 7, "name": "Seven"}, 400, "Bad Request: TOPIC_NOT_MODIFIED"},
		{"editForumTopic", p{"chat_id": forum, "message_thread_id": 9, "name": "x"}, 400, "Bad Request: TOPIC_ID_INVALID"},
		{"setWebhook", p{"url": "http://a.example"}, 400, "Bad Request: bad webhook: An HTTPS URL must be provided for webhook"},
		{"setWebhook", p{"url": "https://a.example:444"}, 400, "Bad Request: bad webhook: Webhook can be set up only on ports 80, 88, 443 or 8443"},
		{"setWebhook", p{"url": "https://a.example", "secret_token": "a b"}, 400, "Bad Request: secret token contains unallowed characters"},
		{"setWebhook", p{"url": "nothing"}, 400, "Bad Request: bad webhook: invalid webhook URL specified"},
		{"close", p{}, 429, "Too Many Requests: retry after 600"},
	}
}

func TestTokenAndPath(t *testing.T) {
	t.Parallel()
	w := setup(t, telegramtest.Options{})
	for _, row := range []struct {
		path string
		want int
	}{
		{"/bot" + w.Token() + "/getMe", 200},
		{"/bot" + w.Token() + "/GETME", 200},
		{"/bot1:wrong/getMe", 401},
		{"/file/bot1:wrong/documents/file_1", 401},
		{"/file/bot" + w.Token() + "/documents/none", 404},
		{"/elsewhere", 404},
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.url+row.path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		if r := do(req); r.err != nil || r.status != row.want {
			t.Errorf("%s: got %d %v, want %d", row.path, r.status, r.err, row.want)
		}
	}
}

// TestBodies sends the same message in every encoding Telegram takes.
func TestBodies(t *testing.T) {
	t.Parallel()
	w := setup(t, telegramtest.Options{})
	var form bytes.Buffer
	mw := multipart.NewWriter(&form)
	for k, v := range map[string]string{"chat_id": "11", "text": "hi", "entities": `[{"type":"bold","offset":0,"length":2}]`} {
		if err := mw.WriteField(k, v); err != nil {
			t.Fatal(err)
		}
	}
	if err := mw.Close(); err != nil {
		t.Fatal(err)
	}
	values := url.Values{"chat_id": {"11"}, "text": {"hi"}, "entities": {`[{"type":"bold","offset":0,"length":2}]`}}
	for _, row := range []struct {
		name, method, kind string
		body               []byte
		want               string
	}{
		{"json", "sendMessage", "application/json", []byte(`{"chat_id":11,"text":"hi","entities":[{"type":"bold","offset":0,"length":2}]}`), ""},
		{"json with JSON strings", "sendMessage", "application/json", []byte(`{"chat_id":"11","text":"hi","entities":"[{\"type\":\"bold\",\"offset\":0,\"length\":2}]"}`), ""},
		{"urlencoded", "sendMessage", "application/x-www-form-urlencoded", []byte(values.Encode()), ""},
		{"multipart", "sendMessage", mw.FormDataContentType(), form.Bytes(), ""},
		{"query", "sendMessage?" + values.Encode(), "", nil, ""},
		{"broken json", "sendMessage", "application/json", []byte(`{`), "Bad Request: can't parse JSON object"},
		{"json array", "sendMessage", "application/json", []byte(`[]`), "Bad Request: can't parse JSON object"},
		{"unknown kind", "sendMessage", "text/plain", []byte(`x`), "Bad Request: unsupported Content-Type"},
		{"no boundary", "sendMessage", "multipart/form-data", []byte(`x`), "Bad Request: boundary not found"},
		{"broken multipart", "sendMessage", "multipart/form-data; boundary=b", []byte("--b\r\nnothing"), "Bad Request: can't parse multipart form data"},
		{"not utf-8", "sendMessage", "application/x-www-form-urlencoded", []byte("chat_id=11&text=%ff"), "Bad Request: strings must be encoded in UTF-8"},
	} {
		before := len(w.Chat(ann))
		r := w.post(row.method, row.kind, row.body)
		if r.err != nil || r.Text != row.want {
			t.Errorf("%s: %v %q, want %q", row.name, r.err, r.Text, row.want)
			continue
		}
		got := w.Chat(ann)[before:]
		if row.want == "" && (len(got) != 1 || got[0].Text != "hi" || len(got[0].Entities) != 1) {
			t.Errorf("%s: shows %+v", row.name, got)
		}
	}
}

func TestSendAndShow(t *testing.T) {
	t.Parallel()
	w := setup(t, telegramtest.Options{})
	first, _ := w.Say(ann, ann, telegramtest.Message{Text: "a question"})
	id := w.send(ann, "  \n an answer  ", p{
		"reply_parameters": p{"message_id": first, "quote": "question"},
		"entities":         []p{{"type": "bold", "offset": 4, "length": 4}},
		"reply_markup": p{"inline_keyboard": [][]p{
			{{"text": "Yes", "callback_data": "y", "style": "success"}, {"text": "No", "disabled": p{}}}, {},
		}},
	})
	got, ok := w.Message(ann, id)
	if !ok || got.Text != "an answer" || got.ReplyTo != first || got.Quote != "question" || !got.FromBot || got.From != w.BotID() {
		t.Errorf("shown: %+v", got)
	}
	if e := got.Entities; len(e) != 1 || e[0].Offset != 0 || e[0].Length != 4 {
		t.Errorf("entities after trimming: %+v", e)
	}
	if k := got.Keyboard; len(k) != 1 || len(k[0]) != 2 || k[0][0].Text != "Yes" || k[0][1].Disabled == nil {
		t.Errorf("keyboard: %+v", k)
	}
	if id := w.send(ann, "lonely", p{"reply_parameters": p{"message_id": 99, "allow_sending_without_reply": true}}); func() bool {
		m, _ := w.Message(ann, id)
		return m.ReplyTo != 0
	}() {
		t.Error("reply to a missing message was not dropped")
	}
	if m, _ := w.Message(forum, w.send(forum, "in seven", p{"message_thread_id": 7})); m.Thread != 7 {
		t.Errorf("thread: %+v", m)
	}
	if m, _ := w.Message(forum, w.send(forum, "in general")); m.Thread != 0 {
		t.Errorf("general: %+v", m)
	}
	w.send(ann, strings.Repeat("😀", 2048))
	entities := make([]p, 120)
	for i := range entities {
		entities[i] = p{"type": "bold", "offset": i, "length": 1}
	}
	if m, _ := w.Message(ann, w.send(ann, strings.Repeat("x", 120), p{"entities": entities})); len(m.Entities) != 100 {
		t.Errorf("%d entities kept, want 100", len(m.Entities))
	}
}

func TestIDsAreNeverReused(t *testing.T) {
	t.Parallel()
	w := setup(t, telegramtest.Options{})
	seen := map[int]bool{}
	for range 5 {
		id := w.send(ann, "x")
		if seen[id] {
			t.Fatalf("id %d twice", id)
		}
		seen[id] = true
		w.must("deleteMessage", p{"chat_id": ann, "message_id": id}, nil)
	}
	if id := w.send(group, "x"); !seen[id] {
		t.Errorf("group id %d: chats must count on their own so that ids collide across chats", id)
	}
}

func TestEditing(t *testing.T) {
	t.Parallel()
	w := setup(t, telegramtest.Options{})
	keys := keyboard(p{"text": "A", "callback_data": "a"})
	id := w.send(ann, "one", keys)
	at := p{"chat_id": ann, "message_id": id}
	with := func(more ...p) p {
		out := p{}
		for _, m := range append([]p{at}, more...) {
			maps.Copy(out, m)
		}
		return out
	}
	w.refused("editMessageText", with(keys, p{"text": "one "}), 400, notModified)
	w.must("editMessageText", with(keys, p{"text": "two"}), nil)
	if m, _ := w.Message(ann, id); m.Text != "two" || len(m.Keyboard) != 1 || !m.Edited || m.Edits != 1 {
		t.Errorf("after edit with markup: %+v", m)
	}
	w.must("editMessageText", with(p{"text": "two"}), nil)
	if m, _ := w.Message(ann, id); m.Text != "two" || m.Keyboard != nil {
		t.Errorf("an edit without markup must drop the keyboard: %+v", m)
	}
	w.must("editMessageReplyMarkup", with(keys), nil)
	w.must("editMessageReplyMarkup", with(), nil)
	if m, _ := w.Message(ann, id); m.Keyboard != nil || m.Edits != 4 {
		t.Errorf("after editMessageReplyMarkup without markup: %+v", m)
	}
	w.refused("editMessageReplyMarkup", with(), 400, notModified)
	w.must("deleteMessage", at, nil)
	w.refused("editMessageText", with(p{"text": "x"}), 400, "Bad Request: message to edit not found")
}
