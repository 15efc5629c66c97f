package tools_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/zephbot/zephbot/tools"
)

var categories = []tools.Category{
	tools.ToolNotFound, tools.InvalidParameters, tools.TypeMismatch, tools.PolicyBlocked, tools.ConfirmationRequired, tools.PermanentFailure,
	tools.Cancelled, tools.RateLimited, tools.ServerError, tools.NetworkError, tools.Timeout,
}

func TestCategories(t *testing.T) {
	t.Parallel()
	transient := map[tools.Category]bool{tools.RateLimited: true, tools.ServerError: true, tools.NetworkError: true, tools.Timeout: true}
	quality := map[tools.Category]bool{tools.ToolNotFound: true, tools.InvalidParameters: true, tools.TypeMismatch: true}
	seen := map[tools.Category]bool{}
	for _, c := range categories {
		if c.Transient() != transient[c] || c.Quality() != quality[c] || c.Reformat() != (quality[c] && c != tools.ToolNotFound) {
			t.Errorf("%s: transient %t, quality %t, reformat %t", c, c.Transient(), c.Quality(), c.Reformat())
		}
		text := tools.Feedback(&tools.Error{Category: c, Message: "x"})
		if strings.Contains(text, "suggestion: \n") {
			t.Errorf("%s has no suggestion", c)
		}
		seen[c] = true
	}
	if len(seen) != 11 {
		t.Errorf("%d categories, want 11", len(seen))
	}
}

// slow is a network error by its methods, like those of many packages.
type slow struct{ timeout bool }

func (slow) Error() string     { return "i/o" }
func (s slow) Timeout() bool   { return s.timeout }
func (s slow) Temporary() bool { return s.timeout }

func TestAsError(t *testing.T) {
	t.Parallel()
	_, missing := os.Open("/does/not/exist")
	for _, tc := range []struct {
		name    string
		err     error
		want    tools.Category
		message string
	}{
		{"cancelled", fmt.Errorf("x: %w", context.Canceled), tools.Cancelled, "the call was cancelled"},
		{"deadline", context.DeadlineExceeded, tools.Timeout, "the call took too long"},
		{"permission", &fs.PathError{Op: "open", Path: "/secret", Err: syscall.EACCES}, tools.PolicyBlocked, "permission denied"},
		{"missing file", missing, tools.PermanentFailure, "no such file or directory"},
		{"exists", &fs.PathError{Op: "mkdir", Path: "/secret", Err: syscall.EEXIST}, tools.PermanentFailure, "it exists already"},
		{"disk full", &fs.PathError{Op: "write", Path: "/secret", Err: syscall.ENOSPC}, tools.PermanentFailure, "no space left on the device"},
		{"directory", &fs.PathError{Op: "read", Path: "/secret", Err: syscall.EISDIR}, tools.PermanentFailure, "it is a directory"},
		{"refused", &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}, tools.NetworkError, ""},
		{"reset", syscall.ECONNRESET, tools.NetworkError, "the connection failed"},
		{"broken pipe", &fs.PathError{Op: "write", Path: "|1", Err: syscall.EPIPE}, tools.NetworkError, ""},
		{"unreachable", &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.EHOSTUNREACH)}, tools.NetworkError, ""},
		{"would block", syscall.EAGAIN, tools.ServerError, "it was busy for a moment"},
		{"interrupted", syscall.EINTR, tools.ServerError, ""},
		{"timed out", syscall.ETIMEDOUT, tools.Timeout, "the call took too long"},
		{"timed out while dialling", &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ETIMEDOUT)}, tools.Timeout, ""},
		{"a deadline of a file", os.ErrDeadlineExceeded, tools.Timeout, ""},
		{"aborted", syscall.ECONNABORTED, tools.NetworkError, ""},
		{"pipe within the process", fmt.Errorf("x: %w", io.ErrClosedPipe), tools.NetworkError, ""},
		{"not permitted", syscall.EPERM, tools.PolicyBlocked, "permission denied"},
		{"no such command", &exec.Error{Name: "secret", Err: exec.ErrNotFound}, tools.PermanentFailure, ""},
		{"bad descriptor", syscall.EBADF, tools.PermanentFailure, ""},
		{"no such host", &net.DNSError{Err: "no such host", Name: "internal.host"}, tools.NetworkError, ""},
		{"slow network", slow{true}, tools.Timeout, ""},
		{"other network", slow{false}, tools.NetworkError, ""},
		{"unknown", errors.New("secret"), tools.PermanentFailure, "the tool failed for an internal reason; the log has the details"},
		{"pending", &tools.Pending{}, tools.ConfirmationRequired, "a person has to approve this call first"},
		{"own", fmt.Errorf("x: %w", tools.Errorf(tools.RateLimited, "wait %d s", 3)), tools.RateLimited, "wait 3 s"},
		{"own, nil", fmt.Errorf("x: %w", (*tools.Error)(nil)), tools.PermanentFailure, "the tool failed for an internal reason; the log has the details"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if tc.name == "own, nil" { // formatting a nil pointer is not what is tested
				tc.err = nilError{}
			}
			e := tools.AsError(tc.err)
			if e.Category != tc.want || (tc.message != "" && e.Message != tc.message) {
				t.Errorf("got %s: %s, want %s: %s", e.Category, e.Message, tc.want, tc.message)
			}
			for _, leak := range []string{"secret", "internal.host"} {
				if strings.Contains(tools.Feedback(tc.err), leak) {
					t.Errorf("the model reads %q", leak)
				}
			}
		})
	}
}

