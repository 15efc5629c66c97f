package simulator

import (
	"bytes"
	"context"
	"fmt"
	"mime"
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/zephbot/zephbot/bot/telegram/telegramtest"
	"github.com/zephbot/zephbot/bot/webpage"
)

// The page and the server speak JSON:
//
//	GET  /api/view?me&chat&thread&limit    everything one person sees: View
//	GET  /api/events                       server-sent events: "change" with the version, whenever a View may have changed
//	GET  /api/inspect?me&chat&message      what happened behind a message: Inspection
//	GET  /api/log                          {"lines":[…]}: what the bot process printed last
//	GET  /api/file?me&id                   a file of a message of a chat the person is in
//	POST /api/say      {me,chat,thread,text,reply_to,quote,files:[{name,mime,data,as,duration}]}
//	                                                         → {"message":ID,"messages":[ID…]}, several for an album
//	POST /api/edit     {me,chat,message,text}
//	POST /api/delete   {me,chat,message}
//	POST /api/press    {me,chat,message,alone,row,column,label}              → {"press":ID}; its answer appears in View.Answers
//	POST /api/stop     {me,chat,draft}
//	POST /api/react    {me,chat,message,emoji}                               one's own reaction; "" takes it back
//	POST /api/topic    {me,chat,name}                                        → {"thread":ID}
//	POST /api/read     {me,chat,thread,message}
//	POST /api/fault    {kind,count}, kind 429, cut, duplicate or slow
//	POST /api/calm     {}                  disarms all faults
//	POST /api/bot      {do}, do restart, kill, stop or start
//
// A refusal is {"error":"…"} with a status of 400 and more. POST wants Content-Type application/json. Requests that
// another web page makes are refused.

const (
	maxRequest  = 30 << 20 // a 20 MB file in base64, and some room: the limit of an album too
	eventPause  = 50 * time.Millisecond
	eventBeat   = 15 * time.Second
	orderWait   = 5 * time.Second
	octetStream = "application/octet-stream"
)

// newRoutes returns the handlers of the API.
func (s *Simulator) newRoutes(serving context.Context) *http.ServeMux {
	mux := http.NewServeMux()
	w := s.world
	mux.HandleFunc("GET /api/view", s.getView)
	mux.HandleFunc("GET /api/inspect", s.getInspection)
	mux.HandleFunc("GET /api/file", s.getFile)
	mux.HandleFunc("GET /api/log", func(rw http.ResponseWriter, _ *http.Request) {
		s.writeAnswer(rw, map[string]any{"lines": append([]string{}, s.bot.out.all()...)}, nil)
	})
	mux.HandleFunc("GET /api/events", func(rw http.ResponseWriter, r *http.Request) { s.serveEvents(serving, rw, r) })
	handlePost(s, mux, "/api/say", func(_ context.Context, in sayRequest) (any, error) {
		ids, err := w.writeMessages(in)
		if err != nil {
			return nil, err
		}
		return map[string]any{"message": ids[0], "messages": ids}, nil
	})
	handlePost(s, mux, "/api/edit", func(_ context.Context, in target) (any, error) {
		return nil, w.editMessage(in.Me, in.Chat, in.Message, in.Text)
	})
	handlePost(s, mux, "/api/delete", func(_ context.Context, in target) (any, error) {
		return nil, w.removeMessage(in.Me, in.Chat, in.Message)
	})
	handlePost(s, mux, "/api/press", func(_ context.Context, in pressRequest) (any, error) {
		id, err := w.pushButton(in)
		return map[string]string{"press": id}, err
	})
	handlePost(s, mux, "/api/stop", func(_ context.Context, in target) (any, error) {
		return nil, w.stopDraft(in.Me, in.Chat, in.Draft)
	})
	handlePost(s, mux, "/api/react", func(_ context.Context, in reaction) (any, error) {
		return nil, w.reactTo(in)
	})
	handlePost(s, mux, "/api/topic", func(_ context.Context, in target) (any, error) {
		id, err := w.startTopic(in.Me, in.Chat, in.Name)
		if err == nil && s.opt.NewTopic != nil {
			s.opt.NewTopic(in.Chat, id)
		}
		return map[string]int{"thread": id}, err
	})
	handlePost(s, mux, "/api/read", func(_ context.Context, in target) (any, error) {
		if !isKnown(in.Me) || !inChat(in.Me, in.Chat) {
			return nil, fmt.Errorf("person %d is not in chat %d", in.Me, in.Chat)
		}
		w.markRead(in.Me, in.Chat, in.Thread, in.Message)
		return nil, nil
	})
	handlePost(s, mux, "/api/fault", func(_ context.Context, in faulty) (any, error) {
		return nil, w.armFault(in.Kind, in.Count)
	})
	handlePost(s, mux, "/api/calm", func(context.Context, struct{}) (any, error) {
		w.disarmFaults()
		return nil, nil
	})
	handlePost(s, mux, "/api/bot", s.passOrder)
	return mux
}

