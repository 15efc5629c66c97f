package simulator_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"mime/multipart"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
)

// tinyBot is a bot of a few commands. It confirms an update only after it has answered it, so that nothing is lost when
// it is killed.
type tinyBot struct {
	url string
}

type tinyUpdate struct {
	ID      int64 `json:"update_id"`
	Message *struct {
		ID     int    `json:"message_id"`
		Thread int    `json:"message_thread_id"`
		Text   string `json:"text"`
		From   struct {
			ID int64 `json:"id"`
		} `json:"from"`
		Caption string `json:"caption"`
		Photo   []any  `json:"photo"`
		Voice   any    `json:"voice"`
		Chat    struct {
			ID int64 `json:"id"`
		} `json:"chat"`
		Document *struct {
			Name string `json:"file_name"`
		} `json:"document"`
	} `json:"message"`
	Press *struct {
		ID   string `json:"id"`
		Data string `json:"data"`
		From struct {
			Name string `json:"first_name"`
		} `json:"from"`
		Message struct {
			ID   int `json:"message_id"`
			Chat struct {
				ID int64 `json:"id"`
			} `json:"chat"`
		} `json:"message"`
	} `json:"callback_query"`
	Stopped *struct {
		Chat struct {
			ID int64 `json:"id"`
		} `json:"chat"`
	} `json:"stopped_message_generation"`
}

func runBot() int {
	b := &tinyBot{url: os.Getenv("API_URL") + "/bot" + os.Getenv("API_TOKEN") + "/"}
	terms := make(chan os.Signal, 1)
	signal.Notify(terms, syscall.SIGTERM)
	go func() {
		<-terms
		fmt.Fprintln(os.Stderr, "bot: bye")
		os.Exit(0)
	}()
	fmt.Fprintln(os.Stderr, "bot: up")
	if _, err := b.call("setMyCommands", p{"commands": []p{{"command": "help", "description": "What I can do"}, {"command": "stop", "description": "Stop"}}}); err != nil {
		fmt.Fprintln(os.Stderr, "bot:", err)
		return 1
	}
	offset := int64(0)
	for {
		raw, err := b.call("getUpdates", p{"offset": offset, "timeout": 50})
		if err != nil {
			continue // cut by a fault
		}
		var list []tinyUpdate
		if err := json.Unmarshal(raw, &list); err != nil {
			fmt.Fprintln(os.Stderr, "bot:", err)
			return 1
		}
		for _, u := range list {
			if err := b.handle(&u); err != nil {
				fmt.Fprintln(os.Stderr, "bot:", err)
			}
			offset = u.ID + 1
		}
	}
}

func (b *tinyBot) handle(u *tinyUpdate) error {
	switch {
	case u.Press != nil:
		return b.pressed(u)
	case u.Stopped != nil:
		_, err := b.call("sendMessage", p{"chat_id": u.Stopped.Chat.ID, "text": "stopped"})
		return err
	case u.Message == nil || u.Message.Chat.ID < 0 && !strings.Contains(u.Message.Text+u.Message.Caption, "@zephbot"):
		return nil
	case u.Message.Document != nil:
		_, err := b.call("sendMessage", p{"chat_id": u.Message.Chat.ID, "text": "got " + u.Message.Document.Name})
		return err
	case u.Message.Photo != nil, u.Message.Voice != nil:
		return b.try("setMessageReaction", p{
			"chat_id": u.Message.Chat.ID, "message_id": u.Message.ID, "reaction": []p{{"type": "emoji", "emoji": "👀"}},
		})
	}
	return b.said(u)
}

func (b *tinyBot) said(u *tinyUpdate) error {
	m := u.Message
	send := p{"chat_id": m.Chat.ID, "reply_parameters": p{"message_id": m.ID}}
	if m.Thread != 0 {
		send["message_thread_id"] = m.Thread
	}
	method := "sendMessage"
	word, _, _ := strings.Cut(strings.TrimPrefix(m.Text, "@zephbot "), " ")
	switch word {
	case "ask":
		send["text"] = "✋ May I run this?\nrm *.tmp"
		send["entities"] = []p{{"type": "pre", "offset": 18, "length": 8, "language": "bash"}}
		send["reply_markup"] = p{"inline_keyboard": [][]p{
			{{"text": "Approve", "callback_data": "yes", "style": "success"}, {"text": "Deny", "callback_data": "no", "style": "danger"}},
			{{"text": "Later", "disabled": p{}}},
		}}
	case "formats":
		send["text"], send["entities"] = formats()
	case "draft":
		return b.try("sendMessageDraft", p{"chat_id": m.Chat.ID, "draft_id": "7", "text": "half a sen", "can_stop": true})
	case "typing":
		return b.try("sendChatAction", p{"chat_id": m.Chat.ID, "message_thread_id": m.Thread, "action": "typing"})
	case "file":
		return b.upload(m.Chat.ID, "document", "report.html", "", []byte("<script>alert(1)</script>"))
	case "photo":
		return b.upload(m.Chat.ID, "photo", "chart.png", "a chart", picture(640, 360))
	case "album":
		return b.album(m.Chat.ID)
	case "aside":
		send["text"], send["ephemeral_message_parameters"] = "for you alone", p{"receiver_user_id": m.From.ID}
		send["reply_markup"] = p{"inline_keyboard": [][]p{{{"text": "Fine", "callback_data": "fine"}}}}
	case "quote":
		send["text"], send["reply_parameters"] = "quoted", p{"message_id": m.ID, "quote": "quote"}
	case "crash":
		fmt.Fprintln(os.Stderr, "bot: boom")
		// Confirms first: otherwise it would crash for ever.
		if _, err := b.call("getUpdates", p{"offset": u.ID + 1, "timeout": 0}); err != nil {
			return err
		}
		os.Exit(3)
	case "spawn":
		// Leaves a process behind that keeps a connection to the test.
		self, err := os.Executable()
		if err != nil {
			return err
		}
		cmd := exec.Command(self, strings.Fields(m.Text)[1]) //nolint:noctx // it outlives the request on purpose
		cmd.Env = append(os.Environ(), botMode+"=hang")
		return cmd.Start()
	default:
		send["text"] = "echo: " + m.Text
	}
	return b.try(method, send)
}

