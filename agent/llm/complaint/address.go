package complaint

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"
)

// MaxStray is how much of an answer that is none is kept for Stray and Foreign, in bytes.
const MaxStray = 8 << 10

// Stray reads the beginning of an answer with a status of success in which no answer was found. known reports whether
// it says what failed, in words, with a code or with a status of its own; else it is nothing that a model server says.
func Stray(header http.Header, head []byte, now time.Time) (c Complaint, known bool) {
	c = Read(http.StatusOK, header, head, now)
	if c.Page {
		return c, false
	}
	_, _, over := c.Overflow()
	return c, over || c.matchingKind() != "" || c.Status >= 300
}

// Foreign recognises the answer of another API than the one that was asked, and says which one and what to set; "" =
// none that is known.
func Foreign(head []byte) string {
	for _, api := range tables().apis {
		if api.match.Match(head) {
			return api.says
		}
	}
	return ""
}

// OtherAPI says for a log that an address answers as another API than the one that was asked. api is what Foreign says;
// base is the configured base_url.
func OtherAPI(api, address, base string) string {
	return fmt.Sprintf("%s answers as another API than the one that was asked: %s (base_url is %s)", address, api, base)
}

// Elsewhere says for a log what answers at an address where no model server does, and what to check. The answer is c,
// with the status of HTTP and its header; base is the configured base_url. Texts of the server are in it: the caller
// removes secrets.
func (c *Complaint) Elsewhere(address, base string, status int, header http.Header) string {
	said := fmt.Sprintf("status %d", status)
	if c.Message != "" {
		said += fmt.Sprintf(": %q", c.Message[:cutRunes(c.Message, maxWord)])
	}
	check := fmt.Sprintf("check base_url, which is %s: its path, such as /v1, may be missing or wrong, or a proxy or "+
		"a login page is in between", base)
	switch {
	case status >= 300 && status < 400:
		return fmt.Sprintf(
			"%s redirects to %s (%s); set base_url, which is %s, to the final address",
			address, redirectTarget(address, header), said, base,
		)
	case c.blocksAddress(status):
		return fmt.Sprintf(
			"a gateway before %s lets this machine not through (%s); ask who runs it, or check base_url, which is %s",
			address, said, base,
		)
	case status == http.StatusProxyAuthRequired:
		return fmt.Sprintf(
			"a proxy on the way to %s wants a login (%s); check the proxy's variables, such as HTTPS_PROXY",
			address, said,
		)
	case c.Page:
		return fmt.Sprintf("%s answers with a web page instead of a model's answer (%s); %s", address, said, check)
	default:
		return fmt.Sprintf("%s is no address of a model server with this API (%s); %s", address, said, check)
	}
}

// blocksAddress reports whether a gateway, such as Cloudflare's, refuses the whole machine.
func (c *Complaint) blocksAddress(status int) bool {
	return status == http.StatusForbidden && (c.Page || c.Kind() == addressKind)
}

// redirectTarget is the address that a redirect leads to, without what may be secret in it.
func redirectTarget(from string, header http.Header) string {
	to, err := url.Parse(header.Get("Location"))
	if err != nil || header.Get("Location") == "" {
		return "another address"
	}
	if base, err := url.Parse(from); err == nil {
		to = base.ResolveReference(to)
	}
	return cmp.Or(Plain(to), "another address")
}

// Plain is an address without user name, query and fragment, where people and servers put secrets; "" for nil.
func Plain(u *url.URL) string {
	if u == nil {
		return ""
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// ofModels are statuses that a model server uses also behind a gateway that writes pages of its own.
var ofModels = []int{
	http.StatusUnauthorized, http.StatusPaymentRequired, http.StatusRequestTimeout, http.StatusConflict,
	http.StatusRequestEntityTooLarge, http.StatusTooEarly, http.StatusTooManyRequests,
	http.StatusUnavailableForLegalReasons,
}

// fromElsewhere reports whether the answer comes from something else than a model server, by
// what is known without its words.
func (c *Complaint) fromElsewhere() bool {
	switch {
	case c.Status >= 300 && c.Status < 400, c.Status == http.StatusProxyAuthRequired,
		c.Status == http.StatusMethodNotAllowed:
		return true
	case c.Page:
		return c.Status < 500 && !slices.Contains(ofModels, c.Status) || c.Status == http.StatusNotImplemented
	default:
		return c.Status == http.StatusNotFound && c.words == "" && len(c.codes) == 0
	}
}
