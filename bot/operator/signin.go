package operator

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/webpage"
	"github.com/zephbot/zephbot/tools"
)

const (
	// sessions holds who is signed in, by the hash of their token.
	sessions    = "operator_session"
	cookieName  = "zephbot_admin"
	tokenHeader = "X-Zephbot-Token"

	idleFor    = 8 * time.Hour
	mostFor    = 7 * 24 * time.Hour
	renewEvery = 5 * time.Minute

	mostTries  = 10 // wrong codes from one address within triesFor
	triesFor   = 10 * time.Minute
	mostSource = 1000
)

var (
	errSignedOut = errors.New("sign in: send /admin to the bot and open the link that it answers with")
	errNoAdmin   = errors.New("you are no admin of this bot any more: you are signed out")
	errCode      = errors.New("this link was used or has expired: send /admin to the bot for a new one")
)

// visitor is who is signed in.
type visitor struct {
	granted
	token string
}

// csrf is what a page of this session sends with what changes something: another page cannot read it.
func (v *visitor) csrf() string {
	mac := hmac.New(sha256.New, []byte(v.token))
	mac.Write([]byte("csrf"))
	return hex.EncodeToString(mac.Sum(nil))[:32]
}

// signIn redeems a code. Whoever comes second, on any process, finds it used.
func (p *Page) signIn(rw http.ResponseWriter, r *http.Request) {
	var in struct {
		Code string `json:"code"`
	}
	if !webpage.Decode(rw, r, maxRequest, &in) {
		return
	}
	now, source := p.deps.Now(), sourceOf(r)
	code := strings.TrimSpace(in.Code)
	// A proxy is the source of everybody's requests, so what has the form of a code is looked up all the same: nobody
	// guesses 130 bits.
	if !p.tries.mayTry(source, now) && !looksLikeCode(code) {
		webpage.Refuse(
			rw, http.StatusTooManyRequests, errors.New("too many links that were not valid: wait ten minutes"),
		)
		return
	}
	v, err := p.redeemLink(r.Context(), code, now, source)
	switch {
	case errors.Is(err, errCode):
		if p.tries.mayTry(source, now) { // else the log would be full of them
			p.deps.Log.Warn().Str("from", source).Msg("a link to the operator's page was not valid")
		}
		p.tries.countWrong(source, now)
		webpage.Refuse(rw, http.StatusUnauthorized, err)
		return
	case err != nil:
		p.writeFailure(rw, err, "sign in")
		return
	}
	http.SetCookie(rw, p.sessionCookie(r, v.token, int(mostFor.Seconds())))
	p.writeAnswer(rw, p.whoami(r.Context(), v), nil)
}

// looksLikeCode reports whether a text has the form of a code (rand.Text).
func looksLikeCode(text string) bool {
	const form = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
	return len(text) == 26 && strings.Trim(text, form) == ""
}

func (p *Page) redeemLink(ctx context.Context, code string, now time.Time, source string) (*visitor, error) {
	if code == "" || len(code) > 100 {
		return nil, errCode
	}
	value, err := p.deps.Store.Fact(ctx, codes, hashSecret(code), now)
	if err != nil {
		return nil, fmt.Errorf("read a link: %w", err)
	}
	v := &visitor{token: rand.Text() + rand.Text()}
	if value == "" || json.Unmarshal([]byte(value), &v.granted) != nil {
		return nil, errCode
	}
	if ok, err := p.deps.Admin(ctx, v.Caller); err != nil || !ok {
		if err != nil {
			return nil, fmt.Errorf("who is an admin: %w", err)
		}
		return nil, errCode
	}
	v.Began, v.Seen = now.UTC(), now.UTC()
	session, err := json.Marshal(v.granted)
	if err != nil {
		return nil, fmt.Errorf("begin a session: %w", err)
	}
	change := &bot.Change{Facts: []bot.Fact{
		{Bucket: codes, Key: hashSecret(code), Was: &value},
		{Bucket: sessions, Key: hashSecret(v.token), Value: string(session), Expires: now.Add(idleFor)},
	}}
	_, err = p.recordChange(ctx, change, p.auditCall(v, "admin_signin", map[string]any{"from": source}))
	if errors.Is(err, bot.ErrConflict) {
		return nil, errCode
	}
	return v, err
}

