package web

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"io/fs"
	"net"
	"net/http"

	"code.dny.dev/ssrf"

	"github.com/zephbot/zephbot/policy/netrule"
	"github.com/zephbot/zephbot/policy/reason"
	"github.com/zephbot/zephbot/tools"
)

// refused converts a refusal of netrule to an error for the model, with the reason but without details.
func refused(err error) *tools.Error {
	why := reason.New(reason.URLRefused)
	if e, ok := errors.AsType[*netrule.Error](err); ok {
		why = e.Reason
	}
	e := tools.Refused(why, "Do not try the same address in another form. Use another public https page, or tell the "+
		"user what you could not read.")
	e.Err = err
	return e
}

// failed returns an error for which repeating the call does not help.
func failed(err error, message, suggestion string) *tools.Error {
	return &tools.Error{Category: tools.PermanentFailure, Message: message, Suggestion: suggestion, Err: err}
}

// passing returns the error for a failure that may be temporary, for which reading is repeated.
func passing(c tools.Category, err error, message string) *tools.Error {
	return &tools.Error{Category: c, Message: message, Retryable: c.Transient(), Err: err}
}

// broken classifies a failure of the connection. The error contains no address and no words of the other side. The end
// of the caller's context has priority, because it causes all later failures.
func broken(ctx context.Context, err error) *tools.Error {
	if own, ok := errors.AsType[*tools.Error](err); ok {
		return own
	}
	if done := ctx.Err(); done != nil {
		return ended(done, err)
	}
	var dns *net.DNSError
	var tlsErr tls.RecordHeaderError
	var certErr *tls.CertificateVerificationError
	var unknown x509.UnknownAuthorityError
	var netErr net.Error
	switch {
	case errors.Is(err, ssrf.ErrProhibitedIP), errors.Is(err, ssrf.ErrProhibitedNetwork):
		return refused(&netrule.Error{
			Kind: netrule.KindPrivate, Reason: reason.New(reason.AddressPrivate),
			Detail: err.Error(),
		})
	case errors.As(err, &dns) && dns.IsNotFound:
		e := failed(err, "The host name does not exist.", "Check the URL for typing errors, or use another page.")
		e.Mistake = true
		return e
	case errors.As(err, &certErr), errors.As(err, &unknown):
		return failed(err, "The server's certificate is not valid for this host.",
			"Use another page; the check cannot be turned off.")
	case errors.As(err, &tlsErr):
		return failed(err, "The server does not speak TLS on this port.", "Check the port of the URL.")
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &netErr) && netErr.Timeout():
		return passing(tools.Timeout, err, "The server did not answer in time.")
	case errors.As(err, &dns):
		return passing(tools.NetworkError, err, "The host name could not be looked up.")
	case errors.Is(err, io.ErrUnexpectedEOF):
		return passing(tools.NetworkError, err, "The connection ended in the middle of the page.")
	default:
		return passing(tools.NetworkError, err, "The connection to the server failed.")
	}
}

// ended returns the error for a timeout or a cancellation.
func ended(done, err error) *tools.Error {
	if errors.Is(done, context.DeadlineExceeded) {
		return passing(tools.Timeout, errors.Join(done, err), "Reading the page took too long.")
	}
	return &tools.Error{Category: tools.Cancelled, Message: "The call was cancelled.", Err: errors.Join(done, err)}
}

// statusError returns the error for a status that is not a success, with a suggestion for pages. Reading is repeated if
// the failure may be temporary.
func statusError(status int, header http.Header) *tools.Error {
	e := tools.FromStatus(status, header)
	e.Retryable = e.Category.Transient()
	switch {
	case status == http.StatusNotFound, status == http.StatusGone:
		e.Suggestion = "The page does not exist. Check the URL, or use another page."
		e.Err, e.Mistake = fs.ErrNotExist, true // as with files: it does not exist, and the tool has not failed
	case e.Category == tools.InvalidParameters:
		e.Suggestion = "Check path and query of the URL."
	case e.Category == tools.PolicyBlocked:
		e.Suggestion = "The page is not open to the public. Use another source, or tell the user."
	}
	return e
}
