package complaint

import (
	"bytes"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/policy/lazyregexp"
)

// refusedKind is the kind of the rows about contents that a vendor's filter rejects.
const refusedKind = "refused"

// addressKind is the kind of the rows about an address at which no model server answers.
const addressKind = llm.WrongAddress

// patience is the longest wait that is still a rate limit, where the words also fit a quota that is used up.
const patience = 10 * time.Minute

// kindRule is a kindRow, compiled; nil = anything.
type kindRule struct {
	kind         string
	codes, words *regexp.Regexp
	status       []int
	patient      bool
}

func newKindRule(r kindRow) kindRule {
	rule := kindRule{kind: r.Kind, status: r.Status, patient: r.Patient}
	if r.Codes != "" {
		rule.codes = regexp.MustCompile("^(?:" + r.Codes + ")$")
	}
	if r.Words != "" {
		rule.words = regexp.MustCompile(r.Words)
	}
	return rule
}

// matchesComplaint reports whether all conditions of the rule hold.
func (k *kindRule) matchesComplaint(c *Complaint) bool {
	return (len(k.status) == 0 || slices.Contains(k.status, c.Status)) &&
		(!k.patient || c.RetryAfter == 0 || c.RetryAfter > patience) &&
		(k.codes == nil || c.hasCode(k.codes)) &&
		(k.words == nil || !c.Page && k.words.MatchString(c.words))
}

// matchingKind returns the kind of the first row that matches; "" = none.
func (c *Complaint) matchingKind() string {
	for _, k := range tables().kinds {
		if k.matchesComplaint(c) {
			return k.kind
		}
	}
	return ""
}

// Refused reports whether the vendor's filter rejected the content of the request or of the answer. Kind is then
// llm.Invalid: the same request is refused again, another one may not be.
func (c *Complaint) Refused() bool {
	_, _, over := c.Overflow()
	return !over && c.matchingKind() == refusedKind
}

// Kind classifies the failure: by what is said about the length, else by the first row of the table that matches, else
// by the status.
func (c *Complaint) Kind() llm.Kind {
	if _, _, over := c.Overflow(); over {
		return llm.TooLong
	}
	switch kind := c.matchingKind(); kind {
	case "":
		if c.fromElsewhere() {
			return addressKind
		}
		return ofStatus(c.Status)
	case refusedKind:
		return llm.Invalid
	default:
		return llm.Kind(kind)
	}
}

// ofStatus classifies a failure whose words say nothing. Without a status, within a stream, a server has trouble of its
// own.
func ofStatus(status int) llm.Kind {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return llm.Unauthorized
	case http.StatusPaymentRequired, http.StatusPreconditionFailed: // 412: Fireworks, the account is suspended
		return llm.NoCredit
	case http.StatusUnavailableForLegalReasons:
		return llm.Region
	case http.StatusTooManyRequests, 498: // 498: Groq, no capacity in this tier
		return llm.RateLimited
	case http.StatusRequestTimeout:
		return llm.Timeout
	case 0, http.StatusConflict, http.StatusTooEarly:
		return llm.Unavailable
	}
	if status >= 500 && status != http.StatusNotImplemented { // 501 is about this request, and is said again each time
		return llm.Unavailable
	}
	return llm.Invalid
}

// Unexplained reports whether a request is rejected (4xx) without any known word or code that says why, and without a
// name of its part: the cause can be anything, its length included.
func (c *Complaint) Unexplained() bool {
	return c.Status >= 400 && c.Status < 500 && len(c.Places) == 0 && c.Kind() == llm.Invalid && c.matchingKind() == ""
}

var affordable = lazyregexp.New(`only afford (\d+)`)

// Affordable is the longest answer that the account can still pay (OpenRouter's 402), in tokens; 0 = not said. The same
// request with no more reserved for the answer is accepted.
func (c *Complaint) Affordable() int {
	m := affordable().FindStringSubmatch(c.words)
	if m == nil {
		return 0
	}
	return believedTokens(m[1])
}

// Hidden reads a complaint that a server hides in an answer with status 200 and without an error object (MiniMax's
// base_resp); ok is false if there is none.
func Hidden(answer []byte, now time.Time) (c Complaint, ok bool) {
	if !bytes.Contains(answer, []byte(`"base_resp"`)) || !hidden().Match(answer) {
		return c, false
	}
	c = Read(http.StatusOK, nil, answer, now)
	return c, slices.ContainsFunc(c.codes, func(code string) bool { return strings.HasPrefix(code, "base_resp.") })
}

// hidden is the beginning of a base_resp with another code than 0.
var hidden = lazyregexp.New(`"base_resp"\s*:\s*\{[^{}]*"status_code"\s*:\s*"?[1-9]`)
