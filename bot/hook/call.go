package hook

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/render"
)

const (
	// mostAtOnce is how many bodies a process reads at once: what they take together is bounded, and so is what senders
	// can hold up that send slowly.
	mostAtOnce = 64
	// readWithin is how long the body of a call may take to arrive.
	readWithin = 10 * time.Second
	// mostWaiting is how many messages may wait in a conversation for a call to be accepted: what does not keep up
	// would be answered hours later.
	mostWaiting = 20
	// againIn is when a sender that is refused for a while should try again.
	againIn = 30 * time.Second
	// mostEvent bounds the name of an event.
	mostEvent = 100
	// staleTries is how often a call is looked at because something else was stored meanwhile.
	staleTries = 4
	// mostLooks is how many calls a minute that prove nothing have a process look whether hooks were changed.
	mostLooks = 600
)

// errStale means that what a call was checked with is not what is stored.
var errStale = errors.New("the hook was changed, or the same call was stored, meanwhile")

// The results of calls, for metrics.
const (
	resultBegun    = "begun"
	resultRepeated = "repeated" // the same call began a turn before
	resultIgnored  = "ignored"  // a test by the sender, or not what the hook is for
	resultRefused  = "refused"  // not signed, or of no hook
	resultInvalid  = "invalid"  // too large, or of a wrong form
	resultBusy     = "busy"     // too many at once
	resultOff      = "off"      // it is paused, or its owner is not admitted
	resultFailed   = "failed"   // it could not be stored
)

// answer is the answer to a request.
type answer struct {
	status int
	result string
	text   string
	again  bool // the sender should try again later
}

// refused is the answer to every request that proves nothing, whether the hook exists or not.
var refused = answer{status: http.StatusUnauthorized, result: resultRefused, text: "not accepted"}

// paused is the answer to a call of a hook that begins nothing.
var paused = answer{status: http.StatusForbidden, result: resultOff, text: "it is paused"}

// eventHeaders are those in which the senders that we know name what has happened.
var eventHeaders = []string{"X-GitHub-Event", "X-Gitlab-Event", "X-Gitea-Event", "X-Forgejo-Event", "Linear-Event"}

// ServeHTTP accepts a call: POST /hooks/NAME.
func (h *Hooks) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(r.URL.EscapedPath(), Path)
	a := h.accept(w, r, name)
	if h.deps.Observe != nil {
		h.deps.Observe(a.result)
	}
	if a.again {
		w.Header().Set("Retry-After", strconv.Itoa(int(againIn/time.Second)))
	}
	if a.status == http.StatusMethodNotAllowed {
		w.Header().Set("Allow", http.MethodPost)
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(a.status)
	_, _ = io.WriteString(w, a.text+"\n") // the sender may be gone
}

// accept does what a request asks for, and returns the answer.
func (h *Hooks) accept(w http.ResponseWriter, r *http.Request, name string) answer {
	if r.Method != http.MethodPost {
		return answer{status: http.StatusMethodNotAllowed, result: resultInvalid, text: "POST only"}
	}
	h.mu.Lock()
	serving := h.serving
	h.mu.Unlock()
	if !serving {
		return answer{http.StatusServiceUnavailable, resultBusy, "not ready", true}
	}
	isJSON, wrong := contentForm(r.Header)
	if wrong != "" {
		return answer{status: http.StatusUnsupportedMediaType, result: resultInvalid, text: wrong}
	}
	select {
	case h.slots <- struct{}{}:
		defer func() { <-h.slots }()
	default:
		return answer{http.StatusServiceUnavailable, resultBusy, "too many calls at once", true}
	}
	body, failed := h.readBody(w, r)
	if failed != nil {
		return *failed
	}
	for try := range staleTries {
		a, err := h.acceptBody(r, name, body, isJSON)
		// A hook may have been made or resumed, or got a new secret, a moment ago.
		if (a == refused || a == paused) && try == 0 && h.isInPace("", mostLooks) {
			err = errStale
		}
		switch {
		case err == nil:
			return a
		case errors.Is(err, errStale):
			err = h.made.Follow(r.Context())
		}
		if err != nil {
			h.deps.Log.Error().Err(err).Str("hook", name).
				Msg("the call of a hook is not stored; its sender is asked to repeat it")
			break
		}
	}
	return answer{http.StatusServiceUnavailable, resultFailed, "not stored", true}
}

