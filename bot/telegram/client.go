// Package telegram is the Telegram channel: it receives updates (by polling or webhook, stored before they are
// confirmed) and sends messages. It uses the vendor library for methods and models, but receives updates itself,
// because that library confirms them before they are handled.
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

// maxAnswer limits the body of a response; it is many times the size of 100 updates of the largest kind.
const maxAnswer = 32 << 20

// tokenShape also ensures that URL encoding does not change the token, so that redaction finds it.
var tokenShape = regexp.MustCompile(`^[0-9]+:[A-Za-z0-9_-]+$`)

// errorLength limits what is kept of an error: proxies respond with whole pages.
const errorLength = 300

// maxRetryAfter limits the Retry-After of a proxy, in seconds.
const maxRetryAfter = 600

// keptAnswer limits how much of a response is kept to find a message id in it.
const keptAnswer = 64 << 10

// Options configure a Client.
type Options struct {
	Token   string
	APIURL  string        // https://api.telegram.org, a local Bot API server, or a test server
	Timeout time.Duration // of one request, except long polls, besides its bytes; default 30 s
	// Observe is called with every request: its method, HTTP status (0 = none) and duration. May be nil.
	Observe func(ctx context.Context, method string, status int, took time.Duration)
	// Files holds the contents that rows refer to; nil = rows contain them.
	Files blob.Opener
	// Rich sends answers with tables, formulas and headings as rich messages (Bot API 10.1). Old clients of Telegram
	// show a notice to update instead.
	Rich bool
	// Folding says what is collapsed in answers.
	Folding render.Folding
	// MaxParts is how many messages an answer has at most, at least 2; one that would have more
	// ends with a file. 0 = any number.
	MaxParts int
	Words    PartsWords // required with MaxParts
}

// Client speaks the Bot API. Safe for concurrent use.
type Client struct {
	opts   Options
	secret *regexp.Regexp // finds the token in texts of others
	api    *tg.Bot
	sends  *http.Client
	polls  *http.Client
	files  *http.Client
	poor   atomic.Int64 // until when no rich message is tried, in Unix nanoseconds
	open   sync.Map     // ids of groups in which nothing can be shown to one person alone
}

// NewClient returns a Client. It makes no request.
func NewClient(opts Options) (*Client, error) {
	if opts.Timeout == 0 {
		opts.Timeout = 30 * time.Second
	}
	u, err := url.Parse(opts.APIURL)
	if err != nil || u.Host == "" || (u.Scheme != "https" && u.Scheme != "http") {
		return nil, fmt.Errorf("telegram.api_url %q: want an http or https address", opts.APIURL)
	}
	if !tokenShape.MatchString(opts.Token) {
		return nil, errors.New(
			"telegram.token is not a bot token: it looks like 123456:ABC-DEF…, as @BotFather gives it")
	}
	c := &Client{opts: opts, secret: secretPattern(opts.Token)}
	// An idle connection that the server closes looks like a lost request, so idle connections are closed early.
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
		TLSHandshakeTimeout: 10 * time.Second,
		IdleConnTimeout:     25 * time.Second, MaxIdleConnsPerHost: 64, ForceAttemptHTTP2: true,
	}
	c.sends = &http.Client{Transport: transport, Timeout: opts.Timeout}
	c.polls = &http.Client{Transport: transport.Clone()}
	c.files = &http.Client{
		Transport:     transport.Clone(),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	if c.api, err = tg.New(
		opts.Token,
		tg.WithSkipGetMe(),
		tg.WithServerURL(strings.TrimRight(opts.APIURL, "/")),
		tg.WithHTTPClient(opts.Timeout, c),
	); err != nil {
		return nil, fmt.Errorf("telegram: %w", c.redactError(err))
	}
	return c, nil
}

// Close closes idle connections.
func (c *Client) Close() {
	c.sends.CloseIdleConnections()
	c.polls.CloseIdleConnections()
	c.files.CloseIdleConnections()
}