// reaction is what a person reacts with to a message; "" = nothing any more.
type reaction struct {
	Me      int64  `json:"me"`
	Chat    int64  `json:"chat"`
	Message int    `json:"message"`
	Emoji   string `json:"emoji"`
}

// target names a message, a draft or a topic.
type target struct {
	Me      int64  `json:"me"`
	Chat    int64  `json:"chat"`
	Thread  int    `json:"thread"`
	Message int    `json:"message"`
	Draft   int    `json:"draft"`
	Text    string `json:"text"`
	Name    string `json:"name"`
}

// pressRequest identifies a button. The label guards against a keyboard that has changed in the meantime.
type pressRequest struct {
	Me      int64  `json:"me"`
	Chat    int64  `json:"chat"`
	Message int    `json:"message"`
	Alone   int    `json:"alone"` // id of an ephemeral message, instead of message
	Row     int    `json:"row"`
	Column  int    `json:"column"`
	Label   string `json:"label"`
}

type faulty struct {
	Kind  string `json:"kind"`
	Count int    `json:"count"`
}

type wish struct {
	Do order `json:"do"`
}

func (s *Simulator) passOrder(ctx context.Context, in wish) (any, error) {
	switch in.Do {
	case orderRestart, orderKill, orderStop, orderStart:
	default:
		return nil, fmt.Errorf("unknown order %q: want restart, kill, stop or start", in.Do)
	}
	ctx, cancel := context.WithTimeout(ctx, orderWait)
	defer cancel()
	return nil, s.bot.giveOrder(ctx, in.Do)
}

// handlePost adds a handler that takes a JSON object.
func handlePost[In any](s *Simulator, mux *http.ServeMux, path string, do func(context.Context, In) (any, error)) {
	mux.HandleFunc("POST "+path, func(rw http.ResponseWriter, r *http.Request) {
		var in In
		if !webpage.Decode(rw, r, maxRequest, &in) {
			return
		}
		out, err := do(r.Context(), in)
		if out == nil {
			out = struct{}{}
		}
		s.writeAnswer(rw, out, err)
	})
}

func (s *Simulator) getView(rw http.ResponseWriter, r *http.Request) {
	q := numbers{query: r}
	me, chat, topic, limit := q.numberOf("me"), q.numberOf("chat"), int(q.numberOf("thread")), int(q.numberOf("limit"))
	if q.err != nil {
		webpage.Refuse(rw, http.StatusBadRequest, q.err)
		return
	}
	out, err := s.world.view(me, chat, topic, limit)
	if err == nil {
		out.Bot = s.bot.readStatus()
		out.BotName, out.BotUser = s.botNames()
	}
	s.writeAnswer(rw, out, err)
}

// botNames returns what the bot is called on the page.
func (s *Simulator) botNames() (name, username string) {
	name, username = "Zeph", "zephbot"
	if s.opt.Fake.Name != "" {
		name = s.opt.Fake.Name
	}
	if s.opt.Fake.Username != "" {
		username = s.opt.Fake.Username
	}
	return name, username
}

