package telegramtest

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-telegram/bot/models"
)

const (
	defaultConnections = 40
	maxRetryAfter      = time.Hour
	secretHeader       = "X-Telegram-Bot-Api-Secret-Token"
)

var secretPattern = expression(`^[A-Za-z0-9_-]{1,256}$`)

// webhook is the delivery set by setWebhook. A new setWebhook makes a new generation; lanes of an old one end.
type webhook struct {
	url, secret string
	connections int
	certificate bool
	generation  uint64
	lanes       map[string]bool   // with a running delivery
	spawn       func(lane string) // starts the delivery of one lane; nil without a webhook
	stop        func()
	lastError   string
	lastErrorAt time.Time
}

// setWebhook replaces the webhook; an empty url removes it.
func setWebhook(ctx context.Context, s *Server, r *request) (any, *apiError) {
	target := r.text("url")
	if target == "" {
		return deleteWebhook(ctx, s, r)
	}
	if fail := s.checkWebhook(target, r.text("secret_token")); fail != nil {
		return nil, fail
	}
	client, fail := s.webhookClient(r)
	if fail != nil {
		return nil, fail
	}
	var allowed []string
	set, fail := r.decode("allowed_updates", &allowed)
	if fail != nil {
		return nil, fail
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.loggedOut {
		return nil, badRequest("Logged out")
	}
	if set {
		s.queue.allowed = allowed
	}
	s.kickPoll(newWebhook)
	s.dropWebhook(r.flag("drop_pending_updates"))
	n := r.number("max_connections")
	if n <= 0 {
		n = defaultConnections
	}
	s.hook.url, s.hook.secret = target, r.text("secret_token")
	s.hook.connections, s.hook.certificate = min(n, 100), len(r.uploads) > 0
	s.startWebhook(ctx, client)
	return true, nil
}

func deleteWebhook(_ context.Context, s *Server, r *request) (any, *apiError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.loggedOut {
		return nil, badRequest("Logged out")
	}
	s.dropWebhook(r.flag("drop_pending_updates"))
	return true, nil
}

// dropWebhook ends the present generation. The lock is held.
func (s *Server) dropWebhook(dropPending bool) {
	if s.hook.stop != nil {
		s.hook.stop()
	}
	s.hook = webhook{generation: s.hook.generation + 1}
	if dropPending {
		s.queue.items = nil
	}
	s.touch()
}

func (s *Server) checkWebhook(target, secret string) *apiError {
	u, err := url.Parse(target)
	switch {
	case err != nil || u.Host == "":
		return badRequest("bad webhook: invalid webhook URL specified")
	case !s.opt.Local && u.Scheme != "https", u.Scheme != "https" && u.Scheme != "http":
		return badRequest("bad webhook: An HTTPS URL must be provided for webhook")
	case !s.opt.Local && !slices.Contains([]string{"", "80", "88", "443", "8443"}, u.Port()):
		return badRequest("bad webhook: Webhook can be set up only on ports 80, 88, 443 or 8443")
	case secret != "" && !secretPattern().MatchString(secret):
		return badRequest("secret token contains unallowed characters")
	}
	return nil
}

// webhookClient trusts the certificate the bot uploaded, besides what the configured client trusts.
func (s *Server) webhookClient(r *request) (*http.Client, *apiError) {
	cert, ok := r.uploads["certificate"]
	if !ok {
		return s.opt.WebhookClient, nil
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(cert.data) {
		return nil, badRequest("bad webhook: Failed to set custom certificate file")
	}
	client := *s.opt.WebhookClient
	client.Transport = &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true,
	}
	return &client, nil
}

// startWebhook prepares a generation of deliveries that outlives the request which set it. The lock is held.
func (s *Server) startWebhook(ctx context.Context, client *http.Client) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	if s.closed {
		cancel()
	}
	s.lastID++
	id := s.lastID
	s.cancels[id] = cancel
	s.hook.stop = func() {
		cancel()
		delete(s.cancels, id)
	}
	d := &delivery{
		server: s, client: client, url: s.hook.url, secret: s.hook.secret, generation: s.hook.generation,
		slots: make(chan struct{}, s.hook.connections),
	}
	s.hook.lanes = map[string]bool{}
	s.hook.spawn = func(lane string) {
		s.wg.Go(func() { d.run(ctx, lane) })
	}
	s.deliver()
	s.touch()
}

// deliver starts the lanes that have something to deliver. The lock is held.
func (s *Server) deliver() {
	if s.hook.spawn == nil || s.closed {
		return
	}
	for _, u := range s.queue.items {
		if !s.hook.lanes[u.lane] {
			s.hook.lanes[u.lane] = true
			s.hook.spawn(u.lane)
		}
	}
}

