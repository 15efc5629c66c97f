package operator

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/turn"
)

const (
	// codes holds the links that wait to be used: hashes of their codes.
	codes = "operator_code"
	// LinkFor is how long a link can be used.
	LinkFor = 5 * time.Minute
)

// granted is what a link or a session stands for.
type granted struct {
	Caller string    `json:"caller"`
	Name   string    `json:"name,omitempty"`
	Began  time.Time `json:"began,omitzero"` // of a session
	Seen   time.Time `json:"seen,omitzero"`
}

// Command answers /admin, whose caller is an admin, with a link for one use. The code is in the fragment, which
// browsers send to no server: no log, proxy or preview has it.
func (p *Page) Command(_ context.Context, call *turn.Call) (turn.Effect, error) {
	msg, w := call.Message, p.deps.Words
	switch {
	case p.deps.Listen == "":
		return call.ReplyAside(bot.Content{Text: w.OperatorOff(msg.Language)}), nil
	case msg.Place.Group:
		return call.ReplyAside(bot.Content{Text: w.OperatorPrivate(msg.Language)}), nil
	}
	code := rand.Text()
	value, err := json.Marshal(granted{Caller: msg.Caller, Name: msg.Signature()})
	if err != nil {
		return turn.Effect{}, fmt.Errorf("make a link: %w", err)
	}
	base, port := p.baseAddress()
	e := call.ReplyAside(bot.Content{
		Text: w.OperatorLink(msg.Language, base+"/admin/#"+code, int(LinkFor.Minutes()), port),
	})
	e.Change.Facts = []bot.Fact{{
		Bucket:  codes,
		Key:     hashSecret(code),
		Value:   string(value),
		Expires: p.deps.Now().Add(LinkFor),
	}}
	return e, nil
}

// baseAddress returns the address of the page, and its port if it can be reached on this machine only.
func (p *Page) baseAddress() (address, port string) {
	if p.deps.Public != "" {
		return strings.TrimSuffix(p.deps.Public, "/"), ""
	}
	_, port, err := net.SplitHostPort(p.deps.Listen)
	if err != nil {
		return "http://" + p.deps.Listen, ""
	}
	return "http://127.0.0.1:" + port, port
}

// knownHost reports whether the page is reached under a host: a name of this machine, whatever the port of a tunnel may
// be, or that of metrics.public_url.
func (p *Page) knownHost(host string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	name = strings.Trim(name, "[]")
	if ip := net.ParseIP(name); name == "localhost" || ip != nil && ip.IsLoopback() {
		return true
	}
	u, err := url.Parse(p.deps.Public)
	return err == nil && p.deps.Public != "" && strings.EqualFold(u.Host, host)
}

// hashSecret is what is stored of a code or a token.
func hashSecret(secret string) string {
	sum := sha256.Sum256([]byte("zephbot/operator/" + secret))
	return hex.EncodeToString(sum[:])
}
