package telegramtest

import (
	"slices"
	"strings"
	"testing"
)

func TestEveryMethodIsInTheTable(t *testing.T) {
	t.Parallel()
	table, err := theAPI()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range methodTable() {
		if _, ok := table["method "+m.name]; !ok {
			t.Errorf("api.txt does not describe %s", m.name)
		}
	}
	for part, slots := range table {
		for name, s := range slots {
			for _, f := range []*form{&s.form, s.form.item} {
				if f != nil && f.kind == "json" && table["object "+f.of] == nil {
					t.Errorf("%s: %s is a %s, which is not described", part, name, f.of)
				}
			}
		}
	}
}

func TestRequestsThatDoNotFit(t *testing.T) {
	t.Parallel()
	table, err := theAPI()
	if err != nil {
		t.Fatal(err)
	}
	const chat, text = "7", "hello"
	for name, c := range map[string]struct {
		method  string
		params  map[string]string
		uploads []string
		want    string // "" = it fits
	}{
		"fine":             {method: "sendMessage", params: map[string]string{"chat_id": chat, "text": text}},
		"a name":           {method: "sendMessage", params: map[string]string{"chat_id": "@group", "text": text}},
		"misspelt":         {method: "sendMessage", params: map[string]string{"chat_id": chat, "text": text, "disable_notifications": "true"}, want: "disable_notifications is no parameter"},
		"missing":          {method: "sendMessage", params: map[string]string{"chat_id": chat}, want: "text is missing"},
		"too long":         {method: "sendMessage", params: map[string]string{"chat_id": chat, "text": strings.Repeat("😀", 2049)}, want: "text is 4098"},
		"chat as text":     {method: "sendMessage", params: map[string]string{"chat_id": "group", "text": text}, want: "chat_id is the text"},
		"flag as text":     {method: "sendMessage", params: map[string]string{"chat_id": chat, "text": text, "protect_content": "maybe"}, want: "protect_content is the text"},
		"half a topic":     {method: "sendMessage", params: map[string]string{"chat_id": chat, "text": text, "message_thread_id": "1.5"}, want: "is the number 1.5"},
		"topic 0":          {method: "sendMessage", params: map[string]string{"chat_id": chat, "text": text, "message_thread_id": "0"}, want: "is 0"},
		"reply":            {method: "sendMessage", params: map[string]string{"chat_id": chat, "text": text, "reply_parameters": `{"message_id":1,"allow_without":true}`}, want: "reply_parameters.allow_without is no field"},
		"no object":        {method: "sendMessage", params: map[string]string{"chat_id": chat, "text": text, "reply_parameters": `[1]`}, want: "is no ReplyParameters"},
		"entity":           {method: "sendMessage", params: map[string]string{"chat_id": chat, "text": text, "entities": `[{"type":"fat","offset":0,"length":1}]`}, want: "entities[0].type is"},
		"entity, length 0": {method: "sendMessage", params: map[string]string{"chat_id": chat, "text": text, "entities": `[{"type":"bold","offset":0,"length":0}]`}, want: "outside of 1..4096"},
		"button":           {method: "sendMessage", params: map[string]string{"chat_id": chat, "text": text, "reply_markup": `{"inline_keyboard":[[{"text":"a","callback_data":"` + strings.Repeat("ä", 33) + `"}]]}`}, want: "callback_data is 66"},
		"nine in a row":    {method: "sendMessage", params: map[string]string{"chat_id": chat, "text": text, "reply_markup": `{"inline_keyboard":[[` + strings.Repeat(`{"text":"a","callback_data":"b"},`, 8) + `{"text":"a","callback_data":"b"}]]}`}, want: "row 0 has 9 buttons"},
		"upload":           {method: "sendDocument", params: map[string]string{"chat_id": chat}, uploads: []string{"document"}},
		"no upload":        {method: "sendDocument", params: map[string]string{"chat_id": chat}, want: "document is missing"},
		"lost upload":      {method: "sendDocument", params: map[string]string{"chat_id": chat}, uploads: []string{"document", "x"}, want: "x is an upload that nothing refers to"},
		"album": {
			method: "sendMediaGroup", params: map[string]string{"chat_id": chat, "media": `[{"type":"photo","media":"attach://a"},{"type":"photo","media":"attach://b"}]`}, uploads: []string{"a", "b"},
		},
		"album of one": {method: "sendMediaGroup", params: map[string]string{"chat_id": chat, "media": `[{"type":"photo","media":"x"}]`}, want: "media has 1 items"},
		"keyboard of an album": {
			method: "sendMediaGroup", params: map[string]string{"chat_id": chat, "media": `[{"type":"photo","media":"x"},{"type":"photo","media":"x"}]`, "reply_markup": "{}"}, want: "reply_markup is no parameter",
		},
		"empty draft": {method: "sendMessageDraft", params: map[string]string{"chat_id": chat, "draft_id": "1", "text": ""}},
		"draft 0":     {method: "sendMessageDraft", params: map[string]string{"chat_id": chat, "draft_id": "0", "text": "a"}, want: "draft_id is 0"},
		"action":      {method: "sendChatAction", params: map[string]string{"chat_id": chat, "action": "dancing"}, want: "none of"},
		"toast":       {method: "answerCallbackQuery", params: map[string]string{"callback_query_id": "1", "text": strings.Repeat("x", 201)}, want: "text is 201"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &request{params: c.params, uploads: map[string]upload{}}
			for _, part := range c.uploads {
				r.uploads[part] = upload{name: part}
			}
			got := table.fits(c.method, r)
			switch {
			case c.want == "" && len(got) > 0:
				t.Errorf("got %q", got)
			case c.want != "" && !slices.ContainsFunc(got, func(line string) bool { return strings.Contains(line, c.want) }):
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