// delivery posts the updates of one webhook generation, one at a time per lane.
type delivery struct {
	server      *Server
	client      *http.Client
	url, secret string
	generation  uint64
	slots       chan struct{}
}

func (d *delivery) run(ctx context.Context, lane string) {
	for {
		u := d.head(lane)
		if u == nil {
			return
		}
		select {
		case d.slots <- struct{}{}:
		case <-ctx.Done():
			return
		}
		wait, err := d.post(ctx, u)
		<-d.slots
		if ctx.Err() != nil {
			return
		}
		if !d.settle(u, err) {
			continue
		}
		if wait < 0 {
			wait = d.server.opt.WebhookPause(u.attempts)
		}
		if !pause(ctx, wait) {
			return
		}
	}
}

// head returns the oldest update of the lane. Without one the lane ends.
func (d *delivery) head(lane string) *queued {
	s := d.server
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hook.generation != d.generation || s.closed {
		return nil
	}
	s.queue.expire(s.opt.Now())
	for _, u := range s.queue.items {
		if u.lane == lane {
			return u
		}
	}
	delete(s.hook.lanes, lane)
	return nil
}

// settle removes a delivered update, or counts the failure; true when it has to be tried again.
func (d *delivery) settle(u *queued, err error) bool {
	s := d.server
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hook.generation != d.generation {
		return false
	}
	defer s.touch()
	if err == nil {
		s.queue.items = slices.DeleteFunc(s.queue.items, func(q *queued) bool { return q == u })
		return false
	}
	u.attempts++
	s.hook.lastError, s.hook.lastErrorAt = err.Error(), s.opt.Now()
	if s.opt.WebhookAttempts > 0 && u.attempts >= s.opt.WebhookAttempts {
		s.queue.items = slices.DeleteFunc(s.queue.items, func(q *queued) bool { return q == u })
		return false
	}
	return true
}

// post makes one delivery. Any 2xx is success. wait is what the receiver's Retry-After asks for, -1 without one.
func (d *delivery) post(ctx context.Context, u *queued) (time.Duration, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, d.url, bytes.NewReader(u.raw))
	if err != nil {
		return -1, fmt.Errorf("wrong webhook URL: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	if d.secret != "" {
		req.Header.Set(secretHeader, d.secret)
	}
	resp, err := d.client.Do(req)
	if err != nil {
		return -1, fmt.Errorf("connection failed: %w", err)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if closing := resp.Body.Close(); err == nil {
		err = closing
	}
	if resp.StatusCode/100 == 2 {
		d.server.answerAsMethod(ctx, body)
		return -1, nil
	}
	wait := time.Duration(-1)
	if n, bad := strconv.Atoi(resp.Header.Get("Retry-After")); bad == nil && n >= 0 {
		wait = min(time.Duration(n)*time.Second, maxRetryAfter)
	}
	if err != nil {
		return wait, fmt.Errorf("read timeout expired: %w", err)
	}
	return wait, fmt.Errorf("wrong response from the webhook: %s", resp.Status)
}

// answerAsMethod runs the method a webhook answer may carry. Nobody sees its result, not even an error.
func (s *Server) answerAsMethod(ctx context.Context, body []byte) {
	if !json.Valid(body) {
		return
	}
	r := &request{params: map[string]string{}, uploads: map[string]upload{}}
	if fail := r.addJSON(body); fail != nil {
		return
	}
	m, ok := s.methods[strings.ToLower(r.params["method"])]
	delete(r.params, "method")
	if !ok || m.wait != nil || strings.HasPrefix(m.name, "get") || m.name == "close" || m.name == "logOut" {
		return
	}
	call := s.begin(m.name, r)
	_, fail := s.execute(ctx, m, r, call)
	call.Executed, call.Status = fail == nil, http.StatusOK
	if fail != nil {
		call.Status, call.Error, call.RetryAfter = fail.code, fail.text, fail.retryAfter
	}
	s.finish(call)
}

func getWebhookInfo(s *Server, _ *request) (any, *apiError) {
	s.queue.expire(s.opt.Now())
	info := models.WebhookInfo{
		URL: s.hook.url, HasCustomCertificate: s.hook.certificate, PendingUpdateCount: len(s.queue.items),
		MaxConnections: s.hook.connections, AllowedUpdates: s.queue.allowed, LastErrorMessage: s.hook.lastError,
	}
	if !s.hook.lastErrorAt.IsZero() {
		info.LastErrorDate = int(s.hook.lastErrorAt.Unix())
	}
	return info, nil
}