// trace is what happened to one request on the wire, which the library's errors do not say.
type trace struct {
	wrote  atomic.Bool
	status atomic.Int64
	wait   time.Duration // of a Retry-After header in seconds
	body   answerHead
}

// answerHead is the beginning of a response.
type answerHead struct{ data []byte }

// Write implements io.Writer. It drops what exceeds keptAnswer.
func (k *answerHead) Write(p []byte) (int, error) {
	k.data = append(k.data, p[:min(len(p), keptAnswer-len(k.data))]...)
	return len(p), nil
}

// wasExecuted reports that the Bot API has executed the request, and returns the id of the resulting message if
// that part of the response arrived.
func (t *trace) wasExecuted() (message string, ok bool) {
	head := bytes.TrimSpace(t.body.data)
	if t.status.Load() != http.StatusOK || !accepted.Match(head) {
		return "", false
	}
	if m := acceptedMessage.FindSubmatch(head); m != nil {
		message = string(m[1])
	}
	return message, true
}

// hasFailed reports that the Bot API itself responded that it did not execute the request.
func (t *trace) hasFailed() bool { return denied.Match(bytes.TrimSpace(t.body.data)) }

var (
	denied          = regexp.MustCompile(`^\{\s*"ok"\s*:\s*false\b`)
	accepted        = regexp.MustCompile(`^\{\s*"ok"\s*:\s*true\b`)
	acceptedMessage = regexp.MustCompile(
		`^\{\s*"ok"\s*:\s*true\s*,\s*"result"\s*:\s*\[?\s*\{\s*"message_id"\s*:\s*([0-9]+)\b`,
	)
)

type traceKey struct{}

// Do implements the library's HTTP client: it records whether the request was written and which status was returned.
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
		if err := u.fillRequest(req); err != nil {
			return nil, err
		}
	}
	client := *c.sends
	client.Timeout += bot.UploadTime(req.ContentLength)
	resp, err := client.Do(req)
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
		c.opts.Observe(
			req.Context(), req.URL.Path[strings.LastIndexByte(req.URL.Path, '/')+1:], status, time.Since(began),
		)
	}
	return resp, err
}

// callMethod runs one library method and converts its error to a *bot.SendError, using what is known of the wire.
func (c *Client) callMethod(ctx context.Context, method func(ctx context.Context) error) error {
	t := &trace{}
	err := method(context.WithValue(ctx, traceKey{}, t))
	if err == nil {
		return nil
	}
	return c.classifyError(err, t)
}

// deliverAs runs a method that creates a message and returns its id. The message exists once the Bot API has said so,
// even if its response was cut off or cannot be parsed; its id is then "" or what could be read of it.
func (c *Client) deliverAs(ctx context.Context, method func(ctx context.Context) (string, error)) (string, error) {
	t := &trace{}
	sent, err := method(context.WithValue(ctx, traceKey{}, t))
	if err == nil {
		return sent, nil
	}
	if message, ok := t.wasExecuted(); ok {
		return message, nil
	}
	return "", c.classifyError(err, t)
}

// classifyError returns the outcome of a failed request.
func (c *Client) classifyError(err error, t *trace) *bot.SendError {
	if refused, ok := errors.AsType[*bot.SendError](err); ok { // an error from before anything was sent
		return refused
	}
	e := &bot.SendError{Err: c.redactError(err)}
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
	case errors.Is(err, tg.ErrorNotFound): // of the method or the token: the message is not at fault
		e.Outcome = bot.NotSent
	case errors.Is(err, tg.ErrorBadRequest):
		e.Outcome = badRequest(err.Error())
	case status == 0 && !t.wrote.Load():
		e.Outcome = bot.NotSent
	case status == http.StatusRequestEntityTooLarge:
		e.Outcome = bot.Refused
	case status == http.StatusTooManyRequests: // sent by a proxy
		e.Outcome, e.RetryAfter = bot.Throttled, t.wait
	case (status == http.StatusInternalServerError || status == http.StatusServiceUnavailable) && t.hasFailed():
		e.Outcome = bot.NotSent
	default: // includes any response of a proxy, whatever its status: it may have passed the request on
		e.Outcome = bot.Vague
	}
	return e
}