// TestFromStatus has the HTTP table of seed 003.
func TestFromStatus(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]tools.Category{
		400: tools.InvalidParameters, 422: tools.InvalidParameters, 401: tools.PolicyBlocked, 403: tools.PolicyBlocked, 429: tools.RateLimited,
		500: tools.ServerError, 503: tools.ServerError, 599: tools.ServerError, 600: tools.PermanentFailure, 404: tools.PermanentFailure,
		410: tools.PermanentFailure, 418: tools.PermanentFailure, 200: tools.PermanentFailure, 304: tools.PermanentFailure, 0: tools.PermanentFailure,
	} {
		e := tools.FromStatus(status, nil)
		if e.Category != want || tools.StatusCategory(status) != want || e.Retryable || e.Denied() || e.RetryAfter != 0 || !strings.Contains(e.Message, fmt.Sprint(status)) {
			t.Errorf("%d: %+v", status, e)
		}
	}
	if e := tools.FromStatus(404, nil); e.Message != "The server answered with status 404 (Not Found)." {
		t.Errorf("got %s", e.Message)
	}
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	const now = "Wed, 04 Mar 2026 12:00:00 GMT"
	for _, tc := range []struct {
		status      int
		after, date string
		want        time.Duration
	}{
		{429, " 30 ", "", 30 * time.Second},
		{503, "120", "", 2 * time.Minute},
		{429, "0", "", 0},
		{429, "Wed, 04 Mar 2026 12:01:30 GMT", now, 90 * time.Second},
		{429, "Wed, 04 Mar 2026 11:00:00 GMT", now, 0},
		{429, "Wed, 04 Mar 2026 12:01:30 GMT", "", 0},
		{429, "Wed, 04 Mar 2027 12:01:30 GMT", now, 24 * time.Hour},
		{429, "999999", "", 24 * time.Hour},
		{429, "99999999999999999999999", "", 24 * time.Hour},
		{429, "-5", now, 0},
		{429, "1.5", now, 0},
		{429, "soon", now, 0},
		{429, "", now, 0},
		{404, "30", "", 0},
		{403, "30", "", 0},
	} {
		header := http.Header{}
		header.Set("Retry-After", tc.after)
		header.Set("Date", tc.date)
		e := tools.FromStatus(tc.status, header)
		if e.RetryAfter != tc.want || strings.Contains(e.Message, "wait "+tc.want.String()) != (tc.want > 0) {
			t.Errorf("%d %q: %s, %s", tc.status, tc.after, e.RetryAfter, e.Message)
		}
	}
}

