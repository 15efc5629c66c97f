// Package telegram is the Telegram channel: updates in (polling or webhook, stored before they are confirmed), messages
// out. It uses the vendor library for methods and models, and its own intake, because that library confirms updates
// before anybody has handled them.
package telegram

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	tg "github.com/go-telegram/bot"
	"github.com/go-telegram/bot/models"

	"github.com/zephbot/zephbot/agent/blob"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/render"
)

// maxAnswer bounds the body of an answer: 100 updates of the largest kind fit many times.
const maxAnswer = 32 << 20

// tokenShape also makes sure that the token reads the same in a URL, so that redaction finds it.
var tokenShape = regexp.MustCompile(`^[0-9]+:[A-Za-z0-9_-]+$`)

// errorLength bounds what is kept of an error: a proxy answers with whole pages.
const errorLength = 300

// maxRetryAfter bounds what a proxy's Retry-After may ask for, in seconds.
const maxRetryAfter = 600

// keptAnswer bounds how much of an answer is kept to find a message id in it.
const keptAnswer = 64 << 10

// Options are what a Client needs to know.
type Options struct {
	Token   string
	APIURL  string        // https://api.telegram.org, a local Bot API server, or a test server
	Timeout time.Duration // of one request besides long polls; default 30 s
	// Observe takes every request: method, HTTP status (0 = none) and how long it took. May be nil.
	Observe func(method string, status int, took time.Duration)
	// Files holds the contents that rows name; nil = rows bring their own.
	Files blob.Opener
}

// Client speaks the Bot API. Safe for concurrent use.
type Client struct {
	opts   Options
	secret *regexp.Regexp // finds the token in texts of others
	api    *tg.Bot
	sends  *http.Client
	polls  *http.Client
	files  *http.Client
	open   sync.Map // ids of groups in which nothing can be shown to one person alone
}

// NewClient makes a Client; nothing is requested yet.
func NewClient(opts Options) (*Client, error) {
	if opts.Timeout == 0 {
		opts.Timeout = 30 * time.Second
	}
	u, err := url.Parse(opts.APIURL)
	if err != nil || u.Host == "" || (u.Scheme != "https" && u.Scheme != "http") {
		return nil, fmt.Errorf("telegram.api_url %q: want an http or https address", opts.APIURL)
	}
	if !tokenShape.MatchString(opts.Token) {
		return nil, errors.New("telegram.token is not a bot token: it looks like 123456:ABC-DEF…, as @BotFather gives it")
	}
	c := &Client{opts: opts, secret: secretPattern(opts.Token)}
	// An idle connection that the server closes surfaces as a lost request: keep them short.
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: (&net.Dialer{Timeout: 10 * time.Second}).DialContext, TLSHandshakeTimeout: 10 * time.Second,
		IdleConnTimeout: 25 * time.Second, MaxIdleConnsPerHost: 64, ForceAttemptHTTP2: true,
	}
	c.sends = &http.Client{Transport: transport, Timeout: opts.Timeout}
	c.polls = &http.Client{Transport: transport.Clone()}
	c.files = &http.Client{Transport: transport.Clone(), CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	if c.api, err = tg.New(opts.Token, tg.WithSkipGetMe(), tg.WithServerURL(strings.TrimRight(opts.APIURL, "/")), tg.WithHTTPClient(opts.Timeout, c)); err != nil {
		return nil, fmt.Errorf("telegram: %w", c.redact(err))
	}
	return c, nil
}

// Close drops idle connections.
func (c *Client) Close() {
	c.sends.CloseIdleConnections()
	c.polls.CloseIdleConnections()
	c.files.CloseIdleConnections()
}

// trace is what happened to one request on the wire: the library's errors do not say it.
type trace struct {
	wrote  atomic.Bool
	status atomic.Int64
	wait   time.Duration // of a Retry-After in seconds
	body   kept
}

// kept is the beginning of an answer.
type kept struct{ data []byte }

// Write implements io.Writer; what is too much is let go.
func (k *kept) Write(p []byte) (int, error) {
	k.data = append(k.data, p[:min(len(p), keptAnswer-len(k.data))]...)
	return len(p), nil
}

// executed says that the Bot API did what it was asked, and names the message that came of it, where the answer got
// that far.
func (t *trace) executed() (message string, ok bool) {
	head := bytes.TrimSpace(t.body.data)
	if t.status.Load() != http.StatusOK || !accepted.Match(head) {
		return "", false
	}
	if m := acceptedMessage.FindSubmatch(head); m != nil {
		message = string(m[1])
	}
	return message, true
}

// failed says that the Bot API itself answered that it did not do what it was asked.
func (t *trace) failed() bool { return denied.Match(bytes.TrimSpace(t.body.data)) }

