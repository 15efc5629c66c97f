package hook

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	// clockSkew is how far the time that a call was signed at may be from ours.
	clockSkew = 5 * time.Minute
	// seenFor is how long a call is remembered that nothing but its content or its id tells from others. Senders repeat
	// what failed for some days.
	seenFor = 7 * 24 * time.Hour
	// repeatFor is how long the same content with a token counts as the same call: a sender that tries again does so
	// within minutes, and an alert that goes on is sent again word for word after that.
	repeatFor = 5 * time.Minute
	// mostSignatures is how many signatures of one call are looked at. There are several while a secret is changed.
	mostSignatures = 8
)

// secretPrefix begins secrets of Standard Webhooks, whose key is the rest, in base64.
const secretPrefix = "whsec_"

// identity says which call a request is. A request with the id of an earlier one is the same call, sent again.
type identity struct {
	id  string
	For time.Duration // how long it is remembered
}

// schemes are the ways in which senders prove that they know the secret. A request is accepted if it has a header of at
// least one, and whatever headers it has are right: so none of them can be used to get around another one.
var schemes = []struct {
	header string
	check  func(r *request, value string) (identity, bool)
}{
	{"Webhook-Signature", standardSignature}, // Standard Webhooks: Svix, GitLab and others
	{"Stripe-Signature", stripeSignature},
	{"X-Hub-Signature-256", func(r *request, value string) (identity, bool) { // GitHub, Gitea, Forgejo
		sum, ok := strings.CutPrefix(value, "sha256=")
		return r.byContent(), ok && r.signs(sum, r.body)
	}},
	{"X-Gitea-Signature", plainSignature},
	{"X-Forgejo-Signature", plainSignature},
	{"X-Grafana-Alerting-Signature", plainSignature},
	{"Linear-Signature", plainSignature},
	{"X-Gitlab-Token", plainToken},
	{"Authorization", func(r *request, value string) (identity, bool) { // Alertmanager, Grafana, curl
		kind, credentials, _ := strings.Cut(value, " ")
		if !strings.EqualFold(kind, "Bearer") {
			return identity{}, false
		}
		return plainToken(r, strings.TrimSpace(credentials))
	}},
}

// request is what a signature is checked of.
type request struct {
	header http.Header
	body   []byte
	secret string
	now    time.Time
}

// verify reports whether a request proves that its sender knows the secret, and which call it is.
func (r *request) verify() (which identity, ok bool) {
	for _, s := range schemes {
		values := r.header.Values(s.header)
		if len(values) == 0 {
			continue
		}
		one, right := s.check(r, values[0])
		if len(values) > 1 || !right {
			return identity{}, false
		}
		if !ok {
			which, ok = one, true
		}
	}
	return which, ok
}

// byContent identifies a call by what was signed. An id in a header that is not signed proves nothing: whoever has
// recorded a call could send it again with another one.
func (r *request) byContent() identity {
	sum := sha256.Sum256(r.body)
	return identity{id: "content:" + hex.EncodeToString(sum[:]), For: seenFor}
}

// signs reports whether a hexadecimal signature is that of a text with the secret.
func (r *request) signs(signature string, text ...[]byte) bool {
	got, err := hex.DecodeString(signature)
	return err == nil && hmac.Equal(got, hmacOf([]byte(r.secret), text...))
}

func hmacOf(key []byte, text ...[]byte) []byte {
	mac := hmac.New(sha256.New, key)
	for _, part := range text {
		mac.Write(part)
	}
	return mac.Sum(nil)
}

// isTimely reports whether a time in seconds is near ours.
func (r *request) isTimely(seconds string) bool {
	at, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return false
	}
	off := r.now.Sub(time.Unix(at, 0))
	return off <= clockSkew && off >= -clockSkew
}

// plainSignature is a hexadecimal HMAC of the body.
func plainSignature(r *request, value string) (identity, bool) {
	return r.byContent(), r.signs(value, r.body)
}

// standardSignature is that of Standard Webhooks: id, time and body are signed.
func standardSignature(r *request, value string) (identity, bool) {
	id, at := r.header.Get("Webhook-Id"), r.header.Get("Webhook-Timestamp")
	key := []byte(r.secret)
	if rest, ok := strings.CutPrefix(r.secret, secretPrefix); ok {
		if decoded, err := base64.StdEncoding.DecodeString(rest); err == nil {
			key = decoded
		}
	}
	want, right := hmacOf(key, []byte(id), []byte("."), []byte(at), []byte("."), r.body), false
	for i, one := range strings.Fields(value) {
		signature, ok := strings.CutPrefix(one, "v1,")
		got, err := base64.StdEncoding.DecodeString(signature)
		right = right || ok && err == nil && i < mostSignatures && hmac.Equal(got, want)
	}
	return identity{id: "id:" + id, For: seenFor}, right && id != "" && r.isTimely(at)
}

// stripeSignature is that of Stripe: time and body are signed.
func stripeSignature(r *request, value string) (identity, bool) {
	at, right := "", false
	var list []string
	for pair := range strings.SplitSeq(value, ",") {
		switch name, text, _ := strings.Cut(strings.TrimSpace(pair), "="); {
		case name == "t" && at == "":
			at = text
		case name == "v1" && len(list) < mostSignatures:
			list = append(list, text)
		}
	}
	for _, signature := range list {
		right = r.signs(signature, []byte(at), []byte("."), r.body) || right
	}
	return r.byContent(), right && r.isTimely(at)
}

// plainToken is the secret itself. Whoever records such a call has it, so nothing but the sender's own repetition can
// be told from a new call.
func plainToken(r *request, value string) (identity, bool) {
	got, want := sha256.Sum256([]byte(value)), sha256.Sum256([]byte(r.secret))
	which := r.byContent()
	which.For = repeatFor
	if id := r.header.Get("Idempotency-Key"); id != "" {
		which = identity{id: "id:" + id, For: seenFor}
	}
	return which, subtle.ConstantTimeCompare(got[:], want[:]) == 1
}