// acceptBody accepts a call with a body. errStale: the hook was changed since this process has read it.
func (h *Hooks) acceptBody(r *http.Request, name string, body []byte, isJSON bool) (answer, error) {
	secret, k := h.decoy, h.find(name)
	if k != nil {
		secret = k.secret
	}
	which, ok := (&request{header: r.Header, body: body, secret: secret, now: h.deps.Now()}).verify()
	if !ok || k == nil {
		return refused, nil
	}
	brought, err := decodeContent(body, isJSON)
	if err != nil {
		return answer{status: http.StatusBadRequest, result: resultInvalid, text: err.Error()}, nil
	}
	for _, header := range eventHeaders {
		if event := r.Header.Get(header); event != "" {
			brought.event = cutValue(printableText(event), mostEvent)
		}
	}
	if brought.event == "ping" && r.Header.Get("X-GitHub-Event") != "" { // GitHub tries a new webhook
		return answer{status: http.StatusOK, result: resultIgnored, text: "pong"}, nil
	}
	if slices.ContainsFunc(k.when, func(c Condition) bool { return !c.isMet(brought) }) {
		return answer{status: http.StatusOK, result: resultIgnored, text: "nothing to do"}, nil
	}
	if !h.isInPace(name, h.opts.PerMinute) {
		return answer{http.StatusTooManyRequests, resultBusy, "too many calls of this hook", true}, nil
	}
	return h.begin(r.Context(), k, which, brought)
}

// readBody reads the body of a request, which may neither be large nor take long.
func (h *Hooks) readBody(w http.ResponseWriter, r *http.Request) ([]byte, *answer) {
	tooLarge := &answer{
		status: http.StatusRequestEntityTooLarge, result: resultInvalid,
		text: fmt.Sprintf("more than %d bytes", h.opts.MaxBody),
	}
	if r.ContentLength > h.opts.MaxBody {
		return nil, tooLarge
	}
	// A writer that has no deadlines is that of a test.
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(readWithin))
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, h.opts.MaxBody))
	switch _, large := errors.AsType[*http.MaxBytesError](err); {
	case large:
		return nil, tooLarge
	case err != nil:
		return nil, &answer{status: http.StatusBadRequest, result: resultInvalid, text: "body not readable"}
	case !utf8.Valid(body):
		return nil, &answer{status: http.StatusUnsupportedMediaType, result: resultInvalid, text: "not UTF-8"}
	}
	return body, nil
}

// contentForm says whether a content is JSON, or why it is not read: only JSON and text in UTF-8 are, uncompressed.
func contentForm(header http.Header) (isJSON bool, wrong string) {
	if encoding := header.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return false, "compressed content is not read"
	}
	kind, params, err := mime.ParseMediaType(header.Get("Content-Type"))
	if charset := params["charset"]; err == nil && charset != "" && !strings.EqualFold(charset, "utf-8") {
		return false, "content is read as UTF-8 only"
	}
	switch {
	case err == nil && (kind == "application/json" || strings.HasSuffix(kind, "+json")):
		return true, ""
	case err == nil && kind == "text/plain":
		return false, ""
	default:
		return false, "content is application/json or text/plain"
	}
}

// begin stores a call as an arrival of its owner, unless it is the repetition of one. The identity of the call is
// stored with it: a Change that would store the same one again is refused.
func (h *Hooks) begin(ctx context.Context, k *hook, which identity, c content) (answer, error) {
	now := h.deps.Now()
	sum := sha256.Sum256([]byte(k.name + "\x00" + which.id))
	seen := hex.EncodeToString(sum[:16])
	id := strings.Join([]string{"hook", k.name, seen, strconv.FormatInt(now.UnixNano(), 36)}, "-")
	repeated := answer{status: http.StatusOK, result: resultRepeated, text: "accepted before"}
	known, err := h.deps.Store.Fact(ctx, seenBucket, k.name+"/"+seen, now)
	if err != nil {
		return answer{}, err
	}
	if known != "" {
		return repeated, nil
	}
	if k, err = h.withName(ctx, k); err != nil {
		return answer{}, err
	}
	msg := k.message(id, k.prompt.text(k.name, c), now)
	arrival, err := h.arrivalOf(msg)
	if err != nil {
		return answer{}, err
	}
	if a, err := h.admit(ctx, k, msg, arrival.Session); err != nil || a.status != 0 {
		return a, err
	}
	change := &bot.Change{Arrive: []bot.Arrival{arrival}, Facts: []bot.Fact{
		{Bucket: seenBucket, Key: k.name + "/" + seen, Value: id, Expires: now.Add(which.For), Was: new("")},
		{Bucket: lastBucket, Key: string(arrival.Session) + "/" + k.name, Value: now.UTC().Format(time.RFC3339)},
	}}
	if k.stored != nil {
		change.Facts = append(change.Facts, *k.stored)
	}
	_, err = h.deps.Store.Apply(ctx, change)
	if errors.Is(err, bot.ErrConflict) { // another request was faster, or the hook is not what it was
		return answer{}, errStale
	}
	if err != nil {
		return answer{}, fmt.Errorf("store the call of a hook: %w", err)
	}
	h.deps.Engine.Wake(arrival.Session)
	return answer{status: http.StatusAccepted, result: resultBegun, text: "accepted"}, nil
}