func (s *Simulator) getInspection(rw http.ResponseWriter, r *http.Request) {
	q := numbers{query: r}
	me, chat, message := q.numberOf("me"), q.numberOf("chat"), int(q.numberOf("message"))
	if q.err != nil {
		webpage.Refuse(rw, http.StatusBadRequest, q.err)
		return
	}
	out, err := s.world.inspectMessage(r.Context(), s.opt.Inspect, me, chat, message)
	s.writeAnswer(rw, out, err)
}

// getFile serves a file. Whoever wrote it, it must not become a page of this origin: it is a download, and only what
// certainly is a picture, a sound or a film is displayed.
func (s *Simulator) getFile(rw http.ResponseWriter, r *http.Request) {
	q := numbers{query: r}
	me, id := q.numberOf("me"), r.URL.Query().Get("id")
	a := s.world.attachedFile(me, id)
	data, ok := s.world.fake.FileData(id)
	if q.err != nil || a == nil || !ok {
		webpage.Refuse(rw, http.StatusNotFound, fmt.Errorf("there is no file %q for person %d", id, me))
		return
	}
	head := rw.Header()
	head.Set("Content-Type", displayedType(data))
	name := mime.FormatMediaType("attachment", map[string]string{"filename": fileName(a)})
	head.Set("Content-Disposition", name)
	head.Set("Content-Security-Policy", "sandbox; default-src 'none'")
	// Players ask for parts.
	http.ServeContent(rw, r, "", time.Time{}, bytes.NewReader(data))
}

// fileName returns the name under which a file is downloaded: what a name of a path would do elsewhere is the business
// of the person who sent it, here it is only its last part.
func fileName(a *telegramtest.Attachment) string {
	name := path.Base(strings.ReplaceAll(a.Name, "\\", "/"))
	if name == "." || name == ".." || name == "/" {
		return a.Kind
	}
	return name
}

// displayedType returns the type under which a file is served. It is found in the content,
// never in what the sender says.
func displayedType(data []byte) string {
	switch kind := http.DetectContentType(data); kind {
	case "image/png", "image/jpeg", "image/gif", "image/webp", "audio/mpeg", "audio/wave", "video/webm", "video/mp4":
		return kind
	case "application/ogg":
		return "audio/ogg"
	}
	return octetStream
}

// serveEvents tells the page when to look again, at most every eventPause.
func (s *Simulator) serveEvents(serving context.Context, rw http.ResponseWriter, r *http.Request) {
	rw.Header().Set("Content-Type", "text/event-stream")
	out := http.NewResponseController(rw)
	beat := time.NewTicker(eventBeat)
	defer beat.Stop()
	for {
		version, changed := s.hub.currentVersion()
		if _, err := fmt.Fprintf(rw, "event: change\ndata: %d\n\n", version); err != nil {
			return
		}
		if err := out.Flush(); err != nil {
			return
		}
		select {
		case <-changed:
		case <-beat.C:
		case <-r.Context().Done():
			return
		case <-serving.Done():
			return
		}
		if !sleepFor(r.Context(), eventPause) {
			return
		}
	}
}

// numbers parses numbers of a query and keeps the first error.
type numbers struct {
	query *http.Request
	err   error
}

func (n *numbers) numberOf(name string) int64 {
	text := strings.TrimSpace(n.query.URL.Query().Get(name))
	if text == "" {
		return 0
	}
	v, err := strconv.ParseInt(text, 10, 53)
	if err != nil && n.err == nil {
		n.err = fmt.Errorf("%s=%q is not a number", name, text)
	}
	return v
}

func (s *Simulator) writeAnswer(rw http.ResponseWriter, v any, err error) {
	if err != nil {
		webpage.Refuse(rw, http.StatusBadRequest, err)
		return
	}
	if err := webpage.Answer(rw, v); err != nil {
		s.log.Debug().Err(err).Msg("answer the page")
	}
}