// formats is a text with every kind of entity, behind an emoji that is two UTF-16 units wide.
func formats() (string, []p) {
	parts := []struct{ kind, text string }{
		{"", "👋 "},
		{"bold", "bold"},
		{"", " "},
		{"italic", "italic"},
		{"", " "},
		{"code", "code"},
		{"", " "},
		{"spoiler", "secret"},
		{"", " "},
		{"text_link", "link"},
		{"", " "},
		{"text_link", "bad"},
		{"", "\n"},
		{"pre", "fmt.Println(\"<b>hi</b>\")"},
		{"", "\n"},
		{"blockquote", "quoted"},
		{"", "\n"},
		{"expandable_blockquote", "one\ntwo\nthree\nfour\nfive"},
		{"", "\n<i>not markup</i> "},
		{"strikethrough", "gone"},
		{"", " "},
		{"underline", "under"},
	}
	text, at := "", 0
	var entities []p
	for _, part := range parts {
		n := 0
		for _, r := range part.text {
			n++
			if r > 0xffff {
				n++
			}
		}
		if part.kind != "" {
			e := p{"type": part.kind, "offset": at, "length": n}
			switch part.text {
			case "link":
				e["url"] = "https://example.org/a?b=c"
			case "bad":
				e["url"] = "javascript:alert(1)"
			}
			if part.kind == "pre" {
				e["language"] = "go"
			}
			entities = append(entities, e)
		}
		text, at = text+part.text, at+n
	}
	return text, entities
}

func (b *tinyBot) pressed(u *tinyUpdate) error {
	c := u.Press
	if err := b.try("answerCallbackQuery", p{"callback_query_id": c.ID, "text": "Thanks, " + c.From.Name, "show_alert": c.Data == "no"}); err != nil {
		return err
	}
	if c.Message.ID == 0 {
		return nil // an ephemeral message has no id
	}
	words := map[string]string{"yes": "✅ Approved by ", "no": "⛔ Denied by "}
	return b.try("editMessageText", p{"chat_id": c.Message.Chat.ID, "message_id": c.Message.ID, "text": words[c.Data] + c.From.Name})
}

func (b *tinyBot) try(method string, params p) error {
	_, err := b.call(method, params)
	return err
}

func (b *tinyBot) call(method string, params p) (json.RawMessage, error) {
	raw, err := json.Marshal(params)
	if err != nil {
		return nil, err
	}
	return b.post(method, "application/json", raw)
}

func (b *tinyBot) upload(chat int64, kind, name, caption string, data []byte) error {
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	if err := errors.Join(form.WriteField("chat_id", fmt.Sprint(chat)), form.WriteField("caption", caption)); err != nil {
		return err
	}
	part, err := form.CreateFormFile(kind, name)
	if err != nil {
		return err
	}
	if _, err := part.Write(data); err != nil {
		return err
	}
	if err := form.Close(); err != nil {
		return err
	}
	_, err = b.post("send"+strings.ToUpper(kind[:1])+kind[1:], form.FormDataContentType(), body.Bytes())
	return err
}

// album sends two pictures as one message.
func (b *tinyBot) album(chat int64) error {
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	media := `[{"type":"photo","media":"attach://one","caption":"two charts"},{"type":"photo","media":"attach://two"}]`
	if err := errors.Join(form.WriteField("chat_id", fmt.Sprint(chat)), form.WriteField("media", media)); err != nil {
		return err
	}
	for _, name := range []string{"one", "two"} {
		part, err := form.CreateFormFile(name, name+".png")
		if err != nil {
			return err
		}
		if _, err := part.Write(picture(200, 150)); err != nil {
			return err
		}
	}
	if err := form.Close(); err != nil {
		return err
	}
	_, err := b.post("sendMediaGroup", form.FormDataContentType(), body.Bytes())
	return err
}

// picture is a PNG of this size with a gradient.
func picture(width, height int) []byte {
	m := image.NewNRGBA(image.Rect(0, 0, width, height))
	for y := range height {
		for x := range width {
			m.Set(x, y, color.NRGBA{R: uint8(40 + 160*x/width), G: 140, B: uint8(60 + 160*y/height), A: 255})
		}
	}
	var out bytes.Buffer
	// Writing to memory cannot fail, and the picture is not empty.
	_ = png.Encode(&out, m)
	return out.Bytes()
}

func (b *tinyBot) post(method, kind string, body []byte) (json.RawMessage, error) {
	resp, err := http.Post(b.url+method, kind, bytes.NewReader(body)) //nolint:noctx // the process is killed when it is no longer needed
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	var out struct {
		OK          bool
		Result      json.RawMessage
		Description string
	}
	if err := json.NewDecoder(resp.Body).Decode(&out); err != nil {
		return nil, err
	}
	if !out.OK {
		return nil, fmt.Errorf("%s: %s", method, out.Description)
	}
	return out.Result, nil
}

// hang connects to the test and never ends by itself: its death is seen at the other end of the connection.
func hang(address string) int {
	conn, err := net.Dial("tcp", address) //nolint:noctx // see above
	if err != nil {
		return 1
	}
	_, _ = conn.Write([]byte("x"))
	// The test never answers.
	_, _ = conn.Read(make([]byte, 1))
	return 0
}