var (
	denied          = regexp.MustCompile(`^\{\s*"ok"\s*:\s*false\b`)
	accepted        = regexp.MustCompile(`^\{\s*"ok"\s*:\s*true\b`)
	acceptedMessage = regexp.MustCompile(`^\{\s*"ok"\s*:\s*true\s*,\s*"result"\s*:\s*\{\s*"message_id"\s*:\s*([0-9]+)\b`)
)

type traceKey struct{}

// Do implements the library's HTTP client: it notes whether the request was written and what status came back.
func (c *Client) Do(req *http.Request) (*http.Response, error) {
	began := time.Now()
	t, _ := req.Context().Value(traceKey{}).(*trace)
	if t == nil {
		t = &trace{}
	}
	req = req.WithContext(httptrace.WithClientTrace(req.Context(), &httptrace.ClientTrace{
		WroteHeaders: func() { t.wrote.Store(true) },
	}))
	if u, ok := req.Context().Value(uploadKey{}).(*upload); ok {
		if err := u.into(req); err != nil {
			return nil, err
		}
	}
	resp, err := c.sends.Do(req)
	status := 0
	if err == nil {
		status = resp.StatusCode
		t.status.Store(int64(status))
		if seconds, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil {
			t.wait = time.Duration(min(max(seconds, 1), maxRetryAfter)) * time.Second
		}
		resp.Body = struct {
			io.Reader
			io.Closer
		}{io.TeeReader(io.LimitReader(resp.Body, maxAnswer), &t.body), resp.Body}
	}
	if c.opts.Observe != nil {
		c.opts.Observe(req.URL.Path[strings.LastIndexByte(req.URL.Path, '/')+1:], status, time.Since(began))
	}
	return resp, err
}

// call runs one library method and turns its error into a *bot.SendError with what is known of the wire.
func (c *Client) call(ctx context.Context, method func(ctx context.Context) error) error {
	t := &trace{}
	err := method(context.WithValue(ctx, traceKey{}, t))
	if err == nil {
		return nil
	}
	return c.classify(err, t)
}

// deliver runs a library method that makes a message. A message is there once the Bot API said so, even when its answer
// got cut or cannot be understood: its id is then "" or what could be read of it.
func (c *Client) deliver(ctx context.Context, method func(ctx context.Context) (*models.Message, error)) (string, error) {
	t := &trace{}
	sent, err := method(context.WithValue(ctx, traceKey{}, t))
	if err == nil {
		return strconv.Itoa(sent.ID), nil
	}
	if message, ok := t.executed(); ok {
		return message, nil
	}
	return "", c.classify(err, t)
}

// classify is the outcome table of a request.
func (c *Client) classify(err error, t *trace) *bot.SendError {
	if refused, ok := errors.AsType[*bot.SendError](err); ok { // before anything was sent
		return refused
	}
	e := &bot.SendError{Err: c.redact(err)}
	var many *tg.TooManyRequestsError
	var moved *tg.MigrateError
	status := int(t.status.Load())
	switch {
	case errors.As(err, &many):
		e.Outcome, e.RetryAfter = bot.Throttled, time.Duration(max(1, many.RetryAfter))*time.Second
	case errors.As(err, &moved):
		e.Outcome, e.MovedTo = bot.Moved, fmt.Sprint(moved.MigrateToChatID)
	case errors.Is(err, tg.ErrorForbidden):
		e.Outcome = bot.Gone
	case errors.Is(err, tg.ErrorUnauthorized), errors.Is(err, tg.ErrorConflict):
		e.Outcome, e.RetryAfter = bot.NotSent, 10*time.Second
	case errors.Is(err, tg.ErrorNotFound): // of the method or the token: nothing of the message is wrong
		e.Outcome = bot.NotSent
	case errors.Is(err, tg.ErrorBadRequest):
		e.Outcome = badRequest(err.Error())
	case status == 0 && !t.wrote.Load():
		e.Outcome = bot.NotSent
	case status == http.StatusRequestEntityTooLarge:
		e.Outcome = bot.Refused
	case status == http.StatusTooManyRequests: // a proxy's
		e.Outcome, e.RetryAfter = bot.Throttled, t.wait
	case (status == http.StatusInternalServerError || status == http.StatusServiceUnavailable) && t.failed():
		e.Outcome = bot.NotSent
	default: // also what a proxy answers, whatever its status: it may have passed the request on
		e.Outcome = bot.Vague
	}
	return e
}