// sessionCookie holds the token. Browsers send it to this page only, and not with requests that other pages cause.
func (p *Page) sessionCookie(r *http.Request, token string, seconds int) *http.Cookie {
	secure := r.TLS != nil || strings.HasPrefix(p.deps.Public, "https://") && !p.isLocalHost(r.Host)
	return &http.Cookie{
		//nolint:gosec // Secure is set wherever the page is reached by https
		Name:     cookieName,
		Value:    token,
		Path:     "/admin",
		MaxAge:   seconds,
		HttpOnly: true,
		Secure:   secure,
		SameSite: http.SameSiteStrictMode,
	}
}

// isLocalHost reports whether a host is this machine's.
func (p *Page) isLocalHost(host string) bool {
	only := &Page{}
	return only.knownHost(strings.ToLower(host))
}

// visitorOf returns who sent a request; errSignedOut or errNoAdmin.
func (p *Page) visitorOf(r *http.Request) (*visitor, error) {
	ctx, now := r.Context(), p.deps.Now()
	c, err := r.Cookie(cookieName)
	if err != nil || c.Value == "" || len(c.Value) > 200 {
		return nil, errSignedOut
	}
	v := &visitor{token: c.Value}
	value, err := p.deps.Store.Fact(ctx, sessions, hashSecret(v.token), now)
	if err != nil {
		return nil, fmt.Errorf("read a session: %w", err)
	}
	if value == "" || json.Unmarshal([]byte(value), &v.granted) != nil || now.Sub(v.Began) > mostFor {
		return nil, errSignedOut
	}
	switch ok, err := p.deps.Admin(ctx, v.Caller); {
	case err != nil:
		return nil, fmt.Errorf("who is an admin: %w", err)
	case !ok:
		return nil, errors.Join(errNoAdmin, p.endSession(ctx, v))
	}
	if now.Sub(v.Seen) > renewEvery {
		v.Seen = now.UTC()
		renewed, err := json.Marshal(v.granted)
		if err != nil {
			return nil, fmt.Errorf("go on with a session: %w", err)
		}
		change := &bot.Change{Facts: []bot.Fact{
			{
				Bucket:  sessions,
				Key:     hashSecret(v.token),
				Value:   string(renewed),
				Expires: now.Add(idleFor),
				Was:     &value,
			},
		}}
		// Another request has gone on with it, or has ended it.
		if _, err := p.deps.Store.Apply(ctx, change); err != nil && !errors.Is(err, bot.ErrConflict) {
			return nil, fmt.Errorf("go on with a session: %w", err)
		}
	}
	return v, nil
}

// endSession signs out.
func (p *Page) endSession(ctx context.Context, v *visitor) error {
	_, err := p.deps.Store.Apply(ctx, &bot.Change{Facts: []bot.Fact{{Bucket: sessions, Key: hashSecret(v.token)}}})
	return err
}

func (p *Page) signOut(rw http.ResponseWriter, r *http.Request, v *visitor) {
	if err := p.endSession(r.Context(), v); err != nil {
		p.writeFailure(rw, err, "sign out")
		return
	}
	http.SetCookie(rw, p.sessionCookie(r, "", -1))
	p.writeAnswer(rw, struct{}{}, nil)
}

// auditCall is the audit line of something that a visitor did.
func (p *Page) auditCall(v *visitor, tool string, args any) *tools.Call {
	raw, err := json.Marshal(args)
	if err != nil {
		raw = []byte(`{}`)
	}
	return &tools.Call{
		ID: rand.Text(), Tool: tool, Args: raw, Trail: &tools.Trail{ApprovedBy: v.Caller, Rule: "operator's page"},
		Origin: tools.Origin{Channel: p.deps.Channel, Caller: v.Caller, Admin: true},
	}
}

func sourceOf(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}

// tries counts wrong codes by address. A code has 130 random bits: the limit keeps the store from being asked.
type tries struct {
	mu    sync.Mutex
	count map[string]tried
}

type tried struct {
	n     int
	since time.Time
}

func (t *tries) mayTry(source string, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.count[source]
	return c.n < mostTries || now.Sub(c.since) > triesFor
}

func (t *tries) countWrong(source string, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.count == nil || len(t.count) >= mostSource {
		t.count = map[string]tried{}
	}
	c := t.count[source]
	if now.Sub(c.since) > triesFor {
		c = tried{since: now}
	}
	c.n++
	t.count[source] = c
}