// badRequest distinguishes the refusals with status 400 by the words of the server.
func badRequest(text string) bot.SendOutcome {
	text = strings.ToLower(text)
	for _, gone := range []string{
		"chat not found", "user is deactivated", "have no rights to send", "not enough rights to send text messages",
		"group chat was deactivated", "chat_write_forbidden", "peer_id_invalid",
	} {
		if strings.Contains(text, gone) {
			return bot.Gone
		}
	}
	for _, topic := range []string{"message thread not found", "topic_closed", "topic_deleted", "topic_id_invalid"} {
		if strings.Contains(text, topic) {
			return bot.NoTopic
		}
	}
	for _, missing := range []string{
		"message to edit not found", "message can't be edited", "message_id_invalid",
		"message identifier is not specified",
	} {
		if strings.Contains(text, missing) {
			return bot.Missing
		}
	}
	return bot.Refused
}

// redactError removes the token, which is part of every URL, from errors.
func (c *Client) redactError(err error) error {
	text := err.Error()
	clean := c.hideToken(text)
	if clean == text {
		return err
	}
	return errors.New(clean)
}

// hideToken removes the token from a text that a server or a library wrote, even if only its secret half is there or it
// was escaped for a URL, and limits the length.
func (c *Client) hideToken(text string) string {
	return render.Cut(c.secret.ReplaceAllLiteralString(text, "[redacted]"), errorLength)
}

// shortSecret is the length of the shortest secret half that is searched for alone. A shorter one, which Telegram does
// not issue, would match ordinary words.
const shortSecret = 16

// secretPattern matches a token, or its secret half alone.
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

// Me returns who the bot is (Bot API getMe), which also checks token and connection.
func (c *Client) Me(ctx context.Context) (Me, error) {
	var user *models.User
	err := c.callMethod(ctx, func(ctx context.Context) (err error) {
		user, err = c.api.GetMe(ctx)
		return err
	})
	if err != nil {
		return Me{}, err
	}
	return Me{
		ID: fmt.Sprint(user.ID), Username: user.Username, Name: user.FirstName, ReadsAll: user.CanReadAllGroupMessages,
		HasTopics:  user.HasTopicsEnabled,
		GuestQuery: user.SupportsGuestQueries,
	}, nil
}

// ID returns the bot's id, which is part of the token, without a request.
func (c *Client) ID() string { id, _, _ := strings.Cut(c.opts.Token, ":"); return id }

// apiError is a refusal of the Bot API as our own requests see it.
type apiError struct {
	Code       int
	Text       string
	RetryAfter time.Duration
}

// Error implements error.
func (e *apiError) Error() string { return fmt.Sprintf("telegram answered %d: %s", e.Code, e.Text) }

// postParams makes a request that the library does not make: long polls, whose raw updates are kept as they are.
func (c *Client) postParams(ctx context.Context, client *http.Client, method string, params, result any) error {
	body, err := json.Marshal(params)
	if err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	address := strings.TrimRight(c.opts.APIURL, "/") + "/bot" + c.opts.Token + "/" + method
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return c.redactError(err)
	}
	req.Header.Set("Content-Type", "application/json")
	began := time.Now()
	resp, err := client.Do(req)
	if c.opts.Observe != nil {
		status := 0
		if err == nil {
			status = resp.StatusCode
		}
		c.opts.Observe(ctx, method, status, time.Since(began))
	}
	if err != nil {
		return c.redactError(err)
	}
	defer func() { _ = resp.Body.Close() }() // the body is read to the end below: closing cannot lose anything
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("read the answer of %s: %w", method, c.redactError(err))
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
		return &apiError{
			Code: answer.ErrorCode, Text: c.hideToken(answer.Description),
			RetryAfter: time.Duration(answer.Parameters.RetryAfter) * time.Second,
		}
	}
	if err := json.Unmarshal(answer.Result, result); err != nil {
		return fmt.Errorf("answer of %s: %w", method, err)
	}
	return nil
}