// badRequest tells the refusals of a 400 apart by the server's own words.
func badRequest(text string) bot.SendOutcome {
	text = strings.ToLower(text)
	for _, gone := range []string{"chat not found", "user is deactivated", "have no rights to send", "not enough rights to send text messages", "group chat was deactivated", "chat_write_forbidden", "peer_id_invalid"} {
		if strings.Contains(text, gone) {
			return bot.Gone
		}
	}
	for _, topic := range []string{"message thread not found", "topic_closed", "topic_deleted", "topic_id_invalid"} {
		if strings.Contains(text, topic) {
			return bot.NoTopic
		}
	}
	for _, missing := range []string{"message to edit not found", "message can't be edited", "message_id_invalid", "message identifier is not specified"} {
		if strings.Contains(text, missing) {
			return bot.Missing
		}
	}
	return bot.Refused
}

// redact keeps the token out of errors: it is part of every URL.
func (c *Client) redact(err error) error {
	text := err.Error()
	clean := c.hide(text)
	if clean == text {
		return err
	}
	return errors.New(clean)
}

// hide keeps the token out of a text that a server or a library wrote, also where only its secret half is there or it
// was escaped for a URL, and bounds the length.
func (c *Client) hide(text string) string {
	return render.Cut(c.secret.ReplaceAllLiteralString(text, "[redacted]"), errorLength)
}

// shortSecret is the shortest secret half that is looked for alone: a shorter one, which Telegram does not give out,
// would be found in words.
const shortSecret = 16

// secretPattern finds a token, or its secret half alone.
func secretPattern(token string) *regexp.Regexp {
	id, secret, _ := strings.Cut(token, ":")
	before := "(?:" + id + "(?::|%3A))"
	if len(secret) >= shortSecret {
		before += "?"
	}
	return regexp.MustCompile("(?i)" + before + regexp.QuoteMeta(secret))
}

// Me is the bot itself.
type Me struct {
	ID         string
	Username   string
	Name       string
	ReadsAll   bool // privacy mode is off
	HasTopics  bool // topics in private chats
	GuestQuery bool
}

// Me asks who the bot is (Bot API getMe): it proves token and connection.
func (c *Client) Me(ctx context.Context) (Me, error) {
	var user *models.User
	err := c.call(ctx, func(ctx context.Context) (err error) {
		user, err = c.api.GetMe(ctx)
		return err
	})
	if err != nil {
		return Me{}, err
	}
	return Me{
		ID: fmt.Sprint(user.ID), Username: user.Username, Name: user.FirstName, ReadsAll: user.CanReadAllGroupMessages, HasTopics: user.HasTopicsEnabled,
		GuestQuery: user.SupportsGuestQueries,
	}, nil
}

// ID is the bot's id as the token tells it, without a request.
func (c *Client) ID() string { id, _, _ := strings.Cut(c.opts.Token, ":"); return id }

// apiError is a refusal of the Bot API as our own requests see it.
type apiError struct {
	Code       int
	Text       string
	RetryAfter time.Duration
}

// Error implements error.
func (e *apiError) Error() string { return fmt.Sprintf("telegram answered %d: %s", e.Code, e.Text) }

// post makes a request that the library does not: long polls, whose raw updates are kept as they came.
func (c *Client) post(ctx context.Context, client *http.Client, method string, params, result any) error {
	body, err := json.Marshal(params)
	if err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	address := strings.TrimRight(c.opts.APIURL, "/") + "/bot" + c.opts.Token + "/" + method
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return c.redact(err)
	}
	req.Header.Set("Content-Type", "application/json")
	began := time.Now()
	resp, err := client.Do(req)
	if c.opts.Observe != nil {
		status := 0
		if err == nil {
			status = resp.StatusCode
		}
		c.opts.Observe(method, status, time.Since(began))
	}
	if err != nil {
		return c.redact(err)
	}
	defer func() { _ = resp.Body.Close() }() // read to the end below: closing cannot lose anything
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("read the answer of %s: %w", method, c.redact(err))
	}
	var answer struct {
		OK          bool            `json:"ok"`
		Result      json.RawMessage `json:"result"`
		Description string          `json:"description"`
		ErrorCode   int             `json:"error_code"`
		Parameters  struct {
			RetryAfter int `json:"retry_after"`
		} `json:"parameters"`
	}
	if err := json.Unmarshal(raw, &answer); err != nil {
		return &apiError{Code: resp.StatusCode, Text: "the answer is not JSON"}
	}
	if !answer.OK {
		return &apiError{Code: answer.ErrorCode, Text: c.hide(answer.Description), RetryAfter: time.Duration(answer.Parameters.RetryAfter) * time.Second}
	}
	if err := json.Unmarshal(answer.Result, result); err != nil {
		return fmt.Errorf("answer of %s: %w", method, err)
	}
	return nil
}