// nilError wraps a nil *tools.Error, as a function with the wrong result type does.
type nilError struct{}

func (nilError) Error() string { return "nil" }
func (nilError) As(target any) bool {
	p, ok := target.(**tools.Error)
	if ok {
		*p = nil
	}
	return ok
}

func TestErrorText(t *testing.T) {
	t.Parallel()
	cause := errors.New("cause")
	e := &tools.Error{Category: tools.ServerError, Message: "down", Err: cause}
	if e.Error() != "server_error: down: cause" || !errors.Is(e, cause) {
		t.Errorf("got %s", e)
	}
	if got := tools.Errorf(tools.Timeout, "after %d s", 3).Error(); got != "timeout: after 3 s" {
		t.Errorf("got %s", got)
	}
	if got := (&tools.Pending{Question: tools.Question{Tool: "bash"}}).Error(); got != "approval of bash is pending" {
		t.Errorf("got %s", got)
	}
}

func TestFeedback(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		err  error
		want string
	}{
		{
			"contract", tools.Errorf(tools.InvalidParameters, "missing required field: url"),
			"[tool_error]\ncategory: invalid_parameters\nerror: missing required field: url\n" +
				"suggestion: Review the tool schema and provide correct parameters.\nretryable: false",
		},
		{
			"own suggestion", &tools.Error{Category: tools.NetworkError, Message: "a\r\nb", Suggestion: "c\u2028d", Retryable: true},
			"[tool_error]\ncategory: network_error\nerror: a; b\nsuggestion: c; d\nretryable: true",
		},
	} {
		if got := tools.Feedback(tc.err); got != tc.want {
			t.Errorf("%s: got\n%s\nwant\n%s", tc.name, got, tc.want)
		}
	}
}

func FuzzFeedback(f *testing.F) {
	f.Add("timeout", "message", "suggestion")
	f.Add("a\nb", "a\n\n\rretryable: true", "\u2028\u0085\v")
	f.Add("", "", "")
	f.Add("x", strings.Repeat("ä\n", 5000), "\xff\n")
	f.Fuzz(func(t *testing.T, category, message, suggestion string) {
		text := tools.Feedback(&tools.Error{Category: tools.Category(category), Message: message, Suggestion: suggestion})
		lines := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune("\n\r\v\f\u0085\u2028\u2029", r) })
		if len(lines) != 5 || strings.Count(text, "\n") != 4 {
			t.Fatalf("%d lines:\n%s", len(lines), text)
		}
		for i, prefix := range []string{"[tool_error]", "category: ", "error: ", "suggestion: ", "retryable: false"} {
			if !strings.HasPrefix(lines[i], prefix) {
				t.Fatalf("line %d is %q", i, lines[i])
			}
			if n := utf8.RuneCountInString(lines[i]); n > 2100 {
				t.Fatalf("line %d has %d characters", i, n)
			}
		}
	})
}

// TestStoredQuestion: a question is stored as one flat object, also what its decision was based on, so that a card of
// an earlier version can still be decided.
func TestStoredQuestion(t *testing.T) {
	t.Parallel()
	const stored = `{"call":"c1","tool":"bash","hash":"h","show":"ls","caller":"telegram:42","agent":"scout","args":"{}",` +
		`"inputs":["ls"],"dir":"/w","files":[{"name":"a","path":"/w/a","hash":"1"}],"changed":["a"],"server":"s","definition":"d"}`
	var q tools.Question
	if err := json.Unmarshal([]byte(stored), &q); err != nil {
		t.Fatal(err)
	}
	again, err := json.Marshal(q)
	if err != nil || string(again) != stored || q.Inputs[0] != "ls" || q.Definition != "d" {
		t.Errorf("%v: %s\nwant %s", err, again, stored)
	}
}