// sessionOf returns the conversation of a message, which may have moved since its hook was written.
func (h *Hooks) sessionOf(msg *bot.Message) bot.SessionKey {
	return h.deps.Current(h.deps.Engine.Session(msg))
}

// arrivalOf returns the arrival with which a message begins a turn, in the chat that its conversation is in now.
func (h *Hooks) arrivalOf(msg *bot.Message) (bot.Arrival, error) {
	session := h.sessionOf(msg)
	msg.Place.Chat = session.Chat()
	raw, err := bot.EncodeMessage(msg)
	return bot.Arrival{
		Channel: h.deps.Channel, Bot: h.deps.Bot, ID: msg.ID, Source: bot.FromHook, Session: session, Raw: raw, At: msg.At,
	}, err
}

// admit reports whether the turn of a call may begin: its owner may talk where it runs, and not too much waits there.
func (h *Hooks) admit(ctx context.Context, k *hook, msg *bot.Message, session bot.SessionKey) (answer, error) {
	if k.off {
		return paused, nil
	}
	verdict, err := h.deps.Guard.Admit(ctx, msg)
	if err != nil {
		return answer{}, fmt.Errorf("check who may talk: %w", err)
	}
	gone := false
	if verdict.OK && msg.Place.Group && h.deps.Gone != nil {
		if gone, err = h.deps.Gone(ctx, msg.Place, msg.Person); err != nil {
			return answer{}, fmt.Errorf("check who is in a group: %w", err)
		}
	}
	if !verdict.OK || gone {
		return answer{status: http.StatusForbidden, result: resultOff, text: "its owner may not use the bot there"},
			h.tellRevoked(ctx, msg)
	}
	waiting, err := h.deps.Store.Tickets(ctx, string(session))
	if err != nil {
		return answer{}, fmt.Errorf("count what waits: %w", err)
	}
	if len(waiting) >= mostWaiting {
		return answer{http.StatusServiceUnavailable, resultBusy, "too much waits in its chat", true}, nil
	}
	return answer{}, nil
}

// tellRevoked tells the admins, once a day, that a hook is called whose owner is not admitted.
func (h *Hooks) tellRevoked(ctx context.Context, msg *bot.Message) error {
	h.deps.Log.Warn().Str("hook", msg.Hook).Str("caller", msg.Caller).
		Msg("a hook was called, but its owner may not use the bot there")
	if h.deps.Operators == nil {
		return nil
	}
	change := &bot.Change{}
	for _, place := range h.deps.Operators() {
		text := h.deps.Words.At(place).HookRevoked("", msg.Hook)
		change.Send = append(change.Send, bot.Row{
			Place: place, Purpose: bot.Notice,
			Key:     strings.Join([]string{"hook/revoked", msg.Hook, msg.At.UTC().Format(time.DateOnly), place.Chat}, "/"),
			Content: bot.Content{Text: text, Entities: render.Inert(text)},
		})
	}
	if _, err := h.deps.Store.Apply(ctx, change); err != nil {
		return fmt.Errorf("tell that a hook is off: %w", err)
	}
	for i := range change.Send {
		h.deps.Outbox.Wake(change.Send[i].Place)
	}
	return nil
}

// pace is how many calls of a hook may still come, as of a time.
type pace struct {
	left float64
	at   time.Time
}

// isInPace counts a call of a hook, and reports whether there were no more than so many within a minute. "" stands for
// all that prove nothing.
func (h *Hooks) isInPace(name string, perMinute int) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	now, most := h.deps.Now(), float64(perMinute)
	p, known := h.paces[name]
	if !known {
		p = pace{left: most, at: now}
	}
	p.left = min(most, p.left+most*max(0, now.Sub(p.at).Minutes()))
	p.at = now
	ok := p.left >= 1
	if ok {
		p.left--
	}
	h.paces[name] = p
	return ok
}
